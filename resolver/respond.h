/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The second half of the query path: judge -> pin -> reply, and the denials on the way.
 */

#include <stdint.h>

#include "message.h"
#include "pins.h"
#include "resolver/aliases.h"
#include "resolver/audit.h"
#include "resolver/cache.h"
#include "resolver/judge.h"
#include "resolver/local.h"
#include "resolver/lookups.h"
#include "resolver/reply.h"
#include "resolver/serve.h"
#include "resolver/stored.h"
#include "resolver/waiting.h"

/* What a response needs of the service; `policy` changes at a reload. */
struct respond {
	const struct serve_policy *policy;
	struct pins_writer *pins;
	struct aliases *aliases;
	struct cache *cache; /* borrowed, changes with the engine */
	struct audit *audit;
	struct waiting *waiting;
	struct message_status status;
	uint8_t reply[REPLY_SIZE_MAX];
};

static inline void respond_count(struct respond *respond, enum counter counter)
{
	respond->status.counters[counter]++;
}

void respond_error(struct respond *respond, const struct query *query, enum reply_rcode rcode,
		   enum reply_ede ede, const char *text);

/* NXDOMAIN or NODATA of an empty zone of ours. */
void respond_empty(struct respond *respond, const struct query *query, enum local_kind kind);

/*
 * Judges the question. True: go on; a denial that is only reported has its record then. False: it
 * was refused, with reply and audit record, or it waits for the hook, and a copy of it will come
 * back with the hook's word (struct query).
 */
bool respond_permits(struct respond *respond, struct query *query);

/* The answer of localhost and static names; it too may wait for the hook. */
void respond_local(struct respond *respond, const struct query *query,
		   const struct local_answer *local);

/* A line for people, seldom: QUERY's name could not be resolved, as RESULT says; NULL: not in time. */
void respond_tell_failure(struct respond *respond, const struct query *query,
			  const struct recursion_result *result);

/* Everything that comes before the answer is decided for QUERY: it may be answered from STORED at once. */
bool respond_knows(const struct query *query, const struct stored *stored);

/*
 * The answer of the recursion, fresh or kept, in the form that the client wants; NOW is ms of
 * CLOCK_BOOTTIME. It too may wait for the hook.
 */
void respond_stored(struct respond *respond, const struct query *query, struct stored *stored,
		    uint64_t now);
