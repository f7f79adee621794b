/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/child.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Messages taken at one turn of the loop, so that a chatty child cannot keep the parent to itself.
 */
#define MESSAGES_AT_ONCE 64

static const char *const kind_texts[] = {
	[CHILD_RESOLVER] = "resolver",
	[CHILD_GATE] = "gate",
};
static_assert(sizeof(kind_texts) / sizeof(kind_texts[0]) == CHILD_COUNT, "one text each");

static const char *const state_texts[] = {
	[CHILD_UNUSED] = "unused", [CHILD_DOWN] = "down",     [CHILD_STARTING] = "starting",
	[CHILD_READY] = "ready",   [CHILD_ENDING] = "ending",
};

const char *child_kind_text(enum child_kind kind)
{
	return kind_texts[kind];
}

const char *child_state_text(enum child_state state)
{
	return state_texts[state];
}

void child_init(struct child *child, enum child_kind kind, struct loop *loop, const char *path,
		const struct child_events *events, void *owner)
{
	memset(child, 0, sizeof(*child));
	child->kind = kind;
	child->state = CHILD_DOWN;
	child->events = events;
	child->owner = owner;
	child->loop = loop;
	child->messages.fd = child->death.fd = -1;
	child->backoff = CHILD_BACKOFF_MIN_MS;
	snprintf(child->path, sizeof(child->path), "%s", path);
}

static void begin_ending(struct child *child, uint64_t now)
{
	if (child->state != CHILD_STARTING && child->state != CHILD_READY)
		return;
	child->state = CHILD_ENDING;
	child->deadline = now + CHILD_END_MS;
}

void child_end(struct child *child, uint64_t now)
{
	if (child->messages.fd >= 0)
		shutdown(child->messages.fd, SHUT_WR);
	begin_ending(child, now);
}

/* Ends a child that broke the protocol: it may be in an attacker's hands, so it gets no time. */
void child_break(struct child *child, const char *why)
{
	snprintf(child->problem, sizeof(child->problem), "%s", why);
	loop_close(child->loop, &child->messages);
	begin_ending(child, loop_now());
	kill(child->process.pid, SIGKILL);
}

/* One printable line, whatever was sent. */
static struct message_text printable(const struct message_text *sent)
{
	struct message_text line = *sent;

	line.text[sizeof(line.text) - 1] = '\0';
	for (char *c = line.text; *c != '\0'; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	return line;
}

static void take_notice(struct child *child, const struct message *message)
{
	struct message_text line = printable(&message->body.notice);
	uint64_t now = loop_now();

	if (child->noticed != 0 && now - child->noticed < CHILD_NOTICE_MS)
		return;
	child->noticed = now;
	child->events->notice(child, line.text);
}

static void take_failed(struct child *child, const struct message *message)
{
	struct message_text line = printable(&message->body.failed);
	const char *text = line.text;

	if (child->state == CHILD_READY && child->reloading != 0) {
		child->reloading = 0;
		child->events->reloaded(child, text);
	} else if (child->state == CHILD_STARTING) {
		snprintf(child->problem, sizeof(child->problem), "%s", text);
		child_end(child, loop_now());
	} else {
		child_break(child, "sent FAILED unasked");
	}
}

/* False when the message does not fit here and now. */
static bool take_message(struct child *child, const struct message *message)
{
	const union message_body *body = &message->body;

	/* Of one that ends, the last lines are wanted, and no answer any more. */
	if (child->state == CHILD_ENDING && message->type != MESSAGE_AUDIT)
		return true;
	switch (message->type) {
	case MESSAGE_READY:
		if (child->state != CHILD_STARTING)
			return false;
		child->state = CHILD_READY;
		child->served = child->generation;
		child->ready_since = loop_now();
		child->pulse = child->ready_since + CHILD_PULSE_MS;
		child->silent = 0;
		child->problem[0] = '\0';
		child->events->ready(child);
		return true;
	case MESSAGE_FAILED:
		take_failed(child, message);
		return true;
	case MESSAGE_RELOADED:
		if (child->reloading == 0 || body->reload.generation != child->reloading)
			return false;
		child->generation = child->served = child->reloading;
		child->reloading = 0;
		child->events->reloaded(child, NULL);
		return true;
	case MESSAGE_STATUS:
		if (!child->owes_status)
			return false;
		child->owes_status = false;
		child->silent = 0;
		child->status = body->status;
		child->events->status(child);
		return true;
	case MESSAGE_AUDIT:
		return child->events->audit(child, &body->audit);
	case MESSAGE_NOTICE:
		if (child->state != CHILD_READY)
			return false;
		take_notice(child, message);
		return true;
	case MESSAGE_HOOK_WANTED:
		child->events->hook(child, &body->hook);
		return true;
	default:
		return false; /* a type that only the parent sends */
	}
}

/* False when there is nothing more to read now. */
static bool take_some(struct child *child)
{
	struct message message;

	for (int i = 0; i < MESSAGES_AT_ONCE && child->messages.fd >= 0; i++) {
		int result = message_receive(child->messages.fd, &message, MSG_DONTWAIT);
		if (result == -EAGAIN)
			return false;
		if (result < 0 && result != -EPROTO)
			result = 0; /* reset: it died with messages unread */
		if (result == 0) {
			loop_close(child->loop, &child->messages);
			begin_ending(child, loop_now());
			return false;
		}
		if (result == 1)
			for (uint32_t d = 0; d < message.fd_count; d++)
				close(message.fds[d]);
		if (result < 0 || message.fd_count > 0 || !take_message(child, &message)) {
			child_break(child, "sent a message that is not right");
			return false;
		}
	}
	return child->messages.fd >= 0;
}

static void messages_ready(struct loop_source *source, uint32_t events)
{
	(void)events;
	take_some(loop_container(source, struct child, messages));
}

static void describe_death(struct child *child, int status)
{
	size_t length = strlen(child->problem);
	char *end = child->problem + length;
	size_t room = sizeof(child->problem) - length;
	const char *lead = length > 0 ? ", " : "";

	/* What it said itself is better than the status it left with. */
	if (child->state == CHILD_ENDING && length > 0)
		return;
	if (WIFSIGNALED(status))
		snprintf(end, room, "%skilled by signal %d", lead, WTERMSIG(status));
	else
		snprintf(end, room, "%sexit status %d", lead, WEXITSTATUS(status));
}

static void death_ready(struct loop_source *source, uint32_t events)
{
	struct child *child = loop_container(source, struct child, death);
	uint64_t now = loop_now();
	int status = 0;

	(void)events;
	/* Its last words may still be in the socket, as many as that holds. */
	while (take_some(child))
		;
	if (spawn_collect(&child->process, &status) == -EAGAIN)
		return;
	describe_death(child, status);
	loop_close(child->loop, &child->messages);
	loop_close(child->loop, &child->death);
	if (child->ready_since != 0 && now - child->ready_since >= CHILD_STEADY_MS)
		child->backoff = CHILD_BACKOFF_MIN_MS;
	child->state = CHILD_DOWN;
	child->deadline = now + child->backoff;
	child->backoff *= 2;
	if (child->backoff > CHILD_BACKOFF_MAX_MS)
		child->backoff = CHILD_BACKOFF_MAX_MS;
	child->ready_since = child->generation = child->reloading = 0;
	child->owes_status = false;
	child->events->died(child);
}

static int watch(struct child *child)
{
	child->messages = (struct loop_source){.fd = child->process.fd, .ready = messages_ready};
	child->death = (struct loop_source){.fd = child->process.pidfd, .ready = death_ready};
	int error = loop_add(child->loop, &child->messages, EPOLLIN);
	return error != 0 ? error : loop_add(child->loop, &child->death, EPOLLIN);
}

int child_start(struct child *child, const struct message_start *start, const int *fds,
		size_t fd_count, uint64_t now)
{
	union message_body body = {.start = *start};
	int error = spawn(child->path, &child->process);

	if (error == 0) {
		error = watch(child);
		if (error == 0)
			error = message_send(child->process.fd, MESSAGE_START, &body, fds, fd_count,
					     MSG_DONTWAIT);
		if (error != 0) {
			loop_close(child->loop, &child->messages);
			loop_close(child->loop, &child->death);
			kill(child->process.pid, SIGKILL);
			waitpid(child->process.pid, NULL, 0);
		}
	}
	if (error != 0) {
		snprintf(child->problem, sizeof(child->problem), "cannot start %s: %s", child->path,
			 strerror(-error));
		child->deadline = now + child->backoff;
		return error;
	}
	child->problem[0] = '\0';
	child->starts++;
	child->hooks_left = CHILD_HOOKS_BURST;
	child->hooks_filled = now;
	child->generation = start->generation;
	child->state = CHILD_STARTING;
	child->deadline = now + CHILD_ANSWER_MS;
	return 0;
}

int child_reload(struct child *child, const struct image *image, uint64_t now)
{
	union message_body body = {.reload = {.generation = image->generation}};
	int fds[2] = {image->settings, image->policy};
	int error = message_send(child->process.fd, MESSAGE_RELOAD, &body, fds, 2, MSG_DONTWAIT);

	if (error != 0) {
		child_break(child, "does not take messages");
		return error;
	}
	child->reloading = image->generation;
	child->deadline = now + CHILD_ANSWER_MS;
	return 0;
}

int child_drop_client(struct child *child, const struct client_key *key)
{
	union message_body body = {.drop_client = {.key = *key}};
	int error =
		message_send(child->process.fd, MESSAGE_DROP_CLIENT, &body, NULL, 0, MSG_DONTWAIT);

	if (error != 0)
		child_break(child, "does not take messages");
	return error;
}

int child_ask_status(struct child *child)
{
	union message_body body = {.status = {.generation = 0}};
	int error;

	if (child->owes_status)
		return 0;
	error = message_send(child->process.fd, MESSAGE_STATUS, &body, NULL, 0, MSG_DONTWAIT);
	if (error == 0)
		child->owes_status = true;
	return error;
}

/* Not while it owes a reload, which has a deadline of its own and may take long. */
static void feel_pulse(struct child *child, uint64_t now)
{
	child->pulse = now + CHILD_PULSE_MS;
	if (child->owes_status && ++child->silent >= CHILD_SILENT_MAX)
		child_break(child, "did not answer");
	else if (!child->owes_status && child_ask_status(child) != 0)
		child_break(child, "does not take messages");
}

void child_tick(struct child *child, uint64_t now)
{
	if (child_deadline(child) > now)
		return;
	if (child->state == CHILD_READY && child->reloading == 0) {
		feel_pulse(child, now);
		return;
	}
	switch (child->state) {
	case CHILD_STARTING:
		child_break(child, "was not ready in time");
		break;
	case CHILD_READY:
		child_break(child, "did not answer a reload in time");
		break;
	case CHILD_ENDING:
		kill(child->process.pid, SIGKILL);
		child->deadline = now + CHILD_END_MS;
		break;
	case CHILD_UNUSED:
	case CHILD_DOWN:
		break;
	}
}

uint64_t child_deadline(const struct child *child)
{
	switch (child->state) {
	case CHILD_UNUSED:
		return UINT64_MAX;
	case CHILD_READY:
		return child->reloading != 0 ? child->deadline : child->pulse;
	case CHILD_DOWN:
	case CHILD_STARTING:
	case CHILD_ENDING:
		break;
	}
	return child->deadline;
}
