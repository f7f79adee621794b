/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Queries that wait for a hook's word on their question or their answer, and the resolver's
 * connections to hooks. Each is one region of memory, freed after its one call.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook/hooks.h"
#include "policy.h"
#include "resolver/lookups.h"
#include "resolver/stored.h"

struct event_base;
struct waiting;

/*
 * Answers that are kept while their queries wait, in all: 500 of the longest, or as many queries as
 * hooks may be asked at once with usual ones.
 */
#define WAITING_OCTETS_MAX (32u << 20)

/* What a query waits with. */
struct waiting_matter {
	enum stage stage;
	struct verdict verdict;
	struct stored *stored; /* STAGE_ANSWER; NULL for a local answer */
};

/* REPLY, with HOOK_ERROR when there was none; QUERY and MATTER are gone after the call. */
typedef void waiting_done(void *context, struct query *query, const struct waiting_matter *matter,
			  const struct hook_reply *reply);

/* 0 or negative errno. */
int waiting_new(struct event_base *base, waiting_done *done, void *context, struct waiting **out);

/* Forgets all without a call. */
void waiting_free(struct waiting *waiting);

/* The hooks of IMAGE from now on. */
void waiting_use(struct waiting *waiting, const struct policy_image *image, uint64_t now);

/* MESSAGE_HOOK; FD is taken over, -1 for none. */
void waiting_arrived(struct waiting *waiting, const struct message_hook *message, int fd,
		     uint64_t now);

/*
 * Puts QUESTION to the hook of QUERY's policy in IMAGE and keeps copies of QUERY and MATTER, with a
 * reference of its own. NULL,
 * or a static text that says why it cannot be asked: then there is no call.
 */
const char *waiting_ask(struct waiting *waiting, const struct policy_image *image,
			const struct query *query, const struct waiting_matter *matter,
			const struct hook_question *question, uint64_t now);
