/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/datagram.h"

/*
 * Theory. A UDP flow that is read is QUIC, or it is refused. Its datagrams are held, in order of
 * arrival, until its ClientHello is judged (inspect/quic.c), and then go with it:
 *
 *   refused       the oldest held one is marked refused (filter answers with ICMP), the rest dropped
 *   allowed       all pass, marked watched
 *
 * A watched flow goes on in the kernel, but for datagrams with a long header (filter/ruleset.c):
 * these begin connections, and one socket may have several, to several names at one address. Each of
 * their hellos is judged; a refused one ends the flow with all its connections, as a refused request
 * ends a kept-alive TCP connection. A flow that comes from another address or port is another flow,
 * and what it begins with, a short header, is no QUIC that could be judged: it is refused.
 *
 * There is no acknowledgment to wait for and nothing to put in order that QUIC does not number
 * itself, so what cannot be held, or comes while the hook is asked, is dropped and sent again.
 *
 * After a restart of the gate, or when a flow made room for others, the mark says that it was
 * watched. What begins no connection passes then; what begins one is judged as in a new flow.
 *
 * The kernel may hand several datagrams over as one (UDP_SEGMENT), and does not say where each ends.
 * A server reads each by itself, so such a packet cannot be judged.
 */

#include <errno.h>

#include "base/hash.h"
#include "inspect/quic.h"
#include "nfq/hold.h"
#include "nfq/limits.h"
#include "nfq/settle.h"

#define LONG_HEADER 0x80u

/* What stands before the connection ID: first octet, version, length. */
#define ID_AT 6u

uint32_t datagram_tag(const struct packet *packet)
{
	static const uint8_t key[16];
	size_t length = ID_AT;

	if (packet->payload_length < ID_AT)
		return 0;
	length += packet->payload[ID_AT - 1];
	if (length > packet->payload_length)
		length = packet->payload_length;
	return (uint32_t)hash_sip(key, packet->payload + 1, length - 1);
}

/* Lends what the ClientHello needs. 0, -E2BIG, -ENOBUFS. */
static int grow(struct flow *flow)
{
	struct reader_slot *reader = flow->reader;
	struct buffer larger;
	int error = buffers_borrow(quic_buffer_needed(reader->quic), flow->client_slot, &larger);

	if (error < 0)
		return error;
	quic_rebuffer(reader->quic, larger.bytes, larger.capacity);
	buffers_return(&reader->head);
	reader->head = larger;
	return 0;
}

/* Takes back the judged octets, which repetitions are compared with, when buffers are wanted. */
static void return_buffer(struct reader_slot *reader)
{
	if (reader->head.class == BUFFER_CLASS_SMALL &&
	    buffers_lent(BUFFER_CLASS_SMALL) <= HISTORY_LENT_MAX)
		return;
	quic_rebuffer(reader->quic, NULL, 0);
	buffers_return(&reader->head);
}

/* The event is allowed: what was held passes, and ARRIVAL when it is not NULL. */
static void go_on(struct gate *gate, struct flow *flow, const struct arrival *arrival, uint64_t now)
{
	struct reader_slot *reader = flow->reader;
	const struct request *request = &quic_event(reader->quic)->request;
	bool opaque = request->malformed || request->kind != REQUEST_TLS; /* audit mode */

	quic_resume(reader->quic);
	if (opaque) {
		settle_allow(gate, flow, arrival, now);
		return;
	}
	hold_release_all(flow, MARK_WATCHED, gate->sink);
	if (arrival != NULL)
		settle_pass(gate, arrival, MARK_WATCHED);
	flow_enter(flow, FLOW_QUIET, now);
	return_buffer(reader);
}

static void judge_event(struct gate *gate, struct flow *flow, const struct arrival *arrival,
			const struct packet *packet, uint64_t now)
{
	struct verdict verdict;

	switch (settle_event(gate, flow, quic_event(flow->reader->quic), false, &verdict, now)) {
	case SETTLED_ALLOWED:
		go_on(gate, flow, arrival, now);
		break;
	case SETTLED_REFUSED:
		flow->sequence = datagram_tag(packet);
		settle_refuse(gate, flow, arrival, &verdict, now);
		break;
	case SETTLED_ASKING:
		settle_hold(gate, flow, arrival, 0);
		break;
	}
}

void datagram_hooked(struct gate *gate, struct flow *flow, enum hook_answer answer,
		     const char *words, uint64_t now)
{
	struct stream_event *event = quic_event(flow->reader->quic);
	struct verdict verdict;
	enum settled settled = settle_hooked_event(gate, flow, event, answer, words, &verdict, now);

	if (settled == SETTLED_REFUSED)
		settle_refuse(gate, flow, NULL, &verdict, now);
	else if (settled == SETTLED_ALLOWED)
		go_on(gate, flow, NULL, now);
}

static void wait_for_hello(struct gate *gate, struct flow *flow, const struct arrival *arrival,
			   uint64_t now)
{
	if (flow->state != FLOW_READING && flow_enter(flow, FLOW_READING, now) < 0)
		settle_give_up(gate, flow, arrival, "too many unfinished requests", now);
	else
		settle_hold(gate, flow, arrival, 0);
}

/* Gives FLOW what it is read with. 0, -ENOBUFS. */
static int prepare(struct gate *gate, struct flow *flow)
{
	int error = flow_read(flow, gate->sink);
	struct reader_slot *reader = flow->reader;

	if (error < 0 || reader->quic != NULL)
		return error;
	reader->quic = quic_init(reader->storage, gate->initial, reader->head.bytes,
				 reader->head.capacity);
	return 0;
}

/* In a flow that is not known any more, and was judged once: nothing that begins a connection. */
static bool goes_on(const struct flow *flow, const struct arrival *arrival,
		    const struct packet *packet)
{
	return arrival->mark_state == MARK_WATCHED && !quic_has_begun(flow->reader->quic) &&
	       (packet->payload_length == 0 || (packet->payload[0] & LONG_HEADER) == 0);
}

void datagram_read(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		   const struct packet *packet, uint64_t now)
{
	enum quic_step step;

	if (prepare(gate, flow) < 0) {
		gate->counters[COUNTER_OVERFLOW]++;
		settle_drop(gate, arrival);
		return;
	}
	struct quic *quic = flow->reader->quic;

	if (goes_on(flow, arrival, packet)) {
		settle_pass(gate, arrival, MARK_WATCHED);
		return;
	}
	if (arrival->merged && quic_is_judged(quic)) {
		settle_drop(gate, arrival);
		return;
	}
	if (arrival->merged) {
		settle_unreadable(gate, flow, arrival, "several datagrams in one packet", now);
		return;
	}
	do
		step = quic_feed(quic, packet->payload, packet->payload_length);
	while (step == QUIC_ROOM && grow(flow) == 0);
	switch (step) {
	case QUIC_PASS:
		settle_pass(gate, arrival, MARK_WATCHED);
		flow_touch(flow, now);
		break;
	case QUIC_HOLD:
		wait_for_hello(gate, flow, arrival, now);
		break;
	case QUIC_EVENT:
		judge_event(gate, flow, arrival, packet, now);
		break;
	case QUIC_ROOM:
		settle_give_up(gate, flow, arrival, "no room for a ClientHello", now);
		break;
	case QUIC_DROP:
		if (arrival->mark_state == MARK_WATCHED && !quic_has_begun(quic))
			settle_pass(gate, arrival, MARK_WATCHED);
		else
			settle_drop(gate, arrival);
		break;
	}
}
