/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/path.h"

#include <netinet/in.h>

#include "resolver/query.h"
#include "resolver/reply.h"
#include "resolver/tcp.h"
#include "resolver/udp.h"

size_t path_limit(const struct path *path)
{
	return path->protocol == IPPROTO_TCP ? REPLY_SIZE_MAX : QUERY_UDP_SIZE_MAX;
}

void path_send(const struct path *path, const uint8_t *bytes, size_t size)
{
	if (path->protocol == IPPROTO_TCP)
		tcp_send(path, bytes, size);
	else if (path->protocol == IPPROTO_UDP)
		udp_send(path, bytes, size);
}

void path_drop(const struct path *path)
{
	if (path->protocol == IPPROTO_TCP)
		tcp_drop(path);
}
