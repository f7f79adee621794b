/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Domain names in the one canonical form that every part of Pinfold compares.
 *
 * Canonical means: lower-case ASCII, A-labels, labels parted by single dots, no trailing dot, every
 * label 1..63 octets, 253 octets in all, made of letters, digits, '-' and '_' alone (RFC 1123 section
 * 2.1 and the underscore labels of RFC 8552). The root is the empty name. A name that cannot be
 * brought into this form is malformed for policy, never truncated and never escaped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_TEXT_MAX 253 /* octets of text without the trailing dot: RFC 1035 section 2.3.4 */
#define NAME_LABEL_MAX 63
#define NAME_WIRE_MAX 255

struct name {
	uint8_t length;
	char text[NAME_TEXT_MAX + 1]; /* NUL after length; bytes past it are unspecified */
};

enum name_error {
	NAME_OK = 0,
	NAME_EMPTY_LABEL,
	NAME_LABEL_TOO_LONG,
	NAME_TOO_LONG,
	NAME_BAD_BYTE, /* a byte outside the canonical alphabet, NUL included */
	NAME_TRUNCATED /* the wire form runs past its end or holds a compression pointer */
};

/* What an enum name_error says, for people; never NULL. */
const char *name_error_text(enum name_error error);

/*
 * Brings ASCII text (any case, at most one trailing dot) into canonical form. U-labels are the
 * caller's business (config/ and cli/ have libidn2). Only NAME_OK writes *OUT.
 */
enum name_error name_from_text(const char *text, size_t length, struct name *out);

/*
 * Reads an uncompressed wire name (RFC 1035 section 3.1) at WIRE. *USED, when not NULL, gets the
 * octets read, also on NAME_BAD_BYTE (the name was well-formed DNS, just no host name). Other errors
 * leave everything untouched.
 */
enum name_error name_from_wire(const uint8_t *wire, size_t size, struct name *out, size_t *used);

/* Writes the wire form, at most NAME_WIRE_MAX octets, and returns its length. */
size_t name_to_wire(const struct name *name, uint8_t *wire);

bool name_equal(const struct name *a, const struct name *b);

/* NAME is ANCESTOR or ends in "." ANCESTOR. Everything is within the root. */
bool name_is_within(const struct name *name, const struct name *ancestor);

size_t name_label_count(const struct name *name);

/* The part after the first dot: "b.c" of "a.b.c", the root of "c" and of the root. */
struct name name_parent(const struct name *name);
