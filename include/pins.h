/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The pin table: which address was handed to which client under which name, and until when.
 *
 * The parent creates the table in a sealed memfd and keeps it, so pins outlive either child. The
 * resolver maps it writable and is its only writer; the gate and the parent get a descriptor that was
 * opened read-only. Readers never wait: a look-up is a bounded walk with a bounded number of retries,
 * after which it reports "not found", which is a refusal. A reader trusts nothing it reads: every
 * index is checked and every walk is bounded, since a resolver that was taken over can write anything.
 *
 * Times are milliseconds of CLOCK_BOOTTIME and always arguments.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "client.h"
#include "name.h"

struct pin {
	struct client_key client;
	struct address address;
	struct name name; /* the name the client asked for, never an intermediate CNAME */
	uint64_t expiry;  /* ms of CLOCK_BOOTTIME; live while now < expiry */
};

struct pins_limits {
	uint32_t capacity;   /* pins in all */
	uint32_t per_client; /* pins of one client */
};

#define PINS_CAPACITY_DEFAULT 262144u
#define PINS_PER_CLIENT_DEFAULT 65536u
#define PINS_CAPACITY_MAX 4194304u

/* How many pins of one (client, address) a look-up returns; past it the nearest expiry is evicted. */
#define PINS_PER_ADDRESS_MAX 64u

/* Expired pins are kept this long, so that a refusal can say `expired` instead of `unpinned`. */
#define PINS_EXPIRED_KEPT_MS 600000u

struct pins_table;  /* a mapping, writable or not */
struct pins_writer; /* the writer's private index of a table */

/*
 * Creates an empty table as a memfd sealed against resizing. On success *WRITABLE and *READABLE are
 * two descriptors (close-on-exec) of it, the second opened read-only. SEED keys the hash.
 * 0, -EINVAL for limits out of range, or the errno of memfd_create, ftruncate, open.
 */
int pins_create(const struct pins_limits *limits, const uint8_t seed[16], int *writable,
		int *readable);

/* Maps a table read-only. 0, -EPROTO when it is no table of this layout, or an errno of mmap. */
int pins_map(int fd, struct pins_table **out);
void pins_unmap(struct pins_table *table);

/*
 * All pins of CLIENT for ADDRESS, expired ones that are still kept included, at most MAX. Returns
 * their number. Wait-free; a table in flux or damaged gives fewer, never wrong ones.
 */
size_t pins_find(const struct pins_table *table, const struct client_key *client,
		 const struct address *address, struct pin *out, size_t max);

/* Calls VISIT for each pin in the table until it returns false. For `pinfold pins`; may miss some
 * that change meanwhile. */
void pins_each(const struct pins_table *table, bool (*visit)(const struct pin *pin, void *context),
	       void *context);

struct pins_stats {
	uint64_t live; /* slots in use, expired ones that are kept included */
	uint64_t capacity;
	uint64_t written, evicted, failed;
};
void pins_stats(const struct pins_table *table, struct pins_stats *out);

/*
 * Opens a table for writing and rebuilds the private index from what it holds; slots that do not make
 * sense are cleared. Call it in one process at a time. 0 or negative errno as pins_map, -ENOMEM.
 */
int pins_writer_open(int fd, struct pins_writer **out);
void pins_writer_close(struct pins_writer *writer);

/* The table the writer writes, for reading. Owned by the writer. */
const struct pins_table *pins_writer_table(const struct pins_writer *writer);

/*
 * Makes (client, address, name) live until EXPIRY at least; an earlier expiry never shortens a pin.
 * Visible to every reader when it returns 0. At a bound a pin goes, that with the nearest expiry: of the
 * same client when the client is at its own bound; of a full table an expired one, else one of the same
 * client or of one that holds more. -ENOSPC only when nothing can be evicted.
 */
int pins_put(struct pins_writer *writer, const struct client_key *client, const struct name *name,
	     const struct address *address, uint64_t expiry, uint64_t now);

/* Drops every pin of CLIENT; returns how many. */
size_t pins_drop_client(struct pins_writer *writer, const struct client_key *client);

/* Frees slots that expired more than PINS_EXPIRED_KEPT_MS ago, at most MAX; returns how many. */
size_t pins_expire(struct pins_writer *writer, uint64_t now, size_t max);
