/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * STAGE_ANSWER: what came back for a name, judged as a whole before any of it is handed out. Each
 * rule is asked of every part before the next rule is, so the order of the parts does not matter.
 */

#include "rules/judge.h"

/* A rule asked of one address. */
typedef bool (*address_rule)(const struct judge *judge, const struct address *address,
			     const void *context, struct verdict *out);

/* Asks RULE of every address and hint; of several denials the first in order stays. */
static bool ask_addresses(const struct judge *judge, const struct answer *answer, address_rule rule,
			  const void *context, struct verdict *out)
{
	struct verdict kept = {0}, v;

	for (size_t i = 0; i < answer->address_count + answer->hint_count; i++) {
		const struct address *address = i < answer->address_count
							? &answer->addresses[i]
							: &answer->hints[i - answer->address_count];
		if (rule(judge, address, context, &v))
			judge_keep_first(&kept, &v);
	}
	if (kept.reason != REASON_NONE)
		*out = kept;
	return kept.reason != REASON_NONE;
}

static bool ask_floor(const struct judge *judge, const struct address *address, const void *context,
		      struct verdict *out)
{
	(void)context;
	return rule_floor_address(judge, address, 0, 0, out);
}

static bool ask_blocked(const struct judge *judge, const struct address *address,
			const void *context, struct verdict *out)
{
	const struct list_query without_port = {.port_rule = PORT_NONE};

	(void)context;
	return rule_blocked_address(judge, address, &without_port, out);
}

/* What the operator wrote down in `hosts` for the name asked is no rebinding. */
static bool ask_rebinding(const struct judge *judge, const struct address *address,
			  const void *context, struct verdict *out)
{
	const struct named *named = context;

	return rule_rebinding(judge, address, out) && !judge_is_static(judge, named, address);
}

static bool ask_reachability(const struct judge *judge, const struct address *address,
			     const void *context, struct verdict *out)
{
	const struct list_query any = {.port_rule = PORT_ANY};
	const bool *name_lifts = context;

	return rule_reachability(judge, address,
				 *name_lifts || judge_lists_address(judge, address, &any, NULL),
				 out);
}

/* A rule asked of one name of a chain. */
typedef bool (*name_rule)(const struct judge *judge, const struct named *named,
			  struct verdict *out);

static bool ask_targets(const struct judge *judge, const struct answer *answer, name_rule rule,
			struct verdict *out)
{
	struct verdict kept = {0}, v;
	struct named named;

	for (size_t i = 0; i < answer->target_count; i++) {
		/* RFC 9460 section 2.5: the root as SVCB target is the owner, or nothing */
		if (answer->targets[i].length == 0)
			continue;
		judge_name(judge, &answer->targets[i], &named);
		if (rule(judge, &named, &v))
			judge_keep_first(&kept, &v);
	}
	if (kept.reason != REASON_NONE)
		*out = kept;
	return kept.reason != REASON_NONE;
}

static bool name_is_blocked(const struct judge *judge, const struct named *named,
			    struct verdict *out)
{
	const struct list_query without_port = {.port_rule = PORT_NONE};

	return rule_blocked_name(judge, named, &without_port, out);
}

static bool target_is_not_public(const struct judge *judge, const struct named *named,
				 struct verdict *out)
{
	(void)judge;
	return (!judge_is_public(named) ||
		names_ends_in_number(named->walk.name->text, named->walk.name->length)) &&
	       judge_deny(REASON_REBINDING, named->facts.special, out);
}

static bool rule_malformed(const struct answer *answer, struct verdict *out)
{
	return (answer->malformed ||
		names_ends_in_number(answer->name->text, answer->name->length)) &&
	       judge_deny(REASON_MALFORMED, (struct place){0}, out);
}

static bool rule_floor(const struct judge *judge, const struct answer *answer,
		       const struct named *named, struct verdict *out)
{
	return rule_floor_name(judge, named, out) ||
	       ask_targets(judge, answer, rule_floor_name, out) ||
	       ask_addresses(judge, answer, ask_floor, NULL, out);
}

static struct verdict judge_answer(const struct judge *judge, const struct answer *answer)
{
	const struct list_query any = {.port_rule = PORT_ANY};
	struct verdict kept = {0}, v;
	struct place place = {0};
	struct named named;

	judge_name(judge, answer->name, &named);
	if (!judge_audits(judge) && rule_malformed(answer, &v))
		return v;
	if (rule_floor(judge, answer, &named, &v) || rule_malformed(answer, &v) ||
	    name_is_blocked(judge, &named, &v) || ask_targets(judge, answer, name_is_blocked, &v) ||
	    ask_addresses(judge, answer, ask_blocked, NULL, &v))
		return v;

	bool listed = judge_lists_name(judge, &named, &any, &place);
	if (!listed && policy_is(judge->policy, OPTION_DEFAULT_DENY)) {
		judge_deny(REASON_NOT_ALLOWLISTED, policy_place(judge->policy, OPTION_DEFAULT_DENY),
			   &v);
		return v;
	}
	if (!answer->from_static && !judge_may_rebind(judge, &named) &&
	    (ask_addresses(judge, answer, ask_rebinding, &named, &v) ||
	     ask_targets(judge, answer, target_is_not_public, &v)))
		return v;

	bool lifts = named.facts.kind == NAMES_EXEMPT || (listed && !judge_is_public(&named));
	if (rule_private_host(judge, &named, listed, &v))
		judge_keep_first(&kept, &v);
	if (ask_addresses(judge, answer, ask_reachability, &lifts, &v))
		judge_keep_first(&kept, &v);
	if (kept.reason != REASON_NONE)
		return kept;
	return judge_allow(place);
}

struct verdict policy_answer(const struct policy_image *image, const struct subject *subject,
			     const struct answer *answer)
{
	struct hook_judge hook;
	struct judge judge;
	struct verdict v, once_more;

	if (!judge_begin(&judge, image, subject, &v))
		return v;
	v = judge_answer(&judge, answer);
	if (hook_begin(&judge, STAGE_ANSWER, &v, &hook)) {
		once_more = judge_answer(&hook.judge, answer);
		hook_end(&v, &once_more);
	}
	return judge_end(&judge, v);
}
