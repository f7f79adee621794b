/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who was sent where: when a client asked for the HTTPS or SVCB record of a name and was told another
 * name to connect to (TargetName, RFC 9460 section 2.4), it will ask for the addresses of that one,
 * and still name the first in its requests. Such addresses are pinned for both.
 *
 * A bounded table that forgets; what is forgotten is a refusal (`name_mismatch`) until the client
 * asks again. Times are ms of CLOCK_BOOTTIME.
 */

#include <stddef.h>
#include <stdint.h>

#include "client.h"
#include "name.h"

/* Names of one client that lead to the same target, and all in all: 2 MiB, touched only when used. */
#define ALIASES_PER_TARGET 8u
#define ALIASES_MAX        8192u

struct aliases;

/* SEED keys the table. NULL: out of memory. */
struct aliases *aliases_new(const uint8_t seed[16]);
void aliases_free(struct aliases *aliases);

/* CLIENT was sent from NAME to TARGET; good until EXPIRY. In a full place the nearest expiry goes. */
void aliases_add(struct aliases *aliases, const struct client_key *client,
		 const struct name *target, const struct name *name, uint64_t expiry, uint64_t now);

/* The names from which CLIENT was sent to TARGET, into OUT; returns how many. */
size_t aliases_find(const struct aliases *aliases, const struct client_key *client,
		    const struct name *target, uint64_t now, struct name out[ALIASES_PER_TARGET]);
