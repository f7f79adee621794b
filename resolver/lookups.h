/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Queries that wait for the recursion, and the lookups they wait for. Queries with the same
 * question share a lookup.
 */

#include <stdint.h>

#include "hook/protocol.h"
#include "policy.h"
#include "resolver/origin.h"
#include "resolver/path.h"
#include "resolver/query.h"
#include "resolver/recursion.h"

/*
 * Queries that wait at once, in all and of one client, and the different questions they ask. Past a
 * bound a query gets SERVFAIL: a client that hears nothing asks again and makes it worse. Memory is
 * about 1 KiB a query and a question, touched only when used.
 */
#define LOOKUPS_QUERIES_MAX            4096u
#define LOOKUPS_QUERIES_PER_CLIENT_MAX 1024u
#define LOOKUPS_MAX                    2048u
/*
 * A client may start `client_rate` lookups a second, and after a pause those of so many seconds at
 * once: a page asks for a hundred names, a crawler is slowed down.
 */
#define LOOKUPS_BURST_SECONDS 2u
/* Clients have given up by then (5 s in glibc and musl, a second try included). */
#define LOOKUPS_SECONDS 12

/* One question of one client, from its arrival to its reply. */
struct query {
	struct query *next;
	struct path path;
	struct query_message message;
	struct client_origin origin;
	char interface[ORIGIN_INTERFACE_SIZE]; /* what origin.interface points to */
	struct client_match match;
	uint64_t generation; /* of the policy that `match` and the question's verdict are from */
	uint32_t load;       /* lookups.c: index of the client's counter */
	bool answered;       /* serve.c: while a lookup is being finished */
	bool stale;     /* serve.c: the answer's time is over, and there is no other (RFC 8767) */
	bool permitted; /* the question's verdict: allowed, and nothing was to be reported or asked */
	/* The hook has had its word at stage `hooked_at`, under the policy of `generation`. */
	bool hooked;
	enum stage hooked_at;
	struct verdict hooked_verdict;
	char hooked_words[HOOK_REASON_MAX + 1]; /* for the log; "" for none */
};

struct lookups;

/* RESULT is for every query of the list; NULL: there was none in time. The queries are freed after
 * it. */
typedef void lookups_done(void *context, struct query *queries,
			  const struct recursion_result *result);

/* SEED keys the tables. NULL: out of memory. */
struct lookups *lookups_new(const uint8_t seed[16], lookups_done *done, void *context);
void lookups_free(struct lookups *lookups);

/* How many lookups a second the queries of one client may start; 0: any number. */
void lookups_set_rate(struct lookups *lookups, uint32_t rate);

/*
 * Lets a copy of QUERY wait for the answer to its question, which may come before this returns. NOW
 * is milliseconds. 0; -ENOSPC at a bound; -EDQUOT when the client starts too many lookups; -EIO when
 * the recursion would not take it.
 */
int lookups_join(struct lookups *lookups, struct recursion *recursion, const struct query *query,
		 uint64_t now);

/* Ends what has waited too long. */
void lookups_expire(struct lookups *lookups, struct recursion *recursion, uint64_t now);

/* Takes every lookup away from OLD and asks NEW. */
void lookups_move(struct lookups *lookups, struct recursion *old, struct recursion *new);

/* Forgets all of them without a call. */
void lookups_abandon(struct lookups *lookups, struct recursion *recursion);
