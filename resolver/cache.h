/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Answers that are kept until their TTL ends or their memory is needed. It holds what came from the
 * recursion and no judgement but what `verdicts` of an entry remembers; an entry serves clients of
 * every policy. One recursion, one cache: with another upstream or anchor it is cleared.
 */

#include <stddef.h>
#include <stdint.h>

#include "resolver/stored.h"

struct cache;

/* SEED keys the hash; MOST is octets in all, of which no single answer gets more than an eighth. NULL: out of memory. */
struct cache *cache_new(const uint8_t seed[16], size_t most);
void cache_free(struct cache *cache);

/*
 * The entry of KEY that is an answer at NOW (ms of CLOCK_BOOTTIME), or NULL. The cache's own: good until
 * cache_put() or cache_clear(), longer with a reference.
 */
struct stored *cache_find(struct cache *cache, const struct stored_key *key, uint64_t now);

/* The entry of KEY, also when it is no answer any more. */
struct stored *cache_peek(struct cache *cache, const struct stored_key *key);

/*
 * Takes over the caller's reference of STORED, which stands in the place of its predecessor, or is
 * dropped where it is not to be kept. NOW as above.
 */
void cache_put(struct cache *cache, struct stored *stored, uint64_t now);

void cache_clear(struct cache *cache);

size_t cache_octets(const struct cache *cache);
