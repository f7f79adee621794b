/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Theory. A waiting query has a slot of `queries` and is linked from its lookup; a lookup has a
 * slot of `lookups` and is one call of the recursion. A lookup stands in a hash chain by (text,
 * type), so that the same question finds it, and in `ages` in order of its deadline.
 *
 * Invariants: a slot is in use and linked, or on its free list, or past the mark up to which slots
 * were ever used (so memory is touched only when it is needed). A lookup that is being finished
 * stands in no table any more: whatever the callbacks start cannot meet it. `load` counts the
 * waiting queries of a client; two clients may share a counter, which only makes it stricter, and
 * the hash is keyed, so that nobody can choose to. The same counter has the tokens for new lookups.
 */
#include "resolver/lookups.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/hash.h"
#include "resolver/tcp.h"

#define BUCKETS  4096u
#define COUNTERS 4096u

static_assert(LOOKUPS_SECONDS < TCP_IDLE_SECONDS, "a connection must outlive its queries");
static_assert(LOOKUPS_QUERIES_MAX <= UINT16_MAX, "the counters of clients are 16 bits");

struct lookup {
	struct recursion_call call;
	LIST_ENTRY(lookup) chain;
	TAILQ_ENTRY(lookup) age;
	struct lookups *owner;
	const struct recursion *asked;
	struct query *queries;
	uint64_t deadline;
	uint16_t type;
	char text[QUERY_TEXT_SIZE];
};
LIST_HEAD(lookup_chain, lookup);
TAILQ_HEAD(lookup_ages, lookup);

/* What clients that hash to it have: waiting queries, and thousandths of lookups they may start. */
struct counter {
	uint64_t refilled; /* ms; 0: full */
	uint32_t tokens;
	uint16_t load;
};

struct lookups {
	lookups_done *done;
	void *context;
	uint8_t seed[16];
	struct lookup_ages ages;
	struct lookup_chain free_lookups, chains[BUCKETS];
	struct query *free_queries;
	uint32_t lookups_used, queries_used; /* slots that were ever in use */
	uint32_t rate;
	struct counter counters[COUNTERS];
	struct lookup lookups[LOOKUPS_MAX];
	struct query queries[LOOKUPS_QUERIES_MAX];
};

struct lookups *lookups_new(const uint8_t seed[16], lookups_done *done, void *context)
{
	struct lookups *lookups = calloc(1, sizeof(*lookups));

	if (lookups == NULL)
		return NULL;
	lookups->done = done;
	lookups->context = context;
	memcpy(lookups->seed, seed, sizeof(lookups->seed));
	TAILQ_INIT(&lookups->ages);
	return lookups;
}

void lookups_free(struct lookups *lookups)
{
	free(lookups);
}

static struct query *take_query(struct lookups *lookups, const struct query *from)
{
	uint32_t load =
		(uint32_t)(hash_sip(lookups->seed, &from->match.key, sizeof(from->match.key)) %
			   COUNTERS);
	struct query *query = lookups->free_queries;

	if (lookups->counters[load].load >= LOOKUPS_QUERIES_PER_CLIENT_MAX)
		return NULL;
	if (query != NULL)
		lookups->free_queries = query->next;
	else if (lookups->queries_used < LOOKUPS_QUERIES_MAX)
		query = &lookups->queries[lookups->queries_used++];
	else
		return NULL;
	*query = *from;
	if (from->origin.interface != NULL)
		query->origin.interface = query->interface;
	query->load = load;
	lookups->counters[load].load++;
	return query;
}

static void give_query(struct lookups *lookups, struct query *query)
{
	lookups->counters[query->load].load--;
	query->next = lookups->free_queries;
	lookups->free_queries = query;
}

void lookups_set_rate(struct lookups *lookups, uint32_t rate)
{
	lookups->rate = rate;
	for (size_t i = 0; i < COUNTERS; i++)
		lookups->counters[i].refilled = 0;
}

/* A token bucket, refilled when it is looked at. */
static bool take_token(const struct lookups *lookups, struct counter *counter, uint64_t now)
{
	uint64_t most = (uint64_t)lookups->rate * LOOKUPS_BURST_SECONDS * 1000;
	uint64_t earned = counter->refilled == 0 ? most : (now - counter->refilled) * lookups->rate;
	uint64_t tokens = counter->tokens + earned;

	if (lookups->rate == 0)
		return true;
	counter->tokens = (uint32_t)(tokens < most ? tokens : most);
	counter->refilled = now;
	if (counter->tokens < 1000)
		return false;
	counter->tokens -= 1000;
	return true;
}

static struct lookup_chain *chain_of(struct lookups *lookups, const char *text, uint16_t type)
{
	uint64_t hash = hash_sip(lookups->seed, text, strlen(text)) ^ type;
	return &lookups->chains[hash % BUCKETS];
}

static struct lookup *take_lookup(struct lookups *lookups, const char *text, uint16_t type)
{
	struct lookup *lookup = LIST_FIRST(&lookups->free_lookups);

	if (lookup != NULL)
		LIST_REMOVE(lookup, chain);
	else if (lookups->lookups_used < LOOKUPS_MAX)
		lookup = &lookups->lookups[lookups->lookups_used++];
	else
		return NULL;
	lookup->owner = lookups;
	lookup->queries = NULL;
	lookup->type = type;
	strcpy(lookup->text, text);
	LIST_INSERT_HEAD(chain_of(lookups, text, type), lookup, chain);
	return lookup;
}

/* Takes the lookup out of every table; its queries stay linked. */
static void detach(struct lookup *lookup)
{
	LIST_REMOVE(lookup, chain);
	TAILQ_REMOVE(&lookup->owner->ages, lookup, age);
}

static void finish(struct lookup *lookup, const struct recursion_result *result)
{
	struct lookups *lookups = lookup->owner;
	struct query *next;

	detach(lookup);
	lookups->done(lookups->context, lookup->queries, result);
	for (struct query *query = lookup->queries; query != NULL; query = next) {
		next = query->next;
		give_query(lookups, query);
	}
	LIST_INSERT_HEAD(&lookups->free_lookups, lookup, chain);
}

static void on_done(struct recursion_call *call, const struct recursion_result *result)
{
	/* The call is the lookup's first member. */
	finish((struct lookup *)call, result);
}

static int ask(struct lookup *lookup, struct recursion *recursion)
{
	lookup->call = (struct recursion_call){.done = on_done};
	lookup->asked = recursion;
	return recursion_start(recursion, lookup->text, lookup->type, &lookup->call);
}

static int start(struct lookups *lookups, struct recursion *recursion, struct query *query,
		 const char *text, uint64_t now)
{
	struct lookup *lookup = take_lookup(lookups, text, query->message.type);

	if (lookup == NULL)
		return -ENOSPC;
	query->next = NULL;
	lookup->queries = query;
	lookup->deadline = now + LOOKUPS_SECONDS * 1000;
	TAILQ_INSERT_TAIL(&lookups->ages, lookup, age);
	int error = ask(lookup, recursion);
	if (error != 0) {
		detach(lookup);
		LIST_INSERT_HEAD(&lookups->free_lookups, lookup, chain);
	}
	return error;
}

int lookups_join(struct lookups *lookups, struct recursion *recursion, const struct query *query,
		 uint64_t now)
{
	char text[QUERY_TEXT_SIZE];
	struct lookup *lookup;
	struct query *waiting = take_query(lookups, query);

	if (waiting == NULL)
		return -ENOSPC;
	query_text(&query->message, text);
	LIST_FOREACH(lookup, chain_of(lookups, text, query->message.type), chain)
	{
		if (lookup->type == query->message.type && strcmp(lookup->text, text) == 0) {
			waiting->next = lookup->queries;
			lookup->queries = waiting;
			return 0;
		}
	}
	int error = -EDQUOT;
	if (take_token(lookups, &lookups->counters[waiting->load], now))
		error = start(lookups, recursion, waiting, text, now);
	if (error != 0)
		give_query(lookups, waiting);
	return error;
}

void lookups_expire(struct lookups *lookups, struct recursion *recursion, uint64_t now)
{
	struct lookup *lookup;

	while ((lookup = TAILQ_FIRST(&lookups->ages)) != NULL && lookup->deadline <= now) {
		recursion_cancel(recursion, &lookup->call);
		finish(lookup, NULL);
	}
}

/* The oldest lookup that was not asked of RECURSION. */
static struct lookup *asked_elsewhere(struct lookups *lookups, const struct recursion *recursion)
{
	struct lookup *lookup;

	TAILQ_FOREACH(lookup, &lookups->ages, age)
	{
		if (lookup->asked != recursion)
			return lookup;
	}
	return NULL;
}

void lookups_move(struct lookups *lookups, struct recursion *old, struct recursion *new)
{
	struct lookup *lookup;

	TAILQ_FOREACH(lookup, &lookups->ages, age)
	{
		recursion_cancel(old, &lookup->call);
	}
	/* From the start each time: an answer that is there at once changes the list. */
	while ((lookup = asked_elsewhere(lookups, new)) != NULL)
		if (ask(lookup, new) != 0)
			finish(lookup, NULL);
}

void lookups_abandon(struct lookups *lookups, struct recursion *recursion)
{
	struct lookup *lookup;

	TAILQ_FOREACH(lookup, &lookups->ages, age)
	{
		recursion_cancel(recursion, &lookup->call);
	}
}
