/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/aliases.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t seed[16] = {7};
static struct name found[ALIASES_PER_TARGET];

static struct name name_of(const char *text)
{
	struct name name;

	assert_int_equal(name_from_text(text, strlen(text), &name), NAME_OK);
	return name;
}

static void add(struct aliases *aliases, uint8_t client, const char *target, const char *name,
		uint64_t expiry, uint64_t now)
{
	const struct client_key key = {{client}};
	struct name t = name_of(target), n = name_of(name);

	aliases_add(aliases, &key, &t, &n, expiry, now);
}

static size_t find(const struct aliases *aliases, uint8_t client, const char *target, uint64_t now)
{
	const struct client_key key = {{client}};
	struct name t = name_of(target);

	return aliases_find(aliases, &key, &t, now, found);
}

static void test_life(void **state)
{
	(void)state;
	struct aliases *aliases = aliases_new(seed);

	assert_int_equal(find(aliases, 1, "t", 0), 0);
	add(aliases, 1, "t", "a", 100, 0);
	add(aliases, 1, "t", "b", 200, 0);
	assert_int_equal(find(aliases, 1, "t", 99), 2);
	assert_int_equal(find(aliases, 2, "t", 99), 0);
	assert_int_equal(find(aliases, 1, "a", 99), 0);
	assert_int_equal(find(aliases, 1, "t", 100), 1);
	assert_string_equal(found[0].text, "b");
	assert_int_equal(find(aliases, 1, "t", 200), 0);
	/* The same again does not take another place, and an earlier end does not shorten. */
	add(aliases, 1, "t", "c", 500, 200);
	add(aliases, 1, "t", "c", 300, 200);
	assert_int_equal(find(aliases, 1, "t", 499), 1);
	/* A name leads to itself anyway, and what is over is nothing. */
	add(aliases, 1, "t", "t", 500, 200);
	add(aliases, 1, "t", "d", 200, 200);
	assert_int_equal(find(aliases, 1, "t", 200), 1);
	aliases_free(aliases);
}

static void test_bounds(void **state)
{
	(void)state;
	struct aliases *aliases = aliases_new(seed);
	char name[16];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		add(aliases, 1, "t", name, 1000 + (uint64_t)i, 0);
		assert_int_equal(find(aliases, 1, "t", 0),
				 i < (int)ALIASES_PER_TARGET ? (size_t)i + 1 : ALIASES_PER_TARGET);
	}
	/* The latest are there. */
	for (size_t i = 0; i < ALIASES_PER_TARGET; i++)
		assert_true(atoi(found[i].text + 1) >= 100 - (int)ALIASES_PER_TARGET);
	aliases_free(aliases);
}

/* Whatever is found was put for this very client and target and is alive; most of it is found. */
static void test_random(void **state)
{
	(void)state;
	enum { CLIENTS = 4, TARGETS = 50 };
	static uint64_t expiry[CLIENTS][TARGETS];
	struct aliases *aliases = aliases_new(seed);
	size_t missing = 0, alive = 0;
	char target[16], name[16];

	srandom(5);
	for (uint64_t now = 0; now < 20000; now++) {
		unsigned c = (unsigned)random() % CLIENTS, t = (unsigned)random() % TARGETS;
		snprintf(target, sizeof(target), "t%u", t);
		snprintf(name, sizeof(name), "c%u-t%u", c, t);
		if (random() % 2 == 0) {
			uint64_t end = now + (uint64_t)random() % 500;
			add(aliases, (uint8_t)c, target, name, end, now);
			if (end > expiry[c][t])
				expiry[c][t] = end;
			continue;
		}
		size_t count = find(aliases, (uint8_t)c, target, now);
		bool lives = now < expiry[c][t];
		assert_true(count <= lives);
		if (count > 0)
			assert_string_equal(found[0].text, name);
		alive += lives;
		missing += lives && count == 0;
	}
	assert_true(alive > 1000 && missing == 0);
	aliases_free(aliases);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
