/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/uplink.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "confine/netlink.h"

void uplink_init(struct uplink *uplink, const struct uplink_kind *kind)
{
	*uplink = (struct uplink){
		.kind = kind,
		.descriptors = {-1, -1, -1, -1},
		.death = -1,
		.state = {.folder = -1, .lock = -1},
	};
}

/* A route of the host inside the /15 or over part of it takes the blocks that it covers. */
static void take_route(const struct netlink_route *route, void *context)
{
	bool *taken = context;
	const struct prefix *to = &route->destination;
	const uint8_t *b = to->address.bytes;

	if (to->address.family != ADDRESS_IPV4 || to->length < 16 || b[0] != 198 ||
	    (b[1] & 0xfe) != 18)
		return;
	uint32_t first = ((uint32_t)(b[1] & 1) << 16 | (uint32_t)b[2] << 8 | b[3]) / 8;
	uint32_t count = to->length >= 29 ? 1 : 1u << (29 - to->length);
	for (uint32_t i = first; i < first + count && i < PLAN_BLOCK_COUNT; i++)
		taken[i] = true;
}

static void note_way_out(const struct netlink_route *route, void *context)
{
	const struct prefix *to = &route->destination;
	bool local = to->length > 0 &&
		     (to->address.bytes[0] >= 0xfe || (to->address.bytes[0] & 0xfe) == 0xfc);

	if (route->gateway && !local)
		*(bool *)context = true;
	else if (to->length == 0)
		*(bool *)context = true;
}

int uplink_choose(struct uplink *uplink, bool *taken)
{
	uint8_t random[9 + 4];
	struct netlink netlink;
	uint32_t start;
	bool ipv6 = false;

	int error = netlink_open(&netlink);
	if (error != 0)
		return error;
	error = netlink_routes(&netlink, ADDRESS_IPV4, take_route, taken);
	if (error == 0 && access("/proc/sys/net/ipv6", F_OK) == 0)
		error = netlink_routes(&netlink, ADDRESS_IPV6, note_way_out, &ipv6);
	netlink_close(&netlink);
	if (error != 0)
		return error;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	memcpy(&start, random + 9, sizeof(start));
	for (uint32_t i = 0; i < PLAN_BLOCK_COUNT; i++) {
		uint32_t block = (start % PLAN_BLOCK_COUNT + i) % PLAN_BLOCK_COUNT;
		if (taken[block])
			continue;
		plan_make(&uplink->plan, random, block);
		uplink->plan.ipv6 = ipv6;
		return 0;
	}
	return -EADDRNOTAVAIL;
}

static int configure_side(struct netlink *netlink, const struct plan_side *side, bool route)
{
	const struct prefix all = {.length = 0};
	int error = netlink_address(netlink, PLAN_UP, &side->up, side->length);

	return error != 0 || !route ? error : netlink_route(netlink, PLAN_UP, &all, &side->host);
}

int uplink_address(const struct plan *plan, bool ipv4)
{
	struct netlink netlink;
	int error = netlink_open(&netlink);

	if (error != 0)
		return error;
	error = netlink_up(&netlink, PLAN_UP);
	if (error == 0)
		error = configure_side(&netlink, &plan->v4, ipv4);
	if (error == 0 && plan->ipv6)
		error = configure_side(&netlink, &plan->v6, true);
	netlink_close(&netlink);
	return error;
}
