/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where an HTTP/1.x request goes: the Host field and the four forms of a request target (RFC 9112
 * section 3.2); private to inspect/.
 */

#include <stdbool.h>
#include <stddef.h>

#include "policy.h"

/* Longest scheme that is told apart by name; with the NUL. */
#define TARGET_SCHEME_SIZE 32

struct target {
	enum target_form form;
	char scheme[TARGET_SCHEME_SIZE]; /* absolute form: lower case, NUL; "" otherwise */
	struct host host;                /* absolute and authority form; HOST_NONE otherwise */
};

/*
 * "host" or "host:port". The host is a name, an IPv4 address in any spelling or an IPv6 address in
 * brackets; user information, percent escapes, an empty port and port 0 are refused, all more
 * strictly than RFC 3986 since parsers disagree about them. NULL and *OUT, or what is wrong.
 */
const char *target_parse_host(const char *text, size_t length, struct host *out);

/* The target of a request whose method is CONNECT or not. NULL and *OUT, or what is wrong. */
const char *target_parse(const char *text, size_t length, bool connect, struct target *out);
