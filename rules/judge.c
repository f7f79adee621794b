/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rules/judge.h"

#include <string.h>

#include "rules/classify.h"
#include "rules/embedding.h"
#include "rules/floor.h"

bool judge_begin(struct judge *judge, const struct policy_image *image,
		 const struct subject *subject, enum stage stage, struct verdict *out)
{
	*judge = (struct judge){image, image_policy(image, subject->policy), subject, false,
				subject->trace};
	if (judge->trace != NULL)
		tell_begin(judge->trace, TRACE_STAGE, stage, NULL);
	return !judge_asked(judge, 0,
			    judge->policy == NULL &&
				    judge_deny(REASON_POLICY_ERROR, (struct place){0}, out),
			    out);
}

struct verdict judge_allow(struct place rule)
{
	return (struct verdict){.outcome = OUTCOME_ALLOW, .enforced = true, .rule = rule};
}

bool judge_deny(enum reason reason, struct place rule, struct verdict *out)
{
	*out = (struct verdict){
		.outcome = OUTCOME_DENY, .reason = reason, .enforced = true, .rule = rule};
	return true;
}

struct verdict judge_end(const struct judge *judge, struct verdict verdict)
{
	if (verdict.outcome == OUTCOME_DENY && judge_audits(judge) &&
	    verdict.reason != REASON_METADATA)
		verdict.enforced = false;
	return verdict;
}

static bool stands_before(const struct place *a, const struct place *b)
{
	return a->source != b->source ? a->source < b->source : a->line < b->line;
}

void judge_keep_first(struct verdict *kept, const struct verdict *other)
{
	if (kept->reason == REASON_NONE || other->reason < kept->reason ||
	    (other->reason == kept->reason && stands_before(&other->rule, &kept->rule)))
		*kept = *other;
}

static bool is_search_domain(const void *context, const struct name_walk *walk, size_t at)
{
	const struct policy_image *image = context;

	return list_find_suffix(image, &image->wide[WIDE_SEARCH], walk, at) != NULL;
}

void judge_name(const struct judge *judge, const struct name *name, struct named *out)
{
	const struct names_search search = {is_search_domain, judge->image};
	bool searches = judge->image->wide[WIDE_SEARCH].rules.count > 0;

	names_walk(name, &out->walk);
	names_facts_of_walk(&out->walk, searches ? &search : NULL, &out->facts);
}

bool rule_floor_name(const struct judge *judge, const struct named *named, struct verdict *out)
{
	const struct list_query any = {.port_rule = PORT_ANY};

	if (named->facts.floor.line != 0)
		return judge_deny(REASON_METADATA, named->facts.floor, out);

	const struct image_rule *rule =
		list_find_name(judge->image, &judge->image->wide[WIDE_FLOOR], &named->walk, &any);
	return rule != NULL && judge_deny(REASON_METADATA, rule_place(rule), out);
}

bool rule_floor_address(const struct judge *judge, const struct address *address, uint16_t port,
			uint8_t protocol, struct verdict *out)
{
	const struct list_query query = {.port_rule = protocol == 0 ? PORT_NONE : PORT_THIS,
					 .port = port};
	uint32_t line;

	if (floor_of_address(address, port, protocol, &line) == FLOOR_IS_FLOOR)
		return judge_deny(REASON_METADATA, (struct place){SOURCE_FLOOR, line}, out);

	const struct image_rule *rule =
		list_find_any_form(judge->image, &judge->image->wide[WIDE_FLOOR], address, &query);
	return rule != NULL && judge_deny(REASON_METADATA, rule_place(rule), out);
}

bool judge_is_infrastructure(const struct address *address, uint16_t port, uint8_t protocol,
			     struct place *place)
{
	uint32_t line;

	if (floor_of_address(address, port, protocol, &line) != FLOOR_IS_INFRASTRUCTURE)
		return false;
	*place = (struct place){SOURCE_FLOOR, line};
	return true;
}

bool judge_opens_infrastructure(const struct judge *judge)
{
	return judge->subject->root || policy_is(judge->policy, OPTION_INFRASTRUCTURE_ALLOW);
}

bool rule_blocked_name(const struct judge *judge, const struct named *named,
		       const struct list_query *query, struct verdict *out)
{
	const struct image_rule *rule = list_find_name(
		judge->image, &judge->policy->lists[LIST_BLOCK_HOSTS], &named->walk, query);

	if (rule != NULL)
		return judge_deny(REASON_BLOCKED_HOST, rule_place(rule), out);
	return named->facts.encrypted.line != 0 &&
	       policy_is(judge->policy, OPTION_BLOCK_ENCRYPTED_DNS) &&
	       judge_deny(REASON_ENCRYPTED_DNS, named->facts.encrypted, out);
}

bool rule_blocked_address(const struct judge *judge, const struct address *address,
			  const struct list_query *query, struct verdict *out)
{
	const struct image_rule *rule = list_find_any_form(
		judge->image, &judge->policy->lists[LIST_BLOCK_HOSTS], address, query);

	return rule != NULL && judge_deny(REASON_BLOCKED_HOST, rule_place(rule), out);
}

static bool found_at(const struct image_rule *rule, struct place *place)
{
	if (rule != NULL && place != NULL)
		*place = rule_place(rule);
	return rule != NULL;
}

bool judge_lists_name(const struct judge *judge, const struct named *named,
		      const struct list_query *query, struct place *place)
{
	const struct image_list *lists = judge->policy->lists;

	return found_at(list_find_name(judge->image, &lists[LIST_ALLOW_HOSTS], &named->walk, query),
			place) ||
	       found_at(list_find_name(judge->image, &lists[LIST_ALLOWED_ORIGINS], &named->walk,
				       query),
			place);
}

bool judge_lists_address(const struct judge *judge, const struct address *address,
			 const struct list_query *query, struct place *place)
{
	const struct image_list *lists = judge->policy->lists;

	return found_at(list_find_single_form(judge->image, &lists[LIST_ALLOW_HOSTS], address,
					      query),
			place) ||
	       found_at(list_find_single_form(judge->image, &lists[LIST_ALLOWED_ORIGINS], address,
					      query),
			place);
}

bool rule_not_allowlisted(const struct judge *judge, bool listed, struct place listing,
			  struct verdict *out)
{
	bool refuses = policy_is(judge->policy, OPTION_DEFAULT_DENY);

	if (refuses && listed)
		refuses = judge_lifts(judge, REASON_NOT_ALLOWLISTED, listing);
	return judge_asked(judge, REASON_BIT(NOT_ALLOWLISTED),
			   refuses && judge_deny(REASON_NOT_ALLOWLISTED,
						 policy_place(judge->policy, OPTION_DEFAULT_DENY),
						 out),
			   out);
}

/* `allow_private_cidrs` opens ADDRESS; what no switch opens it does not open either. */
static bool is_carved_out(const struct judge *judge, const struct address *address,
			  struct place *by)
{
	const struct list_query any = {.port_rule = PORT_ANY};

	return found_at(list_find_single_form(judge->image,
					      &judge->policy->lists[LIST_ALLOW_PRIVATE_CIDRS],
					      address, &any),
			by);
}

bool judge_is_static(const struct judge *judge, const struct named *named,
		     const struct address *address)
{
	const struct policy_image *image = judge->image;
	const struct image_list *list = &image->wide[WIDE_HOST_ADDRESSES];
	const struct image_host *hosts = image_at(image, image->hosts.offset);
	const struct list_query any = {.port_rule = PORT_ANY};
	const struct image_rule *rule = list_find_single_form(image, list, address, &any);

	for (; rule != NULL; rule = list_next(image, list, rule)) {
		const struct image_host *host = &hosts[rule->value];
		if (host->key_length == named->walk.name->length &&
		    memcmp(image_at(image, host->key), named->walk.name->text, host->key_length) ==
			    0)
			return true;
	}
	return false;
}

bool judge_may_rebind(const struct judge *judge, const struct named *named, struct place *by)
{
	const struct list_query any = {.port_rule = PORT_ANY};

	return named->facts.kind != NAMES_PUBLIC ||
	       found_at(list_find_name(judge->image,
				       &judge->policy->lists[LIST_ALLOW_PRIVATE_ANSWERS],
				       &named->walk, &any),
			by);
}

bool rule_rebinding(const struct judge *judge, const struct address *address, struct verdict *out)
{
	struct place places[CLASS_NEVER + 1];
	unsigned classes = class_of_address(address, places);
	struct place by;

	for (enum address_class class = CLASS_LOOPBACK; class <= CLASS_NEVER; class ++) {
		if ((classes & CLASS_BIT(class)) == 0)
			continue;
		if (class == CLASS_NEVER || !is_carved_out(judge, address, &by))
			return judge_deny(REASON_REBINDING, places[class], out);
		judge_lifts(judge, REASON_REBINDING, by);
	}
	return false;
}

/* The switch that keeps CLASS shut where somebody wrote it, else the row that gave the class. */
static struct place shut_by(const struct judge *judge, enum policy_option option, struct place row)
{
	struct place place = policy_place(judge->policy, option);

	return place.line != 0 ? place : row;
}

/* Some class of CLASSES is closed by a switch. */
static bool class_is_shut(const struct judge *judge, unsigned classes, const struct place *places,
			  struct verdict *out)
{
	bool private_open = policy_is(judge->policy, OPTION_ALLOW_PRIVATE_NETWORK);
	bool loopback_open = private_open || policy_is(judge->policy, OPTION_ALLOW_LOOPBACK);

	if ((classes & CLASS_BIT(CLASS_LOOPBACK)) && !loopback_open)
		return judge_deny(REASON_LOOPBACK,
				  shut_by(judge, OPTION_ALLOW_LOOPBACK, places[CLASS_LOOPBACK]),
				  out);
	if ((classes & CLASS_BIT(CLASS_PRIVATE)) && !private_open)
		return judge_deny(
			REASON_PRIVATE_ADDRESS,
			shut_by(judge, OPTION_ALLOW_PRIVATE_NETWORK, places[CLASS_PRIVATE]), out);
	return (classes & CLASS_BIT(CLASS_SPECIAL)) && !private_open &&
	       judge_deny(REASON_SPECIAL_ADDRESS,
			  shut_by(judge, OPTION_ALLOW_PRIVATE_NETWORK, places[CLASS_SPECIAL]), out);
}

bool rule_reachability(const struct judge *judge, const struct address *address, bool lifted,
		       struct verdict *out)
{
	struct place places[CLASS_NEVER + 1], by = {0};
	unsigned classes = class_of_address(address, places);
	struct verdict v;

	if (classes & CLASS_BIT(CLASS_NEVER))
		return judge_deny(REASON_SPECIAL_ADDRESS, places[CLASS_NEVER], out);
	if (classes == CLASS_BIT(CLASS_PUBLIC) || !class_is_shut(judge, classes, places, &v))
		return false;
	if (lifted || is_carved_out(judge, address, &by))
		return judge_lifts(judge, v.reason, by);
	*out = v;
	return true;
}

bool rule_private_host(const struct judge *judge, const struct named *named, bool listed,
		       struct verdict *out)
{
	enum policy_option option = OPTION_ALLOW_PRIVATE_NETWORK;
	enum reason reason = REASON_PRIVATE_HOST;

	if (named->facts.kind == NAMES_LOCALHOST) {
		option = OPTION_ALLOW_LOOPBACK;
		reason = REASON_LOOPBACK;
	} else if (named->facts.kind != NAMES_PRIVATE) {
		return false;
	}
	if (policy_is(judge->policy, OPTION_ALLOW_PRIVATE_NETWORK) ||
	    policy_is(judge->policy, option))
		return false;
	if (listed)
		return judge_lifts(judge, reason, (struct place){0});
	return judge_deny(reason, shut_by(judge, option, named->facts.special), out);
}

bool rule_nine(const struct judge *judge, const struct address *address, bool lifted,
	       const struct named *named, bool listed, struct verdict *out)
{
	struct verdict kept = {0}, v;

	if (rule_reachability(judge, address, lifted, &v))
		judge_keep_first(&kept, &v);
	if (rule_private_host(judge, named, listed, &v))
		judge_keep_first(&kept, &v);
	if (kept.reason != REASON_NONE)
		*out = kept;
	return judge_asked(judge, REASONS_NINE, kept.reason != REASON_NONE, &kept);
}
