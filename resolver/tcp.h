/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Queries over TCP (RFC 7766): several on one connection, answered in any order. Connections are
 * bounded in all and per client address (IPv6: per /64), and so are the queries and the unread answers of each.
 */

#include <stddef.h>
#include <stdint.h>

#include "resolver/path.h"

struct event_base;
struct tcp;

#define TCP_CONNECTIONS_MAX            256u /* with upstream sockets within 1024 descriptors */
#define TCP_CONNECTIONS_PER_CLIENT_MAX 32u
#define TCP_PIPELINE_MAX               32u /* unanswered queries; past it nothing is read */
#define TCP_QUERY_MAX                  4096u
#define TCP_OUTPUT_MAX                 262144u /* unread answers; past it the client is cut off */
/* Without a whole query and without an answer: longer than any query can take (serve.c). */
#define TCP_IDLE_SECONDS 20

typedef void tcp_query(void *context, const struct path *path, const uint8_t *bytes, size_t size);

/* NULL: out of memory. */
struct tcp *tcp_new(struct event_base *base, tcp_query *query, void *context);
void tcp_free(struct tcp *tcp);

/* Listens on the bound socket FD, which is taken over on success. 0 or negative errno. */
int tcp_listen(struct tcp *tcp, int fd);

/* path_send() and path_drop() for TCP. */
void tcp_send(const struct path *path, const uint8_t *bytes, size_t size);
void tcp_drop(const struct path *path);
