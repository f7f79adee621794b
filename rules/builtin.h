/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The data files of this folder as tables, made by generate.py. Private to rules/; the header for
 * other rooms is rules/floor.h.
 */

#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "rules/classify.h"
#include "rules/floor.h"
#include "verdict.h"

extern const struct floor_address builtin_floor[];
extern const size_t builtin_floor_count;

/* The prefixes of builtin_floor once more, as numbers in host order, each with its index there. */
struct builtin_floor4 {
	uint32_t base, mask;
	uint32_t index;
};
struct builtin_floor6 {
	uint64_t base_high, base_low, mask_high, mask_low;
	uint32_t index;
};
extern const struct builtin_floor4 builtin_floor4[];
extern const size_t builtin_floor4_count;
/* Bit N: some prefix of builtin_floor4 holds an address that begins with the octet N. */
extern const uint64_t builtin_floor4_octets[4];
extern const struct builtin_floor6 builtin_floor6[];
extern const size_t builtin_floor6_count;

enum builtin_name_kind {
	NAME_NAME,      /* floor: the name and every child */
	NAME_BARE,      /* floor: also below a search domain */
	NAME_UNDER,     /* floor: LABEL.anything.name */
	NAME_LOCALHOST, /* special-names.txt from here on */
	NAME_PRIVATE,
	NAME_RESERVED,
	NAME_EXEMPT,
	NAME_PROVIDER, /* encrypted-dns.txt from here on */
	NAME_CANARY
};

struct builtin_name {
	const char *text;
	const char *label; /* NAME_UNDER alone */
	uint8_t length;
	uint8_t kind; /* enum builtin_name_kind */
	struct place place;
};

/* Open addressing by names_hash(): an index into builtin_names plus one, 0 for an empty slot. */
extern const struct builtin_name builtin_names[];
extern const uint16_t builtin_name_slots[];
extern const uint32_t builtin_name_slot_count; /* a power of two */
extern const uint64_t builtin_name_depths; /* bit N: a name of N labels; bit 63: of 63 or more */

/* Sorted and without gaps: a range ends where the next begins. */
struct builtin_range4 {
	uint32_t first;
	uint32_t class; /* enum address_class */
	struct place place;
};
struct builtin_range6 {
	uint64_t first_high, first_low;
	uint32_t class; /* enum address_class */
	struct place place;
};
extern const struct builtin_range4 builtin_ranges4[];
extern const size_t builtin_range4_count;
extern const struct builtin_range6 builtin_ranges6[];
extern const size_t builtin_range6_count;

extern const struct prefix builtin_nonpublic[];
extern const size_t builtin_nonpublic_count;
