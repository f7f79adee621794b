/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The pin table through its header: what is put is found, bounds, eviction, restarts, seals. */

#include "pins_world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void finds_what_was_put(void **state)
{
	struct world world;
	struct pin pins[4];
	struct client_key client = world_client(1);
	struct address address = world_address(2);
	struct name name = world_name(3, 20);
	(void)state;

	world_open(&world, 100, 100);
	assert_int_equal(world_find(&world, 1, 2, pins, 4), 0);
	assert_int_equal(world_put(&world, 1, 2, 3, 5000), 0);
	assert_int_equal(world_find(&world, 1, 2, pins, 4), 1);
	assert_true(client_key_equal(&pins[0].client, &client));
	assert_true(address_equal(&pins[0].address, &address));
	assert_true(name_equal(&pins[0].name, &name));
	assert_int_equal(pins[0].name.text[pins[0].name.length], '\0');
	assert_int_equal(pins[0].expiry, 5000);
	assert_int_equal(world_stats(&world).live, 1);
	assert_int_equal(world_stats(&world).capacity, 100);
	world_close(&world);
}

static void a_pin_is_of_one_client_and_address(void **state)
{
	struct world world;
	struct pin pin;
	(void)state;

	world_open(&world, 100, 100);
	world_put(&world, 1, 2, 3, 5000);
	assert_int_equal(world_find(&world, 2, 2, &pin, 1), 0);
	assert_int_equal(world_find(&world, 1, 4, &pin, 1), 0);
	world_close(&world);
}

static void families_are_kept_apart(void **state)
{
	static const uint8_t bytes[16] = {1, 2, 3, 4};
	struct world world;
	struct client_key client = world_client(1);
	struct address v4 = address_from_bytes(bytes, 4), v6 = address_from_bytes(bytes, 16);
	struct name name = world_name(1, 10);
	struct pin pin;
	(void)state;

	world_open(&world, 100, 100);
	assert_int_equal(pins_put(world.writer, &client, &name, &v4, 5000, 0), 0);
	assert_int_equal(pins_find(world.table, &client, &v4, &pin, 1), 1);
	assert_int_equal(pins_find(world.table, &client, &v6, &pin, 1), 0);
	world_close(&world);
}

static void no_address_is_no_pin(void **state)
{
	struct world world;
	struct client_key client = world_client(1);
	struct address none = {0};
	struct name name = world_name(1, 10);
	struct pin pin;
	(void)state;

	world_open(&world, 100, 100);
	assert_int_equal(pins_put(world.writer, &client, &name, &none, 5000, 0), -EINVAL);
	assert_int_equal(pins_find(world.table, &client, &none, &pin, 1), 0);
	assert_int_equal(world_stats(&world).live, 0);
	world_close(&world);
}

static void expiry_only_grows(void **state)
{
	struct world world;
	struct pin pin;
	(void)state;

	world_open(&world, 100, 100);
	world_put(&world, 1, 2, 3, 5000);
	world_put(&world, 1, 2, 3, 4000);
	assert_int_equal(world_find(&world, 1, 2, &pin, 1), 1);
	assert_int_equal(pin.expiry, 5000);
	world_put(&world, 1, 2, 3, 5001);
	world_find(&world, 1, 2, &pin, 1);
	assert_int_equal(pin.expiry, 5001);
	world_put(&world, 1, 2, 3, UINT64_MAX);
	world_put(&world, 1, 2, 3, 9000);
	assert_int_equal(world_find(&world, 1, 2, &pin, 1), 1);
	assert_true(pin.expiry == UINT64_MAX);
	assert_int_equal(world_stats(&world).live, 1);
	assert_int_equal(world_stats(&world).written, 5);
	world_close(&world);
}

static void a_pin_that_never_lives_is_not_kept(void **state)
{
	struct world world;
	struct client_key client = world_client(1);
	struct address address = world_address(2);
	struct name name = world_name(1, 10);
	struct pin pin;
	(void)state;

	world_open(&world, 100, 100);
	assert_int_equal(pins_put(world.writer, &client, &name, &address, 5000, 5000), 0);
	assert_int_equal(pins_find(world.table, &client, &address, &pin, 1), 0);
	assert_int_equal(pins_put(world.writer, &client, &name, &address, 5001, 5000), 0);
	assert_int_equal(pins_find(world.table, &client, &address, &pin, 1), 1);
	world_close(&world);
}

static void names_of_every_length(void **state)
{
	struct world world;
	struct client_key client = world_client(1);
	struct pin pin;
	uint32_t cells = 1;
	(void)state;

	world_open(&world, 4096, 4096);
	struct name root = {.length = 0, .text = ""};
	struct address address = world_address(0);
	assert_int_equal(pins_put(world.writer, &client, &root, &address, 5000, 0), 0);
	assert_int_equal(pins_find(world.table, &client, &address, &pin, 1), 1);
	assert_int_equal(pin.name.length, 0);
	for (size_t length = 8; length <= NAME_TEXT_MAX; length++) {
		struct name name = world_name((unsigned)length, length);
		address = world_address((unsigned)length);
		assert_int_equal(pins_put(world.writer, &client, &name, &address, 5000, 0), 0);
		assert_int_equal(pins_find(world.table, &client, &address, &pin, 1), 1);
		assert_true(name_equal(&pin.name, &name));
		cells += length <= 72 ? 1 : length <= 184 ? 2 : 3;
		assert_int_equal(world_stats(&world).live, cells);
	}
	for (size_t length = 8; length <= NAME_TEXT_MAX; length++) {
		address = world_address((unsigned)length);
		struct name name = world_name((unsigned)length, length);
		assert_int_equal(pins_find(world.table, &client, &address, &pin, 1), 1);
		assert_true(name_equal(&pin.name, &name));
	}
	assert_int_equal(pins_drop_client(world.writer, &client), NAME_TEXT_MAX - 8 + 2);
	assert_int_equal(world_stats(&world).live, 0);
	world_close(&world);
}

static void many_names_of_one_address(void **state)
{
	struct world world;
	struct pin pins[PINS_PER_ADDRESS_MAX + 8];
	(void)state;

	world_open(&world, 1000, 1000);
	for (unsigned i = 0; i < PINS_PER_ADDRESS_MAX; i++)
		world_put(&world, 1, 2, i, 1000000 - i * 1000);
	assert_int_equal(world_find(&world, 1, 2, pins, PINS_PER_ADDRESS_MAX + 8),
			 PINS_PER_ADDRESS_MAX);
	assert_int_equal(world_find(&world, 1, 2, pins, 5), 5);
	assert_int_equal(world_find(&world, 1, 2, pins, 0), 0);

	/* One more: the nearest expiry goes, which is the last one put. */
	world_put(&world, 1, 2, 1000, 2000000);
	assert_int_equal(world_find(&world, 1, 2, pins, PINS_PER_ADDRESS_MAX + 8),
			 PINS_PER_ADDRESS_MAX);
	struct name gone = world_name(PINS_PER_ADDRESS_MAX - 1, 20);
	for (unsigned i = 0; i < PINS_PER_ADDRESS_MAX; i++)
		assert_false(name_equal(&pins[i].name, &gone));
	assert_int_equal(world_stats(&world).evicted, 1);

	/* Another address of the same client has a bound of its own. */
	world_put(&world, 1, 4, 0, 500);
	assert_int_equal(world_find(&world, 1, 2, pins, PINS_PER_ADDRESS_MAX + 8),
			 PINS_PER_ADDRESS_MAX);
	assert_int_equal(world_find(&world, 1, 4, pins, 1), 1);
	world_close(&world);
}

static void a_client_at_its_bound_evicts_its_own(void **state)
{
	struct world world;
	struct pin pin;
	(void)state;

	world_open(&world, 100, 10);
	world_put(&world, 2, 0, 1, 1000); /* the nearest of all, but another's */
	for (unsigned i = 0; i < 10; i++)
		world_put(&world, 1, i, 1, 10000 + 1000 * ((i + 5) % 10));
	world_put(&world, 1, 50, 1, 90000);
	assert_int_equal(world_find(&world, 2, 0, &pin, 1), 1);
	assert_int_equal(world_find(&world, 1, 50, &pin, 1), 1);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(world_find(&world, 1, i, &pin, 1), i == 5 ? 0 : 1);
	assert_int_equal(world_stats(&world).evicted, 1);
	world_close(&world);
}

static void a_full_table_evicts_the_nearest_of_all(void **state)
{
	struct world world;
	struct pin pin;
	(void)state;

	world_open(&world, 10, 10);
	for (unsigned i = 0; i < 10; i++)
		world_put(&world, i, i, 1, 10000 + 1000 * ((i + 7) % 10));
	world_put(&world, 50, 50, 1, 5000); /* nearer than all: it comes in nevertheless */
	assert_int_equal(world_find(&world, 50, 50, &pin, 1), 1);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(world_find(&world, i, i, &pin, 1), i == 3 ? 0 : 1);
	assert_int_equal(world_stats(&world).live, 10);
	world_close(&world);
}

/* A flood costs its client alone, and who comes new takes from the one with the most. */
static void a_client_never_evicts_one_that_holds_less(void **state)
{
	struct world world;
	struct pin pin;
	size_t quiet = 0, new = 0;
	(void)state;

	world_open(&world, 100, 90);
	for (unsigned i = 0; i < 12; i++)
		world_put(&world, 1, i, 1, 2000 + i); /* the nearest of all */
	for (unsigned i = 0; i < 1000; i++)
		world_put(&world, 2, i, 1, 100000 + i);
	for (unsigned i = 0; i < 12; i++)
		quiet += world_find(&world, 1, i, &pin, 1);
	assert_int_equal(quiet, 12);
	/* a third client gets its part of what the second holds */
	for (unsigned i = 0; i < 30; i++)
		world_put(&world, 3, i, 1, 50000 + i);
	for (unsigned i = 0; i < 30; i++)
		new += world_find(&world, 3, i, &pin, 1);
	assert_int_equal(new, 30);
	quiet = 0;
	for (unsigned i = 0; i < 12; i++)
		quiet += world_find(&world, 1, i, &pin, 1);
	assert_int_equal(quiet, 12);
	world_close(&world);
}

static void a_refreshed_pin_is_not_the_nearest(void **state)
{
	struct world world;
	struct pin pin;
	(void)state;

	world_open(&world, 3, 3);
	world_put(&world, 1, 0, 1, 10000);
	world_put(&world, 1, 2, 1, 20000);
	world_put(&world, 1, 4, 1, 30000);
	world_put(&world, 1, 0, 1, 40000);
	world_put(&world, 1, 6, 1, 50000);
	assert_int_equal(world_find(&world, 1, 0, &pin, 1), 1);
	assert_int_equal(world_find(&world, 1, 2, &pin, 1), 0);
	world_close(&world);
}

static void a_long_name_evicts_as_much_as_it_needs(void **state)
{
	struct world world;
	struct client_key client = world_client(1);
	struct name name = world_name(9, NAME_TEXT_MAX);
	struct address address = world_address(100);
	struct pin pin;
	(void)state;

	world_open(&world, 4, 4);
	for (unsigned i = 0; i < 4; i++)
		world_put(&world, 1, i, 1, 10000 + 1000 * i);
	assert_int_equal(pins_put(world.writer, &client, &name, &address, 99000, 0), 0);
	assert_int_equal(pins_find(world.table, &client, &address, &pin, 1), 1);
	assert_true(name_equal(&pin.name, &name));
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(world_find(&world, 1, i, &pin, 1), i == 3);
	assert_int_equal(world_stats(&world).live, 4);
	assert_int_equal(world_stats(&world).evicted, 3);
	world_close(&world);
}

static void a_name_that_can_never_fit(void **state)
{
	struct world world;
	struct client_key client = world_client(1);
	struct name two = world_name(9, 100), three = world_name(9, 200);
	struct address address = world_address(100);
	struct pin pin;
	(void)state;

	world_open(&world, 2, 1);
	world_put(&world, 1, 0, 1, 10000);
	assert_int_equal(pins_put(world.writer, &client, &two, &address, 99000, 0), -ENOSPC);
	assert_int_equal(world_find(&world, 1, 0, &pin, 1), 1);
	assert_int_equal(world_stats(&world).failed, 1);
	world_close(&world);
	world_open(&world, 2, 100);
	assert_int_equal(pins_put(world.writer, &client, &three, &address, 99000, 0), -ENOSPC);
	assert_int_equal(pins_put(world.writer, &client, &two, &address, 99000, 0), 0);
	world_close(&world);
}

static void one_pin_is_the_smallest_table(void **state)
{
	struct world world;
	struct pin pin;
	(void)state;

	world_open(&world, 1, 1);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(world_put(&world, i, i, i, 1000 + i), 0);
		assert_int_equal(world_find(&world, i, i, &pin, 1), 1);
		assert_int_equal(i > 0 && world_find(&world, i - 1, i - 1, &pin, 1), 0);
	}
	world_close(&world);
}

/* Keys that meet in one bucket by design; a client cannot do this without the seed. */
static void a_chain_is_bounded(void **state)
{
	struct world world;
	struct client_key client = world_client(1);
	struct name name = world_name(1, 20);
	unsigned put = 0;
	struct pin pin;
	(void)state;

	world_open(&world, 2048, 2048);
	for (unsigned i = 0; put < TABLE_CHAIN_MAX + 1; i++) {
		struct address address = world_address(i);
		struct table_key key = table_key(&client, &address);
		if (table_bucket_of(world.table, &key) != 77)
			continue;
		put++;
		assert_int_equal(
			pins_put(world.writer, &client, &name, &address, 1000000 - 1000 * put, 0),
			0);
		assert_int_equal(pins_find(world.table, &client, &address, &pin, 1), 1);
	}
	assert_int_equal(world_stats(&world).evicted, 1);
	assert_int_equal(world_stats(&world).live, TABLE_CHAIN_MAX);
	world_close(&world);
}

static void dropping_a_client(void **state)
{
	struct world world;
	struct client_key client = world_client(1), nobody = world_client(99);
	struct pin pin;
	(void)state;

	world_open(&world, 1000, 1000);
	for (unsigned i = 0; i < 100; i++) {
		world_put(&world, 1, i, i, 5000 + i);
		world_put(&world, 2, i, i, 5000 + i);
	}
	assert_int_equal(pins_drop_client(world.writer, &nobody), 0);
	assert_int_equal(pins_drop_client(world.writer, &client), 100);
	assert_int_equal(pins_drop_client(world.writer, &client), 0);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(world_find(&world, 1, i, &pin, 1), 0);
		assert_int_equal(world_find(&world, 2, i, &pin, 1), 1);
	}
	assert_int_equal(world_stats(&world).live, 100);
	world_close(&world);
}

static void expired_pins_are_kept_for_a_while(void **state)
{
	struct world world;
	struct pin pin;
	uint64_t base = 1000000;
	(void)state;

	world_open(&world, 100, 100);
	for (unsigned i = 0; i < 10; i++)
		world_put(&world, 1, i, 1, base + 10000 * (i % 5)); /* with gaps, two of each */
	assert_int_equal(pins_expire(world.writer, 0, 100), 0);
	assert_int_equal(pins_expire(world.writer, base + PINS_EXPIRED_KEPT_MS, 100), 0);
	assert_int_equal(world_find(&world, 1, 0, &pin, 1), 1);
	assert_int_equal(pins_expire(world.writer, base + PINS_EXPIRED_KEPT_MS + 1, 1), 1);
	assert_int_equal(pins_expire(world.writer, base + PINS_EXPIRED_KEPT_MS + 1, 100), 1);
	assert_int_equal(world_find(&world, 1, 0, &pin, 1), 0);
	assert_int_equal(world_find(&world, 1, 5, &pin, 1), 0);
	assert_int_equal(world_find(&world, 1, 1, &pin, 1), 1);
	assert_int_equal(pins_expire(world.writer, base + 20001 + PINS_EXPIRED_KEPT_MS, 100), 4);
	assert_int_equal(world_stats(&world).live, 4);
	assert_int_equal(pins_expire(world.writer, UINT64_MAX, 0), 0);
	assert_int_equal(pins_expire(world.writer, UINT64_MAX, 100), 4);
	assert_int_equal(world_stats(&world).live, 0);
	assert_int_equal(world_stats(&world).evicted, 0);
	world_close(&world);
}

struct tally {
	unsigned seen, stop_at;
	unsigned by_address[200];
};

static bool tally_pin(const struct pin *pin, void *context)
{
	struct tally *tally = context;

	for (unsigned i = 0; i < 200; i++) {
		struct address address = world_address(i);
		tally->by_address[i] += address_equal(&pin->address, &address);
	}
	return ++tally->seen != tally->stop_at;
}

static void each_visits_every_pin_once(void **state)
{
	struct world world;
	struct tally tally = {0};
	(void)state;

	world_open(&world, 300, 300);
	pins_each(world.table, tally_pin, &tally);
	assert_int_equal(tally.seen, 0);
	for (unsigned i = 0; i < 200; i++)
		world_put(&world, i % 7, i, 1, 5000);
	pins_each(world.table, tally_pin, &tally);
	assert_int_equal(tally.seen, 200);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(tally.by_address[i], 1);
	tally = (struct tally){.stop_at = 17};
	pins_each(world.table, tally_pin, &tally);
	assert_int_equal(tally.seen, 17);
	world_close(&world);
}

static void limits_are_checked(void **state)
{
	static const struct pins_limits bad[] = {
		{0, 1}, {1, 0}, {PINS_CAPACITY_MAX + 1, 1}, {UINT32_MAX, UINT32_MAX}};
	int writable = -5, readable = -6;
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(pins_create(&bad[i], world_seed, &writable, &readable), -EINVAL);
	assert_int_equal(writable, -5);
	assert_int_equal(readable, -6);
}

static void the_largest_table_costs_nothing_empty(void **state)
{
	struct world world;
	struct stat stat;
	struct pin pin;
	(void)state;

	world_open(&world, PINS_CAPACITY_MAX, PINS_CAPACITY_MAX);
	world_put(&world, 1, 2, 3, 5000);
	assert_int_equal(world_find(&world, 1, 2, &pin, 1), 1);
	pins_writer_close(world.writer);
	assert_int_equal(pins_writer_open(world.writable, &world.writer), 0);
	assert_int_equal(fstat(world.writable, &stat), 0);
	assert_true(stat.st_size > (off_t)PINS_CAPACITY_MAX * 128);
	assert_true(stat.st_blocks * 512 <= 16 * 4096);
	world_close(&world);
}

static void the_table_is_sealed(void **state)
{
	struct world world;
	struct stat stat;
	(void)state;

	world_open(&world, 100, 100);
	assert_int_equal(fstat(world.writable, &stat), 0);
	assert_int_equal(stat.st_mode & 0777, 0400);
	assert_int_equal(ftruncate(world.writable, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(world.writable, stat.st_size * 2), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(fcntl(world.writable, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_true(fcntl(world.writable, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(world.readable, F_GETFD) & FD_CLOEXEC);
	world_close(&world);
}

static void the_readable_half_is_read_only(void **state)
{
	struct world world;
	struct pins_writer *writer = NULL;
	(void)state;

	world_open(&world, 100, 100);
	assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, world.readable, 0),
			 MAP_FAILED);
	assert_int_equal(errno, EACCES);
	assert_int_equal(write(world.readable, "x", 1), -1);
	assert_int_equal(pins_writer_open(world.readable, &writer), -EACCES);
	assert_null(writer);
	void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, world.readable, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	assert_int_equal(mprotect(map, 4096, PROT_READ | PROT_WRITE), -1);
	munmap(map, 4096);
	world_close(&world);
}

/* A file of SIZE octets that begins with HEADER, sealed or not. */
static int forge(const void *header, size_t length, off_t size, unsigned seals)
{
	int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, header, length, 0), length);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void assert_refused(int fd)
{
	struct pins_table *table = NULL;
	struct pins_writer *writer = NULL;

	assert_int_equal(pins_map(fd, &table), -EPROTO);
	assert_null(table);
	assert_int_equal(pins_writer_open(fd, &writer), -EPROTO);
	assert_null(writer);
	close(fd);
}

static void what_is_no_table_is_refused(void **state)
{
	const unsigned seals = F_SEAL_SHRINK | F_SEAL_GROW;
	struct table_header good, bad;
	struct world world;
	struct pins_table *table;
	struct stat stat;
	int pipes[2];
	(void)state;

	world_open(&world, 100, 100);
	assert_int_equal(pread(world.readable, &good, sizeof(good), 0), sizeof(good));
	assert_int_equal(fstat(world.readable, &stat), 0);
	int fd = forge(&good, sizeof(good), stat.st_size, seals);
	assert_int_equal(pins_map(fd, &table), 0);
	pins_unmap(table);
	close(fd);

	assert_refused(forge(&good, sizeof(good), stat.st_size, 0));
	assert_refused(forge(&good, sizeof(good), stat.st_size, F_SEAL_GROW));
	assert_refused(forge(&good, sizeof(good), stat.st_size, F_SEAL_SHRINK));
	assert_refused(forge(&good, sizeof(good), stat.st_size - 1, seals));
	assert_refused(forge(&good, sizeof(good), stat.st_size + 4096, seals));
	assert_refused(forge(&good, sizeof(good), sizeof(good), seals));
	assert_refused(forge(&good, 8, 8, seals));
	for (size_t at = 0; at < offsetof(struct table_header, reserved); at++) {
		if (at >= offsetof(struct table_header, per_client) &&
		    at < offsetof(struct table_header, bucket_count))
			continue;
		bad = good;
		((uint8_t *)&bad)[at] ^= 0x81;
		assert_refused(forge(&bad, sizeof(bad), stat.st_size, seals));
	}
	bad = good;
	bad.per_client = 0;
	assert_refused(forge(&bad, sizeof(bad), stat.st_size, seals));
	assert_int_equal(pipe(pipes), 0);
	close(pipes[1]);
	assert_refused(pipes[0]);
	assert_refused(-1);
	world_close(&world);
}

static void pins_outlive_the_writer(void **state)
{
	struct world world;
	struct pin pin;
	struct client_key client = world_client(0); /* with the most */
	struct name name = world_name(1, NAME_TEXT_MAX);
	struct address address = world_address(1000);
	(void)state;

	world_open(&world, 200, 100);
	for (unsigned i = 0; i < 50; i++)
		world_put(&world, i % 3, i, 1, 10000 + 1000 * i);
	assert_int_equal(pins_put(world.writer, &client, &name, &address, 7000, 0), 0);
	pins_writer_close(world.writer);
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(world_find(&world, i % 3, i, &pin, 1), 1);

	assert_int_equal(pins_writer_open(world.writable, &world.writer), 0);
	assert_int_equal(world_stats(&world).live, 53);
	for (unsigned i = 0; i < 50; i++)
		assert_int_equal(world_find(&world, i % 3, i, &pin, 1), 1);
	assert_int_equal(pins_find(world.table, &client, &address, &pin, 1), 1);
	assert_true(name_equal(&pin.name, &name));

	/* The index knows them: refreshed in place, counted, evicted by their expiry, dropped. */
	world_put(&world, 0, 0, 1, 900000);
	assert_int_equal(world_stats(&world).live, 53);
	for (unsigned i = 0; i < 147; i++)
		world_put(&world, 10 + i, 2000 + i, 1, 800000);
	assert_int_equal(world_stats(&world).live, 200);
	assert_int_equal(world_stats(&world).evicted, 0);
	world_put(&world, 500, 5000, 1, 800000);
	assert_int_equal(world_stats(&world).live, 198);
	assert_int_equal(pins_find(world.table, &client, &address, &pin, 1), 0);
	client = world_client(1);
	assert_int_equal(pins_drop_client(world.writer, &client), 17);
	world_close(&world);
}

static void a_writer_killed_at_any_point_leaks_nothing(void **state)
{
	struct world world;
	struct pin pin;
	(void)state;

	world_open(&world, 8, 8);
	for (unsigned i = 0; i < 8; i++)
		world_put(&world, 1, i, 1, 10000 + 1000 * i);

	/* Unlinked but not freed, as between the two steps of a removal. */
	for (uint32_t i = 0; i < world.table->bucket_count; i++) {
		struct table_bucket *buckets = pins_writer_table(world.writer)->buckets;
		if (atomic_load(&buckets[i].head) != 0) {
			atomic_store(&buckets[i].head, 0);
			break;
		}
	}
	pins_writer_close(world.writer);
	assert_int_equal(pins_writer_open(world.writable, &world.writer), 0);
	assert_true(world_stats(&world).live < 8);
	for (unsigned i = 100; i < 108; i++) {
		assert_int_equal(world_put(&world, 1, i, 1, 90000), 0);
		assert_int_equal(world_find(&world, 1, i, &pin, 1), 1);
	}
	assert_int_equal(world_stats(&world).live, 8);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_was_put),
		cmocka_unit_test(a_pin_is_of_one_client_and_address),
		cmocka_unit_test(families_are_kept_apart),
		cmocka_unit_test(no_address_is_no_pin),
		cmocka_unit_test(expiry_only_grows),
		cmocka_unit_test(a_pin_that_never_lives_is_not_kept),
		cmocka_unit_test(names_of_every_length),
		cmocka_unit_test(many_names_of_one_address),
		cmocka_unit_test(a_client_at_its_bound_evicts_its_own),
		cmocka_unit_test(a_full_table_evicts_the_nearest_of_all),
		cmocka_unit_test(a_client_never_evicts_one_that_holds_less),
		cmocka_unit_test(a_refreshed_pin_is_not_the_nearest),
		cmocka_unit_test(a_long_name_evicts_as_much_as_it_needs),
		cmocka_unit_test(a_name_that_can_never_fit),
		cmocka_unit_test(one_pin_is_the_smallest_table),
		cmocka_unit_test(a_chain_is_bounded),
		cmocka_unit_test(dropping_a_client),
		cmocka_unit_test(expired_pins_are_kept_for_a_while),
		cmocka_unit_test(each_visits_every_pin_once),
		cmocka_unit_test(limits_are_checked),
		cmocka_unit_test(the_largest_table_costs_nothing_empty),
		cmocka_unit_test(the_table_is_sealed),
		cmocka_unit_test(the_readable_half_is_read_only),
		cmocka_unit_test(what_is_no_table_is_refused),
		cmocka_unit_test(pins_outlive_the_writer),
		cmocka_unit_test(a_writer_killed_at_any_point_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
