/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A parent for tests: starts pinfold-resolver as the service would and does what lines on standard
 * input say. Everything the resolver sends comes out as lines.
 *
 *   parent RESOLVER CONFIG [UID]
 *
 *   reload FILE | status | pins | quit
 *   race SERVER NAME ADDRESS ROUNDS    asks over UDP, and looks for the pin when the reply is there
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "config/config.h"
#include "message.h"
#include "pins.h"
#include "policy.h"

static uint64_t generation = 1;
static struct pins_table *table;

static void die(const char *what)
{
	printf("error %s: %s\n", what, strerror(errno));
	exit(1);
}

static int memory_of(const void *bytes, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		die("memfd");
	return fd;
}

/* Reads a configuration into the two descriptors of START and RELOAD. */
static struct config *load(const char *path, int fds[2])
{
	struct config_findings findings;
	struct config *config = config_read(path, &findings);
	char problem[256];
	void *image;
	size_t size;

	config_findings_print(&findings, path, stdout);
	config_findings_free(&findings);
	if (config == NULL)
		return NULL;
	if (settings_read_files(&config->settings.resolver, problem, sizeof(problem)) != 0) {
		printf("error %s\n", problem);
		config_free(config);
		return NULL;
	}
	config->settings.generation = config->source.generation = generation++;
	if (policy_image_build(&config->source, &image, &size) != 0)
		die("image");
	fds[0] = memory_of(&config->settings, sizeof(config->settings));
	fds[1] = memory_of(image, size);
	free(image);
	return config;
}

static int bind_socket(const struct endpoint *endpoint, int type)
{
	struct sockaddr_storage address;
	socklen_t length = endpoint_to_sockaddr(endpoint, &address);
	const int on = 1;
	int fd = socket(address.ss_family, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(fd, (struct sockaddr *)&address, length) != 0)
		die("listen address");
	return fd;
}

static pid_t spawn(const char *path, int socket)
{
	pid_t pid = fork();

	if (pid == 0) {
		if (socket == MESSAGE_FD || dup2(socket, MESSAGE_FD) != MESSAGE_FD)
			_exit(126);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static void print_audit(const struct audit_record *record)
{
	char text[ADDRESS_TEXT_SIZE];

	printf("audit %s %s %s enforced=%u client=%s name=%s qtype=%u suppressed=%u addresses=",
	       stage_text(record->stage), outcome_text(record->outcome),
	       reason_text(record->reason), record->enforced, record->client,
	       record->name_present ? record->name.text : "-", record->qtype, record->suppressed);
	for (unsigned i = 0; i < record->address_count; i++)
		printf("%s%s", i > 0 ? "," : "", address_format(&record->addresses[i], text));
	printf(" detail=%s\n", record->detail);
}

/* One message of the resolver; false when it is gone. */
static bool print_message(int fd)
{
	struct message message;
	int got = message_receive(fd, &message, 0);

	if (got <= 0) {
		printf("gone %d\n", got);
		return false;
	}
	if (message.type == MESSAGE_READY)
		printf("ready\n");
	else if (message.type == MESSAGE_FAILED)
		printf("failed %s\n", message.body.failed.text);
	else if (message.type == MESSAGE_RELOADED)
		printf("reloaded\n");
	else if (message.type == MESSAGE_AUDIT)
		print_audit(&message.body.audit);
	else if (message.type == MESSAGE_STATUS) {
		printf("status");
		for (int i = 0; i < COUNTER_COUNT; i++)
			printf(" %s=%llu", counter_text((enum counter)i),
			       (unsigned long long)message.body.status.counters[i]);
		printf("\n");
	}
	return true;
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool print_pin(const struct pin *pin, void *context)
{
	char text[ADDRESS_TEXT_SIZE];
	const uint64_t *now = context;

	printf("pin ");
	for (size_t i = 0; i < sizeof(pin->client.bytes); i++)
		printf("%02x", pin->client.bytes[i]);
	printf(" %s %s %lld\n", pin->name.text, address_format(&pin->address, text),
	       (long long)(pin->expiry - *now) / 1000);
	return true;
}

static bool is_pinned(const struct address *address, const struct name *name)
{
	struct pin pins[PINS_PER_ADDRESS_MAX];
	struct client_key host = client_key_of_host();
	size_t count = pins_find(table, &host, address, pins, PINS_PER_ADDRESS_MAX);

	for (size_t i = 0; i < count; i++)
		if (name_equal(&pins[i].name, name) && now_ms() < pins[i].expiry)
			return true;
	return false;
}

static void race(const char *server_text, const char *name_text, const char *address_text,
		 unsigned rounds)
{
	struct endpoint server;
	struct address address;
	struct sockaddr_storage to;
	unsigned late = 0, unanswered = 0;
	struct timeval wait = {.tv_sec = 5};

	if (endpoint_parse(server_text, strlen(server_text), '@', 53, &server) != 0 ||
	    address_parse(address_text, strlen(address_text), &address) != 0)
		die("race");
	socklen_t length = endpoint_to_sockaddr(&server, &to);
	int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, length) != 0)
		die("race");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	for (unsigned i = 0; i < rounds; i++) {
		/* A name of its own each time: a wildcard in the zone gives them all one address.
		 */
		uint8_t query[512] = {0, 1, 1, 0, 0, 1};
		char text[256];
		struct name name;
		snprintf(text, sizeof(text), "r%u.%s", i, name_text);
		if (name_from_text(text, strlen(text), &name) != NAME_OK)
			die("race");
		size_t at = 12 + name_to_wire(&name, query + 12);
		memcpy(query + at, "\0\1\0\1", 4);
		if (address.family == ADDRESS_IPV6)
			query[at + 1] = 28;
		send(fd, query, at + 4, 0);
		uint8_t reply[1500];
		if (recv(fd, reply, sizeof(reply), 0) < 12 || reply[7] == 0)
			unanswered++;
		else if (!is_pinned(&address, &name))
			late++;
	}
	close(fd);
	printf("race late=%u unanswered=%u\n", late, unanswered);
}

static void reload(int control, const char *path)
{
	int fds[2];
	struct config *config = load(path, fds);

	if (config == NULL)
		return;
	union message_body body = {.reload = {.generation = config->settings.generation}};
	if (message_send(control, MESSAGE_RELOAD, &body, fds, 2, 0) != 0)
		die("reload");
	close(fds[0]);
	close(fds[1]);
	config_free(config);
}

static void command(int control, char *line)
{
	char *words[5] = {strtok(line, " \n")};
	union message_body empty;
	uint64_t now = now_ms();

	for (size_t i = 1; i < 5 && words[i - 1] != NULL; i++)
		words[i] = strtok(NULL, " \n");
	memset(&empty, 0, sizeof(empty));
	if (words[0] == NULL)
		return;
	if (strcmp(words[0], "quit") == 0)
		exit(0);
	if (strcmp(words[0], "status") == 0) {
		message_send(control, MESSAGE_STATUS, &empty, NULL, 0, 0);
	} else if (strcmp(words[0], "pins") == 0) {
		pins_each(table, print_pin, &now);
		printf("end\n");
	} else if (strcmp(words[0], "reload") == 0) {
		reload(control, words[1]);
	} else if (strcmp(words[0], "race") == 0 && words[4] != NULL) {
		race(words[1], words[2], words[3], (unsigned)atoi(words[4]));
	}
}

static void start(int control, const char *path, uint32_t id)
{
	int fds[MESSAGE_FDS_MAX], readable;
	struct config *config = load(path, fds);
	static const uint8_t seed[16] = "pins of a test";
	size_t count = 3;

	if (config == NULL)
		exit(1);
	if (pins_create(&config->pins, seed, &fds[2], &readable) != 0 ||
	    pins_map(readable, &table) != 0)
		die("pins");
	const struct resolver_settings *resolver = &config->settings.resolver;
	for (uint32_t i = 0; i < resolver->listen_count; i++) {
		fds[count++] = bind_socket(&resolver->listen[i], SOCK_DGRAM);
		fds[count++] = bind_socket(&resolver->listen[i], SOCK_STREAM);
	}
	union message_body body = {.start = {.generation = config->settings.generation,
					     .uid = id,
					     .gid = id,
					     .listen_count = resolver->listen_count}};
	if (message_send(control, MESSAGE_START, &body, fds, count, 0) != 0)
		die("start");
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
	config_free(config);
}

int main(int argc, char **argv)
{
	int pair[2];
	char line[1024];

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	if (argc < 3 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return 2;
	int child_end = pair[1] == MESSAGE_FD ? dup(pair[1]) : pair[1];
	pid_t pid = spawn(argv[1], child_end);
	close(pair[1]);
	if (child_end != pair[1])
		close(child_end);
	printf("pid %d\n", (int)pid);
	start(pair[0], argv[2], argc > 3 ? (uint32_t)atoi(argv[3]) : 0);

	struct pollfd polls[2] = {{.fd = pair[0], .events = POLLIN},
				  {.fd = STDIN_FILENO, .events = POLLIN}};
	while (poll(polls, 2, -1) > 0) {
		if (polls[0].revents != 0 && !print_message(pair[0]))
			break;
		if (polls[1].revents != 0) {
			if (fgets(line, sizeof(line), stdin) == NULL)
				return 0;
			command(pair[0], line);
		}
	}
	int status = 0;
	waitpid(pid, &status, 0);
	printf("status-of-child %d\n", status);
	return 0;
}
