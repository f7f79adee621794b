/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hook/asker.h"

/*
 * Theory. A question has a slot; its id is a serial number and, in the low bits, the slot, so an
 * answer finds its question at once and ids only grow. Lines wait in `out` until the hook reads
 * them.
 *
 * What the hook says is checked line by line. A line that is no answer, one for an id that this
 * connection never had, more lines than questions, a line without end: the connection is closed and
 * whoever waits gets HOOK_ERROR. An answer that comes late, or twice, is one that nobody waits for
 * and is left alone; it counts as a line, so there cannot be many of them.
 *
 * A question is free before its done() is called, and a closed connection is in order again: done()
 * may ask the next question.
 */

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static_assert((ASKER_QUESTIONS_MAX & (ASKER_QUESTIONS_MAX - 1)) == 0, "low bits of an id");

static void forget_connection(struct asker *asker)
{
	if (asker->fd >= 0)
		close(asker->fd);
	asker->fd = -1;
	asker->first = 0;
	asker->asked = asker->lines = 0;
	asker->in_used = asker->out_from = asker->out_used = 0;
}

void asker_init(struct asker *asker, uint64_t *serial, asker_done *done)
{
	memset(asker, 0, offsetof(struct asker, in));
	asker->fd = -1;
	asker->serial = serial;
	asker->done = done;
	asker->earliest = UINT64_MAX;
}

bool asker_may_connect(const struct asker *asker, uint64_t now)
{
	return now >= asker->try_again && (asker->state == ASKER_DOWN ||
					   (asker->state == ASKER_CONNECTING && asker->count == 0));
}

void asker_connecting(struct asker *asker, uint64_t now)
{
	asker->state = ASKER_CONNECTING;
	asker->try_again = now + ASKER_CONNECT_MS;
}

/* Ends the question in its slot with REPLY. */
static void answer(struct asker *asker, struct asker_question *question, struct hook_reply *reply)
{
	void *context = question->context;

	reply->id = question->id;
	question->id = 0;
	asker->count--;
	asker->by_client[question->client]--;
	asker->done(context, reply->id, reply);
}

static void fail(struct asker *asker, struct asker_question *question, const char *problem)
{
	struct hook_reply reply = {.answer = HOOK_ERROR, .problem = problem};

	answer(asker, question, &reply);
}

/* Those asked from here on, by the callbacks, are not meant. */
static void fail_all(struct asker *asker, const char *problem)
{
	uint64_t last = asker->last;

	for (uint32_t i = 0; i < ASKER_QUESTIONS_MAX && asker->count > 0; i++)
		if (asker->questions[i].id != 0 && asker->questions[i].id <= last)
			fail(asker, &asker->questions[i], problem);
}

static void break_off(struct asker *asker, uint64_t now, const char *problem)
{
	forget_connection(asker);
	asker->state = ASKER_DOWN;
	asker->try_again = now + ASKER_RETRY_MS;
	fail_all(asker, problem);
}

void asker_failed(struct asker *asker, uint64_t now)
{
	if (asker->state == ASKER_CONNECTING)
		break_off(asker, now, "cannot connect to the hook");
}

void asker_close(struct asker *asker, uint64_t now)
{
	break_off(asker, now, "the hook is not asked any more");
	asker->try_again = now;
}

static void write_some(struct asker *asker, uint64_t now)
{
	while (asker->out_used > asker->out_from) {
		ssize_t sent = send(asker->fd, asker->out + asker->out_from,
				    asker->out_used - asker->out_from, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (sent < 0) {
			break_off(asker, now, "the hook closed the connection");
			return;
		}
		asker->out_from += (size_t)sent;
	}
	asker->out_from = asker->out_used = 0;
}

void asker_connected(struct asker *asker, int fd, uint64_t now)
{
	if (asker->state == ASKER_LIVE) {
		close(fd);
		return;
	}
	asker->state = ASKER_LIVE;
	asker->fd = fd;
	write_some(asker, now);
}

static struct asker_question *take_slot(struct asker *asker)
{
	if (asker->count == ASKER_QUESTIONS_MAX)
		return NULL;
	while (asker->questions[asker->free_at].id != 0)
		asker->free_at = (asker->free_at + 1) % ASKER_QUESTIONS_MAX;
	return &asker->questions[asker->free_at];
}

int asker_ask(struct asker *asker, const struct hook_question *question, uint32_t client,
	      uint64_t deadline, void *context, uint64_t *id)
{
	uint32_t slot = client % ASKER_CLIENT_SLOTS;
	size_t length;

	if (asker->state == ASKER_DOWN)
		return -ENOTCONN;
	struct asker_question *taken = take_slot(asker);
	if (taken == NULL || asker->by_client[slot] >= ASKER_PER_CLIENT_MAX)
		return -ENOSPC;
	if (asker->out_from > 0) {
		memmove(asker->out, asker->out + asker->out_from,
			asker->out_used - asker->out_from);
		asker->out_used -= asker->out_from;
		asker->out_from = 0;
	}
	size_t room = ASKER_OUTPUT_MAX - asker->out_used;
	uint64_t new_id = (*asker->serial + 1) * ASKER_QUESTIONS_MAX + asker->free_at;
	int error =
		hook_question_write(question, new_id, asker->out + asker->out_used,
				    room < HOOK_QUESTION_MAX ? room : HOOK_QUESTION_MAX, &length);
	if (error == -EMSGSIZE && room < HOOK_QUESTION_MAX)
		error = -ENOSPC;
	if (error != 0)
		return error;
	++*asker->serial;
	asker->out_used += length;
	*taken = (struct asker_question){
		.id = new_id, .deadline = deadline, .context = context, .client = slot};
	asker->by_client[slot]++;
	asker->count++;
	asker->asked++;
	asker->last = new_id;
	if (asker->first == 0)
		asker->first = new_id;
	if (deadline < asker->earliest)
		asker->earliest = deadline;
	*id = new_id;
	return 0;
}

const char *asker_problem(int error)
{
	switch (error) {
	case -ENOTCONN:
		return "no connection to the hook";
	case -ENOSPC:
		return "too many questions wait for the hook";
	case -EMSGSIZE:
		return "too long for the hook";
	default:
		return "out of memory";
	}
}

/* One line of the hook; false when it is not right. */
static bool take_line(struct asker *asker, const char *line, size_t length)
{
	struct hook_reply reply;

	if (++asker->lines > asker->asked || hook_reply_read(line, length, &reply) != 0 ||
	    reply.id < asker->first || reply.id > asker->last)
		return false;
	struct asker_question *question = &asker->questions[reply.id % ASKER_QUESTIONS_MAX];
	if (question->id == reply.id)
		answer(asker, question, &reply);
	return true;
}

/* Every whole line of `in`; false when one is not right. A callback may have closed the connection:
 * then nothing is left of it. */
static bool take_lines(struct asker *asker)
{
	size_t from = 0;

	for (;;) {
		const char *line = asker->in + from;
		const char *end = memchr(line, '\n', asker->in_used - from);
		if (end == NULL)
			break;
		from = (size_t)(end + 1 - asker->in);
		if (!take_line(asker, line, (size_t)(end - line)))
			return false;
		if (asker->state != ASKER_LIVE)
			return true;
	}
	asker->in_used -= from;
	memmove(asker->in, asker->in + from, asker->in_used);
	return asker->in_used < sizeof(asker->in);
}

static void read_some(struct asker *asker, uint64_t now)
{
	size_t most = ASKER_READ_MAX;

	while (asker->state == ASKER_LIVE && most > 0) {
		size_t room = sizeof(asker->in) - asker->in_used;
		ssize_t got = recv(asker->fd, asker->in + asker->in_used, room, MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (got <= 0) {
			break_off(asker, now, "the hook closed the connection");
			return;
		}
		asker->in_used += (size_t)got;
		most -= (size_t)got < most ? (size_t)got : most;
		if (!take_lines(asker)) {
			break_off(asker, now, "the hook sent a line that is not right");
			return;
		}
	}
}

void asker_ready(struct asker *asker, uint64_t now)
{
	if (asker->state == ASKER_LIVE)
		read_some(asker, now);
	if (asker->state == ASKER_LIVE)
		write_some(asker, now);
}

bool asker_wants_write(const struct asker *asker)
{
	return asker->state == ASKER_LIVE && asker->out_used > asker->out_from;
}

void asker_expire(struct asker *asker, uint64_t now)
{
	uint64_t last = asker->last;

	if (now < asker->earliest)
		return;
	asker->earliest = UINT64_MAX;
	for (uint32_t i = 0; i < ASKER_QUESTIONS_MAX && asker->count > 0; i++) {
		struct asker_question *question = &asker->questions[i];
		if (question->id == 0)
			continue;
		if (question->deadline <= now && question->id <= last)
			fail(asker, question, "the hook did not answer in time");
		else if (question->deadline < asker->earliest)
			asker->earliest = question->deadline;
	}
}

uint64_t asker_deadline(const struct asker *asker)
{
	return asker->count > 0 ? asker->earliest : UINT64_MAX;
}
