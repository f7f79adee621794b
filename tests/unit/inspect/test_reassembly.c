/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/reassembly.h"

#define SYN_SEQUENCE 0xfffffff0u /* the first sixteen bytes cross the end of the number space */
#define FIRST        (SYN_SEQUENCE + 1)

static uint8_t pool[REASSEMBLY_BUFFER_MAX];

static struct segment add_flags(struct reassembly *r, uint32_t offset, const void *bytes,
				size_t length, uint8_t flags)
{
	struct packet packet = {.sequence = FIRST + offset,
				.flags = flags,
				.payload = bytes,
				.payload_length = length};
	struct segment segment;

	reassembly_add(r, &packet, &segment);
	return segment;
}

static struct segment add(struct reassembly *r, uint32_t offset, const char *text)
{
	return add_flags(r, offset, text, strlen(text), PACKET_ACK);
}

static void start(struct reassembly *r, size_t capacity)
{
	reassembly_init(r, SYN_SEQUENCE);
	assert_int_equal(reassembly_rebuffer(r, pool, capacity), 0);
}

static void assert_new(const struct segment *segment, const char *text)
{
	assert_int_equal(segment->kind, SEGMENT_NEW);
	assert_int_equal(segment->length, strlen(text));
	assert_memory_equal(segment->bytes, text, strlen(text));
}

static void test_in_order(void **state)
{
	struct reassembly r;
	(void)state;

	start(&r, 4096);
	struct segment s = add(&r, 0, "GET / HTTP/1.1\r\n");
	assert_new(&s, "GET / HTTP/1.1\r\n");
	assert_false(reassembly_is_released(&r, s.end));
	s = add(&r, 16, "Host: a\r\n\r\n");
	assert_new(&s, "Host: a\r\n\r\n");
	assert_false(reassembly_is_idle(&r));
	reassembly_release(&r);
	assert_true(reassembly_is_released(&r, s.end));
	assert_false(reassembly_is_released(&r, s.end + 1));
	assert_true(reassembly_is_idle(&r));
}

static void test_room(void **state)
{
	struct reassembly r;
	static uint8_t other[64];
	(void)state;

	reassembly_init(&r, SYN_SEQUENCE);
	struct segment s = add(&r, 0, "0123456789");
	assert_int_equal(s.kind, SEGMENT_ROOM);
	assert_int_equal(s.needed, 10);
	assert_int_equal(reassembly_rebuffer(&r, pool, 10), 0);
	s = add(&r, 0, "0123456789");
	assert_new(&s, "0123456789");
	s = add(&r, 12, "cd");
	assert_int_equal(s.kind, SEGMENT_ROOM);
	assert_int_equal(s.needed, 14);
	assert_int_equal(reassembly_rebuffer(&r, other, 9), -EBUSY);
	assert_int_equal(reassembly_rebuffer(&r, NULL, 0), -EBUSY);
	assert_int_equal(reassembly_rebuffer(&r, other, sizeof(other)), 0);
	s = add(&r, 12, "cd");
	assert_int_equal(s.kind, SEGMENT_FUTURE);
	s = add(&r, 10, "ab");
	assert_new(&s, "abcd");
	/* moved with the buffer, so still compared */
	assert_int_equal(add(&r, 3, "3456").kind, SEGMENT_DUPLICATE);
	reassembly_release(&r);
	assert_int_equal(reassembly_rebuffer(&r, NULL, 0), 0);
	assert_int_equal(add(&r, 3, "????").kind, SEGMENT_PAST);
}

static void test_history_slides(void **state)
{
	struct reassembly r;
	(void)state;

	start(&r, 16);
	add(&r, 0, "0123456789");
	reassembly_release(&r);
	assert_int_equal(add(&r, 4, "45").kind, SEGMENT_DUPLICATE);
	struct segment s = add(&r, 10, "abcdefgh");
	assert_new(&s, "abcdefgh");
	assert_int_equal(add(&r, 0, "0123").kind, SEGMENT_PAST);
	/* half of what is free stays: 6 to 9 */
	assert_int_equal(add(&r, 4, "??6789ab").kind, SEGMENT_DUPLICATE);
	assert_int_equal(add(&r, 8, "8?").kind, SEGMENT_CONTRADICTORY);
}

static void test_retransmissions(void **state)
{
	struct reassembly r;
	struct segment s;
	(void)state;

	start(&r, 4096);
	add(&r, 0, "0123456789");
	s = add(&r, 0, "0123456789");
	assert_int_equal(s.kind, SEGMENT_DUPLICATE);
	assert_int_equal(add(&r, 2, "2345").kind, SEGMENT_DUPLICATE);
	s = add(&r, 5, "56789abc"); /* more than before */
	assert_new(&s, "abc");
	s = add(&r, 0, "0123456789abcdef");
	assert_new(&s, "def");
	assert_int_equal(add(&r, 15, "f").kind, SEGMENT_DUPLICATE);
	assert_int_equal(add(&r, 15, "x").kind, SEGMENT_CONTRADICTORY);
	assert_int_equal(add(&r, 16, "g").kind, SEGMENT_CONTRADICTORY);
}

static void test_out_of_order(void **state)
{
	struct reassembly r;
	(void)state;

	start(&r, 4096);
	assert_int_equal(add(&r, 8, "89").kind, SEGMENT_FUTURE);
	assert_int_equal(add(&r, 4, "45").kind, SEGMENT_FUTURE);
	assert_int_equal(add(&r, 8, "89").kind, SEGMENT_FUTURE);
	assert_int_equal(r.island_count, 2);
	assert_int_equal(add(&r, 6, "67").kind, SEGMENT_FUTURE);
	assert_int_equal(r.island_count, 1);
	struct segment s = add(&r, 0, "01");
	assert_new(&s, "01");
	assert_false(reassembly_is_idle(&r));
	reassembly_release(&r);
	assert_false(reassembly_is_idle(&r)); /* an island must be kept */
	s = add(&r, 1, "1234");
	assert_new(&s, "23456789");
	reassembly_release(&r);
	assert_true(reassembly_is_idle(&r));
}

static void test_contradictions(void **state)
{
	static const struct {
		uint32_t at;
		const char *text;
	} rows[] = {
		{0, "X"},       {3, "X"},    {2, "2X"},
		{9, "X"},       {8, "_X"},   {9, "9AX"},
		{4, "_____9X"}, {10, "X_c"}, {0, "0123_____9AX"},
		{11, "X"},      {13, "cX"},  {0, "0123_____9AB_cX"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct reassembly r;
		start(&r, 4096);
		add(&r, 0, "0123");
		add(&r, 9, "9AB");
		add(&r, 13, "cd");
		struct reassembly saved = r;
		struct segment s = add(&r, rows[i].at, rows[i].text);
		assert_int_equal(s.kind, SEGMENT_CONTRADICTORY);
		assert_non_null(s.problem);
		assert_int_equal(r.next, saved.next);
		assert_int_equal(r.island_count, 2);
		assert_int_equal(add(&r, 4, "4").kind, SEGMENT_CONTRADICTORY);
	}
}

static void test_syn(void **state)
{
	struct reassembly r;
	struct segment s;
	(void)state;

	start(&r, 4096);
	assert_int_equal(add_flags(&r, UINT32_MAX, "", 0, PACKET_SYN).kind, SEGMENT_EMPTY);
	s = add_flags(&r, UINT32_MAX, "GET ", 4, PACKET_SYN);
	assert_new(&s, "GET ");
	assert_int_equal(s.end, FIRST + 4);
	/* the server did not take the data of the SYN: it comes again */
	s = add(&r, 0, "GET / HT");
	assert_new(&s, "/ HT");
	assert_int_equal(add_flags(&r, 7, "", 0, PACKET_SYN).kind, SEGMENT_OUTSIDE);
	assert_int_equal(add_flags(&r, UINT32_MAX, "PUT ", 4, PACKET_SYN).kind,
			 SEGMENT_CONTRADICTORY);
	start(&r, 4096);
	assert_int_equal(add_flags(&r, UINT32_MAX, "", 0, PACKET_SYN | PACKET_FIN).kind,
			 SEGMENT_CONTRADICTORY);
}

static void test_urgent(void **state)
{
	struct reassembly r;
	(void)state;

	start(&r, 4096);
	assert_int_equal(add_flags(&r, 0, "ab", 2, PACKET_ACK | PACKET_URG).kind,
			 SEGMENT_CONTRADICTORY);
	start(&r, 4096); /* the pointer of an empty segment counts for later ones */
	assert_int_equal(add_flags(&r, 0, "", 0, PACKET_ACK | PACKET_URG).kind,
			 SEGMENT_CONTRADICTORY);
}

static void test_fin(void **state)
{
	struct reassembly r;
	struct segment s;
	const uint8_t fin = PACKET_ACK | PACKET_FIN;
	(void)state;

	start(&r, 4096);
	s = add_flags(&r, 0, "0123", 4, fin);
	assert_new(&s, "0123");
	assert_true(s.finished);
	s = add_flags(&r, 0, "0123", 4, fin);
	assert_int_equal(s.kind, SEGMENT_DUPLICATE);
	assert_int_equal(add_flags(&r, 4, "", 0, fin).kind, SEGMENT_EMPTY);
	assert_int_equal(add(&r, 4, "4").kind, SEGMENT_CONTRADICTORY);

	start(&r, 4096);
	add(&r, 0, "0123");
	s = add_flags(&r, 4, "", 0, fin);
	assert_int_equal(s.kind, SEGMENT_NEW);
	assert_int_equal(s.length, 0);
	assert_true(s.finished);

	start(&r, 4096); /* the FIN comes first */
	s = add_flags(&r, 4, "", 0, fin);
	assert_int_equal(s.kind, SEGMENT_FUTURE);
	assert_false(s.finished);
	assert_int_equal(add_flags(&r, 3, "3", 1, fin).kind, SEGMENT_FUTURE);
	s = add(&r, 0, "012");
	assert_new(&s, "0123");
	assert_true(s.finished);

	start(&r, 4096); /* a retransmission that brings the FIN along */
	add(&r, 0, "0123");
	s = add_flags(&r, 2, "23", 2, fin);
	assert_int_equal(s.kind, SEGMENT_NEW);
	assert_int_equal(s.length, 0);
	assert_true(s.finished);
	assert_int_equal(add_flags(&r, 5, "", 0, fin).kind, SEGMENT_CONTRADICTORY);

	start(&r, 4096);
	add(&r, 0, "0123");
	assert_int_equal(add_flags(&r, 2, "", 0, fin).kind, SEGMENT_CONTRADICTORY);

	start(&r, 4096);
	add_flags(&r, 9, "", 0, fin);
	assert_int_equal(add(&r, 6, "67890").kind, SEGMENT_CONTRADICTORY);

	start(&r, 4096);
	add(&r, 6, "67890");
	assert_int_equal(add_flags(&r, 9, "", 0, fin).kind, SEGMENT_CONTRADICTORY);
}

static void test_outside(void **state)
{
	struct reassembly r;
	static uint8_t large[65535];
	(void)state;

	start(&r, sizeof(pool));
	assert_int_equal(add(&r, REASSEMBLY_BUFFER_MAX - 1, "a").kind, SEGMENT_FUTURE);
	assert_int_equal(add(&r, REASSEMBLY_BUFFER_MAX - 1, "ab").kind, SEGMENT_OUTSIDE);
	assert_int_equal(add(&r, REASSEMBLY_BUFFER_MAX, "a").kind, SEGMENT_OUTSIDE);
	assert_int_equal(add(&r, 0x40000000u, "a").kind, SEGMENT_OUTSIDE);
	assert_int_equal(add(&r, 0x7fffffffu, "ab").kind, SEGMENT_OUTSIDE);
	assert_int_equal(add(&r, 0x80000000u, "ab").kind, SEGMENT_OUTSIDE);
	assert_int_equal(add(&r, 0x80000001u, "ab").kind, SEGMENT_OUTSIDE);
	assert_int_equal(add(&r, 0xc0000000u, "ab").kind, SEGMENT_PAST);
	assert_int_equal(add(&r, UINT32_MAX, "k").kind, SEGMENT_PAST); /* a keep-alive probe */
	struct segment s = add_flags(&r, 0, large, sizeof(large), PACKET_ACK);
	assert_int_equal(s.kind, SEGMENT_NEW);
	assert_int_equal(s.length, sizeof(large));
}

static void test_islands_limit(void **state)
{
	struct reassembly r;
	(void)state;

	start(&r, 4096);
	for (uint32_t i = 0; i < REASSEMBLY_ISLANDS_MAX; i++)
		assert_int_equal(add(&r, 2 + 2 * i, "x").kind, SEGMENT_FUTURE);
	assert_int_equal(add(&r, 200, "x").kind, SEGMENT_OUTSIDE);
	assert_int_equal(add(&r, 6, "xyx").kind, SEGMENT_FUTURE); /* joins two */
	assert_int_equal(add(&r, 200, "x").kind, SEGMENT_FUTURE);
	assert_int_equal(add(&r, 100, "x").kind, SEGMENT_OUTSIDE);
	assert_int_equal(r.island_count, REASSEMBLY_ISLANDS_MAX);
	struct segment s = add(&r, 0, "01");
	assert_new(&s, "01x");
}

/*
 * The oracle: one array of everything that was ever taken, and a random sender that sometimes lies.
 * What history still knows of judged bytes is the implementation's own business, so there both
 * answers pass.
 */
#define ORACLE_SPAN 600

struct oracle {
	bool seen[ORACLE_SPAN];
	uint8_t byte[ORACLE_SPAN];
	size_t next, released;
};

static void oracle_step(struct reassembly *r, struct oracle *oracle, size_t at,
			const uint8_t *bytes, size_t length)
{
	bool lies = false, lies_in_history = false;
	struct segment s = add_flags(r, (uint32_t)at, bytes, length, PACKET_ACK);

	for (size_t i = at; i < at + length; i++) {
		bool differs = oracle->seen[i] && oracle->byte[i] != bytes[i - at];
		lies = lies || (differs && i >= oracle->released);
		lies_in_history = lies_in_history || (differs && i < oracle->released);
	}
	assert_int_not_equal(s.kind, SEGMENT_ROOM);
	if (s.kind == SEGMENT_CONTRADICTORY) {
		assert_true(lies || lies_in_history);
		r->contradictory = false; /* as if it had not come: nothing else may have moved */
		return;
	}
	if (s.kind == SEGMENT_OUTSIDE) {
		assert_int_equal(r->island_count, REASSEMBLY_ISLANDS_MAX);
		return;
	}
	assert_false(lies);
	for (size_t i = at; i < at + length; i++) {
		if (!oracle->seen[i])
			oracle->byte[i] = bytes[i - at];
		oracle->seen[i] = true;
	}
	size_t old_next = oracle->next;
	while (oracle->next < ORACLE_SPAN && oracle->seen[oracle->next])
		oracle->next++;
	if (oracle->next > old_next) {
		assert_int_equal(s.kind, SEGMENT_NEW);
		assert_int_equal(s.length, oracle->next - old_next);
		assert_memory_equal(s.bytes, oracle->byte + old_next, s.length);
	} else if (at + length > oracle->next) {
		assert_int_equal(s.kind, SEGMENT_FUTURE);
	} else if (at + length > oracle->released) {
		assert_int_equal(s.kind, SEGMENT_DUPLICATE);
	} else {
		assert_true(s.kind == SEGMENT_DUPLICATE || s.kind == SEGMENT_PAST);
	}
	assert_int_equal(reassembly_is_released(r, s.end), at + length <= oracle->released);
}

static void test_against_oracle(void **state)
{
	static uint8_t buffers[2][ORACLE_SPAN];
	(void)state;

	srandom(20260101);
	for (int round = 0; round < 3000; round++) {
		struct oracle oracle = {.next = 0};
		struct reassembly r;
		size_t longest = 1 + (size_t)(random() % 60);
		unsigned which = 0;

		reassembly_init(&r, SYN_SEQUENCE - (uint32_t)(random() % ORACLE_SPAN));
		r.first = r.base = r.released = r.next = FIRST;
		assert_int_equal(reassembly_rebuffer(&r, buffers[0], ORACLE_SPAN), 0);
		for (int step = 0; step < 120 && oracle.next < ORACLE_SPAN; step++) {
			uint8_t bytes[64];
			size_t near = oracle.next > 40 ? oracle.next - 40 : 0;
			size_t at = near + (size_t)random() % 100;
			size_t length = 1 + (size_t)random() % longest;
			if (at >= ORACLE_SPAN)
				continue;
			if (length > ORACLE_SPAN - at)
				length = ORACLE_SPAN - at;
			for (size_t i = 0; i < length; i++)
				bytes[i] = (uint8_t)((at + i) * 7);
			if (random() % 16 == 0)
				bytes[(size_t)random() % length] ^= 0x55;
			oracle_step(&r, &oracle, at, bytes, length);
			if (random() % 4 == 0) {
				reassembly_release(&r);
				oracle.released = oracle.next;
			}
			if (random() % 8 == 0) {
				which ^= 1;
				assert_int_equal(
					reassembly_rebuffer(&r, buffers[which], ORACLE_SPAN), 0);
			}
			bool gaps = false;
			for (size_t i = oracle.next; i < ORACLE_SPAN; i++)
				gaps = gaps || oracle.seen[i];
			assert_int_equal(reassembly_is_idle(&r),
					 !gaps && oracle.next == oracle.released);
		}
	}
}

/* Small buffers: what does not fit gives ROOM or OUTSIDE, and the stream is the same in the end. */
static void test_small_buffers(void **state)
{
	static uint8_t small[2][300];
	(void)state;

	srandom(7);
	for (int round = 0; round < 500; round++) {
		struct reassembly r;
		size_t capacity = 64 + (size_t)(random() % 200), read = 0;
		reassembly_init(&r, 0xffffff00u);
		assert_int_equal(reassembly_rebuffer(&r, small[0], capacity), 0);
		while (read < 2000) {
			uint8_t bytes[64];
			size_t back = (size_t)random() % 50, ahead = (size_t)random() % 100;
			size_t at = read + ahead > back ? read + ahead - back : 0;
			size_t length = 1 + (size_t)random() % 63;
			for (size_t i = 0; i < length; i++)
				bytes[i] = (uint8_t)((at + i) * 7);
			struct packet packet = {.sequence = 0xffffff01u + (uint32_t)at,
						.flags = PACKET_ACK,
						.payload = bytes,
						.payload_length = length};
			struct segment s;
			reassembly_add(&r, &packet, &s);
			assert_int_not_equal(s.kind, SEGMENT_CONTRADICTORY);
			if (s.kind == SEGMENT_ROOM)
				assert_true(s.needed > capacity && s.needed < 400);
			if (s.kind != SEGMENT_NEW)
				continue;
			for (size_t i = 0; i < s.length; i++)
				assert_int_equal(s.bytes[i], (uint8_t)((read + i) * 7));
			read += s.length;
			reassembly_release(&r);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_history_slides),
		cmocka_unit_test(test_retransmissions),
		cmocka_unit_test(test_out_of_order),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_syn),
		cmocka_unit_test(test_urgent),
		cmocka_unit_test(test_fin),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_islands_limit),
		cmocka_unit_test(test_against_oracle),
		cmocka_unit_test(test_small_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
