/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The reader of a TLS ClientHello (RFC 8446 section 4.1.2); private to inspect/.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy.h"

/* What a ClientHello says, as far as anybody here asks. */
struct hello {
	struct host host;    /* server_name; HOST_NONE without */
	bool offers_version; /* supported_versions: TLS 1.3, so a HelloRetryRequest may come */
	bool early_data;     /* application data may follow before the server answers */
};

/*
 * Parses one handshake message, its header of four octets included. NULL and *OUT, or what is
 * wrong. A server_name is one host_name that is a canonical name or an address; an
 * encrypted_client_hello is not looked into: the outer name counts.
 */
const char *hello_parse(const uint8_t *message, size_t length, struct hello *out);

/* Two hellos of one handshake name the same host: all but a few extensions of the second equals the
 * first (RFC 8446 section 4.1.2). */
bool hello_same_host(const struct host *a, const struct host *b);
