/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rules/names.h"

#include <string.h>

#include "rules/builtin.h"

/* FNV-1a, 64 bits, folded; generate.py has the same. Lists are the operator's, so no key is needed.
 */
#define FNV_OFFSET UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME  UINT64_C(0x100000001b3)

static uint64_t step(uint64_t value, char octet)
{
	return (value ^ (uint8_t)octet) * FNV_PRIME;
}

static uint32_t fold(uint64_t value)
{
	return (uint32_t)(value ^ value >> 32);
}

uint32_t names_hash(const char *text, size_t length)
{
	uint64_t value = FNV_OFFSET;

	while (length > 0)
		value = step(value, text[--length]);
	return fold(value);
}

void names_walk(const struct name *name, struct name_walk *out)
{
	uint64_t value = FNV_OFFSET;
	size_t count = 0, at = name->length;
	uint8_t start[NAME_LABELS_MAX];
	uint32_t hash[NAME_LABELS_MAX];

	/* from the last label to the first: each suffix costs nothing but its own octets */
	while (at > 0 && count < NAME_LABELS_MAX) {
		while (at > 0 && name->text[at - 1] != '.')
			value = step(value, name->text[--at]);
		start[count] = (uint8_t)at;
		hash[count++] = fold(value);
		if (at > 0)
			value = step(value, name->text[--at]);
	}
	out->name = name;
	out->count = (uint8_t)count;
	for (size_t i = 0; i < count; i++) {
		out->start[i] = start[count - 1 - i];
		out->hash[i] = hash[count - 1 - i];
	}
}

static const struct builtin_name *find(const struct name_walk *walk, size_t at)
{
	uint32_t mask = builtin_name_slot_count - 1;
	uint8_t length;
	const char *text = names_suffix(walk, at, &length);

	if ((builtin_name_depths & names_depth_bit((size_t)(walk->count - at))) == 0)
		return NULL;
	for (uint32_t slot = walk->hash[at] & mask; builtin_name_slots[slot] != 0;
	     slot = (slot + 1) & mask) {
		const struct builtin_name *name = &builtin_names[builtin_name_slots[slot] - 1];
		if (name->length == length && memcmp(name->text, text, length) == 0)
			return name;
	}
	return NULL;
}

static bool label_is(const struct name_walk *walk, size_t at, const char *label)
{
	size_t end = at + 1 < walk->count ? (size_t)(walk->start[at + 1] - 1) : walk->name->length;
	size_t length = end - walk->start[at];

	return strlen(label) == length &&
	       memcmp(walk->name->text + walk->start[at], label, length) == 0;
}

/* The longest suffix decides, so the first one found of each kind stays. */
static void note(const struct builtin_name *entry, const struct name_walk *walk, size_t at,
		 struct name_facts *facts)
{
	struct place *place = NULL;

	switch ((enum builtin_name_kind)entry->kind) {
	case NAME_UNDER:
		if (at < 2 || !label_is(walk, at - 2, entry->label))
			return;
		place = &facts->floor;
		break;
	case NAME_NAME:
	case NAME_BARE:
		place = &facts->floor;
		break;
	case NAME_PROVIDER:
	case NAME_CANARY:
		place = &facts->encrypted;
		break;
	case NAME_EXEMPT:
		/* RFC 8880 section 3 speaks of this one name, not of its children */
		if (at > 0)
			return;
		place = &facts->special;
		facts->kind = NAMES_EXEMPT;
		break;
	case NAME_LOCALHOST:
	case NAME_PRIVATE:
	case NAME_RESERVED:
		place = &facts->special;
		if (place->line == 0)
			facts->kind = entry->kind == NAME_LOCALHOST ? NAMES_LOCALHOST
				      : entry->kind == NAME_PRIVATE ? NAMES_PRIVATE
								    : NAMES_RESERVED;
		break;
	}
	if (place->line == 0)
		*place = entry->place;
}

/* `metadata` and its like as the label directly below a search domain, children included. */
static void ask_search(const struct name_walk *walk, const struct names_search *search,
		       struct name_facts *facts)
{
	for (size_t at = 1; at < walk->count; at++) {
		if (!search->is_domain(search->context, walk, at))
			continue;
		for (size_t i = 0; builtin_names[i].place.source == SOURCE_FLOOR; i++) {
			if (builtin_names[i].kind != NAME_BARE ||
			    !label_is(walk, at - 1, builtin_names[i].text))
				continue;
			facts->floor = builtin_names[i].place;
			return;
		}
	}
}

void names_facts_of_walk(const struct name_walk *walk, const struct names_search *search,
			 struct name_facts *out)
{
	*out = (struct name_facts){.kind = NAMES_PUBLIC, .single_label = walk->count == 1};
	for (size_t at = 0; at < walk->count; at++) {
		const struct builtin_name *entry = find(walk, at);
		if (entry != NULL)
			note(entry, walk, at, out);
	}
	if (search != NULL && out->floor.line == 0)
		ask_search(walk, search, out);
	if (out->single_label && out->kind == NAMES_PUBLIC)
		out->kind = NAMES_PRIVATE;
}

void names_facts(const struct name *name, const struct names_search *search, struct name_facts *out)
{
	struct name_walk walk;

	names_walk(name, &walk);
	names_facts_of_walk(&walk, search, out);
}
