/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Theory. A pair (client, target) hashes to one set of ALIASES_PER_TARGET places, which it may share
 * with others; the whole hash, keyed and of 64 bits, tells them apart. A set is walked whole, so no
 * place ever needs to be cleared: it is free when its expiry is past.
 */
#include "resolver/aliases.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define SETS (ALIASES_MAX / ALIASES_PER_TARGET)

struct alias {
	uint64_t pair; /* hash of (client, target) */
	uint64_t expiry;
	struct name name;
};

struct aliases {
	uint8_t seed[16];
	uint64_t last; /* no expiry is later: mostly there are none, and nothing is to be hashed */
	struct alias sets[SETS][ALIASES_PER_TARGET];
};

struct aliases *aliases_new(const uint8_t seed[16])
{
	struct aliases *aliases = calloc(1, sizeof(*aliases));

	if (aliases != NULL)
		memcpy(aliases->seed, seed, sizeof(aliases->seed));
	return aliases;
}

void aliases_free(struct aliases *aliases)
{
	free(aliases);
}

static uint64_t pair_of(const struct aliases *aliases, const struct client_key *client,
			const struct name *target)
{
	uint8_t bytes[sizeof(*client) + NAME_TEXT_MAX];

	memcpy(bytes, client, sizeof(*client));
	memcpy(bytes + sizeof(*client), target->text, target->length);
	return hash_sip(aliases->seed, bytes, sizeof(*client) + target->length);
}

void aliases_add(struct aliases *aliases, const struct client_key *client,
		 const struct name *target, const struct name *name, uint64_t expiry, uint64_t now)
{
	uint64_t pair = pair_of(aliases, client, target);
	struct alias *set = aliases->sets[pair % SETS], *place = &set[0];

	if (expiry <= now || name_equal(target, name))
		return;
	for (size_t i = 0; i < ALIASES_PER_TARGET; i++) {
		if (set[i].expiry < place->expiry)
			place = &set[i];
		if (set[i].pair == pair && set[i].expiry > now && name_equal(&set[i].name, name)) {
			place = &set[i];
			break;
		}
	}
	if (place->pair == pair && name_equal(&place->name, name) && place->expiry > expiry)
		return;
	place->pair = pair;
	place->expiry = expiry;
	place->name = *name;
	if (expiry > aliases->last)
		aliases->last = expiry;
}

size_t aliases_find(const struct aliases *aliases, const struct client_key *client,
		    const struct name *target, uint64_t now, struct name out[ALIASES_PER_TARGET])
{
	size_t count = 0;

	if (now >= aliases->last)
		return 0;
	uint64_t pair = pair_of(aliases, client, target);
	const struct alias *set = aliases->sets[pair % SETS];
	for (size_t i = 0; i < ALIASES_PER_TARGET; i++)
		if (set[i].pair == pair && now < set[i].expiry)
			out[count++] = set[i].name;
	return count;
}
