/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The control socket: requests, junk, bounds, and what it leaves on the file system.
 */

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
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/control.h"

static char folder[] = "/tmp/pinfold-control-XXXXXX";
static char path[128];
static struct loop loop;
static struct control control;
static struct control_connection *waiting;
static unsigned gone;

static void take_request(void *context, struct control_connection *connection, const char *command,
			 const json_t *body)
{
	(void)context;
	if (strcmp(command, "echo") == 0) {
		control_answer(connection,
			       json_pack("{s:b,s:O}", "ok", 1, "body", (json_t *)(uintptr_t)body),
			       -1);
	} else if (strcmp(command, "later") == 0) {
		connection->waiting = true;
		waiting = connection;
	} else if (strcmp(command, "file") == 0) {
		control_answer(connection, json_pack("{s:b}", "ok", 1), dup(STDERR_FILENO));
	} else if (strcmp(command, "follow") == 0) {
		connection->following = true;
	} else {
		control_fail(connection, "there is no such command");
	}
}

static void take_gone(void *context, struct control_connection *connection)
{
	(void)context;
	if (connection == waiting)
		waiting = NULL;
	gone++;
}

static const struct control_handler handler = {.request = take_request, .gone = take_gone};

static int set_up(void **state)
{
	char problem[512] = "";

	(void)state;
	gone = 0;
	waiting = NULL;
	assert_int_equal(loop_init(&loop), 0);
	assert_int_equal(control_open(&control, &loop, path, &handler, problem, sizeof(problem)),
			 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	control_close(&control);
	loop_deinit(&loop);
	assert_int_equal(access(path, F_OK), -1);
	return 0;
}

static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, strlen(path));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void say(int fd, const char *text, size_t length)
{
	assert_int_equal(send(fd, text, length, MSG_NOSIGNAL), (ssize_t)length);
}

/* Runs the loop until nothing happens for a moment. */
static void settle(void)
{
	struct pollfd busy = {.fd = loop.epoll, .events = POLLIN};

	while (poll(&busy, 1, 1) == 1)
		assert_int_equal(loop_once(&loop, 0), 0);
}

static ssize_t hear(int fd, char *text, size_t size)
{
	settle();
	ssize_t count = recv(fd, text, size - 1, MSG_DONTWAIT);
	text[count > 0 ? count : 0] = '\0';
	return count;
}

static void ask(const char *request, const char *expected)
{
	char answer[8192];
	int fd = dial();

	say(fd, request, strlen(request));
	hear(fd, answer, sizeof(answer));
	assert_string_equal(answer, expected);
	close(fd);
	settle();
}

static void test_requests(void **state)
{
	(void)state;
	ask("{\"command\":\"echo\",\"x\":[1,2]}\n",
	    "{\"ok\":true,\"body\":{\"command\":\"echo\",\"x\":[1,2]}}\n");
	/* Two in one write, a half one after it. */
	ask("{\"command\":\"echo\"}\n{\"command\":\"no\"}\n{\"comm",
	    "{\"ok\":true,\"body\":{\"command\":\"echo\"}}\n"
	    "{\"ok\":false,\"error\":\"there is no such command\"}\n");
}

static void test_junk(void **state)
{
	char many[512];

	(void)state;
	ask("\n", "{\"ok\":false,\"error\":\"not a JSON object\"}\n");
	ask("status\n", "{\"ok\":false,\"error\":\"not a JSON object\"}\n");
	ask("{\"command\":\"echo\"\n", "{\"ok\":false,\"error\":\"not a JSON object\"}\n");
	ask("{\"command\":\"echo\"} x\n", "{\"ok\":false,\"error\":\"not a JSON object\"}\n");
	ask("{\"command\":\"echo\",\"command\":\"echo\"}\n",
	    "{\"ok\":false,\"error\":\"not a JSON object\"}\n");
	ask("{\"command\":\"\xff\"}\n", "{\"ok\":false,\"error\":\"not a JSON object\"}\n");
	ask("[\"echo\"]\n", "{\"ok\":false,\"error\":\"no \\\"command\\\"\"}\n");
	ask("{}\n", "{\"ok\":false,\"error\":\"no \\\"command\\\"\"}\n");
	ask("{\"command\":7}\n", "{\"ok\":false,\"error\":\"no \\\"command\\\"\"}\n");
	ask("{\"command\":\"\"}\n", "{\"ok\":false,\"error\":\"there is no such command\"}\n");
	/* NUL octets, and nesting as deep as a request can hold. */
	int fd = dial();
	say(fd, "\0\0\0\n", 4);
	assert_true(hear(fd, many, sizeof(many)) > 0);
	close(fd);
	fd = dial();
	for (int i = 0; i < 7; i++) {
		memset(many, '[', sizeof(many));
		say(fd, many, sizeof(many));
	}
	say(fd, "\n", 1);
	assert_true(hear(fd, many, sizeof(many)) > 0);
	assert_non_null(strstr(many, "not a JSON object"));
	close(fd);
	settle();
}

static void test_too_long(void **state)
{
	char big[CONTROL_REQUEST_MAX + 100], answer[256];
	int fd = dial();

	(void)state;
	memset(big, 'x', sizeof(big));
	say(fd, big, CONTROL_REQUEST_MAX - 1);
	assert_int_equal(hear(fd, answer, sizeof(answer)), -1);
	say(fd, big, 2);
	hear(fd, answer, sizeof(answer));
	assert_string_equal(answer, "{\"ok\":false,\"error\":\"the request is too long\"}\n");
	/* Unread octets make it a reset. */
	assert_true(hear(fd, answer, sizeof(answer)) <= 0 && errno != EAGAIN);
	close(fd);
}

/* Octet by octet, for hours if need be. */
static void test_slow_writer(void **state)
{
	const char *request = "{\"command\":\"echo\"}\n";
	char answer[256];
	int fd = dial();

	(void)state;
	for (size_t i = 0; i < strlen(request); i++) {
		assert_int_equal(recv(fd, answer, 1, MSG_DONTWAIT), -1);
		say(fd, request + i, 1);
		loop_once(&loop, 100);
		loop_once(&loop, 0);
	}
	assert_true(hear(fd, answer, sizeof(answer)) > 0);
	close(fd);
	settle();
}

static void test_many(void **state)
{
	int fds[CONTROL_CONNECTIONS_MAX + 4];
	char answer[256];

	(void)state;
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX + 4; i++) {
		fds[i] = dial();
		settle();
	}
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX + 4; i++) {
		bool served = i < CONTROL_CONNECTIONS_MAX;
		if (served)
			say(fds[i], "{}\n", 3);
		assert_int_equal(hear(fds[i], answer, sizeof(answer)) > 0, served);
		close(fds[i]);
	}
	settle();
	ask("{}\n", "{\"ok\":false,\"error\":\"no \\\"command\\\"\"}\n");
}

static void test_idle(void **state)
{
	char answer[16];
	int idle = dial(), follower = dial();

	(void)state;
	say(follower, "{\"command\":\"follow\"}\n", 21);
	settle();
	control_tick(&control, loop_now() + CONTROL_IDLE_MS - 1000);
	assert_int_equal(hear(idle, answer, sizeof(answer)), -1);
	control_tick(&control, loop_now() + CONTROL_IDLE_MS + 1000);
	assert_int_equal(hear(idle, answer, sizeof(answer)), 0);
	assert_int_equal(hear(follower, answer, sizeof(answer)), -1);
	close(idle);
	close(follower);
	settle();
}

static void test_later(void **state)
{
	char answer[256];
	int fd = dial();

	(void)state;
	say(fd, "{\"command\":\"later\"}\n{\"command\":\"x\"}\n",
	    strlen("{\"command\":\"later\"}\n{\"command\":\"x\"}\n"));
	assert_int_equal(hear(fd, answer, sizeof(answer)), -1);
	assert_non_null(waiting);
	control_answer(waiting, json_pack("{s:b}", "ok", 1), -1);
	/* What was asked meanwhile is taken up then. */
	hear(fd, answer, sizeof(answer));
	assert_string_equal(answer, "{\"ok\":true}\n"
				    "{\"ok\":false,\"error\":\"there is no such command\"}\n");
	close(fd);
	settle();

	/* Gone while an answer is owed. */
	fd = dial();
	say(fd, "{\"command\":\"later\"}\n", 20);
	settle();
	close(fd);
	settle();
	assert_null(waiting);
	assert_int_equal(gone, 1);
}

static void test_descriptor(void **state)
{
	char answer[64];
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} rights;
	struct iovec part = {.iov_base = answer, .iov_len = sizeof(answer)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	struct stat ours, theirs;
	int fd = dial(), received;

	(void)state;
	say(fd, "{\"command\":\"file\"}\n", 19);
	settle();
	assert_int_equal(recvmsg(fd, &message, MSG_DONTWAIT), 12);
	assert_non_null(CMSG_FIRSTHDR(&message));
	memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(received));
	fstat(STDERR_FILENO, &ours);
	fstat(received, &theirs);
	assert_int_equal(ours.st_ino, theirs.st_ino);
	close(received);
	close(fd);
	settle();
}

static void test_followers(void **state)
{
	static char line[3000];
	char answer[4096];
	int reader = dial(), sleeper = dial();

	(void)state;
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	say(reader, "{\"command\":\"follow\"}\n", 21);
	say(sleeper, "{\"command\":\"follow\"}\n", 21);
	settle();
	control_follow(&control, "one\n", 4, loop_now());
	hear(reader, answer, sizeof(answer));
	assert_string_equal(answer, "one\n");
	/* One who does not read is dropped at the bound; the other goes on. */
	for (size_t i = 0; i < 2 * CONTROL_OUTPUT_MAX / sizeof(line); i++) {
		control_follow(&control, line, sizeof(line), loop_now());
		size_t got = 0;
		while (got < sizeof(line)) {
			ssize_t count = hear(reader, answer, sizeof(answer));
			assert_true(count > 0);
			got += (size_t)count;
		}
	}
	size_t total = 0;
	ssize_t count;
	char last = '\n';
	while ((count = hear(sleeper, answer, sizeof(answer))) > 0) {
		total += (size_t)count;
		last = answer[count - 1];
	}
	assert_int_equal(count, 0); /* closed, after whole lines */
	assert_int_equal(last, '\n');
	assert_true(total < 2 * CONTROL_OUTPUT_MAX);
	close(reader);
	close(sleeper);
	settle();
}

static void test_path(void **state)
{
	struct control other = {.path = ""};
	struct stat file;
	char problem[512] = "";

	(void)state;
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 0777, 0600);
	assert_int_equal(control_open(&other, &loop, path, &handler, problem, sizeof(problem)),
			 -EADDRINUSE);
	assert_non_null(strstr(problem, "another pinfold answers on"));
	/* One that nobody answers is replaced. */
	loop_close(&loop, &control.listener);
	assert_int_equal(control_open(&control, &loop, path, &handler, problem, sizeof(problem)),
			 0);
	ask("{}\n", "{\"ok\":false,\"error\":\"no \\\"command\\\"\"}\n");
	assert_int_equal(
		control_open(&other, &loop, "/nonexistent/a/b", &handler, problem, sizeof(problem)),
		-ENOENT);
	assert_int_equal(
		control_open(&other, &loop, "/etc/hostname", &handler, problem, sizeof(problem)),
		-EADDRINUSE);
	assert_int_equal(access("/etc/hostname", F_OK), 0);
}

static int make_folder(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/new/control.sock", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "%s/new", folder);
	return rmdir(path) == 0 && rmdir(folder) == 0 ? 0 : -1;
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_requests),  CASE(test_junk), CASE(test_too_long), CASE(test_slow_writer),
		CASE(test_many),      CASE(test_idle), CASE(test_later),    CASE(test_descriptor),
		CASE(test_followers), CASE(test_path),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
