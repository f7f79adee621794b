/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/nfq/fixture.h"

static struct flow_key key_number(uint32_t number)
{
	struct flow_key key = {.destination_port = 80, .protocol = 6, .family = ADDRESS_IPV4};

	memcpy(key.source, &number, sizeof(number));
	return key;
}

/* Clients all different unless SAME. */
static struct flow *add(uint32_t number, bool same)
{
	struct flow_key key = key_number(number);
	struct client_key client = {{0}};

	if (!same)
		memcpy(client.bytes, &number, sizeof(number));
	return flow_add(&key, &client, now, gate.sink);
}

static struct flow *find(uint32_t number)
{
	struct flow_key key = key_number(number);

	return flow_find(&key);
}

static void test_add_find_remove(void **state)
{
	struct flow *flow = add(1, false);

	(void)state;
	assert_non_null(flow);
	assert_int_equal(flow->state, FLOW_OPENED);
	assert_int_equal(flow->opened, now);
	assert_ptr_equal(find(1), flow);
	assert_null(find(2));

	struct flow_key other = key_number(1);
	other.interface = 7;
	assert_null(flow_find(&other)); /* another guest with the same address */
	flow_remove(flow, gate.sink);
	assert_null(find(1));
	assert_int_equal(flow_counts().in_state[FLOW_OPENED], 0);
}

/* Random adding, moving and removing against a plain array. */
static void test_against_oracle(void **state)
{
	enum { COUNT = 3000 };
	static struct {
		bool there;
		enum flow_state state;
		uint64_t when;
	} oracle[COUNT];

	(void)state;
	srand(2);
	for (unsigned round = 0; round < 60000; round++) {
		uint32_t i = (uint32_t)rand() % COUNT;
		struct flow *flow = find(i);

		now += (uint64_t)rand() % 3;
		assert_int_equal(flow != NULL, oracle[i].there);
		if (flow == NULL) {
			assert_non_null(add(i, false));
			oracle[i].there = true;
			oracle[i].state = FLOW_OPENED;
			oracle[i].when = now;
			continue;
		}
		assert_int_equal(flow->state, oracle[i].state);
		switch (rand() % 4) {
		case 0:
			flow_remove(flow, gate.sink);
			oracle[i].there = false;
			break;
		case 1:
			flow_touch(flow, now);
			if (oracle[i].state != FLOW_READING)
				oracle[i].when = now;
			break;
		default:
			oracle[i].state = (enum flow_state)(FLOW_OPENED + rand() % 5);
			oracle[i].when = now;
			assert_int_equal(flow_enter(flow, oracle[i].state, now), 0);
			break;
		}
		enum flow_state asked = (enum flow_state)(FLOW_OPENED + rand() % 5);
		struct flow *oldest = flow_oldest(asked);
		uint64_t least = UINT64_MAX;
		uint32_t count = 0;
		for (uint32_t j = 0; round % 50 == 0 && j < COUNT; j++) {
			if (!oracle[j].there || oracle[j].state != asked)
				continue;
			count++;
			if (oracle[j].when < least)
				least = oracle[j].when;
		}
		if (round % 50 == 0) {
			assert_int_equal(flow_counts().in_state[asked], count);
			assert_int_equal(oldest == NULL ? UINT64_MAX : oldest->when, least);
		}
	}
}

static void test_full_table(void **state)
{
	uint32_t i;

	(void)state;
	for (i = 0; i < FLOWS_MAX; i++) {
		struct flow *flow = add(i, false);
		assert_non_null(flow);
		now += i == 0;
		/* 5 is quiet and oldest of its kind, 9 allowed, the rest is being read. */
		assert_int_equal(flow_enter(flow,
					    i == 5   ? FLOW_QUIET
					    : i == 9 ? FLOW_ALLOWED
						     : FLOW_READING,
					    now),
				 0);
	}
	/* A decided flow goes first, an idle one next, one that is read never. */
	assert_non_null(add(i++, false));
	assert_null(find(9));
	assert_non_null(find(5));
	struct flow *reading = find(i - 1);
	assert_int_equal(flow_enter(reading, FLOW_READING, now), 0);
	assert_non_null(add(i++, false));
	assert_null(find(5));
	assert_int_equal(flow_enter(find(i - 1), FLOW_READING, now), 0);
	assert_null(add(i++, false));
	assert_int_equal(flow_counts().crowded, 2);
	/* Room again: the record that was freed is used. */
	flow_remove(find(0), gate.sink);
	assert_non_null(add(i++, false));
}

static void test_readers_run_out(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < READERS_MAX; i++) {
		struct flow *flow = add(i, false);
		assert_int_equal(flow_read(flow, gate.sink), 0);
		assert_int_equal(flow_read(flow, gate.sink), 0); /* has one already */
		assert_non_null(flow->reader);
		assert_int_equal(flow_enter(flow, i == 7 ? FLOW_QUIET : FLOW_READING, now), 0);
		buffers_return(&flow->reader->head); /* there are fewer small ones */
	}
	struct flow *flow = add(READERS_MAX, false);
	assert_int_equal(flow_read(flow, gate.sink), 0);
	assert_null(find(7));
	struct flow *last = add(READERS_MAX + 1, false);
	assert_int_equal(flow_read(last, gate.sink), -ENOBUFS);
	assert_null(last->reader);
	/* A decided flow has no use for its own. */
	assert_int_equal(flow_enter(flow, FLOW_ALLOWED, now), 0);
	assert_null(flow->reader);
	assert_int_equal(flow_read(last, gate.sink), 0);
	assert_int_equal(flow_counts().readers, READERS_MAX);
}

static void test_share_of_one_client(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < READING_PER_CLIENT; i++)
		assert_int_equal(flow_enter(add(i, true), FLOW_READING, now), 0);
	struct flow *over = add(READING_PER_CLIENT, true);
	assert_int_equal(flow_enter(over, FLOW_READING, now), -ENOBUFS);
	assert_int_equal(over->state, FLOW_OPENED);
	/* A new head of a flow that is reading already takes nothing more; another client has its
	 * own. */
	assert_int_equal(flow_enter(find(0), FLOW_READING, now), 0);
	assert_int_equal(flow_enter(add(1u << 20, false), FLOW_READING, now), 0);
	assert_int_equal(flow_enter(find(1), FLOW_QUIET, now), 0);
	assert_int_equal(flow_enter(over, FLOW_READING, now), 0);
	flow_remove(over, gate.sink);
	assert_int_equal(flow_enter(find(1), FLOW_READING, now), 0);
}

/* One client fills the table behind the back of others, whose flows are older than all of its. */
static void test_crowded_by_one_client(void **state)
{
	enum { OTHERS = 200 };
	uint32_t i; /* the client 0 is the crowding one */

	(void)state;
	for (i = 1; i < OTHERS; i++)
		assert_int_equal(flow_enter(add(i, false), FLOW_QUIET, now), 0);
	now++;
	for (; i <= FLOWS_MAX; i++)
		assert_non_null(add(i, true));
	/* It gives up its own, and so it does when somebody else comes. */
	assert_non_null(add(i++, true));
	assert_null(find(OTHERS));
	assert_non_null(add(i++, false));
	assert_null(find(OTHERS + 1));
	/* Its own out of sight: it gets nothing, others get theirs for the oldest of all. */
	for (uint32_t j = OTHERS + 2; j < i; j++)
		assert_int_equal(flow_enter(find(j), FLOW_QUIET, now), 0);
	assert_null(add(i++, true));
	assert_non_null(add(i++, false));
	assert_null(find(1));
	for (uint32_t j = 2; j < OTHERS; j++)
		assert_non_null(find(j));
}

static void test_readers_of_one_client(void **state)
{
	enum { OTHERS = 20 };
	uint32_t i;

	(void)state;
	for (i = 1; i <= READERS_MAX; i++) {
		struct flow *flow = add(i, i >= OTHERS);
		assert_int_equal(flow_read(flow, gate.sink), 0);
		assert_int_equal(flow_enter(flow, FLOW_QUIET, now), 0);
		buffers_return(&flow->reader->head);
	}
	assert_int_equal(flow_read(add(i++, true), gate.sink), 0);
	assert_int_equal(flow_read(add(i++, false), gate.sink), 0);
	assert_null(find(OTHERS));
	assert_null(find(OTHERS + 1));
	for (uint32_t j = 1; j < OTHERS; j++)
		assert_non_null(find(j)->reader);
}

static void test_expiry(void **state)
{
	static const struct {
		enum flow_state state;
		uint64_t age;
	} rows[] = {
		{FLOW_REFUSED, DECIDED_MS},
		{FLOW_QUIET, IDLE_MS},
		{FLOW_OPENED, IDLE_MS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		flow_enter(add(1, false), rows[i].state, now);
		now += rows[i].age - 1;
		flow_expire(now, gate.sink, 100);
		assert_non_null(find(1));
		now++;
		flow_expire(now, gate.sink, 100);
		assert_null(find(1));
	}
	/* An allowed one is remembered for the next reload. */
	flow_enter(add(1, false), FLOW_ALLOWED, now);
	now += 100 * IDLE_MS;
	flow_expire(now, gate.sink, 100);
	assert_non_null(find(1));
	flow_remove(find(1), gate.sink);
	/* A head is not forgotten but refused, by judge_expire(). */
	flow_enter(add(1, false), FLOW_READING, now);
	now += 100 * IDLE_MS;
	flow_expire(now, gate.sink, 100);
	assert_non_null(find(1));
	/* No more than asked for. */
	for (uint32_t i = 10; i < 20; i++)
		add(i, false);
	now += IDLE_MS;
	flow_expire(now, gate.sink, 3);
	assert_int_equal(flow_counts().in_state[FLOW_OPENED], 7);
}

static void test_holds(void **state)
{
	struct flow *flow = add(1, true);
	uint32_t i;

	(void)state;
	for (i = 0; i < HOLDS_PER_FLOW; i++)
		assert_int_equal(hold_add(flow, i + 1, 0, i), 0);
	assert_int_equal(hold_add(flow, 1, 0, 1), -ENOBUFS);
	assert_int_equal(hold_count(), HOLDS_PER_FLOW);

	uint32_t number = 2;
	while (hold_count() < HOLDS_PER_CLIENT) {
		struct flow *more = add(number++, true);
		while (hold_count() < HOLDS_PER_CLIENT && hold_add(more, 0, 0, 0) == 0)
			;
	}
	assert_int_equal(hold_add(add(number++, true), 0, 0, 0), -ENOBUFS);
	while (hold_count() < HOLDS_MAX) {
		struct flow *more = add(number++, false);
		while (hold_add(more, 0, 0, 0) == 0)
			;
	}
	assert_int_equal(hold_add(add(number++, false), 0, 0, 0), -ENOBUFS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_add_find_remove, fixture_reset),
		cmocka_unit_test_setup(test_against_oracle, fixture_reset),
		cmocka_unit_test_setup(test_full_table, fixture_reset),
		cmocka_unit_test_setup(test_readers_run_out, fixture_reset),
		cmocka_unit_test_setup(test_share_of_one_client, fixture_reset),
		cmocka_unit_test_setup(test_crowded_by_one_client, fixture_reset),
		cmocka_unit_test_setup(test_readers_of_one_client, fixture_reset),
		cmocka_unit_test_setup(test_expiry, fixture_reset),
		cmocka_unit_test_setup(test_holds, fixture_reset),
	};
	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
