/* SPDX-License-Identifier: GPL-2.0-or-later */
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
#include "service.h"

char folder[] = "/tmp/pinfold-service-XXXXXX";
char config_path[128], socket_path[128], log_path[128];
unsigned port;
pid_t parent;
int lifetime;
static char stderr_path[128];

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
void service_write_config(const char *extra)
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
bool service_start(void)
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
int service_finish(void)
{
	int status;

	assert_int_equal(waitpid(parent, &status, 0), parent);
	close(lifetime);
	parent = 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int service_set_up(void **state)
{
	(void)state;
	port = free_port();
	parent = 0;
	service_write_config("");
	return 0;
}

int service_tear_down(void **state)
{
	(void)state;
	if (parent > 0) {
		kill(parent, SIGKILL);
		service_finish();
	}
	unlink(socket_path);
	unlink(log_path);
	return 0;
}

json_t *service_ask(const char *request)
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

json_int_t service_status_number(const char *section, const char *key)
{
	json_t *status = service_ask("{\"command\":\"status\"}\n");
	const json_t *at = section == NULL ? status : json_object_get(status, section);
	json_int_t number = json_integer_value(json_object_get(at, key));

	json_decref(status);
	return number;
}

/* Waits until SECTION's KEY is VALUE. */
void service_until(const char *section, const char *key, json_int_t value)
{
	for (int i = 0; i < 250 && service_status_number(section, key) != value; i++)
		poll(NULL, 0, 20);
	assert_int_equal(service_status_number(section, key), value);
}

static bool is_ready(const char *kind)
{
	json_t *status = service_ask("{\"command\":\"status\"}\n");
	const char *state =
		json_string_value(json_object_get(json_object_get(status, kind), "state"));
	bool ready = state != NULL && strcmp(state, "ready") == 0;

	json_decref(status);
	return ready;
}

void service_until_ready(const char *kind)
{
	for (int i = 0; i < 250 && !is_ready(kind); i++)
		poll(NULL, 0, 20);
	assert_true(is_ready(kind));
}

bool service_said(const char *text)
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

pid_t service_child_pid(const char *kind)
{
	return (pid_t)service_status_number(kind, "pid");
}

int service_make_folder(void **state)
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

int service_remove_folder(void **state)
{
	(void)state;
	unlink(config_path);
	unlink(stderr_path);
	return rmdir(folder);
}
