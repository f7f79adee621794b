/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <netinet/in.h>
#include <string.h>

#include "inspect/packet.h"
#include "tests/unit/nfq/fixture.h"

#define ISN          1000u
#define WATCHED_MARK 0x00020000u

static const struct verdict denied = {
	.outcome = OUTCOME_DENY, .reason = REASON_UNPINNED, .enforced = true};

static void test_syn_allowed(void **state)
{
	(void)state;
	uint32_t syn = SEND(.sequence = ISN, .flags = PACKET_SYN);
	assert_int_equal(ending_of(syn), WATCHED);
	/* A second one is the same flow: no other question, same end. */
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), WATCHED);
	assert_int_equal(engine.connects, 1);
	assert_int_equal(gate.counters[COUNTER_FLOWS], 1);
	assert_int_equal(audit_count, 0);
	/* An acknowledgment that found its way here (IPv6 with extension headers). */
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .mark = WATCHED_MARK)), WATCHED);
}

static void test_syn_refused(void **state)
{
	(void)state;
	engine.connect = denied;
	engine.pin_count = 1;
	name_from_text("one.example", 11, &engine.pins[0].name);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), REFUSED);
	assert_int_equal(audit_count, 1);
	assert_int_equal(audits[0].stage, STAGE_CONNECT);
	assert_int_equal(audits[0].reason, REASON_UNPINNED);
	assert_string_equal(audits[0].name.text, "one.example");
	assert_int_equal(gate.counters[COUNTER_REFUSED], 1);
	/* The next attempt is asked again. */
	engine.connect.outcome = OUTCOME_ALLOW;
	assert_int_equal(ending_of(SEND(.sequence = ISN + 7777, .flags = PACKET_SYN)), WATCHED);
}

static void test_audit_mode_lets_pass(void **state)
{
	(void)state;
	engine.connect = denied;
	engine.audit_mode = true;
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), WATCHED);
	assert_int_equal(audit_count, 1);
	assert_int_equal(audits[0].enforced, 0);
}

static void test_unread_destination(void **state)
{
	(void)state;
	engine.reads = false;
	gate.log_allowed = true;
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), ALLOWED);
	/* Queued before the connection had its mark. */
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .text = "SSH-2.0-x")), ALLOWED);
	assert_int_equal(engine.requests, 0);
	assert_int_equal(audit_count, 1);
	assert_int_equal(audits[0].outcome, OUTCOME_ALLOW);
}

static void test_ungoverned(void **state)
{
	(void)state;
	engine.connect = denied;
	engine.ignores = true;
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), ALLOWED);
	assert_int_equal(ending_of(SEND(.protocol = IPPROTO_UDP, .text = "x")), ALLOWED);
	assert_int_equal(ending_of(SEND(.sequence = 9, .text = "x", .port = 9)), ALLOWED);
	assert_int_equal(engine.connects, 0);
}

/* With clients by cgroup, what has no known one is nobody's, whatever the engine says of its uid. */
static void test_cgroups(void **state)
{
	(void)state;
	engine.cgroup = 7;
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), WATCHED);
	assert_int_equal(engine.origin.cgroup, 0); /* nobody needs it */
	engine.tells_cgroups = true;
	assert_int_equal(ending_of(SEND(.port = 4000, .sequence = ISN, .flags = PACKET_SYN)),
			 WATCHED);
	assert_int_equal(engine.origin.cgroup, 7);
	assert_int_equal(ending_of(SEND(.protocol = IPPROTO_UDP, .text = "x")), REFUSED);
	assert_int_equal(audits[audit_count - 1].reason, REASON_POLICY_ERROR);
	engine.cgroup = 0;
	assert_int_equal(ending_of(SEND(.port = 4001, .sequence = ISN, .flags = PACKET_SYN)),
			 REFUSED);
	/* Below a governed cgroup, and no client: not the host's either. */
	engine.cgroup = 8;
	assert_int_equal(ending_of(SEND(.port = 4003, .sequence = ISN, .flags = PACKET_SYN)),
			 REFUSED);
	assert_int_equal(audits[audit_count - 1].reason, REASON_POLICY_ERROR);
	engine.ignores = true; /* nor root's */
	assert_int_equal(ending_of(SEND(.port = 4004, .sequence = ISN, .flags = PACKET_SYN)),
			 REFUSED);
	engine.ignores = false;
	/* A guest's packets have no cgroup. */
	assert_int_equal(ending_of(SEND(.interface = 7, .sequence = ISN, .flags = PACKET_SYN)),
			 WATCHED);
	/* A better reason stays. */
	engine.connect = denied;
	assert_int_equal(ending_of(SEND(.port = 4002, .sequence = ISN, .flags = PACKET_SYN)),
			 REFUSED);
	assert_int_equal(audits[audit_count - 1].reason, REASON_UNPINNED);
}

static void test_datagrams(void **state)
{
	(void)state;
	assert_int_equal(ending_of(SEND(.protocol = IPPROTO_UDP, .text = "x")), ALLOWED);
	engine.connect = (struct verdict){
		.outcome = OUTCOME_DENY, .reason = REASON_PROTOCOL, .enforced = true};
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(ending_of(SEND(.protocol = IPPROTO_UDP, .text = "x")), REFUSED);
	assert_int_equal(audit_count, 1);
	assert_int_equal(audits[0].port, 443);
	assert_int_equal(audits[0].protocol, IPPROTO_UDP);
	assert_int_equal(ending_of(SEND(.protocol = IPPROTO_ICMP)), REFUSED);
	assert_int_equal(audit_count, 2);
	/* Another reason is another line; and an answer may change. */
	engine.connect.reason = REASON_METADATA;
	assert_int_equal(ending_of(SEND(.protocol = IPPROTO_UDP, .text = "x")), REFUSED);
	assert_int_equal(audit_count, 3);
	engine.connect.outcome = OUTCOME_ALLOW;
	assert_int_equal(ending_of(SEND(.protocol = IPPROTO_UDP, .text = "x")), ALLOWED);
	assert_int_equal(flow_counts().in_state[FLOW_REFUSED], 1); /* the ping */
}

static void test_unreadable(void **state)
{
	(void)state;
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .text = "GET", .cut = true)), REFUSED);
	assert_int_equal(audits[0].reason, REASON_MALFORMED);
	assert_string_equal(audits[0].detail, "truncated packet");
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .text = "G", .fragment = true)),
			 REFUSED);
	assert_string_equal(audits[1].detail, "fragment");
	engine.audit_mode = true;
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .text = "G", .fragment = true)),
			 ALLOWED);
	assert_int_equal(audits[2].enforced, 0);
}

static void test_unknown_flow(void **state)
{
	(void)state;
	/* After a restart: bare acknowledgments of a watched connection pass, octets do not. */
	assert_int_equal(ending_of(SEND(.sequence = 5, .mark = WATCHED_MARK)), WATCHED);
	assert_int_equal(ending_of(SEND(.sequence = 5, .unmarked = true)), REFUSED);
	assert_int_equal(audit_count, 1);
	assert_int_equal(audits[0].reason, REASON_POLICY_ERROR);
	assert_int_equal(
		ending_of(SEND(.sequence = 5, .mark = WATCHED_MARK, .text = "x", .port = 2)),
		REFUSED);
	assert_int_equal(
		ending_of(SEND(.sequence = 6, .mark = WATCHED_MARK, .text = "x", .port = 2)),
		REFUSED);
	assert_int_equal(audit_count, 2);
	/* A SYN of a connection that the kernel knows and we do not: it passes, octets do not. */
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN, .port = 3,
					.mark = WATCHED_MARK)),
			 WATCHED);
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .port = 3, .text = "GET /")), REFUSED);
	/* SYN+ACK opens nothing. */
	assert_int_equal(
		ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN | PACKET_ACK, .port = 4)),
		REFUSED);
}

/* An urgent pointer without octets takes one out of what follows: the server would read another
 * request than the gate. */
static void test_urgent(void **state)
{
	(void)state;
	const uint8_t urgent = PACKET_ACK | PACKET_URG;

	/* nothing is known of the flow */
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN | PACKET_URG)),
			 DROPPED);
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = urgent, .mark = WATCHED_MARK)),
			 DROPPED);
	/* opened, before its first octet */
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .flags = urgent)), REFUSED);
	assert_int_equal(audits[audit_count - 1].reason, REASON_MALFORMED);
	/* between segments of a head: what was held goes with it */
	SEND(.sequence = ISN, .flags = PACKET_SYN, .port = 2);
	uint32_t held = SEND(.sequence = ISN + 1, .text = "GET / HT", .port = 2);
	assert_int_equal(ending_of(held), HELD);
	SEND(.sequence = ISN + 9, .flags = urgent, .port = 2);
	assert_int_equal(ending_of(held), REFUSED);
	assert_int_equal(endings_missing(), 0);
}

static void test_other_beginning(void **state)
{
	const char *good = "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n";

	(void)state;
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	/* Both queued before the mark was there: the kernel keeps the first, and so do we. */
	assert_int_equal(ending_of(SEND(.sequence = 5000, .flags = PACKET_SYN)), DROPPED);
	now += SYN_SETTLE_MS;
	/* The kernel says it is new. */
	assert_int_equal(ending_of(SEND(.sequence = 5000, .flags = PACKET_SYN)), WATCHED);
	assert_int_equal(ending_of(SEND(.sequence = 5001, .text = good)), WATCHED);
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .text = "GET")), DROPPED);
	/* Octets of no connection that the kernel knows. */
	assert_int_equal(ending_of(SEND(.sequence = 5001 + (uint32_t)strlen(good), .text = good,
					.unmarked = true)),
			 DROPPED);
	/* The kernel has the connection: the server says what it knows, nothing is read any more.
	 */
	uint32_t held = SEND(.sequence = 5001 + (uint32_t)strlen(good), .text = "GET");
	assert_int_equal(ending_of(SEND(.sequence = 9, .flags = PACKET_SYN, .mark = WATCHED_MARK,
					.text = good)),
			 DROPPED);
	assert_int_equal(ending_of(held), DROPPED);
	assert_int_equal(ending_of(SEND(.sequence = 9, .flags = PACKET_SYN, .mark = WATCHED_MARK)),
			 WATCHED);
	assert_int_equal(ending_of(SEND(.sequence = 10, .text = good)), REFUSED);
	assert_int_equal(flow_counts().in_state[FLOW_REFUSED], 1);
	engine.connect = denied;
	assert_int_equal(ending_of(SEND(.sequence = 9, .flags = PACKET_SYN, .mark = WATCHED_MARK)),
			 REFUSED);
	assert_int_equal(audit_count, 1);
}

static void test_port_used_again_at_once(void **state)
{
	const char *good = "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n";

	(void)state;
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	now += SYN_SETTLE_READ_MS;
	/* Not an octet came: the mark may not be there yet. */
	assert_int_equal(ending_of(SEND(.sequence = 5000, .flags = PACKET_SYN)), DROPPED);
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .text = good)), WATCHED);
	assert_int_equal(ending_of(SEND(.sequence = 5000, .flags = PACKET_SYN)), WATCHED);
	assert_int_equal(ending_of(SEND(.sequence = 5001, .text = good)), WATCHED);
	assert_int_equal(ending_of(SEND(.sequence = 7000, .flags = PACKET_SYN)), DROPPED);
	now += SYN_SETTLE_READ_MS - 1;
	assert_int_equal(ending_of(SEND(.sequence = 7000, .flags = PACKET_SYN)), DROPPED);
	now += 1;
	assert_int_equal(ending_of(SEND(.sequence = 7000, .flags = PACKET_SYN)), WATCHED);
	assert_int_equal(flow_counts().in_state[FLOW_OPENED], 1);
}

static void test_reset(void **state)
{
	(void)state;
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	uint32_t held = SEND(.sequence = ISN + 1, .text = "GET / HTTP/1.1\r\n");
	assert_int_equal(ending_of(held), HELD);
	assert_int_equal(ending_of(SEND(.sequence = ISN + 17, .flags = PACKET_RST)), WATCHED);
	assert_int_equal(ending_of(held), DROPPED);
	assert_int_equal(ending_of(SEND(.sequence = ISN + 17, .text = "Host: a.example\r\n\r\n")),
			 REFUSED);
	/* The server may have ignored it: nothing begins anew until the kernel says so and time has
	 * passed. */
	assert_int_equal(ending_of(SEND(.sequence = 9000, .flags = PACKET_SYN)), DROPPED);
	assert_int_equal(
		ending_of(SEND(.sequence = 9000, .flags = PACKET_SYN, .mark = WATCHED_MARK)),
		WATCHED);
	assert_int_equal(ending_of(SEND(.sequence = 9001, .text = "GET /")), REFUSED);
	now += SYN_SETTLE_MS;
	assert_int_equal(ending_of(SEND(.sequence = 9000, .flags = PACKET_SYN)), WATCHED);
	/* The server had an old connection: the client resets it and begins with the same SYN. */
	assert_int_equal(ending_of(SEND(.sequence = 77, .flags = PACKET_RST)), WATCHED);
	assert_int_equal(
		ending_of(SEND(.sequence = 9000, .flags = PACKET_SYN, .mark = WATCHED_MARK)),
		REFUSED);
	assert_int_equal(ending_of(SEND(.sequence = 9000, .flags = PACKET_SYN)), WATCHED);
	/* Octets in a RST. */
	assert_int_equal(ending_of(SEND(.sequence = 9001, .flags = PACKET_RST, .text = "GET /")),
			 DROPPED);
	assert_int_equal(flow_counts().in_state[FLOW_OPENED], 1);
}

static void test_origin(void **state)
{
	(void)state;
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	assert_true(engine.origin.own);
	assert_string_equal(engine.origin_interface, "-");
	SEND(.sequence = ISN, .flags = PACKET_SYN, .interface = 1);
	assert_true(engine.origin.own);
	SEND(.sequence = ISN, .flags = PACKET_SYN, .interface = 7);
	assert_false(engine.origin.own);
	assert_string_equal(engine.origin_interface, "tap0");
	/* An interface that is gone is not this host. */
	SEND(.sequence = ISN, .flags = PACKET_SYN, .interface = 8);
	assert_false(engine.origin.own);
	assert_int_equal(engine.connects, 4); /* four flows: the interface is part of the key */
	SEND(.sequence = ISN, .flags = PACKET_SYN, .ipv6 = true);
	assert_int_equal(engine.origin.source.family, ADDRESS_IPV6);
}

static void test_reload(void **state)
{
	(void)state;
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	uint32_t held = SEND(.sequence = ISN + 1, .text = "GET / HTTP/1.1\r\n");
	gate.generation = 2;
	engine.connect = denied;
	uint32_t next = SEND(.sequence = ISN + 17, .text = "Host: good.example\r\n\r\n");
	assert_int_equal(ending_of(held), REFUSED);
	assert_int_equal(ending_of(next), REFUSED);
	assert_int_equal(audit_count, 1);
	assert_int_equal(engine.requests, 0);

	/* Allowed by the new policy as well: asked once, then read on. */
	engine.connect.outcome = OUTCOME_ALLOW;
	SEND(.sequence = ISN, .flags = PACKET_SYN, .port = 2);
	gate.generation = 3;
	engine.connects = 0;
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .port = 2,
					.text = "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n")),
			 WATCHED);
	SEND(.sequence = ISN + 39, .port = 2,
	     .text = "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n");
	assert_int_equal(engine.connects, 1);
}

#define GET_GOOD "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n"
#define MARK_A   0x00010000u /* allowed */

/* A flow that is decided: audit mode let octets pass that are no request. */
static void decided(void)
{
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	engine.audit_mode = true;
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .text = "GET / HTTP/1.1\n\n")),
			 ALLOWED);
	engine.audit_mode = false;
	audit_count = 0;
}

/* A decided connection comes back after a reload, with any packet of its client. */
static void test_again(void **state)
{
	(void)state;
	/* what was malformed is so still, and the new policy is not lenient */
	decided();
	gate.generation = 2;
	assert_int_equal(ending_of(SEND(.sequence = ISN + 20, .mark = MARK_A, .again = true)),
			 REFUSED);
	assert_int_equal(audits[0].reason, REASON_MALFORMED);
	assert_string_equal(audits[0].detail, "cut by a new policy");

	/* what is not read is judged by the name that its destination had */
	fixture_reset(state);
	engine.reads = false;
	engine.pins[0] = (struct pin){.expiry = now + 1000};
	name_from_text("raw.example", 11, &engine.pins[0].name);
	engine.pin_count = 1;
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), ALLOWED);
	engine.pin_count = 0;
	now += 10 * IDLE_MS;
	judge_expire(&gate, now);
	gate.generation = 2;
	assert_int_equal(ending_of(SEND(.sequence = ISN + 9, .mark = MARK_A, .again = true)),
			 ALLOWED);
	assert_string_equal(engine.last_pins, "raw.example ");
	assert_int_equal(engine.last.kind, REQUEST_OTHER);
	assert_int_equal(engine.requests, 1);
	/* once a generation */
	assert_int_equal(ending_of(SEND(.sequence = ISN + 9, .mark = MARK_A)), ALLOWED);
	assert_int_equal(engine.requests, 1);
	gate.generation = 3;
	engine.request = denied;
	assert_int_equal(
		ending_of(SEND(.sequence = ISN + 9, .text = "x", .mark = MARK_A, .again = true)),
		REFUSED);
}

/* The last request's name is all that counts, not what else the address is pinned as. */
static void test_again_by_name(void **state)
{
	(void)state;
	engine.pins[0] = (struct pin){.expiry = now + 1000};
	engine.pins[1] = (struct pin){.expiry = now + 1000};
	name_from_text("good.example", 12, &engine.pins[0].name);
	name_from_text("other.example", 13, &engine.pins[1].name);
	engine.pin_count = 2;
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .text = GET_GOOD)), WATCHED);
	gate.generation = 2;
	/* an acknowledgment inside a download */
	assert_int_equal(ending_of(SEND(.sequence = ISN + 39, .again = true)), WATCHED);
	assert_int_equal(engine.last.host.kind, HOST_NAME);
	assert_string_equal(engine.last.host.name.text, "good.example");
	gate.generation = 3;
	engine.request = denied;
	assert_int_equal(ending_of(SEND(.sequence = ISN + 39, .again = true)), REFUSED);
	assert_string_equal(audits[0].name.text, "good.example");
	assert_int_equal(audits[0].stage, STAGE_REQUEST);
}

/* Nothing is remembered of the connection. */
static void test_again_forgotten(void **state)
{
	(void)state;
	engine.pins[0] = (struct pin){.expiry = now + 1000};
	engine.pin_count = 1;
	gate.generation = 2;
	assert_int_equal(ending_of(SEND(.sequence = 1, .text = "x", .mark = MARK_A, .again = true)),
			 ALLOWED);
	/* a name that leads there is no help */
	assert_string_equal(engine.last_pins, "");
	assert_int_equal(ending_of(SEND(.sequence = 1, .again = true)), WATCHED);
	/* what was to be read cannot be any more */
	assert_int_equal(ending_of(SEND(.sequence = 1, .text = "x", .again = true)), REFUSED);
	engine.connect = denied;
	assert_int_equal(ending_of(SEND(.sequence = 1, .mark = MARK_A, .again = true, .port = 3)),
			 REFUSED);
	assert_int_equal(ending_of(SEND(.sequence = 1, .again = true, .port = 4)), REFUSED);
	assert_string_equal(audits[audit_count - 1].detail, "cut by a new policy");
}

static void test_full_table(void **state)
{
	static const struct client_key client = {{0}};

	(void)state;
	for (uint32_t i = 0; i < FLOWS_MAX; i++) {
		struct flow_key key = {.interface = i, .family = ADDRESS_IPV6};
		struct client_key other = client;
		memcpy(other.bytes, &i, sizeof(i));
		assert_int_equal(
			flow_enter(flow_add(&key, &other, now, gate.sink), FLOW_READING, now), 0);
	}
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), DROPPED);
	assert_int_equal(gate.counters[COUNTER_OVERFLOW], 1);
	engine.connect = denied;
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), REFUSED);
}

static const struct verdict floor_denied = {.outcome = OUTCOME_DENY,
					    .reason = REASON_METADATA,
					    .enforced = true,
					    .rule = {.source = SOURCE_FLOOR, .line = 42}};

static void test_notice(void **state)
{
	static const char long_text[1400] = "x";
	(void)state;

	engine.connect = floor_denied;
	NOTICE(.sequence = ISN, .flags = PACKET_SYN, .uid_known = true, .uid = 1000);
	assert_int_equal(audit_count, 1);
	assert_int_equal(audits[0].stage, STAGE_CONNECT);
	assert_int_equal(audits[0].outcome, OUTCOME_DENY);
	assert_int_equal(audits[0].reason, REASON_METADATA);
	assert_int_equal(audits[0].enforced, 1);
	assert_int_equal(audits[0].rule.source, SOURCE_FLOOR);
	assert_int_equal(audits[0].rule.line, 42);
	assert_int_equal(audits[0].port, 80);
	assert_int_equal(audits[0].protocol, IPPROTO_TCP);
	assert_string_equal(audits[0].client, "host");
	assert_int_equal(audits[0].addresses[0].family, ADDRESS_IPV4);
	assert_int_equal(audits[0].addresses[0].bytes[0], 192);
	assert_true(engine.origin.own && engine.origin.uid_known && engine.origin.uid == 1000);
	assert_int_equal(gate.counters[COUNTER_REFUSED], 1);
	assert_int_equal(gate.by_reason[REASON_METADATA], 1);

	/* Of a long packet the first octets came. */
	NOTICE(.protocol = IPPROTO_UDP, .text = long_text, .length = sizeof(long_text),
	       .ipv6 = true, .interface = 7);
	assert_int_equal(audit_count, 2);
	assert_int_equal(audits[1].port, 443);
	assert_int_equal(audits[1].protocol, IPPROTO_UDP);
	assert_int_equal(audits[1].addresses[0].family, ADDRESS_IPV6);
	assert_string_equal(audits[1].client, "2001:db8::2");
	assert_string_equal(engine.origin_interface, "tap0");
	NOTICE(.protocol = IPPROTO_ICMP);
	assert_int_equal(audits[2].protocol, IPPROTO_ICMP);

	/* It is no packet of a flow. */
	assert_int_equal(gate.counters[COUNTER_PACKETS], 0);
	assert_int_equal(gate.counters[COUNTER_FLOWS], 0);
	assert_int_equal(judge_next_expiry(now), -1);
	engine.connect = (struct verdict){.outcome = OUTCOME_ALLOW};
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), WATCHED);
	NOTICE(.sequence = ISN, .flags = PACKET_SYN);
	assert_int_equal(ending_of(SEND(.sequence = ISN + 1, .text = "GET /")), HELD);
}

/* The rules have refused it, whatever the engine says of it now. */
static void test_notice_against_the_engine(void **state)
{
	(void)state;
	NOTICE(.sequence = ISN, .flags = PACKET_SYN);
	engine.connect = denied;
	engine.audit_mode = true;
	NOTICE(.sequence = ISN, .flags = PACKET_SYN);
	assert_int_equal(audit_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(audits[i].outcome, OUTCOME_DENY);
		assert_int_equal(audits[i].reason, REASON_METADATA);
		assert_int_equal(audits[i].enforced, 1);
		assert_int_equal(audits[i].rule.line, 0);
	}
}

static void test_notice_without_a_line(void **state)
{
	struct arrival junk = {.bytes = (const uint8_t *)"\x45 and no more", .length = 15};
	(void)state;

	engine.connect = floor_denied;
	engine.ignores = true;
	NOTICE(.sequence = ISN, .flags = PACKET_SYN);
	engine.ignores = false;
	judge_notice(&gate, &junk, now);
	junk.length = 0;
	judge_notice(&gate, &junk, now);
	assert_int_equal(audit_count, 0);
	assert_int_equal(gate.counters[COUNTER_REFUSED], 0);

	/* A flood is counted, and reported at its rate. */
	for (unsigned i = 0; i < 1000; i++)
		NOTICE(.sequence = ISN, .flags = PACKET_SYN, .port = (uint16_t)(1 + i));
	assert_int_equal(audit_count, AUDIT_BURST);
	assert_int_equal(gate.by_reason[REASON_METADATA], 1000);
	now += 1000;
	NOTICE(.sequence = ISN, .flags = PACKET_SYN);
	assert_int_equal(audits[AUDIT_BURST].suppressed, 1000 - AUDIT_BURST);
}

static void test_next_expiry(void **state)
{
	(void)state;
	assert_int_equal(judge_next_expiry(now), -1);
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	assert_int_equal(judge_next_expiry(now), 1000);
	SEND(.sequence = ISN + 1, .text = "GET");
	now += HEAD_TIMEOUT_MS - 10;
	assert_int_equal(judge_next_expiry(now), 10);
	now += 20;
	assert_int_equal(judge_next_expiry(now), 0);
	judge_expire(&gate, now);
	assert_int_equal(judge_next_expiry(now), 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_syn_allowed, fixture_reset),
		cmocka_unit_test_setup(test_syn_refused, fixture_reset),
		cmocka_unit_test_setup(test_audit_mode_lets_pass, fixture_reset),
		cmocka_unit_test_setup(test_cgroups, fixture_reset),
		cmocka_unit_test_setup(test_unread_destination, fixture_reset),
		cmocka_unit_test_setup(test_ungoverned, fixture_reset),
		cmocka_unit_test_setup(test_datagrams, fixture_reset),
		cmocka_unit_test_setup(test_unreadable, fixture_reset),
		cmocka_unit_test_setup(test_unknown_flow, fixture_reset),
		cmocka_unit_test_setup(test_urgent, fixture_reset),
		cmocka_unit_test_setup(test_other_beginning, fixture_reset),
		cmocka_unit_test_setup(test_port_used_again_at_once, fixture_reset),
		cmocka_unit_test_setup(test_reset, fixture_reset),
		cmocka_unit_test_setup(test_origin, fixture_reset),
		cmocka_unit_test_setup(test_reload, fixture_reset),
		cmocka_unit_test_setup(test_again, fixture_reset),
		cmocka_unit_test_setup(test_again_by_name, fixture_reset),
		cmocka_unit_test_setup(test_again_forgotten, fixture_reset),
		cmocka_unit_test_setup(test_full_table, fixture_reset),
		cmocka_unit_test_setup(test_notice, fixture_reset),
		cmocka_unit_test_setup(test_notice_against_the_engine, fixture_reset),
		cmocka_unit_test_setup(test_notice_without_a_line, fixture_reset),
		cmocka_unit_test_setup(test_next_expiry, fixture_reset),
	};
	return cmocka_run_group_tests_name("judge", tests, NULL, NULL);
}
