/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/packet.h"
#include "tests/unit/nfq/fixture.h"

#define ISN   4294967200u /* the stream wraps around 2^32 within a request */
#define FIRST (ISN + 1)

#define GOOD "GET / HTTP/1.1\r\nHost: good.example\r\n\r\n"
#define BAD  "GET / HTTP/1.1\r\nHost: bad.example\r\n\r\n"

#define SIZE_OF_LONG_HEAD 60000

static int opened(void **state)
{
	fixture_reset(state);
	SEND(.sequence = ISN, .flags = PACKET_SYN);
	return 0;
}

static uint32_t text_at(uint32_t offset, const char *text)
{
	return SEND(.sequence = FIRST + offset, .text = text);
}

static uint32_t part_at(uint32_t offset, const char *text, size_t length)
{
	return SEND(.sequence = FIRST + offset, .text = text, .length = length);
}

static uint32_t reading(void)
{
	return flow_counts().in_state[FLOW_READING];
}

static void test_whole_request(void **state)
{
	(void)state;
	assert_int_equal(ending_of(text_at(0, GOOD)), WATCHED);
	assert_int_equal(engine.requests, 1);
	assert_int_equal(flow_counts().in_state[FLOW_QUIET], 1);
	assert_int_equal(hold_count(), 0);
	assert_int_equal(gate.counters[COUNTER_ALLOWED], 1);
	/* The next request on the same connection is judged as well. */
	assert_int_equal(ending_of(text_at(strlen(GOOD), BAD)), REFUSED);
	assert_int_equal(audit_count, 1);
	assert_int_equal(audits[0].stage, STAGE_REQUEST);
	assert_int_equal(audits[0].reason, REASON_NAME_MISMATCH);
	assert_string_equal(audits[0].name.text, "bad.example");
	/* Everything after it too, without another line. */
	assert_int_equal(ending_of(text_at(strlen(GOOD), BAD)), REFUSED);
	assert_int_equal(ending_of(text_at(strlen(GOOD BAD), "x")), REFUSED);
	assert_int_equal(ending_of(text_at(strlen(GOOD BAD), "")), REFUSED);
	assert_int_equal(audit_count, 1);
	assert_int_equal(gate.counters[COUNTER_REFUSED], 1);
}

/* A request cut at every place in two: the first half is held until the second has come. */
static void test_two_segments(void **state)
{
	for (size_t cut = 1; cut < strlen(GOOD); cut++) {
		opened(state);
		uint32_t first = part_at(0, GOOD, cut);
		assert_int_equal(ending_of(first), HELD);
		assert_int_equal(reading(), 1);
		uint32_t second = text_at((uint32_t)cut, &GOOD[cut]);
		assert_int_equal(ending_of(first), WATCHED);
		assert_int_equal(ending_of(second), WATCHED);
		assert_true(ending_order(first) < ending_order(second));
		assert_int_equal(reading(), 0);
	}
	for (size_t cut = 1; cut < strlen(BAD); cut++) {
		opened(state);
		uint32_t first = part_at(0, BAD, cut);
		assert_int_equal(ending_of(first), HELD);
		uint32_t second = text_at((uint32_t)cut, &BAD[cut]);
		/* One reset is enough. */
		assert_int_equal(ending_of(first), REFUSED);
		assert_int_equal(ending_of(second), DROPPED);
		assert_int_equal(audit_count, 1);
	}
}

static void test_out_of_order(void **state)
{
	(void)state;
	uint32_t third = part_at(20, &GOOD[20], strlen(GOOD) - 20);
	assert_int_equal(ending_of(third), HELD);
	assert_int_equal(reading(), 1);
	uint32_t second = part_at(10, &GOOD[10], 10);
	assert_int_equal(ending_of(second), HELD);
	uint32_t first = part_at(0, GOOD, 10);
	assert_int_equal(ending_of(third), WATCHED);
	assert_int_equal(ending_of(second), WATCHED);
	assert_int_equal(ending_of(first), WATCHED);
	assert_true(ending_order(third) < ending_order(second));
	assert_true(ending_order(second) < ending_order(first));
}

static void test_duplicates(void **state)
{
	(void)state;
	uint32_t first = part_at(0, GOOD, 10);
	/* While the original is held it stands for all its copies. */
	assert_int_equal(ending_of(part_at(0, GOOD, 10)), DROPPED);
	assert_int_equal(ending_of(part_at(3, &GOOD[3], 4)), DROPPED);
	assert_int_equal(ending_of(first), HELD);
	text_at(10, &GOOD[10]);
	assert_int_equal(ending_of(first), WATCHED);
	/* Passed: its copies pass. */
	assert_int_equal(ending_of(part_at(0, GOOD, 10)), WATCHED);
	assert_int_equal(ending_of(text_at(0, GOOD)), WATCHED);
	assert_int_equal(engine.requests, 1);
}

static void test_contradiction(void **state)
{
	(void)state;
	uint32_t first = part_at(0, GOOD, 10);
	uint32_t second = text_at(5, "XXXXXXXX");
	assert_int_equal(ending_of(first), REFUSED);
	assert_int_equal(ending_of(second), DROPPED);
	assert_int_equal(audits[0].reason, REASON_MALFORMED);
	assert_true(audits[0].detail[0] != '\0');

	/* Judged octets, while they are remembered: they may never have reached the server. */
	opened(state);
	assert_int_equal(ending_of(text_at(0, GOOD)), WATCHED);
	assert_int_equal(ending_of(text_at(0, BAD)), REFUSED);

	opened(state);
	engine.audit_mode = true;
	first = part_at(0, GOOD, 10);
	second = text_at(5, "XXXXXXXX");
	assert_int_equal(ending_of(first), ALLOWED);
	assert_int_equal(ending_of(second), ALLOWED);
	assert_int_equal(audits[0].enforced, 0);
}

static void test_malformed(void **state)
{
	(void)state;
	assert_int_equal(ending_of(text_at(0, "GET / HTTP/1.1\r\nHost: good.example\r\n"
					      "Host: good.example\r\n\r\n")),
			 REFUSED);
	assert_int_equal(audits[0].reason, REASON_MALFORMED);
	assert_true(audits[0].detail[0] != '\0');
	opened(state);
	engine.audit_mode = true;
	assert_int_equal(ending_of(text_at(0, "GET / HTTP/1.1\r\n\r\n")), ALLOWED);
	assert_int_equal(audit_count, 1);
}

static void test_audit_mode(void **state)
{
	(void)state;
	engine.audit_mode = true;
	assert_int_equal(ending_of(text_at(0, BAD)), WATCHED);
	assert_int_equal(ending_of(text_at(strlen(BAD), BAD)), WATCHED);
	assert_int_equal(audit_count, 2);
	assert_int_equal(audits[0].enforced, 0);
}

#define TOKEN "ghp_ABCDEFGHIJKLMNOPQRSTuvwxyz0123456789"

static void test_secrets(void **state)
{
	static const char *const targets[] = {
		"/?token=" TOKEN,
		"/" TOKEN "/raw",
		"/?t=%67hp%5FABCDEFGHIJKLMNOPQRSTuvwxyz0123456789",
		"/?t=%2567hp%255FABCDEFGHIJKLMNOPQRSTuvwxyz0123456789",
		"/?rate=100%&t=ghp%5fABCDEFGHIJKLMNOPQRSTuvwxyz0123456789%",
	};
	char head[256];

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		opened(state);
		snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: good.example\r\n\r\n",
			 targets[i]);
		assert_int_equal(ending_of(text_at(0, head)), REFUSED);
		assert_true(engine.last.secret && engine.last.secret_line > 0);
		assert_int_equal(audits[0].reason, REASON_SECRET_URL);
		assert_string_equal(audits[0].detail, "github-token");
		/* the record has the name of the shape alone */
		assert_null(memmem(&audits[0], sizeof(audits[0]), &TOKEN[4], 36));
	}
	/* a head that is cut inside its target */
	opened(state);
	uint32_t first = part_at(0, head, 40);
	assert_int_equal(ending_of(first), HELD);
	assert_int_equal(ending_of(text_at(40, &head[40])), DROPPED);
	assert_int_equal(ending_of(first), REFUSED);
	/* a second request on the connection */
	opened(state);
	assert_int_equal(ending_of(text_at(0, GOOD)), WATCHED);
	assert_int_equal(ending_of(text_at(strlen(GOOD), head)), REFUSED);
}

static void test_secrets_pass(void **state)
{
	static const char head[] = "GET /?token=" TOKEN " HTTP/1.1\r\nHost: good.example\r\n\r\n";

	/* nobody asked for a search */
	engine.searches = false;
	assert_int_equal(ending_of(text_at(0, head)), WATCHED);
	assert_false(engine.last.secret);
	/* reported, not refused */
	opened(state);
	engine.audit_mode = true;
	assert_int_equal(ending_of(text_at(0, head)), WATCHED);
	assert_int_equal(audits[0].reason, REASON_SECRET_URL);
	assert_string_equal(audits[0].detail, "github-token");
	/* a body is not searched, nor are fields */
	opened(state);
	assert_int_equal(ending_of(text_at(0, "GET /?ghp_short HTTP/1.1\r\nHost: good.example\r\n"
					      "Authorization: token " TOKEN "\r\n\r\n")),
			 WATCHED);
}

/* A target with nothing but what shapes begin with is searched to its end, in the memory there is. */
static void test_long_target(void **state)
{
	static char head[SIZE_OF_LONG_HEAD];
	size_t at = (size_t)sprintf(head, "GET /");

	(void)state;
	while (at + 100 < sizeof(head))
		at += (size_t)sprintf(&head[at], "-ey.%%2d");
	sprintf(&head[at], " HTTP/1.1\r\nHost: good.example\r\n\r\n");
	assert_int_equal(ending_of(text_at(0, head)), WATCHED);
	assert_false(engine.last.secret);
}

static void test_pipelining(void **state)
{
	(void)state;
	/* Two requests and the beginning of a third in one packet. */
	uint32_t id = text_at(0, GOOD GOOD "GET /");
	assert_int_equal(ending_of(id), HELD);
	assert_int_equal(engine.requests, 2);
	uint32_t rest =
		text_at(strlen(GOOD GOOD "GET /"), " HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	assert_int_equal(ending_of(id), REFUSED);
	assert_int_equal(ending_of(rest), DROPPED);
	assert_int_equal(audits[0].reason, REASON_SECRET_URL);
	opened(state);
	assert_int_equal(ending_of(text_at(0, GOOD BAD GOOD)), REFUSED);
	assert_int_equal(engine.requests, 2);
}

static void test_body(void **state)
{
	static char body[60000];
	const char *head =
		"POST /up HTTP/1.1\r\nHost: good.example\r\nContent-Length: 120000\r\n\r\n";
	uint32_t at = (uint32_t)strlen(head);

	(void)state;
	memset(body, 'a', sizeof(body));
	assert_int_equal(ending_of(text_at(0, head)), WATCHED);
	/* Two super-packets, the second first: held until the gap is closed. */
	uint32_t second = part_at(at + 60000, body, 60000);
	assert_int_equal(ending_of(second), HELD);
	assert_int_equal(reading(), 0); /* no head, no time limit */
	now += HEAD_TIMEOUT_MS * 2;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(part_at(at, body, 60000)), WATCHED);
	assert_int_equal(ending_of(second), WATCHED);
	assert_int_equal(buffers_lent(BUFFER_CLASS_LARGE), 0);
	assert_int_equal(buffers_lent(BUFFER_CLASS_HUGE), 0);
	assert_int_equal(ending_of(text_at(at + 120000, BAD)), REFUSED);
	assert_int_equal(buffers_lent(BUFFER_CLASS_SMALL), 0);
}

static void test_overdue(void **state)
{
	(void)state;
	uint32_t first = part_at(0, GOOD, 5);
	now += HEAD_TIMEOUT_MS - 1;
	uint32_t second = part_at(5, &GOOD[5], 5); /* no new lease of time */
	judge_expire(&gate, now);
	assert_int_equal(ending_of(first), HELD);
	now++;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(first), REFUSED);
	assert_int_equal(ending_of(second), DROPPED);
	assert_int_equal(audits[0].reason, REASON_MALFORMED);
	assert_int_equal(ending_of(text_at(10, &GOOD[10])), REFUSED);

	/* The second head has its own time. */
	opened(state);
	first = text_at(0, GOOD "GET");
	now += HEAD_TIMEOUT_MS - 1;
	assert_int_equal(ending_of(text_at(strlen(GOOD "GET"), " / HTTP/1.1\r\n")), HELD);
	now++;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(first), REFUSED);
	opened(state);
	first = part_at(0, GOOD, 5);
	now += HEAD_TIMEOUT_MS - 1;
	second = text_at(5, &(GOOD "GET")[5]);
	now += HEAD_TIMEOUT_MS - 1;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(second), HELD);
	now++;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(first), REFUSED);
	assert_int_equal(ending_of(second), DROPPED);

	opened(state);
	engine.audit_mode = true;
	first = part_at(0, GOOD, 5);
	now += HEAD_TIMEOUT_MS;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(first), ALLOWED);
	assert_int_equal(audit_count, 1);
}

static void test_fin(void **state)
{
	(void)state;
	/* Opened and closed without a word. */
	assert_int_equal(ending_of(SEND(.sequence = FIRST, .flags = PACKET_FIN | PACKET_ACK)),
			 WATCHED);
	opened(state);
	/* With the request. */
	assert_int_equal(
		ending_of(SEND(.sequence = FIRST, .flags = PACKET_FIN | PACKET_ACK, .text = GOOD)),
		WATCHED);
	assert_int_equal(ending_of(SEND(.sequence = FIRST + strlen(GOOD) + 1)), WATCHED);
	/* Inside a head: it will never be complete. */
	opened(state);
	uint32_t first = part_at(0, GOOD, 5);
	assert_int_equal(ending_of(SEND(.sequence = FIRST + 5, .flags = PACKET_FIN | PACKET_ACK)),
			 DROPPED);
	assert_int_equal(ending_of(first), REFUSED);
	assert_int_equal(audits[0].reason, REASON_MALFORMED);
	/* Before the head is complete, and then the gap is filled. */
	opened(state);
	uint32_t last =
		SEND(.sequence = FIRST + 10, .flags = PACKET_FIN | PACKET_ACK, .text = &GOOD[10]);
	assert_int_equal(ending_of(last), HELD);
	assert_int_equal(ending_of(part_at(0, GOOD, 10)), WATCHED);
	assert_int_equal(ending_of(last), WATCHED);
}

static void test_fast_open(void **state)
{
	fixture_reset(state);
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN, .text = BAD)),
			 REFUSED);
	fixture_reset(state);
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN, .text = GOOD)),
			 WATCHED);
	/* The server did not take the octets: they come again. */
	assert_int_equal(ending_of(text_at(0, GOOD)), WATCHED);
	assert_int_equal(engine.requests, 1);
	fixture_reset(state);
	uint32_t syn = SEND(.sequence = ISN, .flags = PACKET_SYN, .text = GOOD, .length = 10);
	assert_int_equal(ending_of(syn), HELD);
	/* Its repetition without octets is not refused and opens nothing. */
	assert_int_equal(ending_of(SEND(.sequence = ISN, .flags = PACKET_SYN)), WATCHED);
	text_at(10, &GOOD[10]);
	assert_int_equal(ending_of(syn), WATCHED);
}

/* A head longer than the sender's first window. */
static char long_head[20000];

static void make_long_head(const char *end)
{
	size_t used = (size_t)snprintf(long_head, sizeof(long_head),
				       "GET / HTTP/1.1\r\nHost: good.example\r\n");

	while (used < 16000)
		used += (size_t)snprintf(long_head + used, sizeof(long_head) - used,
					 "X-Filler: %064d\r\n", 0);
	snprintf(long_head + used, sizeof(long_head) - used, "%s", end);
}

static void test_early_by_count(void **state)
{
	uint32_t ids[20];
	unsigned count = 0;

	(void)state;
	make_long_head("\r\n");
	uint32_t length = (uint32_t)strlen(long_head);
	for (uint32_t at = 0; at < length; at += 1448, count++) {
		uint32_t size = length - at < 1448 ? length - at : 1448;
		ids[count] = part_at(at, long_head + at, size);
		if (count + 1 < EARLY_HOLDS)
			assert_int_equal(ending_of(ids[0]), HELD);
		else
			assert_int_equal(ending_of(ids[0]), WATCHED);
		if (count >= EARLY_HOLDS)
			assert_int_equal(ending_of(ids[count]), WATCHED);
	}
	assert_int_equal(engine.requests, 2); /* once early, once whole */
	assert_int_equal(flow_counts().in_state[FLOW_QUIET], 1);
	assert_int_equal(audit_count, 0);
}

static void test_early_by_repetition(void **state)
{
	(void)state;
	make_long_head("\r\n");
	uint32_t first = part_at(0, long_head, 1448);
	uint32_t second = part_at(1448, long_head + 1448, 1448);
	assert_int_equal(ending_of(first), HELD);
	assert_int_equal(ending_of(part_at(1448, long_head + 1448, 1448)), DROPPED);
	assert_int_equal(ending_of(first), WATCHED);
	assert_int_equal(ending_of(second), WATCHED);
	assert_int_equal(ending_of(part_at(2896, long_head + 2896, 1448)), WATCHED);
	/* Not known enough: no early verdict. */
	opened(state);
	first = part_at(0, GOOD, 10);
	assert_int_equal(ending_of(part_at(0, GOOD, 10)), DROPPED);
	assert_int_equal(ending_of(first), HELD);
}

static void test_early_refused(void **state)
{
	(void)state;
	make_long_head("\r\n");
	memcpy(strstr(long_head, "good"), "badd", 4);
	uint32_t first = part_at(0, long_head, 1448);
	assert_int_equal(ending_of(part_at(0, long_head, 1448)), DROPPED);
	assert_int_equal(ending_of(first), REFUSED);
	assert_int_equal(audit_count, 1);
}

static void test_early_contradicted(void **state)
{
	(void)state;
	make_long_head("Host: bad.example\r\n\r\n");
	uint32_t length = (uint32_t)strlen(long_head);
	uint32_t half = part_at(0, long_head, 8000);
	part_at(0, long_head, 8000);
	assert_int_equal(ending_of(half), WATCHED);
	/* The packet that completes the head does not pass. */
	assert_int_equal(ending_of(part_at(8000, long_head + 8000, length - 8000)), REFUSED);
	assert_int_equal(audits[0].reason, REASON_MALFORMED);
	/* Nor does the flow wait for ever. */
	opened(state);
	half = part_at(0, long_head, 8000);
	part_at(0, long_head, 8000);
	now += HEAD_TIMEOUT_MS;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(part_at(8000, long_head + 8000, length - 8000)), REFUSED);
}

static void test_used_name_stays_pinned(void **state)
{
	(void)state;
	engine.pin_count = 1;
	name_from_text("good.example", 12, &engine.pins[0].name);
	engine.pins[0].expiry = now + 1;
	text_at(0, GOOD);
	assert_string_equal(engine.last_pins, "good.example ");
	/* Much later the table has forgotten it, the flow has not. */
	now += 400000;
	engine.pin_count = 0;
	text_at(strlen(GOOD), GOOD);
	assert_string_equal(engine.last_pins, "good.example ");
	/* A name that was allowed without a pin is not made one. */
	opened(state);
	text_at(0, GOOD);
	text_at(strlen(GOOD), GOOD);
	assert_string_equal(engine.last_pins, "");
	/* Nor an expired one. */
	opened(state);
	engine.pin_count = 1;
	name_from_text("good.example", 12, &engine.pins[0].name);
	engine.pins[0].expiry = now;
	text_at(0, GOOD);
	engine.pin_count = 0;
	text_at(strlen(GOOD), GOOD);
	assert_string_equal(engine.last_pins, "");
}

static void test_log_allowed(void **state)
{
	(void)state;
	gate.log_allowed = true;
	text_at(0, GOOD GOOD);
	assert_int_equal(audit_count, 1);
	assert_int_equal(audits[0].outcome, OUTCOME_ALLOW);
	assert_string_equal(audits[0].name.text, "good.example");
}

static void test_holds_per_flow(void **state)
{
	(void)state;
	/* Every second octet: too many gaps and too many holds, all within bounds and nothing
	 * passes. */
	for (uint32_t at = 1; at < 400; at += 2)
		text_at(at, "x");
	assert_true(hold_count() <= HOLDS_PER_FLOW);
	now += HEAD_TIMEOUT_MS;
	judge_expire(&gate, now);
	assert_int_equal(hold_count(), 0);
	assert_int_equal(endings_missing(), 0);
}

/* A packet that could not be held is dropped; when it is repeated after the verdict it passes. */
static void test_dropped_hold(void **state)
{
	char *text = long_head;
	uint32_t at = 0;

	(void)state;
	/* A long name of one octet a packet, so that Host is not reached before the holds run out.
	 */
	strcpy(text, "GET /");
	memset(text + 5, 'a', 200);
	strcpy(text + 205, " HTTP/1.1\r\nHost: good.example\r\n\r\n");
	uint32_t dropped = 0;
	for (; at < 100; at++) {
		uint32_t id = part_at(at, text + at, 1);
		if (ending_of(id) == DROPPED && dropped == 0)
			dropped = id;
	}
	assert_int_equal(hold_count(), HOLDS_PER_FLOW);
	assert_int_not_equal(dropped, 0);
	assert_int_equal(ending_of(text_at(at, text + at)), WATCHED);
	assert_int_equal(hold_count(), 0);
	assert_int_equal(ending_of(part_at(HOLDS_PER_FLOW, text + HOLDS_PER_FLOW, 36)), WATCHED);
}

/* Random cuts, orders and repetitions of allowed requests never refuse, and leave nothing behind.
 */
static void test_random_orders(void **state)
{
	static const char text[] =
		GOOD GOOD "POST / HTTP/1.1\r\nHost: good.example\r\n"
			  "Content-Length: 50\r\n\r\n"
			  "12345678901234567890123456789012345678901234567890" GOOD;
	const uint32_t length = sizeof(text) - 1;

	srand(3);
	for (unsigned round = 0; round < 400; round++) {
		bool seen[sizeof(text)] = {false};
		uint32_t known = 0;

		opened(state);
		while (known < length) {
			uint32_t from = (uint32_t)rand() % length;
			uint32_t size = 1 + (uint32_t)rand() % 60;

			if (rand() % 3 == 0)
				from = known; /* the sender repeats what is missing */
			if (size > length - from)
				size = length - from;
			uint32_t id = part_at(from, text + from, size);
			assert_int_not_equal(ending_of(id), REFUSED);
			if (ending_of(id) != DROPPED || from <= known)
				memset(seen + from, true, size);
			while (known < length && seen[known])
				known++;
		}
		/* What was dropped for want of room is repeated in order until all is there. */
		for (uint32_t from = 0; from < length; from += 30)
			part_at(from, text + from, length - from < 30 ? length - from : 30);
		assert_int_equal(hold_count(), 0);
		assert_int_equal(engine.requests - engine.early >= 4, 1);
		assert_int_equal(audit_count, 0);
		assert_int_equal(flow_counts().in_state[FLOW_QUIET], 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_whole_request, opened),
		cmocka_unit_test_setup(test_two_segments, opened),
		cmocka_unit_test_setup(test_out_of_order, opened),
		cmocka_unit_test_setup(test_duplicates, opened),
		cmocka_unit_test_setup(test_contradiction, opened),
		cmocka_unit_test_setup(test_malformed, opened),
		cmocka_unit_test_setup(test_audit_mode, opened),
		cmocka_unit_test_setup(test_secrets, opened),
		cmocka_unit_test_setup(test_secrets_pass, opened),
		cmocka_unit_test_setup(test_long_target, opened),
		cmocka_unit_test_setup(test_pipelining, opened),
		cmocka_unit_test_setup(test_body, opened),
		cmocka_unit_test_setup(test_overdue, opened),
		cmocka_unit_test_setup(test_fin, opened),
		cmocka_unit_test_setup(test_fast_open, opened),
		cmocka_unit_test_setup(test_early_by_count, opened),
		cmocka_unit_test_setup(test_early_by_repetition, opened),
		cmocka_unit_test_setup(test_early_refused, opened),
		cmocka_unit_test_setup(test_early_contradicted, opened),
		cmocka_unit_test_setup(test_used_name_stays_pinned, opened),
		cmocka_unit_test_setup(test_log_allowed, opened),
		cmocka_unit_test_setup(test_holds_per_flow, opened),
		cmocka_unit_test_setup(test_dropped_hold, opened),
		cmocka_unit_test_setup(test_random_orders, opened),
	};
	return cmocka_run_group_tests_name("read", tests, NULL, NULL);
}
