/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Keeps the packet-filter rules where they belong: installs them, looks at them every
 * GUARD_CHECK_MS and puts them back when another tool has taken them away.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter/ruleset.h"

#define GUARD_CHECK_MS 2000u
/* A rule set that cannot be repaired is reported at most this often. */
#define GUARD_WARNING_MS 30000u

struct guard {
	bool installed;
	struct ruleset ruleset;
	uint64_t next;   /* check, ms of CLOCK_BOOTTIME */
	uint64_t warned; /* last, 0 never */
	uint64_t checks, repairs, failures;
	char problem[256]; /* "" when the last check found everything in place */
};

/* Installs RULESET, in place of the one before when there is one. */
int guard_install(struct guard *guard, const struct ruleset *ruleset, uint64_t now, char *problem,
		  size_t size);
void guard_tick(struct guard *guard, uint64_t now);
void guard_remove(struct guard *guard);
