/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The client's half of one UDP flow, read as QUIC: version 1 (RFC 9000) and 2 (RFC 9369).
 *
 * Whole datagrams are fed, in the order of arrival. The ClientHello that the CRYPTO frames of Initial
 * packets carry is an event, however it was cut, reordered and repeated, and so is a second one after
 * a HelloRetryRequest, and that of every further connection on the same flow: after a Retry, after a
 * version negotiation, or because the client uses its socket for several.
 *
 * Pure: no I/O, no clock, no allocation. The caller lends a buffer for the ClientHello.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inspect/initial.h"
#include "inspect/stream.h"

/* All CRYPTO data of a connection's Initial packets. A post-quantum hello has some 2 KiB. */
#define QUIC_CRYPTO_MAX STREAM_HELLO_MAX

/* RFC 9000 section 14.1: what begins a connection; servers discard it in a shorter datagram. */
#define QUIC_DATAGRAM_MIN 1200u

enum quic_step {
	QUIC_PASS,  /* nothing in the datagram, or before it, waits for a judgement */
	QUIC_HOLD,  /* a ClientHello is not complete: hold the datagram, as those before it */
	QUIC_EVENT, /* quic_event() is to be judged; once it is allowed, quic_resume(): this datagram
		       and those held before it pass */
	QUIC_ROOM,  /* no room for the ClientHello: quic_rebuffer(), feed the same datagram again */
	QUIC_DROP   /* nobody knows what a server would read in it: drop it, its sender repeats */
};

/* Private; see quic.c. Lies in storage that a struct stream would fit into. */
struct quic;

/* STORAGE has STREAM_SIZE bytes, aligned to 16. INITIAL is lent, and so is BUFFER of CAPACITY octets;
 * NULL and 0 are good, QUIC_ROOM asks when one is needed. */
struct quic *quic_init(void *storage, struct initial *initial, uint8_t *buffer, size_t capacity);

/* Reads one datagram. What is malformed is an event too, as soon as it is beyond repair. */
enum quic_step quic_feed(struct quic *quic, const uint8_t *bytes, size_t length);

/* After QUIC_EVENT: as stream_event(). REQUEST_TLS, or REQUEST_OTHER for what is no QUIC at all. */
struct stream_event *quic_event(struct quic *quic);

/* The event was judged and let pass. What was malformed or no QUIC is not read any further: every
 * later datagram is QUIC_PASS. */
void quic_resume(struct quic *quic);

/* An Initial packet was read: a connection is followed. */
bool quic_has_begun(const struct quic *quic);

/* No datagram is waiting for a ClientHello to become complete. */
bool quic_is_judged(const struct quic *quic);

/* Octets of a buffer that has room for NEEDED octets of a ClientHello, and for any. */
#define QUIC_BUFFER_SIZE(needed) (((needed) / 8 + 1) * 9)

/* Octets of buffer that QUIC_ROOM asks for. */
size_t quic_buffer_needed(const struct quic *quic);

/*
 * Replaces the buffer by a larger one; the old one is the caller's again. NULL and 0 take it away,
 * which only quic_is_judged() allows: repetitions of what was judged cannot be compared then and are
 * QUIC_DROP.
 */
void quic_rebuffer(struct quic *quic, uint8_t *buffer, size_t capacity);
