/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Every call that can fail for want of something fails in turn (--wrap of the linker). */

#include "pins_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

static int calls_until_failure = -1; /* -1: none fails */
static int allocations;

static bool fails_now(void)
{
	allocations++;
	if (calls_until_failure < 0)
		return false;
	return calls_until_failure-- == 0;
}

void *__real_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
int __real_ftruncate(int fd, off_t size);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __wrap_ftruncate(int fd, off_t size);

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (!fails_now())
		return __real_mmap(address, size, protection, flags, fd, offset);
	errno = ENOMEM;
	return MAP_FAILED;
}

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails_now() ? NULL : __real_calloc(count, size);
}

int __wrap_ftruncate(int fd, off_t size)
{
	if (!fails_now())
		return __real_ftruncate(fd, size);
	errno = ENOSPC;
	return -1;
}

/* The lowest free descriptor: it tells whether one was left open. */
static int next_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void nothing_is_left_of_a_failed_creation(void **state)
{
	struct pins_limits limits = {.capacity = 10, .per_client = 10};
	int writable = -7, readable = -8, fd = next_fd();
	(void)state;

	calls_until_failure = 0;
	assert_int_equal(pins_create(&limits, world_seed, &writable, &readable), -ENOSPC);
	calls_until_failure = -1;
	assert_int_equal(writable, -7);
	assert_int_equal(readable, -8);
	assert_int_equal(next_fd(), fd);
}

static void opening_fails_whole(void **state)
{
	struct world world;
	struct pin pin;
	int needed;
	(void)state;

	world_open(&world, 100, 100);
	world_put(&world, 1, 2, 3, 5000);
	pins_writer_close(world.writer);
	allocations = 0;
	assert_int_equal(pins_writer_open(world.writable, &world.writer), 0);
	needed = allocations;
	assert_in_range(needed, 5, 20);
	pins_writer_close(world.writer);
	for (int i = 0; i < needed; i++) {
		struct pins_writer *writer = NULL;
		calls_until_failure = i;
		assert_int_equal(pins_writer_open(world.writable, &writer), -ENOMEM);
		calls_until_failure = -1;
		assert_null(writer);
		assert_int_equal(world_find(&world, 1, 2, &pin, 1), 1);
	}
	assert_int_equal(pins_writer_open(world.writable, &world.writer), 0);
	assert_int_equal(world_stats(&world).live, 1);
	world_close(&world);
}

static void mapping_fails_whole(void **state)
{
	struct world world;
	(void)state;

	world_open(&world, 100, 100);
	for (int i = 0; i < 2; i++) {
		struct pins_table *table = NULL;
		calls_until_failure = i;
		assert_int_equal(pins_map(world.readable, &table), -ENOMEM);
		calls_until_failure = -1;
		assert_null(table);
	}
	world_close(&world);
}

static void a_put_allocates_nothing(void **state)
{
	struct world world;
	struct pin pin;
	(void)state;

	world_open(&world, 100, 50);
	allocations = 0;
	for (unsigned i = 0; i < 500; i++) {
		world_put(&world, i % 7, i, i, 5000 + i);
		world_find(&world, i % 7, i, &pin, 1);
	}
	assert_int_equal(allocations, 0);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_left_of_a_failed_creation),
		cmocka_unit_test(opening_fails_whole),
		cmocka_unit_test(mapping_fails_whole),
		cmocka_unit_test(a_put_allocates_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
