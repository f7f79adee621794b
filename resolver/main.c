/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * pinfold-resolver: takes START from the parent over descriptor MESSAGE_FD, gives up its
 * privileges, and serves until the parent closes the socket.
 */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hook/protocol.h"
#include "message.h"
#include "pins.h"
#include "resolver/sandbox.h"
#include "resolver/serve.h"
#include "resolver/tcp.h"
#include "resolver/udp.h"

/* Descriptors before the listening sockets in START: settings, image, pin table. */
enum { FD_SETTINGS, FD_IMAGE, FD_PINS, FD_LISTEN };

struct resolver {
	struct event_base *base;
	struct event *control;
	struct serve *serve;
	struct tcp *tcp;
	struct udp *udp[SETTINGS_LISTEN_MAX];
	size_t udp_count;
	int exit_status;
};

static int tell(enum message_type type, const union message_body *body)
{
	return message_send(MESSAGE_FD, type, body, NULL, 0, 0);
}

/* Text that a problem may hold goes into one printable line. */
static void tell_failed(const char *problem)
{
	union message_body body = {.failed = {.text = ""}};

	snprintf(body.failed.text, sizeof(body.failed.text), "%s", problem);
	for (char *c = body.failed.text; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = ' ';
	tell(MESSAGE_FAILED, &body);
}

static void stop(struct resolver *resolver, int exit_status)
{
	resolver->exit_status = exit_status;
	event_base_loopbreak(resolver->base);
}

static void close_all(const struct message *message)
{
	for (uint32_t i = 0; i < message->fd_count; i++)
		close(message->fds[i]);
}

static void reload(struct resolver *resolver, const struct message *message)
{
	char problem[256];
	struct serve_policy *policy;
	int error = serve_policy_new(message->fds[FD_SETTINGS], message->fds[FD_IMAGE], &policy,
				     problem, sizeof(problem));

	if (error == 0) {
		error = serve_reload(resolver->serve, policy, problem, sizeof(problem));
		if (error != 0)
			serve_policy_free(policy);
	}
	if (error == 0)
		tell(MESSAGE_RELOADED, &(union message_body){.reload = message->body.reload});
	else
		tell_failed(problem);
}

static void report(struct resolver *resolver)
{
	union message_body body;

	serve_status(resolver->serve, &body.status);
	tell(MESSAGE_STATUS, &body);
}

static void on_control(evutil_socket_t fd, short events, void *context)
{
	struct resolver *resolver = context;
	struct message message;
	int got = message_receive(fd, &message, MSG_DONTWAIT);

	(void)events;
	if (got == -EAGAIN)
		return;
	if (got <= 0) {
		/* The parent is gone, or is not the parent. */
		stop(resolver, got == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
		return;
	}
	switch ((enum message_type)message.type) {
	case MESSAGE_RELOAD:
		reload(resolver, &message);
		break;
	case MESSAGE_STATUS:
		report(resolver);
		break;
	case MESSAGE_DROP_CLIENT:
		serve_drop_client(resolver->serve, &message.body.drop_client.key);
		break;
	case MESSAGE_HOOK:
		serve_hook(resolver->serve, &message.body.hook,
			   message.fd_count > 0 ? message.fds[0] : -1);
		return;
	case MESSAGE_START:
	case MESSAGE_READY:
	case MESSAGE_FAILED:
	case MESSAGE_RELOADED:
	case MESSAGE_AUDIT:
	case MESSAGE_NOTICE:
	case MESSAGE_HOOK_WANTED:
	case MESSAGE_TYPE_COUNT:
	default:
		stop(resolver, EXIT_FAILURE);
		break;
	}
	close_all(&message);
}

/* UDP, then TCP for each address. */
static int listen_all(struct resolver *resolver, const struct message *start, char *problem,
		      size_t size)
{
	int error = 0;

	for (uint32_t i = 0; error == 0 && i < start->body.start.listen_count; i++) {
		int udp = start->fds[FD_LISTEN + 2 * i];
		int tcp = start->fds[FD_LISTEN + 2 * i + 1];
		error = evutil_make_socket_nonblocking(udp) != 0 ||
					evutil_make_socket_nonblocking(tcp) != 0
				? -EIO
				: udp_new(resolver->base, udp, serve_query, resolver->serve,
					  &resolver->udp[resolver->udp_count]);
		if (error != 0)
			break;
		resolver->udp_count++;
		error = tcp_listen(resolver->tcp, tcp);
	}
	if (error != 0)
		snprintf(problem, size, "listening sockets: %s", strerror(-error));
	return error;
}

static int build(struct resolver *resolver, const struct message *start,
		 struct serve_policy *policy, char *problem, size_t size)
{
	struct pins_writer *pins;
	int error = pins_writer_open(start->fds[FD_PINS], &pins);

	if (error != 0) {
		snprintf(problem, size, "pin table: %s", strerror(-error));
		return error;
	}
	error = sandbox_enter(start->body.start.uid, start->body.start.gid, problem, size);
	if (error == 0)
		error = serve_new(resolver->base, MESSAGE_FD, pins, policy, &resolver->serve,
				  problem, size);
	if (error != 0) {
		pins_writer_close(pins);
		return error;
	}
	resolver->tcp = tcp_new(resolver->base, serve_query, resolver->serve);
	if (resolver->tcp == NULL) {
		snprintf(problem, size, "out of memory");
		return -ENOMEM;
	}
	return listen_all(resolver, start, problem, size);
}

/* Waits for START and does what it says. 0, or the exit status with FAILED sent where it can be. */
static int start(struct resolver *resolver)
{
	char problem[256];
	struct message message;
	struct serve_policy *policy;
	int got = message_receive(MESSAGE_FD, &message, 0);

	if (got <= 0 || message.type != MESSAGE_START ||
	    message.body.start.listen_count > SETTINGS_LISTEN_MAX ||
	    message.fd_count != FD_LISTEN + 2 * message.body.start.listen_count) {
		fprintf(stderr, "pinfold-resolver: to be started by pinfold\n");
		return 2;
	}
	uint8_t seed[16];
	if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
		tell_failed("no random bytes");
		return 2;
	}
	hook_protocol_seed(seed);
	resolver->base = event_base_new();
	if (resolver->base == NULL) {
		tell_failed("cannot make an event loop");
		return 2;
	}
	int error = serve_policy_new(message.fds[FD_SETTINGS], message.fds[FD_IMAGE], &policy,
				     problem, sizeof(problem));
	if (error == 0)
		error = build(resolver, &message, policy, problem, sizeof(problem));
	if (error == 0) {
		resolver->control = event_new(resolver->base, MESSAGE_FD, EV_READ | EV_PERSIST,
					      on_control, resolver);
		error = resolver->control == NULL || event_add(resolver->control, NULL) != 0;
		snprintf(problem, sizeof(problem), "cannot read the control socket");
	}
	if (error != 0) {
		tell_failed(problem);
		return 2;
	}
	for (uint32_t i = 0; i < FD_LISTEN; i++)
		close(message.fds[i]);
	return 0;
}

static void finish(struct resolver *resolver)
{
	event_free(resolver->control);
	for (size_t i = 0; i < resolver->udp_count; i++)
		udp_free(resolver->udp[i]);
	tcp_free(resolver->tcp);
	serve_free(resolver->serve);
	event_base_free(resolver->base);
}

int main(void)
{
	static struct resolver resolver;
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGPIPE, &ignore, NULL);
	int status = start(&resolver);
	if (status != 0)
		return status;
	tell(MESSAGE_READY, NULL);
	event_base_dispatch(resolver.base);
	finish(&resolver);
	return resolver.exit_status;
}
