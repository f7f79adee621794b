/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The whole parent with children that only keep the protocol: start, status, reload, restart, end.
 * It runs in a process of its own and is asked over its control socket.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/parent.h"
#include "pins.h"
#include "service.h"

static void test_status(void **state)
{
	(void)state;
	assert_true(service_start());
	json_t *status = service_ask("{\"command\":\"status\"}\n");
	assert_true(json_is_true(json_object_get(status, "ok")));
	const json_t *resolver = json_object_get(status, "resolver");
	assert_string_equal(json_string_value(json_object_get(resolver, "state")), "ready");
	assert_int_equal(json_integer_value(
				 json_object_get(json_object_get(resolver, "counters"), "queries")),
			 42);
	assert_int_equal(
		json_integer_value(json_object_get(
			json_object_get(json_object_get(status, "gate"), "refused"), "metadata")),
		3);
	assert_int_equal(json_integer_value(json_object_get(status, "generation")), 1);
	assert_string_equal(json_string_value(json_object_get(status, "config")), config_path);
	json_decref(status);
	kill(parent, SIGTERM);
	assert_int_equal(service_finish(), 0);
	assert_int_equal(access(socket_path, F_OK), -1);
}

static void test_lifetime(void **state)
{
	(void)state;
	assert_true(service_start());
	close(lifetime);
	lifetime = -1;
	assert_int_equal(service_finish(), 0);
}

static void test_restart(void **state)
{
	(void)state;
	assert_true(service_start());
	pid_t gate = service_child_pid("gate");
	assert_int_equal(kill(gate, SIGKILL), 0);
	service_until("gate", "starts", 2);
	service_until("gate", "generation", 1);
	assert_int_not_equal(service_child_pid("gate"), gate);
	assert_int_equal(service_status_number("resolver", "starts"), 1);
	assert_true(service_said("pinfold: gate died (killed by signal 9), restart in "));
	kill(service_child_pid("resolver"), SIGUSR2); /* junk */
	service_until("resolver", "starts", 2);
	assert_true(service_said(
		"pinfold: resolver died (sent a message that is not right), restart in "));
}

/* Children do not outlive a parent that was killed. */
static void test_parent_killed(void **state)
{
	(void)state;
	assert_true(service_start());
	pid_t gate = service_child_pid("gate"), resolver = service_child_pid("resolver");
	kill(parent, SIGKILL);
	assert_int_equal(service_finish(), 128 + SIGKILL);
	for (int i = 0; i < 250 && (kill(gate, 0) == 0 || kill(resolver, 0) == 0); i++)
		poll(NULL, 0, 20);
	assert_int_equal(kill(gate, 0), -1);
	assert_int_equal(kill(resolver, 0), -1);
	/* The socket that it left is taken over. */
	assert_true(service_start());
}

static void test_reload(void **state)
{
	json_t *answer;

	(void)state;
	assert_true(service_start());
	service_write_config("policies: {default: {default: deny}}");
	answer = service_ask("{\"command\":\"reload\"}\n");
	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_int_equal(json_integer_value(json_object_get(answer, "generation")), 2);
	json_decref(answer);
	assert_int_equal(service_status_number("resolver", "generation"), 2);
	assert_int_equal(service_status_number("gate", "generation"), 2);
	kill(parent, SIGHUP);
	service_until(NULL, "generation", 3);
	service_until("gate", "generation", 3);
}

static void refuse_reload(const char *extra, const char *error)
{
	json_t *answer;

	service_write_config(extra);
	answer = service_ask("{\"command\":\"reload\"}\n");
	assert_true(json_is_false(json_object_get(answer, "ok")));
	assert_string_equal(json_string_value(json_object_get(answer, "error")), error);
	json_decref(answer);
	/* The old policy is in force, in the parent and in both children. */
	assert_int_equal(service_status_number(NULL, "generation"), 1);
	service_until("resolver", "generation", 1);
	service_until("gate", "generation", 1);
}

static void test_reload_refused(void **state)
{
	json_t *answer;

	(void)state;
	assert_true(service_start());
	refuse_reload("polices: {}", "the configuration has errors");
	answer = service_ask("{\"command\":\"reload\"}\n");
	const char *finding =
		json_string_value(json_array_get(json_object_get(answer, "findings"), 0));
	assert_non_null(finding);
	assert_non_null(strstr(finding, ".yaml:4:1: error: "));
	json_decref(answer);
	refuse_reload("gate: {queue: 7}", "gate: {queue} cannot change while running; restart");
	refuse_reload("policies: {default: {}, refuse-resolver: {}}", "resolver: told to refuse");
	refuse_reload("policies: {default: {}, refuse-gate: {}}", "gate: told to refuse");
	assert_int_equal(service_status_number("resolver", "starts"), 1);
	assert_int_equal(service_status_number("gate", "starts"), 1);
	refuse_reload("policies: {default: {}, die-gate: {}}", "gate died over it: exit status 7");
	service_until("gate", "starts", 2);
	service_until_ready("gate");
	snprintf(log_path, sizeof(log_path), "/nonexistent/log");
	refuse_reload("", "cannot open the log /nonexistent/log: No such file or directory");
	snprintf(log_path, sizeof(log_path), "%s/other-log", folder);
	refuse_reload("policies: {default: {}, refuse-gate: {}}", "gate: told to refuse");
	assert_int_equal(unlink(log_path), 0);
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	kill(service_child_pid("gate"), SIGUSR1);
	service_until("log", "written", 1);
	assert_int_equal(access(log_path, F_OK), 0); /* still the old one */
	unlink(config_path);
	kill(parent, SIGHUP);
	service_until(NULL, "generation", 1);
	service_write_config("");
	answer = service_ask("{\"command\":\"reload\"}\n");
	assert_true(json_is_true(json_object_get(answer, "ok")));
	json_decref(answer);
}

/* A child that was away during a reload comes back with the new policy. */
static void test_reload_while_away(void **state)
{
	json_t *answer;

	(void)state;
	assert_true(service_start());
	/* So often that it stays away for a while. */
	for (json_int_t i = 1; i <= 4; i++) {
		service_until("gate", "starts", i);
		while (service_status_number("gate", "generation") == 0) /* on its way */
			poll(NULL, 0, 5);
		kill(service_child_pid("gate"), SIGKILL);
		service_until("gate", "generation", 0);
	}
	answer = service_ask("{\"command\":\"reload\"}\n");
	assert_true(json_is_true(json_object_get(answer, "ok")));
	json_decref(answer);
	service_until("gate", "starts", 5);
	service_until("gate", "generation", 2);
	assert_int_equal(service_status_number("resolver", "generation"), 2);
}

static void test_log(void **state)
{
	char line[1024] = "";
	json_t *record;

	(void)state;
	assert_true(service_start());
	kill(service_child_pid("gate"), SIGUSR1);
	service_until("log", "written", 1);
	record = service_ask("{\"command\":\"log\"}\n");
	assert_string_equal(json_string_value(json_object_get(record, "reason")), "metadata");
	json_decref(record);
	FILE *file = fopen(log_path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	record = json_loads(line, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(record, "client")), "gate");
	json_decref(record);
	/* Opened anew on request. */
	assert_int_equal(unlink(log_path), 0);
	kill(parent, SIGUSR1);
	for (int i = 0; i < 250 && access(log_path, F_OK) < 0; i++)
		poll(NULL, 0, 20);
	assert_int_equal(access(log_path, F_OK), 0);
}

static void test_pins(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char answer[4096];
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} rights;
	struct iovec part = {.iov_base = answer, .iov_len = sizeof(answer)};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = rights.bytes,
				 .msg_controllen = sizeof(rights.bytes)};
	struct pins_table *table;
	struct pins_stats stats;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), pins = -1;

	(void)state;
	assert_true(service_start());
	memcpy(address.sun_path, socket_path, strlen(socket_path));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(write(fd, "{\"command\":\"pins\"}\n", 19) == 19);
	assert_true(recvmsg(fd, &message, 0) > 0);
	assert_non_null(CMSG_FIRSTHDR(&message));
	memcpy(&pins, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(pins));
	assert_int_equal(pins_map(pins, &table), 0);
	pins_stats(table, &stats);
	assert_int_equal(stats.capacity, PINS_CAPACITY_DEFAULT);
	pins_unmap(table);
	close(pins);
	close(fd);
}

static void test_port_taken(void **state)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				      .sin_port = htons((uint16_t)port)};
	char expected[128];
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_false(service_start());
	assert_int_equal(service_finish(), 2);
	snprintf(expected, sizeof(expected),
		 "pinfold: cannot listen on 127.0.0.1:%u/udp: Address already in use\n", port);
	assert_true(service_said(expected));
	assert_int_equal(access(socket_path, F_OK), -1);
	close(fd);
}

static void test_no_start(void **state)
{
	(void)state;
	service_write_config("policies: {default: {}, refuse-gate: {}}");
	assert_false(service_start());
	assert_int_equal(service_finish(), 2);
	assert_true(service_said("pinfold: gate: told to refuse\n"));
	assert_int_equal(access(socket_path, F_OK), -1);

	snprintf(log_path, sizeof(log_path), "/nonexistent/log");
	service_write_config("");
	assert_false(service_start());
	assert_int_equal(service_finish(), 2);
	assert_true(service_said("pinfold: cannot open the log /nonexistent/log: No such file"));
	snprintf(log_path, sizeof(log_path), "%s/log", folder);

	service_write_config("user: nobody-of-that-name");
	assert_false(service_start());
	assert_int_equal(service_finish(), 2);
	if (geteuid() == 0)
		assert_true(service_said("pinfold: there is no user nobody-of-that-name"));
}

static void test_gate_off(void **state)
{
	(void)state;
	service_write_config("gate: {enabled: false}");
	assert_true(service_start());
	json_t *status = service_ask("{\"command\":\"status\"}\n");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(status, "gate"), "state")),
		"unused");
	json_decref(status);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, service_set_up, service_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_status),
		CASE(test_lifetime),
		CASE(test_restart),
		CASE(test_parent_killed),
		CASE(test_reload),
		CASE(test_reload_refused),
		CASE(test_reload_while_away),
		CASE(test_log),
		CASE(test_pins),
		CASE(test_port_taken),
		CASE(test_no_start),
		CASE(test_gate_off),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, service_make_folder, service_remove_folder);
}
