/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/udp.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "resolver/query.h"

/* Datagrams taken at once, and replies sent at once; after them the loop looks at other sockets. */
#define BATCH 64

/* One datagram in the form of recvmmsg() and sendmmsg(), but its octets. */
union control {
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct cmsghdr align;
};
struct datagrams {
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	struct sockaddr_storage peers[BATCH];
	union control control[BATCH];
};

/*
 * A system call costs more than a cached answer. So replies to the queries of one batch are gathered
 * and leave together when the batch is done; what comes at another time leaves at once.
 */
struct udp {
	int fd;
	struct event *readable;
	udp_query *query;
	void *context;
	struct endpoint bound;
	bool gathering;
	unsigned reply_count;
	struct datagrams in, out;
	uint8_t queries[BATCH][UDP_QUERY_MAX];
	uint8_t replies[BATCH][QUERY_UDP_SIZE_MAX];
};

static void take_arrival(struct msghdr *header, struct path *path)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			path->server.address = address_from_bytes((uint8_t *)&info.ipi_addr, 4);
			path->interface = (uint32_t)info.ipi_ifindex;
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			path->server.address = address_from_bytes((uint8_t *)&info.ipi6_addr, 16);
			path->interface = info.ipi6_ifindex;
		}
	}
}

static void handle(struct udp *udp, unsigned index)
{
	struct msghdr *header = &udp->in.messages[index].msg_hdr;
	struct path path = {.protocol = IPPROTO_UDP, .udp = udp, .server = udp->bound};
	const struct sockaddr *peer = (const struct sockaddr *)&udp->in.peers[index];

	/* Port 0 can get no answer. */
	if (endpoint_from_sockaddr(peer, &path.client) != 0 || path.client.port == 0 ||
	    (header->msg_flags & MSG_TRUNC) != 0)
		return;
	if (peer->sa_family == AF_INET6)
		path.scope = ((const struct sockaddr_in6 *)peer)->sin6_scope_id;
	take_arrival(header, &path);
	udp->query(udp->context, &path, udp->queries[index], udp->in.messages[index].msg_len);
}

/* Makes a place ready for another datagram. */
static void make_ready(struct udp *udp, unsigned index)
{
	struct datagrams *in = &udp->in;

	in->parts[index] = (struct iovec){udp->queries[index], UDP_QUERY_MAX};
	in->messages[index].msg_hdr = (struct msghdr){
		.msg_name = &in->peers[index],
		.msg_namelen = sizeof(in->peers[index]),
		.msg_iov = &in->parts[index],
		.msg_iovlen = 1,
		.msg_control = &in->control[index],
		.msg_controllen = sizeof(in->control[index]),
	};
}

/*
 * Sends what is gathered. A reply that the kernel refuses is left out; when it has no room for more,
 * the rest is lost. sendmmsg() and not sendmsg(): the latter obeys the guard of upstream traffic.
 */
static void flush(struct udp *udp)
{
	unsigned sent = 0;

	while (sent < udp->reply_count) {
		int count = sendmmsg(udp->fd, &udp->out.messages[sent], udp->reply_count - sent,
				     MSG_DONTWAIT | MSG_NOSIGNAL);
		if (count > 0)
			sent += (unsigned)count;
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			sent++;
	}
	udp->reply_count = 0;
}

static void on_readable(evutil_socket_t fd, short events, void *context)
{
	struct udp *udp = context;
	int count = recvmmsg(fd, udp->in.messages, BATCH, MSG_DONTWAIT, NULL);

	(void)events;
	udp->gathering = true;
	for (int i = 0; i < count; i++) {
		handle(udp, (unsigned)i);
		make_ready(udp, (unsigned)i);
	}
	udp->gathering = false;
	flush(udp);
}

/* Answers are not fragmented by us and believe no ICMP about the path (RFC 9715 section 3.1). */
static int set_options(int fd, sa_family_t family)
{
	const int on = 1, omit4 = IP_PMTUDISC_OMIT, omit6 = IPV6_PMTUDISC_OMIT;

	if (family == AF_INET)
		return setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) != 0 ||
				       setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &omit4,
						  sizeof(omit4)) != 0
			       ? -errno
			       : 0;
	return setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) != 0 ||
			       setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &omit6,
					  sizeof(omit6)) != 0
		       ? -errno
		       : 0;
}

int udp_new(struct event_base *base, int fd, udp_query *query, void *context, struct udp **out)
{
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	struct udp *udp = calloc(1, sizeof(*udp));

	if (udp == NULL)
		return -ENOMEM;
	int error = getsockname(fd, (struct sockaddr *)&bound, &length) != 0
			    ? -errno
			    : endpoint_from_sockaddr((struct sockaddr *)&bound, &udp->bound);
	if (error == 0)
		error = set_options(fd, bound.ss_family);
	if (error == 0) {
		*udp = (struct udp){
			.fd = fd, .query = query, .context = context, .bound = udp->bound};
		for (unsigned i = 0; i < BATCH; i++)
			make_ready(udp, i);
		udp->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, udp);
		if (udp->readable == NULL || event_add(udp->readable, NULL) != 0)
			error = -ENOMEM;
	}
	if (error != 0) {
		if (udp->readable != NULL)
			event_free(udp->readable);
		free(udp);
		return error;
	}
	*out = udp;
	return 0;
}

void udp_free(struct udp *udp)
{
	event_free(udp->readable);
	close(udp->fd);
	free(udp);
}

/* The source address of the reply; the interface is left to routing but for link-local addresses.
 */
static void set_source(struct msghdr *header, const struct path *path)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(header);

	if (path->server.address.family == ADDRESS_IPV4) {
		struct in_pktinfo info = {.ipi_ifindex = 0};
		memcpy(&info.ipi_spec_dst, path->server.address.bytes, 4);
		*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(info)),
				      .cmsg_level = IPPROTO_IP,
				      .cmsg_type = IP_PKTINFO};
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		header->msg_controllen = CMSG_SPACE(sizeof(info));
	} else {
		struct in6_pktinfo info = {.ipi6_ifindex = path->scope};
		memcpy(&info.ipi6_addr, path->server.address.bytes, 16);
		*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(info)),
				      .cmsg_level = IPPROTO_IPV6,
				      .cmsg_type = IPV6_PKTINFO};
		memcpy(CMSG_DATA(c), &info, sizeof(info));
		header->msg_controllen = CMSG_SPACE(sizeof(info));
	}
}

void udp_send(const struct path *path, const uint8_t *bytes, size_t size)
{
	struct udp *udp = path->udp;
	struct datagrams *out = &udp->out;
	unsigned index = udp->reply_count;

	if (size > sizeof(udp->replies[index]))
		return;
	memcpy(udp->replies[index], bytes, size);
	out->parts[index] = (struct iovec){udp->replies[index], size};
	out->messages[index].msg_hdr = (struct msghdr){
		.msg_name = &out->peers[index],
		.msg_namelen = endpoint_to_sockaddr(&path->client, &out->peers[index]),
		.msg_iov = &out->parts[index],
		.msg_iovlen = 1,
		.msg_control = &out->control[index],
		.msg_controllen = sizeof(out->control[index]),
	};
	if (out->peers[index].ss_family == AF_INET6)
		((struct sockaddr_in6 *)&out->peers[index])->sin6_scope_id = path->scope;
	set_source(&out->messages[index].msg_hdr, path);
	udp->reply_count++;
	if (!udp->gathering || udp->reply_count == BATCH)
		flush(udp);
}
