/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/netlink.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* A request of ours is at most a few hundred octets; a part of a dump at most 32 KiB (netlink(7)).
 */
#define REQUEST_MAX 512
#define ANSWER_MAX  32768

struct request {
	struct nlmsghdr header;
	uint8_t body[REQUEST_MAX];
};

int netlink_open(struct netlink *netlink)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		int error = -errno;
		close(fd);
		return error;
	}
	*netlink = (struct netlink){.fd = fd};
	return 0;
}

void netlink_close(struct netlink *netlink)
{
	if (netlink->fd >= 0)
		close(netlink->fd);
	netlink->fd = -1;
}

int netlink_await(const char *name, int ms, int cancel)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	uint8_t ignored[ANSWER_MAX / 4];
	struct timespec now;
	int error = -ETIMEDOUT;

	/* It listens before it looks, so nothing is missed in between. */
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		error = -errno;
		close(fd);
		return error;
	}
	clock_gettime(CLOCK_MONOTONIC, &now);
	const int64_t end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + ms;
	for (int64_t left = ms; left > 0;) {
		struct pollfd fds[2] = {{.fd = fd, .events = POLLIN},
					{.fd = cancel, .events = POLLIN}};
		if (if_nametoindex(name) != 0) {
			error = 0;
			break;
		}
		if (poll(fds, 2, (int)left) > 0 && fds[1].revents != 0) {
			error = -ECANCELED;
			break;
		}
		while (recv(fd, ignored, sizeof(ignored), 0) > 0)
			;
		clock_gettime(CLOCK_MONOTONIC, &now);
		left = end - (now.tv_sec * 1000 + now.tv_nsec / 1000000);
	}
	close(fd);
	return error;
}

static void begin(struct request *request, uint16_t type, uint16_t flags, const void *head,
		  size_t size)
{
	memset(request, 0, sizeof(*request));
	request->header.nlmsg_type = type;
	request->header.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	request->header.nlmsg_len = (uint32_t)(NLMSG_LENGTH(size));
	memcpy(NLMSG_DATA(&request->header), head, size);
}

/* Appends an attribute; every caller's total is far below REQUEST_MAX. */
static struct rtattr *add(struct request *request, uint16_t type, const void *data, size_t size)
{
	size_t at = NLMSG_ALIGN(request->header.nlmsg_len);
	struct rtattr *attribute = (struct rtattr *)(void *)((uint8_t *)request + at);

	attribute->rta_type = type;
	attribute->rta_len = (uint16_t)RTA_LENGTH(size);
	if (size > 0)
		memcpy(RTA_DATA(attribute), data, size);
	request->header.nlmsg_len = (uint32_t)(at + RTA_ALIGN(attribute->rta_len));
	return attribute;
}

static void add_text(struct request *request, uint16_t type, const char *text)
{
	add(request, type, text, strlen(text) + 1);
}

/* Everything that was added since BEGUN is inside it. */
static void end_nest(struct request *request, struct rtattr *begun)
{
	uint8_t *end = (uint8_t *)request + request->header.nlmsg_len;

	begun->rta_len = (uint16_t)(end - (uint8_t *)begun);
}

static int send_request(struct netlink *netlink, struct request *request)
{
	ssize_t sent;

	request->header.nlmsg_seq = ++netlink->sequence;
	do
		sent = send(netlink->fd, request, request->header.nlmsg_len, 0);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static ssize_t receive(struct netlink *netlink, void *buffer, size_t size)
{
	ssize_t count;

	do
		count = recv(netlink->fd, buffer, size, 0);
	while (count < 0 && errno == EINTR);
	return count < 0 ? -errno : count;
}

/* Sends and waits for the kernel's acknowledgement. */
static int perform(struct netlink *netlink, struct request *request)
{
	_Alignas(struct nlmsghdr) uint8_t answer[4096];
	int error;

	request->header.nlmsg_flags |= NLM_F_ACK;
	error = send_request(netlink, request);
	while (error == 0) {
		ssize_t count = receive(netlink, answer, sizeof(answer));
		struct nlmsghdr *header = (void *)answer;
		if (count < 0)
			return (int)count;
		if (!NLMSG_OK(header, (size_t)count))
			return -EPROTO;
		if (header->nlmsg_seq != netlink->sequence || header->nlmsg_type != NLMSG_ERROR)
			continue;
		const struct nlmsgerr *result = NLMSG_DATA(header);
		return result->error;
	}
	return error;
}

static int family_of(const struct address *address)
{
	return address->family == ADDRESS_IPV6 ? AF_INET6 : AF_INET;
}

int netlink_veth(struct netlink *netlink, const char *name, const char *peer, int peer_namespace)
{
	struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
	struct request request;

	begin(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &link, sizeof(link));
	add_text(&request, IFLA_IFNAME, name);
	struct rtattr *info = add(&request, IFLA_LINKINFO, NULL, 0);
	add_text(&request, IFLA_INFO_KIND, "veth");
	struct rtattr *data = add(&request, IFLA_INFO_DATA, NULL, 0);
	struct rtattr *other = add(&request, VETH_INFO_PEER, &link, sizeof(link));
	add_text(&request, IFLA_IFNAME, peer);
	add(&request, IFLA_NET_NS_FD, &peer_namespace, sizeof(peer_namespace));
	end_nest(&request, other);
	end_nest(&request, data);
	end_nest(&request, info);
	return perform(netlink, &request);
}

int netlink_up(struct netlink *netlink, const char *name)
{
	struct ifinfomsg link = {
		.ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
	struct request request;

	begin(&request, RTM_NEWLINK, 0, &link, sizeof(link));
	add_text(&request, IFLA_IFNAME, name);
	return perform(netlink, &request);
}

int netlink_delete(struct netlink *netlink, const char *name)
{
	struct ifinfomsg link = {.ifi_family = AF_UNSPEC};
	struct request request;

	begin(&request, RTM_DELLINK, 0, &link, sizeof(link));
	add_text(&request, IFLA_IFNAME, name);
	return perform(netlink, &request);
}

int netlink_address(struct netlink *netlink, const char *name, const struct address *address,
		    uint8_t length)
{
	struct ifaddrmsg head = {.ifa_family = (uint8_t)family_of(address),
				 .ifa_prefixlen = length,
				 .ifa_flags = IFA_F_NODAD,
				 .ifa_index = if_nametoindex(name)};
	struct request request;

	if (head.ifa_index == 0)
		return -ENODEV;
	begin(&request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head));
	add(&request, IFA_LOCAL, address->bytes, address_length(address));
	add(&request, IFA_ADDRESS, address->bytes, address_length(address));
	return perform(netlink, &request);
}

int netlink_route(struct netlink *netlink, const char *name, const struct prefix *destination,
		  const struct address *gateway)
{
	struct rtmsg head = {.rtm_family = (uint8_t)family_of(gateway),
			     .rtm_dst_len = destination->length,
			     .rtm_table = RT_TABLE_MAIN,
			     .rtm_protocol = RTPROT_STATIC,
			     .rtm_scope = RT_SCOPE_UNIVERSE,
			     .rtm_type = RTN_UNICAST};
	uint32_t index = if_nametoindex(name);
	struct request request;

	if (index == 0)
		return -ENODEV;
	begin(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &head, sizeof(head));
	if (destination->length > 0)
		add(&request, RTA_DST, destination->address.bytes,
		    address_length(&destination->address));
	add(&request, RTA_GATEWAY, gateway->bytes, address_length(gateway));
	add(&request, RTA_OIF, &index, sizeof(index));
	return perform(netlink, &request);
}

static void visit_route(struct nlmsghdr *header,
			void (*visit)(const struct netlink_route *route, void *context),
			void *context)
{
	struct rtmsg *head = NLMSG_DATA(header);
	struct netlink_route route = {.destination = {.length = head->rtm_dst_len}};
	int left = (int)RTM_PAYLOAD(header);

	if (head->rtm_type != RTN_UNICAST || head->rtm_table != RT_TABLE_MAIN)
		return;
	for (struct rtattr *a = RTM_RTA(head); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type == RTA_DST)
			route.destination.address = address_from_bytes(RTA_DATA(a), RTA_PAYLOAD(a));
		if (a->rta_type == RTA_GATEWAY || a->rta_type == RTA_VIA ||
		    a->rta_type == RTA_MULTIPATH || a->rta_type == RTA_NH_ID)
			route.gateway = true;
	}
	visit(&route, context);
}

int netlink_routes(struct netlink *netlink, enum address_family family,
		   void (*visit)(const struct netlink_route *route, void *context), void *context)
{
	struct rtmsg head = {.rtm_family = family == ADDRESS_IPV6 ? AF_INET6 : AF_INET};
	_Alignas(struct nlmsghdr) static uint8_t answer[ANSWER_MAX];
	struct request request;

	begin(&request, RTM_GETROUTE, NLM_F_DUMP, &head, sizeof(head));
	int error = send_request(netlink, &request);
	while (error == 0) {
		ssize_t count = receive(netlink, answer, sizeof(answer));
		if (count < 0)
			return (int)count;
		size_t left = (size_t)count;
		for (struct nlmsghdr *header = (void *)answer; NLMSG_OK(header, left);
		     header = NLMSG_NEXT(header, left)) {
			if (header->nlmsg_seq != netlink->sequence)
				continue;
			if (header->nlmsg_type == NLMSG_DONE)
				return 0;
			if (header->nlmsg_type == NLMSG_ERROR)
				return ((const struct nlmsgerr *)NLMSG_DATA(header))->error;
			if (header->nlmsg_type == RTM_NEWROUTE)
				visit_route(header, visit, context);
		}
	}
	return error;
}
