/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Keeps the packet-filter rules where they belong: installs them, looks at them every
 * GUARD_CHECK_MS and puts them back when another tool has taken them away.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "filter/apply.h"

#define GUARD_CHECK_MS 2000u
/* A rule set that cannot be repaired is reported at most this often. */
#define GUARD_WARNING_MS 30000u

struct guard {
	bool installed;
	bool alone; /* in a network namespace of our own: nobody else can touch the rules */
	struct ruleset ruleset;
	enum filter_backend backend;
	uint64_t next;   /* check, ms of CLOCK_BOOTTIME; UINT64_MAX: none */
	uint64_t warned; /* last, 0 never */
	uint64_t checks, repairs, failures;
	char problem[256]; /* "" when the last check found everything in place */
};

/*
 * The rules that CONFIG asks for with CLIENTS, see config_ruleset(). UID is what the resolver becomes,
 * whose own queries are no client's. 0, or negative errno with one line in PROBLEM.
 */
int guard_ruleset(const struct config *config, const struct client_source *clients,
		  size_t client_count, uint32_t uid, struct ruleset *out, char *problem,
		  size_t size);

/* Installs RULESET, in place of the one before when there is one. */
int guard_install(struct guard *guard, const struct ruleset *ruleset, uint64_t now, char *problem,
		  size_t size);
void guard_tick(struct guard *guard, uint64_t now);
void guard_remove(struct guard *guard);
