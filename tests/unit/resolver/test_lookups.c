/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The table of waiting queries over a recursion that does what the test says. */
#include "resolver/lookups.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct recursion {
	bool at_once, broken;
	size_t started, cancelled;
	struct recursion_call *calls[LOOKUPS_MAX + 1];
};

int recursion_start(struct recursion *recursion, const char *text, uint16_t type,
		    struct recursion_call *call)
{
	static const struct recursion_result result = {.wire = (const uint8_t *)"x", .size = 1};

	(void)text;
	(void)type;
	if (recursion->broken)
		return -EIO;
	recursion->calls[recursion->started++] = call;
	if (recursion->at_once)
		call->done(call, &result);
	return 0;
}

void recursion_cancel(struct recursion *recursion, struct recursion_call *call)
{
	(void)call;
	recursion->cancelled++;
}

static size_t answered, timed_out;
static uint16_t ids[LOOKUPS_QUERIES_MAX];

static void on_done(void *context, struct query *queries, const struct recursion_result *result)
{
	assert_ptr_equal(context, &answered);
	for (struct query *query = queries; query != NULL; query = query->next) {
		if (result == NULL)
			timed_out++;
		ids[answered++ % LOOKUPS_QUERIES_MAX] = query->message.id;
	}
}

static void make_query(struct query *query, unsigned name, unsigned client, uint16_t id)
{
	uint8_t bytes[64] = {(uint8_t)(id >> 8), (uint8_t)id, 1, 0, 0, 1};
	char label[16];
	int length = snprintf(label, sizeof(label), "n%u", name);
	size_t at = 12;

	bytes[at++] = (uint8_t)length;
	memcpy(bytes + at, label, (size_t)length);
	at += (size_t)length;
	memcpy(bytes + at, "\0\0\1\0\1", 5);
	memset(query, 0, sizeof(*query));
	assert_int_equal(query_read(bytes, at + 5, &query->message), QUERY_OK);
	memcpy(query->match.key.bytes, &client, sizeof(client));
	strcpy(query->interface, "tap0");
	query->origin.interface = query->interface;
}

struct bench {
	struct lookups *lookups;
	struct recursion *recursion;
};

static struct bench bench_new(void)
{
	static const uint8_t seed[16] = "lookups of tests";
	answered = timed_out = 0;
	return (struct bench){.lookups = lookups_new(seed, on_done, &answered),
			      .recursion = calloc(1, sizeof(struct recursion))};
}

static void bench_free(struct bench *bench)
{
	lookups_free(bench->lookups);
	free(bench->recursion);
}

static int join(struct bench *bench, unsigned name, unsigned client, uint16_t id, uint64_t now)
{
	struct query query;
	make_query(&query, name, client, id);
	return lookups_join(bench->lookups, bench->recursion, &query, now);
}

static void finish(struct bench *bench, size_t call)
{
	static const struct recursion_result result = {.wire = (const uint8_t *)"x", .size = 1};
	bench->recursion->calls[call]->done(bench->recursion->calls[call], &result);
}

static void test_same_question(void **state)
{
	(void)state;
	struct bench bench = bench_new();

	for (uint16_t id = 0; id < 5; id++)
		assert_int_equal(join(&bench, 1, id, id, 0), 0);
	assert_int_equal(join(&bench, 2, 1, 9, 0), 0);
	assert_int_equal(bench.recursion->started, 2);
	finish(&bench, 0);
	assert_int_equal(answered, 5);
	/* the question is free again */
	assert_int_equal(join(&bench, 1, 1, 10, 0), 0);
	assert_int_equal(bench.recursion->started, 3);
	finish(&bench, 1);
	assert_int_equal(ids[5], 9);
	finish(&bench, 2);
	assert_int_equal(answered, 7);
	bench_free(&bench);
}

static void test_at_once_and_broken(void **state)
{
	(void)state;
	struct bench bench = bench_new();

	bench.recursion->at_once = true;
	for (uint16_t id = 0; id < 10000; id++) {
		bench.recursion->started = 0;
		assert_int_equal(join(&bench, id % 3, 1, id, 0), 0);
	}
	assert_int_equal(answered, 10000);
	bench.recursion->broken = true;
	for (uint16_t id = 0; id < 10000; id++)
		assert_int_equal(join(&bench, id, 1, id, 0), -EIO);
	assert_int_equal(answered, 10000);
	bench_free(&bench);
}

static void test_bounds(void **state)
{
	(void)state;
	struct bench bench = bench_new();

	/* one client, one question */
	for (unsigned i = 0; i < LOOKUPS_QUERIES_PER_CLIENT_MAX; i++)
		assert_int_equal(join(&bench, 0, 1, 0, 0), 0);
	assert_int_equal(join(&bench, 0, 1, 0, 0), -ENOSPC);
	assert_int_equal(join(&bench, 0, 2, 0, 0), 0);
	finish(&bench, 0);
	assert_int_equal(join(&bench, 0, 1, 0, 0), 0);
	finish(&bench, 1);
	/* all clients, all questions */
	bench.recursion->started = 0;
	unsigned taken = 0;
	for (unsigned i = 0; i < LOOKUPS_MAX + 10; i++)
		taken += join(&bench, i, i, 0, 0) == 0;
	assert_int_equal(taken, LOOKUPS_MAX);
	/* old questions still take queries, until those run out */
	unsigned more = 0;
	for (unsigned i = 0; i < LOOKUPS_QUERIES_MAX; i++)
		more += join(&bench, i % LOOKUPS_MAX, 100000 + i, 0, 0) == 0;
	assert_int_equal(more, LOOKUPS_QUERIES_MAX - LOOKUPS_MAX);
	answered = 0;
	for (unsigned i = 0; i < LOOKUPS_MAX; i++)
		finish(&bench, i);
	assert_int_equal(answered, LOOKUPS_QUERIES_MAX);
	bench.recursion->started = 0;
	assert_int_equal(join(&bench, 0, 1, 0, 0), 0);
	bench_free(&bench);
}

/* New lookups cost a token each, joining costs none; other clients have their own. */
static void test_rate(void **state)
{
	(void)state;
	struct bench bench = bench_new();
	const unsigned rate = 10, burst = rate * LOOKUPS_BURST_SECONDS;
	uint64_t now = 1000;
	unsigned question = 0;

	lookups_set_rate(bench.lookups, rate);
	for (; question < burst; question++)
		assert_int_equal(join(&bench, question, 1, 0, now), 0);
	assert_int_equal(join(&bench, question, 1, 0, now), -EDQUOT);
	assert_int_equal(join(&bench, 0, 1, 0, now), 0);
	assert_int_equal(join(&bench, question++, 2, 0, now), 0);
	assert_int_equal(join(&bench, question, 1, 0, now + 99), -EDQUOT);
	assert_int_equal(join(&bench, question++, 1, 0, now + 100), 0);
	assert_int_equal(join(&bench, question, 1, 0, now + 100), -EDQUOT);
	/* A long pause earns no more than a burst. */
	now += 3600000;
	for (unsigned i = 0; i < burst; i++)
		assert_int_equal(join(&bench, question++, 1, 0, now), 0);
	assert_int_equal(join(&bench, question, 1, 0, now), -EDQUOT);
	lookups_set_rate(bench.lookups, 0);
	for (unsigned i = 0; i < 500; i++)
		assert_int_equal(join(&bench, question++, 1, 0, now), 0);
	bench_free(&bench);
}

static void test_time_out(void **state)
{
	(void)state;
	struct bench bench = bench_new();
	const uint64_t life = LOOKUPS_SECONDS * 1000;

	join(&bench, 1, 1, 1, 0);
	join(&bench, 2, 1, 2, 500);
	join(&bench, 1, 2, 3, 900); /* joins, and does not live longer for it */
	lookups_expire(bench.lookups, bench.recursion, life - 1);
	assert_int_equal(answered, 0);
	lookups_expire(bench.lookups, bench.recursion, life);
	assert_int_equal(timed_out, 2);
	assert_int_equal(bench.recursion->cancelled, 1);
	lookups_expire(bench.lookups, bench.recursion, life + 500);
	assert_int_equal(timed_out, 3);
	bench_free(&bench);
}

static void test_move(void **state)
{
	(void)state;
	struct bench bench = bench_new();
	struct recursion *old = bench.recursion, *new = calloc(1, sizeof(*new));

	for (unsigned i = 0; i < 100; i++)
		join(&bench, i, 1, 1, 0);
	new->at_once = true;
	lookups_move(bench.lookups, old, new);
	assert_int_equal(old->cancelled, 100);
	assert_int_equal(answered, 100);

	for (unsigned i = 0; i < 100; i++)
		join(&bench, i, 1, 1, 0);
	new->at_once = false;
	new->started = 0;
	lookups_move(bench.lookups, old, new);
	assert_int_equal(new->started, 100);
	assert_int_equal(answered, 100);
	old->broken = true;
	lookups_move(bench.lookups, new, old);
	assert_int_equal(timed_out, 100);
	bench_free(&bench);
	free(new);
}

static void test_copies(void **state)
{
	(void)state;
	struct bench bench = bench_new();
	struct query query;

	make_query(&query, 1, 1, 7);
	assert_int_equal(lookups_join(bench.lookups, bench.recursion, &query, 0), 0);
	memset(&query, 0xff, sizeof(query));
	finish(&bench, 0);
	assert_int_equal(ids[0], 7);
	bench_free(&bench);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_question), cmocka_unit_test(test_at_once_and_broken),
		cmocka_unit_test(test_bounds),        cmocka_unit_test(test_rate),
		cmocka_unit_test(test_time_out),      cmocka_unit_test(test_move),
		cmocka_unit_test(test_copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
