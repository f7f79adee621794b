/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * IPv4 addresses inside IPv6 addresses, decoded before anything is judged.
 */

#include <stdbool.h>
#include <stddef.h>

#include "address.h"

enum embedding_kind {
	EMBEDDING_MAPPED,      /* ::ffff:0:0/96, RFC 4291 section 2.5.5.2 */
	EMBEDDING_NAT64,       /* 64:ff9b::/96, RFC 6052 section 2.1 */
	EMBEDDING_COMPATIBLE,  /* ::/96 but :: and ::1, RFC 4291 section 2.5.5.1 */
	EMBEDDING_TRANSLATED,  /* ::ffff:0:0:0/96, RFC 2765 section 2.1 */
	EMBEDDING_NAT64_LOCAL, /* 64:ff9b:1::/48, RFC 8215, by RFC 6052 section 2.2 */
	EMBEDDING_6TO4,        /* 2002::/16, RFC 3056 section 2 */
	EMBEDDING_TEREDO,      /* 2001::/32, RFC 4380 section 4: the client */
	EMBEDDING_TEREDO_SERVER,
	EMBEDDING_ISATAP /* interface identifier 0000:5efe or 0200:5efe, RFC 5214 section 6.1 */
};

struct embedded {
	enum embedding_kind kind;
	struct address address; /* IPv4 */
};

/* Four readings of 64:ff9b:1::/48, or two of Teredo, and ISATAP under any of them. */
#define EMBEDDED_MAX 5

/*
 * Writes every IPv4 address that ADDRESS may stand for and returns their number, 0 for one that
 * embeds none. A form that can be read in several ways gives all of them, the likeliest first.
 */
size_t embedding_decode(const struct address *address, struct embedded out[EMBEDDED_MAX]);

/* ADDRESS, or the IPv4 address when it is IPv4-mapped: the form in which addresses are compared. */
struct address embedding_unmap(const struct address *address);

/*
 * The one IPv4 address that ADDRESS stands for, or ADDRESS itself when it embeds none or can be
 * read in several ways. Not for Teredo and ISATAP: whoever owns an IPv6 prefix or a Teredo server
 * chooses what their other bits say, so they must not pass for the address of somebody else.
 */
struct address embedding_single(const struct address *address);

/* Do A and B name one destination: equal, or equal once embedding_single() has read both? */
bool embedding_same(const struct address *a, const struct address *b);

/* Could PREFIX (IPv6) hold an embedded form of an IPv4 address inside INNER? */
bool embedding_prefix_may_hold(const struct prefix *prefix, const struct prefix *inner);
