/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inspect/reassembly.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/*
 * Theory
 *
 * Four points on the circle of sequence numbers, in this order, and islands behind them:
 *
 *      base        released        next          island        island
 *   -----|=============|============|.............|======|......|====|----->
 *          history        unjudged       missing
 *
 * buffer[0] is the byte at `base`; every byte of a bar "=" is in the buffer at its distance from
 * `base`.
 *
 * Invariants: base <= released <= next; islands are ascending, not empty, do not touch each other
 * or `next`, and end within base + capacity; without a buffer all three points are one and there is
 * no island. A packet that is not taken (SEGMENT_ROOM, _OUTSIDE, _CONTRADICTORY) moves nothing.
 *
 * A packet is compared with whatever bar it overlaps before it is taken. What it says about bytes
 * before `base` cannot be compared any more: those bytes are judged and passed on, and the server
 * has most likely acknowledged them. A client that sees to it that they get lost behind the gate
 * could replace them (docs/threat-model.md); history narrows that, it does not close it.
 */

/* Half of what RFC 9293 section 3.4 can tell apart, the largest window of RFC 7323 section 2.3. */
#define BEHIND_MAX (1 << 30)

static_assert(REASSEMBLY_BUFFER_MAX < BEHIND_MAX, "distances fit into 31 bits");

/* How far A is behind B on the circle; negative when it is ahead. */
static int32_t distance(uint32_t a, uint32_t b)
{
	return (int32_t)(b - a);
}

static bool before(uint32_t a, uint32_t b)
{
	return distance(a, b) > 0;
}

static uint32_t later(uint32_t a, uint32_t b)
{
	return before(a, b) ? b : a;
}

static uint32_t earlier(uint32_t a, uint32_t b)
{
	return before(a, b) ? a : b;
}

/* The end of the last byte that is kept. */
static uint32_t kept_end(const struct reassembly *r)
{
	return r->island_count == 0 ? r->next : r->islands[r->island_count - 1].to;
}

void reassembly_init(struct reassembly *r, uint32_t sequence)
{
	*r = (struct reassembly){.first = sequence + 1};
	r->base = r->released = r->next = r->first;
}

/* Do BYTES, which start at SEQUENCE, equal what is kept in [from, to)? */
static bool equals_kept(const struct reassembly *r, uint32_t from, uint32_t to, uint32_t sequence,
			const uint8_t *bytes, size_t length)
{
	from = later(from, sequence);
	to = earlier(to, sequence + (uint32_t)length);
	if (!before(from, to))
		return true;
	return memcmp(r->buffer + (from - r->base), bytes + (from - sequence), to - from) == 0;
}

static bool is_consistent(const struct reassembly *r, uint32_t sequence, const uint8_t *bytes,
			  size_t length)
{
	if (!equals_kept(r, r->base, r->next, sequence, bytes, length))
		return false;
	for (unsigned i = 0; i < r->island_count; i++) {
		if (!equals_kept(r, r->islands[i].from, r->islands[i].to, sequence, bytes, length))
			return false;
	}
	return true;
}

/* The islands [*first, *last) that [from, to) overlaps or touches. */
static void find_islands(const struct reassembly *r, uint32_t from, uint32_t to, unsigned *first,
			 unsigned *last)
{
	unsigned i = 0, j;

	while (i < r->island_count && before(r->islands[i].to, from))
		i++;
	for (j = i; j < r->island_count && !before(to, r->islands[j].from);)
		j++;
	*first = i;
	*last = j;
}

static bool island_fits(const struct reassembly *r, uint32_t from, uint32_t to)
{
	unsigned first, last;

	find_islands(r, from, to, &first, &last);
	return first < last || r->island_count < REASSEMBLY_ISLANDS_MAX;
}

static void add_island(struct reassembly *r, uint32_t from, uint32_t to)
{
	struct reassembly_island *islands = r->islands;
	unsigned first, last;

	find_islands(r, from, to, &first, &last);
	if (first < last) {
		from = earlier(from, islands[first].from);
		to = later(to, islands[last - 1].to);
	}
	memmove(&islands[first + 1], &islands[last], (r->island_count - last) * sizeof(islands[0]));
	islands[first] = (struct reassembly_island){from, to};
	r->island_count = (uint8_t)(r->island_count + 1 - (last - first));
}

/* Moves `next` to END and over the islands it reaches. */
static void advance(struct reassembly *r, uint32_t end)
{
	unsigned taken = 0;

	r->next = end;
	for (; taken < r->island_count && !before(r->next, r->islands[taken].from); taken++)
		r->next = later(r->next, r->islands[taken].to);
	r->island_count = (uint8_t)(r->island_count - taken);
	memmove(r->islands, r->islands + taken, r->island_count * sizeof(r->islands[0]));
}

/* Gives up history so that the bytes up to END, NEEDED of them unjudged, fit. Some of it is kept,
 * so that not every packet moves the buffer. */
static void make_room(struct reassembly *r, uint32_t end, size_t needed)
{
	if (end - r->base <= r->capacity)
		return;

	uint32_t history = (uint32_t)(r->capacity - needed) / 2;
	uint32_t base = later(r->base, r->released - history);
	memmove(r->buffer, r->buffer + (base - r->base), kept_end(r) - base);
	r->base = base;
}

static void contradict(struct reassembly *r, struct segment *out, const char *problem)
{
	r->contradictory = true;
	out->kind = SEGMENT_CONTRADICTORY;
	out->problem = problem;
}

static void refuse_outside(struct segment *out, const char *problem)
{
	out->kind = SEGMENT_OUTSIDE;
	out->problem = problem;
}

/* Takes payload that goes beyond `next`. */
static void take(struct reassembly *r, uint32_t sequence, const uint8_t *bytes, size_t length,
		 struct segment *out)
{
	uint32_t end = out->end, furthest = later(end, kept_end(r)), old_next = r->next;
	size_t needed = furthest - r->released;
	bool in_order = !before(r->next, sequence);

	if (needed > REASSEMBLY_BUFFER_MAX) {
		refuse_outside(out, "segment too far ahead");
		return;
	}
	if (!in_order && !island_fits(r, sequence, end)) {
		refuse_outside(out, "too many gaps");
		return;
	}
	if (needed > r->capacity) {
		out->kind = SEGMENT_ROOM;
		out->needed = needed;
		return;
	}
	make_room(r, furthest, needed);
	if (before(sequence, r->base)) {
		bytes += r->base - sequence;
		length -= r->base - sequence;
		sequence = r->base;
	}
	memcpy(r->buffer + (sequence - r->base), bytes, length);
	if (!in_order) {
		add_island(r, sequence, end);
		out->kind = SEGMENT_FUTURE;
		return;
	}
	advance(r, end);
	out->kind = SEGMENT_NEW;
	out->bytes = r->buffer + (old_next - r->base);
	out->length = r->next - old_next;
}

/* What a FIN behind END says against what is known, or NULL. */
static const char *fin_problem(const struct reassembly *r, bool fin, uint32_t end)
{
	if (r->has_fin && before(r->fin, end))
		return "data past the FIN";
	if (!fin)
		return NULL;
	if (r->has_fin && r->fin != end)
		return "two different FINs";
	return before(end, kept_end(r)) ? "FIN before data that was seen" : NULL;
}

/* Notes the FIN of a packet that was taken, and whether the stream is complete. */
static void settle_fin(struct reassembly *r, bool fin, struct segment *out)
{
	if (fin) {
		r->has_fin = true;
		r->fin = out->end;
	}
	out->finished = r->has_fin && r->next == r->fin;
	if (!out->finished || r->fin_taken)
		return;
	r->fin_taken = true;
	if (out->kind != SEGMENT_NEW) { /* all data was there: only the FIN is new */
		out->kind = SEGMENT_NEW;
		out->bytes = NULL;
		out->length = 0;
	}
}

static void add_payload(struct reassembly *r, uint32_t sequence, const uint8_t *bytes,
			size_t length, struct segment *out)
{
	if (length == 0)
		out->kind = before(r->next, sequence) ? SEGMENT_FUTURE : SEGMENT_EMPTY;
	else if (!before(r->base, out->end))
		out->kind = SEGMENT_PAST;
	else if (!is_consistent(r, sequence, bytes, length))
		contradict(r, out, "a segment differs from an earlier one");
	else if (!before(r->next, out->end))
		out->kind = SEGMENT_DUPLICATE;
	else
		take(r, sequence, bytes, length, out);
}

/* Close enough to `next` for every distance below to fit its type. */
static bool is_near(const struct reassembly *r, uint32_t sequence, size_t length)
{
	int64_t offset = distance(r->next, sequence);

	return length <= REASSEMBLY_BUFFER_MAX && offset >= -BEHIND_MAX &&
	       offset + (int64_t)length <= REASSEMBLY_BUFFER_MAX;
}

void reassembly_add(struct reassembly *r, const struct packet *packet, struct segment *out)
{
	bool syn = (packet->flags & PACKET_SYN) != 0, fin = (packet->flags & PACKET_FIN) != 0;
	uint32_t sequence = packet->sequence + (syn ? 1 : 0);
	uint32_t end = sequence + (uint32_t)packet->payload_length;

	*out = (struct segment){.kind = SEGMENT_EMPTY, .end = end};
	if (r->contradictory) {
		contradict(r, out, "the flow contradicted itself before");
		return;
	}
	if (syn && sequence != r->first) {
		refuse_outside(out, "SYN of another flow");
		return;
	}
	if ((packet->flags & PACKET_URG) != 0 || (syn && fin)) {
		contradict(r, out, fin && syn ? "SYN with FIN" : "urgent data");
		return;
	}
	if (packet->payload_length == 0 && !fin) {
		out->finished = r->fin_taken;
		return;
	}
	if (!is_near(r, sequence, packet->payload_length)) {
		refuse_outside(out, "segment outside the window");
		return;
	}
	const char *problem = fin_problem(r, fin, end);
	if (problem != NULL) {
		contradict(r, out, problem);
		return;
	}
	add_payload(r, sequence, packet->payload, packet->payload_length, out);
	if (out->kind <= SEGMENT_FUTURE)
		settle_fin(r, fin, out);
}

const uint8_t *reassembly_given(const struct reassembly *r, uint32_t sequence, size_t *length,
				bool *finished)
{
	*length = before(sequence, r->next) ? r->next - sequence : 0;
	*finished = r->fin_taken;
	return *length == 0 ? NULL : r->buffer + (sequence - r->base);
}

void reassembly_release(struct reassembly *r)
{
	r->released = r->next;
}

bool reassembly_is_released(const struct reassembly *r, uint32_t end)
{
	return !before(r->released, end);
}

int reassembly_rebuffer(struct reassembly *r, uint8_t *buffer, size_t capacity)
{
	size_t needed = kept_end(r) - r->released;
	size_t history = r->released - r->base;

	if (capacity > REASSEMBLY_BUFFER_MAX)
		capacity = REASSEMBLY_BUFFER_MAX;
	if (buffer == NULL)
		capacity = 0;
	if (capacity < needed)
		return -EBUSY;
	if (history > capacity - needed)
		history = capacity - needed;

	uint32_t base = r->released - (uint32_t)history;
	if (history + needed > 0)
		memmove(buffer, r->buffer + (base - r->base), history + needed);
	r->base = base;
	r->buffer = buffer;
	r->capacity = (uint32_t)capacity;
	return 0;
}

bool reassembly_is_idle(const struct reassembly *r)
{
	return r->released == r->next && r->island_count == 0;
}
