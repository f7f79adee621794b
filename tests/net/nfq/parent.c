/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A parent for one pinfold-gate, without resolver: a configuration file, pins by hand, audit
 * records as lines.
 *
 *     parent GATE CONFIG [UID GID]
 *     parent --rules 4|6 CONFIG INTERFACE|UID    prints the rules for a hook of forward or output
 *
 * Reads commands from standard input, one a line, and answers each with one line on standard
 * output; audit records come between as `audit STAGE OUTCOME REASON CLIENT NAME ADDRESS PORT
 * DETAIL`. `ready` is the first line, or `failed TEXT`. The gate's end is `ended STATUS`.
 *
 *     pin CLIENT NAME ADDRESS SECONDS    CLIENT: an address or `host`
 *     reload CONFIG
 *     status                             `status COUNTER=N… REASON=N…`
 *     kill                               SIGKILL to the gate
 *     junk                               a message that is none of the gate's
 *     quit
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fcntl.h>

#include "config/config.h"
#include "filter/ruleset.h"
#include "message.h"
#include "pins.h"

static int channel;
static pid_t gate;
static struct pins_writer *writer;
static uint64_t generation;

static uint64_t boottime(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

__attribute__((noreturn)) static void stop(const char *what)
{
	printf("failed %s: %s\n", what, strerror(errno));
	exit(1);
}

static int sealed(const char *name, const void *bytes, size_t size)
{
	int fd = memfd_create(name, MFD_ALLOW_SEALING | MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
		stop("memfd");
	return fd;
}

/* Settings and image of the configuration at PATH. */
static bool load(const char *path, int fds[2])
{
	struct config_findings findings;
	struct config *config = config_read(path, &findings);
	void *image;
	size_t size;

	if (config == NULL) {
		config_findings_print(&findings, path, stderr);
		config_findings_free(&findings);
		return false;
	}
	config->source.generation = ++generation;
	config->settings.generation = generation;
	if (policy_image_build(&config->source, &image, &size) < 0)
		stop("policy_image_build");
	fds[0] = sealed("settings", &config->settings, sizeof(config->settings));
	fds[1] = sealed("image", image, size);
	free(image);
	config_findings_free(&findings);
	config_free(config);
	return true;
}

static void spawn(const char *program)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		stop("socketpair");
	gate = fork();
	if (gate < 0)
		stop("fork");
	if (gate == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ends[1] == MESSAGE_FD)
			fcntl(MESSAGE_FD, F_SETFD, 0);
		else
			dup2(ends[1], MESSAGE_FD);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	channel = ends[0];
}

static void print_audit(const struct audit_record *r)
{
	char address[ADDRESS_TEXT_SIZE] = "-";

	if (r->address_count > 0)
		address_format(&r->addresses[0], address);
	printf("audit %s %s%s %s %s %s %s %u %s\n", stage_text((enum stage)r->stage),
	       outcome_text((enum outcome)r->outcome), r->enforced ? "" : "(reported)",
	       reason_text((enum reason)r->reason), r->client, r->name_present ? r->name.text : "-",
	       address, r->port, r->detail[0] == '\0' ? "-" : r->detail);
}

static void print_status(const struct message_status *s)
{
	printf("status generation=%llu", (unsigned long long)s->generation);
	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		if (s->counters[i] > 0)
			printf(" %s=%llu", counter_text((enum counter)i),
			       (unsigned long long)s->counters[i]);
	for (unsigned i = 0; i < REASON_COUNT; i++)
		if (s->by_reason[i] > 0)
			printf(" %s=%llu", reason_text((enum reason)i),
			       (unsigned long long)s->by_reason[i]);
	printf("\n");
}

/* One message of the gate; at its end its status, and ours. */
static void listen_to_gate(void)
{
	static struct message message;
	int got = message_receive(channel, &message, 0);
	int status;

	if (got <= 0) {
		waitpid(gate, &status, 0);
		printf("ended %s%d\n", WIFSIGNALED(status) ? "signal " : "",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		exit(0);
	}
	switch (message.type) {
	case MESSAGE_READY:
		printf("ready %d\n", gate);
		break;
	case MESSAGE_FAILED:
		printf("failed %s\n", message.body.failed.text);
		break;
	case MESSAGE_RELOADED:
		printf("reloaded %llu\n", (unsigned long long)message.body.reload.generation);
		break;
	case MESSAGE_STATUS:
		print_status(&message.body.status);
		break;
	case MESSAGE_AUDIT:
		print_audit(&message.body.audit);
		break;
	default:
		printf("unexpected %u\n", message.type);
		break;
	}
}

static void put_pin(const char *client, const char *name_text, const char *address_text,
		    unsigned seconds)
{
	struct client_key key = client_key_of_host();
	struct address source, address;
	struct name name;

	if (strcmp(client, "host") != 0) {
		if (address_parse(client, strlen(client), &source) < 0)
			stop("client");
		key = client_key_of_address(&source);
	}
	if (name_from_text(name_text, strlen(name_text), &name) != NAME_OK ||
	    address_parse(address_text, strlen(address_text), &address) < 0)
		stop("pin");
	int error =
		pins_put(writer, &key, &name, &address, boottime() + seconds * 1000ull, boottime());
	printf("pinned %d\n", error);
}

static void obey(char *line)
{
	static union message_body body;
	char a[256], b[256], c[256];
	unsigned seconds;
	int fds[2];

	memset(&body, 0, sizeof(body));
	if (sscanf(line, "pin %255s %255s %255s %u", a, b, c, &seconds) == 4) {
		put_pin(a, b, c, seconds);
	} else if (sscanf(line, "reload %255s", a) == 1) {
		if (!load(a, fds))
			stop("configuration");
		body.reload.generation = generation;
		message_send(channel, MESSAGE_RELOAD, &body, fds, 2, 0);
		close(fds[0]);
		close(fds[1]);
	} else if (strncmp(line, "status", 6) == 0) {
		message_send(channel, MESSAGE_STATUS, &body, NULL, 0, 0);
	} else if (strncmp(line, "kill", 4) == 0) {
		kill(gate, SIGKILL);
	} else if (strncmp(line, "junk", 4) == 0) {
		message_send(channel, MESSAGE_READY, NULL, NULL, 0, 0);
	} else if (strncmp(line, "quit", 4) == 0) {
		shutdown(channel, SHUT_WR);
	} else {
		printf("what\n");
	}
}

static void loop(void)
{
	char line[1024];
	size_t used = 0;
	struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			       {.fd = channel, .events = POLLIN}};

	for (;;) {
		if (poll(fds, 2, -1) < 0)
			stop("poll");
		if (fds[1].revents != 0)
			listen_to_gate();
		if (fds[0].revents == 0)
			continue;
		ssize_t got = read(STDIN_FILENO, line + used, sizeof(line) - 1 - used);
		if (got <= 0)
			exit(0);
		used += (size_t)got;
		for (char *end; (end = memchr(line, '\n', used)) != NULL;) {
			*end = '\0';
			obey(line);
			used -= (size_t)(end + 1 - line);
			memmove(line, end + 1, used);
		}
	}
}

/* The rules that govern what comes in by an interface, or what a uid sends. */
static int print_rules(const char *family, const char *path, const char *selector)
{
	struct config_findings findings;
	struct config *config = config_read(path, &findings);
	struct ruleset set = {.selector_count = 1};
	char problem[256], *text;

	if (config == NULL)
		return 2;
	set.queue = config->settings.gate.queue;
	set.mark_mask = config->settings.gate.mark_mask;
	if (selector[0] >= '0' && selector[0] <= '9') {
		strcpy(set.instance, "out");
		set.hook = HOOK_OUTPUT;
		set.selectors[0].by_uid = true;
		set.selectors[0].uid_first = set.selectors[0].uid_last = (uint32_t)atoi(selector);
	} else {
		strcpy(set.instance, "fwd");
		set.hook = HOOK_FORWARD;
		snprintf(set.selectors[0].interface, sizeof(set.selectors[0].interface), "%s",
			 selector);
	}
	if (ruleset_check(&set, problem, sizeof(problem)) < 0)
		stop(problem);
	text = ruleset_text(&set, family[0] == '4' ? ADDRESS_IPV4 : ADDRESS_IPV6);
	fputs(text, stdout);
	free(text);
	config_findings_free(&findings);
	config_free(config);
	return 0;
}

int main(int argc, char **argv)
{
	static union message_body body;
	const struct pins_limits limits = {4096, 4096};
	const uint8_t seed[16] = "tests";
	int fds[3], writable;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 5 && strcmp(argv[1], "--rules") == 0)
		return print_rules(argv[2], argv[3], argv[4]);
	if (argc != 3 && argc != 5)
		return 2;
	if (!load(argv[2], fds) || pins_create(&limits, seed, &writable, &fds[2]) < 0 ||
	    pins_writer_open(writable, &writer) < 0)
		stop("set-up");
	spawn(argv[1]);
	body.start.generation = generation;
	if (argc == 5) {
		body.start.uid = (uint32_t)atoi(argv[3]);
		body.start.gid = (uint32_t)atoi(argv[4]);
	}
	if (message_send(channel, MESSAGE_START, &body, fds, 3, 0) < 0)
		stop("START");
	for (unsigned i = 0; i < 3; i++)
		close(fds[i]);
	loop();
}
