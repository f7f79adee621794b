/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/waiting.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "resolver/clock.h"

/* One query and the answer it waits with. */
struct waiter {
	struct waiting *owner;
	struct query query;
	struct waiting_matter matter;
};

struct waiting {
	size_t octets;      /* of all answers; one that is shared counts more than once */
	waiting_done *done; /* NULL while everything is being forgotten */
	void *context;
	struct event *ready, *timer;
	struct hooks hooks;
};

static void arm(struct waiting *waiting, uint64_t now)
{
	int wait = hooks_wait(&waiting->hooks, now);
	struct timeval time = {.tv_sec = wait / 1000, .tv_usec = wait % 1000 * 1000};

	if (wait >= 0)
		evtimer_add(waiting->timer, &time);
}

static void on_ready(evutil_socket_t fd, short events, void *context)
{
	struct waiting *waiting = context;
	uint64_t now = clock_ms(CLOCK_BOOTTIME);

	(void)fd;
	(void)events;
	hooks_run(&waiting->hooks, now);
	arm(waiting, now);
}

static size_t octets_of(const struct waiting_matter *matter)
{
	return matter->stored == NULL ? 0 : matter->stored->size;
}

static void on_answer(void *context, uint64_t id, const struct hook_reply *reply)
{
	struct waiter *waiter = context;
	struct waiting *waiting = waiter->owner;

	(void)id;
	waiting->octets -= octets_of(&waiter->matter);
	if (waiting->done != NULL)
		waiting->done(waiting->context, &waiter->query, &waiter->matter, reply);
	stored_unref(waiter->matter.stored);
	free(waiter);
}

int waiting_new(struct event_base *base, waiting_done *done, void *context, struct waiting **out)
{
	struct waiting *waiting = calloc(1, sizeof(*waiting));

	if (waiting == NULL)
		return -ENOMEM;
	waiting->done = done;
	waiting->context = context;
	int error = hooks_init(&waiting->hooks, hooks_wish_parent, on_answer);
	if (error != 0) {
		free(waiting);
		return error;
	}
	waiting->timer = evtimer_new(base, on_ready, waiting);
	waiting->ready =
		event_new(base, hooks_fd(&waiting->hooks), EV_READ | EV_PERSIST, on_ready, waiting);
	if (waiting->timer == NULL || waiting->ready == NULL ||
	    event_add(waiting->ready, NULL) != 0) {
		waiting_free(waiting);
		return -ENOMEM;
	}
	*out = waiting;
	return 0;
}

void waiting_free(struct waiting *waiting)
{
	waiting->done = NULL;
	if (waiting->ready != NULL)
		event_free(waiting->ready);
	if (waiting->timer != NULL)
		event_free(waiting->timer);
	hooks_deinit(&waiting->hooks);
	free(waiting);
}

void waiting_use(struct waiting *waiting, const struct policy_image *image, uint64_t now)
{
	hooks_use(&waiting->hooks, image, now);
}

void waiting_arrived(struct waiting *waiting, const struct message_hook *message, int fd,
		     uint64_t now)
{
	hooks_arrived(&waiting->hooks, message, fd, now);
}

static struct waiter *waiter_new(struct waiting *waiting, const struct query *query,
				 const struct waiting_matter *matter)
{
	struct waiter *waiter = malloc(sizeof(*waiter));

	if (waiter == NULL)
		return NULL;
	waiter->owner = waiting;
	waiter->query = *query;
	waiter->query.next = NULL;
	waiter->query.answered = false;
	if (query->origin.interface != NULL)
		waiter->query.origin.interface = waiter->query.interface;
	waiter->matter = *matter;
	if (matter->stored != NULL)
		stored_ref(matter->stored);
	return waiter;
}

const char *waiting_ask(struct waiting *waiting, const struct policy_image *image,
			const struct query *query, const struct waiting_matter *matter,
			const struct hook_question *question, uint64_t now)
{
	struct waiter *waiter;
	uint64_t id;

	if (octets_of(matter) > WAITING_OCTETS_MAX - waiting->octets)
		return asker_problem(-ENOSPC);
	waiter = waiter_new(waiting, query, matter);
	if (waiter == NULL)
		return asker_problem(-ENOMEM);
	int error = hooks_ask(&waiting->hooks, image, query->match.policy, question,
			      &query->match.key, waiter, now, &id);
	if (error != 0) {
		stored_unref(waiter->matter.stored);
		free(waiter);
		return asker_problem(error);
	}
	waiting->octets += octets_of(matter);
	arm(waiting, now);
	return NULL;
}
