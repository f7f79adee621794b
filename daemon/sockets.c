/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/report.h"

/* Pending TCP connections: the resolver accepts in one loop, a burst of clients must fit. */
#define TCP_BACKLOG 256

/*
 * SO_REUSEADDR is for TCP alone, where it lets a restart bind over connections in TIME_WAIT. On a
 * UDP socket it would let a second program bind the same port and take our queries.
 */
static int set_options(int fd, int family, int type)
{
	int on = 1;

	if (type == SOCK_STREAM && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0)
		return -errno;
	return 0;
}

/*
 * Binds, also to an address that this host does not have yet: a bridge or a tap is made when its first
 * guest starts, and the service stands before it. *LATER says that it was so.
 */
static int bind_any(int fd, const struct sockaddr_storage *address, unsigned length, bool *later)
{
	bool ipv6 = address->ss_family == AF_INET6;
	int on = 1;

	if (bind(fd, (const struct sockaddr *)address, length) == 0)
		return 0;
	if (errno != EADDRNOTAVAIL)
		return -errno;
	if (setsockopt(fd, ipv6 ? IPPROTO_IPV6 : IPPROTO_IP, ipv6 ? IPV6_FREEBIND : IP_FREEBIND,
		       &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)address, length) < 0)
		return -errno;
	*later = true;
	return 0;
}

static int open_one(const struct endpoint *endpoint, int type, bool *later)
{
	struct sockaddr_storage address;
	unsigned length = endpoint_to_sockaddr(endpoint, &address);
	int family = endpoint->address.family == ADDRESS_IPV6 ? AF_INET6 : AF_INET;

	if (length == 0)
		return -EAFNOSUPPORT;
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int error = set_options(fd, family, type);
	if (error == 0)
		error = bind_any(fd, &address, length, later);
	if (error == 0 && type == SOCK_STREAM && listen(fd, TCP_BACKLOG) < 0)
		error = -errno;
	if (error != 0) {
		close(fd);
		return error;
	}
	return fd;
}

int sockets_open(const struct resolver_settings *settings, struct sockets *out, char *problem,
		 size_t size)
{
	static const int types[] = {SOCK_DGRAM, SOCK_STREAM};
	struct sockets opened = {.count = 0};

	for (size_t i = 0; i < settings->listen_count; i++) {
		char text[ADDRESS_TEXT_SIZE];
		bool later = false;
		for (size_t t = 0; t < 2; t++) {
			int fd = open_one(&settings->listen[i], types[t], &later);
			if (fd < 0) {
				snprintf(problem, size, "cannot listen on %s/%s: %s",
					 endpoint_format(&settings->listen[i], text),
					 types[t] == SOCK_DGRAM ? "udp" : "tcp", strerror(-fd));
				sockets_close(&opened);
				return fd;
			}
			opened.fds[opened.count++] = fd;
		}
		if (later)
			report("%s is no address of this host yet",
			       endpoint_format(&settings->listen[i], text));
	}
	*out = opened;
	return 0;
}

void sockets_close(struct sockets *sockets)
{
	for (size_t i = 0; i < sockets->count; i++)
		close(sockets->fds[i]);
	sockets->count = 0;
}
