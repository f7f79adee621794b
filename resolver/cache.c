/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Theory. Entries stand in hash chains and in one queue. Whoever is at the head of the queue goes when
 * memory is needed, unless it was used since it last stood there: then it goes to the tail once more
 * (the second chance, or CLOCK, algorithm). So a hit costs one store, and names asked once cannot
 * push out those in use.
 *
 * Invariants: `octets` is the sum of the sizes of the entries and at most `most`. Two entries have
 * different keys. The hash is keyed, so nobody can choose names that share a chain.
 */
#include "resolver/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Octets of a common answer with all that belongs to it: about one entry a bucket when full. */
#define ENTRY_OCTETS 512u
#define LARGEST_PART 8u /* of the cache; a few huge answers must not be all there is */

LIST_HEAD(cache_chain, stored);
TAILQ_HEAD(cache_queue, stored);

struct cache {
	uint8_t seed[16];
	size_t most, octets;
	size_t mask; /* buckets less one */
	struct cache_queue queue;
	struct cache_chain chains[];
};

struct cache *cache_new(const uint8_t seed[16], size_t most)
{
	size_t buckets = 1;

	while (buckets < most / ENTRY_OCTETS)
		buckets *= 2;
	struct cache *cache = calloc(1, sizeof(*cache) + buckets * sizeof(cache->chains[0]));
	if (cache == NULL)
		return NULL;
	memcpy(cache->seed, seed, sizeof(cache->seed));
	cache->most = most;
	cache->mask = buckets - 1;
	TAILQ_INIT(&cache->queue);
	return cache;
}

static void drop(struct cache *cache, struct stored *stored)
{
	LIST_REMOVE(stored, chain);
	TAILQ_REMOVE(&cache->queue, stored, turn);
	cache->octets -= stored->size;
	stored_unref(stored);
}

void cache_clear(struct cache *cache)
{
	while (!TAILQ_EMPTY(&cache->queue))
		drop(cache, TAILQ_FIRST(&cache->queue));
}

void cache_free(struct cache *cache)
{
	cache_clear(cache);
	free(cache);
}

static struct stored *find(struct cache *cache, const uint8_t *key, size_t length, uint64_t hash)
{
	struct stored *stored;

	LIST_FOREACH(stored, &cache->chains[hash & cache->mask], chain)
	{
		if (stored->hash == hash && stored->key_length == length &&
		    memcmp(stored->key, key, length) == 0)
			return stored;
	}
	return NULL;
}

struct stored *cache_find(struct cache *cache, const struct stored_key *key, uint64_t now)
{
	uint64_t hash = hash_sip(cache->seed, key->bytes, key->length);
	struct stored *stored = find(cache, key->bytes, key->length, hash);

	if (stored == NULL || now >= stored->expiry)
		return NULL;
	stored->used = true;
	return stored;
}

/* Each turn drops an entry or takes its mark: at most two rounds of the queue. */
static void make_room(struct cache *cache, size_t size, uint64_t now)
{
	while (cache->octets + size > cache->most) {
		struct stored *first = TAILQ_FIRST(&cache->queue);
		if (!first->used || now >= first->expiry) {
			drop(cache, first);
			continue;
		}
		first->used = false;
		TAILQ_REMOVE(&cache->queue, first, turn);
		TAILQ_INSERT_TAIL(&cache->queue, first, turn);
	}
}

struct stored *cache_peek(struct cache *cache, const struct stored_key *key)
{
	return find(cache, key->bytes, key->length, hash_sip(cache->seed, key->bytes, key->length));
}

void cache_put(struct cache *cache, struct stored *stored, uint64_t now)
{
	uint64_t hash = hash_sip(cache->seed, stored->key, stored->key_length);
	struct stored *old = find(cache, stored->key, stored->key_length, hash);

	if (old != NULL)
		drop(cache, old);
	if (now >= stored->expiry || stored->size > cache->most / LARGEST_PART) {
		stored_unref(stored);
		return;
	}
	make_room(cache, stored->size, now);
	stored->hash = hash;
	stored->used = false;
	LIST_INSERT_HEAD(&cache->chains[hash & cache->mask], stored, chain);
	TAILQ_INSERT_TAIL(&cache->queue, stored, turn);
	cache->octets += stored->size;
}

size_t cache_octets(const struct cache *cache)
{
	return cache->octets;
}
