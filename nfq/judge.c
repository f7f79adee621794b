/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/judge.h"

/*
 * Theory. Only packets that clients send come here; the kernel's rules keep back replies, packets
 * of allowed connections and bare acknowledgments of watched ones (docs/theory-of-operation.md).
 *
 *   not readable, a fragment, cut off   refused
 *   QUIC, where it is inspected         as TCP with its first bytes (nfq/datagram.c)
 *   other than TCP                      the engine's connect verdict, packet by packet
 *   SYN                                 the engine's connect verdict; a record of the flow
 *   RST                                 passes; what was held is dropped, the record refuses
 *   urgent data                         refused also without octets: the urgent pointer of an empty
 *                                       segment takes one out of later data, so the server would
 *                                       read another request than was judged
 *   other TCP, flow known               by the record: allowed, refused, or read (nfq/read.c)
 *   other TCP, flow not known           refused, but for empty packets of a watched connection, and
 *                                       what a reload asks again about: judged by the address
 *
 * A flow is not known after a restart of the gate, or when it was idle and made room for others.
 * What was judged of it is not known then, so it is reset and its client connects anew.
 *
 * The record's sequence numbers must be those of the server, or the gate would read another stream
 * than the server does. The kernel's connection tracking sees both directions, and its knowledge
 * comes with each packet as the connection's mark:
 *
 *   - Octets without a mark on a known flow belong to no connection that tracking holds valid: the
 *     server has not agreed to their sequence numbers. They are dropped.
 *   - A SYN without a mark is the first of its connection: it makes a new record. Two of them may
 *     have been queued before the first was let go; tracking keeps that one, so a record younger
 *     than SYN_SETTLE_MS, or SYN_SETTLE_READ_MS once octets came with the mark, is not replaced.
 *   - A SYN with a mark that differs from the record, or finds none: a client uses a port again
 *     whose old connection tracking and server still hold, as after a refusal, which resets the
 *     client alone. It passes, so that the server can say that it has the old connection (RFC 5961
 *     section 4) and the client can reset that; its next SYN comes without a mark. But the record,
 *     if any, refuses from now on: not an octet passes that might be read from the wrong place.
 *   - A RST ends the flow for the gate although the server may ignore it; its record refuses.
 *
 * Notices are copies of what the kernel's static floor refused ahead of the queue. They make an
 * audit line and touch nothing else: no flow, no verdict.
 *
 * Where the hook is to be asked about a destination, the first packet is held and its flow is ASKING;
 * a SYN with octets is not held but dropped: its sender repeats it without. The record of a flow that
 * is not TCP answers for the hook until it is forgotten.
 *
 * A policy reload changes gate->generation, and asks the kernel for the next packet of every
 * connection (nfq/tracking.c). A flow judged under another generation is judged again then, by the
 * last request that passed (struct flow_use); later requests are judged by the new policy anyway. A
 * connection that the table has no room for any more is judged by its bare address.
 */

#include <netinet/in.h>
#include <string.h>

#include "inspect/packet.h"
#include "nfq/datagram.h"
#include "nfq/flow.h"
#include "nfq/hold.h"
#include "nfq/limits.h"
#include "nfq/read.h"
#include "nfq/ruling.h"
#include "nfq/settle.h"

static void key_of(const struct arrival *arrival, const struct packet *packet, struct flow_key *key)
{
	memset(key, 0, sizeof(*key));
	memcpy(key->source, packet->source.bytes, 16);
	memcpy(key->destination, packet->destination.bytes, 16);
	key->source_port = packet->source_port;
	key->destination_port = packet->destination_port;
	key->interface = arrival->interface;
	key->protocol = packet->protocol;
	key->family = packet->destination.family;
}

static void report_connect(struct gate *gate, const struct flow_key *key,
			   const struct client_match *client, const struct ruling *ruling,
			   uint64_t now)
{
	if (ruling->verdict.outcome != OUTCOME_ALLOW || gate->log_allowed)
		ruling_report(gate, key, client, STAGE_CONNECT, &ruling->verdict, ruling->name,
			      NULL, now);
}

/* A record that refuses, so that repetitions are refused without another report. */
static void remember_refusal(struct gate *gate, const struct flow_key *key,
			     const struct client_match *client, const struct verdict *verdict,
			     uint32_t sequence, uint64_t now)
{
	struct flow *flow = flow_add(key, &client->key, now, gate->sink);

	if (flow == NULL)
		return; /* not known is refused as well */
	flow->sequence = sequence;
	flow->reason = verdict->reason;
	flow->generation = gate->generation;
	flow_enter(flow, FLOW_REFUSED, now);
}

/* PACKET has its addresses as far as they could be read; without any its mode cannot be known. */
static void judge_unreadable(struct gate *gate, const struct arrival *arrival,
			     const struct packet *packet, const char *problem, uint64_t now)
{
	struct verdict verdict = {
		.outcome = OUTCOME_DENY, .reason = REASON_MALFORMED, .enforced = true};
	struct client_match client;
	struct flow_key key;

	key_of(arrival, packet, &key);
	ruling_client(gate, &key, arrival->uid_known, arrival->uid, now, &client);
	if (packet->destination.family != ADDRESS_NONE) {
		struct subject subject = {.policy = client.policy, .root = client.root};
		verdict = ruling_unreadable(gate, &key, &client.key, &subject, now);
	}
	if (verdict_refuses(&verdict) && client.governed) {
		ruling_report(gate, &key, &client, STAGE_CONNECT, &verdict, NULL, problem, now);
		gate->counters[COUNTER_REFUSED]++;
		settle_pass(gate, arrival, MARK_REFUSED);
		return;
	}
	if (client.governed)
		ruling_report(gate, &key, &client, STAGE_CONNECT, &verdict, NULL, problem, now);
	settle_pass(gate, arrival, MARK_ALLOWED);
}

/* A new flow of CLIENT; NULL: ARRIVAL is dropped for want of room. */
static struct flow *add_flow(struct gate *gate, const struct arrival *arrival,
			     const struct flow_key *key, const struct client_match *client,
			     uint32_t sequence, uint64_t now)
{
	struct flow *flow = flow_add(key, &client->key, now, gate->sink);

	if (flow == NULL) {
		gate->counters[COUNTER_OVERFLOW]++;
		settle_drop(gate, arrival);
		return NULL;
	}
	flow->sequence = sequence;
	flow->policy = client->policy;
	flow->root = client->root;
	flow->uid = arrival->uid;
	flow->uid_known = arrival->uid_known;
	flow->generation = gate->generation;
	return flow;
}

/* Octets of FLOW are not read. NAME is the one its destination is pinned as, if there is one. */
static void remember_raw(struct flow *flow, const struct name *name)
{
	struct flow_use *use = flow_use(flow);

	*use = (struct flow_use){.kind = REQUEST_OTHER, .pinned = name != NULL};
	if (name != NULL) {
		use->host.kind = HOST_NAME;
		use->host.name = *name;
	}
	flow->used = true;
}

/* The last word on FLOW's destination, whose packets are all held. WORDS are the hook's or NULL. */
static void conclude_connect(struct gate *gate, struct flow *flow, struct ruling *ruling,
			     const char *words, uint64_t now)
{
	const struct verdict *verdict = &ruling->verdict;
	bool tcp = flow->key.protocol == IPPROTO_TCP;

	if (verdict->outcome != OUTCOME_ALLOW || (gate->log_allowed && !ruling->reads)) {
		struct client_match client;
		ruling_client(gate, &flow->key, flow->uid_known, flow->uid, now, &client);
		ruling_report(gate, &flow->key, &client, STAGE_CONNECT, verdict, ruling->name,
			      words, now);
	}
	if (verdict_refuses(verdict)) {
		settle_refuse(gate, flow, NULL, verdict, now);
		return;
	}
	flow->passed = flow->lifted = true;
	if (ruling->reads) {
		hold_release_all(flow, MARK_WATCHED, gate->sink);
		flow_enter(flow, FLOW_OPENED, now);
		return;
	}
	gate->counters[COUNTER_ALLOWED]++;
	hold_release_all(flow, MARK_ALLOWED, gate->sink);
	remember_raw(flow, ruling->name);
	if (tcp)
		flow_enter(flow, FLOW_ALLOWED, now);
	else
		flow_remove(flow, gate->sink);
}

/* Holds the first packet of a flow whose destination is put to the hook. */
static void ask_connect(struct gate *gate, const struct arrival *arrival,
			const struct packet *packet, const struct flow_key *key,
			const struct client_match *client, struct ruling *ruling, uint64_t now)
{
	struct flow *flow = add_flow(gate, arrival, key, client, packet->sequence, now);
	const char *problem;

	if (flow == NULL)
		return;
	flow->reads = key->protocol == IPPROTO_UDP && ruling->reads;
	if ((key->protocol == IPPROTO_TCP && packet->payload_length > 0) || flow->reads ||
	    hold_add(flow, arrival->id, arrival->mark, packet->sequence + 1) < 0)
		settle_drop(gate, arrival);
	else
		gate->counters[COUNTER_HELD]++;
	problem = ruling_ask(gate, flow, &ruling->verdict, NULL, now);
	if (problem == NULL)
		return;
	ruling->verdict = policy_hooked(gate->image, client->policy, &ruling->verdict, HOOK_ERROR);
	conclude_connect(gate, flow, ruling, problem, now);
}

/* One more packet that is not TCP while the hook is asked. */
static void hold_datagram(struct gate *gate, struct flow *flow, const struct arrival *arrival)
{
	if (hold_add(flow, arrival->id, arrival->mark, 0) < 0)
		settle_drop(gate, arrival);
	else
		gate->counters[COUNTER_HELD]++;
}

/*
 * Asks for FLOW's connect verdict again when the policy has changed since. True: FLOW and its held
 * packets are refused now, ARRIVAL is not yet ended.
 */
static bool judge_again(struct gate *gate, struct flow *flow, uint64_t now)
{
	const struct flow_use *use = flow_use(flow);
	struct client_match client;

	/* one that is ASKING is judged anew when its answer comes */
	if (flow->generation == gate->generation || flow->state == FLOW_REFUSED ||
	    flow->state == FLOW_ASKING)
		return false;
	ruling_client(gate, &flow->key, flow->uid_known, flow->uid, now, &client);
	flow->generation = gate->generation;
	flow->policy = client.policy;
	flow->root = client.root;
	if (!client.governed)
		return false;
	struct verdict verdict = ruling_again(gate, flow, &client);

	/* the hook has let it through, and the new policy would ask it again */
	if (!verdict_refuses(&verdict) || (verdict.asks_hook && flow->lifted))
		return false;
	ruling_report(gate, &flow->key, &client, flow->used ? STAGE_REQUEST : STAGE_CONNECT,
		      &verdict, flow->used && use->host.kind == HOST_NAME ? &use->host.name : NULL,
		      "cut by a new policy", now);
	settle_refuse(gate, flow, NULL, &verdict, now);
	return true;
}

/* A datagram of a flow that is read, or that waits for the hook. False: not such a flow. */
static bool judge_known_datagram(struct gate *gate, struct flow *flow,
				 const struct arrival *arrival, const struct packet *packet,
				 uint64_t now)
{
	if (judge_again(gate, flow, now)) {
		settle_pass(gate, arrival, MARK_REFUSED);
		return true;
	}
	switch ((enum flow_state)flow->state) {
	case FLOW_ASKING:
		if (flow->reads)
			settle_drop(gate, arrival);
		else
			hold_datagram(gate, flow, arrival);
		return true;
	case FLOW_OPENED:
	case FLOW_READING:
	case FLOW_QUIET:
		datagram_read(gate, flow, arrival, packet, now);
		return true;
	case FLOW_ALLOWED:
		settle_pass(gate, arrival, MARK_ALLOWED);
		return true;
	case FLOW_REFUSED:
		/* what was refused, again; its client may go on with something else */
		if (!flow->passed || flow->generation != gate->generation ||
		    flow->sequence != datagram_tag(packet))
			return false;
		settle_pass(gate, arrival, MARK_REFUSED);
		return true;
	case FLOW_FREE:
	case FLOW_STATES:
		break;
	}
	return false;
}

/* The first datagram of a flow that is read. */
static void open_datagrams(struct gate *gate, const struct arrival *arrival,
			   const struct packet *packet, const struct flow_key *key,
			   const struct client_match *client, const struct ruling *ruling,
			   uint64_t now)
{
	struct flow *flow;

	if (ruling->verdict.outcome != OUTCOME_ALLOW)
		report_connect(gate, key, client, ruling, now);
	flow = add_flow(gate, arrival, key, client, 0, now);
	if (flow == NULL)
		return;
	gate->counters[COUNTER_FLOWS]++;
	flow->passed = flow->reads = true;
	datagram_read(gate, flow, arrival, packet, now);
}

/* Everything but TCP and QUIC: judged packet by packet, reported once while its record is
 * remembered. */
static void judge_datagram(struct gate *gate, const struct arrival *arrival,
			   const struct packet *packet, const struct flow_key *key, uint64_t now)
{
	struct flow *flow = flow_find(key);
	struct client_match client;

	if (flow != NULL && judge_known_datagram(gate, flow, arrival, packet, now))
		return;
	if (flow != NULL && flow->passed) {
		flow_remove(flow, gate->sink);
		flow = NULL;
	}
	ruling_client(gate, key, arrival->uid_known, arrival->uid, now, &client);
	if (!client.governed) {
		settle_pass(gate, arrival, MARK_ALLOWED);
		return;
	}
	struct ruling ruling = ruling_connect(gate, key, &client, NULL, now);
	const struct verdict *verdict = &ruling.verdict;

	/* QUIC that nothing is remembered of: by its bare address */
	if (flow == NULL && arrival->again && arrival->mark_state == MARK_WATCHED &&
	    !verdict_refuses(verdict))
		ruling.verdict = ruling_forgotten(gate, key, &client, now);
	if (verdict->asks_hook && flow != NULL && flow->generation == gate->generation) {
		settle_pass(gate, arrival, MARK_REFUSED);
		return;
	}
	if (flow != NULL && (verdict->asks_hook || !verdict_refuses(verdict))) {
		flow_remove(flow, gate->sink);
		flow = NULL;
	}
	if (verdict->asks_hook) {
		ask_connect(gate, arrival, packet, key, &client, &ruling, now);
		return;
	}
	if (!verdict_refuses(verdict) && ruling.reads) {
		open_datagrams(gate, arrival, packet, key, &client, &ruling, now);
		return;
	}
	if (!verdict_refuses(verdict)) {
		report_connect(gate, key, &client, &ruling, now);
		gate->counters[COUNTER_ALLOWED]++;
		settle_pass(gate, arrival, MARK_ALLOWED);
		return;
	}
	if (flow == NULL || flow->reason != verdict->reason) {
		report_connect(gate, key, &client, &ruling, now);
		gate->counters[COUNTER_REFUSED]++;
		if (flow == NULL)
			remember_refusal(gate, key, &client, verdict, 0, now);
		else
			flow->reason = verdict->reason;
	}
	settle_pass(gate, arrival, MARK_REFUSED);
}

/* The connect verdict for a new TCP flow, carried out but for an allowed SYN with payload. */
static void judge_new_flow(struct gate *gate, const struct arrival *arrival,
			   const struct packet *packet, const struct flow_key *key, uint64_t now)
{
	struct client_match client;
	struct flow *flow;

	gate->counters[COUNTER_FLOWS]++;
	ruling_client(gate, key, arrival->uid_known, arrival->uid, now, &client);
	if (!client.governed) {
		settle_pass(gate, arrival, MARK_ALLOWED);
		return;
	}
	struct ruling ruling = ruling_connect(gate, key, &client, NULL, now);

	if (ruling.verdict.asks_hook) {
		ask_connect(gate, arrival, packet, key, &client, &ruling, now);
		return;
	}
	if (verdict_refuses(&ruling.verdict)) {
		report_connect(gate, key, &client, &ruling, now);
		remember_refusal(gate, key, &client, &ruling.verdict, packet->sequence, now);
		gate->counters[COUNTER_REFUSED]++;
		settle_pass(gate, arrival, MARK_REFUSED);
		return;
	}
	/* An allowed flow whose requests are read is reported with the first of them. */
	if (ruling.verdict.outcome != OUTCOME_ALLOW || !ruling.reads)
		report_connect(gate, key, &client, &ruling, now);
	flow = add_flow(gate, arrival, key, &client, packet->sequence, now);
	if (flow == NULL)
		return;
	flow->passed = true;
	if (!ruling.reads) {
		gate->counters[COUNTER_ALLOWED]++;
		remember_raw(flow, ruling.name);
		flow_enter(flow, FLOW_ALLOWED, now);
		settle_pass(gate, arrival, MARK_ALLOWED);
	} else if (packet->payload_length > 0) {
		read_packet(gate, flow, arrival, packet, now);
	} else {
		settle_pass(gate, arrival, MARK_WATCHED);
	}
}

/* A packet of a known flow that begins no other. */
static void judge_known(struct gate *gate, struct flow *flow, const struct arrival *arrival,
			const struct packet *packet, uint64_t now)
{
	judge_again(gate, flow, now);
	if (packet->payload_length > 0 && arrival->mark_state == MARK_NONE &&
	    (packet->flags & PACKET_SYN) == 0 && flow->state != FLOW_REFUSED) {
		settle_drop(gate, arrival);
		return;
	}
	switch ((enum flow_state)flow->state) {
	case FLOW_ALLOWED:
		settle_pass(gate, arrival, MARK_ALLOWED);
		break;
	case FLOW_OPENED:
		if (packet->payload_length == 0 && (packet->flags & PACKET_URG) == 0) {
			settle_pass(gate, arrival, MARK_WATCHED);
			flow_touch(flow, now);
			break;
		}
		read_packet(gate, flow, arrival, packet, now);
		break;
	case FLOW_ASKING:
		if (flow->reader == NULL) {
			/* the SYN again, and nothing else can come */
			settle_drop(gate, arrival);
			break;
		}
		read_packet(gate, flow, arrival, packet, now);
		break;
	case FLOW_READING:
	case FLOW_QUIET:
		read_packet(gate, flow, arrival, packet, now);
		break;
	case FLOW_REFUSED:
	case FLOW_FREE:
	case FLOW_STATES:
		settle_pass(gate, arrival, MARK_REFUSED);
		break;
	}
}

void judge_hooked(struct gate *gate, struct flow *flow, uint64_t id, const struct hook_reply *reply,
		  uint64_t now)
{
	const char *words = reply->problem != NULL ? reply->problem : reply->reason;
	bool changed = flow->generation != gate->generation;
	struct client_match client;

	if (flow->state != FLOW_ASKING || flow->question != id)
		return;
	if (flow->reader == NULL && changed) {
		/* its sender repeats the packet, and the new policy judges it */
		flow_remove(flow, gate->sink);
		return;
	}
	if (flow->reader == NULL) {
		ruling_client(gate, &flow->key, flow->uid_known, flow->uid, now, &client);
		struct ruling ruling =
			ruling_connect(gate, &flow->key, &client, NULL, flow->opened);
		ruling.verdict =
			policy_hooked(gate->image, flow->policy, &ruling.verdict, reply->answer);
		conclude_connect(gate, flow, &ruling, words, now);
		return;
	}
	if (flow_enter(flow, FLOW_READING, now) < 0) {
		struct verdict verdict = ruling_own();
		gate->counters[COUNTER_OVERFLOW]++;
		ruling_report_flow(gate, flow, STAGE_REQUEST, &verdict, NULL,
				   "too many unfinished requests", now);
		settle_refuse(gate, flow, NULL, &verdict, now);
		return;
	}
	if (changed && judge_again(gate, flow, now))
		return;
	if (flow->key.protocol == IPPROTO_UDP)
		datagram_hooked(gate, flow, reply->answer, changed ? NULL : words, now);
	else
		read_hooked(gate, flow, reply->answer, changed ? NULL : words, now);
}

/* FLOW ends without a word to its client: what is held is dropped, what comes is refused. */
static void silence(struct gate *gate, struct flow *flow, uint64_t now)
{
	if (flow == NULL || flow->state == FLOW_REFUSED)
		return;
	hold_refuse(flow, false, gate->sink);
	flow_enter(flow, FLOW_REFUSED, now);
}

/* A SYN on a connection that is marked already, and not by this SYN as far as we know. */
static void judge_port_again(struct gate *gate, struct flow *flow, const struct arrival *arrival,
			     const struct packet *packet, const struct flow_key *key, uint64_t now)
{
	struct client_match client;

	silence(gate, flow, now);
	if (packet->payload_length > 0) {
		settle_drop(gate, arrival);
		return;
	}
	ruling_client(gate, key, arrival->uid_known, arrival->uid, now, &client);
	struct ruling ruling = ruling_connect(gate, key, &client, NULL, now);

	if (client.governed && verdict_refuses(&ruling.verdict)) {
		report_connect(gate, key, &client, &ruling, now);
		gate->counters[COUNTER_REFUSED]++;
		settle_pass(gate, arrival, MARK_REFUSED);
		return;
	}
	settle_pass(gate, arrival, MARK_WATCHED);
}

/* Whether a SYN without a mark may still belong to the time before FLOW's connection was marked. */
static bool is_settling(const struct flow *flow, uint64_t now)
{
	/* What is allowed without reading cannot be misread. */
	bool read = flow->state == FLOW_READING || flow->state == FLOW_QUIET ||
		    flow->state == FLOW_ALLOWED;

	return flow->passed && now - flow->opened < (read ? SYN_SETTLE_READ_MS : SYN_SETTLE_MS);
}

static void judge_syn(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		      const struct packet *packet, const struct flow_key *key, uint64_t now)
{
	bool marked = arrival->mark_state != MARK_NONE;
	bool same = flow != NULL && flow->sequence == packet->sequence;
	/* Its connection ended and the client, which got no answer, begins with the same SYN. */
	bool ended = flow != NULL && flow->state == FLOW_REFUSED && flow->passed && !marked;

	if (same && !ended && (flow->passed || flow->generation == gate->generation)) {
		judge_known(gate, flow, arrival, packet, now);
		return;
	}
	if (marked) {
		judge_port_again(gate, flow, arrival, packet, key, now);
		return;
	}
	if (flow != NULL && !same && is_settling(flow, now)) {
		settle_drop(gate, arrival);
		return;
	}
	if (flow != NULL)
		flow_remove(flow, gate->sink);
	judge_new_flow(gate, arrival, packet, key, now);
}

static void judge_unknown(struct gate *gate, const struct arrival *arrival,
			  const struct packet *packet, const struct flow_key *key, uint64_t now)
{
	const char *problem = "in the middle of a connection that the gate does not know";
	bool watched = packet->payload_length == 0 && arrival->mark_state == MARK_WATCHED;
	struct client_match client;

	if (watched && !arrival->again) {
		settle_pass(gate, arrival, MARK_WATCHED);
		return;
	}
	ruling_client(gate, key, arrival->uid_known, arrival->uid, now, &client);
	if (!client.governed) {
		settle_pass(gate, arrival, MARK_ALLOWED);
		return;
	}
	struct verdict verdict = ruling_own();

	if (arrival->again && (watched || arrival->mark_state == MARK_ALLOWED)) {
		verdict = ruling_forgotten(gate, key, &client, now);
		if (!verdict_refuses(&verdict)) {
			settle_pass(gate, arrival, watched ? MARK_WATCHED : MARK_ALLOWED);
			return;
		}
		problem = "cut by a new policy";
	}
	ruling_report(gate, key, &client, STAGE_REQUEST, &verdict, NULL, problem, now);
	gate->counters[COUNTER_REFUSED]++;
	remember_refusal(gate, key, &client, &verdict, packet->sequence, now);
	settle_pass(gate, arrival, MARK_REFUSED);
}

static void judge_reset(struct gate *gate, struct flow *flow, const struct arrival *arrival,
			const struct packet *packet, uint64_t now)
{
	if (packet->payload_length > 0) {
		/* RFC 9293 section 3.10.7.3 allows octets in a RST; no request is made of them. */
		settle_drop(gate, arrival);
		return;
	}
	silence(gate, flow, now);
	settle_pass(gate, arrival, MARK_WATCHED);
}

static void judge_tcp(struct gate *gate, const struct arrival *arrival, const struct packet *packet,
		      const struct flow_key *key, uint64_t now)
{
	struct flow *flow = flow_find(key);
	bool urgent = (packet->flags & PACKET_URG) != 0;

	if ((packet->flags & PACKET_RST) != 0)
		judge_reset(gate, flow, arrival, packet, now);
	else if (urgent && (flow == NULL || (packet->flags & PACKET_SYN) != 0))
		settle_drop(gate, arrival);
	else if ((packet->flags & (PACKET_SYN | PACKET_ACK)) == PACKET_SYN)
		judge_syn(gate, flow, arrival, packet, key, now);
	else if (flow != NULL)
		judge_known(gate, flow, arrival, packet, now);
	else
		judge_unknown(gate, arrival, packet, key, now);
}

void judge_packet(struct gate *gate, const struct arrival *arrival, uint64_t now)
{
	static const char *const problems[] = {
		[PACKET_OK] = "",
		[PACKET_TRUNCATED] = "truncated packet",
		[PACKET_BAD_HEADER] = "malformed packet header",
		[PACKET_FRAGMENT] = "fragment",
	};
	struct packet packet = {.protocol = 0};
	struct flow_key key;
	enum packet_error error;

	gate->counters[COUNTER_PACKETS]++;
	error = packet_read(arrival->bytes, arrival->length, &packet);
	if (error == PACKET_OK && !arrival->whole)
		error = PACKET_TRUNCATED;
	if (error == PACKET_OK && packet.more_fragments)
		error = PACKET_FRAGMENT;
	if (error != PACKET_OK) {
		judge_unreadable(gate, arrival, &packet, problems[error], now);
		return;
	}
	key_of(arrival, &packet, &key);
	if (packet.protocol == IPPROTO_TCP)
		judge_tcp(gate, arrival, &packet, &key, now);
	else
		judge_datagram(gate, arrival, &packet, &key, now);
}

/*
 * What the rules refused, the engine refuses as metadata in every mode. It says otherwise only where
 * the rules shut more than it does (an address that might carry another one in one of several
 * layouts), or have not followed a reload yet; the reason is that of the rules then.
 */
static struct verdict verdict_of_floor(const struct verdict *engine)
{
	if (engine->outcome == OUTCOME_DENY && engine->reason == REASON_METADATA)
		return *engine;
	return (struct verdict){
		.outcome = OUTCOME_DENY, .reason = REASON_METADATA, .enforced = true};
}

void judge_notice(struct gate *gate, const struct arrival *notice, uint64_t now)
{
	struct packet packet = {.protocol = 0};
	struct client_match client;
	struct flow_key key;

	/* With addresses alone it is still a packet that the floor refused. */
	packet_read_head(notice->bytes, notice->length, &packet);
	if (packet.destination.family == ADDRESS_NONE)
		return;
	key_of(notice, &packet, &key);
	ruling_client(gate, &key, notice->uid_known, notice->uid, now, &client);
	if (!client.governed)
		return;
	struct ruling ruling = ruling_connect(gate, &key, &client, NULL, now);

	ruling.verdict = verdict_of_floor(&ruling.verdict);
	report_connect(gate, &key, &client, &ruling, now);
	gate->counters[COUNTER_REFUSED]++;
}

/* Old flows forgotten at once; what is left is due again at the next call. */
#define EXPIRE_STEP 256u
/* How often old flows are looked for; their ages are coarse. */
#define EXPIRE_INTERVAL_MS 1000u

void judge_expire(struct gate *gate, uint64_t now)
{
	for (unsigned i = 0; i < EXPIRE_STEP; i++) {
		struct flow *flow = flow_oldest(FLOW_READING);

		if (flow == NULL || now - flow->when < HEAD_TIMEOUT_MS)
			break;
		read_overdue(gate, flow, now);
	}
	flow_expire(now, gate->sink, EXPIRE_STEP);
}

int judge_next_expiry(uint64_t now)
{
	struct flow_counts counts = flow_counts();
	const struct flow *reading = flow_oldest(FLOW_READING);
	uint64_t wait = EXPIRE_INTERVAL_MS;
	uint32_t known = 0;

	for (unsigned state = FLOW_OPENED; state < FLOW_STATES; state++)
		if (state != FLOW_ALLOWED)
			known += counts.in_state[state];
	if (known == 0)
		return -1;
	if (reading != NULL) {
		uint64_t due = reading->when + HEAD_TIMEOUT_MS;
		wait = due <= now ? 0 : due - now < wait ? due - now : wait;
	}
	return (int)wait;
}
