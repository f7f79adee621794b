/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Readers while a writer puts, refreshes, evicts and dies. A pin that is never removed is found at
 * every single look; what is found is what was put. Worth running with -Db_sanitize=thread.
 */

#include "pins_world.h"

#include <pthread.h>

#define READERS 3
#define ROUNDS  6000u

struct play {
	struct world world;
	atomic_bool stop;
	atomic_uint ready;
};

/* The name that stands for (client, address, variant): a reader can tell whether a pin is right. */
static struct name name_of(unsigned client, unsigned address, unsigned variant)
{
	unsigned number = client << 24 | address << 8 | variant;

	return world_name(number, 20 + number % 5 * 55);
}

static bool is_one_of(const struct pin *pin, unsigned client, unsigned address, unsigned variants)
{
	for (unsigned i = 0; i < variants; i++) {
		struct name name = name_of(client, address, i);
		if (name_equal(&pin->name, &name))
			return true;
	}
	return false;
}

/* Client 1 lives for good at address 2; clients from 10 on come and go, in the same few buckets. */
static void *read_on(void *context)
{
	struct play *play = context;
	struct pin pins[PINS_PER_ADDRESS_MAX];
	struct name lasting = name_of(1, 2, 0);
	uint64_t seed = 1, failures = 0, before = 0;

	atomic_fetch_add(&play->ready, 1);
	while (!atomic_load(&play->stop)) {
		unsigned client = 10 + (unsigned)(world_random(&seed) % 3);
		unsigned address = (unsigned)(world_random(&seed) % 4);
		size_t found = world_find(&play->world, 1, 2, pins, PINS_PER_ADDRESS_MAX);
		failures += found != 1 || !name_equal(&pins[0].name, &lasting) ||
			    pins[0].expiry < before;
		before = pins[0].expiry;
		found = world_find(&play->world, client, address, pins, PINS_PER_ADDRESS_MAX);
		for (size_t i = 0; i < found; i++)
			failures += !is_one_of(&pins[i], client, address, 8) ||
				    pins[i].expiry % 1000 != client;
	}
	return (void *)(uintptr_t)failures;
}

static int put_one(struct play *play, unsigned client, unsigned address, unsigned variant,
		   uint64_t expiry)
{
	struct client_key key = world_client(client);
	struct address destination = world_address(address);
	struct name name = name_of(client, address, variant);

	return pins_put(play->world.writer, &key, &name, &destination, expiry, 0);
}

static void write_on(struct play *play)
{
	uint64_t seed = 7;
	struct pin pins[PINS_PER_ADDRESS_MAX];

	for (unsigned round = 1; round <= ROUNDS; round++) {
		unsigned client = 10 + (unsigned)(world_random(&seed) % 3);
		unsigned address = (unsigned)(world_random(&seed) % 4);
		unsigned variant = (unsigned)(world_random(&seed) % 8);
		assert_int_equal(put_one(play, client, address, variant, round * 1000 + client), 0);
		/* Visible at once, to the writer and to anybody. */
		size_t found =
			world_find(&play->world, client, address, pins, PINS_PER_ADDRESS_MAX);
		struct name name = name_of(client, address, variant);
		bool there = false;
		for (size_t i = 0; i < found; i++)
			there = there || name_equal(&pins[i].name, &name);
		assert_true(there);
		if (round % 10 == 0)
			assert_int_equal(put_one(play, 1, 2, 0, 1000000000 + round), 0);
		if (round % 97 == 0) {
			struct client_key key = world_client(client);
			pins_drop_client(play->world.writer, &key);
		}
		if (round % 1501 == 0) {
			pins_writer_close(play->world.writer);
			assert_int_equal(
				pins_writer_open(play->world.writable, &play->world.writer), 0);
		}
	}
}

static void readers_never_miss_and_never_mix(void **state)
{
	pthread_t threads[READERS];
	struct play play;
	(void)state;

	/* Few cells: every other put evicts, and cells change their bucket all the time. */
	world_open(&play.world, 24, 20);
	atomic_init(&play.stop, false);
	atomic_init(&play.ready, 0);
	assert_int_equal(put_one(&play, 1, 2, 0, 1000000000), 0);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_on, &play), 0);
	while (atomic_load(&play.ready) < READERS)
		sched_yield();
	write_on(&play);
	atomic_store(&play.stop, true);
	for (int i = 0; i < READERS; i++) {
		void *failures;
		pthread_join(threads[i], &failures);
		assert_int_equal((uintptr_t)failures, 0);
	}
	world_close(&play.world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_never_miss_and_never_mix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
