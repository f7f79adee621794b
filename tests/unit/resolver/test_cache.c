/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/resolver/wire.h"

static const uint8_t seed[16] = {1};

static void key_of(unsigned number, struct stored_key *key)
{
	struct query_message query;
	char name[32];

	snprintf(name, sizeof(name), "n%u.example", number);
	wire_query(&query, name, QUERY_TYPE_A, false, false);
	stored_key(&query, 0, key);
}

/* An entry with SIZE octets of text, which is what tells it from others of its key. */
static struct stored *entry(unsigned number, size_t size, uint32_t seconds, uint64_t now)
{
	struct stored_key key;
	char text[REPLY_EDE_TEXT_MAX + 1] = "";

	memset(text, 'x', size);
	key_of(number, &key);
	struct stored *stored = stored_new_failure(&key, EDE_OTHER, text, seconds, now);
	assert_non_null(stored);
	return stored;
}

static struct stored *find(struct cache *cache, unsigned number, uint64_t now)
{
	struct stored_key key;

	key_of(number, &key);
	return cache_find(cache, &key, now);
}

static void test_life(void **state)
{
	(void)state;
	struct cache *cache = cache_new(seed, 65536);
	struct stored_key key;

	assert_null(find(cache, 1, 0));
	cache_put(cache, entry(1, 0, 5, 1000), 1000);
	assert_non_null(find(cache, 1, 1000));
	assert_non_null(find(cache, 1, 5999));
	assert_null(find(cache, 1, 6000));
	key_of(1, &key);
	assert_non_null(cache_peek(cache, &key));
	/* What is not to be kept takes its predecessor along. */
	cache_put(cache, entry(1, 0, 0, 7000), 7000);
	assert_null(cache_peek(cache, &key));
	assert_int_equal(cache_octets(cache), 0);
	/* The later of two. */
	cache_put(cache, entry(1, 3, 5, 1000), 1000);
	cache_put(cache, entry(1, 9, 5, 2000), 2000);
	assert_int_equal(strlen(find(cache, 1, 3000)->ede_text), 9);
	cache_clear(cache);
	assert_null(find(cache, 1, 3000));
	assert_int_equal(cache_octets(cache), 0);
	cache_free(cache);
}

static void test_references(void **state)
{
	(void)state;
	struct cache *cache = cache_new(seed, 65536);

	cache_put(cache, entry(1, 4, 5, 0), 0);
	struct stored *kept = stored_ref(find(cache, 1, 0));
	cache_free(cache);
	assert_string_equal(kept->ede_text, "xxxx");
	stored_unref(kept);
}

/* Entries in use outlive those that were asked for once; none is larger than its part. */
static void test_second_chance(void **state)
{
	(void)state;
	struct stored *one = entry(1, 100, 60, 0);
	size_t size = one->size;
	struct cache *cache = cache_new(seed, size * 10);

	cache_put(cache, one, 0);
	for (unsigned i = 2; i < 1000; i++) {
		assert_non_null(find(cache, 1, 0));
		cache_put(cache, entry(i, 100, 60, 0), 0);
		assert_true(cache_octets(cache) <= size * 10);
	}
	assert_non_null(find(cache, 1, 0));
	assert_non_null(find(cache, 999, 0));
	assert_null(find(cache, 2, 0));
	cache_free(cache);

	cache = cache_new(seed, size * 8 - 1);
	cache_put(cache, entry(1, 100, 60, 0), 0);
	assert_null(find(cache, 1, 0));
	cache_free(cache);
}

/* The end of an answer comes before its second chance. */
static void test_expired_go_first(void **state)
{
	(void)state;
	struct stored *one = entry(1, 100, 5, 0);
	struct cache *cache = cache_new(seed, one->size * 10 + 20);

	cache_put(cache, one, 0);
	assert_non_null(find(cache, 1, 0));
	for (unsigned i = 2; i < 11; i++)
		cache_put(cache, entry(i, 100, 60, 0), 0);
	struct stored_key key;
	key_of(1, &key);
	assert_non_null(cache_peek(cache, &key));
	cache_put(cache, entry(11, 100, 60, 9000), 9000);
	assert_null(cache_peek(cache, &key));
	assert_non_null(find(cache, 2, 9000));
	cache_free(cache);
}

/*
 * Random calls against a list of what was put last: an entry that is found is that one and is alive, the
 * bound holds, and without pressure nothing gets lost.
 */
static void test_against_oracle(void **state)
{
	(void)state;
	enum { NAMES = 300 };
	static struct {
		size_t size;
		uint64_t expiry;
	} last[NAMES];

	for (size_t most = 20000; most <= 2000000; most *= 100) {
		struct cache *cache = cache_new(seed, most);
		uint64_t now = 0;
		memset(last, 0, sizeof(last));
		srandom(3);
		for (int round = 0; round < 50000; round++) {
			unsigned name = (unsigned)random() % NAMES;
			now += (uint64_t)random() % 50;
			if (random() % 3 == 0) {
				uint32_t seconds = (uint32_t)random() % 20;
				last[name].size = (size_t)random() % REPLY_EDE_TEXT_MAX;
				last[name].expiry = now + seconds * 1000ull;
				cache_put(cache, entry(name, last[name].size, seconds, now), now);
				assert_true(cache_octets(cache) <= most);
				continue;
			}
			struct stored *found = find(cache, name, now);
			if (found != NULL) {
				assert_int_equal(strlen(found->ede_text), last[name].size);
				assert_true(now < last[name].expiry);
			} else {
				assert_true(most < 100000 || now >= last[name].expiry);
			}
		}
		cache_clear(cache);
		assert_int_equal(cache_octets(cache), 0);
		cache_free(cache);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),           cmocka_unit_test(test_references),
		cmocka_unit_test(test_second_chance),  cmocka_unit_test(test_expired_go_first),
		cmocka_unit_test(test_against_oracle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
