/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A client is who is governed and whom pins belong to. Its key is sixteen bytes that the resolver and
 * the gate derive independently and compare byte by byte.
 *
 * A source address that no `clients:` entry claims is a client of its own: the key is the address, an
 * IPv4 one in mapped form (::ffff:a.b.c.d). A client of the configuration, one that was registered later
 * and the client `host` (all of this machine's own addresses) have keys under ff00::/8: multicast is
 * never a source address, so they cannot meet.
 */

#include <stdint.h>

#include "address.h"

#define CLIENT_NAME_MAX 63

struct client_key {
	uint8_t bytes[16];
};

/* The key of an unregistered source address. */
struct client_key client_key_of_address(const struct address *source);

/* The key of a client of the configuration: a 64-bit hash of its name. `pinfold check` refuses a collision. */
struct client_key client_key_of_name(const char *name);

/*
 * The key of a client that was registered while the service runs. SERIAL is given out once, so that a
 * client never gets the pins of an earlier one, whatever name or address it takes over.
 */
struct client_key client_key_of_serial(uint64_t serial);

/* The key of the client `host`. */
struct client_key client_key_of_host(void);

bool client_key_equal(const struct client_key *a, const struct client_key *b);
