/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The asker over a socket pair, under a time of the test's own. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hook/asker.h"

static struct asker *asker;
static uint64_t serial;
static int far = -1; /* the hook's end */

#define RECORDS 4096
static struct record {
	void *context;
	uint64_t id;
	enum hook_answer answer;
	char problem[80];
} records[RECORDS];
static unsigned recorded;
static bool ask_again; /* the next answer asks a question */

static const struct verdict permit = {.outcome = OUTCOME_ALLOW};
static const struct hook_question question = {
	.stage = STAGE_CONNECT, .client = "vm1", .scheme = "", .verdict = &permit};

static void done(void *context, uint64_t id, const struct hook_reply *reply)
{
	struct record *record = &records[recorded++ % RECORDS];

	assert_int_equal(reply->id, id);
	*record = (struct record){.context = context, .id = id, .answer = reply->answer};
	snprintf(record->problem, sizeof(record->problem), "%s",
		 reply->problem == NULL ? "" : reply->problem);
	if (ask_again) {
		uint64_t next;
		ask_again = false;
		asker_ask(asker, &question, 1, 5000, NULL, &next);
	}
}

static void connect_hook(uint64_t now)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	if (far >= 0)
		close(far);
	far = pair[1];
	asker_connecting(asker, now);
	asker_connected(asker, pair[0], now);
}

static int set_up(void **state)
{
	(void)state;
	asker = malloc(sizeof(*asker));
	asker_init(asker, &serial, done);
	recorded = 0;
	ask_again = false;
	connect_hook(0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	asker_close(asker, 0);
	assert_int_equal(asker->count, 0);
	free(asker);
	if (far >= 0)
		close(far);
	far = -1;
	return 0;
}

static uint64_t ask(uint64_t deadline)
{
	uint64_t id = 0;

	assert_int_equal(asker_ask(asker, &question, 1, deadline, (void *)&far, &id), 0);
	return id;
}

static void say(const char *text)
{
	assert_int_equal(write(far, text, strlen(text)), strlen(text));
}

static void say_verdict(uint64_t id, const char *verdict)
{
	char text[128];

	snprintf(text, sizeof(text), "{\"id\":%llu,\"verdict\":\"%s\"}\n", (unsigned long long)id,
		 verdict);
	say(text);
}

static bool closed(void)
{
	char byte;
	ssize_t got;

	while ((got = read(far, &byte, 1)) == 1)
		;
	return got == 0 || errno == ECONNRESET;
}

static void assert_last(uint64_t id, enum hook_answer answer)
{
	assert_true(recorded > 0);
	assert_int_equal(records[recorded - 1].id, id);
	assert_int_equal(records[recorded - 1].answer, answer);
}

static void assert_broken(unsigned failed)
{
	assert_int_equal(asker->state, ASKER_DOWN);
	assert_int_equal(asker->fd, -1);
	assert_true(closed());
	assert_int_equal(recorded, failed);
	for (unsigned i = 0; i < failed; i++)
		assert_int_equal(records[i].answer, HOOK_ERROR);
	assert_int_equal(asker->count, 0);
	assert_int_equal(asker_deadline(asker), UINT64_MAX);
}

static void test_out_of_order(void **state)
{
	uint64_t a = ask(1000), b = ask(1000), c = ask(1000);
	char text[1024];

	(void)state;
	assert_true(a < b && b < c);
	assert_true(asker_wants_write(asker));
	asker_ready(asker, 1);
	assert_false(asker_wants_write(asker));
	ssize_t got = read(far, text, sizeof(text) - 1);
	assert_true(got > 0);
	text[got] = '\0';
	unsigned lines = 0;
	for (char *at = text; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	assert_int_equal(lines, 3);
	say_verdict(c, "deny");
	say_verdict(a, "allow");
	asker_ready(asker, 2);
	assert_int_equal(recorded, 2);
	assert_int_equal(records[0].id, c);
	assert_int_equal(records[0].answer, HOOK_DENY);
	assert_ptr_equal(records[0].context, &far);
	assert_last(a, HOOK_ALLOW);
	say_verdict(b, "keep");
	asker_ready(asker, 3);
	assert_last(b, HOOK_KEEP);
	assert_int_equal(asker->state, ASKER_LIVE);
}

static void test_half_lines(void **state)
{
	uint64_t id = ask(1000);
	char text[128];
	int length = snprintf(text, sizeof(text), "{\"id\":%llu,\"verdict\":\"allow\"}\n",
			      (unsigned long long)id);

	(void)state;
	for (int i = 0; i < length; i++) {
		assert_int_equal(recorded, 0);
		assert_int_equal(write(far, text + i, 1), 1);
		asker_ready(asker, 1);
	}
	assert_last(id, HOOK_ALLOW);
}

static void test_unknown_verdict_is_one_question_s(void **state)
{
	uint64_t a = ask(1000), b = ask(1000);

	(void)state;
	say_verdict(a, "maybe");
	say_verdict(b, "allow");
	asker_ready(asker, 1);
	assert_int_equal(recorded, 2);
	assert_int_equal(records[0].answer, HOOK_ERROR);
	assert_last(b, HOOK_ALLOW);
	assert_int_equal(asker->state, ASKER_LIVE);
}

static void test_junk(void **state)
{
	static const char *const junk[] = {"yes\n",
					   "\n",
					   "{}\n",
					   "{\"id\":1}\n",
					   "{\"verdict\":\"allow\"}\n",
					   "\xff\xfe\n",
					   "HTTP/1.1 200 OK\r\n",
					   "[]\n"};

	for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
		tear_down(state);
		set_up(state);
		ask(1000);
		ask(1000);
		say(junk[i]);
		asker_ready(asker, 1);
		assert_broken(2);
		assert_string_equal(records[0].problem, "the hook sent a line that is not right");
	}
}

static void test_lines_before_junk_count(void **state)
{
	uint64_t a = ask(1000), b = ask(1000);

	(void)state;
	say_verdict(a, "allow");
	say("junk\n");
	say_verdict(b, "allow");
	asker_ready(asker, 1);
	assert_int_equal(recorded, 2);
	assert_int_equal(records[0].answer, HOOK_ALLOW);
	assert_last(b, HOOK_ERROR);
}

static void test_ids_never_asked(void **state)
{
	uint64_t id = ask(1000);

	say_verdict(id + ASKER_QUESTIONS_MAX, "allow");
	asker_ready(asker, 1);
	assert_broken(1);
	tear_down(state);
	set_up(state);
	/* one of an earlier connection */
	uint64_t next = ask(1000);
	assert_true(next > id);
	say_verdict(id, "allow");
	asker_ready(asker, 1);
	assert_broken(1);
	tear_down(state);
	set_up(state);
	/* none at all */
	say_verdict(1, "allow");
	asker_ready(asker, 1);
	assert_broken(0);
}

static void test_duplicates(void **state)
{
	uint64_t a = ask(1000), b = ask(1000);

	(void)state;
	say_verdict(a, "deny");
	say_verdict(a, "allow");
	asker_ready(asker, 1);
	assert_int_equal(recorded, 1);
	assert_last(a, HOOK_DENY);
	/* the third line for two questions */
	say_verdict(b, "allow");
	asker_ready(asker, 1);
	assert_int_equal(recorded, 2);
	assert_last(b, HOOK_ERROR);
	assert_int_equal(asker->state, ASKER_DOWN);
}

static void test_flood(void **state)
{
	char text[4096];

	(void)state;
	for (int i = 0; i < 100; i++)
		ask(1000);
	memset(text, '\n', sizeof(text));
	while (write(far, text, sizeof(text)) > 0)
		;
	asker_ready(asker, 1);
	assert_broken(100);
}

static void test_line_without_end(void **state)
{
	char text[HOOK_REPLY_MAX + 1];

	(void)state;
	ask(1000);
	memset(text, ' ', sizeof(text));
	assert_int_equal(write(far, text, HOOK_REPLY_MAX), HOOK_REPLY_MAX);
	asker_ready(asker, 1);
	assert_int_equal(asker->state, ASKER_LIVE);
	assert_int_equal(write(far, text, 1), 1);
	asker_ready(asker, 1);
	assert_broken(1);
}

static void test_longest_line(void **state)
{
	uint64_t id = ask(1000);
	char text[HOOK_REPLY_MAX + 2];

	(void)state;
	memset(text, ' ', sizeof(text));
	int length = snprintf(text, sizeof(text), "{\"id\":%llu,\"verdict\":\"allow\"}",
			      (unsigned long long)id);
	text[length] = ' ';
	text[HOOK_REPLY_MAX] = '\n';
	assert_int_equal(write(far, text, HOOK_REPLY_MAX + 1), HOOK_REPLY_MAX + 1);
	asker_ready(asker, 1);
	assert_last(id, HOOK_ALLOW);
}

static void test_time_out(void **state)
{
	uint64_t a = ask(1000), b = ask(2000);

	(void)state;
	assert_int_equal(asker_deadline(asker), 1000);
	asker_expire(asker, 999);
	assert_int_equal(recorded, 0);
	asker_expire(asker, 1000);
	assert_int_equal(recorded, 1);
	assert_last(a, HOOK_ERROR);
	assert_string_equal(records[0].problem, "the hook did not answer in time");
	assert_int_equal(asker_deadline(asker), 2000);
	/* its answer comes late and is nobody's */
	say_verdict(a, "allow");
	asker_ready(asker, 1001);
	assert_int_equal(recorded, 1);
	assert_int_equal(asker->state, ASKER_LIVE);
	say_verdict(b, "allow");
	asker_ready(asker, 1002);
	assert_last(b, HOOK_ALLOW);
}

static void test_closed(void **state)
{
	(void)state;
	ask(1000);
	close(far);
	far = -1;
	asker_ready(asker, 10);
	assert_int_equal(asker->state, ASKER_DOWN);
	assert_int_equal(recorded, 1);
	assert_int_equal(records[0].answer, HOOK_ERROR);
	uint64_t id;
	assert_int_equal(asker_ask(asker, &question, 1, 1000, NULL, &id), -ENOTCONN);
	assert_false(asker_may_connect(asker, 10 + ASKER_RETRY_MS - 1));
	assert_true(asker_may_connect(asker, 10 + ASKER_RETRY_MS));
}

/* Questions wait for a connection that is being made. */
static void test_connecting(void **state)
{
	int pair[2];
	uint64_t id;

	(void)state;
	asker_close(asker, 0);
	assert_true(asker_may_connect(asker, 0));
	asker_connecting(asker, 0);
	id = ask(1000);
	assert_false(asker_may_connect(asker, ASKER_CONNECT_MS));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	close(far);
	far = pair[1];
	asker_connected(asker, pair[0], 5);
	assert_false(asker_wants_write(asker));
	say_verdict(id, "allow");
	asker_ready(asker, 6);
	assert_last(id, HOOK_ALLOW);
	/* a second connection is one too many */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	asker_connected(asker, pair[0], 5);
	char byte;
	assert_int_equal(read(pair[1], &byte, 1), 0);
	close(pair[1]);
	assert_int_equal(asker->state, ASKER_LIVE);

	asker_close(asker, 10);
	asker_connecting(asker, 10);
	ask(1000);
	asker_failed(asker, 11);
	assert_int_equal(recorded, 2);
	assert_string_equal(records[1].problem, "cannot connect to the hook");
	assert_false(asker_may_connect(asker, 11));
}

static void test_bounds(void **state)
{
	uint64_t id, first = 0;
	unsigned taken = 0;

	(void)state;
	for (uint32_t client = 0; client < 8; client++)
		for (unsigned i = 0; i < ASKER_PER_CLIENT_MAX + 5; i++) {
			int error = asker_ask(asker, &question, client, 1000, NULL, &id);
			/* the hook reads */
			char text[65536];
			asker_ready(asker, 1);
			while (read(far, text, sizeof(text)) > 0)
				;
			assert_true(error == 0 || error == -ENOSPC);
			if (i >= ASKER_PER_CLIENT_MAX)
				assert_int_equal(error, -ENOSPC);
			if (error == 0 && taken++ == 0)
				first = id;
		}
	assert_int_equal(taken, ASKER_QUESTIONS_MAX);
	say_verdict(first, "allow");
	asker_ready(asker, 2);
	assert_int_equal(asker_ask(asker, &question, 9, 1000, NULL, &id), 0);
	assert_int_equal(asker_ask(asker, &question, 9, 1000, NULL, &id), -ENOSPC);
}

/* A hook that reads nothing: the buffer fills, then it is too slow, and nothing grows. */
static void test_hook_that_does_not_read(void **state)
{
	static char target[HOOK_TARGET_MAX];
	struct hook_question large = question;
	uint64_t id;
	int error = 0;

	(void)state;
	memset(target, 'x', sizeof(target));
	large.target = target;
	large.target_length = sizeof(target);
	for (unsigned i = 0; i < 200 && error == 0; i++) {
		error = asker_ask(asker, &large, i, 1000, NULL, &id);
		asker_ready(asker, 1);
	}
	assert_int_equal(error, -ENOSPC);
	assert_true(asker_wants_write(asker));
	assert_int_equal(recorded, 0);
	asker_expire(asker, 1000);
	assert_true(recorded > 10);
	assert_int_equal(asker->count, 0);
	/* it reads again: whole lines, in order */
	FILE *file = fdopen(dup(far), "r");
	char *line = NULL;
	size_t room = 0;
	unsigned lines = 0;
	for (int i = 0; i < 50; i++) {
		asker_ready(asker, 1001);
		while (getline(&line, &room, file) > 0 && strchr(line, '\n') != NULL)
			lines += line[0] == '{';
		clearerr(file);
	}
	assert_false(asker_wants_write(asker));
	assert_true(lines >= 10);
	free(line);
	fclose(file);
}

static void test_too_long(void **state)
{
	static char target[HOOK_TARGET_MAX + 1];
	struct hook_question large = question;
	uint64_t id = 5;

	(void)state;
	large.target = target;
	large.target_length = sizeof(target);
	assert_int_equal(asker_ask(asker, &large, 1, 1000, NULL, &id), -EMSGSIZE);
	assert_int_equal(id, 5);
	assert_int_equal(asker->count, 0);
	assert_false(asker_wants_write(asker));
}

/* A callback asks: after an answer, after a time-out, while the connection breaks. */
static void test_ask_from_done(void **state)
{
	uint64_t id = ask(1000);

	(void)state;
	ask_again = true;
	say_verdict(id, "allow");
	asker_ready(asker, 1);
	assert_int_equal(asker->count, 1);
	assert_int_equal(recorded, 1);
	ask_again = true;
	asker_expire(asker, 5000);
	assert_int_equal(recorded, 2);
	assert_int_equal(asker->count, 1);
	ask_again = true;
	say("junk\n");
	asker_ready(asker, 5001);
	/* there is no connection to ask over any more */
	assert_int_equal(recorded, 3);
	assert_int_equal(asker->count, 0);
	assert_false(ask_again);
}

static void test_serial_is_shared(void **state)
{
	static struct asker other;
	uint64_t a = ask(1000), b;

	(void)state;
	asker_init(&other, &serial, done);
	asker_connecting(&other, 0);
	assert_int_equal(asker_ask(&other, &question, 1, 1000, NULL, &b), 0);
	assert_true(b > a);
	assert_true(ask(1000) > b);
	asker_close(&other, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_out_of_order),
		TEST(test_half_lines),
		TEST(test_unknown_verdict_is_one_question_s),
		TEST(test_junk),
		TEST(test_lines_before_junk_count),
		TEST(test_ids_never_asked),
		TEST(test_duplicates),
		TEST(test_flood),
		TEST(test_line_without_end),
		TEST(test_longest_line),
		TEST(test_time_out),
		TEST(test_closed),
		TEST(test_connecting),
		TEST(test_bounds),
		TEST(test_hook_that_does_not_read),
		TEST(test_too_long),
		TEST(test_ask_from_done),
		TEST(test_serial_is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
