/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inspect/packet.h"

#include <netinet/in.h>

#include "base/reader.h"

/*
 * Whatever makes the address in the header another one than where the packet ends (source routes,
 * routing headers with segments left) is PACKET_BAD_HEADER: the gate judges the address it reads.
 */

#define IPV4_HEADER_MIN 20u
#define IPV6_HEADER     40u
#define TCP_HEADER_MIN  20u
#define UDP_HEADER      8u

/* Real packets have one or two; each costs a round of the walk. */
#define IPV6_EXTENSIONS_MAX 8

#define IPV4_OPTION_END  0u
#define IPV4_OPTION_NOP  1u
#define IPV4_OPTION_LSRR 131u /* RFC 791 section 3.1 */
#define IPV4_OPTION_SSRR 137u

#define IPV6_HOP_BY_HOP     0u
#define IPV6_ROUTING        43u
#define IPV6_FRAGMENT       44u
#define IPV6_AUTHENTICATION 51u /* RFC 4302 section 2 */
#define IPV6_DESTINATION    60u
#define IPV6_MOBILITY       135u
#define IPV6_HIP            139u
#define IPV6_SHIM6          140u

static enum packet_error read_ipv4_options(struct reader options)
{
	while (reader_left(&options) > 0) {
		uint8_t type = reader_u8(&options);
		if (type == IPV4_OPTION_END)
			return PACKET_OK;
		if (type == IPV4_OPTION_NOP)
			continue;
		uint8_t length = reader_u8(&options);
		if (options.failed || length < 2)
			return PACKET_BAD_HEADER;
		reader_bytes(&options, length - 2u);
		if (options.failed)
			return PACKET_BAD_HEADER;
		if (type == IPV4_OPTION_LSRR || type == IPV4_OPTION_SSRR)
			return PACKET_BAD_HEADER;
	}
	return PACKET_OK;
}

/* Leaves READER at the transport header, ended where the packet ends. CUT: it may end before. */
static enum packet_error read_ipv4(struct reader *reader, bool cut, struct packet *packet)
{
	const uint8_t *start = reader->at;
	size_t size = reader_left(reader);
	size_t header = (size_t)(reader_u8(reader) & 0x0f) * 4;

	reader_u8(reader); /* type of service */
	size_t total = reader_u16(reader);
	reader_u16(reader); /* identification */
	uint16_t fragment = reader_u16(reader);
	reader_u8(reader); /* time to live */
	uint8_t protocol = reader_u8(reader);
	reader_u16(reader); /* checksum: the kernel's business */
	const uint8_t *source = reader_bytes(reader, 4);
	const uint8_t *destination = reader_bytes(reader, 4);
	if (reader->failed)
		return PACKET_TRUNCATED;

	packet->source = address_from_bytes(source, 4);
	packet->destination = address_from_bytes(destination, 4);
	packet->protocol = protocol;
	if (header < IPV4_HEADER_MIN || total < header)
		return PACKET_BAD_HEADER;
	if (total > size && !cut)
		return PACKET_TRUNCATED;
	reader->end = start + (total < size ? total : size);
	enum packet_error error = read_ipv4_options(reader_sub(reader, header - IPV4_HEADER_MIN));
	if (error != PACKET_OK)
		return error;
	if ((fragment & 0x1fff) != 0)
		return PACKET_FRAGMENT;
	packet->more_fragments = (fragment & 0x2000) != 0;
	return PACKET_OK;
}

/* An extension header with the usual length octet, in units of UNIT octets beyond BASE. */
static enum packet_error skip_extension(struct reader *reader, uint8_t *next, size_t base,
					size_t unit)
{
	uint8_t following = reader_u8(reader);
	size_t length = base + reader_u8(reader) * unit;

	reader_bytes(reader, length - 2);
	if (reader->failed)
		return PACKET_TRUNCATED;
	*next = following;
	return PACKET_OK;
}

static enum packet_error read_routing(struct reader *reader, uint8_t *next)
{
	struct reader look = *reader;

	reader_bytes(&look, 3); /* next header, length, type */
	uint8_t segments_left = reader_u8(&look);
	if (look.failed)
		return PACKET_TRUNCATED;
	if (segments_left != 0)
		return PACKET_BAD_HEADER;
	return skip_extension(reader, next, 8, 8);
}

static enum packet_error read_fragment(struct reader *reader, uint8_t *next, bool *more)
{
	uint8_t following = reader_u8(reader);

	reader_u8(reader); /* reserved */
	uint16_t offset = reader_u16(reader);
	reader_u32(reader); /* identification */
	if (reader->failed)
		return PACKET_TRUNCATED;
	*next = following;
	if ((offset & 0xfff8) != 0)
		return PACKET_FRAGMENT;
	*more = (offset & 1) != 0;
	return PACKET_OK;
}

/* Walks the extension headers (RFC 8200 section 4.1); packet->protocol is the first of them. */
static enum packet_error read_extensions(struct reader *reader, struct packet *packet)
{
	uint8_t *next = &packet->protocol;

	for (int i = 0; i <= IPV6_EXTENSIONS_MAX; i++) {
		enum packet_error error;
		switch (*next) {
		case IPV6_HOP_BY_HOP:
			if (i > 0)
				return PACKET_BAD_HEADER;
			error = skip_extension(reader, next, 8, 8);
			break;
		case IPV6_ROUTING:
			error = read_routing(reader, next);
			break;
		case IPV6_FRAGMENT:
			if (packet->more_fragments)
				return PACKET_BAD_HEADER;
			error = read_fragment(reader, next, &packet->more_fragments);
			break;
		case IPV6_AUTHENTICATION:
			error = skip_extension(reader, next, 8, 4);
			break;
		case IPV6_DESTINATION:
		case IPV6_MOBILITY:
		case IPV6_HIP:
		case IPV6_SHIM6:
			error = skip_extension(reader, next, 8, 8);
			break;
		default:
			return PACKET_OK;
		}
		/* The rest of the chain may stand in another fragment. */
		if (error == PACKET_TRUNCATED && packet->more_fragments)
			return PACKET_FRAGMENT;
		if (error != PACKET_OK)
			return error;
	}
	return PACKET_BAD_HEADER;
}

static enum packet_error read_ipv6(struct reader *reader, bool cut, struct packet *packet)
{
	reader_u32(reader); /* version, traffic class, flow label */
	size_t length = reader_u16(reader);
	uint8_t next = reader_u8(reader);
	reader_u8(reader); /* hop limit */
	const uint8_t *source = reader_bytes(reader, 16);
	const uint8_t *destination = reader_bytes(reader, 16);
	if (reader->failed)
		return PACKET_TRUNCATED;

	packet->source = address_from_bytes(source, 16);
	packet->destination = address_from_bytes(destination, 16);
	packet->protocol = next;
	if (length > reader_left(reader) && !cut)
		return PACKET_TRUNCATED;
	/* 0: a jumbogram or BIG TCP, as long as what we got */
	if (length > 0 && length <= reader_left(reader))
		reader->end = reader->at + length;
	return read_extensions(reader, packet);
}

static enum packet_error read_tcp(struct reader *reader, struct packet *packet)
{
	packet->source_port = reader_u16(reader);
	packet->destination_port = reader_u16(reader);
	packet->sequence = reader_u32(reader);
	packet->acknowledgment = reader_u32(reader);
	size_t header = (size_t)(reader_u8(reader) >> 4) * 4;
	packet->flags = reader_u8(reader);
	packet->window = reader_u16(reader);
	reader_u16(reader); /* checksum */
	packet->urgent = reader_u16(reader);
	if (reader->failed)
		return PACKET_TRUNCATED;
	if (header < TCP_HEADER_MIN)
		return PACKET_BAD_HEADER;
	reader_bytes(reader, header - TCP_HEADER_MIN);
	return reader->failed ? PACKET_TRUNCATED : PACKET_OK;
}

static enum packet_error read_udp(struct reader *reader, bool cut, struct packet *packet)
{
	packet->source_port = reader_u16(reader);
	packet->destination_port = reader_u16(reader);
	size_t length = reader_u16(reader);
	reader_u16(reader); /* checksum */
	if (reader->failed)
		return PACKET_TRUNCATED;
	if (length == 0) /* a jumbogram: RFC 2675 section 4 */
		return PACKET_OK;
	if (length < UDP_HEADER)
		return PACKET_BAD_HEADER;
	length -= UDP_HEADER;
	if (length > reader_left(reader))
		return packet->more_fragments || cut ? PACKET_OK : PACKET_TRUNCATED;
	reader->end = reader->at + length;
	return PACKET_OK;
}

static enum packet_error read_transport(struct reader *reader, bool cut, struct packet *packet)
{
	bool ipv6 = packet->source.family == ADDRESS_IPV6;

	switch (packet->protocol) {
	case IPPROTO_TCP:
		return read_tcp(reader, packet);
	case IPPROTO_UDP:
		return read_udp(reader, cut, packet);
	case IPPROTO_SCTP:
	case IPPROTO_DCCP:
	case IPPROTO_UDPLITE:
		packet->source_port = reader_u16(reader);
		packet->destination_port = reader_u16(reader);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		if (ipv6 != (packet->protocol == IPPROTO_ICMPV6))
			break;
		packet->icmp_type = reader_u8(reader);
		packet->icmp_code = reader_u8(reader);
		reader_u16(reader); /* checksum */
		break;
	default:
		break;
	}
	return reader->failed ? PACKET_TRUNCATED : PACKET_OK;
}

static enum packet_error read_packet(const uint8_t *bytes, size_t size, bool cut,
				     struct packet *out)
{
	struct packet packet = {.protocol = 0};
	struct reader reader = reader_init(bytes, size);
	enum packet_error error;

	if (size == 0)
		return PACKET_TRUNCATED;
	switch (bytes[0] >> 4) {
	case 4:
		error = read_ipv4(&reader, cut, &packet);
		break;
	case 6:
		error = read_ipv6(&reader, cut, &packet);
		break;
	default:
		return PACKET_BAD_HEADER;
	}
	if (error == PACKET_OK) {
		error = read_transport(&reader, cut, &packet);
		if (error == PACKET_TRUNCATED && packet.more_fragments)
			error = PACKET_FRAGMENT;
	}
	if (error != PACKET_OK) {
		if (packet.source.family != ADDRESS_NONE) {
			out->source = packet.source;
			out->destination = packet.destination;
			out->protocol = packet.protocol;
		}
		return error;
	}
	packet.payload = reader.at;
	packet.payload_length = reader_left(&reader);
	*out = packet;
	return PACKET_OK;
}

enum packet_error packet_read(const uint8_t *bytes, size_t size, struct packet *out)
{
	return read_packet(bytes, size, false, out);
}

enum packet_error packet_read_head(const uint8_t *bytes, size_t size, struct packet *out)
{
	return read_packet(bytes, size, true, out);
}
