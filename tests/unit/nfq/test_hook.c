/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Rule 12 in the gate: what is held while the hook is asked, and what its answer does. */

#include "tests/unit/nfq/fixture.h"

#include <netinet/in.h>
#include <string.h>

#include "inspect/packet.h"

#define GET       "GET /a HTTP/1.1\r\nHost: www.example\r\n\r\n"
#define GET_EVIL  "GET /b HTTP/1.1\r\nHost: evil.example\r\n\r\n"
#define GET_BAD   "GET /c HTTP/1.1\r\nHost: bad.example\r\n\r\n"
#define POST_HEAD "POST /p HTTP/1.1\r\nHost: www.example\r\nContent-Length: 10\r\n\r\n"

static const struct verdict denial = {
	.outcome = OUTCOME_DENY, .reason = REASON_NOT_ALLOWLISTED, .enforced = true};

static uint32_t syn(void)
{
	return SEND(.sequence = 999, .flags = PACKET_SYN);
}

static uint32_t data(uint32_t offset, const char *text)
{
	return SEND(.sequence = 1000 + offset, .text = text);
}

/* A flow whose SYN has passed without a hook. */
static void open_flow(void)
{
	assert_int_equal(ending_of(syn()), WATCHED);
	engine.asks_request = true;
}

static void assert_audit(unsigned number, enum reason reason, const char *detail)
{
	assert_true(audit_count > number);
	assert_int_equal(audits[number].reason, reason);
	assert_string_equal(audits[number].detail, detail);
}

static void test_connect_allow(void **state)
{
	(void)state;
	engine.asks_connect = true;
	uint32_t first = syn();
	assert_int_equal(ending_of(first), HELD);
	assert_int_equal(asked_count, 1);
	assert_int_equal(hook_asked[0].stage, STAGE_CONNECT);
	assert_int_equal(hook_asked[0].decision, OUTCOME_ALLOW);
	assert_string_equal(hook_asked[0].client, "host");
	/* the SYN again is no second question */
	assert_int_equal(ending_of(syn()), DROPPED);
	assert_int_equal(asked_count, 1);
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(first), WATCHED);
	assert_int_equal(ending_of(syn()), WATCHED);
	assert_int_equal(ending_of(data(0, GET)), WATCHED);
	assert_int_equal(audit_count, 0);
}

static void test_connect_answers(void **state)
{
	static const struct {
		bool denied;
		enum hook_answer answer;
		enum ending ending;
		enum reason reason;
		const char *detail;
	} rows[] = {
		{false, HOOK_KEEP, WATCHED, REASON_NONE, ""},
		{false, HOOK_DENY, REFUSED, REASON_CUSTOM, "because"},
		{false, HOOK_ERROR, REFUSED, REASON_POLICY_ERROR,
		 "the hook did not answer in time"},
		{true, HOOK_ALLOW, WATCHED, REASON_NONE, ""},
		{true, HOOK_KEEP, REFUSED, REASON_NOT_ALLOWLISTED, "because"},
		{true, HOOK_ERROR, REFUSED, REASON_POLICY_ERROR, "the hook did not answer in time"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fixture_reset(state);
		engine.asks_connect = true;
		if (rows[i].denied)
			engine.connect = denial;
		uint32_t first = syn();
		assert_int_equal(ending_of(first), HELD);
		assert_int_equal(audit_count, 0);
		hook_says(0, rows[i].answer);
		assert_int_equal(ending_of(first), rows[i].ending);
		assert_int_equal(audit_count, rows[i].reason != REASON_NONE);
		if (rows[i].reason != REASON_NONE) {
			assert_audit(0, rows[i].reason, rows[i].detail);
			/* remembered */
			assert_int_equal(ending_of(syn()), REFUSED);
			assert_int_equal(asked_count, 1);
		}
		/* an answer twice does nothing */
		hook_says(0, HOOK_ALLOW);
	}
}

static void test_connect_not_read(void **state)
{
	(void)state;
	engine.asks_connect = true;
	engine.reads = false;
	uint32_t first = syn();
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(first), ALLOWED);
	assert_int_equal(ending_of(data(0, "anything")), ALLOWED);
}

static void test_cannot_ask(void **state)
{
	(void)state;
	engine.asks_connect = true;
	engine.ask_error = -107;
	assert_int_equal(ending_of(syn()), REFUSED);
	assert_audit(0, REASON_POLICY_ERROR, "no connection to the hook");
	fixture_reset(state);
	open_flow();
	engine.ask_error = -28;
	assert_int_equal(ending_of(data(0, GET)), REFUSED);
	assert_audit(0, REASON_POLICY_ERROR, "too many questions wait for the hook");
	/* reported alone in audit mode */
	fixture_reset(state);
	open_flow();
	engine.audit_mode = true;
	engine.ask_error = -90;
	assert_int_equal(ending_of(data(0, GET)), WATCHED);
	assert_audit(0, REASON_POLICY_ERROR, "too long for the hook");
}

static void test_syn_with_octets(void **state)
{
	(void)state;
	engine.asks_connect = true;
	assert_int_equal(ending_of(SEND(.sequence = 999, .flags = PACKET_SYN, .text = GET)),
			 DROPPED);
	assert_int_equal(asked_count, 1);
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(syn()), WATCHED);
	assert_int_equal(ending_of(data(0, GET)), WATCHED);
}

static void test_reset_while_asking(void **state)
{
	(void)state;
	engine.asks_connect = true;
	uint32_t first = syn();
	SEND(.sequence = 1000, .flags = PACKET_RST);
	assert_int_equal(ending_of(first), DROPPED);
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(data(0, GET)), REFUSED);
	/* the port again: the first question is not this one's */
	uint32_t second = SEND(.sequence = 4999, .flags = PACKET_SYN);
	assert_int_equal(ending_of(second), HELD);
	assert_int_equal(asked_count, 2);
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(second), HELD);
	hook_says(1, HOOK_DENY);
	assert_int_equal(ending_of(second), REFUSED);
}

static void test_reload_while_connecting(void **state)
{
	(void)state;
	engine.asks_connect = true;
	uint32_t first = syn();
	gate.generation++;
	hook_says(0, HOOK_ALLOW);
	/* dropped, so that the SYN comes again and the new policy judges it */
	assert_int_equal(ending_of(first), DROPPED);
	uint32_t second = syn();
	assert_int_equal(asked_count, 2);
	assert_int_equal(ending_of(second), HELD);
	/* or it comes again before the answer */
	gate.generation++;
	uint32_t third = syn();
	assert_int_equal(ending_of(second), DROPPED);
	assert_int_equal(asked_count, 3);
	hook_says(1, HOOK_ALLOW);
	assert_int_equal(ending_of(third), HELD);
	hook_says(2, HOOK_ALLOW);
	assert_int_equal(ending_of(third), WATCHED);
}

/* What the hook let through stays after a reload, unless the new policy does not ask. */
static void test_reload_later(void **state)
{
	(void)state;
	engine.asks_connect = true;
	engine.connect = denial;
	syn();
	hook_says(0, HOOK_ALLOW);
	gate.generation++;
	assert_int_equal(ending_of(data(0, GET)), WATCHED);
	gate.generation++;
	engine.asks_connect = false;
	engine.request = denial;
	assert_int_equal(ending_of(data(sizeof(GET) - 1, GET)), REFUSED);
}

static void test_datagrams(void **state)
{
	(void)state;
	engine.asks_connect = true;
	uint32_t first = SEND(.protocol = IPPROTO_UDP, .text = "a");
	uint32_t second = SEND(.protocol = IPPROTO_UDP, .text = "b");
	assert_int_equal(ending_of(first), HELD);
	assert_int_equal(ending_of(second), HELD);
	assert_int_equal(asked_count, 1);
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(first), ALLOWED);
	assert_int_equal(ending_of(second), ALLOWED);
	assert_true(ending_order(first) < ending_order(second));

	uint32_t third = SEND(.protocol = IPPROTO_ICMP, .text = "a");
	hook_says(1, HOOK_DENY);
	assert_int_equal(ending_of(third), REFUSED);
	/* the answer is remembered, for a while, and not over a reload */
	assert_int_equal(ending_of(SEND(.protocol = IPPROTO_ICMP, .text = "a")), REFUSED);
	assert_int_equal(asked_count, 2);
	assert_int_equal(audit_count, 1);
	gate.generation++;
	assert_int_equal(ending_of(SEND(.protocol = IPPROTO_ICMP, .text = "a")), HELD);
	assert_int_equal(asked_count, 3);
	hook_says(2, HOOK_DENY);
	now += DECIDED_MS;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(SEND(.protocol = IPPROTO_ICMP, .text = "a")), HELD);
}

static void test_request_question(void **state)
{
	(void)state;
	engine.pin_count = 1;
	name_from_text("www.example", 11, &engine.pins[0].name);
	engine.pins[0].expiry = UINT64_MAX;
	open_flow();
	assert_int_equal(ending_of(data(0, POST_HEAD)), HELD);
	assert_int_equal(hook_asked[0].stage, STAGE_REQUEST);
	assert_string_equal(hook_asked[0].name, "www.example");
	assert_string_equal(hook_asked[0].target, "/p");
	assert_string_equal(hook_asked[0].method, "POST");
	assert_string_equal(hook_asked[0].scheme, "http");
	assert_string_equal(hook_asked[0].resolved_from, "www.example");
}

static void test_request_allow(void **state)
{
	(void)state;
	open_flow();
	uint32_t head = data(0, POST_HEAD);
	/* the body comes while the hook thinks, and comes again */
	uint32_t body = data(sizeof(POST_HEAD) - 1, "01234");
	uint32_t more = data(sizeof(POST_HEAD) - 1 + 5, "56789");
	assert_int_equal(ending_of(head), HELD);
	assert_int_equal(ending_of(body), HELD);
	assert_int_equal(ending_of(more), HELD);
	assert_int_equal(ending_of(data(0, POST_HEAD)), DROPPED);
	assert_int_equal(ending_of(data(sizeof(POST_HEAD) - 1, "01234")), DROPPED);
	assert_int_equal(asked_count, 1);
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(head), WATCHED);
	assert_int_equal(ending_of(body), WATCHED);
	assert_int_equal(ending_of(more), WATCHED);
	/* the next request is another question */
	uint32_t next = data(sizeof(POST_HEAD) - 1 + 10, GET);
	assert_int_equal(ending_of(next), HELD);
	assert_int_equal(asked_count, 2);
	hook_says(1, HOOK_DENY);
	assert_int_equal(ending_of(next), REFUSED);
	assert_audit(0, REASON_CUSTOM, "because");
}

/* Requests behind the one that is asked about are judged when their turn comes. */
static void test_pipelined(void **state)
{
	(void)state;
	open_flow();
	uint32_t both = data(0, GET GET_EVIL GET_BAD);
	assert_int_equal(asked_count, 1);
	hook_says(0, HOOK_KEEP);
	assert_int_equal(ending_of(both), HELD);
	assert_int_equal(asked_count, 2);
	assert_string_equal(hook_asked[1].name, "evil.example");
	assert_int_equal(hook_asked[1].decision, OUTCOME_DENY);
	hook_says(1, HOOK_ALLOW);
	/* name_mismatch is nobody's to lift */
	assert_int_equal(asked_count, 2);
	assert_int_equal(ending_of(both), REFUSED);
	assert_audit(0, REASON_NAME_MISMATCH, "");
}

/* The hook may lift what it does not get to see. */
static void test_secret(void **state)
{
	(void)state;
	open_flow();
	uint32_t head = data(0, "GET /?t=ghp_ABCDEFGHIJKLMNOPQRSTuvwxyz0123456789 HTTP/1.1\r\n"
				"Host: www.example\r\n\r\n");
	assert_int_equal(ending_of(head), HELD);
	assert_int_equal(hook_asked[0].decision, OUTCOME_DENY);
	assert_string_equal(hook_asked[0].method, "GET");
	assert_string_equal(hook_asked[0].target, "");
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(head), WATCHED);
	assert_int_equal(audit_count, 0);
}

static void test_request_while_asking_is_cut(void **state)
{
	(void)state;
	open_flow();
	uint32_t first = data(0, GET "GET /b HT");
	uint32_t second = data(sizeof(GET) - 1 + 9, "TP/1.1\r\nHost: www");
	hook_says(0, HOOK_ALLOW);
	/* the second head is not complete: what holds its beginning waits */
	assert_int_equal(ending_of(first), HELD);
	assert_int_equal(ending_of(second), HELD);
	uint32_t third = data(sizeof(GET) - 1 + 9 + 17, ".example\r\n\r\n");
	assert_int_equal(asked_count, 2);
	assert_string_equal(hook_asked[1].target, "/b");
	assert_int_equal(ending_of(third), HELD);
	hook_says(1, HOOK_ALLOW);
	assert_int_equal(ending_of(first), WATCHED);
	assert_int_equal(ending_of(second), WATCHED);
	assert_int_equal(ending_of(third), WATCHED);
}

static void test_future_while_asking(void **state)
{
	(void)state;
	open_flow();
	uint32_t head = data(0, POST_HEAD);
	uint32_t late = data(sizeof(POST_HEAD) - 1 + 5, "56789");
	assert_int_equal(ending_of(late), HELD);
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(head), WATCHED);
	uint32_t missing = data(sizeof(POST_HEAD) - 1, "01234");
	assert_int_equal(ending_of(missing), WATCHED);
	assert_int_equal(ending_of(late), WATCHED);
}

static void test_contradiction_while_asking(void **state)
{
	(void)state;
	open_flow();
	uint32_t head = data(0, GET);
	data(0, GET_EVIL);
	assert_int_equal(ending_of(head), REFUSED);
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(data(sizeof(GET) - 1, GET)), REFUSED);
}

static void test_finished_while_asking(void **state)
{
	(void)state;
	open_flow();
	uint32_t head = data(0, GET "GET /half");
	uint32_t fin = SEND(.sequence = (uint32_t)(1000 + sizeof(GET) - 1 + 9),
			    .flags = PACKET_ACK | PACKET_FIN);
	assert_int_equal(ending_of(fin), HELD);
	hook_says(0, HOOK_ALLOW);
	/* a half request will stay one */
	assert_int_equal(ending_of(head), REFUSED);
	assert_int_equal(ending_of(fin), DROPPED);
}

static void test_early(void **state)
{
	static const char head[] = "GET /early HTTP/1.1\r\nHost: www.example\r\nCookie: ";
	uint32_t at = sizeof(head) - 1;
	uint32_t ids[EARLY_HOLDS + 2];

	(void)state;
	open_flow();
	ids[0] = data(0, head);
	for (unsigned i = 1; i < EARLY_HOLDS; i++, at += 4)
		ids[i] = data(at, "aaaa");
	assert_int_equal(asked_count, 1);
	assert_string_equal(hook_asked[0].target, "/early");
	for (unsigned i = 0; i < EARLY_HOLDS; i++)
		assert_int_equal(ending_of(ids[i]), HELD);
	uint32_t meanwhile = data(at, "bbbb");
	at += 4;
	assert_int_equal(ending_of(meanwhile), HELD);
	hook_says(0, HOOK_ALLOW);
	for (unsigned i = 0; i < EARLY_HOLDS; i++)
		assert_int_equal(ending_of(ids[i]), WATCHED);
	assert_int_equal(ending_of(meanwhile), WATCHED);
	/* its end is not asked about again, the next head is */
	uint32_t end = data(at, "\r\n\r\n");
	assert_int_equal(asked_count, 1);
	assert_int_equal(ending_of(end), WATCHED);
	assert_int_equal(ending_of(data(at + 4, GET)), HELD);
	assert_int_equal(asked_count, 2);
}

static void test_early_denied(void **state)
{
	static const char head[] = "GET /early HTTP/1.1\r\nHost: www.example\r\nCookie: ";

	(void)state;
	open_flow();
	uint32_t first = data(0, head);
	/* the sender repeats itself: its window is full */
	assert_int_equal(ending_of(data(0, head)), DROPPED);
	assert_int_equal(asked_count, 1);
	assert_int_equal(ending_of(data(0, head)), DROPPED);
	assert_int_equal(asked_count, 1);
	hook_says(0, HOOK_ERROR);
	assert_int_equal(ending_of(first), REFUSED);
	assert_audit(0, REASON_POLICY_ERROR, "the hook did not answer in time");
}

static void test_reload_while_asking(void **state)
{
	(void)state;
	open_flow();
	uint32_t head = data(0, GET);
	gate.generation++;
	hook_says(0, HOOK_ALLOW);
	/* the hook's word was on the old policy */
	assert_int_equal(ending_of(head), HELD);
	assert_int_equal(asked_count, 2);
	hook_says(1, HOOK_ALLOW);
	assert_int_equal(ending_of(head), WATCHED);
	/* the new policy refuses the destination */
	uint32_t next = data(sizeof(GET) - 1, GET);
	assert_int_equal(asked_count, 3);
	gate.generation++;
	engine.request = denial;
	hook_says(2, HOOK_ALLOW);
	assert_int_equal(ending_of(next), REFUSED);
	assert_audit(0, REASON_NOT_ALLOWLISTED, "cut by a new policy");
}

/* One flow waits; another is judged at once. */
static void test_others_go_on(void **state)
{
	(void)state;
	open_flow();
	uint32_t head = data(0, GET);
	assert_int_equal(ending_of(head), HELD);
	engine.asks_request = false;
	assert_int_equal(ending_of(SEND(.port = 40001, .sequence = 1, .flags = PACKET_SYN)),
			 WATCHED);
	assert_int_equal(ending_of(SEND(.port = 40001, .sequence = 2, .text = GET)), WATCHED);
	assert_int_equal(ending_of(head), HELD);
	/* time alone ends nothing: the hook has its own deadline */
	now += HEAD_TIMEOUT_MS + IDLE_MS;
	judge_expire(&gate, now);
	assert_int_equal(ending_of(head), HELD);
	engine.asks_request = true;
	hook_says(0, HOOK_ALLOW);
	assert_int_equal(ending_of(head), WATCHED);
}

static void test_audit_mode(void **state)
{
	(void)state;
	engine.audit_mode = true;
	open_flow();
	uint32_t head = data(0, GET);
	hook_says(0, HOOK_DENY);
	assert_int_equal(ending_of(head), WATCHED);
	assert_audit(0, REASON_CUSTOM, "because");
	assert_false(audits[0].enforced);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, fixture_reset)
	const struct CMUnitTest tests[] = {
		TEST(test_connect_allow),
		TEST(test_connect_answers),
		TEST(test_connect_not_read),
		TEST(test_cannot_ask),
		TEST(test_syn_with_octets),
		TEST(test_reset_while_asking),
		TEST(test_reload_while_connecting),
		TEST(test_reload_later),
		TEST(test_datagrams),
		TEST(test_request_question),
		TEST(test_request_allow),
		TEST(test_pipelined),
		TEST(test_secret),
		TEST(test_request_while_asking_is_cut),
		TEST(test_future_while_asking),
		TEST(test_contradiction_while_asking),
		TEST(test_finished_while_asking),
		TEST(test_early),
		TEST(test_early_denied),
		TEST(test_reload_while_asking),
		TEST(test_others_go_on),
		TEST(test_audit_mode),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
