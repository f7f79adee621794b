/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Rule 12: when the hook is asked, and what its answer makes of a verdict. Who asks it is no matter
 * of the engine's.
 */

#include "rules/judge.h"

/* Denials of which no hook hears; and a policy that cannot be judged has none. */
static bool is_final(enum reason reason)
{
	return reason == REASON_MALFORMED || reason == REASON_METADATA || reason == REASON_SELF ||
	       reason == REASON_REBINDING || reason == REASON_NAME_MISMATCH ||
	       reason == REASON_POLICY_ERROR;
}

/* Every switch that may be open is; what lists refuse is empty. What they open stays as it is. */
static void open_all(struct image_policy *policy)
{
	static const bool values[OPTION_COUNT] = {
		/* the floor is asked first then, and no rule before it can hide it */
		[OPTION_AUDIT] = true,          [OPTION_ALLOW_PRIVATE_NETWORK] = true,
		[OPTION_ALLOW_LOOPBACK] = true, [OPTION_INFRASTRUCTURE_ALLOW] = true,
		[OPTION_UDP_ALLOW] = true,      [OPTION_ICMP_ALLOW] = true,
		[OPTION_OTHER_ALLOW] = true,    [OPTION_HTTP2_ALLOW] = true,
	};

	for (size_t i = 0; i < OPTION_COUNT; i++)
		policy->options[i].value = values[i];
	policy->lists[LIST_BLOCK_HOSTS] = (struct image_list){.depths = 0};
}

bool hook_begin(const struct judge *judge, enum stage stage, struct verdict *verdict,
		struct hook_judge *out)
{
	const struct image_hook *hook = &judge->policy->hook;

	if (hook->path[0] == '\0' || (hook->stages & 1u << stage) == 0)
		return false;
	verdict->asks_hook = verdict->outcome == OUTCOME_ALLOW;
	if (verdict->asks_hook || is_final(verdict->reason))
		return false;
	out->open = *judge->policy;
	open_all(&out->open);
	out->judge = *judge;
	out->judge.policy = &out->open;
	out->judge.lifted = true;
	out->judge.trace = NULL; /* this way leads to no verdict */
	return true;
}

void hook_end(struct verdict *verdict, const struct verdict *once_more)
{
	verdict->asks_hook = once_more->outcome == OUTCOME_ALLOW;
}

bool policy_hook(const struct policy_image *image, policy_index policy, struct policy_hook *out)
{
	const struct image_policy *p = image_policy(image, policy);

	if (p == NULL || p->hook.path[0] == '\0')
		return false;
	*out = (struct policy_hook){.path = p->hook.path, .timeout_ms = p->hook.timeout_ms};
	return true;
}

struct verdict policy_hooked(const struct policy_image *image, policy_index policy,
			     const struct verdict *verdict, enum hook_answer answer)
{
	const struct image_policy *p = image_policy(image, policy);
	struct verdict result = *verdict;

	result.asks_hook = false;
	/* nobody was to be asked: an answer changes nothing */
	if (!verdict->asks_hook || answer == HOOK_KEEP ||
	    (answer == HOOK_DENY && verdict->outcome == OUTCOME_DENY) ||
	    (answer == HOOK_ALLOW && verdict->outcome == OUTCOME_ALLOW))
		return result;
	result.rule = p == NULL ? (struct place){0} : (struct place){p->hook.source, p->hook.line};
	if (answer == HOOK_ALLOW)
		return judge_allow(result.rule);
	result.outcome = OUTCOME_DENY;
	result.reason = answer == HOOK_DENY ? REASON_CUSTOM : REASON_POLICY_ERROR;
	result.enforced = p == NULL || !policy_is(p, OPTION_AUDIT);
	return result;
}
