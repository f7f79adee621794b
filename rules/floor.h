/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The floor as it is compiled in from floor.txt: for the engine, and for the static packet-filter
 * rules.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "verdict.h"

/* TCP ports of a floor address that are infrastructure: DNS, KMS, iSCSI. */
#define FLOOR_TCP_INFRASTRUCTURE                                                                   \
	{                                                                                          \
		53, 1688, 3260                                                                     \
	}
/* UDP ports likewise: DNS, DHCP, NTP. */
#define FLOOR_UDP_INFRASTRUCTURE                                                                   \
	{                                                                                          \
		53, 67, 68, 123                                                                    \
	}

enum floor_kind { FLOOR_FLOOR, FLOOR_INFRASTRUCTURE };

struct floor_address {
	struct prefix prefix;
	uint8_t kind;      /* enum floor_kind */
	uint16_t tcp_port; /* 0: every port and protocol, but those above when FLOOR_FLOOR */
	uint32_t line;     /* in floor.txt */
};

/* All rules for addresses, in the order of the file. */
const struct floor_address *floor_addresses(size_t *count);

enum floor_answer { FLOOR_NONE, FLOOR_IS_INFRASTRUCTURE, FLOOR_IS_FLOOR };

/*
 * What the floor says of ADDRESS in every form it may stand for, PORT (host order) and PROTOCOL
 * (IPPROTO_*; 0: the address alone, as in a DNS answer). *LINE gets the rule's line unless
 * FLOOR_NONE.
 */
enum floor_answer floor_of_address(const struct address *address, uint16_t port, uint8_t protocol,
				   uint32_t *line);
