/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Theory of operation of the pin table: creating it, and reading it.
 *
 * Goal: a gate that asks for (client, address) about once for every new flow, from another process
 * than the one that writes, in under a microsecond; a million pins in 256 MiB; no trust in the
 * writer.
 *
 * Data: table.h. A bucket array and cells of fixed size, because a fixed layout leaves nothing to
 * be parsed: every octet of the shared memory is either a number that is checked against a bound
 * when it is used or text that is checked for the canonical alphabet. Names up to 72 octets are in
 * the cell: one look-up is two or three cache lines. Longer names take one or two cells more out of
 * the same pool, so there is one resource, one bound and one order of eviction. The key is (client,
 * address) because that is what the gate knows; all names of one address are in one chain.
 *
 * Bounds of a reader: TABLE_CHAIN_MAX cells a walk, FIND_RETRIES walks, CELL_COUNT_MAX cells a
 * name. It copies a cell out first and judges the copy, so a writer that changes it meanwhile
 * cannot make it return a pin of another client or address, a name that is not canonical, or a
 * length that is not checked. Its geometry is its own copy, and the file is sealed, so no mapping
 * can shrink under it.
 *
 * Descriptors: the memfd has mode 0400 and its readable half is a second open file description, so
 * a process that holds only that one can neither map it writable nor open it again for writing.
 */

#include "pins/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

/* A walk is repeated only when a pin left that same chain meanwhile; a real writer does not do so
 * often. */
#define FIND_RETRIES 16

#define TABLE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static size_t round_to_page(size_t size)
{
	return (size + TABLE_PAGE - 1) / TABLE_PAGE * TABLE_PAGE;
}

size_t table_cells_offset(uint32_t bucket_count)
{
	return TABLE_PAGE + round_to_page(bucket_count * sizeof(struct table_bucket));
}

size_t table_size(uint32_t capacity, uint32_t bucket_count)
{
	return table_cells_offset(bucket_count) + round_to_page((size_t)capacity * CELL_SIZE);
}

/* The smallest power of two that is not less than the number of pins. */
static uint32_t bucket_count_of(uint32_t capacity)
{
	uint32_t count = 1;

	while (count < capacity)
		count *= 2;
	return count;
}

static int open_memfd(void)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("pinfold-pins", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create("pinfold-pins", flags);
	return fd;
}

static int write_header(int fd, const struct table_header *header)
{
	ssize_t written = pwrite(fd, header, sizeof(*header), 0);

	if (written == (ssize_t)sizeof(*header))
		return 0;
	return written < 0 ? -errno : -EIO;
}

int pins_create(const struct pins_limits *limits, const uint8_t seed[16], int *writable,
		int *readable)
{
	struct table_header header = {
		.magic = TABLE_MAGIC,
		.version = TABLE_VERSION,
		.cell_size = CELL_SIZE,
		.capacity = limits->capacity,
		.per_client = limits->per_client,
	};
	char path[32];
	int error, fd, reading;

	if (limits->capacity == 0 || limits->capacity > PINS_CAPACITY_MAX ||
	    limits->per_client == 0)
		return -EINVAL;
	header.bucket_count = bucket_count_of(limits->capacity);
	memcpy(header.seed, seed, sizeof(header.seed));
	fd = open_memfd();
	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (fchmod(fd, 0400) != 0 ||
	    ftruncate(fd, (off_t)table_size(header.capacity, header.bucket_count)) != 0) {
		error = -errno;
		goto fail;
	}
	error = write_header(fd, &header);
	if (error != 0)
		goto fail;
	reading = open(path, O_RDONLY | O_CLOEXEC);
	if (reading < 0) {
		error = -errno;
		goto fail;
	}
	if (fcntl(fd, F_ADD_SEALS, TABLE_SEALS) != 0) {
		error = -errno;
		close(reading);
		goto fail;
	}
	*writable = fd;
	*readable = reading;
	return 0;
fail:
	close(fd);
	return error;
}

static bool header_is_sound(const struct table_header *header, off_t size)
{
	return header->magic == TABLE_MAGIC && header->version == TABLE_VERSION &&
	       header->cell_size == CELL_SIZE && header->capacity > 0 &&
	       header->capacity <= PINS_CAPACITY_MAX && header->per_client > 0 &&
	       header->bucket_count == bucket_count_of(header->capacity) &&
	       (uint64_t)size == table_size(header->capacity, header->bucket_count);
}

int table_map(int fd, int prot, struct pins_table *out)
{
	struct table_header header;
	struct stat stat;
	int seals = fcntl(fd, F_GET_SEALS);
	void *map;

	/* Without the seals a reader could die of SIGBUS. */
	if (seals < 0 || (seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
		return -EPROTO;
	if (fstat(fd, &stat) != 0)
		return -errno;
	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    !header_is_sound(&header, stat.st_size))
		return -EPROTO;
	map = mmap(NULL, (size_t)stat.st_size, prot, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*out = (struct pins_table){
		.header = map,
		.buckets = (struct table_bucket *)((char *)map + TABLE_PAGE),
		.cells = (struct table_cell *)((char *)map +
					       table_cells_offset(header.bucket_count)),
		.size = (size_t)stat.st_size,
		.capacity = header.capacity,
		.per_client = header.per_client,
		.bucket_count = header.bucket_count,
	};
	memcpy(out->seed, header.seed, sizeof(out->seed));
	return 0;
}

int pins_map(int fd, struct pins_table **out)
{
	struct pins_table *table = malloc(sizeof(*table));
	int error;

	if (table == NULL)
		return -ENOMEM;
	error = table_map(fd, PROT_READ, table);
	if (error != 0) {
		free(table);
		return error;
	}
	*out = table;
	return 0;
}

void pins_unmap(struct pins_table *table)
{
	if (table == NULL)
		return;
	munmap(table->header, table->size);
	free(table);
}

struct table_key table_key(const struct client_key *client, const struct address *address)
{
	struct table_key key = {.family = address->family};

	memcpy(key.client, client->bytes, sizeof(key.client));
	memcpy(key.address, address->bytes, sizeof(key.address));
	return key;
}

uint32_t table_bucket_of(const struct pins_table *table, const struct table_key *key)
{
	return (uint32_t)hash_sip(table->seed, key, sizeof(*key)) & (table->bucket_count - 1);
}

struct table_cell *table_cell(const struct pins_table *table, uint32_t number)
{
	return number >= 1 && number <= table->capacity ? &table->cells[number - 1] : NULL;
}

static uint64_t load64(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

static uint32_t load32(const _Atomic uint32_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

/* Copies the text of a name of LENGTH out of its cells; false when they are not all there. */
static bool read_name(const struct pins_table *table, const struct table_cell *cell, size_t length,
		      char *text)
{
	const _Atomic uint64_t *words = cell->name;
	size_t room = CELL_NAME_WORDS;

	for (size_t at = 0; at < length;) {
		for (size_t i = 0; i < room && at < length; i++, at += 8) {
			uint64_t word = load64(&words[i]);
			memcpy(text + at, &word, sizeof(word));
		}
		if (at >= length)
			break;
		cell = table_cell(table, load32(&cell->more));
		if (cell == NULL || load64(&cell->meta) != cell_meta(CELL_MORE, 0, 0))
			return false;
		words = cell->more_name;
		room = CELL_MORE_WORDS;
	}
	return true;
}

/* Canonical already, or nothing: a reader does not mend what it reads. */
static bool name_from_cells(const char *text, size_t length, struct name *out)
{
	if (length == 0) {
		out->length = 0;
		out->text[0] = '\0';
		return true;
	}
	return name_from_text(text, length, out) == NAME_OK && out->length == length &&
	       memcmp(out->text, text, length) == 0;
}

static bool address_is_sound(const struct table_key *key)
{
	static const uint8_t none[12];

	if (key->family == ADDRESS_IPV6)
		return true;
	return key->family == ADDRESS_IPV4 &&
	       memcmp((const char *)key->address + 4, none, sizeof(none)) == 0;
}

bool table_read(const struct pins_table *table, const struct table_cell *cell,
		const struct table_key *key, struct pin *out)
{
	uint64_t meta = load64(&cell->meta);
	struct table_key own = {
		.client = {load64(&cell->client[0]), load64(&cell->client[1])},
		.address = {load64(&cell->address[0]), load64(&cell->address[1])},
		.family = meta >> 8 & 0xff,
	};
	size_t length = meta >> 16 & 0xff;
	char text[(CELL_NAME_WORDS + (CELL_COUNT_MAX - 1) * CELL_MORE_WORDS) * 8];

	if (key != NULL && memcmp(&own, key, sizeof(own)) != 0)
		return false;
	if (meta != cell_meta(CELL_PIN, (unsigned)own.family, (unsigned)length) ||
	    length > NAME_TEXT_MAX || !address_is_sound(&own))
		return false;
	if (!read_name(table, cell, length, text) || !name_from_cells(text, length, &out->name))
		return false;
	memcpy(out->client.bytes, own.client, sizeof(out->client.bytes));
	out->address.family = (uint8_t)own.family;
	memcpy(out->address.bytes, own.address, sizeof(out->address.bytes));
	out->expiry = load64(&cell->expiry);
	return true;
}

static size_t find_once(const struct pins_table *table, const struct table_bucket *bucket,
			const struct table_key *key, struct pin *out, size_t max)
{
	uint32_t number = load32(&bucket->head);
	size_t found = 0;

	for (unsigned step = 0; step < TABLE_CHAIN_MAX && found < max; step++) {
		const struct table_cell *cell = table_cell(table, number);
		if (cell == NULL)
			break;
		if (table_read(table, cell, key, &out[found]))
			found++;
		number = load32(&cell->next);
	}
	return found;
}

size_t pins_find(const struct pins_table *table, const struct client_key *client,
		 const struct address *address, struct pin *out, size_t max)
{
	struct table_key key = table_key(client, address);
	const struct table_bucket *bucket = &table->buckets[table_bucket_of(table, &key)];

	for (int attempt = 0; attempt < FIND_RETRIES; attempt++) {
		uint32_t left = load32(&bucket->left);
		size_t found = find_once(table, bucket, &key, out, max);
		if (load32(&bucket->left) == left)
			return found;
	}
	return 0;
}

/* Visits one chain; the rest of it is missed when a cell leaves it meanwhile. False ends the whole.
 */
static bool visit_chain(const struct pins_table *table, uint32_t index, uint32_t *budget,
			bool (*visit)(const struct pin *, void *), void *context)
{
	const struct table_bucket *bucket = &table->buckets[index];
	uint32_t left = load32(&bucket->left);
	uint32_t number = load32(&bucket->head);
	const struct table_cell *cell;
	struct pin pin;

	for (; (cell = table_cell(table, number)) != NULL; number = load32(&cell->next)) {
		if ((*budget)-- == 0)
			return false;
		bool sound = table_read(table, cell, NULL, &pin);
		if (load32(&bucket->left) != left)
			return true;
		if (!sound)
			continue;
		struct table_key key = table_key(&pin.client, &pin.address);
		if (table_bucket_of(table, &key) == index && !visit(&pin, context))
			return false;
	}
	return true;
}

void pins_each(const struct pins_table *table, bool (*visit)(const struct pin *pin, void *context),
	       void *context)
{
	/* Chains of a sound table share no cell; a damaged one must not make this endless. */
	uint32_t budget = table->capacity;

	for (uint32_t i = 0; i < table->bucket_count; i++)
		if (!visit_chain(table, i, &budget, visit, context))
			return;
}

void pins_stats(const struct pins_table *table, struct pins_stats *out)
{
	*out = (struct pins_stats){
		.live = load64(&table->header->live),
		.capacity = table->capacity,
		.written = load64(&table->header->written),
		.evicted = load64(&table->header->evicted),
		.failed = load64(&table->header->failed),
	};
}
