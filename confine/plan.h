/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The names and addresses of one run. Pure.
 *
 *   host ns           middle ns                         inner ns
 *   pfu<id> ────────── up0   resolver, gate, rules  in0 ────────── eth0   COMMAND
 *   block+1            block+2                      block+5        block+6
 *   fdxx:…:0::1        fdxx:…:0::2                  fdxx:…:1::1    fdxx:…:1::2
 *
 * A block is eight addresses, two /30, out of 198.18.0.0/15 (RFC 2544: benchmarks of network
 * devices, so never somebody's real network); the IPv6 prefix is a random unique local one (RFC
 * 4193).
 */

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

#define PLAN_BLOCK_COUNT 16384u /* 2^17 addresses of the /15, eight each */
#define PLAN_ID_SIZE     9      /* eight hexadecimal digits and NUL */
#define PLAN_UP          "up0"
#define PLAN_IN          "in0"
#define PLAN_COMMAND     "eth0"

struct plan_side {
	struct address host, up;    /* the way out: host end, middle end */
	struct address in, command; /* the governed link: middle end, COMMAND's end */
	struct prefix run;          /* all of the run */
	struct prefix governed;     /* the governed link */
	uint8_t length;             /* of the on-link prefix */
};

struct plan {
	char id[PLAN_ID_SIZE];
	char interface[16]; /* the host end */
	uint32_t block;
	bool ipv6; /* the host has a way out over IPv6 */
	struct plan_side v4, v6;
};

/* Everything from RANDOM and BLOCK (below PLAN_BLOCK_COUNT). */
void plan_make(struct plan *plan, const uint8_t random[9], uint32_t block);

/* All addresses of a block. */
struct prefix plan_block_prefix(uint32_t block);

/* The name of the host end for ID, 16 octets. */
void plan_interface(const char *id, char *interface);
