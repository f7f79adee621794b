/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inspect/quic.h"

#include <assert.h>
#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "base/reader.h"
#include "inspect/buffer.h"
#include "inspect/hello.h"

/*
 * Theory
 *
 * What a server reads must be what was judged, and we see the client alone. So nothing of a flow is
 * let go before its first ClientHello is judged; up to there the server has said nothing, and a client
 * has no reason for a second connection ID, another version or a packet that does not open: all that
 * is malformed. Afterwards one connection at a time is followed:
 *
 *   connection ID as at the beginning   the same connection: repetitions of the hello, acknowledgments
 *   another one                         the keys of the beginning open it: the same connection, with
 *                                       the ID the server has chosen, perhaps in another version
 *                                       (RFC 9368); or else the keys of its own ID do: another
 *                                       connection (after a Retry, RFC 9001 section 5.2), whose hello
 *                                       is judged like the first one's
 *
 * AES-GCM does not commit to a key: a packet can be made that two keys open, to two texts. Both are
 * tried, and a packet that both open is malformed. One that none opens is dropped: it may belong to
 * a connection that was followed before.
 *
 * CRYPTO octets lie in the buffer at their offset. A map behind them, one bit an octet, says which of
 * them are there; each octet is compared with what is there already, and two versions of one are
 * malformed. This holds for judged octets as well, as long as the buffer is lent: a client could see
 * to it that a datagram is lost behind us and repeat its octets in another form.
 *
 *      0        judged            highest
 *      |==========|===..=====......|           "=" are there; judged hellos, then one in progress
 *
 * A datagram may carry several packets. Only Initial packets are looked into; of others nobody
 * without the peers' keys can read a name, and no server begins a connection with them.
 */

/* RFC 9000 section 17.2: a client's first connection ID is not shorter. */
#define FIRST_ID_MIN 8u

/* RFC 9000 section 19. */
#define FRAME_PADDING          0x00u
#define FRAME_PING             0x01u
#define FRAME_ACK              0x02u
#define FRAME_ACK_ECN          0x03u
#define FRAME_CRYPTO           0x06u
#define FRAME_CONNECTION_CLOSE 0x1cu

#define LONG_HEADER 0x80u
#define FIXED_BIT   0x40u

#define HANDSHAKE_HEADER       4u
#define HANDSHAKE_CLIENT_HELLO 1u

enum packet_type { PACKET_INITIAL, PACKET_ZERO_RTT, PACKET_HANDSHAKE, PACKET_RETRY };

struct quic {
	struct initial *initial;
	struct head_buffer buffer; /* `used` is not */
	uint32_t version;          /* of the connection that is followed; 0 before the first */
	struct initial_id origin;  /* whose keys it has */
	uint64_t expected;         /* packet number */
	uint32_t judged;           /* CRYPTO octets before it are judged */
	uint32_t highest;          /* end of the last octet that is there */
	uint32_t forgotten;        /* octets before it are not there any more */
	uint32_t hello_end;        /* of the one that is the event */
	uint32_t needed;           /* room for octets */
	uint8_t hellos;            /* judged ones of this connection */
	bool opaque;               /* nothing is read any more */
	bool dropped;              /* this datagram is for nobody */
	const char *problem;       /* this datagram is malformed */
	struct hello hello;
	struct host first_host;
	struct stream_event event;
};

static_assert(sizeof(struct quic) <= STREAM_SIZE, "lies where a stream lies");
static_assert(alignof(struct quic) <= 16, "and is aligned like one");

struct quic *quic_init(void *storage, struct initial *initial, uint8_t *buffer, size_t capacity)
{
	struct quic *quic = storage;

	*quic = (struct quic){.initial = initial};
	quic_rebuffer(quic, buffer, capacity);
	return quic;
}

/* CRYPTO octets that fit into CAPACITY together with their map. */
static size_t room_of(size_t capacity)
{
	size_t room = capacity / 9 * 8;

	return room < QUIC_CRYPTO_MAX ? room : QUIC_CRYPTO_MAX;
}

static uint8_t *map_of(uint8_t *buffer, size_t capacity)
{
	return buffer + room_of(capacity);
}

size_t quic_buffer_needed(const struct quic *quic)
{
	return QUIC_BUFFER_SIZE((size_t)quic->needed);
}

void quic_rebuffer(struct quic *quic, uint8_t *buffer, size_t capacity)
{
	struct head_buffer *old = &quic->buffer;
	size_t room = room_of(capacity);

	assert(buffer == NULL ? quic->highest == quic->judged : room >= quic->highest);
	if (buffer == NULL)
		quic->forgotten = quic->judged;
	else
		memset(buffer + room, 0, room / 8);
	if (buffer != NULL && old->bytes != NULL) {
		memcpy(buffer, old->bytes, quic->highest);
		memcpy(buffer + room, map_of(old->bytes, old->capacity), (quic->highest + 7) / 8);
	}
	*old = (struct head_buffer){.bytes = buffer, .capacity = capacity};
}

bool quic_is_judged(const struct quic *quic)
{
	return quic->opaque || (quic->judged > 0 && quic->highest == quic->judged);
}

bool quic_has_begun(const struct quic *quic)
{
	return quic->version != 0;
}

struct stream_event *quic_event(struct quic *quic)
{
	return &quic->event;
}

static enum quic_step emit(struct quic *quic, enum request_kind kind, const char *problem)
{
	quic->event = (struct stream_event){
		.request = {.kind = kind, .malformed = problem != NULL, .scheme = ""},
		.problem = problem,
		.second_hello = quic->hellos > 0,
	};
	return QUIC_EVENT;
}

void quic_resume(struct quic *quic)
{
	const struct request *request = &quic->event.request;

	if (request->malformed || request->kind != REQUEST_TLS) {
		quic->opaque = true;
		return;
	}
	quic->judged = quic->hello_end;
	quic->first_host = request->host;
	quic->hellos++;
}

static bool malformed(struct quic *quic, const char *problem)
{
	quic->problem = problem;
	return false;
}

static bool drop(struct quic *quic)
{
	quic->dropped = true;
	return false;
}

/* RFC 9000 section 16. */
static uint64_t read_varint(struct reader *reader)
{
	uint8_t first = reader_u8(reader);
	uint64_t value = first & 0x3f;

	for (unsigned more = (1u << (first >> 6)) - 1; more > 0; more--)
		value = value << 8 | reader_u8(reader);
	return value;
}

/* A reader over the next octets, as many as a variable-length integer says. */
static struct reader read_counted(struct reader *reader)
{
	uint64_t length = read_varint(reader);

	return reader_sub(reader, length <= SIZE_MAX ? (size_t)length : SIZE_MAX);
}

/* Takes octets that are not there yet and compares those that are. */
static bool take_octets(struct quic *quic, uint32_t offset, const uint8_t *bytes, uint32_t length)
{
	uint8_t *map = map_of(quic->buffer.bytes, quic->buffer.capacity);

	for (uint32_t i = 0; i < length; i++) {
		uint32_t at = offset + i;
		uint8_t bit = (uint8_t)(1u << at % 8);
		if ((map[at / 8] & bit) == 0)
			quic->buffer.bytes[at] = bytes[i];
		else if (quic->buffer.bytes[at] != bytes[i])
			return malformed(quic, "a CRYPTO frame differs from an earlier one");
		map[at / 8] |= bit;
	}
	if (offset + length > quic->highest)
		quic->highest = offset + length;
	return true;
}

static bool read_crypto(struct quic *quic, struct reader *frames)
{
	uint64_t offset = read_varint(frames);
	struct reader data = read_counted(frames);
	uint64_t end = offset + reader_left(&data);

	if (data.failed || frames->failed)
		return malformed(quic, "broken CRYPTO frame");
	if (end > QUIC_CRYPTO_MAX)
		return malformed(quic, "ClientHello over 16 KiB");
	if (reader_left(&data) == 0)
		return true;
	if (offset < quic->forgotten)
		return drop(quic);
	if (end > room_of(quic->buffer.capacity)) {
		quic->needed = (uint32_t)end;
		return false;
	}
	return take_octets(quic, (uint32_t)offset, data.at, (uint32_t)reader_left(&data));
}

/* RFC 9000 section 19.3. */
static void skip_ack(struct reader *frames, bool ecn)
{
	read_varint(frames);
	read_varint(frames);
	uint64_t ranges = read_varint(frames);
	read_varint(frames);
	for (uint64_t i = 0; i < ranges && !frames->failed; i++) {
		read_varint(frames);
		read_varint(frames);
	}
	for (unsigned i = 0; ecn && i < 3; i++)
		read_varint(frames);
}

/* What RFC 9000 section 17.2.2 allows in an Initial packet. */
static bool read_frames(struct quic *quic, struct reader frames)
{
	if (reader_left(&frames) == 0)
		return malformed(quic, "QUIC packet without a frame");
	while (reader_left(&frames) > 0 && !frames.failed) {
		uint8_t type = reader_u8(&frames);
		switch (type) {
		case FRAME_PADDING:
		case FRAME_PING:
			break;
		case FRAME_ACK:
		case FRAME_ACK_ECN:
			skip_ack(&frames, type == FRAME_ACK_ECN);
			break;
		case FRAME_CRYPTO:
			if (!read_crypto(quic, &frames))
				return false;
			break;
		case FRAME_CONNECTION_CLOSE:
			read_varint(&frames);
			read_varint(&frames);
			read_counted(&frames);
			break;
		default:
			return malformed(quic, "frame that no Initial packet may carry");
		}
	}
	return !frames.failed || malformed(quic, "broken frame in an Initial packet");
}

static bool is_same_id(const struct initial_id *a, const struct initial_id *b)
{
	return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* A packet with the parts of its header that matter here. */
struct header {
	struct initial_packet packet;
	struct initial_id to; /* destination connection ID */
	enum packet_type type;
};

/* The keys fit, whatever is inside. */
static bool opens(struct quic *quic, const struct header *header, const struct initial_id *id,
		  uint64_t expected)
{
	struct initial_plain plain;
	int error = initial_open(quic->initial, &header->packet, id, expected, &plain);

	return error == 0 || error == -EPROTO;
}

static bool begin_connection(struct quic *quic, const struct header *header, size_t datagram)
{
	if (datagram < QUIC_DATAGRAM_MIN)
		return malformed(quic, "QUIC Initial in a datagram under 1200 octets");
	if (quic->version != 0 && !quic_is_judged(quic))
		return malformed(quic, "another connection inside the ClientHello");
	quic->version = header->packet.version;
	quic->origin = header->to;
	quic->expected = 0;
	quic->judged = quic->highest = quic->forgotten = 0;
	quic->hellos = 0;
	if (quic->buffer.bytes != NULL)
		quic_rebuffer(quic, quic->buffer.bytes, quic->buffer.capacity);
	return true;
}

/* Whose packet it is. True: that of the connection that is followed now. */
static bool find_connection(struct quic *quic, const struct header *header, size_t datagram)
{
	bool own_opens, origin_opens;

	if (quic->version == 0) {
		if (header->to.length < FIRST_ID_MIN)
			return malformed(quic, "first connection ID under 8 octets");
		if (!opens(quic, header, &header->to, 0))
			return malformed(quic, "Initial packet that its own keys do not open");
		return begin_connection(quic, header, datagram);
	}
	if (is_same_id(&header->to, &quic->origin) && header->packet.version == quic->version)
		return true;
	if (quic->judged == 0)
		return malformed(quic, "another connection inside the ClientHello");
	own_opens = opens(quic, header, &header->to, 0);
	origin_opens = !is_same_id(&header->to, &quic->origin) &&
		       opens(quic, header, &quic->origin, quic->expected);
	if (own_opens && origin_opens)
		return malformed(quic, "Initial packet that two keys open");
	if (!own_opens && !origin_opens)
		return drop(quic);
	return origin_opens || begin_connection(quic, header, datagram);
}

static bool read_initial(struct quic *quic, const struct header *header, size_t datagram)
{
	struct initial_plain plain;
	int error;

	if (!find_connection(quic, header, datagram))
		return false;
	error = initial_open(quic->initial, &header->packet, &quic->origin, quic->expected, &plain);
	if (error == -EPROTO)
		return malformed(quic, "reserved bits of a QUIC packet are set");
	if (error < 0 && quic->judged > 0)
		return drop(quic);
	if (error < 0)
		return malformed(quic, "Initial packet that the keys do not open");
	if (plain.number >= quic->expected)
		quic->expected = (uint64_t)plain.number + 1;
	return read_frames(quic, reader_init(plain.frames, plain.length));
}

/* RFC 9369 section 3.2 moves the types of version 2 by one. */
static enum packet_type type_of(uint32_t version, uint8_t first)
{
	unsigned bits = first >> 4 & 3u;

	return (enum packet_type)(version == INITIAL_VERSION_2 ? (bits + 3) & 3u : bits);
}

static void read_id(struct reader *reader, struct initial_id *out)
{
	size_t length = reader_u8(reader);
	const uint8_t *bytes = reader_bytes(reader, length);

	reader->failed = reader->failed || length > INITIAL_ID_MAX;
	if (reader->failed)
		return;
	out->length = (uint8_t)length;
	memcpy(out->bytes, bytes, length);
}

/* One packet with a long header (RFC 9000 section 17.2); READER is behind it then. */
static bool read_header(struct quic *quic, struct reader *reader, struct header *out)
{
	const uint8_t *start = reader->at;
	struct initial_id from;
	uint8_t first = reader_u8(reader);

	out->packet.bytes = start;
	out->packet.version = reader_u32(reader);
	if (!reader->failed && out->packet.version != INITIAL_VERSION_1 &&
	    out->packet.version != INITIAL_VERSION_2)
		return malformed(quic, "unknown version of QUIC");
	out->type = type_of(out->packet.version, first);
	read_id(reader, &out->to);
	read_id(reader, &from);
	if (out->type == PACKET_INITIAL)
		read_counted(reader); /* the token */
	uint64_t length = read_varint(reader);
	out->packet.number_at = (size_t)(reader->at - start);
	out->packet.length = out->packet.number_at + (size_t)length;
	if (length > reader_left(reader))
		reader->failed = true;
	reader_bytes(reader, (size_t)length);
	/* It is fixed until both have said that they do not care: RFC 9287 section 3.1. */
	if (quic->judged == 0 && (first & FIXED_BIT) == 0)
		reader->failed = true;
	if (reader->failed || out->type == PACKET_RETRY)
		return malformed(quic, "broken header of a QUIC packet");
	return true;
}

/* All packets of a datagram. False: it was not read to its end. */
static bool read_packets(struct quic *quic, const uint8_t *bytes, size_t length)
{
	struct reader reader = reader_init(bytes, length);
	struct header first = {.type = PACKET_INITIAL}, header;
	bool begun = false;

	/* What has a short header takes the rest of the datagram. */
	while (reader_left(&reader) > 0 && (*reader.at & LONG_HEADER) != 0) {
		header = (struct header){.type = PACKET_INITIAL};
		if (!read_header(quic, &reader, &header))
			return false;
		if (!begun)
			first = header;
		begun = true;
		/* RFC 9000 section 12.2: a receiver ignores it, or does not. */
		if (!is_same_id(&header.to, &first.to) ||
		    header.packet.version != first.packet.version)
			return malformed(quic, "packets of two connections in one datagram");
		if (header.type == PACKET_INITIAL && !read_initial(quic, &header, length))
			return false;
	}
	return true;
}

/* All octets up to END are there. */
static bool has_all(const struct quic *quic, uint32_t end)
{
	const uint8_t *map = map_of(quic->buffer.bytes, quic->buffer.capacity);

	for (uint32_t at = quic->judged; at < end; at++)
		if ((map[at / 8] & 1u << at % 8) == 0)
			return false;
	return true;
}

/* What is there of the hello in progress. */
static enum quic_step read_hello(struct quic *quic)
{
	const uint8_t *message = quic->buffer.bytes + quic->judged;
	struct reader reader = reader_init(message, quic->highest - quic->judged);
	const char *problem;

	if (quic->hellos > 1)
		return emit(quic, REQUEST_TLS, "a third ClientHello");
	if (!has_all(quic, quic->judged + 1))
		return QUIC_HOLD;
	if (reader_u8(&reader) != HANDSHAKE_CLIENT_HELLO)
		return emit(quic, REQUEST_TLS, "TLS that does not begin with a ClientHello");
	if (quic->highest < quic->judged + HANDSHAKE_HEADER ||
	    !has_all(quic, quic->judged + HANDSHAKE_HEADER))
		return QUIC_HOLD;
	uint32_t length = HANDSHAKE_HEADER + reader_u24(&reader);
	if (length > QUIC_CRYPTO_MAX - quic->judged)
		return emit(quic, REQUEST_TLS, "ClientHello over 16 KiB");
	if (quic->highest > quic->judged + length)
		return emit(quic, REQUEST_TLS, "more behind the ClientHello");
	if (quic->highest < quic->judged + length || !has_all(quic, quic->highest))
		return QUIC_HOLD;
	problem = hello_parse(message, length, &quic->hello);
	if (problem == NULL && quic->hellos > 0 &&
	    !hello_same_host(&quic->hello.host, &quic->first_host))
		problem = "the second ClientHello names another host";
	emit(quic, REQUEST_TLS, problem);
	if (problem == NULL)
		quic->event.request.host = quic->hello.host;
	quic->hello_end = quic->highest;
	return QUIC_EVENT;
}

enum quic_step quic_feed(struct quic *quic, const uint8_t *bytes, size_t length)
{
	if (quic->opaque)
		return QUIC_PASS;
	if (quic->version == 0 && (length == 0 || (bytes[0] & LONG_HEADER) == 0))
		return emit(quic, REQUEST_OTHER, NULL);
	quic->problem = NULL;
	quic->dropped = false;
	quic->needed = 0;
	read_packets(quic, bytes, length);
	if (quic->problem != NULL)
		return emit(quic, REQUEST_TLS, quic->problem);
	if (quic->needed > 0)
		return QUIC_ROOM;
	if (quic->dropped || quic->version == 0)
		return QUIC_DROP;
	if (quic_is_judged(quic))
		return QUIC_PASS;
	return quic->highest > quic->judged ? read_hello(quic) : QUIC_HOLD;
}
