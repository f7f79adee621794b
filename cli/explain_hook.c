/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * `explain --ask-hook`: the hook of the policy is asked as resolver and gate ask it, and waited for.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/explain.h"
#include "daemon/hook.h"
#include "hook/asker.h"

static uint64_t now_ms(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static void take_answer(void *context, uint64_t id, const struct hook_reply *reply)
{
	struct hook_reply *out = context;

	(void)id;
	*out = *reply;
}

/* Until the one question is answered, which its deadline sees to. */
static void wait_for_answer(struct asker *asker)
{
	while (asker->count > 0) {
		struct pollfd poll_fd = {
			.fd = asker->fd,
			.events = (short)(POLLIN | (asker_wants_write(asker) ? POLLOUT : 0))};
		uint64_t now = now_ms(), due = asker_deadline(asker);

		poll(&poll_fd, 1, due <= now ? 0 : (int)(due - now));
		now = now_ms();
		asker_ready(asker, now);
		asker_expire(asker, now);
	}
}

static void ask(const struct policy_hook *hook, const struct hook_question *question,
		struct hook_reply *reply, char *problem, size_t size)
{
	static struct asker asker;
	static uint64_t serial;
	uint64_t id, now = now_ms();
	int fd = hook_connect(hook->path, problem, size);

	if (fd < 0)
		return;
	asker_init(&asker, &serial, take_answer);
	asker_connecting(&asker, now);
	asker_connected(&asker, fd, now);
	int error = asker_ask(&asker, question, 0, now + hook->timeout_ms, reply, &id);
	if (error != 0)
		snprintf(problem, size, "%s", asker_problem(error));
	else
		wait_for_answer(&asker);
	asker_close(&asker, now);
}

void explain_ask(const struct explain *explain, struct hook_question *question,
		 struct explanation *out)
{
	static char note[256];
	struct hook_reply reply = {.answer = HOOK_ERROR};
	struct policy_hook hook;

	if (!out->verdict.asks_hook || !policy_hook(explain->image, explain->subject.policy, &hook))
		return;
	if (!explain->ask_hook) {
		out->hook = hook.path;
		return;
	}
	question->stage = out->stage;
	question->client = explain->client != NULL ? explain->client : "explain";
	question->verdict = &out->verdict;
	note[0] = '\0';
	ask(&hook, question, &reply, note, sizeof(note));
	out->verdict =
		policy_hooked(explain->image, explain->subject.policy, &out->verdict, reply.answer);
	if (reply.problem != NULL)
		snprintf(note, sizeof(note), "%s", reply.problem);
	else if (reply.reason[0] != '\0')
		snprintf(note, sizeof(note), "the hook says: %s", reply.reason);
	if (note[0] != '\0')
		out->note = note;
}

void explain_ask_connection(const struct explain *explain, const struct connection *connection,
			    struct explanation *out)
{
	struct hook_question question = {.scheme = ""};

	hook_question_connection(&question, connection, EXPLAIN_NOW);
	explain_ask(explain, &question, out);
}
