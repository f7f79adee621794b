/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfq/buffers.h"
#include "tests/unit/nfq/fixture.h"

static void test_sizes(void **state)
{
	static const struct {
		size_t asked, given;
	} rows[] = {
		{0, BUFFER_SMALL},
		{1, BUFFER_SMALL},
		{BUFFER_SMALL, BUFFER_SMALL},
		{BUFFER_SMALL + 1, BUFFER_MIDDLE},
		{BUFFER_MIDDLE, BUFFER_MIDDLE},
		{BUFFER_MIDDLE + 1, BUFFER_LARGE},
		{BUFFER_LARGE, BUFFER_LARGE},
		{BUFFER_LARGE + 1, BUFFER_HUGE},
		{BUFFER_HUGE, BUFFER_HUGE},
	};
	struct buffer buffer = {.bytes = NULL};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(buffers_borrow(rows[i].asked, 0, &buffer), 0);
		assert_int_equal(buffer.capacity, rows[i].given);
		memset(buffer.bytes, 0xa5, buffer.capacity);
		buffers_return(&buffer);
		assert_null(buffer.bytes);
	}
	struct buffer before = buffer;
	assert_int_equal(buffers_borrow(BUFFER_HUGE + 1, 0, &buffer), -E2BIG);
	assert_memory_equal(&before, &buffer, sizeof(buffer));
	buffers_return(&buffer); /* none: nothing happens */
	assert_int_equal(buffers_lent(BUFFER_CLASS_SMALL), 0);
}

static void test_exhaustion(void **state)
{
	static struct buffer all[BUFFER_HUGE_COUNT + BUFFER_LARGE_COUNT + 1];
	size_t count = 0;

	(void)state;
	/* A class that is empty is replaced by the next; the largest is the end. */
	while (buffers_borrow(BUFFER_LARGE, (uint16_t)count, &all[count]) == 0)
		count++;
	assert_int_equal(count, BUFFER_LARGE_COUNT + BUFFER_HUGE_COUNT);
	assert_int_equal(buffers_borrow(BUFFER_LARGE, (uint16_t)count, &all[count]), -ENOBUFS);
	assert_int_equal(all[BUFFER_LARGE_COUNT].capacity, BUFFER_HUGE);
	assert_int_equal(buffers_lent(BUFFER_CLASS_LARGE), BUFFER_LARGE_COUNT);
	for (size_t i = 0; i < count; i++)
		buffers_return(&all[i]);
	assert_int_equal(buffers_lent(BUFFER_CLASS_LARGE), 0);
	assert_int_equal(buffers_lent(BUFFER_CLASS_HUGE), 0);
}

/* Half of a class is one client's; the next class helps out, and the other half is for others. */
static void test_share_of_one_client(void **state)
{
	static struct buffer all[BUFFER_MIDDLE_COUNT + BUFFER_LARGE_COUNT + BUFFER_HUGE_COUNT];
	const size_t half = sizeof(all) / sizeof(all[0]) / 2;
	struct buffer other;
	size_t count = 0;

	(void)state;
	while (count < 2 * half && buffers_borrow(BUFFER_MIDDLE, 7, &all[count]) == 0)
		count++;
	assert_int_equal(count, half);
	assert_int_equal(buffers_borrow(BUFFER_HUGE, 7, &other), -ENOBUFS);
	assert_int_equal(buffers_borrow(BUFFER_SMALL, 7, &other), 0);
	buffers_return(&other);
	for (size_t i = BUFFER_SMALL + 1; i <= BUFFER_HUGE; i *= 2) {
		assert_int_equal(buffers_borrow(i, 8, &other), 0);
		buffers_return(&other);
	}
	buffers_return(&all[0]);
	assert_int_equal(buffers_borrow(BUFFER_MIDDLE, 7, &all[0]), 0);
	for (size_t i = 0; i < count; i++)
		buffers_return(&all[i]);
}

/* No octet belongs to two loans: every buffer is filled with its own number and read back. */
static void test_no_overlap(void **state)
{
	static const size_t sizes[] = {BUFFER_SMALL, BUFFER_MIDDLE, BUFFER_LARGE, BUFFER_HUGE};
	static struct buffer held[200];
	static uint8_t stamps[200];

	(void)state;
	srand(1);
	for (unsigned round = 0; round < 5000; round++) {
		unsigned i = (unsigned)rand() % 200;

		if (held[i].bytes == NULL) {
			assert_int_equal(buffers_borrow(sizes[rand() % 4], (uint16_t)i, &held[i]),
					 0);
			stamps[i] = (uint8_t)rand();
			memset(held[i].bytes, stamps[i], 16);
			memset(held[i].bytes + held[i].capacity - 16, stamps[i], 16);
		} else {
			for (unsigned b = 0; b < 16; b++) {
				assert_int_equal(held[i].bytes[b], stamps[i]);
				assert_int_equal(held[i].bytes[held[i].capacity - 1 - b],
						 stamps[i]);
			}
			buffers_return(&held[i]);
		}
	}
	for (unsigned i = 0; i < 200; i++)
		buffers_return(&held[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_sizes, fixture_reset),
		cmocka_unit_test_setup(test_exhaustion, fixture_reset),
		cmocka_unit_test_setup(test_share_of_one_client, fixture_reset),
		cmocka_unit_test_setup(test_no_overlap, fixture_reset),
	};
	return cmocka_run_group_tests_name("buffers", tests, NULL, NULL);
}
