/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Names and addresses of a run.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <net/if.h>
#include <string.h>

#include "confine/plan.h"

static const uint8_t random_bytes[9] = {0xde, 0xad, 0x00, 0x0f, 1, 2, 3, 4, 5};

static void assert_address(const struct address *address, const char *expected)
{
	char text[ADDRESS_TEXT_SIZE];

	assert_string_equal(address_format(address, text), expected);
}

static void assert_prefix(const struct prefix *prefix, const char *expected)
{
	char text[ADDRESS_TEXT_SIZE];

	assert_string_equal(prefix_format(prefix, text), expected);
}

static void test_first_block(void **state)
{
	struct plan plan;

	(void)state;
	plan_make(&plan, random_bytes, 0);
	assert_string_equal(plan.id, "dead000f");
	assert_string_equal(plan.interface, "pfudead000f");
	assert_address(&plan.v4.host, "198.18.0.1");
	assert_address(&plan.v4.up, "198.18.0.2");
	assert_address(&plan.v4.in, "198.18.0.5");
	assert_address(&plan.v4.command, "198.18.0.6");
	assert_prefix(&plan.v4.run, "198.18.0.0/29");
	assert_prefix(&plan.v4.governed, "198.18.0.4/30");
	assert_address(&plan.v6.host, "fd01:203:405::1");
	assert_address(&plan.v6.up, "fd01:203:405::2");
	assert_address(&plan.v6.in, "fd01:203:405:1::1");
	assert_address(&plan.v6.command, "fd01:203:405:1::2");
	assert_prefix(&plan.v6.run, "fd01:203:405::/48");
	assert_prefix(&plan.v6.governed, "fd01:203:405:1::/64");
	assert_false(plan.ipv6);
}

static void test_last_block(void **state)
{
	struct plan plan;

	(void)state;
	plan_make(&plan, random_bytes, PLAN_BLOCK_COUNT - 1);
	assert_address(&plan.v4.host, "198.19.255.249");
	assert_address(&plan.v4.command, "198.19.255.254");
	assert_prefix(&plan.v4.run, "198.19.255.248/29");
}

/* Every block is inside the /15, and every address of a side on its own link alone. */
static void test_every_block(void **state)
{
	struct prefix all;
	struct plan plan;

	(void)state;
	assert_int_equal(prefix_parse("198.18.0.0/15", 13, &all), 0);
	for (uint32_t block = 0; block < PLAN_BLOCK_COUNT; block++) {
		plan_make(&plan, random_bytes, block);
		assert_true(prefix_contains(&all, &plan.v4.host));
		for (int family = 0; family < 2; family++) {
			const struct plan_side *side = family == 0 ? &plan.v4 : &plan.v6;
			struct prefix out = side->run;
			out.length = side->length;
			assert_true(prefix_contains(&side->run, &side->host));
			assert_true(prefix_contains(&side->run, &side->command));
			assert_true(prefix_contains(&out, &side->host));
			assert_true(prefix_contains(&out, &side->up));
			assert_false(prefix_contains(&out, &side->in));
			assert_true(prefix_contains(&side->governed, &side->in));
			assert_true(prefix_contains(&side->governed, &side->command));
			assert_false(prefix_contains(&side->governed, &side->up));
		}
	}
	assert_true(strlen(plan.interface) < IF_NAMESIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_block),
		cmocka_unit_test(test_last_block),
		cmocka_unit_test(test_every_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
