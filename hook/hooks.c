/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hook/hooks.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

int hooks_wish_parent(policy_index policy, uint64_t generation)
{
	union message_body body = {.hook = {.policy = policy, .generation = generation}};

	return message_send(MESSAGE_FD, MESSAGE_HOOK_WANTED, &body, NULL, 0, MSG_DONTWAIT);
}

int hooks_init(struct hooks *hooks, hooks_wish *wish, asker_done *done)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0)
		return -errno;
	hooks->epoll = epoll;
	hooks->serial = 0;
	hooks->used = 0;
	hooks->wish = wish;
	for (size_t i = 0; i < HOOKS_MAX; i++) {
		hooks->slots[i].path[0] = '\0';
		hooks->slots[i].watched = -1;
		asker_init(&hooks->slots[i].asker, &hooks->serial, done);
	}
	return 0;
}

void hooks_deinit(struct hooks *hooks)
{
	for (size_t i = 0; i < hooks->used; i++)
		if (hooks->slots[i].path[0] != '\0')
			asker_close(&hooks->slots[i].asker, 0);
	close(hooks->epoll);
}

/* Keeps the epoll in step with the asker; a descriptor that was closed has left it by itself. */
static void watch(struct hooks *hooks, struct hooks_slot *slot)
{
	int fd = slot->asker.fd;
	uint32_t events =
		asker_wants_write(&slot->asker) ? (uint32_t)EPOLLIN | EPOLLOUT : (uint32_t)EPOLLIN;
	struct epoll_event event = {.events = events, .data = {.ptr = slot}};

	if (fd < 0) {
		slot->watched = -1;
		return;
	}
	if (fd == slot->watched && events == slot->events)
		return;
	/* the same number may be another connection */
	if (epoll_ctl(hooks->epoll, EPOLL_CTL_MOD, fd, &event) != 0 &&
	    epoll_ctl(hooks->epoll, EPOLL_CTL_ADD, fd, &event) != 0) {
		slot->watched = -1;
		return;
	}
	slot->watched = fd;
	slot->events = events;
}

/* A slot that was closed and connected again under the same number must be watched anew. */
static void unwatch(struct hooks_slot *slot)
{
	slot->watched = -1;
}

static struct hooks_slot *slot_of(struct hooks *hooks, const char *path)
{
	struct hooks_slot *unused = NULL;

	for (size_t i = 0; i < hooks->used; i++) {
		struct hooks_slot *slot = &hooks->slots[i];
		if (strcmp(slot->path, path) == 0)
			return slot;
		if (slot->path[0] == '\0' && unused == NULL)
			unused = slot;
	}
	if (unused == NULL && hooks->used < HOOKS_MAX)
		unused = &hooks->slots[hooks->used++];
	if (unused != NULL)
		strcpy(unused->path, path);
	return unused;
}

static void wish_for(struct hooks *hooks, struct hooks_slot *slot, policy_index policy,
		     uint64_t generation, uint64_t now)
{
	if (!asker_may_connect(&slot->asker, now))
		return;
	slot->policy = policy;
	slot->generation = generation;
	asker_connecting(&slot->asker, now);
	if (hooks->wish(policy, generation) != 0)
		asker_failed(&slot->asker, now);
}

static bool names(const struct policy_image *image, const char *path)
{
	struct policy_hook hook;

	for (policy_index i = 0; i < policy_count(image); i++)
		if (policy_hook(image, i, &hook) && strcmp(hook.path, path) == 0)
			return true;
	return false;
}

void hooks_use(struct hooks *hooks, const struct policy_image *image, uint64_t now)
{
	struct policy_hook hook;

	for (size_t i = 0; i < hooks->used; i++) {
		struct hooks_slot *slot = &hooks->slots[i];
		if (slot->path[0] == '\0' || names(image, slot->path))
			continue;
		slot->path[0] = '\0';
		unwatch(slot);
		asker_close(&slot->asker, now);
	}
	for (policy_index i = 0; i < policy_count(image); i++) {
		if (!policy_hook(image, i, &hook))
			continue;
		struct hooks_slot *slot = slot_of(hooks, hook.path);
		if (slot != NULL)
			wish_for(hooks, slot, i, policy_image_generation(image), now);
	}
}

/* Clients are only told apart here, to share the room. */
static uint32_t client_hash(const struct client_key *client)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (size_t i = 0; i < sizeof(client->bytes); i++)
		hash = (hash ^ client->bytes[i]) * 16777619u;
	return hash ^ hash >> 16;
}

int hooks_ask(struct hooks *hooks, const struct policy_image *image, policy_index policy,
	      const struct hook_question *question, const struct client_key *client, void *context,
	      uint64_t now, uint64_t *id)
{
	struct policy_hook hook;
	struct hooks_slot *slot = NULL;

	if (policy_hook(image, policy, &hook))
		slot = slot_of(hooks, hook.path);
	if (slot == NULL)
		return -ENOTCONN;
	wish_for(hooks, slot, policy, policy_image_generation(image), now);
	int error = asker_ask(&slot->asker, question, client_hash(client), now + hook.timeout_ms,
			      context, id);
	if (error == 0)
		watch(hooks, slot);
	return error;
}

void hooks_arrived(struct hooks *hooks, const struct message_hook *message, int fd, uint64_t now)
{
	for (size_t i = 0; i < hooks->used; i++) {
		struct hooks_slot *slot = &hooks->slots[i];
		if (slot->path[0] == '\0' || slot->asker.state != ASKER_CONNECTING ||
		    slot->policy != message->policy || slot->generation != message->generation)
			continue;
		if (fd < 0) {
			asker_failed(&slot->asker, now);
			return;
		}
		unwatch(slot);
		asker_connected(&slot->asker, fd, now);
		watch(hooks, slot);
		return;
	}
	/* nobody waits for it any more */
	if (fd >= 0)
		close(fd);
}

int hooks_fd(const struct hooks *hooks)
{
	return hooks->epoll;
}

void hooks_run(struct hooks *hooks, uint64_t now)
{
	struct epoll_event events[HOOKS_MAX];
	int count = epoll_wait(hooks->epoll, events, HOOKS_MAX, 0);

	for (int i = 0; i < count; i++) {
		struct hooks_slot *slot = events[i].data.ptr;
		asker_ready(&slot->asker, now);
	}
	for (size_t i = 0; i < hooks->used; i++) {
		struct hooks_slot *slot = &hooks->slots[i];
		if (slot->path[0] == '\0')
			continue;
		asker_expire(&slot->asker, now);
		watch(hooks, slot);
	}
}

int hooks_wait(const struct hooks *hooks, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < hooks->used; i++) {
		uint64_t deadline = hooks->slots[i].path[0] == '\0'
					    ? UINT64_MAX
					    : asker_deadline(&hooks->slots[i].asker);
		next = deadline < next ? deadline : next;
	}
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : next - now < 60000 ? (int)(next - now) : 60000;
}
