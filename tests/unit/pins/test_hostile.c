/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A table that somebody else writes as he likes: readers and a writer that opens it afterwards must
 * end, stay inside, and never give a pin of another client or address, or a name that is not
 * canonical. What is outside the mapping is caught by the sanitizers, or by the end of it.
 */

#include "pins_world.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CLIENTS   4u
#define ADDRESSES 8u

struct scribbler {
	struct world world;
	uint8_t *bytes; /* the table, writable */
	size_t size;
	uint64_t seed;
	atomic_bool stop;
};

static void scribbler_open(struct scribbler *s, uint64_t seed)
{
	struct stat stat;

	s->seed = seed;
	atomic_init(&s->stop, false);
	world_open(&s->world, 256, 128);
	for (unsigned i = 0; i < 200; i++) {
		struct client_key client = world_client(i % CLIENTS);
		struct address address = world_address(i % ADDRESSES);
		struct name name = world_name(i, 20 + i % 4 * 70);
		assert_int_equal(
			pins_put(s->world.writer, &client, &name, &address, 5000 + i * 1000, 0), 0);
	}
	assert_int_equal(fstat(s->world.writable, &stat), 0);
	s->size = (size_t)stat.st_size;
	s->bytes = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, s->world.writable, 0);
	assert_ptr_not_equal(s->bytes, MAP_FAILED);
}

static void scribbler_close(struct scribbler *s)
{
	munmap(s->bytes, s->size);
	world_close(&s->world);
}

/* Any word of buckets and cells, with a taste for numbers that mean something there. */
static void scribble(struct scribbler *s)
{
	size_t words = (s->size - TABLE_PAGE) / 4;
	size_t at = TABLE_PAGE + world_random(&s->seed) % words * 4;
	_Atomic uint32_t *word = (_Atomic uint32_t *)(void *)(s->bytes + at);
	uint64_t value = world_random(&s->seed);

	switch (world_random(&s->seed) % 4) {
	case 0:
		value %= 260; /* a cell, or just outside */
		break;
	case 1:
		value = cell_meta((enum cell_kind)(value % 4), (unsigned)(value >> 8 & 7),
				  (unsigned)(value >> 16 & 255));
		break;
	case 2:
		value = 0;
		break;
	default:
		break;
	}
	atomic_store(word, (uint32_t)value);
}

static void assert_canonical(const struct pin *pin)
{
	struct name name;

	assert_int_equal(pin->name.text[pin->name.length], '\0');
	if (pin->name.length == 0)
		return;
	assert_int_equal(name_from_text(pin->name.text, pin->name.length, &name), NAME_OK);
	assert_true(name_equal(&name, &pin->name));
	assert_in_range(address_length(&pin->address), 4, 16);
}

static void read_everything(const struct pins_table *table)
{
	struct pin pins[PINS_PER_ADDRESS_MAX];

	for (unsigned i = 0; i < CLIENTS * ADDRESSES; i++) {
		struct client_key client = world_client(i % CLIENTS);
		struct address address = world_address(i / CLIENTS);
		size_t found = pins_find(table, &client, &address, pins, PINS_PER_ADDRESS_MAX);
		assert_in_range(found, 0, PINS_PER_ADDRESS_MAX);
		for (size_t j = 0; j < found; j++) {
			assert_true(client_key_equal(&pins[j].client, &client));
			assert_true(address_equal(&pins[j].address, &address));
			assert_canonical(&pins[j]);
		}
	}
}

static bool count_canonical(const struct pin *pin, void *context)
{
	assert_canonical(pin);
	++*(unsigned *)context;
	return true;
}

static void any_bytes_at_rest(void **state)
{
	struct scribbler s;
	(void)state;

	scribbler_open(&s, 1);
	for (int round = 0; round < 3000; round++) {
		unsigned seen = 0;
		scribble(&s);
		read_everything(s.world.table);
		pins_each(s.world.table, count_canonical, &seen);
		assert_in_range(seen, 0, 256);
	}
	scribbler_close(&s);
}

static void *scribble_on(void *context)
{
	struct scribbler *s = context;

	while (!atomic_load(&s->stop))
		scribble(s);
	return NULL;
}

static void any_bytes_while_readers_run(void **state)
{
	struct scribbler s;
	pthread_t thread;
	(void)state;

	scribbler_open(&s, 2);
	assert_int_equal(pthread_create(&thread, NULL, scribble_on, &s), 0);
	for (int round = 0; round < 1500; round++) {
		unsigned seen = 0;
		read_everything(s.world.table);
		pins_each(s.world.table, count_canonical, &seen);
		assert_in_range(seen, 0, 256);
	}
	atomic_store(&s.stop, true);
	pthread_join(thread, NULL);
	scribbler_close(&s);
}

/* Each octet in turn: what is still found is right, and the next writer mends the rest. */
static void every_octet_in_turn(void **state)
{
	struct scribbler s;
	(void)state;

	scribbler_open(&s, 3);
	for (size_t at = TABLE_PAGE; at < s.size; at += 13) {
		uint8_t was = s.bytes[at];
		s.bytes[at] = (uint8_t)~was;
		read_everything(s.world.table);
		s.bytes[at] = was;
	}
	scribbler_close(&s);
}

static void a_ring_ends(void **state)
{
	struct scribbler s;
	struct table_cell *cells;
	struct table_bucket *buckets;
	unsigned seen = 0;
	(void)state;

	scribbler_open(&s, 4);
	buckets = (struct table_bucket *)(void *)(s.bytes + TABLE_PAGE);
	cells = (struct table_cell *)(void *)(s.bytes + table_cells_offset(256));
	for (unsigned i = 0; i < 256; i++) {
		atomic_store(&buckets[i].head, 1 + i % 200);
		atomic_store(&cells[i].next, 1 + (i + 1) % 256);
		atomic_store(&cells[i].more, 1 + i);
	}
	read_everything(s.world.table);
	pins_each(s.world.table, count_canonical, &seen);
	assert_in_range(seen, 0, 256);
	scribbler_close(&s);
}

/* Copies a table as it is, opens a writer on it, and uses it to its bounds. */
static void assert_writer_recovers(struct scribbler *s)
{
	struct world *world = &s->world;
	struct pins_stats stats;
	struct pin pin;

	pins_writer_close(world->writer);
	assert_int_equal(pins_writer_open(world->writable, &world->writer), 0);
	stats = world_stats(world);
	assert_in_range(stats.live, 0, 256);
	read_everything(world->table);
	for (unsigned i = 0; i < 300; i++) {
		assert_int_equal(world_put(world, 100 + i % 5, 1000 + i, i, 9000000), 0);
		assert_int_equal(world_find(world, 100 + i % 5, 1000 + i, &pin, 1), 1);
	}
	assert_int_equal(world_stats(world).live, 256);
	for (unsigned i = 0; i < 5; i++) {
		struct client_key client = world_client(100 + i);
		pins_drop_client(world->writer, &client);
	}
	pins_expire(world->writer, UINT64_MAX, SIZE_MAX);
	for (unsigned i = 0; i < CLIENTS; i++) {
		struct client_key client = world_client(i);
		pins_drop_client(world->writer, &client);
	}
}

static void a_writer_opens_any_bytes(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 60; seed++) {
		struct scribbler s;
		scribbler_open(&s, 100 + seed);
		for (uint64_t i = 0; i < 1ull << seed % 14; i++)
			scribble(&s);
		assert_writer_recovers(&s);
		scribbler_close(&s);
	}
}

static void a_writer_opens_pure_noise(void **state)
{
	struct scribbler s;
	(void)state;

	scribbler_open(&s, 5);
	for (size_t at = TABLE_PAGE; at + 8 <= s.size; at += 8) {
		uint64_t noise = world_random(&s.seed);
		memcpy(s.bytes + at, &noise, 8);
	}
	read_everything(s.world.table);
	assert_writer_recovers(&s);
	assert_int_equal(world_stats(&s.world).live, 0);
	scribbler_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_bytes_at_rest),
		cmocka_unit_test(any_bytes_while_readers_run),
		cmocka_unit_test(every_octet_in_turn),
		cmocka_unit_test(a_ring_ends),
		cmocka_unit_test(a_writer_opens_any_bytes),
		cmocka_unit_test(a_writer_opens_pure_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
