/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "owner/owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int owner_open(struct owner_asker *asker)
{
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return -errno;
	*asker = (struct owner_asker){.fd = fd};
	return 0;
}

void owner_close(struct owner_asker *asker)
{
	if (asker->fd >= 0)
		close(asker->fd);
	asker->fd = -1;
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
static bool take_answer(const struct owner_asker *asker, uint16_t port, struct owner *out)
{
	union {
		struct nlmsghdr header;
		char bytes[4096];
	} answer;

	for (;;) {
		ssize_t size = recv(asker->fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);
		if (size < (ssize_t)sizeof(answer.header) || size > (ssize_t)sizeof(answer) ||
		    answer.header.nlmsg_len > (size_t)size)
			return false;
		if (answer.header.nlmsg_seq == asker->sequence)
			break;
	}
	/*
	 * Without an inode there is no open file: a closed socket, in TIME_WAIT for instance, has lost
	 * its owner and shows uid 0.
	 */
	struct inet_diag_msg *socket = NLMSG_DATA(&answer.header);
	if (answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(*socket)) ||
	    ntohs(socket->id.idiag_sport) != port || socket->idiag_inode == 0)
		return false;
	*out = (struct owner){.uid = socket->idiag_uid, .cgroup = cgroup_of(&answer.header)};
	return true;
}

bool owner_ask(struct owner_asker *asker, uint8_t protocol, const struct endpoint *local,
	       const struct endpoint *remote, struct owner *out)
{
	/* An exact look-up of UDP takes the two ends the other way round (net/ipv4/udp_diag.c). */
	bool swapped = protocol == IPPROTO_UDP;
	const struct endpoint *source = swapped ? remote : local;
	const struct endpoint *destination = swapped ? local : remote;
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 request;
	} question = {
		.header = {.nlmsg_len = sizeof(question),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST,
			   .nlmsg_seq = ++asker->sequence},
		.request = {.sdiag_family =
				    local->address.family == ADDRESS_IPV4 ? AF_INET : AF_INET6,
			    .sdiag_protocol = protocol,
			    .idiag_states = UINT32_MAX,
			    .id = {.idiag_sport = htons(source->port),
				   .idiag_dport = htons(destination->port),
				   .idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
	};

	memcpy(question.request.id.idiag_src, source->address.bytes, 16);
	memcpy(question.request.id.idiag_dst, destination->address.bytes, 16);
	if (send(asker->fd, &question, sizeof(question), 0) != (ssize_t)sizeof(question))
		return false;
	return take_answer(asker, local->port, out);
}
