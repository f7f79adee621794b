/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/origin.h"

#include <errno.h>
#include <event2/event.h>
#include <ifaddrs.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "owner/owner.h"

/* Own addresses that are known at once; a host with more has the rest taken for strangers. */
#define OWN_MAX 1024u

struct origin {
	int route, control;
	struct owner_asker owner;
	struct event *changed;
	bool stale;
	size_t own_count;
	struct address own[OWN_MAX];
};

static void on_change(evutil_socket_t fd, short events, void *context)
{
	struct origin *origin = context;
	char bytes[4096];

	(void)events;
	/* The messages themselves do not matter; an overflow (ENOBUFS) is news as well. */
	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
		continue;
	origin->stale = true;
}

static void read_own(struct origin *origin)
{
	struct ifaddrs *list;
	struct endpoint endpoint;

	if (getifaddrs(&list) != 0)
		return; /* stays stale: tried again at the next query */
	origin->own_count = 0;
	for (struct ifaddrs *i = list; i != NULL && origin->own_count < OWN_MAX; i = i->ifa_next)
		if (i->ifa_addr != NULL && endpoint_from_sockaddr(i->ifa_addr, &endpoint) == 0)
			origin->own[origin->own_count++] = endpoint.address;
	freeifaddrs(list);
	origin->stale = false;
}

static bool is_loopback(const struct address *address)
{
	static const uint8_t loopback6[16] = {[15] = 1};

	return address->family == ADDRESS_IPV4 ? address->bytes[0] == 127
					       : memcmp(address->bytes, loopback6, 16) == 0;
}

static bool is_own(struct origin *origin, const struct address *address)
{
	if (is_loopback(address))
		return true;
	if (origin->stale)
		read_own(origin);
	for (size_t i = 0; i < origin->own_count; i++)
		if (address_equal(&origin->own[i], address))
			return true;
	return false;
}

int origin_new(struct event_base *base, struct origin **out)
{
	struct origin *origin = calloc(1, sizeof(*origin));
	struct sockaddr_nl groups = {.nl_family = AF_NETLINK,
				     .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
	int error;

	if (origin == NULL)
		return -ENOMEM;
	origin->stale = true;
	origin->route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	origin->owner.fd = -1;
	origin->control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (origin->control < 0)
		origin->control = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (origin->route < 0 || origin->control < 0 ||
	    bind(origin->route, (const struct sockaddr *)&groups, sizeof(groups)) != 0) {
		error = -errno;
		origin_free(origin);
		return error;
	}
	error = owner_open(&origin->owner);
	if (error != 0) {
		origin_free(origin);
		return error;
	}
	origin->changed = event_new(base, origin->route, EV_READ | EV_PERSIST, on_change, origin);
	if (origin->changed == NULL || event_add(origin->changed, NULL) != 0) {
		origin_free(origin);
		return -ENOMEM;
	}
	*out = origin;
	return 0;
}

void origin_free(struct origin *origin)
{
	if (origin->changed != NULL)
		event_free(origin->changed);
	if (origin->route >= 0)
		close(origin->route);
	owner_close(&origin->owner);
	if (origin->control >= 0)
		close(origin->control);
	free(origin);
}

const char *origin_interface(const struct origin *origin, uint32_t index, char *buffer)
{
	struct ifreq request = {.ifr_ifindex = (int)index};

	if (index == 0 || ioctl(origin->control, SIOCGIFNAME, &request) != 0)
		return NULL;
	memcpy(buffer, request.ifr_name, ORIGIN_INTERFACE_SIZE);
	buffer[ORIGIN_INTERFACE_SIZE - 1] = '\0';
	return buffer;
}

void origin_describe(struct origin *origin, const struct origin_arrival *arrival,
		     struct client_origin *out)
{
	struct owner owner;

	*out = (struct client_origin){.source = arrival->client.address};
	out->own = is_own(origin, &arrival->client.address);
	if (!out->own || !owner_ask(&origin->owner, arrival->protocol, &arrival->client,
				    &arrival->server, &owner))
		return;
	out->uid_known = true;
	out->uid = owner.uid;
	out->cgroup = owner.cgroup;
}
