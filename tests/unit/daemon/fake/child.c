/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A child that does nothing but keep the parent's protocol, and breaks it when it is told to. Built
 * under the names of both programs.
 *
 * At START and RELOAD the image is opened. A policy or client named `refuse-resolver` or `refuse-gate` is
 * refused by the child of that name, `hang-…` gets no answer, `die-…` is died over. With one named
 * `last-…` it sends LAST_RECORDS audit records when its time has come.
 *
 * SIGUSR1 sends an audit record and a notice, SIGUSR2 a message that only a parent may send.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"
#include "policy.h"
#include "settings.h"

static const char *kind;
static uint64_t generation;
static bool last_words;

#define LAST_RECORDS 80
static uint64_t dropped; /* clients, as COUNTER_ANSWERS */

static void fail(const char *text)
{
	union message_body body = {.failed = {.text = ""}};

	snprintf(body.failed.text, sizeof(body.failed.text), "%s", text);
	message_send(MESSAGE_FD, MESSAGE_FAILED, &body, NULL, 0, 0);
}

static bool names(const struct policy_image *image, const char *what)
{
	char name[64];
	struct client_match client;
	policy_index found;

	snprintf(name, sizeof(name), "%s-%s", what, kind);
	return policy_find(image, name, &found) == 0 ||
	       policy_client_by_name(image, name, &client) == 0;
}

/* What is wrong with a policy image, or NULL; does as it is told. */
static const char *take_image(int settings_fd, int policy_fd)
{
	const struct policy_image *image;
	struct settings *settings = malloc(sizeof(*settings));
	struct stat file;

	if (settings == NULL || settings_receive(settings_fd, settings) != 0)
		return "bad settings";
	free(settings);
	if ((fcntl(policy_fd, F_GET_SEALS) & F_SEAL_WRITE) == 0 || ftruncate(policy_fd, 0) == 0)
		return "the image is not sealed";
	if (fstat(policy_fd, &file) < 0)
		return "no image";
	void *bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED, policy_fd, 0);
	if (bytes == MAP_FAILED || policy_image_open(bytes, (size_t)file.st_size, &image) != 0)
		return "bad image";
	if (names(image, "die"))
		_exit(7);
	if (names(image, "hang"))
		pause();
	if (names(image, "refuse"))
		return "told to refuse";
	last_words = names(image, "last");
	generation = policy_image_generation(image);
	munmap(bytes, (size_t)file.st_size);
	return NULL;
}

static void send_audit(void)
{
	union message_body body = {
		.audit = {.time_ms = 1700000000123,
			  .stage = STAGE_CONNECT,
			  .outcome = OUTCOME_DENY,
			  .reason = REASON_METADATA,
			  .enforced = 1,
			  .port = 80,
			  .protocol = 6,
			  .address_count = 1,
			  .addresses = {{.family = ADDRESS_IPV4, .bytes = {169, 254, 169, 254}}}}};

	snprintf(body.audit.client, sizeof(body.audit.client), "%s", kind);
	message_send(MESSAGE_FD, MESSAGE_AUDIT, &body, NULL, 0, 0);
}

static void send_notice(void)
{
	union message_body body = {.notice = {.text = "a line\nof the child"}};

	message_send(MESSAGE_FD, MESSAGE_NOTICE, &body, NULL, 0, 0);
}

static void take_signal(int number)
{
	union message_body body = {.drop_client = {.key = {{0}}}};

	if (number == SIGUSR1) {
		send_audit();
		send_notice();
	} else {
		message_send(MESSAGE_FD, MESSAGE_DROP_CLIENT, &body, NULL, 0, 0);
	}
}

static void take_message(struct message *message)
{
	union message_body body = {.status = {.generation = generation}};
	const char *problem;

	switch (message->type) {
	case MESSAGE_START:
	case MESSAGE_RELOAD:
		problem = take_image(message->fds[0], message->fds[1]);
		if (problem != NULL)
			fail(problem);
		if (problem != NULL && message->type == MESSAGE_START)
			_exit(1);
		if (problem != NULL)
			break;
		body = (union message_body){.reload = {.generation = generation}};
		message_send(MESSAGE_FD,
			     message->type == MESSAGE_START ? MESSAGE_READY : MESSAGE_RELOADED,
			     &body, NULL, 0, 0);
		break;
	case MESSAGE_DROP_CLIENT:
		if (strcmp(kind, "resolver") != 0)
			_exit(9);
		dropped++;
		break;
	case MESSAGE_STATUS:
		body.status.counters[COUNTER_ANSWERS] = dropped;
		body.status.counters[COUNTER_QUERIES] = 42;
		body.status.by_reason[REASON_METADATA] = 3;
		message_send(MESSAGE_FD, MESSAGE_STATUS, &body, NULL, 0, 0);
		break;
	default:
		_exit(9);
	}
	for (uint32_t i = 0; i < message->fd_count; i++)
		close(message->fds[i]);
}

/* Nothing but 0, 1, 2 and the socket may have come along, and no environment. */
static bool is_bare(void)
{
	extern char **environ;

	for (int fd = MESSAGE_FD + 1; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return false;
	/* Sanitizers read theirs from the environment that is not there. */
	return environ == NULL || environ[0] == NULL;
}

int main(int argc, char **argv)
{
	struct message message;
	struct signalfd_siginfo info;
	sigset_t set;

	(void)argc;
	kind = strcmp(basename(argv[0]), "pinfold-gate") == 0 ? "gate" : "resolver";
	if (!is_bare()) {
		fail("something came along");
		return 1;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	struct pollfd fds[2] = {{.fd = MESSAGE_FD, .events = POLLIN},
				{.fd = signalfd(-1, &set, SFD_CLOEXEC), .events = POLLIN}};
	for (;;) {
		if (poll(fds, 2, -1) < 0)
			return 1;
		if ((fds[1].revents & POLLIN) != 0 &&
		    read(fds[1].fd, &info, sizeof(info)) == sizeof(info))
			take_signal((int)info.ssi_signo);
		if (fds[0].revents == 0)
			continue;
		if (message_receive(MESSAGE_FD, &message, 0) != 1)
			break;
		take_message(&message);
	}
	for (int i = 0; last_words && i < LAST_RECORDS; i++)
		send_audit();
	return 0;
}
