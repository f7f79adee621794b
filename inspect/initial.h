/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The protection of a client's QUIC Initial packets, taken off (RFC 9001 section 5, RFC 9369 section
 * 3.3). It keeps nothing secret: its keys follow from a connection ID that is on the wire.
 */

#include <stddef.h>
#include <stdint.h>

#define INITIAL_VERSION_1 0x00000001u
#define INITIAL_VERSION_2 0x6b3343cfu

/* Longest connection ID (RFC 9000 section 17.2). */
#define INITIAL_ID_MAX 20

/* libcrypto's contexts and room for one packet; everything that is ever allocated. One a thread. */
struct initial;

/* NULL when libcrypto or memory fails. Reads no configuration file of libcrypto. */
struct initial *initial_new(void);
void initial_free(struct initial *initial);

struct initial_id {
	uint8_t length; /* at most INITIAL_ID_MAX */
	uint8_t bytes[INITIAL_ID_MAX];
};

/* One Initial packet as it is on the wire, in the caller's bytes. */
struct initial_packet {
	uint32_t version;     /* INITIAL_VERSION_1 or _2 */
	const uint8_t *bytes; /* from its first octet to the end of its payload */
	size_t number_at;     /* where its packet number begins */
	size_t length;
};

struct initial_plain {
	const uint8_t *frames; /* in INITIAL's room, good until its next call */
	size_t length;
	uint32_t number;
};

/*
 * Opens PACKET with the client's keys for its version and the connection ID that the connection
 * began with. EXPECTED is one more than the largest packet number of the connection so far. 0;
 * -EBADMSG: the keys do not fit, or the packet number cannot be told from one that wrapped around;
 * -EPROTO: they fit, and reserved bits are set; -EMSGSIZE: longer than any datagram. *OUT is
 * untouched on failure.
 */
int initial_open(struct initial *initial, const struct initial_packet *packet,
		 const struct initial_id *id, uint64_t expected, struct initial_plain *out);
