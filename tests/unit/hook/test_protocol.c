/* SPDX-License-Identifier: GPL-2.0-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "hook/protocol.h"

static char line[HOOK_QUESTION_MAX];
static const struct verdict denial = {.outcome = OUTCOME_DENY, .reason = REASON_NOT_ALLOWLISTED};
static const struct verdict permit = {.outcome = OUTCOME_ALLOW};

static void assert_line(const struct hook_question *question, uint64_t id, const char *want)
{
	size_t length = 0;

	assert_int_equal(hook_question_write(question, id, line, sizeof(line), &length), 0);
	assert_int_equal(line[length - 1], '\n');
	line[length - 1] = '\0';
	assert_string_equal(line, want);
}

static struct pin pin_of(const char *text, uint64_t expiry)
{
	struct pin pin = {.expiry = expiry};

	assert_int_equal(name_from_text(text, strlen(text), &pin.name), NAME_OK);
	return pin;
}

static void test_questions(void **state)
{
	const struct address addresses[] = {address_ipv4(93, 184, 216, 34),
					    address_ipv4(10, 0, 0, 1)};
	struct pin pins[] = {pin_of("old.example", 5), pin_of("www.example", 6)};
	struct hook_question question = {.stage = STAGE_RESOLVE,
					 .client = "vm1",
					 .name = "www.example",
					 .qtype = 28,
					 .scheme = "",
					 .verdict = &denial};

	(void)state;
	assert_line(&question, 7,
		    "{\"id\":7,\"stage\":\"resolve\",\"client\":\"vm1\",\"name\":\"www.example\","
		    "\"qtype\":28,\"decision\":\"deny\",\"reason\":\"not_allowlisted\"}");
	question = (struct hook_question){.stage = STAGE_ANSWER,
					  .client = "10.0.0.9",
					  .name = "a.example",
					  .qtype = 1,
					  .addresses = addresses,
					  .address_count = 1,
					  .hints = addresses + 1,
					  .hint_count = 1,
					  .scheme = "",
					  .verdict = &permit};
	assert_line(&question, UINT64_C(1) << 52,
		    "{\"id\":4503599627370496,\"stage\":\"answer\",\"client\":\"10.0.0.9\","
		    "\"name\":\"a.example\",\"qtype\":1,\"addresses\":[\"93.184.216.34\","
		    "\"10.0.0.1\"],\"decision\":\"allow\",\"reason\":\"allowed\"}");
	question = (struct hook_question){.stage = STAGE_CONNECT,
					  .client = "host",
					  .addresses = addresses,
					  .address_count = 1,
					  .port = 53,
					  .protocol = IPPROTO_UDP,
					  .scheme = "",
					  .pins = pins,
					  .pin_count = 2,
					  .now = 5,
					  .verdict = &permit};
	assert_line(&question, 1,
		    "{\"id\":1,\"stage\":\"connect\",\"client\":\"host\",\"addresses\":["
		    "\"93.184.216.34\"],\"port\":53,\"proto\":\"udp\",\"resolved_from\":["
		    "\"www.example\"],\"decision\":\"allow\",\"reason\":\"allowed\"}");
	question.protocol = 132;
	question.pin_count = 0;
	question.stage = STAGE_REQUEST;
	question.scheme = "http";
	question.method = "GET /";
	question.method_length = 3;
	question.target = "/a\"b\\\xff\x01";
	question.target_length = 7;
	assert_line(&question, 1,
		    "{\"id\":1,\"stage\":\"request\",\"client\":\"host\",\"addresses\":["
		    "\"93.184.216.34\"],\"port\":53,\"proto\":\"132\",\"scheme\":\"http\","
		    "\"method\":\"GET\",\"target\":\"/a\\\"b\\\\\\u00FF\\u0001\","
		    "\"resolved_from\":[],\"decision\":\"allow\",\"reason\":\"allowed\"}");
}

/* The longest of everything fits the bounds that protocol.h states; one more does not. */
static void test_longest(void **state)
{
	static struct address addresses[HOOK_ADDRESSES_MAX];
	static struct pin pins[PINS_PER_ADDRESS_MAX];
	static char target[HOOK_TARGET_MAX + 1];
	char name[NAME_TEXT_MAX + 1];
	size_t length;
	struct hook_question question = {.stage = STAGE_REQUEST,
					 .client = "host",
					 .name = "www.example",
					 .addresses = addresses,
					 .address_count = HOOK_ADDRESSES_MAX,
					 .hints = addresses,
					 .hint_count = HOOK_ADDRESSES_MAX,
					 .scheme = "http",
					 .target = target,
					 .target_length = HOOK_TARGET_MAX,
					 .pins = pins,
					 .pin_count = PINS_PER_ADDRESS_MAX,
					 .verdict = &permit};

	(void)state;
	memset(name, 'a', sizeof(name));
	for (size_t i = 63; i < NAME_TEXT_MAX; i += 64)
		name[i] = '.';
	name[NAME_TEXT_MAX] = '\0';
	memset(target, 0xff, sizeof(target));
	for (size_t i = 0; i < PINS_PER_ADDRESS_MAX; i++)
		pins[i] = pin_of(name, 1);
	for (size_t i = 0; i < HOOK_ADDRESSES_MAX; i++) {
		addresses[i].family = ADDRESS_IPV6;
		memset(addresses[i].bytes, 0xfe, 16);
	}
	assert_int_equal(hook_question_write(&question, 1, line, sizeof(line), &length), 0);
	assert_int_equal(hook_question_write(&question, 1, line, length - 1, &length), -EMSGSIZE);
	question.target_length++;
	assert_int_equal(hook_question_write(&question, 1, line, sizeof(line), &length), -EMSGSIZE);
	question.target_length--;
	question.address_count++;
	assert_int_equal(hook_question_write(&question, 1, line, sizeof(line), &length), -EMSGSIZE);
}

static void test_replies(void **state)
{
	static const struct {
		const char *line;
		int error;
		enum hook_answer answer;
		const char *reason;
	} rows[] = {
		{"{\"id\":3,\"verdict\":\"allow\"}", 0, HOOK_ALLOW, ""},
		{"{\"id\":3,\"verdict\":\"deny\",\"reason\":\"no \\u00e4\\n games\"}", 0, HOOK_DENY,
		 "no ??? games"},
		{" {\"verdict\":\"keep\",\"id\":3,\"reason\":null,\"more\":[1,{}]} \r", 0,
		 HOOK_KEEP, ""},
		{"{\"id\":3,\"verdict\":\"Allow\"}", 0, HOOK_ERROR, ""},
		{"{\"id\":3,\"verdict\":\"allow \"}", 0, HOOK_ERROR, ""},
		{"{\"id\":3,\"verdict\":\"\"}", 0, HOOK_ERROR, ""},
		{"{\"id\":3,\"verdict\":true}", -EPROTO, 0, ""},
		{"{\"id\":3}", -EPROTO, 0, ""},
		{"{\"verdict\":\"allow\"}", -EPROTO, 0, ""},
		{"{\"id\":\"3\",\"verdict\":\"allow\"}", -EPROTO, 0, ""},
		{"{\"id\":3.0,\"verdict\":\"allow\"}", -EPROTO, 0, ""},
		{"{\"id\":-3,\"verdict\":\"allow\"}", -EPROTO, 0, ""},
		{"{\"id\":99999999999999999999,\"verdict\":\"allow\"}", -EPROTO, 0, ""},
		{"{\"id\":3,\"id\":3,\"verdict\":\"allow\"}", -EPROTO, 0, ""},
		{"{\"id\":3,\"verdict\":\"deny\",\"verdict\":\"allow\"}", -EPROTO, 0, ""},
		{"{\"id\":3,\"verdict\":\"allow\",\"reason\":5}", -EPROTO, 0, ""},
		{"{\"id\":3,\"verdict\":\"allow\\u0000\"}", -EPROTO, 0, ""},
		{"{\"id\":3,\"verdict\":\"allow\"}{\"id\":4,\"verdict\":\"allow\"}", -EPROTO, 0,
		 ""},
		{"[3,\"allow\"]", -EPROTO, 0, ""},
		{"\"allow\"", -EPROTO, 0, ""},
		{"allow", -EPROTO, 0, ""},
		{"{\"id\":3,\"verdict\":\"allow\"", -EPROTO, 0, ""},
		{"{'id':3,'verdict':'allow'}", -EPROTO, 0, ""},
		{"{\"id\":3,\"verdict\":\"\xff\"}", -EPROTO, 0, ""},
		{"", -EPROTO, 0, ""},
		{" ", -EPROTO, 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hook_reply reply = {.id = 77};
		int error = hook_reply_read(rows[i].line, strlen(rows[i].line), &reply);
		if (error != rows[i].error)
			fail_msg("%s: %d", rows[i].line, error);
		assert_int_equal(reply.id, error == 0 ? 3 : 77);
		if (error == 0) {
			assert_int_equal(reply.answer, rows[i].answer);
			assert_string_equal(reply.reason, rows[i].reason);
			assert_int_equal(reply.problem != NULL, reply.answer == HOOK_ERROR);
		}
	}
}

static void test_long_replies(void **state)
{
	static char text[HOOK_REPLY_MAX + 2];
	struct hook_reply reply;
	size_t length = (size_t)snprintf(text, sizeof(text),
					 "{\"id\":3,\"verdict\":\"deny\",\"reason\":\"");

	(void)state;
	memset(text + length, 'x', sizeof(text) - length);
	memcpy(text + HOOK_REPLY_MAX - 2, "\"}", 2);
	assert_int_equal(hook_reply_read(text, HOOK_REPLY_MAX, &reply), 0);
	assert_int_equal(strlen(reply.reason), HOOK_REASON_MAX);
	text[HOOK_REPLY_MAX] = ' ';
	assert_int_equal(hook_reply_read(text, HOOK_REPLY_MAX + 1, &reply), -EPROTO);

	/* as deep as a line can be */
	memset(text, '[', HOOK_REPLY_MAX);
	assert_int_equal(hook_reply_read(text, HOOK_REPLY_MAX, &reply), -EPROTO);
}

static unsigned allocations, failing;

static void *sometimes(size_t size)
{
	return ++allocations == failing ? NULL : malloc(size);
}

/* Each allocation fails in turn: an error, and never half a question or an answer. */
static void test_no_memory(void **state)
{
	const struct address address = address_ipv4(93, 184, 216, 34);
	struct pin pins[] = {pin_of("www.example", 6)};
	struct hook_question question = {.stage = STAGE_REQUEST,
					 .client = "vm1",
					 .name = "www.example",
					 .addresses = &address,
					 .address_count = 1,
					 .port = 80,
					 .protocol = IPPROTO_TCP,
					 .scheme = "http",
					 .method = "GET",
					 .method_length = 3,
					 .target = "/",
					 .target_length = 1,
					 .pins = pins,
					 .pin_count = 1,
					 .verdict = &permit};
	static const char text[] = "{\"id\":3,\"verdict\":\"deny\",\"reason\":\"because\"}";
	struct hook_reply reply;
	size_t length;
	int error = -1;

	(void)state;
	json_set_alloc_funcs(sometimes, free);
	for (failing = 1; error != 0; failing++) {
		allocations = 0;
		error = hook_question_write(&question, 1, line, sizeof(line), &length);
		assert_true(error == 0 || error == -ENOMEM);
		assert_true(failing < 1000);
	}
	assert_true(failing > 20);
	error = -1;
	for (failing = 1; error != 0; failing++) {
		allocations = 0;
		error = hook_reply_read(text, strlen(text), &reply);
		assert_true(error == 0 || error == -EPROTO);
		assert_true(failing < 1000);
	}
	assert_true(failing > 5);
	json_set_alloc_funcs(malloc, free);
}

/* All of the above once more without malloc(), and often: the arena is emptied each time. */
static void test_arena(void **state)
{
	struct hook_reply reply;

	hook_protocol_use_arena();
	for (int i = 0; i < 200; i++) {
		test_questions(state);
		test_longest(state);
		test_replies(state);
		test_long_replies(state);
	}
	for (int i = 0; i < 100000; i++)
		assert_int_equal(hook_reply_read("{\"id\":3,\"verdict\":\"allow\"}", 26, &reply),
				 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_questions), cmocka_unit_test(test_longest),
		cmocka_unit_test(test_replies),   cmocka_unit_test(test_long_replies),
		cmocka_unit_test(test_no_memory), cmocka_unit_test(test_arena),
	};
	const uint8_t seed[16] = {1};

	hook_protocol_seed(seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
