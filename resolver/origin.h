/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who asks: this host's own addresses, the name of an input interface, and the owner of a local
 * socket.
 *
 * Own addresses are read by getifaddrs() at start and after each RTM_NEWADDR or RTM_DELADDR, which
 * the kernel tells on a routing socket; a packet cannot make them be read again. The owner of a
 * socket is asked from NETLINK_SOCK_DIAG for each query: a port may change hands between two.
 */

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "policy.h"

struct event_base;
struct origin;

/* 0 or negative errno of the sockets. */
int origin_new(struct event_base *base, struct origin **out);
void origin_free(struct origin *origin);

/* Where a query came in. */
struct origin_arrival {
	struct endpoint client, server;
	uint8_t protocol; /* IPPROTO_UDP or IPPROTO_TCP */
};

#define ORIGIN_INTERFACE_SIZE 16u

/*
 * Describes the arrival for policy_client(), without the interface. The uid stays unknown when no socket of
 * this host has these addresses.
 */
void origin_describe(struct origin *origin, const struct origin_arrival *arrival,
		     struct client_origin *out);

/* The present name of an input interface in BUFFER (ORIGIN_INTERFACE_SIZE); NULL for none. */
const char *origin_interface(const struct origin *origin, uint32_t index, char *buffer);
