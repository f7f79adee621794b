/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The hooks of one program: one connection for each socket that a policy names, made by the parent
 * at our wish, since resolver and gate have no file system. One descriptor stands for all of them
 * in the program's event loop.
 */

#include <stddef.h>
#include <stdint.h>

#include "hook/asker.h"
#include "message.h"
#include "policy.h"

/* What config/ lets through; more would not be asked. */
#define HOOKS_MAX POLICY_HOOKS_MAX

/* Asks the parent for a connection to the hook of POLICY in the image of GENERATION. 0 or negative
 * errno. */
typedef int hooks_wish(policy_index policy, uint64_t generation);

/* The one of a child: MESSAGE_HOOK_WANTED, never blocking. */
int hooks_wish_parent(policy_index policy, uint64_t generation);

/* Private; here in full so that a program can have it without an allocation. */
struct hooks {
	int epoll;
	uint64_t serial;
	size_t used; /* slots from here on never had a path */
	hooks_wish *wish;
	struct hooks_slot {
		char path[POLICY_HOOK_PATH_MAX]; /* "" for none */
		policy_index policy;             /* of the last wish, with its generation */
		uint64_t generation;
		int watched; /* the descriptor that the epoll has; -1: none */
		uint32_t events;
		struct asker asker;
	} slots[HOOKS_MAX];
};

/* 0 or negative errno. */
int hooks_init(struct hooks *hooks, hooks_wish *wish, asker_done *done);
void hooks_deinit(struct hooks *hooks);

/* Wishes a connection to every hook of IMAGE, closes those to others. At start and after a reload.
 */
void hooks_use(struct hooks *hooks, const struct policy_image *image, uint64_t now);

/* Puts QUESTION to the hook of POLICY. 0 and *ID; or an error of asker_ask(). */
int hooks_ask(struct hooks *hooks, const struct policy_image *image, policy_index policy,
	      const struct hook_question *question, const struct client_key *client, void *context,
	      uint64_t now, uint64_t *id);

/* MESSAGE_HOOK came; FD is the connection or -1, and ours from now on. */
void hooks_arrived(struct hooks *hooks, const struct message_hook *message, int fd, uint64_t now);

/* To poll for reading, and what to do then or when hooks_wait() is over. */
int hooks_fd(const struct hooks *hooks);
void hooks_run(struct hooks *hooks, uint64_t now);

/* Milliseconds until a question is due, -1: none. */
int hooks_wait(const struct hooks *hooks, uint64_t now);
