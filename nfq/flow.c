/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/flow.h"

/*
 * Theory. A flow is a record in a static array. Each record is in exactly one of:
 *
 *   the free list        state FREE, linked by `chain`, last in first out
 *   a hash bucket        every other state, linked by `chain`, and
 *   the list of a state  one of FLOW_STATES lists, linked by `newer` and `older`, sorted by `when`
 *
 * The lists are sorted because `when` only grows and whoever sets it moves the flow to the young
 * end; so due flows stand at the old end and expiry never searches. Indices count from 1; 0 is
 * "none".
 *
 * Readers (stream, reassembly, the lent buffer) belong to flows that are read or may be read again.
 * READING flows lose theirs to nobody: they are bounded by client and leave within HEAD_TIMEOUT_MS.
 * For the rest, when room is wanted the oldest goes: first a decided flow, which the connection's
 * mark can do without (ALLOWED comes back to us after a reload alone, and is judged by its address
 * then; REFUSED comes back as "not known", which is refused), then an idle one, which is reset when it speaks again. So a full table closes paths and
 * opens none. Nor does it close those of others: a client that holds more than half of what has run
 * out gives up its own first, and where none of these is found near the old end, gets nothing new.
 *
 * Keys are chosen by clients, so the hash is keyed.
 */

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/hash.h"
#include "nfq/hold.h"
#include "nfq/limits.h"

#define BUCKETS FLOWS_MAX

/* Flows looked at for one that a crowding client can give up: a packet's time is bounded. */
#define CROWDED_SEARCH 64u

static struct flow flows[FLOWS_MAX + 1];
static struct flow_use uses[FLOWS_MAX + 1]; /* apart: most flows never have one */
static uint32_t buckets[BUCKETS];
static uint32_t free_flows, fresh_flows;

static struct reader_slot readers[READERS_MAX];
static uint32_t free_readers[READERS_MAX];
static uint32_t returned_readers, fresh_readers;

static struct list {
	uint32_t oldest, youngest, count;
} lists[FLOW_STATES];

static uint16_t reading_by_client[CLIENT_SLOTS];
static uint32_t idle_by_client[CLIENT_SLOTS]; /* OPENED and QUIET */
static uint32_t readers_by_client[CLIENT_SLOTS];
static uint8_t hash_key[16];
static uint64_t crowded;

static_assert((BUCKETS & (BUCKETS - 1)) == 0, "a mask picks the bucket");
static_assert((CLIENT_SLOTS & (CLIENT_SLOTS - 1)) == 0, "a mask picks the slot");
static_assert(READING_PER_CLIENT <= UINT16_MAX, "counted in 16 bits");
static_assert(sizeof(struct flow_key) == 44, "no padding: keys are hashed as bytes");
static_assert(sizeof(struct flow) <= 184, "documented in limits.h");

void flow_init(const uint8_t seed[16])
{
	memcpy(hash_key, seed, sizeof(hash_key));
	memset(buckets, 0, sizeof(buckets));
	memset(lists, 0, sizeof(lists));
	memset(reading_by_client, 0, sizeof(reading_by_client));
	memset(idle_by_client, 0, sizeof(idle_by_client));
	memset(readers_by_client, 0, sizeof(readers_by_client));
	free_flows = 0;
	fresh_flows = 1;
	returned_readers = 0;
	fresh_readers = 0;
	crowded = 0;
	hold_init();
	buffers_init();
}

static uint32_t index_of(const struct flow *flow)
{
	return (uint32_t)(flow - flows);
}

static uint32_t *bucket_of(const struct flow_key *key)
{
	return &buckets[hash_sip(hash_key, key, sizeof(*key)) & (BUCKETS - 1)];
}

struct flow_use *flow_use(const struct flow *flow)
{
	return &uses[index_of(flow)];
}

struct flow *flow_find(const struct flow_key *key)
{
	for (uint32_t at = *bucket_of(key); at != 0; at = flows[at].chain)
		if (memcmp(&flows[at].key, key, sizeof(*key)) == 0)
			return &flows[at];
	return NULL;
}

static void list_append(struct flow *flow)
{
	struct list *list = &lists[flow->state];

	flow->newer = 0;
	flow->older = list->youngest;
	if (list->youngest != 0)
		flows[list->youngest].newer = index_of(flow);
	else
		list->oldest = index_of(flow);
	list->youngest = index_of(flow);
	list->count++;
}

static void list_leave(struct flow *flow)
{
	struct list *list = &lists[flow->state];

	if (flow->newer != 0)
		flows[flow->newer].older = flow->older;
	else
		list->youngest = flow->older;
	if (flow->older != 0)
		flows[flow->older].newer = flow->newer;
	else
		list->oldest = flow->newer;
	list->count--;
}

static bool is_idle(const struct flow *flow)
{
	return flow->state == FLOW_OPENED || flow->state == FLOW_QUIET;
}

static void reader_return(struct flow *flow)
{
	if (flow->reader == NULL)
		return;
	readers_by_client[flow->client_slot]--;
	buffers_return(&flow->reader->head);
	buffers_return(&flow->reader->segments);
	free_readers[returned_readers++] = (uint32_t)(flow->reader - readers);
	flow->reader = NULL;
}

static void state_leave(struct flow *flow)
{
	list_leave(flow);
	if (flow->state == FLOW_READING)
		reading_by_client[flow->client_slot]--;
	idle_by_client[flow->client_slot] -= is_idle(flow);
}

/* FLOW has its state and is in no list. */
static void state_begin(struct flow *flow)
{
	list_append(flow);
	if (flow->state == FLOW_READING)
		reading_by_client[flow->client_slot]++;
	idle_by_client[flow->client_slot] += is_idle(flow);
}

void flow_remove(struct flow *flow, struct sink *sink)
{
	uint32_t *link = bucket_of(&flow->key);

	hold_refuse(flow, false, sink);
	reader_return(flow);
	state_leave(flow);
	while (*link != index_of(flow))
		link = &flows[*link].chain;
	*link = flow->chain;
	flow->state = FLOW_FREE;
	flow->chain = free_flows;
	free_flows = index_of(flow);
}

struct flow *flow_oldest(enum flow_state state)
{
	uint32_t index = lists[state].oldest;

	return index == 0 ? NULL : &flows[index];
}

/* The older of two, either of which may be NULL. */
static struct flow *older_of(struct flow *a, struct flow *b)
{
	if (a == NULL || b == NULL)
		return a == NULL ? b : a;
	return a->when <= b->when ? a : b;
}

/* Near the old end of STATE, a flow of a client that has more than SHARE of what HELD counts. */
static struct flow *find_crowding(enum flow_state state, const uint32_t *held, uint32_t share)
{
	uint32_t at = lists[state].oldest;

	for (unsigned i = 0; at != 0 && i < CROWDED_SEARCH; i++, at = flows[at].newer)
		if (held[flows[at].client_slot] > share)
			return &flows[at];
	return NULL;
}

/* What goes for a flow of the client at SLOT, or NULL. */
static struct flow *most_expendable(uint16_t slot)
{
	const uint32_t share = FLOWS_MAX / 2;
	struct flow *flow = older_of(flow_oldest(FLOW_ALLOWED), flow_oldest(FLOW_REFUSED));

	if (flow == NULL)
		flow = older_of(find_crowding(FLOW_QUIET, idle_by_client, share),
				find_crowding(FLOW_OPENED, idle_by_client, share));
	if (flow != NULL || idle_by_client[slot] > share)
		return flow;
	return older_of(flow_oldest(FLOW_QUIET), flow_oldest(FLOW_OPENED));
}

static uint32_t flow_take_free(uint16_t slot, struct sink *sink)
{
	if (free_flows == 0 && fresh_flows <= FLOWS_MAX)
		return fresh_flows++;
	if (free_flows == 0) {
		struct flow *victim = most_expendable(slot);
		if (victim == NULL)
			return 0;
		crowded++;
		flow_remove(victim, sink);
	}
	uint32_t index = free_flows;
	free_flows = flows[index].chain;
	return index;
}

struct flow *flow_add(const struct flow_key *key, const struct client_key *client, uint64_t now,
		      struct sink *sink)
{
	uint64_t slot = hash_sip(hash_key, client, sizeof(*client)) & (CLIENT_SLOTS - 1);
	uint32_t index = flow_take_free((uint16_t)slot, sink);

	if (index == 0)
		return NULL;
	struct flow *flow = &flows[index];
	uint32_t *bucket = bucket_of(key);

	*flow = (struct flow){.key = *key,
			      .client = *client,
			      .chain = *bucket,
			      .client_slot = (uint16_t)slot,
			      .state = FLOW_OPENED,
			      .opened = now,
			      .when = now};
	*bucket = index;
	state_begin(flow);
	return flow;
}

int flow_enter(struct flow *flow, enum flow_state state, uint64_t now)
{
	if (state == FLOW_READING && flow->state != FLOW_READING &&
	    reading_by_client[flow->client_slot] >= READING_PER_CLIENT)
		return -ENOBUFS;
	state_leave(flow);
	flow->state = (uint8_t)state;
	flow->when = now;
	state_begin(flow);
	if (state == FLOW_ALLOWED || state == FLOW_REFUSED)
		reader_return(flow);
	return 0;
}

void flow_touch(struct flow *flow, uint64_t now)
{
	if (flow->state == FLOW_READING)
		return;
	list_leave(flow);
	flow->when = now;
	list_append(flow);
}

static int reader_take(uint16_t slot, struct sink *sink, uint32_t *index)
{
	const uint32_t share = READERS_MAX / 2;

	if (returned_readers == 0 && fresh_readers < READERS_MAX) {
		*index = fresh_readers++;
		return 0;
	}
	if (returned_readers == 0) {
		struct flow *victim = find_crowding(FLOW_QUIET, readers_by_client, share);
		if (victim == NULL && readers_by_client[slot] <= share)
			victim = flow_oldest(FLOW_QUIET);
		if (victim == NULL)
			return -ENOBUFS;
		crowded++;
		flow_remove(victim, sink);
	}
	*index = free_readers[--returned_readers];
	return 0;
}

int flow_read(struct flow *flow, struct sink *sink)
{
	struct buffer buffer;
	uint32_t index;
	int error;

	if (flow->reader != NULL)
		return 0;
	error = buffers_borrow(BUFFER_SMALL, flow->client_slot, &buffer);
	if (error < 0)
		return error;
	error = reader_take(flow->client_slot, sink, &index);
	if (error < 0) {
		buffers_return(&buffer);
		return error;
	}
	struct reader_slot *reader = &readers[index];

	reader->head = buffer;
	reader->segments = (struct buffer){.bytes = NULL};
	reader->stream = NULL;
	reader->quic = NULL;
	if (flow->key.protocol == IPPROTO_TCP) {
		reader->stream = stream_init(reader->storage, buffer.bytes, buffer.capacity);
		reassembly_init(&reader->reassembly, flow->sequence);
	}
	reader->early = false;
	reader->asking_early = reader->hooked_early = false;
	reader->octets = 0;
	flow->reader = reader;
	readers_by_client[flow->client_slot]++;
	return 0;
}

void flow_expire(uint64_t now, struct sink *sink, unsigned max)
{
	static const struct {
		enum flow_state state;
		uint64_t age;
	} ages[] = {
		{FLOW_REFUSED, DECIDED_MS},
		{FLOW_QUIET, IDLE_MS},
		{FLOW_OPENED, IDLE_MS},
	};

	for (size_t i = 0; i < sizeof(ages) / sizeof(ages[0]); i++) {
		struct flow *flow = flow_oldest(ages[i].state);

		while (flow != NULL && max > 0 && now - flow->when >= ages[i].age) {
			flow_remove(flow, sink);
			flow = flow_oldest(ages[i].state);
			max--;
		}
	}
}

struct flow_counts flow_counts(void)
{
	struct flow_counts counts = {.readers = fresh_readers - returned_readers,
				     .crowded = crowded};

	for (unsigned state = 0; state < FLOW_STATES; state++)
		counts.in_state[state] = lists[state].count;
	return counts;
}
