/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Queries over UDP. Sockets come bound; destination address and input interface are asked of the
 * kernel (IP_PKTINFO, RFC 3542 section 6), so that a reply leaves from the address that was asked.
 */

#include <stddef.h>
#include <stdint.h>

#include "resolver/path.h"

struct event_base;
struct udp;

/* Longer queries are no queries: a name, a type and a few options have under 1 KiB. */
#define UDP_QUERY_MAX 4096u

typedef void udp_query(void *context, const struct path *path, const uint8_t *bytes, size_t size);

/* Takes over the bound socket FD on success. 0 or negative errno. */
int udp_new(struct event_base *base, int fd, udp_query *query, void *context, struct udp **out);
void udp_free(struct udp *udp);

/* path_send() for UDP. */
void udp_send(const struct path *path, const uint8_t *bytes, size_t size);
