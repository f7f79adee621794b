/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The layout of the pin table in shared memory, for the reader (table.c) and the writer (writer.c).
 *
 *     header, one page | buckets, 8 octets each | cells, 128 octets each
 *
 * A bucket is the head of a chain of pin cells and the count of cells that ever left that chain. A
 * pin whose name is longer than CELL_NAME_SIZE goes on in one or two further cells, which are in no
 * chain. Cells are numbered from 1; 0 is the end of a chain. A table of zeros is an empty table, so
 * memory that was never used is never touched.
 *
 * Everything behind the header is read and written as C11 atomics: stores release, loads acquire.
 * The rules of the writer, on which readers build:
 *
 *   1  a cell is written in full, then linked by one store to its bucket's head
 *   2  a cell is unlinked by one store, then its bucket's count grows, and only then may any word
 * of the cell, or of the cells of its name, change 3  `expiry` alone changes in place, in one store
 *
 * A reader takes the count, walks, and takes the count again. If it saw a word of a cell that had
 * left the chain (2), that word was stored after the count grew, and to acquire it is to see the
 * new count: the walk is thrown away. There is no state "being written": a writer that stops
 * anywhere, even for good, holds up no reader.
 */

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#include "pins.h"

#define TABLE_MAGIC   0x31534e49504e4950ull /* "PINPINS1" read as a little-endian word */
#define TABLE_VERSION 1u
#define TABLE_PAGE    4096u

/*
 * No chain is longer: the writer evicts before. With as many buckets as pins and a keyed hash only
 * pins of one (client, address), at most PINS_PER_ADDRESS_MAX, come together on purpose; eight such
 * in one bucket do not happen by chance.
 */
#define TABLE_CHAIN_MAX (8u * PINS_PER_ADDRESS_MAX)

enum cell_kind { CELL_FREE, CELL_PIN, CELL_MORE };

#define CELL_SIZE       128u
#define CELL_NAME_WORDS 9u
#define CELL_MORE_WORDS 14u
#define CELL_NAME_SIZE  (8u * CELL_NAME_WORDS)
#define CELL_MORE_SIZE  (8u * CELL_MORE_WORDS)
#define CELL_COUNT_MAX  3u /* of one pin */
static_assert(CELL_NAME_SIZE + (CELL_COUNT_MAX - 1) * CELL_MORE_SIZE >= NAME_TEXT_MAX,
	      "the longest name fits");

struct table_header {
	uint64_t magic;
	uint32_t version, cell_size;
	uint32_t capacity, per_client;
	uint32_t bucket_count, reserved;
	uint8_t seed[16];
	_Atomic uint64_t live, written, evicted, failed; /* struct pins_stats; for people alone */
};

struct table_bucket {
	_Atomic uint32_t head;
	_Atomic uint32_t left; /* how many cells left the chain, modulo 2^32 */
};

struct table_cell {
	_Atomic uint32_t next; /* of the chain */
	_Atomic uint32_t more; /* the next cell of the name */
	_Atomic uint64_t meta; /* cell_meta() */
	union {
		struct {
			_Atomic uint64_t expiry;
			_Atomic uint64_t client[2];
			_Atomic uint64_t address[2];
			_Atomic uint64_t name[CELL_NAME_WORDS];
		};
		_Atomic uint64_t more_name[CELL_MORE_WORDS];
	};
};

static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
	      "a lock would not be shared between processes");
static_assert(sizeof(struct table_header) == 80 && offsetof(struct table_header, seed) == 32 &&
		      offsetof(struct table_header, live) == 48,
	      "no padding in the header");
static_assert(sizeof(struct table_bucket) == 8, "no padding in a bucket");
static_assert(sizeof(struct table_cell) == CELL_SIZE, "no padding in a cell");
static_assert(offsetof(struct table_cell, meta) == 8 && offsetof(struct table_cell, expiry) == 16 &&
		      offsetof(struct table_cell, client) == 24 &&
		      offsetof(struct table_cell, address) == 40 &&
		      offsetof(struct table_cell, name) == 56 &&
		      offsetof(struct table_cell, more_name) == 16,
	      "cells have one layout in every program");
static_assert(sizeof(struct table_header) <= TABLE_PAGE, "the header has a page of its own");

static inline uint64_t cell_meta(enum cell_kind kind, unsigned family, unsigned name_length)
{
	return (uint64_t)kind | (uint64_t)family << 8 | (uint64_t)name_length << 16;
}

/* How many cells a name of LENGTH takes. */
static inline uint32_t cell_count(size_t length)
{
	if (length <= CELL_NAME_SIZE)
		return 1;
	return 1 + (uint32_t)((length - CELL_NAME_SIZE + CELL_MORE_SIZE - 1) / CELL_MORE_SIZE);
}

/* A mapping. What geometry the header had when it was checked is kept here and never read again. */
struct pins_table {
	struct table_header *header;
	struct table_bucket *buckets;
	struct table_cell *cells; /* cells[0] is cell 1 */
	size_t size;
	uint32_t capacity, per_client, bucket_count;
	uint8_t seed[16];
};

/* What a chain is searched for. */
struct table_key {
	uint64_t client[2], address[2], family;
};
static_assert(sizeof(struct table_key) == 40, "hashed as octets, so without padding");

struct table_key table_key(const struct client_key *client, const struct address *address);
uint32_t table_bucket_of(const struct pins_table *table, const struct table_key *key);

size_t table_cells_offset(uint32_t bucket_count);
size_t table_size(uint32_t capacity, uint32_t bucket_count);

/* Checks the header behind FD and maps it with PROT into *OUT. As pins_map(). */
int table_map(int fd, int prot, struct pins_table *out);

/* The cell of a number read from anywhere, NULL when it is none. */
struct table_cell *table_cell(const struct pins_table *table, uint32_t number);

/*
 * Reads the pin in CELL into *OUT, which is scribbled on in any case. False when it is not a whole,
 * canonical pin, or not of KEY (when not NULL).
 */
bool table_read(const struct pins_table *table, const struct table_cell *cell,
		const struct table_key *key, struct pin *out);
