/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One IP packet taken apart, from the network header on, by the bounded reader.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

enum packet_error {
	PACKET_OK = 0,
	PACKET_TRUNCATED,  /* a header or the length it announces runs past the end */
	/* Version, header length, data offset or option out of range; or a source route or a routing
	 * header with segments left, which make the destination another than the one in the header. */
	PACKET_BAD_HEADER,
	PACKET_FRAGMENT	   /* a non-first fragment, or a first one without its whole transport header */
};

struct packet {
	struct address source, destination;
	uint8_t protocol; /* IPPROTO_*, after IPv6 extension headers (RFC 8200 section 4.1) */
	bool more_fragments;
	uint16_t source_port, destination_port; /* host order; 0 without */
	/* TCP alone */
	uint32_t sequence, acknowledgment;
	uint16_t window, urgent;
	uint8_t flags; /* low eight: FIN SYN RST PSH ACK URG ECE CWR */
	/* ICMP and ICMPv6 alone */
	uint8_t icmp_type, icmp_code;
	/* transport payload, in the caller's bytes */
	const uint8_t *payload;
	size_t payload_length;
};

#define PACKET_FIN 0x01u
#define PACKET_SYN 0x02u
#define PACKET_RST 0x04u
#define PACKET_ACK 0x10u
#define PACKET_URG 0x20u

/*
 * BYTES is a whole packet as NFQUEUE delivers it, up to 64 KiB (a GSO super-packet has an IP total
 * length of its own; an IPv6 jumbo length of 0 with payload is taken from SIZE). On an error *OUT is
 * untouched but for addresses and protocol, which are filled as far as they could be read.
 */
enum packet_error packet_read(const uint8_t *bytes, size_t size, struct packet *out);

/*
 * The same for the beginning of a packet, as NFLOG delivers it: only the headers must be there. The
 * payload is what there is of it, and nothing that may be judged.
 */
enum packet_error packet_read_head(const uint8_t *bytes, size_t size, struct packet *out);
