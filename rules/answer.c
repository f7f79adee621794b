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

	if (!rule_rebinding(judge, address, out))
		return false;
	return !judge_is_static(judge, named, address) ||
	       judge_lifts(judge, REASON_REBINDING, (struct place){0});
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

static bool rule_malformed(const struct judge *judge, const struct answer *answer,
			   struct verdict *out)
{
	return judge_asked(judge, REASON_BIT(MALFORMED),
			   (answer->malformed ||
			    names_ends_in_number(answer->name->text, answer->name->length)) &&
				   judge_deny(REASON_MALFORMED, (struct place){0}, out),
			   out);
}

static bool rule_floor(const struct judge *judge, const struct answer *answer,
		       const struct named *named, struct verdict *out)
{
	return judge_asked(judge, REASON_BIT(METADATA),
			   rule_floor_name(judge, named, out) ||
				   ask_targets(judge, answer, rule_floor_name, out) ||
				   ask_addresses(judge, answer, ask_floor, NULL, out),
			   out);
}

static bool rule_blocked(const struct judge *judge, const struct answer *answer,
			 const struct named *named, struct verdict *out)
{
	struct verdict kept = {0}, v;

	/* two rules: the first of them, asked of every part, comes before the second */
	if (name_is_blocked(judge, named, &v))
		judge_keep_first(&kept, &v);
	if (ask_targets(judge, answer, name_is_blocked, &v))
		judge_keep_first(&kept, &v);
	if (ask_addresses(judge, answer, ask_blocked, NULL, &v))
		judge_keep_first(&kept, &v);
	if (kept.reason != REASON_NONE)
		*out = kept;
	return judge_asked(judge, REASON_BIT(BLOCKED_HOST) | REASON_BIT(ENCRYPTED_DNS),
			   kept.reason != REASON_NONE, &kept);
}

/* Rule 8 asks every address, then every target. */
static bool ask_all_rebinding(const struct judge *judge, const struct answer *answer,
			      const struct named *named, struct verdict *out)
{
	return ask_addresses(judge, answer, ask_rebinding, named, out) ||
	       ask_targets(judge, answer, target_is_not_public, out);
}

static bool rule_all_rebinding(const struct judge *judge, const struct answer *answer,
			       const struct named *named, struct verdict *out)
{
	struct place by = {0};
	bool refuses = !answer->from_static && !judge_may_rebind(judge, named, &by) &&
		       ask_all_rebinding(judge, answer, named, out);

	if (judge->trace != NULL && by.line != 0 && ask_all_rebinding(judge, answer, named, out))
		judge_lifts(judge, REASON_REBINDING, by);
	return judge_asked(judge, REASON_BIT(REBINDING), refuses, out);
}

static bool rule_all_nine(const struct judge *judge, const struct answer *answer,
			  const struct named *named, bool listed, struct verdict *out)
{
	bool lifts = named->facts.kind == NAMES_EXEMPT || (listed && !judge_is_public(named));
	struct verdict kept = {0}, v;

	if (rule_private_host(judge, named, listed, &v))
		judge_keep_first(&kept, &v);
	if (ask_addresses(judge, answer, ask_reachability, &lifts, &v))
		judge_keep_first(&kept, &v);
	if (kept.reason != REASON_NONE)
		*out = kept;
	return judge_asked(judge, REASONS_NINE, kept.reason != REASON_NONE, &kept);
}

static struct verdict judge_answer(const struct judge *judge, const struct answer *answer)
{
	const struct list_query any = {.port_rule = PORT_ANY};
	bool audits = judge_audits(judge);
	struct place place = {0};
	struct named named;
	struct verdict v;

	judge_name(judge, answer->name, &named);
	if ((!audits && rule_malformed(judge, answer, &v)) ||
	    rule_floor(judge, answer, &named, &v) ||
	    (audits && rule_malformed(judge, answer, &v)) ||
	    rule_blocked(judge, answer, &named, &v))
		return v;

	bool listed = judge_lists_name(judge, &named, &any, &place);
	judge_listed(judge, listed, place);
	if (rule_not_allowlisted(judge, listed, place, &v) ||
	    rule_all_rebinding(judge, answer, &named, &v) ||
	    rule_all_nine(judge, answer, &named, listed, &v))
		return v;
	return judge_allow(place);
}

struct verdict policy_answer(const struct policy_image *image, const struct subject *subject,
			     const struct answer *answer)
{
	struct hook_judge hook;
	struct judge judge;
	struct verdict v, once_more;

	if (!judge_begin(&judge, image, subject, STAGE_ANSWER, &v))
		return v;
	v = judge_answer(&judge, answer);
	if (hook_begin(&judge, STAGE_ANSWER, &v, &hook)) {
		once_more = judge_answer(&hook.judge, answer);
		hook_end(&v, &once_more);
	}
	return judge_end(&judge, v);
}
