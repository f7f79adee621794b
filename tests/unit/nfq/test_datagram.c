/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <netinet/in.h>
#include <string.h>

#include "tests/unit/inspect/seal.h"
#include "tests/unit/nfq/fixture.h"

/* Sends SIZE octets over UDP to port 443; the packet's id. */
static uint32_t send_bytes(const uint8_t *bytes, size_t size, bool watched, uint16_t port)
{
	return SEND(.protocol = IPPROTO_UDP, .text = (const char *)bytes, .length = size,
		    .unmarked = !watched, .port = port);
}

static uint32_t send_frames(const struct seal *seal, const uint8_t *frames, size_t length,
			    bool watched)
{
	static uint8_t datagram[SEAL_SIZE];

	return send_bytes(datagram, seal_initial(seal, frames, length, datagram), watched, 0);
}

/* Octets [FROM, TO) of MESSAGE in a CRYPTO frame. */
static uint32_t send_part(const struct seal *seal, const uint8_t *message, size_t from, size_t to,
			  bool watched)
{
	static uint8_t frames[SEAL_SIZE];

	return send_frames(seal, frames, seal_crypto(from, message + from, to - from, frames),
			   watched);
}

static uint32_t send_hello(const struct seal *seal, const char *name, bool watched)
{
	static uint8_t message[2000];

	return send_part(seal, message, 0, seal_hello(name, 0, message), watched);
}

static int set_up(void **state)
{
	fixture_reset(state);
	engine.reads_quic = true;
	return 0;
}

static void test_allowed(void **state)
{
	struct seal seal = seal_first("original"), chosen;
	(void)state;

	uint32_t first = send_hello(&seal, "a.example", false);
	assert_int_equal(ending_of(first), WATCHED);
	assert_int_equal(engine.last.kind, REQUEST_TLS);
	assert_string_equal(engine.last.host.name.text, "a.example");
	assert_int_equal(engine.last.connection.protocol, IPPROTO_UDP);
	assert_int_equal(flow_counts().in_state[FLOW_QUIET], 1);
	assert_int_equal(gate.counters[COUNTER_ALLOWED], 1);
	chosen = seal;
	memcpy(chosen.to.bytes, "chosen-1", 8);
	chosen.number = 1;
	assert_int_equal(ending_of(send_frames(&chosen, (const uint8_t *)"\x01", 1, true)),
			 WATCHED);
	/* its mark may be gone while the gate knows it still */
	assert_int_equal(ending_of(send_bytes((const uint8_t *)"@short", 6, false, 0)), WATCHED);
	assert_int_equal(engine.requests, 1);
	assert_int_equal(engine.connects, 1);
}

static void test_held(void **state)
{
	struct seal seal = seal_first("original");
	uint8_t message[4000];
	size_t length = seal_hello("a.example", 1500, message);
	uint32_t ids[3];
	(void)state;

	ids[0] = send_part(&seal, message, 900, length, false);
	seal.number = 1;
	ids[1] = send_part(&seal, message, 900, length, false);
	assert_int_equal(ending_of(ids[0]), HELD);
	assert_int_equal(ending_of(ids[1]), HELD);
	assert_int_equal(flow_counts().in_state[FLOW_READING], 1);
	seal.number = 2;
	ids[2] = send_part(&seal, message, 0, 900, false);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ending_of(ids[i]), WATCHED);
		assert_int_equal(ending_order(ids[i]), i + 1);
	}
	assert_int_equal(hold_count(), 0);
}

static void test_refused(void **state)
{
	struct seal seal = seal_first("original"), other = seal_first("another1");
	uint8_t message[4000];
	size_t length = seal_hello("bad.example", 1500, message);
	(void)state;

	uint32_t held = send_part(&seal, message, 0, 900, false);
	seal.number = 1;
	uint32_t last = send_part(&seal, message, 900, length, false);
	assert_int_equal(ending_of(held), REFUSED);
	assert_int_equal(ending_of(last), DROPPED);
	assert_int_equal(audit_count, 1);
	assert_int_equal(audits[0].reason, REASON_NAME_MISMATCH);
	/* once more: refused without another line; another connection of the socket is judged */
	assert_int_equal(ending_of(send_part(&seal, message, 0, 900, false)), REFUSED);
	assert_int_equal(audit_count, 1);
	assert_int_equal(ending_of(send_hello(&other, "a.example", false)), WATCHED);
	/* and a refused one ends the flow */
	assert_int_equal(ending_of(send_hello(&seal, "bad.example", true)), REFUSED);
	assert_int_equal(audit_count, 2);
	assert_int_equal(flow_counts().in_state[FLOW_REFUSED], 1);
}

static void test_no_quic(void **state)
{
	uint8_t datagram[SEAL_SIZE] = {0xc0, 0, 0, 0, 7};
	(void)state;

	assert_int_equal(ending_of(send_bytes((const uint8_t *)"@short", 6, false, 0)), REFUSED);
	assert_int_equal(engine.last.kind, REQUEST_OTHER);
	assert_int_equal(ending_of(send_bytes(datagram, 1200, false, 1)), REFUSED);
	assert_int_equal(audits[1].reason, REASON_MALFORMED);
	datagram[0] = 0xe0; /* a Handshake packet: dropped, it begins nothing */
	datagram[4] = 1;
	assert_int_equal(ending_of(send_bytes(datagram, 1200, false, 2)), DROPPED);
	/* in a connection that was judged before the gate came, it passes */
	assert_int_equal(ending_of(send_bytes(datagram, 1200, true, 3)), WATCHED);
	assert_int_equal(ending_of(send_bytes((const uint8_t *)"@short", 6, true, 4)), WATCHED);
	datagram[0] = 0xc0;
	assert_int_equal(ending_of(send_bytes(datagram, 1200, true, 5)), REFUSED);

	engine.audit_mode = true;
	assert_int_equal(ending_of(send_bytes(datagram, 1200, false, 6)), ALLOWED);
	assert_int_equal(ending_of(send_bytes(datagram, 1200, false, 6)), ALLOWED);
}

static void test_destination(void **state)
{
	struct seal seal = seal_first("original");
	(void)state;

	engine.connect = (struct verdict){
		.outcome = OUTCOME_DENY, .reason = REASON_UNPINNED, .enforced = true};
	assert_int_equal(ending_of(send_hello(&seal, "a.example", false)), REFUSED);
	assert_int_equal(ending_of(send_hello(&seal, "a.example", false)), REFUSED);
	assert_int_equal(audit_count, 1);
	assert_int_equal(engine.requests, 0);
	/* pinned now */
	engine.connect = (struct verdict){.outcome = OUTCOME_ALLOW};
	assert_int_equal(ending_of(send_hello(&seal, "a.example", false)), WATCHED);
	/* a reload that closes it cuts it; the flow outlives its pin otherwise */
	engine.connect = (struct verdict){
		.outcome = OUTCOME_DENY, .reason = REASON_BLOCKED_HOST, .enforced = true};
	seal.number = 1;
	assert_int_equal(ending_of(send_frames(&seal, (const uint8_t *)"\x01", 1, true)), WATCHED);
	gate.generation++;
	engine.request = engine.connect;
	assert_int_equal(ending_of(send_frames(&seal, (const uint8_t *)"\x01", 1, true)), REFUSED);
	assert_int_equal(audit_count, 2);
}

static void test_hook(void **state)
{
	struct seal seal = seal_first("original");
	(void)state;

	engine.asks_request = true;
	uint32_t held = send_hello(&seal, "a.example", false);
	uint32_t dropped = send_hello(&seal, "a.example", false);
	assert_int_equal(ending_of(held), HELD);
	assert_int_equal(ending_of(dropped), DROPPED);
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(held), WATCHED);
	memcpy(seal.to.bytes, "another1", 8);
	seal.keys = seal.to;
	held = send_hello(&seal, "b.example", true);
	hook_says(1, HOOK_DENY);
	assert_int_equal(ending_of(held), REFUSED);
	assert_int_equal(audits[0].reason, REASON_CUSTOM);
}

static void test_hook_for_destination(void **state)
{
	struct seal seal = seal_first("original");
	(void)state;

	/* nothing that was not read is held */
	engine.asks_connect = true;
	assert_int_equal(ending_of(send_hello(&seal, "a.example", false)), DROPPED);
	assert_int_equal(ending_of(send_hello(&seal, "a.example", false)), DROPPED);
	assert_int_equal(asked_count, 1);
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(send_hello(&seal, "bad.example", false)), REFUSED);
	assert_int_equal(engine.requests, 1);
}

static void test_time_and_room(void **state)
{
	struct seal seal = seal_first("original");
	uint8_t message[2000];
	uint32_t ids[HOLDS_PER_FLOW + 1];
	(void)state;

	seal_hello("a.example", 1500, message);
	for (seal.number = 0; seal.number <= HOLDS_PER_FLOW; seal.number++)
		ids[seal.number] = send_part(&seal, message, 0, 900, false);
	assert_int_equal(ending_of(ids[HOLDS_PER_FLOW - 1]), HELD);
	assert_int_equal(ending_of(ids[HOLDS_PER_FLOW]), DROPPED);
	now += HEAD_TIMEOUT_MS - 1;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(ids[0]), HELD);
	now++;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(ids[0]), REFUSED);
	assert_int_equal(ending_of(ids[1]), DROPPED);
	assert_int_equal(audits[0].reason, REASON_MALFORMED);
}

/* Hellos that need more than the smallest buffer, and more at once than there are large ones. */
static void test_buffers(void **state)
{
	static uint8_t message[20000];
	struct seal seal = seal_first("original");
	size_t length = seal_hello("a.example", 15000, message);
	uint8_t frames[1500], datagram[SEAL_SIZE];
	uint32_t id = 0;
	(void)state;

	for (uint16_t port = 1; port < 3 * BUFFER_LARGE_COUNT; port++) {
		seal.number = 0;
		for (size_t at = 0; at < length; at += 1000, seal.number++) {
			size_t part = at + 1000 < length ? 1000 : length - at;
			size_t size = seal_crypto(at, message + at, part, frames);
			size = seal_initial(&seal, frames, size, datagram);
			id = send_bytes(datagram, size, false, port);
		}
		assert_int_equal(ending_of(id), WATCHED);
	}
	assert_int_equal(buffers_lent(BUFFER_CLASS_LARGE), 0);
}

static void test_merged(void **state)
{
	static uint8_t datagram[SEAL_SIZE];
	struct seal seal = seal_first("original");
	(void)state;

	size_t size = seal_initial(&seal, (const uint8_t *)"\x01", 1, datagram);
	uint32_t id = SEND(.protocol = IPPROTO_UDP, .text = (const char *)datagram, .length = size,
			   .unmarked = true, .merged = true);
	assert_int_equal(ending_of(id), REFUSED);
	assert_int_equal(audits[0].reason, REASON_MALFORMED);
	id = send_hello(&seal, "a.example", false);
	assert_int_equal(ending_of(id), WATCHED);
	id = SEND(.protocol = IPPROTO_UDP, .text = (const char *)datagram, .length = size,
		  .merged = true);
	assert_int_equal(ending_of(id), DROPPED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_allowed, set_up),
		cmocka_unit_test_setup(test_held, set_up),
		cmocka_unit_test_setup(test_refused, set_up),
		cmocka_unit_test_setup(test_no_quic, set_up),
		cmocka_unit_test_setup(test_destination, set_up),
		cmocka_unit_test_setup(test_hook, set_up),
		cmocka_unit_test_setup(test_hook_for_destination, set_up),
		cmocka_unit_test_setup(test_time_and_room, set_up),
		cmocka_unit_test_setup(test_buffers, set_up),
		cmocka_unit_test_setup(test_merged, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
