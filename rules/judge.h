/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the stages share: a judgement in progress, and one function a rule of docs/policy.md. A rule
 * function returns true when it decides, with the denial in *OUT. Private to rules/.
 */

#include "rules/image.h"
#include "rules/tell.h"

struct judge {
	const struct policy_image *image;
	const struct image_policy *policy;
	const struct subject *subject;
	bool lifted;         /* see hook_begin() */
	struct trace *trace; /* of the subject; NULL while a side question is put */
};

/* False: the policy does not exist and *OUT is the refusal. */
bool judge_begin(struct judge *judge, const struct policy_image *image,
		 const struct subject *subject, enum stage stage, struct verdict *out);

/* A set of reasons: the rules that one function asks. */
#define REASON_BIT(reason) (UINT32_C(1) << REASON_##reason)
static_assert(REASON_COUNT <= 32, "a set of reasons is 32 bits");

/*
 * REFUSES, after a trace has noted what became of the rules of REASONS; *OUT is the refusal, if it
 * is one.
 */
static inline bool judge_asked(const struct judge *judge, uint32_t reasons, bool refuses,
			       const struct verdict *out)
{
	if (judge->trace != NULL)
		tell_rules(judge->trace, reasons, refuses ? out : NULL);
	return refuses;
}

struct verdict judge_allow(struct place rule);

/* True, for `return judge_deny(…)`. */
bool judge_deny(enum reason reason, struct place rule, struct verdict *out);

/* Audit mode reports and lets pass all but the floor. */
struct verdict judge_end(const struct judge *judge, struct verdict verdict);

/*
 * Rule 12. A denial may hide another that is asked later and that nothing lifts: what `not_allowlisted`
 * refuses may be a rebinding as well. So before the hook is asked about a denial, all is judged once
 * more under the policy with every door open (OPEN): what still refuses then is what no hook lifts.
 */
struct hook_judge {
	struct judge judge; /* that judges once more */
	struct image_policy open;
};

/*
 * Sets VERDICT's asks_hook. True: it is a denial that might be lifted, and OUT->judge is to judge
 * once more, its verdict for hook_end().
 */
bool hook_begin(const struct judge *judge, enum stage stage, struct verdict *verdict,
		struct hook_judge *out);
void hook_end(struct verdict *verdict, const struct verdict *once_more);

/*
 * Of two denials the one whose rule is asked first, then the one whose rule stands first, so that
 * the order of addresses, names and pins does not matter.
 */
void judge_keep_first(struct verdict *kept, const struct verdict *other);

static inline bool judge_audits(const struct judge *judge)
{
	return policy_is(judge->policy, OPTION_AUDIT);
}

/* A rule refuses but for what stands at BY. False, for `return judge_lifts(…)`. */
static inline bool judge_lifts(const struct judge *judge, enum reason reason, struct place by)
{
	if (judge->trace != NULL)
		tell_lifted(judge->trace, reason, by);
	return false;
}

/* The allow lists were asked; LISTED: the entry at PLACE holds it. */
static inline void judge_listed(const struct judge *judge, bool listed, struct place place)
{
	if (judge->trace != NULL && listed)
		tell_listed(judge->trace, place);
}

/* A name with all that is known of it. */
struct named {
	struct name_walk walk;
	struct name_facts facts;
};
void judge_name(const struct judge *judge, const struct name *name, struct named *out);

/* Rule 2 for a name, and for an address at a port (PROTOCOL 0: the address as such). */
bool rule_floor_name(const struct judge *judge, const struct named *named, struct verdict *out);
bool rule_floor_address(const struct judge *judge, const struct address *address, uint16_t port,
			uint8_t protocol, struct verdict *out);

/* Infrastructure at this port, and whether it is open for this subject. */
bool judge_is_infrastructure(const struct address *address, uint16_t port, uint8_t protocol,
			     struct place *place);
bool judge_opens_infrastructure(const struct judge *judge);

/* Rule 5. */
bool rule_blocked_name(const struct judge *judge, const struct named *named,
		       const struct list_query *query, struct verdict *out);
bool rule_blocked_address(const struct judge *judge, const struct address *address,
			  const struct list_query *query, struct verdict *out);

/* Rule 6: the allow lists hold the name, or the address itself. *PLACE, when not NULL, where. */
bool judge_lists_name(const struct judge *judge, const struct named *named,
		      const struct list_query *query, struct place *place);
bool judge_lists_address(const struct judge *judge, const struct address *address,
			 const struct list_query *query, struct place *place);

/* Rule 7, for what is LISTED at LISTING or not. */
bool rule_not_allowlisted(const struct judge *judge, bool listed, struct place listing,
			  struct verdict *out);

/* `hosts` gives the name this address. */
bool judge_is_static(const struct judge *judge, const struct named *named,
		     const struct address *address);

/* Rule 8 for one address of a public name, asked for by name; ADDRESS may be public. *BY: the
 * entry that says so, untouched where the name is not public. */
bool judge_may_rebind(const struct judge *judge, const struct named *named, struct place *by);
bool rule_rebinding(const struct judge *judge, const struct address *address, struct verdict *out);

/*
 * Rule 9. LIFTED: an allow list names the literal or the non-public name; then only what no switch
 * opens stays shut.
 */
bool rule_reachability(const struct judge *judge, const struct address *address, bool lifted,
		       struct verdict *out);
bool rule_private_host(const struct judge *judge, const struct named *named, bool listed,
		       struct verdict *out);

#define REASONS_NINE                                                                               \
	(REASON_BIT(LOOPBACK) | REASON_BIT(PRIVATE_ADDRESS) | REASON_BIT(PRIVATE_HOST) |           \
	 REASON_BIT(SPECIAL_ADDRESS))

/* Both halves of rule 9 for a destination under a name. */
bool rule_nine(const struct judge *judge, const struct address *address, bool lifted,
	       const struct named *named, bool listed, struct verdict *out);

static inline bool judge_is_public(const struct named *named)
{
	return named->facts.kind == NAMES_PUBLIC || named->facts.kind == NAMES_EXEMPT;
}
