/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Changes of packet-filter tables by iptables-restore and ip6tables-restore, through whichever front
 * end works here. They act on the network namespace of the calling process.
 */

#include <stdbool.h>
#include <stddef.h>

#include "filter/tool.h"

/* In the order in which they are tried: what the host uses by default, nft, legacy. */
#define FRONT_COUNT 3

/* One text for each family, IPv4 first, given to both programs at once. */
struct front_change {
	struct tool tools[2];
	int errors[2]; /* of front_end(), 0 or negative errno; 0 at first */
	char problems[2][256];
};

/* Gives TEXT to the program of one family; front_end() is due, and says how it went in CHANGE. */
void front_begin(struct front_change *change, int front, bool ipv6, const char *text);
void front_end(struct front_change *change, bool ipv6);

/* *SAVED gets what stands in all tables of one family, malloc()ed, as tool_run() gives it. */
int front_save(int front, bool ipv6, char **saved);
