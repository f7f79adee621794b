/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The table of hooks, with the parent played by the test. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hook/hooks.h"
#include "rules/source.h"

static struct hooks hooks;
static struct policy_source policies[HOOKS_MAX + 3];
static void *bytes;
static const struct policy_image *image;

static struct message_hook wishes[64];
static unsigned wished;
static int wish_error;
static unsigned answered;
static enum hook_answer last;

static const struct verdict permit = {.outcome = OUTCOME_ALLOW};
static const struct hook_question question = {
	.stage = STAGE_CONNECT, .client = "vm1", .scheme = "", .verdict = &permit};
static const struct client_key client = {{1}};

static int wish(policy_index policy, uint64_t generation)
{
	if (wish_error == 0)
		wishes[wished++ % 64] =
			(struct message_hook){.policy = policy, .generation = generation};
	return wish_error;
}

static void done(void *context, uint64_t id, const struct hook_reply *reply)
{
	(void)context;
	(void)id;
	answered++;
	last = reply->answer;
}

/* An image whose policies have these sockets, parted by blanks; "-" has none. */
static void use(const char *paths, uint64_t generation)
{
	struct config_source source = {.generation = generation, .policies = policies};
	char text[1024], *save = NULL;
	size_t size;

	snprintf(text, sizeof(text), "%s", paths);
	for (char *path = strtok_r(text, " ", &save); path != NULL;
	     path = strtok_r(NULL, " ", &save)) {
		struct policy_source *policy = &policies[source.policy_count++];
		policy_source_init(policy, "default");
		if (strcmp(path, "-") == 0)
			continue;
		strcpy(policy->hook.path, path);
		policy->hook.stages = 15;
		policy->hook.timeout_ms = 1000;
	}
	free(bytes);
	assert_int_equal(policy_image_build(&source, &bytes, &size), 0);
	assert_int_equal(policy_image_open(bytes, size, &image), 0);
}

static int set_up(void **state)
{
	(void)state;
	wished = answered = 0;
	wish_error = 0;
	return hooks_init(&hooks, wish, done);
}

static int tear_down(void **state)
{
	(void)state;
	hooks_deinit(&hooks);
	free(bytes);
	bytes = NULL;
	return 0;
}

/* The parent's answer to wish NUMBER; returns the hook's end. */
static int arrive(unsigned number, uint64_t now)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	hooks_arrived(&hooks, &wishes[number], pair[0], now);
	return pair[1];
}

static int ask(policy_index policy, uint64_t now, uint64_t *id)
{
	return hooks_ask(&hooks, image, policy, &question, &client, NULL, now, id);
}

static bool is_ready(void)
{
	struct pollfd poll_fd = {.fd = hooks_fd(&hooks), .events = POLLIN};

	return poll(&poll_fd, 1, 0) == 1;
}

static void say(int fd, uint64_t id)
{
	char text[64];
	int length = snprintf(text, sizeof(text), "{\"id\":%llu,\"verdict\":\"allow\"}\n",
			      (unsigned long long)id);

	assert_int_equal(write(fd, text, (size_t)length), length);
}

static void test_one_connection_a_socket(void **state)
{
	uint64_t a, b;

	(void)state;
	use("/run/a - /run/b /run/a", 3);
	hooks_use(&hooks, image, 0);
	assert_int_equal(wished, 2);
	assert_int_equal(wishes[0].policy, 0);
	assert_int_equal(wishes[1].policy, 2);
	assert_int_equal(wishes[1].generation, 3);
	int first = arrive(0, 1), second = arrive(1, 1);
	assert_int_equal(ask(3, 2, &a), 0);
	assert_int_equal(ask(2, 2, &b), 0);
	assert_int_equal(ask(1, 2, &b), -ENOTCONN);
	assert_int_equal(wished, 2);
	assert_int_equal(hooks_wait(&hooks, 2), 1000);
	hooks_run(&hooks, 3);
	assert_int_equal(answered, 0);
	say(first, a);
	assert_true(is_ready());
	hooks_run(&hooks, 4);
	assert_int_equal(answered, 1);
	assert_int_equal(last, HOOK_ALLOW);
	hooks_run(&hooks, 1002);
	assert_int_equal(answered, 2);
	assert_int_equal(last, HOOK_ERROR);
	assert_int_equal(hooks_wait(&hooks, 1002), -1);
	close(first);
	close(second);
}

static void test_hook_comes_back(void **state)
{
	uint64_t id;

	(void)state;
	use("/run/a", 1);
	hooks_use(&hooks, image, 0);
	int hook = arrive(0, 0);
	assert_int_equal(ask(0, 0, &id), 0);
	close(hook);
	assert_true(is_ready());
	hooks_run(&hooks, 1);
	assert_int_equal(answered, 1);
	assert_int_equal(last, HOOK_ERROR);
	assert_false(is_ready());
	/* not at once, then again, and the question waits for it */
	assert_int_equal(ask(0, 2, &id), -ENOTCONN);
	assert_int_equal(wished, 1);
	assert_int_equal(ask(0, 1 + ASKER_RETRY_MS, &id), 0);
	assert_int_equal(wished, 2);
	hook = arrive(1, 300);
	hooks_run(&hooks, 301);
	say(hook, id);
	assert_true(is_ready());
	hooks_run(&hooks, 302);
	assert_int_equal(last, HOOK_ALLOW);
	close(hook);
}

static void test_parent_cannot(void **state)
{
	uint64_t id;

	(void)state;
	use("/run/a", 1);
	wish_error = -EAGAIN;
	hooks_use(&hooks, image, 0);
	assert_int_equal(ask(0, 1, &id), -ENOTCONN);
	wish_error = 0;
	assert_int_equal(ask(0, ASKER_RETRY_MS, &id), 0);
	hooks_arrived(&hooks, &wishes[0], -1, 300);
	assert_int_equal(answered, 1);
	assert_int_equal(last, HOOK_ERROR);
	/* an answer that nobody waits for */
	int hook = arrive(0, 301);
	char byte;
	assert_int_equal(read(hook, &byte, 1), 0);
	close(hook);
}

static void test_reload(void **state)
{
	uint64_t id;
	char byte;

	(void)state;
	use("/run/a /run/b", 1);
	hooks_use(&hooks, image, 0);
	int a = arrive(0, 0), b = arrive(1, 0);
	assert_int_equal(ask(0, 1, &id), 0);
	/* b stays under another number, a goes, c comes */
	use("/run/c /run/b", 2);
	hooks_use(&hooks, image, 2);
	assert_int_equal(answered, 1);
	assert_int_equal(last, HOOK_ERROR);
	while (read(a, &byte, 1) == 1)
		;
	assert_int_equal(read(a, &byte, 1), 0);
	assert_int_equal(wished, 3);
	assert_int_equal(wishes[2].generation, 2);
	assert_int_equal(ask(1, 3, &id), 0);
	hooks_run(&hooks, 3);
	assert_true(read(b, &byte, 1) == 1);
	int c = arrive(2, 4);
	assert_int_equal(ask(0, 5, &id), 0);
	hooks_run(&hooks, 5);
	say(c, id);
	hooks_run(&hooks, 6);
	assert_int_equal(last, HOOK_ALLOW);
	close(a);
	close(b);
	close(c);
}

static void test_table_is_full(void **state)
{
	char paths[1024] = "";
	uint64_t id;

	(void)state;
	for (unsigned i = 0; i <= HOOKS_MAX; i++)
		sprintf(paths + strlen(paths), "/run/%u ", i);
	use(paths, 1);
	hooks_use(&hooks, image, 0);
	assert_int_equal(wished, HOOKS_MAX);
	assert_int_equal(ask(HOOKS_MAX - 1, 1, &id), 0);
	assert_int_equal(ask(HOOKS_MAX, 1, &id), -ENOTCONN);
	assert_int_equal(ask(HOOKS_MAX + 1, 1, &id), -ENOTCONN);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_one_connection_a_socket), TEST(test_hook_comes_back),
		TEST(test_parent_cannot),           TEST(test_reload),
		TEST(test_table_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
