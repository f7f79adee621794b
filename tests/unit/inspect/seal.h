/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A client's QUIC Initial packets, made: the other way of inspect/initial.h, by libcrypto's own HKDF.
 */

#include <stddef.h>
#include <stdint.h>

#include "inspect/initial.h"

/* Octets of a datagram, at most; larger than any. */
#define SEAL_SIZE 66000

struct seal {
	uint32_t version;
	struct initial_id to;   /* destination connection ID */
	struct initial_id keys; /* the one that the keys come from */
	size_t token_length;    /* that many zero octets */
	uint32_t number;
	size_t number_length; /* 1..4; 0: 4 */
	uint8_t bits;         /* set in the first octet before it is protected */
	size_t datagram;      /* octets of the packet, padded with PADDING frames; 0: as it comes */
};

/* A connection's first packets: version 1, IDs of the eight octets TEXT, 1200 octets. */
struct seal seal_first(const char *text);

/* One packet with FRAMES into OUT (SEAL_SIZE); returns its length. */
size_t seal_initial(const struct seal *seal, const uint8_t *frames, size_t length, uint8_t *out);

/* A CRYPTO frame into OUT; returns its length. */
size_t seal_crypto(size_t offset, const uint8_t *bytes, size_t length, uint8_t *out);

/* A handshake message: a small ClientHello for NAME (NULL: none) with PADDING octets of padding. */
size_t seal_hello(const char *name, size_t padding, uint8_t *out);
