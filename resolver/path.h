/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The way back to whoever asked: a value that outlives the arrival of the query, and that is
 * harmless once the connection is gone.
 */

#include <stddef.h>
#include <stdint.h>

#include "address.h"

struct tcp;
struct udp;

struct path {
	uint8_t protocol; /* IPPROTO_UDP or IPPROTO_TCP; 0: nobody waits for the reply */
	struct endpoint client, server;
	uint32_t interface; /* index of the input interface, 0 unknown */
	struct udp *udp;    /* UDP: the listening socket */
	uint32_t scope;     /* UDP over a link-local address */
	struct tcp *tcp;    /* TCP: the connection's table, slot and serial number */
	uint32_t slot;
	uint64_t serial;
};

/* The most that a reply may have on this path, whatever the client can take. */
size_t path_limit(const struct path *path);

/*
 * Sends a reply, at the latest when the callback of the event loop ends that this is called from; one
 * that cannot be sent is lost, as datagrams are. TCP: every query of a connection has exactly one
 * reply or path_drop().
 */
void path_send(const struct path *path, const uint8_t *bytes, size_t size);

/* No reply will come. */
void path_drop(const struct path *path);
