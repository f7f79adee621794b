/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/read.h"

/*
 * Theory. Every packet with payload of a watched flow goes: reassembly -> stream -> events ->
 * engine. It is held until every octet in it is judged; so not one octet of a refused request
 * leaves. What is left of the packets then follows from where the stream stands:
 *
 *   refused        the oldest held packet is marked refused (filter resets the sender), the rest is
 *                  dropped
 *   opaque         all pass, marked allowed: the connection never comes back
 *   half a head    the packet is held; HEAD_TIMEOUT_MS runs from the head's first packet
 *   body, between  all whose octets are given out pass, marked watched: the next request comes here
 *                  again
 *
 * A held packet is not acknowledged, so a sender stops after its first window. Then it repeats
 * itself: a duplicate of a held packet, or EARLY_HOLDS held ones, has the head judged by its
 * request line and Host, and from then on its packets pass as they come, but for the one that
 * completes or contradicts it. A duplicate of a held packet is dropped, since the original will go
 * or be refused. A packet that finds no room to be held is dropped too: its octets are kept, and
 * when its sender repeats it, it goes the way of a duplicate.
 *
 * A request that is put to the hook stops the stream at its event (FLOW_ASKING). What comes
 * meanwhile is sorted in and held; with the answer the stream goes on where it stopped, since the
 * reassembly keeps all that is not released. The hook is asked once about a head, also when it was
 * judged early.
 *
 * A FIN inside a head means that the head stays incomplete: refused. A bare FIN elsewhere passes;
 * most never come here (the kernel passes packets without payload), and do no harm: behind a held
 * segment the server sees a gap.
 *
 * Limit: octets that were judged and passed are compared with a repetition only as long as the
 * history is kept (HISTORY_LENT_MAX, the reassembly's buffer). A client that makes its own segments
 * could lose one behind us on purpose and repeat it with another name for the same pinned address.
 * It gains no address by that.
 */

#include <errno.h>

#include "nfq/hold.h"
#include "nfq/limits.h"
#include "nfq/ruling.h"
#include "nfq/settle.h"

/* Lends the stream a larger buffer. 0, -E2BIG, -ENOBUFS. */
static int grow_head(struct flow *flow)
{
	struct reader_slot *reader = flow->reader;
	struct buffer larger;
	int error = buffers_borrow(reader->head.bytes == NULL ? BUFFER_SMALL
							      : reader->head.capacity + 1,
				   flow->client_slot, &larger);

	if (error < 0)
		return error;
	stream_rebuffer(reader->stream, larger.bytes, larger.capacity);
	buffers_return(&reader->head);
	reader->head = larger;
	return 0;
}

/* Sorts PACKET in, lending room as it is asked for. 0, -E2BIG, -ENOBUFS. */
static int assemble(struct flow *flow, const struct packet *packet, struct segment *segment)
{
	struct reader_slot *reader = flow->reader;

	for (;;) {
		struct buffer larger;
		int error;

		reassembly_add(&reader->reassembly, packet, segment);
		if (segment->kind != SEGMENT_ROOM)
			return 0;
		error = buffers_borrow(segment->needed, flow->client_slot, &larger);
		if (error < 0)
			return error;
		error = reassembly_rebuffer(&reader->reassembly, larger.bytes, larger.capacity);
		if (error < 0) {
			buffers_return(&larger);
			return error;
		}
		buffers_return(&reader->segments);
		reader->segments = larger;
	}
}

enum fed {
	FED_MORE,    /* all octets read, the stream goes on */
	FED_OPAQUE,  /* nothing more is to be read */
	FED_REFUSED, /* reported, not yet carried out */
	FED_ASKING,  /* the hook is asked about a request; the octets from there on are put off */
	FED_STUCK    /* no buffer */
};

/* The event of READER's stream is allowed. */
static void pass_event(struct reader_slot *reader)
{
	stream_resume(reader->stream);
	reader->early = reader->hooked_early = false;
}

/* Gives the octets of SEGMENT to the stream and judges what it finds. *HEADS counts judged heads.
 */
static enum fed feed(struct gate *gate, struct flow *flow, const struct segment *segment,
		     unsigned *heads, struct verdict *verdict, uint64_t now)
{
	struct reader_slot *reader = flow->reader;
	struct stream *stream = reader->stream;
	const uint8_t *at = segment->bytes;
	size_t left = segment->length;
	enum settled settled;

	for (;;) {
		size_t took = stream_feed(stream, at, left);

		if (took > 0)
			at += took;
		left -= took;
		reader->octets += took;
		switch (stream_state(stream)) {
		case STREAM_EVENT:
			settled =
				settle_event(gate, flow, stream_event(stream), false, verdict, now);
			if (settled != SETTLED_ALLOWED)
				return settled == SETTLED_ASKING ? FED_ASKING : FED_REFUSED;
			pass_event(reader);
			(*heads)++;
			break;
		case STREAM_FULL:
			if (grow_head(flow) < 0)
				return FED_STUCK;
			break;
		case STREAM_BROKEN: /* its event was judged and, in audit mode, let pass */
		case STREAM_OPAQUE:
			return FED_OPAQUE;
		case STREAM_START:
		case STREAM_HEAD:
		case STREAM_BODY:
		case STREAM_BETWEEN:
			if (left == 0)
				return FED_MORE;
			if (took == 0)
				return FED_STUCK;
			break;
		}
	}
}

/* Octets of an unfinished head, or of what may become one, have been read. */
static bool is_half_read(const struct flow *flow)
{
	enum stream_state state = stream_state(flow->reader->stream);

	return state == STREAM_HEAD || (state == STREAM_START && flow->reader->octets > 0);
}

/* Takes back what a flow between heads does not need. */
static void return_buffers(struct reader_slot *reader)
{
	if (stream_is_idle(reader->stream)) {
		stream_rebuffer(reader->stream, NULL, 0);
		buffers_return(&reader->head);
	}
	if (reassembly_is_idle(&reader->reassembly) &&
	    (reader->segments.class != BUFFER_CLASS_SMALL ||
	     buffers_lent(BUFFER_CLASS_SMALL) > HISTORY_LENT_MAX) &&
	    reassembly_rebuffer(&reader->reassembly, NULL, 0) == 0)
		buffers_return(&reader->segments);
}

/* Everything given out so far is judged: held packets that have nothing else pass. */
static void release(struct gate *gate, struct flow *flow)
{
	reassembly_release(&flow->reader->reassembly);
	hold_release(flow, MARK_WATCHED, gate->sink);
}

/*
 * The sender waits for an acknowledgment before it sends the rest of a head. 1: what is known of
 * the head is allowed and its packets pass; 0: not known enough, or the hook is asked; -EACCES:
 * refused and reported.
 */
static int judge_early(struct gate *gate, struct flow *flow, struct verdict *verdict, uint64_t now)
{
	struct reader_slot *reader = flow->reader;
	struct stream_event *event;

	if (reader->early)
		return 1;
	if (flow->state == FLOW_ASKING)
		return 0;
	if (stream_state(reader->stream) != STREAM_HEAD)
		return 0;
	event = stream_early(reader->stream);
	if (event == NULL)
		return 0;
	switch (settle_event(gate, flow, event, true, verdict, now)) {
	case SETTLED_REFUSED:
		return -EACCES;
	case SETTLED_ASKING:
		return 0;
	case SETTLED_ALLOWED:
		break;
	}
	reader->early = true;
	return 1;
}

/* ARRIVAL, which is held already when it is NULL, left the stream inside a head. */
static void wait_for_head(struct gate *gate, struct flow *flow, const struct arrival *arrival,
			  const struct segment *segment, bool head_is_new, uint64_t now)
{
	struct verdict verdict;
	int early = 0;

	if (segment->finished) {
		settle_unreadable(gate, flow, arrival, "closed inside a request head", now);
		return;
	}
	if ((head_is_new || flow->state != FLOW_READING) &&
	    flow_enter(flow, FLOW_READING, now) < 0) {
		settle_give_up(gate, flow, arrival, "too many unfinished requests", now);
		return;
	}
	if (flow->reader->early || flow->hold_count + 1u >= EARLY_HOLDS)
		early = judge_early(gate, flow, &verdict, now);
	if (early < 0) {
		settle_refuse(gate, flow, arrival, &verdict, now);
	} else if (early > 0) {
		release(gate, flow);
		if (arrival != NULL)
			settle_pass(gate, arrival, MARK_WATCHED);
	} else if (arrival != NULL) {
		settle_hold(gate, flow, arrival, segment->end);
	}
}

/* Reads SEGMENT; HEADS were judged before it. ARRIVAL is NULL when its packets are held already. */
static void read_new(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		     const struct segment *segment, unsigned heads, uint64_t now)
{
	struct verdict verdict;

	switch (feed(gate, flow, segment, &heads, &verdict, now)) {
	case FED_REFUSED:
		settle_refuse(gate, flow, arrival, &verdict, now);
		return;
	case FED_STUCK:
		settle_give_up(gate, flow, arrival, "no room for a request head", now);
		return;
	case FED_OPAQUE:
		settle_allow(gate, flow, arrival, now);
		return;
	case FED_ASKING:
		if (arrival != NULL)
			settle_hold(gate, flow, arrival, segment->end);
		return;
	case FED_MORE:
		break;
	}
	if (is_half_read(flow)) {
		wait_for_head(gate, flow, arrival, segment, heads > 0, now);
		return;
	}
	release(gate, flow);
	if (arrival != NULL)
		settle_pass(gate, arrival, MARK_WATCHED);
	return_buffers(flow->reader);
	if (flow->state == FLOW_QUIET)
		flow_touch(flow, now);
	else
		flow_enter(flow, FLOW_QUIET, now);
}

/* All of ARRIVAL was seen before: it goes the way of the original. */
static void read_duplicate(struct gate *gate, struct flow *flow, const struct arrival *arrival,
			   const struct segment *segment, uint64_t now)
{
	struct reassembly *reassembly = &flow->reader->reassembly;
	struct verdict verdict;

	if (!reassembly_is_released(reassembly, segment->end)) {
		int early = judge_early(gate, flow, &verdict, now);

		if (early < 0) {
			settle_refuse(gate, flow, arrival, &verdict, now);
			return;
		}
		if (early > 0)
			release(gate, flow);
		/* The original of a packet that was let go just now is on its way. */
		settle_drop(gate, arrival);
		return;
	}
	settle_pass(gate, arrival, MARK_WATCHED);
	flow_touch(flow, now);
}

/*
 * Octets before the first of the flow are no retransmission: whoever takes them has another
 * beginning of the flow than we have.
 */
static bool is_before_flow(const struct flow *flow, const struct packet *packet)
{
	uint32_t next = flow->sequence + 1 + (uint32_t)flow->reader->octets;
	int64_t from_next = (int32_t)(packet->sequence - next);

	return packet->payload_length > 0 && (packet->flags & PACKET_SYN) == 0 &&
	       (int64_t)flow->reader->octets + from_next < 0;
}

void read_packet(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		 const struct packet *packet, uint64_t now)
{
	struct segment segment;
	int error = flow_read(flow, gate->sink);

	if (error == 0 && is_before_flow(flow, packet)) {
		settle_drop(gate, arrival);
		return;
	}
	if (error == 0)
		error = assemble(flow, packet, &segment);
	if (error == -ENOBUFS) {
		gate->counters[COUNTER_OVERFLOW]++;
		settle_drop(gate, arrival);
		return;
	}
	if (error < 0 && flow->state == FLOW_ASKING) {
		/* the hook takes its time; the sender repeats it */
		settle_drop(gate, arrival);
		return;
	}
	if (error < 0) {
		settle_give_up(gate, flow, arrival, "no room for the segments of a request", now);
		return;
	}
	switch (segment.kind) {
	case SEGMENT_EMPTY:
	case SEGMENT_PAST:
		settle_pass(gate, arrival, MARK_WATCHED);
		flow_touch(flow, now);
		break;
	case SEGMENT_NEW:
		if (flow->state == FLOW_ASKING)
			settle_hold(gate, flow, arrival, segment.end);
		else
			read_new(gate, flow, arrival, &segment, 0, now);
		break;
	case SEGMENT_DUPLICATE:
		read_duplicate(gate, flow, arrival, &segment, now);
		break;
	case SEGMENT_FUTURE:
		if (flow->state == FLOW_OPENED && flow_enter(flow, FLOW_READING, now) < 0)
			settle_give_up(gate, flow, arrival, "too many unfinished requests", now);
		else
			settle_hold(gate, flow, arrival, segment.end);
		break;
	case SEGMENT_CONTRADICTORY:
		settle_unreadable(gate, flow, arrival, segment.problem, now);
		break;
	case SEGMENT_OUTSIDE:
	case SEGMENT_ROOM: /* assemble() leaves none */
		settle_drop(gate, arrival);
		break;
	}
}

/* The octets that were put off while the hook was asked, if any. HEADS were judged just now. */
static void read_rest(struct gate *gate, struct flow *flow, unsigned heads, uint64_t now)
{
	struct reader_slot *reader = flow->reader;
	struct segment rest = {.kind = SEGMENT_NEW};

	rest.bytes =
		reassembly_given(&reader->reassembly, flow->sequence + 1 + (uint32_t)reader->octets,
				 &rest.length, &rest.finished);
	read_new(gate, flow, NULL, &rest, heads, now);
}

void read_hooked(struct gate *gate, struct flow *flow, enum hook_answer answer, const char *words,
		 uint64_t now)
{
	struct reader_slot *reader = flow->reader;
	bool early = reader->asking_early;
	struct stream_event *event =
		early ? stream_early(reader->stream) : stream_event(reader->stream);
	struct verdict verdict;
	enum settled settled = settle_hooked_event(gate, flow, event, answer, words, &verdict, now);

	if (settled == SETTLED_ASKING)
		return;
	if (settled == SETTLED_REFUSED) {
		settle_refuse(gate, flow, NULL, &verdict, now);
		return;
	}
	if (early) {
		reader->early = true;
		reader->hooked_early = words != NULL;
		reader->hooked = answer;
		release(gate, flow);
	} else {
		pass_event(reader);
	}
	read_rest(gate, flow, early ? 0 : 1, now);
}

void read_overdue(struct gate *gate, struct flow *flow, uint64_t now)
{
	settle_unreadable(gate, flow, NULL, "request head not complete in time", now);
}
