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

static char folder[] = "/tmp/pinfold-parent-XXXXXX";
static char config_path[128], socket_path[128], log_path[128], stderr_path[128];
static unsigned port;
static pid_t parent;
static int lifetime;

/* A port that was free a moment ago. */
static unsigned free_port(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	close(fd);
	return ntohs(address.sin_port);
}

/* A configuration with EXTRA in it. */
static void write_config(const char *extra)
{
	FILE *file = fopen(config_path, "w");

	assert_non_null(file);
	fprintf(file,
		"resolver: {listen: [\"127.0.0.1@%u\"], trust_anchor: none}\n"
		"control: {socket: %s}\nlog: {file: %s}\n%s\n",
		port, socket_path, log_path, extra);
	fclose(file);
}

static int child_main(int ready_fd, int lifetime_fd)
{
	struct config_findings findings;
	int error = open(stderr_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(error, STDERR_FILENO);
	struct config *config = config_read(config_path, &findings);
	config_findings_print(&findings, config_path, stderr);
	config_findings_free(&findings);
	if (config == NULL)
		return 3;
	struct parent_options options = {
		.config = config,
		.config_path = config_path,
		.libexec = FAKE_LIBEXEC,
		.ready_fd = ready_fd,
		.lifetime_fd = lifetime_fd,
	};
	int result = parent_run(&options);
	config_free(config);
	return result == 0 ? 0 : 2;
}

/* Starts the parent; true when it became ready. */
static bool start(void)
{
	int ready[2], life[2];
	char byte;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(life, O_CLOEXEC), 0);
	parent = fork();
	if (parent == 0) {
		close(life[1]);
		close(ready[0]);
		exit(child_main(ready[1], life[0]));
	}
	close(ready[1]);
	close(life[0]);
	lifetime = life[1];
	bool is_ready = read(ready[0], &byte, 1) == 1;
	close(ready[0]);
	return is_ready;
}

/* Its exit status; 128 + signal. */
static int finish(void)
{
	int status;

	assert_int_equal(waitpid(parent, &status, 0), parent);
	close(lifetime);
	parent = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int set_up(void **state)
{
	(void)state;
	port = free_port();
	parent = 0;
	write_config("");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (parent > 0) {
		kill(parent, SIGKILL);
		finish();
	}
	unlink(socket_path);
	unlink(log_path);
	return 0;
}

static json_t *ask(const char *request)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char answer[16384];
	size_t length = 0;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, socket_path, strlen(socket_path));
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_true(write(fd, request, strlen(request)) > 0);
	while (memchr(answer, '\n', length) == NULL) {
		ssize_t count = read(fd, answer + length, sizeof(answer) - length);
		assert_true(count > 0);
		length += (size_t)count;
	}
	close(fd);
	json_t *object = json_loadb(answer, length, JSON_DISABLE_EOF_CHECK, NULL);
	assert_non_null(object);
	return object;
}

static json_int_t status_number(const char *section, const char *key)
{
	json_t *status = ask("{\"command\":\"status\"}\n");
	const json_t *at = section == NULL ? status : json_object_get(status, section);
	json_int_t number = json_integer_value(json_object_get(at, key));

	json_decref(status);
	return number;
}

/* Waits until SECTION's KEY is VALUE. */
static void until(const char *section, const char *key, json_int_t value)
{
	for (int i = 0; i < 250 && status_number(section, key) != value; i++)
		poll(NULL, 0, 20);
	assert_int_equal(status_number(section, key), value);
}

static bool is_ready(const char *kind)
{
	json_t *status = ask("{\"command\":\"status\"}\n");
	const char *state =
		json_string_value(json_object_get(json_object_get(status, kind), "state"));
	bool ready = state != NULL && strcmp(state, "ready") == 0;

	json_decref(status);
	return ready;
}

static void until_ready(const char *kind)
{
	for (int i = 0; i < 250 && !is_ready(kind); i++)
		poll(NULL, 0, 20);
	assert_true(is_ready(kind));
}

static bool said(const char *text)
{
	char all[16384] = "";
	FILE *file = fopen(stderr_path, "r");

	assert_non_null(file);
	size_t length = fread(all, 1, sizeof(all) - 1, file);
	fclose(file);
	all[length] = '\0';
	if (strstr(all, text) != NULL)
		return true;
	print_message("it said: %s\n", all);
	return false;
}

static void test_status(void **state)
{
	(void)state;
	assert_true(start());
	json_t *status = ask("{\"command\":\"status\"}\n");
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
	assert_int_equal(finish(), 0);
	assert_int_equal(access(socket_path, F_OK), -1);
}

static void test_lifetime(void **state)
{
	(void)state;
	assert_true(start());
	close(lifetime);
	lifetime = -1;
	assert_int_equal(finish(), 0);
}

static pid_t child_pid(const char *kind)
{
	return (pid_t)status_number(kind, "pid");
}

static void test_restart(void **state)
{
	(void)state;
	assert_true(start());
	pid_t gate = child_pid("gate");
	assert_int_equal(kill(gate, SIGKILL), 0);
	until("gate", "starts", 2);
	until("gate", "generation", 1);
	assert_int_not_equal(child_pid("gate"), gate);
	assert_int_equal(status_number("resolver", "starts"), 1);
	assert_true(said("pinfold: gate died (killed by signal 9), restart in "));
	kill(child_pid("resolver"), SIGUSR2); /* junk */
	until("resolver", "starts", 2);
	assert_true(said("pinfold: resolver died (sent a message that is not right), restart in "));
}

/* Children do not outlive a parent that was killed. */
static void test_parent_killed(void **state)
{
	(void)state;
	assert_true(start());
	pid_t gate = child_pid("gate"), resolver = child_pid("resolver");
	kill(parent, SIGKILL);
	assert_int_equal(finish(), 128 + SIGKILL);
	for (int i = 0; i < 250 && (kill(gate, 0) == 0 || kill(resolver, 0) == 0); i++)
		poll(NULL, 0, 20);
	assert_int_equal(kill(gate, 0), -1);
	assert_int_equal(kill(resolver, 0), -1);
	/* The socket that it left is taken over. */
	assert_true(start());
}

static void test_reload(void **state)
{
	json_t *answer;

	(void)state;
	assert_true(start());
	write_config("policies: {default: {default: deny}}");
	answer = ask("{\"command\":\"reload\"}\n");
	assert_true(json_is_true(json_object_get(answer, "ok")));
	assert_int_equal(json_integer_value(json_object_get(answer, "generation")), 2);
	json_decref(answer);
	assert_int_equal(status_number("resolver", "generation"), 2);
	assert_int_equal(status_number("gate", "generation"), 2);
	kill(parent, SIGHUP);
	until(NULL, "generation", 3);
	until("gate", "generation", 3);
}

static void refuse_reload(const char *extra, const char *error)
{
	json_t *answer;

	write_config(extra);
	answer = ask("{\"command\":\"reload\"}\n");
	assert_true(json_is_false(json_object_get(answer, "ok")));
	assert_string_equal(json_string_value(json_object_get(answer, "error")), error);
	json_decref(answer);
	/* The old policy is in force, in the parent and in both children. */
	assert_int_equal(status_number(NULL, "generation"), 1);
	until("resolver", "generation", 1);
	until("gate", "generation", 1);
}

static void test_reload_refused(void **state)
{
	json_t *answer;

	(void)state;
	assert_true(start());
	refuse_reload("polices: {}", "the configuration has errors");
	answer = ask("{\"command\":\"reload\"}\n");
	const char *finding =
		json_string_value(json_array_get(json_object_get(answer, "findings"), 0));
	assert_non_null(finding);
	assert_non_null(strstr(finding, ".yaml:4:1: error: "));
	json_decref(answer);
	refuse_reload("gate: {queue: 7}", "gate: {queue} cannot change while running; restart");
	refuse_reload("policies: {default: {}, refuse-resolver: {}}", "resolver: told to refuse");
	refuse_reload("policies: {default: {}, refuse-gate: {}}", "gate: told to refuse");
	assert_int_equal(status_number("resolver", "starts"), 1);
	assert_int_equal(status_number("gate", "starts"), 1);
	refuse_reload("policies: {default: {}, die-gate: {}}", "gate died over it: exit status 7");
	until("gate", "starts", 2);
	until_ready("gate");
	snprintf(log_path, sizeof(log_path), "/nonexistent/log");
	refuse_reload("", "cannot open the log /nonexistent/log: No such file or directory");
	snprintf(log_path, sizeof(log_path), "%s/other-log", folder);
	refuse_reload("policies: {default: {}, refuse-gate: {}}", "gate: told to refuse");
	assert_int_equal(unlink(log_path), 0);
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	kill(child_pid("gate"), SIGUSR1);
	until("log", "written", 1);
	assert_int_equal(access(log_path, F_OK), 0); /* still the old one */
	unlink(config_path);
	kill(parent, SIGHUP);
	until(NULL, "generation", 1);
	write_config("");
	answer = ask("{\"command\":\"reload\"}\n");
	assert_true(json_is_true(json_object_get(answer, "ok")));
	json_decref(answer);
}

/* A child that was away during a reload comes back with the new policy. */
static void test_reload_while_away(void **state)
{
	json_t *answer;

	(void)state;
	assert_true(start());
	/* So often that it stays away for a while. */
	for (json_int_t i = 1; i <= 4; i++) {
		until("gate", "starts", i);
		while (status_number("gate", "generation") == 0) /* on its way */
			poll(NULL, 0, 5);
		kill(child_pid("gate"), SIGKILL);
		until("gate", "generation", 0);
	}
	answer = ask("{\"command\":\"reload\"}\n");
	assert_true(json_is_true(json_object_get(answer, "ok")));
	json_decref(answer);
	until("gate", "starts", 5);
	until("gate", "generation", 2);
	assert_int_equal(status_number("resolver", "generation"), 2);
}

static void test_log(void **state)
{
	char line[1024] = "";
	json_t *record;

	(void)state;
	assert_true(start());
	kill(child_pid("gate"), SIGUSR1);
	until("log", "written", 1);
	record = ask("{\"command\":\"log\"}\n");
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
	assert_true(start());
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
	assert_false(start());
	assert_int_equal(finish(), 2);
	snprintf(expected, sizeof(expected),
		 "pinfold: cannot listen on 127.0.0.1:%u/udp: Address already in use\n", port);
	assert_true(said(expected));
	assert_int_equal(access(socket_path, F_OK), -1);
	close(fd);
}

static void test_no_start(void **state)
{
	(void)state;
	write_config("policies: {default: {}, refuse-gate: {}}");
	assert_false(start());
	assert_int_equal(finish(), 2);
	assert_true(said("pinfold: gate: told to refuse\n"));
	assert_int_equal(access(socket_path, F_OK), -1);

	snprintf(log_path, sizeof(log_path), "/nonexistent/log");
	write_config("");
	assert_false(start());
	assert_int_equal(finish(), 2);
	assert_true(said("pinfold: cannot open the log /nonexistent/log: No such file"));
	snprintf(log_path, sizeof(log_path), "%s/log", folder);

	write_config("user: nobody-of-that-name");
	assert_false(start());
	assert_int_equal(finish(), 2);
	if (geteuid() == 0)
		assert_true(said("pinfold: there is no user nobody-of-that-name"));
}

static void test_gate_off(void **state)
{
	(void)state;
	write_config("gate: {enabled: false}");
	assert_true(start());
	json_t *status = ask("{\"command\":\"status\"}\n");
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(status, "gate"), "state")),
		"unused");
	json_decref(status);
}

static int make_folder(void **state)
{
	(void)state;
	if (mkdtemp(folder) == NULL)
		return -1;
	snprintf(config_path, sizeof(config_path), "%s/p.yaml", folder);
	snprintf(socket_path, sizeof(socket_path), "%s/control", folder);
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	snprintf(stderr_path, sizeof(stderr_path), "%s/stderr", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(config_path);
	unlink(stderr_path);
	return rmdir(folder);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

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
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
