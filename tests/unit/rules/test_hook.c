/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Rule 12: every reason with every answer, and the hook in the image. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "rules/image.h"
#include "world.h"

static struct verdict denial(enum reason reason, bool asks)
{
	return (struct verdict){.outcome = OUTCOME_DENY,
				.reason = reason,
				.enforced = true,
				.rule = {SOURCE_CONFIG, 9},
				.asks_hook = asks};
}

static struct verdict allowed(bool asks)
{
	return (struct verdict){.outcome = OUTCOME_ALLOW,
				.enforced = true,
				.rule = {SOURCE_CONFIG, 8},
				.asks_hook = asks};
}

static void assert_verdict(const struct verdict *v, enum outcome outcome, enum reason reason,
			   bool enforced, uint32_t line)
{
	assert_int_equal(v->outcome, outcome);
	assert_int_equal(v->reason, reason);
	assert_int_equal(v->enforced, enforced);
	assert_int_equal(v->rule.line, line);
	assert_false(v->asks_hook);
}

static void answers_of(const char *words, bool enforced)
{
	struct world *world = calloc(1, sizeof(*world));

	world_init(world, words);
	for (int reason = REASON_MALFORMED; reason < REASON_COUNT; reason++) {
		struct verdict asks = denial((enum reason)reason, true);
		struct verdict final = denial((enum reason)reason, false);
		struct verdict v;

		v = policy_hooked(world->image, 0, &asks, HOOK_ALLOW);
		assert_verdict(&v, OUTCOME_ALLOW, REASON_NONE, true, 1);
		v = policy_hooked(world->image, 0, &asks, HOOK_DENY);
		assert_verdict(&v, OUTCOME_DENY, (enum reason)reason, true, 9);
		v = policy_hooked(world->image, 0, &asks, HOOK_KEEP);
		assert_verdict(&v, OUTCOME_DENY, (enum reason)reason, true, 9);
		v = policy_hooked(world->image, 0, &asks, HOOK_ERROR);
		assert_verdict(&v, OUTCOME_DENY, REASON_POLICY_ERROR, enforced, 1);
		/* whoever asks a hook about what is final gets nothing for it */
		for (int answer = HOOK_ALLOW; answer <= HOOK_ERROR; answer++) {
			v = policy_hooked(world->image, 0, &final, (enum hook_answer)answer);
			assert_verdict(&v, OUTCOME_DENY, (enum reason)reason, true, 9);
		}
	}
	struct verdict asks = allowed(true);
	struct verdict v = policy_hooked(world->image, 0, &asks, HOOK_ALLOW);
	assert_verdict(&v, OUTCOME_ALLOW, REASON_NONE, true, 8);
	v = policy_hooked(world->image, 0, &asks, HOOK_KEEP);
	assert_verdict(&v, OUTCOME_ALLOW, REASON_NONE, true, 8);
	v = policy_hooked(world->image, 0, &asks, HOOK_DENY);
	assert_verdict(&v, OUTCOME_DENY, REASON_CUSTOM, enforced, 1);
	v = policy_hooked(world->image, 0, &asks, HOOK_ERROR);
	assert_verdict(&v, OUTCOME_DENY, REASON_POLICY_ERROR, enforced, 1);
	/* a value that is no answer at all */
	v = policy_hooked(world->image, 0, &asks, (enum hook_answer)77);
	assert_verdict(&v, OUTCOME_DENY, REASON_POLICY_ERROR, enforced, 1);
	world_free(world);
	free(world);
}

static void test_answers(void **state)
{
	(void)state;
	answers_of("hook=all", true);
	answers_of("hook=all mode=audit", false);
}

static void test_no_such_policy(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct verdict asks = allowed(true);
	struct policy_hook hook;

	(void)state;
	world_init(world, "hook=all");
	struct verdict v = policy_hooked(world->image, 5, &asks, HOOK_ERROR);
	assert_verdict(&v, OUTCOME_DENY, REASON_POLICY_ERROR, true, 0);
	assert_false(policy_hook(world->image, 5, &hook));
	world_free(world);
	free(world);
}

static void test_image(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	const struct policy_image *image;
	struct policy_hook hook;

	(void)state;
	world_init(world, "default=deny");
	assert_false(policy_hook(world->image, 0, &hook));
	world_free(world);
	world_init(world, "hook=connect");
	assert_true(policy_hook(world->image, 0, &hook));
	assert_string_equal(hook.path, "/run/hook.sock");
	assert_int_equal(hook.timeout_ms, 1000);

	/* a path without an end is no image, and none can be built */
	struct image_policy *policy =
		(struct image_policy *)((uint8_t *)world->bytes + world->image->policies.offset);
	memset(policy->hook.path, 'x', sizeof(policy->hook.path));
	assert_int_equal(policy_image_open(world->bytes, world->size, &image), -71);
	memset(world->policy.hook.path, 'x', sizeof(world->policy.hook.path));
	world_free(world);
	assert_int_equal(policy_image_build(&world->source, &world->bytes, &world->size), -22);
	free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_no_such_policy),
		cmocka_unit_test(test_image),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
