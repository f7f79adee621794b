/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Theory of operation of the writer of the pin table.
 *
 * The shared cells hold what readers need; this private index holds what only the writer needs: who
 * is free, whose pin is whose, and who goes first. It is rebuilt from the cells when the table is
 * opened, so the resolver may die at any point. It is the writer's own memory and the writer
 * believes it; what it reads from the cells it checks, since an earlier writer may have been taken
 * over.
 *
 * Data: a node for each cell (index.nodes and index.slots, same number), a record for each client
 * that has a pin, a hash table of those records, a list of freed cells and the number of the first
 * cell that was never used. Anonymous memory that is never touched costs nothing, so neither does
 * capacity.
 *
 * Eviction: a queue of all pins and a queue for each client, both by expiry in whole ORDER_MS. A
 * refresh of a pin (by far the most common call, one for each address of each answer) is one store
 * in its cell; it moves the pin in the queues only when the second changed. So a queue's order is
 * exact to ORDER_MS, no eviction ever has to catch up with earlier refreshes, and every call is
 * O(log n).
 *
 * A client at its own bound evicts its own. When the table is full, what has expired goes first. Then
 * the client that puts evicts its own, unless another one holds so much more that it is in a higher
 * power of two: then one of those with the most does. So a client never loses a live pin to one that
 * holds as much as itself or more, and a flood of one client costs nobody but itself. Clients are listed
 * by the power of two of their cells.
 *
 * Invariants: a cell is ROLE_PIN (in one chain and in both queues), ROLE_MORE (part of the name of
 * one pin) or ROLE_FREE (in the free list or never used). `live` counts the cells that are not
 * free, and a client's count those of its pins. A client record has a pin.
 *
 * Not thread-safe: callers with several threads hold a lock of theirs around each call.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"
#include "pins/queue.h"
#include "pins/table.h"

/* Pins whose expiries are nearer to each other than this are evicted in any order. */
#define ORDER_MS 1000u

/* What is read at a time when a table is opened; reading maps no page that was never written. */
#define SCAN_SIZE 65536u
static_assert(SCAN_SIZE % CELL_SIZE == 0 && SCAN_SIZE % sizeof(struct table_bucket) == 0,
	      "whole elements");

enum cell_role { ROLE_FREE, ROLE_PIN, ROLE_MORE };

/* What the writer knows of a cell. `client` of a free cell is the next free one. */
struct slot {
	uint32_t client, bucket;
	uint32_t role; /* enum cell_role */
};

struct client_record {
	struct client_key key;
	uint32_t next;          /* of its hash chain, or of the free list */
	uint32_t queue;         /* root */
	uint32_t count;         /* cells */
	uint32_t before, after; /* in its list of `sizes` */
};

struct pins_writer {
	struct pins_table table;
	struct queue queue;
	struct slot *slots;            /* [capacity + 1] */
	struct client_record *clients; /* [capacity + 1]: a client has a cell */
	uint32_t *client_buckets;      /* [table.bucket_count] */
	uint32_t all;                  /* root */
	uint32_t sizes[32]; /* [N]: the first client of 2^N cells or more, below 2^(N+1) */
	uint32_t live;      /* cells */
	uint32_t free_cells, fresh_cell;
	uint32_t free_clients, fresh_client;
};

static void count_one(_Atomic uint64_t *counter)
{
	uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);

	atomic_store_explicit(counter, value + 1, memory_order_relaxed);
}

static void store64(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

static void store32(_Atomic uint32_t *word, uint32_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
}

static uint32_t load32(const _Atomic uint32_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t load64(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t meta_of(const struct table_cell *cell)
{
	return load64(&cell->meta);
}

static uint32_t order_of(uint64_t expiry)
{
	return expiry / ORDER_MS < UINT32_MAX ? (uint32_t)(expiry / ORDER_MS) : UINT32_MAX;
}

/* Clients. */

static uint32_t *client_bucket(struct pins_writer *writer, const struct client_key *key)
{
	uint64_t hash = hash_sip(writer->table.seed, key, sizeof(*key));

	return &writer->client_buckets[hash & (writer->table.bucket_count - 1)];
}

static uint32_t client_find(struct pins_writer *writer, const struct client_key *key)
{
	uint32_t client = *client_bucket(writer, key);

	while (client != 0 && !client_key_equal(&writer->clients[client].key, key))
		client = writer->clients[client].next;
	return client;
}

static uint32_t client_get(struct pins_writer *writer, const struct client_key *key)
{
	uint32_t client = client_find(writer, key), *bucket = client_bucket(writer, key);

	if (client != 0)
		return client;
	client = writer->free_clients;
	if (client != 0)
		writer->free_clients = writer->clients[client].next;
	else
		client = writer->fresh_client++;
	assert(client <= writer->table.capacity);
	writer->clients[client] = (struct client_record){.key = *key, .next = *bucket};
	*bucket = client;
	return client;
}

static void client_put(struct pins_writer *writer, uint32_t client)
{
	uint32_t *link = client_bucket(writer, &writer->clients[client].key);

	while (*link != client)
		link = &writer->clients[*link].next;
	*link = writer->clients[client].next;
	writer->clients[client].next = writer->free_clients;
	writer->free_clients = client;
}

/* Cells. */

static uint32_t cell_take(struct pins_writer *writer)
{
	uint32_t number = writer->free_cells;

	if (number != 0)
		writer->free_cells = writer->slots[number].client;
	else
		number = writer->fresh_cell++;
	assert(number <= writer->table.capacity);
	writer->live++;
	return number;
}

static void cell_give(struct pins_writer *writer, uint32_t number)
{
	store64(&table_cell(&writer->table, number)->meta, cell_meta(CELL_FREE, 0, 0));
	writer->slots[number] = (struct slot){.client = writer->free_cells, .role = ROLE_FREE};
	writer->free_cells = number;
	writer->live--;
}

static void pin_enqueue(struct pins_writer *writer, uint32_t number, uint32_t order)
{
	uint32_t client = writer->slots[number].client;

	writer->queue.nodes[number].order = order;
	queue_insert(&writer->queue, QUEUE_ALL, &writer->all, number);
	queue_insert(&writer->queue, QUEUE_CLIENT, &writer->clients[client].queue, number);
}

static void pin_dequeue(struct pins_writer *writer, uint32_t number)
{
	uint32_t client = writer->slots[number].client;

	queue_remove(&writer->queue, QUEUE_ALL, &writer->all, number);
	queue_remove(&writer->queue, QUEUE_CLIENT, &writer->clients[client].queue, number);
}

/* Takes NUMBER out of its chain: rule 2 of table.h. */
static void pin_unlink(struct pins_writer *writer, uint32_t number)
{
	struct table_bucket *bucket = &writer->table.buckets[writer->slots[number].bucket];
	_Atomic uint32_t *link = &bucket->head;

	for (unsigned step = 0; step < TABLE_CHAIN_MAX; step++) {
		struct table_cell *cell = table_cell(&writer->table, load32(link));
		if (cell == NULL)
			break;
		if (load32(link) == number) {
			store32(link, load32(&cell->next));
			break;
		}
		link = &cell->next;
	}
	store32(&bucket->left, load32(&bucket->left) + 1);
}

static int size_of(uint32_t cells)
{
	return cells == 0 ? -1 : 31 - __builtin_clz(cells);
}

static void sizes_remove(struct pins_writer *writer, uint32_t client)
{
	const struct client_record *record = &writer->clients[client];

	if (record->before != 0)
		writer->clients[record->before].after = record->after;
	else
		writer->sizes[size_of(record->count)] = record->after;
	if (record->after != 0)
		writer->clients[record->after].before = record->before;
}

static void sizes_insert(struct pins_writer *writer, uint32_t client)
{
	struct client_record *record = &writer->clients[client];
	uint32_t *first = &writer->sizes[size_of(record->count)];

	record->before = 0;
	record->after = *first;
	if (*first != 0)
		writer->clients[*first].before = client;
	*first = client;
}

/* CLIENT has COUNT cells now. */
static void client_resize(struct pins_writer *writer, uint32_t client, uint32_t count)
{
	struct client_record *record = &writer->clients[client];
	bool moves = size_of(record->count) != size_of(count);

	if (moves && record->count > 0)
		sizes_remove(writer, client);
	record->count = count;
	if (moves && count > 0)
		sizes_insert(writer, client);
}

/* Removes a pin whole, and its client's record with the last one. */
static void pin_drop(struct pins_writer *writer, uint32_t number)
{
	uint32_t client = writer->slots[number].client, cells = 0;
	uint32_t more = number;

	pin_unlink(writer, number);
	pin_dequeue(writer, number);
	for (; cells < CELL_COUNT_MAX && more != 0; cells++) {
		uint32_t next = load32(&table_cell(&writer->table, more)->more);
		cell_give(writer, more);
		if (next > writer->table.capacity || writer->slots[next].role != ROLE_MORE)
			next = 0;
		more = next;
	}
	client_resize(writer, client, writer->clients[client].count - cells);
	if (writer->clients[client].queue == 0)
		client_put(writer, client);
}

static void pin_evict(struct pins_writer *writer, uint32_t number)
{
	pin_drop(writer, number);
	count_one(&writer->table.header->evicted);
}

/* Opening: the index is rebuilt from chains, in place, while readers go on. */

/* Are the further cells of a pin that was read all in range and nobody else's? They are taken if
 * so. */
static bool adopt_name(struct pins_writer *writer, const struct table_cell *cell, uint32_t cells)
{
	uint32_t numbers[CELL_COUNT_MAX];

	for (uint32_t i = 1; i < cells; i++) {
		numbers[i] = load32(&cell->more);
		cell = table_cell(&writer->table, numbers[i]);
		if (cell == NULL || writer->slots[numbers[i]].role != ROLE_FREE ||
		    (i == 2 && numbers[2] == numbers[1]))
			return false;
	}
	if (load32(&cell->more) != 0)
		return false;
	for (uint32_t i = 1; i < cells; i++)
		writer->slots[numbers[i]].role = ROLE_MORE;
	return true;
}

static bool adopt_pin(struct pins_writer *writer, uint32_t number, uint32_t bucket)
{
	struct table_cell *cell = table_cell(&writer->table, number);
	struct slot *slot = &writer->slots[number];
	struct table_key key;
	struct pin pin;
	uint32_t cells;

	if (slot->role != ROLE_FREE || !table_read(&writer->table, cell, NULL, &pin))
		return false;
	key = table_key(&pin.client, &pin.address);
	cells = cell_count(pin.name.length);
	if (table_bucket_of(&writer->table, &key) != bucket)
		return false;
	slot->role = ROLE_PIN;
	if (!adopt_name(writer, cell, cells)) {
		slot->role = ROLE_FREE;
		return false;
	}
	slot->bucket = bucket;
	slot->client = client_get(writer, &pin.client);
	client_resize(writer, slot->client, writer->clients[slot->client].count + cells);
	writer->live += cells;
	writer->queue.nodes[number].order = order_of(pin.expiry);
	return true;
}

/* Takes the pins of a chain up to the first that makes no sense; the rest is cut off. */
static void adopt_chain(struct pins_writer *writer, uint32_t index)
{
	struct table_bucket *bucket = &writer->table.buckets[index];
	_Atomic uint32_t *link = &bucket->head;

	for (unsigned length = 0; load32(link) != 0; length++) {
		struct table_cell *cell = table_cell(&writer->table, load32(link));
		if (cell == NULL || length == TABLE_CHAIN_MAX ||
		    !adopt_pin(writer, load32(link), index)) {
			store32(link, 0);
			store32(&bucket->left, load32(&bucket->left) + 1);
			return;
		}
		link = &cell->next;
	}
}

/* Calls EACH for every element of SIZE octets between two offsets that is not all zero. */
static int scan(struct pins_writer *writer, int fd, size_t from, uint32_t elements, size_t size,
		void (*each)(struct pins_writer *writer, uint32_t index))
{
	static const uint8_t zeros[CELL_SIZE];
	uint8_t *buffer = malloc(SCAN_SIZE);
	uint32_t index = 0;
	int error = 0;

	if (buffer == NULL)
		return -ENOMEM;
	while (index < elements && error == 0) {
		ssize_t got = pread(fd, buffer, SCAN_SIZE, (off_t)(from + index * size));
		if (got < (ssize_t)size) {
			error = got < 0 ? -errno : -EPROTO;
			break;
		}
		for (size_t at = 0; at + size <= (size_t)got && index < elements;
		     at += size, index++)
			if (memcmp(buffer + at, zeros, size) != 0)
				each(writer, index);
	}
	free(buffer);
	return error;
}

/* A cell that was used once and belongs to no pin: cleared, and free. */
static void reclaim_cell(struct pins_writer *writer, uint32_t index)
{
	uint32_t number = index + 1;

	/* Cells of zeros between used ones were skipped by the scan. */
	for (; writer->fresh_cell <= number; writer->fresh_cell++) {
		struct slot *slot = &writer->slots[writer->fresh_cell];
		if (slot->role != ROLE_FREE)
			continue;
		slot->client = writer->free_cells;
		writer->free_cells = writer->fresh_cell;
	}
	if (writer->slots[number].role == ROLE_FREE && meta_of(&writer->table.cells[index]) != 0)
		store64(&writer->table.cells[index].meta, cell_meta(CELL_FREE, 0, 0));
}

static void *allocate(size_t count, size_t size)
{
	void *memory = mmap(NULL, count * size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void release(void *memory, size_t count, size_t size)
{
	if (memory != NULL)
		munmap(memory, count * size);
}

static int compare_words(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return first < second ? -1 : first > second;
}

/* Queues what was adopted, in order: each then lands near the end of its tree, in warm memory. */
static int enqueue_adopted(struct pins_writer *writer)
{
	size_t room = writer->live > 0 ? writer->live : 1, count = 0;
	uint64_t *words = allocate(room, sizeof(*words));

	if (words == NULL)
		return -ENOMEM;
	for (uint32_t number = 1; number < writer->fresh_cell; number++)
		if (writer->slots[number].role == ROLE_PIN)
			words[count++] = (uint64_t)writer->queue.nodes[number].order << 32 | number;
	qsort(words, count, sizeof(*words), compare_words);
	for (size_t i = 0; i < count; i++)
		pin_enqueue(writer, (uint32_t)words[i], (uint32_t)(words[i] >> 32));
	release(words, room, sizeof(*words));
	return 0;
}

static int rebuild(struct pins_writer *writer, int fd)
{
	struct pins_table *table = &writer->table;
	int error = scan(writer, fd, TABLE_PAGE, table->bucket_count, sizeof(struct table_bucket),
			 adopt_chain);

	if (error == 0)
		error = scan(writer, fd, table_cells_offset(table->bucket_count), table->capacity,
			     CELL_SIZE, reclaim_cell);
	if (error == 0)
		error = enqueue_adopted(writer);
	atomic_store_explicit(&table->header->live, writer->live, memory_order_relaxed);
	return error;
}

int pins_writer_open(int fd, struct pins_writer **out)
{
	struct pins_writer *writer = calloc(1, sizeof(*writer));
	size_t cells;
	int error;

	if (writer == NULL)
		return -ENOMEM;
	error = table_map(fd, PROT_READ | PROT_WRITE, &writer->table);
	if (error != 0) {
		free(writer);
		return error;
	}
	cells = (size_t)writer->table.capacity + 1;
	writer->queue.nodes = allocate(cells, sizeof(*writer->queue.nodes));
	writer->slots = allocate(cells, sizeof(*writer->slots));
	writer->clients = allocate(cells, sizeof(*writer->clients));
	writer->client_buckets = allocate(writer->table.bucket_count, sizeof(uint32_t));
	writer->fresh_cell = 1;
	writer->fresh_client = 1;
	memcpy(&writer->queue.salt, writer->table.seed, sizeof(writer->queue.salt));
	error = -ENOMEM;
	if (writer->queue.nodes != NULL && writer->slots != NULL && writer->clients != NULL &&
	    writer->client_buckets != NULL)
		error = rebuild(writer, fd);
	if (error != 0) {
		pins_writer_close(writer);
		return error;
	}
	*out = writer;
	return 0;
}

void pins_writer_close(struct pins_writer *writer)
{
	if (writer == NULL)
		return;

	size_t cells = (size_t)writer->table.capacity + 1;

	release(writer->client_buckets, writer->table.bucket_count, sizeof(uint32_t));
	release(writer->clients, cells, sizeof(*writer->clients));
	release(writer->slots, cells, sizeof(*writer->slots));
	release(writer->queue.nodes, cells, sizeof(*writer->queue.nodes));
	munmap(writer->table.header, writer->table.size);
	free(writer);
}

const struct pins_table *pins_writer_table(const struct pins_writer *writer)
{
	return &writer->table;
}

/* Putting. */

/* What a walk along the chain of a new pin finds. */
struct chain_survey {
	uint32_t found; /* the very pin, or 0 */
	unsigned length, same_key;
	uint32_t first, first_same_key; /* nearest expiry, or 0 */
};

static void survey_nearest(const struct pins_writer *writer, uint32_t number, uint32_t *nearest)
{
	const struct queue_node *nodes = writer->queue.nodes;

	if (*nearest == 0 || nodes[number].order < nodes[*nearest].order)
		*nearest = number;
}

/* The cell of a pin of ours: what a reader has to check, the writer has checked or written. */
static bool cell_is_of(const struct table_cell *cell, const struct table_key *key)
{
	return (meta_of(cell) >> 8 & 0xff) == key->family &&
	       load64(&cell->client[0]) == key->client[0] &&
	       load64(&cell->client[1]) == key->client[1] &&
	       load64(&cell->address[0]) == key->address[0] &&
	       load64(&cell->address[1]) == key->address[1];
}

static bool words_hold(const _Atomic uint64_t *words, const char *text, size_t length)
{
	for (size_t i = 0; length > 0; i++) {
		size_t part = length < sizeof(uint64_t) ? length : sizeof(uint64_t);
		uint64_t word = 0;
		memcpy(&word, text, part);
		if (load64(&words[i]) != word)
			return false;
		text += part;
		length -= part;
	}
	return true;
}

static bool cell_is_named(const struct pins_writer *writer, const struct table_cell *cell,
			  const struct name *name)
{
	const char *text = name->text;
	size_t left = name->length, part = left < CELL_NAME_SIZE ? left : CELL_NAME_SIZE;

	if ((meta_of(cell) >> 16 & 0xff) != name->length || !words_hold(cell->name, text, part))
		return false;
	for (left -= part, text += part; left > 0; left -= part, text += part) {
		cell = table_cell(&writer->table, load32(&cell->more));
		part = left < CELL_MORE_SIZE ? left : CELL_MORE_SIZE;
		if (cell == NULL || !words_hold(cell->more_name, text, part))
			return false;
	}
	return true;
}

static void survey_chain(const struct pins_writer *writer, uint32_t bucket,
			 const struct table_key *key, const struct name *name,
			 struct chain_survey *out)
{
	uint32_t number = load32(&writer->table.buckets[bucket].head);

	*out = (struct chain_survey){0};
	while (out->length < TABLE_CHAIN_MAX) {
		const struct table_cell *cell = table_cell(&writer->table, number);
		if (cell == NULL || writer->slots[number].role != ROLE_PIN)
			return;
		out->length++;
		survey_nearest(writer, number, &out->first);
		if (cell_is_of(cell, key)) {
			out->same_key++;
			survey_nearest(writer, number, &out->first_same_key);
			if (cell_is_named(writer, cell, name)) {
				out->found = number;
				return;
			}
		}
		number = load32(&cell->next);
	}
}

/* Rule 3 of table.h; the queues follow when the order changed. */
static void pin_refresh(struct pins_writer *writer, uint32_t number, uint64_t expiry)
{
	struct table_cell *cell = table_cell(&writer->table, number);

	if (expiry <= atomic_load_explicit(&cell->expiry, memory_order_relaxed))
		return;
	store64(&cell->expiry, expiry);
	if (writer->queue.nodes[number].order == order_of(expiry))
		return;
	pin_dequeue(writer, number);
	pin_enqueue(writer, number, order_of(expiry));
}

static void write_words(_Atomic uint64_t *words, size_t room, const char **text, size_t *length)
{
	for (size_t i = 0; i<room && * length> 0; i++) {
		size_t part = *length < sizeof(uint64_t) ? *length : sizeof(uint64_t);
		uint64_t word = 0;
		memcpy(&word, *text, part);
		store64(&words[i], word);
		*text += part;
		*length -= part;
	}
}

/* Writes NAME from CELL on, taking further cells as needed. */
static void write_name(struct pins_writer *writer, struct table_cell *cell, const struct name *name)
{
	const char *text = name->text;
	size_t length = name->length;

	write_words(cell->name, CELL_NAME_WORDS, &text, &length);
	while (length > 0) {
		uint32_t number = cell_take(writer);
		writer->slots[number].role = ROLE_MORE;
		store32(&cell->more, number);
		cell = table_cell(&writer->table, number);
		store32(&cell->next, 0);
		store64(&cell->meta, cell_meta(CELL_MORE, 0, 0));
		write_words(cell->more_name, CELL_MORE_WORDS, &text, &length);
	}
	store32(&cell->more, 0);
}

/* Rule 1 of table.h. There is room. */
static void pin_insert(struct pins_writer *writer, uint32_t bucket, const struct client_key *client,
		       const struct table_key *key, const struct name *name, uint64_t expiry)
{
	uint32_t number = cell_take(writer);
	struct table_cell *cell = table_cell(&writer->table, number);
	struct slot *slot = &writer->slots[number];

	*slot = (struct slot){
		.client = client_get(writer, client), .bucket = bucket, .role = ROLE_PIN};
	for (int i = 0; i < 2; i++) {
		store64(&cell->client[i], key->client[i]);
		store64(&cell->address[i], key->address[i]);
	}
	store64(&cell->expiry, expiry);
	write_name(writer, cell, name);
	store64(&cell->meta, cell_meta(CELL_PIN, (unsigned)key->family, name->length));
	store32(&cell->next, load32(&writer->table.buckets[bucket].head));
	store32(&writer->table.buckets[bucket].head, number);
	client_resize(writer, slot->client,
		      writer->clients[slot->client].count + cell_count(name->length));
	pin_enqueue(writer, number, order_of(expiry));
}

/* The pin that goes from a full table for one of CLIENT, 0 when that has none. */
static uint32_t choose_victim(struct pins_writer *writer, uint32_t client, uint64_t now)
{
	uint32_t first = queue_first(&writer->queue, QUEUE_ALL, writer->all);
	int own = client != 0 ? size_of(writer->clients[client].count) : -1, size = 31;

	if (atomic_load_explicit(&table_cell(&writer->table, first)->expiry,
				 memory_order_relaxed) <= now)
		return first;
	while (size > own && writer->sizes[size] == 0)
		size--;
	if (size > own) {
		uint32_t owner = writer->slots[first].client;
		client =
			size_of(writer->clients[owner].count) == size ? owner : writer->sizes[size];
	}
	return queue_first(&writer->queue, QUEUE_CLIENT, writer->clients[client].queue);
}

static void make_room(struct pins_writer *writer, const struct client_key *key, uint32_t cells,
		      const struct chain_survey *survey, uint64_t now)
{
	uint32_t client;

	if (survey->same_key >= PINS_PER_ADDRESS_MAX)
		pin_evict(writer, survey->first_same_key);
	else if (survey->length >= TABLE_CHAIN_MAX)
		pin_evict(writer, survey->first);

	/* The record goes with the client's last pin, so it is looked up each time. */
	while ((client = client_find(writer, key)) != 0 &&
	       writer->clients[client].count + cells > writer->table.per_client)
		pin_evict(writer,
			  queue_first(&writer->queue, QUEUE_CLIENT, writer->clients[client].queue));
	while (writer->live + cells > writer->table.capacity)
		pin_evict(writer, choose_victim(writer, client_find(writer, key), now));
}

int pins_put(struct pins_writer *writer, const struct client_key *client, const struct name *name,
	     const struct address *address, uint64_t expiry, uint64_t now)
{
	struct pins_table *table = &writer->table;
	struct table_key key = table_key(client, address);
	uint32_t bucket = table_bucket_of(table, &key), cells = cell_count(name->length);
	struct chain_survey survey;

	if (address_length(address) == 0 || name->length > NAME_TEXT_MAX)
		return -EINVAL;
	count_one(&table->header->written);
	if (expiry <= now) /* it would never be live */
		return 0;
	survey_chain(writer, bucket, &key, name, &survey);
	if (survey.found != 0) {
		pin_refresh(writer, survey.found, expiry);
		return 0;
	}
	if (cells > table->per_client || cells > table->capacity) {
		count_one(&table->header->failed);
		return -ENOSPC;
	}
	make_room(writer, client, cells, &survey, now);
	pin_insert(writer, bucket, client, &key, name, expiry);
	atomic_store_explicit(&table->header->live, writer->live, memory_order_relaxed);
	return 0;
}

size_t pins_drop_client(struct pins_writer *writer, const struct client_key *key)
{
	uint32_t client = client_find(writer, key);
	size_t dropped = 0;

	if (client == 0)
		return 0;

	uint32_t number = queue_first(&writer->queue, QUEUE_CLIENT, writer->clients[client].queue);
	while (number != 0) {
		pin_drop(writer, number);
		dropped++;
		if (client_find(writer, key) == 0)
			break;
		number = queue_first(&writer->queue, QUEUE_CLIENT, writer->clients[client].queue);
	}
	atomic_store_explicit(&writer->table.header->live, writer->live, memory_order_relaxed);
	return dropped;
}

size_t pins_expire(struct pins_writer *writer, uint64_t now, size_t max)
{
	size_t freed = 0;

	for (; freed < max; freed++) {
		uint32_t number = queue_first(&writer->queue, QUEUE_ALL, writer->all);
		if (number == 0)
			break;
		uint64_t expiry = atomic_load_explicit(&table_cell(&writer->table, number)->expiry,
						       memory_order_relaxed);
		if (now < PINS_EXPIRED_KEPT_MS || expiry >= now - PINS_EXPIRED_KEPT_MS)
			break;
		pin_drop(writer, number);
	}
	atomic_store_explicit(&writer->table.header->live, writer->live, memory_order_relaxed);
	return freed;
}
