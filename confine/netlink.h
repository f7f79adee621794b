/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The few requests of rtnetlink(7) that `pinfold run` needs, each acknowledged by the kernel before
 * it returns. They act on the network namespace in which the socket was opened. Every function
 * returns 0 or negative errno.
 */

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

struct netlink {
	int fd;
	uint32_t sequence;
};

int netlink_open(struct netlink *netlink);
void netlink_close(struct netlink *netlink);

/* A veth pair: NAME here, PEER in the network namespace behind PEER_NAMESPACE. */
int netlink_veth(struct netlink *netlink, const char *name, const char *peer, int peer_namespace);
int netlink_up(struct netlink *netlink, const char *name);
/* -ENODEV when there is no such interface. */
int netlink_delete(struct netlink *netlink, const char *name);

/*
 * Waits until the current network namespace has the interface NAME, which somebody else makes.
 * -ETIMEDOUT after MS milliseconds, -ECANCELED as soon as the descriptor CANCEL is readable.
 */
int netlink_await(const char *name, int ms, int cancel);

/* An address with its on-link prefix LENGTH, usable at once (no duplicate address detection). */
int netlink_address(struct netlink *netlink, const char *name, const struct address *address,
		    uint8_t length);

/* A route to DESTINATION through GATEWAY; a length of 0 is the default route of GATEWAY's family.
 */
int netlink_route(struct netlink *netlink, const char *name, const struct prefix *destination,
		  const struct address *gateway);

/* One unicast route of the main table. */
struct netlink_route {
	struct prefix destination; /* family ADDRESS_NONE, length 0: the default route */
	bool gateway;
};

/* Calls VISIT for each unicast route of FAMILY in the main table. */
int netlink_routes(struct netlink *netlink, enum address_family family,
		   void (*visit)(const struct netlink_route *route, void *context), void *context);
