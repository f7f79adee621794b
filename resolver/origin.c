/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/origin.h"

#include <errno.h>
#include <event2/event.h>
#include <ifaddrs.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Own addresses that are known at once; a host with more has the rest taken for strangers. */
#define OWN_MAX 1024u

struct origin {
	int route, diagnosis, control;
	struct event *changed;
	bool stale;
	uint32_t sequence;
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
	origin->diagnosis = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	origin->control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (origin->control < 0)
		origin->control = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (origin->route < 0 || origin->diagnosis < 0 || origin->control < 0 ||
	    bind(origin->route, (const struct sockaddr *)&groups, sizeof(groups)) != 0) {
		error = -errno;
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
	if (origin->diagnosis >= 0)
		close(origin->diagnosis);
	if (origin->control >= 0)
		close(origin->control);
	free(origin);
}

static const char *interface_name(const struct origin *origin, uint32_t index, char *buffer)
{
	struct ifreq request = {.ifr_ifindex = (int)index};

	if (index == 0 || ioctl(origin->control, SIOCGIFNAME, &request) != 0)
		return NULL;
	memcpy(buffer, request.ifr_name, ORIGIN_INTERFACE_SIZE);
	buffer[ORIGIN_INTERFACE_SIZE - 1] = '\0';
	return buffer;
}

/* Reads the attributes after an inet_diag_msg for the socket's cgroup. */
static uint64_t cgroup_of(struct nlmsghdr *header)
{
	struct inet_diag_msg *socket = NLMSG_DATA(header);
	int left = (int)(header->nlmsg_len - NLMSG_LENGTH(sizeof(*socket)));
	uint64_t id = 0;

	for (struct rtattr *a = (struct rtattr *)(socket + 1); RTA_OK(a, left);
	     a = RTA_NEXT(a, left))
		if (a->rta_type == INET_DIAG_CGROUP_ID && RTA_PAYLOAD(a) == sizeof(id))
			memcpy(&id, RTA_DATA(a), sizeof(id));
	return id;
}

/* The kernel's answer is trusted for its form, but it must be the answer to this very question. */
static bool take_owner(struct origin *origin, uint16_t client_port, struct client_origin *out)
{
	union {
		struct nlmsghdr header;
		char bytes[4096];
	} answer;

	for (;;) {
		ssize_t size =
			recv(origin->diagnosis, &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);
		if (size < (ssize_t)sizeof(answer.header) || size > (ssize_t)sizeof(answer) ||
		    answer.header.nlmsg_len > (size_t)size)
			return false;
		if (answer.header.nlmsg_seq == origin->sequence)
			break;
	}
	/*
	 * Without an inode there is no open file: a closed socket, in TIME_WAIT for instance, has lost
	 * its owner and shows uid 0.
	 */
	struct inet_diag_msg *socket = NLMSG_DATA(&answer.header);
	if (answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(*socket)) ||
	    ntohs(socket->id.idiag_sport) != client_port || socket->idiag_inode == 0)
		return false;
	out->uid_known = true;
	out->uid = socket->idiag_uid;
	out->cgroup = cgroup_of(&answer.header);
	return true;
}

static bool ask_owner(struct origin *origin, const struct origin_arrival *arrival, bool swapped,
		      struct client_origin *out)
{
	const struct endpoint *source = swapped ? &arrival->server : &arrival->client;
	const struct endpoint *destination = swapped ? &arrival->client : &arrival->server;
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} question = {
		.header = {.nlmsg_len = sizeof(question),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST,
			   .nlmsg_seq = ++origin->sequence},
		.request = {.sdiag_family = arrival->client.address.family == ADDRESS_IPV4
						    ? AF_INET
						    : AF_INET6,
			    .sdiag_protocol = arrival->protocol,
			    .idiag_states = UINT32_MAX,
			    .id = {.idiag_sport = htons(source->port),
				   .idiag_dport = htons(destination->port),
				   .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};

	memcpy(question.request.id.idiag_src, source->address.bytes, 16);
	memcpy(question.request.id.idiag_dst, destination->address.bytes, 16);
	if (send(origin->diagnosis, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
		return false;
	return take_owner(origin, arrival->client.port, out);
}

void origin_describe(struct origin *origin, const struct origin_arrival *arrival, char *interface,
		     struct client_origin *out)
{
	*out = (struct client_origin){.source = arrival->client.address};
	out->own = is_own(origin, &arrival->client.address);
	if (!out->own) {
		out->interface = interface_name(origin, arrival->interface, interface);
		return;
	}
	/* An exact look-up of UDP takes the two ends the other way round (net/ipv4/udp_diag.c). */
	ask_owner(origin, arrival, arrival->protocol == IPPROTO_UDP, out);
}
