/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The second layer below the recursion: libunbound reaches the network through connect(), sendto()
 * and sendmsg(), and the definitions here come before those of libc. So what the do-not-query list
 * missed (a form of an address it does not know, a code path that does not ask it) ends in EACCES
 * and not in a packet. Our own answers to clients leave by sendmmsg() and by connected sockets.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "resolver/upstream.h"

static const struct upstream *rule;

void guard_set(const struct upstream *upstream)
{
	rule = upstream;
}

/* A destination that is no IP address (netlink, the control socket), or one the rule permits. */
static bool permitted(const struct sockaddr *destination, socklen_t length)
{
	struct endpoint server;

	if (destination == NULL || length < sizeof(destination->sa_family) ||
	    (destination->sa_family != AF_INET && destination->sa_family != AF_INET6))
		return true;
	if (length < (destination->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							: sizeof(struct sockaddr_in6)))
		return false;
	return rule != NULL && endpoint_from_sockaddr(destination, &server) == 0 &&
	       upstream_permits(rule, &server);
}

int connect(int fd, const struct sockaddr *address, socklen_t length)
{
	if (!permitted(address, length)) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_connect, fd, address, length);
}

ssize_t sendto(int fd, const void *bytes, size_t size, int flags, const struct sockaddr *address,
	       socklen_t length)
{
	if (!permitted(address, length)) {
		errno = EACCES;
		return -1;
	}
	return syscall(SYS_sendto, fd, bytes, size, flags, address, length);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (!permitted(message->msg_name, message->msg_namelen)) {
		errno = EACCES;
		return -1;
	}
	return syscall(SYS_sendmsg, fd, message, flags);
}
