/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which servers the recursion may talk to. A delegation's glue is chosen by whoever owns the zone,
 * so it must not lead our own sockets anywhere a governed client may not go. Two layers use this:
 * libunbound's do-not-query list, which keeps such servers from being chosen, and resolver/guard.c,
 * which refuses the system call.
 *
 * Blocked is everything that is not public, every IPv6 form that embeds an IPv4 address, and the
 * floor with its infrastructure; with `upstream_nonpublic` only the last two. A forwarder of the
 * settings is exempt, by exact address and port; one on a metadata address only at port 53, where
 * providers run their resolvers (169.254.169.254 of GCP, 169.254.169.253 of AWS, 168.63.129.16 of
 * Azure).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "address.h"
#include "settings.h"

struct upstream;

/* 0, -ENOMEM, or -EACCES with one line in PROBLEM for a forwarder that may not be one. */
int upstream_new(const struct resolver_settings *settings, struct upstream **out, char *problem,
		 size_t size);
void upstream_free(struct upstream *upstream);

bool upstream_permits(const struct upstream *upstream, const struct endpoint *server);

/* Calls PRINT for each prefix that libunbound must not query: the blocked ones without the
 * addresses of forwarders, for which the list has no exceptions. */
void upstream_each_blocked(const struct upstream *upstream,
			   void (*print)(const struct prefix *prefix, void *context),
			   void *context);

/*
 * Makes UPSTREAM (borrowed; NULL: nothing may be contacted) the rule of connect(), sendto() and
 * sendmsg() of this process: with a destination it does not permit they fail with EACCES. Defined
 * in guard.c.
 */
void guard_set(const struct upstream *upstream);
