/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The client's segments of one TCP flow, put in order for stream.h and checked against each other.
 *
 * The caller holds every packet whose bytes are not yet judged, and asks here what each packet is.
 * Bytes that are not judged yet are kept in a buffer that the caller lends, so that a second packet
 * for the same sequence range is compared byte by byte: two versions of one byte are a refusal,
 * since the server might read the other one. Judged bytes stay in the buffer as history, for the
 * same comparison, as long as there is room and the buffer is lent; older ones are known by their
 * sequence numbers alone.
 *
 * One packet, told call by call (nfq/ does this):
 *
 *   for (;;) {
 *     reassembly_add(&flow->assembly, &packet, &segment);
 *     SEGMENT_ROOM: lend a buffer of segment.needed bytes with reassembly_rebuffer(), ask again
 *   }
 *   SEGMENT_NEW: stream_feed(segment.bytes, segment.length), judge its events; then
 *     - nothing is left half read (STREAM_BODY, _BETWEEN, _OPAQUE): reassembly_release(), pass this
 * packet and all held ones whose reassembly_is_released() is true, in order of arrival, and take
 * the buffer back when reassembly_is_idle()
 *     - a head is incomplete: hold this packet too
 *
 * Pure: no I/O, no clock, no allocation. Sequence numbers are compared modulo 2^32 (RFC 9293
 * section 3.4); nothing here spans more than REASSEMBLY_BUFFER_MAX bytes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inspect/packet.h"

/* A whole HTTP head (64 KiB) that is not judged yet and one GSO super-packet (64 KiB) behind it. */
#define REASSEMBLY_BUFFER_MAX 131072u

/* Islands of bytes ahead of the next expected one. A sender's first window is ten segments, so
 * every second one of twice as many may be missing; what would make one more is dropped and comes
 * again. */
#define REASSEMBLY_ISLANDS_MAX 16

enum segment_kind {
	SEGMENT_EMPTY,     /* nothing to read, or a FIN that was seen: let it pass */
	SEGMENT_NEW,       /* `bytes` come next in the stream, or the FIN does */
	SEGMENT_DUPLICATE, /* all kept and equal: what happens to the original happens to it */
	SEGMENT_PAST,      /* all judged, passed and no longer kept: a retransmission */
	SEGMENT_FUTURE,    /* kept, but bytes before it are missing: hold the packet */
	SEGMENT_ROOM,      /* nothing was done: lend `needed` bytes at least, ask again */
	SEGMENT_OUTSIDE,   /* nothing was done: too far off, one island too many; drop it */
	/* Differs from what was seen, or has data past the FIN, or is urgent data, which a server
	 * takes out of the stream (RFC 6093): refuse. Every later packet is the same. */
	SEGMENT_CONTRADICTORY
};

struct segment {
	enum segment_kind kind;
	const uint8_t *bytes; /* SEGMENT_NEW: in the lent buffer, good until the next call */
	size_t length;        /* 0 for a bare FIN */
	size_t needed;        /* SEGMENT_ROOM: at most REASSEMBLY_BUFFER_MAX */
	uint32_t end;         /* sequence number after the payload; reassembly_is_released() */
	bool finished;        /* all bytes up to the client's FIN are in order now */
	const char *problem;  /* _CONTRADICTORY, _OUTSIDE: static text for people, else NULL */
};

struct reassembly_island {
	uint32_t from, to; /* sequence numbers, [from, to) */
};

/* Private; here in full so that the gate can keep a static table of them. */
struct reassembly {
	uint8_t *buffer;
	uint32_t capacity;
	uint32_t first;    /* sequence number of the first payload byte of the flow */
	uint32_t base;     /* sequence number of buffer[0] */
	uint32_t released; /* bytes before it are judged */
	uint32_t next;     /* bytes before it are in order and were given to the caller */
	uint32_t fin;      /* sequence number of the FIN, valid with has_fin */
	uint8_t island_count;
	bool has_fin, fin_taken, contradictory;
	struct reassembly_island islands[REASSEMBLY_ISLANDS_MAX]; /* ascending, apart, after next */
};

/* SEQUENCE is that of the flow's SYN. No buffer is lent yet: the first data gives SEGMENT_ROOM. */
void reassembly_init(struct reassembly *reassembly, uint32_t sequence);

/*
 * Sorts one TCP packet of the client in; PACKET's flags, sequence and payload are read. A SYN with
 * data (TCP Fast Open) is read like a segment. A retransmitted SYN without data is SEGMENT_EMPTY, a
 * SYN with another sequence number SEGMENT_OUTSIDE: another flow, the caller's to decide. RST is
 * the caller's.
 */
void reassembly_add(struct reassembly *reassembly, const struct packet *packet,
		    struct segment *out);

/*
 * What was given out from SEQUENCE on, for a caller that has put the rest of a segment off; SEQUENCE
 * is not before what is released. *FINISHED as in struct segment. Good until the next call.
 */
const uint8_t *reassembly_given(const struct reassembly *reassembly, uint32_t sequence,
				size_t *length, bool *finished);

/* Everything given out so far is judged and may pass. */
void reassembly_release(struct reassembly *reassembly);

/* END is the segment.end of a held packet: all its bytes are judged. */
bool reassembly_is_released(const struct reassembly *reassembly, uint32_t end);

/*
 * Lends another buffer, larger or smaller; what is kept moves over, history as far as it fits. The
 * old one is the caller's again. NULL and 0 take it away. -EBUSY when bytes that must be kept do
 * not fit.
 */
int reassembly_rebuffer(struct reassembly *reassembly, uint8_t *buffer, size_t capacity);

/* Nothing must be kept: the buffer holds history at most and may be taken away. */
bool reassembly_is_idle(const struct reassembly *reassembly);
