/* SPDX-License-Identifier: GPL-2.0-or-later */

/* STAGE_RESOLVE: a question, before anything is sent upstream. */

#include "rules/judge.h"

enum { TYPE_NULL = 10, TYPE_SIG = 24, TYPE_KEY = 25, TYPE_NXT = 30, TYPE_SINK = 40 };
enum { TYPE_OPT = 41, TYPE_DS = 43, TYPE_DNSKEY = 48, TYPE_UINFO = 100, TYPE_UNSPEC = 103 };
/* RFC 6895 section 3.1: meta and question types, ANY among them, and private use. */
enum { TYPE_META_FIRST = 128, TYPE_META_LAST = 255, TYPE_PRIVATE_FIRST = 65280 };

/* Types that no client needs and that carry whatever a tunnel puts in. */
static bool type_is_refused(uint16_t type)
{
	switch (type) {
	case 0:
	case TYPE_NULL:
	case TYPE_SIG:
	case TYPE_KEY:
	case TYPE_NXT:
	case TYPE_SINK:
	case TYPE_OPT:
		return true;
	default:
		return (type >= TYPE_UINFO && type <= TYPE_UNSPEC) ||
		       (type >= TYPE_META_FIRST && type <= TYPE_META_LAST) ||
		       type >= TYPE_PRIVATE_FIRST;
	}
}

static bool rule_malformed(const struct judge *judge, const struct question *question,
			   struct verdict *out)
{
	const struct place builtin = {0};
	bool refuses;

	if (question->name_error != NAME_OK ||
	    names_ends_in_number(question->name->text, question->name->length))
		refuses = judge_deny(REASON_MALFORMED, builtin, out);
	else
		refuses = type_is_refused(question->type) && !judge->lifted &&
			  judge_deny(REASON_QTYPE, builtin, out);
	return judge_asked(judge, REASON_BIT(MALFORMED) | REASON_BIT(QTYPE), refuses, out);
}

static bool rule_floor(const struct judge *judge, const struct named *named, struct verdict *out)
{
	return judge_asked(judge, REASON_BIT(METADATA), rule_floor_name(judge, named, out), out);
}

static bool rule_blocked(const struct judge *judge, const struct named *named, struct verdict *out)
{
	const struct list_query without_port = {.port_rule = PORT_NONE};

	return judge_asked(judge, REASON_BIT(BLOCKED_HOST) | REASON_BIT(ENCRYPTED_DNS),
			   rule_blocked_name(judge, named, &without_port, out), out);
}

/*
 * A validator below us asks for the DS and DNSKEY records of a top-level domain; a refusal would
 * make all of it bogus, and these types carry no address.
 */
static bool asks_for_a_key(const struct named *named, uint16_t type)
{
	return named->facts.single_label && named->facts.special.line == 0 &&
	       (type == TYPE_DS || type == TYPE_DNSKEY);
}

/* The configuration says where the name comes from. */
static bool is_provided(const struct judge *judge, const struct named *named)
{
	const struct policy_image *image = judge->image;
	const struct list_query any = {.port_rule = PORT_ANY};

	return list_find_name(image, &image->wide[WIDE_FORWARD], &named->walk, &any) != NULL ||
	       list_find_name(image, &image->wide[WIDE_HOSTS], &named->walk, &any) != NULL;
}

/* With a closed private network rule 9 has the private names. */
static bool rule_special_name(const struct judge *judge, const struct named *named, bool listed,
			      struct verdict *out)
{
	enum name_kind kind = named->facts.kind;
	bool refuses =
		kind == NAMES_RESERVED ||
		(kind == NAMES_PRIVATE && policy_is(judge->policy, OPTION_ALLOW_PRIVATE_NETWORK));

	if (refuses && (listed || judge->lifted || is_provided(judge, named)))
		refuses = judge_lifts(judge, REASON_SPECIAL_NAME, (struct place){0});
	return judge_asked(judge, REASON_BIT(SPECIAL_NAME),
			   refuses && judge_deny(REASON_SPECIAL_NAME, named->facts.special, out),
			   out);
}

static bool rule_private(const struct judge *judge, const struct named *named, bool listed,
			 struct verdict *out)
{
	return judge_asked(judge, REASON_BIT(LOOPBACK) | REASON_BIT(PRIVATE_HOST),
			   rule_private_host(judge, named, listed, out), out);
}

static struct verdict judge_question(const struct judge *judge, const struct question *question)
{
	const struct list_query any = {.port_rule = PORT_ANY};
	bool audits = judge_audits(judge);
	struct place place = {0};
	struct named named;
	struct verdict v;

	if ((!audits || question->name_error != NAME_OK) && rule_malformed(judge, question, &v))
		return v;
	judge_name(judge, question->name, &named);
	if (rule_floor(judge, &named, &v) || (audits && rule_malformed(judge, question, &v)) ||
	    rule_blocked(judge, &named, &v))
		return v;

	bool listed = judge_lists_name(judge, &named, &any, &place);
	judge_listed(judge, listed, place);
	bool key = asks_for_a_key(&named, question->type);
	if (!key && rule_special_name(judge, &named, listed, &v))
		return v;
	if (rule_not_allowlisted(judge, listed, place, &v))
		return v;
	if (!key && rule_private(judge, &named, listed, &v))
		return v;
	return judge_allow(place);
}

struct verdict policy_resolve(const struct policy_image *image, const struct subject *subject,
			      const struct question *question)
{
	struct hook_judge hook;
	struct judge judge;
	struct verdict v, once_more;

	if (!judge_begin(&judge, image, subject, STAGE_RESOLVE, &v))
		return v;
	v = judge_question(&judge, question);
	if (hook_begin(&judge, STAGE_RESOLVE, &v, &hook)) {
		once_more = judge_question(&hook.judge, question);
		hook_end(&v, &once_more);
	}
	return judge_end(&judge, v);
}

bool policy_strips_ech(const struct policy_image *image, policy_index policy)
{
	const struct image_policy *p = image_policy(image, policy);

	return p == NULL || policy_is(p, OPTION_STRIP_ECH);
}

bool policy_searches_secrets(const struct policy_image *image, policy_index policy)
{
	const struct image_policy *p = image_policy(image, policy);

	return p == NULL || policy_is(p, OPTION_BLOCK_SECRET_BEARING_URLS);
}

size_t policy_static_addresses(const struct policy_image *image, const struct name *name,
			       struct address *out, size_t max)
{
	const struct image_host *hosts = image_at(image, image->hosts.offset);
	const struct address *addresses = image_at(image, image->addresses.offset);
	const struct image_list *list = &image->wide[WIDE_HOSTS];
	const struct image_rule *rule = NULL;
	struct name_walk walk;
	size_t count = 0;

	if (list->rules.count == 0)
		return 0;
	names_walk(name, &walk);
	if (walk.count > 0)
		rule = list_find_suffix(image, list, &walk, 0);
	for (; rule != NULL; rule = list_next(image, list, rule)) {
		const struct image_host *host = &hosts[rule->value];
		for (uint32_t i = 0; i < host->count && count < max; i++)
			out[count++] = addresses[host->first + i];
	}
	return count;
}

bool policy_name_is_public(const struct policy_image *image, const struct name *name)
{
	struct name_facts facts;

	(void)image;
	names_facts(name, NULL, &facts);
	return facts.kind == NAMES_PUBLIC || facts.kind == NAMES_EXEMPT;
}
