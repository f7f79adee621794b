/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Facts about a name: what the built-in lists say of it, and the hashes by which every list of
 * names is asked. Lists hold names; a name is looked up with each of its parents, all hashed in one
 * pass.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "name.h"
#include "verdict.h"

/* A name of 253 octets has at most 127 labels. */
#define NAME_LABELS_MAX 127

/* The suffixes of a name, the whole name first: where each begins, its length and its hash. */
struct name_walk {
	const struct name *name;
	uint8_t count; /* labels; 0 for the root */
	uint8_t start[NAME_LABELS_MAX];
	uint32_t hash[NAME_LABELS_MAX];
};

void names_walk(const struct name *name, struct name_walk *out);

static inline const char *names_suffix(const struct name_walk *walk, size_t at, uint8_t *length)
{
	*length = (uint8_t)(walk->name->length - walk->start[at]);
	return walk->name->text + walk->start[at];
}

/* The bit for a name of LABELS labels in a set of label counts: one for each, the last for the
 * rest. */
static inline uint64_t names_depth_bit(size_t labels)
{
	return UINT64_C(1) << (labels < 63 ? labels : 63);
}

/* The hash of a whole text, as names_walk() gives it for a suffix. */
uint32_t names_hash(const char *text, size_t length);

enum name_kind {
	NAMES_PUBLIC,
	NAMES_EXEMPT,    /* public, and its non-public answers are no rebinding: ipv4only.arpa */
	NAMES_LOCALHOST, /* localhost and its children */
	NAMES_PRIVATE,   /* a name of a private network, or a single label */
	NAMES_RESERVED   /* special use: nothing is behind it on any network */
};

/* Places have line 0 where a list does not hold the name, but for `special` of a single label. */
struct name_facts {
	enum name_kind kind;
	bool single_label;
	struct place special; /* of KIND */
	struct place floor;
	struct place encrypted; /* a DNS provider or a canary */
};

/*
 * Asks the built-in lists. SEARCHED tells whether the suffix of WALK at an index is a search
 * domain, for bare floor names below one; NULL: there are none.
 */
struct names_search {
	bool (*is_domain)(const void *context, const struct name_walk *walk, size_t at);
	const void *context;
};
void names_facts_of_walk(const struct name_walk *walk, const struct names_search *search,
			 struct name_facts *out);
void names_facts(const struct name *name, const struct names_search *search,
		 struct name_facts *out);

/* The last label is a number as the WHATWG URL standard's "ends in a number checker" has it. */
bool names_ends_in_number(const char *text, size_t length);
