/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One entry of a list: "example.com", "*.example.com:443", "10.0.0.0/8", "[2001:db8::1]:80",
 * "https://example.com". Text in, struct match_entry out, or a sentence that says why it can never
 * match.
 */

#include <stdbool.h>
#include <stddef.h>

#include "rules/source.h"

enum entry_rule {
	ENTRY_NAMES = 1 << 0,
	ENTRY_WILDCARDS = 1 << 1, /* "*.x" */
	ENTRY_PREFIXES = 1 << 2,  /* addresses and CIDRs */
	ENTRY_PORT = 1 << 3,      /* ":port" may follow */
	ENTRY_PORT_REQUIRED = 1 << 4,
	ENTRY_ORIGIN = 1 << 5,  /* "scheme://host[:port]" and nothing else */
	ENTRY_GUARDED = 1 << 6, /* it opens something: no floor, no bare public suffix */
};

/* The entries of allow_hosts. */
#define ENTRY_HOSTS (ENTRY_NAMES | ENTRY_WILDCARDS | ENTRY_PREFIXES | ENTRY_PORT | ENTRY_GUARDED)

#define ENTRY_PROBLEM_SIZE 224

/* Room for what entry_format() writes: scheme, name, port and their marks. */
#define ENTRY_TEXT_SIZE (NAME_TEXT_MAX + 24)

/*
 * Reads TEXT by RULES (a set of enum entry_rule) into OUT, all but its place. Returns 0; 1 when it
 * is good but PROBLEM (ENTRY_PROBLEM_SIZE) holds a warning; -EINVAL when PROBLEM holds the error.
 */
int entry_parse(const char *text, size_t length, unsigned rules, struct match_entry *out,
		char *problem);

/* The text that entry_parse() reads back as the same entry, into BUFFER (ENTRY_TEXT_SIZE). */
const char *entry_format(const struct match_entry *entry, char *buffer);

/* ::ffff:a.b.c.d and its prefixes are the IPv4 ones; everything else is returned as it is. */
struct prefix entry_plain_prefix(const struct prefix *prefix);

/*
 * How many labels of NAME, from its end, make the domain that somebody registered: the public suffix
 * (private ones too) and one more. 0 when there is none.
 */
size_t entry_registered_labels(const struct name *name);

/* Is NAME of the floor, or under a name of it? */
bool entry_on_floor(const struct name *name);
