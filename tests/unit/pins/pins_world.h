/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the tests of the pin table share: small makers of clients, names and addresses, a table with
 * its descriptors, and a random sequence that a seed fixes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pins.h"
#include "pins/table.h"

static const uint8_t world_seed[16] = {7, 1, 9, 4, 4, 2, 8, 3, 5, 5, 6, 1, 2, 9, 0, 3};

struct world {
	int writable, readable;
	struct pins_writer *writer;
	struct pins_table *table; /* mapped from the read-only half */
};

static inline uint64_t world_random(uint64_t *state)
{
	/* splitmix64 */
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline struct client_key world_client(unsigned number)
{
	struct address address =
		address_ipv4(10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number);

	return client_key_of_address(&address);
}

/* IPv4 for even numbers, IPv6 for odd ones. */
static inline struct address world_address(unsigned number)
{
	uint8_t bytes[16] = {0x20, 0x01, 0x0d, 0xb8};

	if (number % 2 == 0)
		return address_ipv4(198, (uint8_t)(number >> 16), (uint8_t)(number >> 8),
				    (uint8_t)number);
	memcpy(bytes + 12, &number, sizeof(number));
	return address_from_bytes(bytes, sizeof(bytes));
}

/* A canonical name of exactly LENGTH octets (at least 8) that differs by NUMBER. */
static inline struct name world_name(unsigned number, size_t length)
{
	char text[NAME_TEXT_MAX + 1];
	struct name name;

	assert_in_range(length, 8, NAME_TEXT_MAX);
	snprintf(text, sizeof(text), "%08x", number);
	for (size_t i = 8; i < length; i++)
		text[i] = i % 50 == 49 && i + 1 < length ? '.' : (char)('a' + i % 26);
	assert_int_equal(name_from_text(text, length, &name), NAME_OK);
	return name;
}

static inline void world_open(struct world *world, uint32_t capacity, uint32_t per_client)
{
	struct pins_limits limits = {.capacity = capacity, .per_client = per_client};

	assert_int_equal(pins_create(&limits, world_seed, &world->writable, &world->readable), 0);
	assert_int_equal(pins_writer_open(world->writable, &world->writer), 0);
	assert_int_equal(pins_map(world->readable, &world->table), 0);
}

static inline void world_close(struct world *world)
{
	pins_unmap(world->table);
	pins_writer_close(world->writer);
	close(world->writable);
	close(world->readable);
}

static inline int world_put(struct world *world, unsigned client, unsigned address, unsigned name,
			    uint64_t expiry)
{
	struct client_key key = world_client(client);
	struct address destination = world_address(address);
	struct name asked = world_name(name, 20);

	return pins_put(world->writer, &key, &asked, &destination, expiry, 0);
}

static inline size_t world_find(const struct world *world, unsigned client, unsigned address,
				struct pin *out, size_t max)
{
	struct client_key key = world_client(client);
	struct address destination = world_address(address);

	return pins_find(world->table, &key, &destination, out, max);
}

static inline struct pins_stats world_stats(const struct world *world)
{
	struct pins_stats stats;

	pins_stats(world->table, &stats);
	return stats;
}
