/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/hold.h"

/*
 * Theory: one pool of records; a record is free or in the list of exactly one flow. Indices count
 * from 1, 0 is "none", so that an untouched flow has an empty list. Records of the free list are
 * reused last in, first out.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "nfq/limits.h"

struct hold {
	uint32_t id, mark, end;
	uint32_t next;
};

static struct hold holds[HOLDS_MAX + 1];
static uint32_t free_first;
static uint32_t fresh; /* records from here on were never used */
static uint32_t count;
static uint16_t by_client[CLIENT_SLOTS];

static_assert(HOLDS_PER_CLIENT <= UINT16_MAX, "counted in 16 bits");
static_assert(HOLDS_PER_FLOW <= UINT16_MAX, "counted in 16 bits");

void hold_init(void)
{
	free_first = 0;
	fresh = 1;
	count = 0;
	memset(by_client, 0, sizeof(by_client));
}

uint32_t hold_count(void)
{
	return count;
}

int hold_add(struct flow *flow, uint32_t id, uint32_t mark, uint32_t end)
{
	uint32_t index = free_first;

	if (flow->hold_count >= HOLDS_PER_FLOW || by_client[flow->client_slot] >= HOLDS_PER_CLIENT)
		return -ENOBUFS;
	if (index != 0)
		free_first = holds[index].next;
	else if (fresh <= HOLDS_MAX)
		index = fresh++;
	else
		return -ENOBUFS;

	holds[index] = (struct hold){.id = id, .mark = mark, .end = end};
	if (flow->hold_last != 0)
		holds[flow->hold_last].next = index;
	else
		flow->hold_first = index;
	flow->hold_last = index;
	flow->hold_count++;
	by_client[flow->client_slot]++;
	count++;
	return 0;
}

/* Takes the record after PREVIOUS (0: the first) out of FLOW's list and returns a copy. */
static struct hold hold_take(struct flow *flow, uint32_t previous)
{
	uint32_t *link = previous == 0 ? &flow->hold_first : &holds[previous].next;
	uint32_t index = *link;
	struct hold hold = holds[index];

	*link = hold.next;
	if (flow->hold_last == index)
		flow->hold_last = previous;
	holds[index].next = free_first;
	free_first = index;
	flow->hold_count--;
	by_client[flow->client_slot]--;
	count--;
	return hold;
}

unsigned hold_release(struct flow *flow, enum mark_state state, struct sink *sink)
{
	unsigned released = 0;
	uint32_t previous = 0;
	uint32_t at = flow->hold_first;

	while (at != 0) {
		uint32_t next = holds[at].next;

		if (!reassembly_is_released(&flow->reader->reassembly, holds[at].end)) {
			previous = at;
		} else {
			struct hold hold = hold_take(flow, previous);
			sink->verdict(sink, hold.id, SINK_ACCEPT, hold.mark, state);
			released++;
		}
		at = next;
	}
	return released;
}

unsigned hold_release_all(struct flow *flow, enum mark_state state, struct sink *sink)
{
	unsigned released = 0;

	for (; flow->hold_first != 0; released++) {
		struct hold hold = hold_take(flow, 0);
		sink->verdict(sink, hold.id, SINK_ACCEPT, hold.mark, state);
	}
	return released;
}

unsigned hold_refuse(struct flow *flow, bool reset, struct sink *sink)
{
	unsigned refused = 0;

	for (; flow->hold_first != 0; refused++) {
		struct hold hold = hold_take(flow, 0);
		bool first = reset && refused == 0;
		sink->verdict(sink, hold.id, first ? SINK_ACCEPT : SINK_DROP, hold.mark,
			      MARK_REFUSED);
	}
	return refused;
}
