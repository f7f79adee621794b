/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Clients that are registered over the control socket of a whole parent. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "service.h"

#define POLICIES "policies: {default: {}, ci: {}}"

static void state_path(char path[160])
{
	snprintf(path, 160, "%s.clients", socket_path);
}

static int set_up(void **state)
{
	char path[160];

	state_path(path);
	unlink(path);
	service_set_up(state);
	service_write_config(POLICIES);
	return 0;
}

/* Asks REQUEST; the code of the refusal, "ok" or "same". */
static const char *outcome(const char *request)
{
	static char text[512];
	json_t *answer = service_ask(request);

	if (json_is_true(json_object_get(answer, "ok")))
		snprintf(text, sizeof(text), "%s",
			 json_is_true(json_object_get(answer, "changed")) ? "ok" : "same");
	else
		snprintf(text, sizeof(text), "%s: %s",
			 json_string_value(json_object_get(answer, "code")),
			 json_string_value(json_object_get(answer, "error")));
	json_decref(answer);
	return text;
}

#define ADD(name, rest) "{\"command\":\"client-add\",\"name\":\"" name "\"," rest "}\n"
#define REMOVE(name)    "{\"command\":\"client-remove\",\"name\":\"" name "\"}\n"
#define ONE             "\"addresses\":[\"10.1.2.3\",\"fd00::3\"],\"policy\":\"ci\""

static size_t clients(void)
{
	json_t *answer = service_ask("{\"command\":\"client-list\"}\n");
	size_t count = json_array_size(json_object_get(answer, "clients"));

	json_decref(answer);
	return count;
}

static void test_add_and_remove(void **state)
{
	(void)state;
	assert_true(service_start());
	assert_string_equal(outcome(ADD("a", ONE)), "ok");
	/* The answer comes when both have it. */
	assert_int_equal(service_status_number(NULL, "generation"), 2);
	assert_int_equal(service_status_number("resolver", "generation"), 2);
	assert_int_equal(service_status_number("gate", "generation"), 2);
	assert_string_equal(outcome(ADD("a", ONE)), "same");
	assert_int_equal(service_status_number(NULL, "generation"), 2);
	assert_string_equal(outcome(ADD("b", "\"address\":\"10.1.2.3\"")),
			    "taken: 10.1.2.3 is the client 'a'");
	assert_string_equal(outcome(ADD("b", "\"policy\":\"x\",\"address\":\"10.1.2.4\"")),
			    "invalid: there is no policy 'x'");
	assert_string_equal(outcome("{\"command\":\"client-add\"}\n"),
			    "invalid: a client needs a name");
	json_t *list = service_ask("{\"command\":\"client-list\"}\n");
	char *text = json_dumps(json_object_get(list, "clients"), JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(text, "[{\"addresses\":[\"10.1.2.3\",\"fd00::3\"],\"name\":\"a\","
				  "\"policy\":\"ci\",\"registered\":true}]");
	free(text);
	json_decref(list);

	assert_string_equal(outcome(REMOVE("b")), "same");
	assert_int_equal(service_status_number("resolver", "generation"), 2);
	assert_string_equal(outcome("{\"command\":\"client-remove\"}\n"),
			    "invalid: client-remove takes a \"name\" and nothing else");
	assert_string_equal(outcome(REMOVE("a")), "ok");
	assert_int_equal(service_status_number("gate", "generation"), 3);
	json_t *status = service_ask("{\"command\":\"status\"}\n");
	const json_t *counters = json_object_get(json_object_get(status, "resolver"), "counters");
	/* its pins are dropped */
	assert_int_equal(json_integer_value(json_object_get(counters, "answers")), 1);
	json_decref(status);
	assert_int_equal(clients(), 0);
	assert_int_equal(service_status_number("resolver", "starts"), 1);
	assert_int_equal(service_status_number("gate", "starts"), 1);
}

static void test_configured(void **state)
{
	(void)state;
	service_write_config("clients: [{name: user, uid: 7}]\n" POLICIES);
	assert_true(service_start());
	assert_string_equal(outcome(REMOVE("user")),
			    "invalid: the client 'user' is one of the configuration");
	assert_string_equal(outcome(ADD("user", ONE)), "taken: there is another client 'user'");
	assert_string_equal(outcome(ADD("a", ONE)), "ok");
	assert_int_equal(clients(), 2);
}

/* They outlive the service; a line that cannot be taken stops the start. */
static void test_restart(void **state)
{
	char path[160];

	(void)state;
	assert_true(service_start());
	assert_string_equal(outcome(ADD("a", ONE)), "ok");
	assert_string_equal(outcome(ADD("b", "\"uid\":7")), "ok");
	assert_string_equal(outcome(REMOVE("b")), "ok");
	kill(parent, SIGKILL);
	assert_int_equal(service_finish(), 128 + SIGKILL);
	assert_true(service_start());
	assert_int_equal(clients(), 1);
	assert_string_equal(outcome(ADD("a", ONE)), "same");
	kill(parent, SIGTERM);
	assert_int_equal(service_finish(), 0);

	service_write_config("policies: {default: {}}");
	assert_false(service_start());
	assert_int_equal(service_finish(), 2);
	assert_true(service_said(".clients:1: error: there is no policy 'ci'\n"));
	state_path(path);
	assert_int_equal(unlink(path), 0);
}

/* What a reload would do to a registered client, and what it keeps. */
static void test_reload(void **state)
{
	(void)state;
	assert_true(service_start());
	assert_string_equal(outcome(ADD("a", ONE)), "ok");
	service_write_config("policies: {default: {}}");
	json_t *answer = service_ask("{\"command\":\"reload\"}\n");
	assert_string_equal(json_string_value(json_object_get(answer, "error")),
			    "the registered client 'a': there is no policy 'ci'");
	json_decref(answer);
	service_write_config("policies: {default: {}, other: {}, ci: {default: deny}}");
	answer = service_ask("{\"command\":\"reload\"}\n");
	assert_true(json_is_true(json_object_get(answer, "ok")));
	json_decref(answer);
	assert_int_equal(clients(), 1);
	assert_string_equal(outcome(ADD("a", ONE)), "same");
}

/* A change that cannot be made changes nothing, and the next one can. */
static void test_failure(void **state)
{
	char path[160];
	struct stat before, after;

	(void)state;
	assert_true(service_start());
	assert_string_equal(outcome(ADD("a", ONE)), "ok");
	state_path(path);
	assert_int_equal(stat(path, &before), 0);
	assert_string_equal(outcome(ADD("refuse-gate", "\"uid\":7")),
			    "failed: gate: told to refuse");
	assert_string_equal(outcome(ADD("refuse-resolver", "\"uid\":7")),
			    "failed: resolver: told to refuse");
	assert_string_equal(outcome(ADD("die-gate", "\"uid\":7")),
			    "failed: gate died over it: exit status 7");
	service_until("gate", "starts", 2);
	service_until_ready("gate");
	service_until("gate", "generation", 2);
	service_until("resolver", "generation", 2);
	assert_int_equal(clients(), 1);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	assert_string_equal(outcome(ADD("b", "\"uid\":7")), "ok");

	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_non_null(strstr(outcome(ADD("c", "\"uid\":8")), "failed: cannot write "));
	assert_int_equal(clients(), 2);
	assert_int_equal(rmdir(path), 0);
	assert_string_equal(outcome(ADD("c", "\"uid\":8")), "ok");
}

static int connect_to(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, socket_path, strlen(socket_path));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

#define CROWD 400 /* more than the service has connections */

/* A crowd of requests is one or two changes; who left before the answer is registered all the same. */
static void test_crowd(void **state)
{
	int fds[CROWD];
	char line[128], answer[256] = "";

	(void)state;
	assert_true(service_start());
	pid_t gate = service_child_pid("gate");
	kill(gate, SIGSTOP); /* so that they have to wait */
	for (int i = 0; i < CROWD; i++) {
		fds[i] = connect_to();
		int length = snprintf(line, sizeof(line),
				      "{\"command\":\"client-add\",\"name\":\"c%d\",\"address\":"
				      "\"10.1.%d.%d\"}\n",
				      i, i / 256, i % 256);
		assert_int_equal(write(fds[i], line, (size_t)length), length);
	}
	kill(gate, SIGCONT);
	for (int i = 0; i < CROWD; i++) {
		if (i % 100 != 7)
			assert_true(read(fds[i], answer, sizeof(answer)) > 10);
		if (i % 100 != 7)
			assert_memory_equal(answer, "{\"ok\":true", 10);
		close(fds[i]);
	}
	service_until(NULL, "registered_clients", CROWD);
	assert_true(service_status_number(NULL, "generation") < 20);
}

/* A reload and changes that come at once are carried out one after the other. */
static void test_order(void **state)
{
	int fds[4];
	char answer[256] = "";

	(void)state;
	assert_true(service_start());
	kill(service_child_pid("resolver"), SIGSTOP);
	for (int i = 0; i < 4; i++)
		fds[i] = connect_to();
	assert_true(write(fds[0], ADD("a", ONE), strlen(ADD("a", ONE))) > 0);
	poll(NULL, 0, 50);
	assert_true(write(fds[1], "{\"command\":\"reload\"}\n", 21) == 21);
	poll(NULL, 0, 50);
	assert_true(write(fds[2], REMOVE("a"), strlen(REMOVE("a"))) > 0);
	assert_true(write(fds[3], "{\"command\":\"reload\"}\n", 21) == 21);
	assert_true(read(fds[3], answer, sizeof(answer)) > 0);
	assert_non_null(strstr(answer, "a reload waits already"));
	close(fds[3]);
	kill(service_child_pid("resolver"), SIGCONT);
	for (int i = 0; i < 3; i++) {
		assert_true(read(fds[i], answer, sizeof(answer)) > 0);
		assert_memory_equal(answer, "{\"ok\":true", 10);
		close(fds[i]);
	}
	assert_int_equal(clients(), 0);
	assert_int_equal(service_status_number("gate", "generation"), 4);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, service_tear_down)

static int remove_all(void **state)
{
	char path[160];

	state_path(path);
	unlink(path);
	return service_remove_folder(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_add_and_remove), CASE(test_configured), CASE(test_restart),
		CASE(test_reload),         CASE(test_failure),    CASE(test_crowd),
		CASE(test_order),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, service_make_folder, remove_all);
}
