/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <openssl/crypto.h>

#include "inspect/quic.h"
#include "seal.h"

static struct initial *initial;

/* A flow, and what became of each of its datagrams, one word each or "tls NAME". */
struct play {
	alignas(16) uint8_t storage[STREAM_SIZE];
	struct quic *quic;
	uint8_t *buffer;
	size_t capacity;
	char text[4096];
};

static void begin(struct play *play)
{
	*play = (struct play){.buffer = NULL};
	play->quic = quic_init(play->storage, initial, NULL, 0);
}

static void end(struct play *play)
{
	free(play->buffer);
}

static void say(struct play *play, const char *word)
{
	size_t length = strlen(play->text);

	snprintf(play->text + length, sizeof(play->text) - length, "%s%s", length > 0 ? "; " : "",
		 word);
}

/* As large as was asked for and not an octet larger. */
static void give_room(struct play *play)
{
	size_t capacity = quic_buffer_needed(play->quic);
	uint8_t *larger = malloc(capacity);

	assert_true(capacity > play->capacity);
	quic_rebuffer(play->quic, larger, capacity);
	free(play->buffer);
	play->buffer = larger;
	play->capacity = capacity;
}

static void say_event(struct play *play)
{
	const struct stream_event *event = quic_event(play->quic);
	const struct request *request = &event->request;
	char text[400];

	snprintf(text, sizeof(text), "%s%s %s", request->kind == REQUEST_TLS ? "tls" : "other",
		 event->second_hello && !request->malformed ? " second" : "",
		 request->malformed                ? event->problem
		 : request->host.kind == HOST_NAME ? request->host.name.text
						   : "-");
	assert_int_equal(request->malformed, event->problem != NULL);
	say(play, text);
	quic_resume(play->quic);
}

static void feed(struct play *play, const uint8_t *bytes, size_t length)
{
	static const char *const words[] = {
		[QUIC_PASS] = "pass", [QUIC_HOLD] = "hold", [QUIC_DROP] = "drop"};
	uint8_t *copy = malloc(length + 1); /* so that a read behind the end is seen */
	enum quic_step step;

	memcpy(copy, bytes, length);
	while ((step = quic_feed(play->quic, copy, length)) == QUIC_ROOM)
		give_room(play);
	free(copy);
	if (step == QUIC_EVENT)
		say_event(play);
	else
		say(play, words[step]);
}

static void feed_frames(struct play *play, const struct seal *seal, const uint8_t *frames,
			size_t length)
{
	static uint8_t datagram[SEAL_SIZE];

	feed(play, datagram, seal_initial(seal, frames, length, datagram));
}

/* Octets [FROM, TO) of MESSAGE, which begins at BASE of the connection's CRYPTO octets. */
static void feed_part(struct play *play, const struct seal *seal, const uint8_t *message,
		      size_t base, size_t from, size_t to)
{
	static uint8_t frames[SEAL_SIZE];
	size_t length = seal_crypto(base + from, message + from, to - from, frames);

	feed_frames(play, seal, frames, length);
}

static void feed_hello(struct play *play, const struct seal *seal, const char *name)
{
	static uint8_t message[2000];

	feed_part(play, seal, message, 0, 0, seal_hello(name, 0, message));
}

static void feed_text(struct play *play, const struct seal *seal, const char *frames, size_t length)
{
	feed_frames(play, seal, (const uint8_t *)frames, length);
}

#define EXPECT(play, expected)                                                                     \
	do {                                                                                       \
		assert_string_equal((play)->text, expected);                                       \
		end(play);                                                                         \
		begin(play);                                                                       \
	} while (0)

/* RFC 9001 appendix A.2, RFC 9369 appendix A.2: what is sent, its beginning and its end. */
static const char vector_frames[] =
	"060040f1010000ed0303ebf8fa56f12939b9584a3896472ec40bb863cfd3e868"
	"04fe3a47f06a2b69484c00000413011302010000c000000010000e00000b6578"
	"616d706c652e636f6dff01000100000a00080006001d00170018001000070005"
	"04616c706e000500050100000000003300260024001d00209370b2c9caa47fba"
	"baf4559fedba753de171fa71f50f1ce15d43e994ec74d748002b000302030400"
	"0d0010000e0403050306030203080408050806002d00020101001c0002400100"
	"3900320408ffffffffffffffff05048000ffff07048000ffff08011001048000"
	"75300901100f088394c8f03e51570806048000ffff";

static const struct vector {
	uint32_t version;
	const char *head, *tail;
} vectors[] = {
	{INITIAL_VERSION_1, "c000000001088394c8f03e5157080000449e7b9aec34d1b1c98dd7689fb8ec11",
	 "7e78bfe706ca4cf5e9c5453e9f7cfd2b8b4c8d169a44e55c88d4a9a7f9474241"
	 "e221af44860018ab0856972e194cd934"},
	{INITIAL_VERSION_2, "d76b3343cf088394c8f03e5157080000449ea0c95e82ffe67b6abcdb4298b485",
	 "6f4c4938ae79324dc402894b44faf8afbab35282ab659d13c93f70412e85cb19"
	 "9a37ddec600545473cfb5a05e08d0b209973b2172b4d21fb69745a262ccde96b"
	 "a18b2faa745b6fe189cf772a9f84cbfc"},
};

static size_t from_hex(const char *text, uint8_t *out)
{
	size_t length = strlen(text) / 2;
	unsigned octet;

	for (size_t i = 0; i < length; i++) {
		assert_int_equal(sscanf(text + 2 * i, "%2x", &octet), 1);
		out[i] = (uint8_t)octet;
	}
	return length;
}

static void assert_hex(const uint8_t *bytes, const char *hex)
{
	uint8_t expected[256];
	size_t length = from_hex(hex, expected);

	assert_memory_equal(bytes, expected, length);
}

static void test_vectors(void **state)
{
	uint8_t frames[256], packet[SEAL_SIZE];
	size_t length = from_hex(vector_frames, frames);
	struct play play;
	(void)state;

	begin(&play);
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const struct vector *vector = &vectors[i];
		struct seal seal = seal_first("\x83\x94\xc8\xf0\x3e\x51\x57\x08");
		seal.version = vector->version;
		seal.number = 2;
		size_t size = seal_initial(&seal, frames, length, packet);
		assert_int_equal(size, 1200);
		assert_hex(packet, vector->head);
		assert_hex(packet + size - strlen(vector->tail) / 2, vector->tail);
		feed(&play, packet, size);
		EXPECT(&play, "tls example.com");
	}
	end(&play);
}

static void test_flow(void **state)
{
	struct seal seal = seal_first("original"), other;
	uint8_t message[4000];
	size_t length = seal_hello("a.example", 1500, message);
	struct play play;
	(void)state;

	/* a hello over two datagrams, in both orders, with a repetition; then acknowledgments */
	for (int swapped = 0; swapped < 2; swapped++) {
		begin(&play);
		feed_part(&play, &seal, message, 0, swapped ? 900 : 0, swapped ? length : 900);
		seal.number++;
		feed_part(&play, &seal, message, 0, swapped ? 900 : 0, swapped ? length : 1000);
		seal.number++;
		feed_part(&play, &seal, message, 0, swapped ? 0 : 800, swapped ? 901 : length);
		other = seal;
		memcpy(other.to.bytes, "chosen-1", 8);
		other.number++;
		other.datagram = 0;
		feed_text(&play, &other, "\x02\x01\x00\x00\x01", 5);
		feed_part(&play, &seal, message, 0, 0, 900);
		feed(&play, (const uint8_t *)"\x41short", 6);
		EXPECT(&play, "hold; hold; tls a.example; pass; pass; pass");
	}
	end(&play);
}

static void test_retry_and_second_hello(void **state)
{
	struct seal first = seal_first("original"), retried, chosen;
	uint8_t message[600], second[600];
	struct play play;
	(void)state;

	begin(&play);
	size_t length = seal_hello("a.example", 0, message);
	size_t second_length = seal_hello("A.example", 30, second);

	/* a Retry names another connection ID: new keys, offsets begin anew */
	feed_hello(&play, &first, "a.example");
	retried = seal_first("retryID1");
	retried.token_length = 70;
	retried.number = 1;
	feed_hello(&play, &retried, "a.example");
	/* what the server has chosen then */
	chosen = retried;
	memcpy(chosen.to.bytes, "chosen-1", 8);
	chosen.number = 2;
	feed_text(&play, &chosen, "\x02\x00\x00\x00\x00", 5);
	/* after a HelloRetryRequest */
	chosen.number = 3;
	feed_part(&play, &chosen, second, length, 0, 40);
	chosen.number = 4;
	feed_part(&play, &chosen, second, length, 40, second_length);
	chosen.number = 5;
	feed_part(&play, &chosen, second, length + second_length, 0, 4);
	EXPECT(&play, "tls a.example; tls a.example; pass; hold; tls second a.example; "
		      "tls a third ClientHello");

	feed_hello(&play, &first, "a.example");
	second_length = seal_hello("b.example", 0, second);
	first.number = 1;
	feed_part(&play, &first, second, length, 0, second_length);
	feed_hello(&play, &first, "a.example");
	EXPECT(&play, "tls a.example; tls the second ClientHello names another host; pass");

	/* the server changes the version (RFC 9368): keys of the first ID, salt of the version */
	first.number = 0;
	feed_hello(&play, &first, "a.example");
	chosen = first;
	memcpy(chosen.to.bytes, "chosen-1", 8);
	chosen.version = INITIAL_VERSION_2;
	feed_text(&play, &chosen, "\x01", 1);
	chosen.number = 1;
	feed_hello(&play, &chosen, "a.example");
	chosen.number = 2;
	feed_hello(&play, &chosen, "c.example");
	EXPECT(&play, "tls a.example; pass; pass; tls a CRYPTO frame differs from an earlier one");
	end(&play);
}

static void test_further_connections(void **state)
{
	struct seal first = seal_first("original"), other = seal_first("further1"), stray;
	uint8_t message[600];
	struct play play;
	(void)state;

	begin(&play);
	/* another connection over the same socket is judged like the first */
	feed_hello(&play, &first, "a.example");
	feed_hello(&play, &other, "b.example");
	first.number = 1; /* followed no more */
	feed_hello(&play, &first, "a.example");
	EXPECT(&play, "tls a.example; tls b.example; tls a.example");

	feed_hello(&play, &first, "a.example");
	stray = seal_first("nobody's");
	memcpy(stray.keys.bytes, "whatever", 8);
	feed_hello(&play, &stray, "c.example");
	other.datagram = 0;
	feed_hello(&play, &other, "b.example");
	EXPECT(&play, "tls a.example; drop; tls QUIC Initial in a datagram under 1200 octets");

	/* not before the first is judged, and not in its second hello */
	size_t length = seal_hello("a.example", 0, message);
	other.datagram = 1200;
	first.number = 0;
	feed_part(&play, &first, message, 0, 0, 20);
	feed_hello(&play, &other, "a.example");
	EXPECT(&play, "hold; tls another connection inside the ClientHello");
	feed_hello(&play, &first, "a.example");
	first.number = 1;
	feed_part(&play, &first, message, length, 0, 20);
	feed_hello(&play, &other, "a.example");
	EXPECT(&play, "tls a.example; hold; tls another connection inside the ClientHello");
	first.number = 0;
	feed_part(&play, &first, message, 0, 0, 20);
	stray = first;
	stray.version = INITIAL_VERSION_2;
	feed_part(&play, &stray, message, 0, 20, length);
	EXPECT(&play, "hold; tls another connection inside the ClientHello");
	end(&play);
}

static void test_contradictions(void **state)
{
	struct seal seal = seal_first("original");
	uint8_t message[600], changed[600];
	size_t length = seal_hello("a.example", 0, message);
	struct play play;
	(void)state;

	begin(&play);
	seal_hello("b.example", 0, changed);
	feed_part(&play, &seal, message, 0, 0, length - 10);
	feed_part(&play, &seal, changed, 0, 0, length);
	EXPECT(&play, "hold; tls a CRYPTO frame differs from an earlier one");

	feed_part(&play, &seal, message, 0, 0, length);
	feed_part(&play, &seal, changed, 0, 20, length);
	EXPECT(&play, "tls a.example; tls a CRYPTO frame differs from an earlier one");

	/* with the buffer taken away, repetitions cannot be compared */
	feed_part(&play, &seal, message, 0, 0, length);
	assert_true(quic_is_judged(play.quic));
	quic_rebuffer(play.quic, NULL, 0);
	feed_part(&play, &seal, changed, 0, 20, length);
	feed_part(&play, &seal, message, 0, 0, length);
	feed_text(&play, &seal, "\x01", 1);
	free(play.buffer);
	play.buffer = NULL;
	play.capacity = 0;
	feed_part(&play, &seal, message, length, 0, length);
	EXPECT(&play, "tls a.example; drop; drop; pass; tls second a.example");
	end(&play);
}

struct row {
	const char *frames;
	size_t length;
	const char *expected;
};

#define ROW(text, expected)                                                                        \
	{                                                                                          \
		text, sizeof(text) - 1, expected                                                   \
	}

static void test_frames(void **state)
{
	static const struct row rows[] = {
		ROW("\x01", "hold"),
		ROW("\x00\x00\x01\x00", "hold"),
		ROW("\x02\x40\x00\x00\x01\x00\x00\x00", "hold"),
		ROW("\x03\x05\x00\x00\x02\x00\x00\x00", "hold"),
		ROW("\x1c\x01\x00\x02no", "hold"),
		ROW("\x06\x00\x00", "hold"),
		ROW("\x06\x00\x01\x01", "hold"),
		ROW("\x06\x01\x01\x01", "hold"),
		ROW("\x06\x01\x03\x00\x00\x05", "hold"),
		ROW("\x06\x00\x01\x02", "tls TLS that does not begin with a ClientHello"),
		ROW("\x06\x00\x04\x01\x00\x40\x00", "tls ClientHello over 16 KiB"),
		ROW("\x06\x00\x05\x01\x00\x00\x00\x00", "tls more behind the ClientHello"),
		ROW("\x06\x00\x04\x01\x00\x00\x00", "tls broken ClientHello"),
		ROW("\x06\x7f\xff\x01\x00", "hold"),
		ROW("\x06\x7f\xff\x02\x00\x00", "tls ClientHello over 16 KiB"),
		ROW("\x06\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", "tls ClientHello over 16 KiB"),
		ROW("\x06\x00\xff\xff\xff\xff\xff\xff\xff\xff\x01", "tls broken CRYPTO frame"),
		ROW("\x06\x00\x44\xff", "tls broken CRYPTO frame"),
		ROW("\x1d\x01\x00", "tls frame that no Initial packet may carry"),
		ROW("\x04\x00\x00\x00", "tls frame that no Initial packet may carry"),
		ROW("\x08\x00", "tls frame that no Initial packet may carry"),
		ROW("\x1e", "tls frame that no Initial packet may carry"),
		ROW("\x40\x06\x00\x01\x01", "tls frame that no Initial packet may carry"),
		ROW("\x02\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff",
		    "tls broken frame in an Initial packet"),
		ROW("\x1c\x00\x00\x7f\xff", "tls broken frame in an Initial packet"),
	};
	struct play play;
	(void)state;

	begin(&play);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct seal seal = seal_first("original");
		feed_text(&play, &seal, rows[i].frames, rows[i].length);
		EXPECT(&play, rows[i].expected);
	}
	end(&play);
}

/* Octets of headers changed after sealing: AT, to VALUE. */
static void test_headers(void **state)
{
	static const struct {
		size_t at, length;
		uint8_t value;
		const char *expected;
	} rows[] = {
		{0, 1200, 0x40, "other -"}, /* a short header */
		{0, 1200, 'G', "other -"},
		{0, 1200, 0x80, "tls broken header of a QUIC packet"}, /* no fixed bit */
		{0, 1200, 0xf0, "tls broken header of a QUIC packet"}, /* Retry */
		{0, 1200, 0xd0, "drop"},                               /* 0-RTT */
		{0, 1200, 0xe0, "drop"},                               /* Handshake */
		{1, 1200, 0xff, "tls unknown version of QUIC"},
		{4, 1200, 0x00, "tls unknown version of QUIC"}, /* version negotiation */
		{5, 1200, 21, "tls broken header of a QUIC packet"},
		{6, 1200, 'O', "tls Initial packet that its own keys do not open"},
		{14, 1200, 21, "tls broken header of a QUIC packet"},
		{15, 1200, 0xff, "tls broken header of a QUIC packet"},
		{16, 1200, 0x7f, "tls broken header of a QUIC packet"},
		{1199, 1200, 0, "tls Initial packet that its own keys do not open"},
		{0, 1199, 0xc0, "tls broken header of a QUIC packet"},
		{0, 0, 0, "other -"},
		{0, 1, 0xc0, "tls broken header of a QUIC packet"},
		{0, 5, 0xc0, "tls broken header of a QUIC packet"},
		{0, 17, 0xc0, "tls broken header of a QUIC packet"},
	};
	static uint8_t datagram[SEAL_SIZE];
	struct play play;
	(void)state;

	begin(&play);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct seal seal = seal_first("original");
		seal_initial(&seal, (const uint8_t *)"\x01", 1, datagram);
		datagram[rows[i].at] = rows[i].value;
		feed(&play, datagram, rows[i].length);
		EXPECT(&play, rows[i].expected);
	}

	struct seal seal = seal_first("original");
	feed_hello(&play, &seal, "a.example");
	feed(&play, (const uint8_t *)"\xa0\0\0\0\1\x08original\0\x01x", 18);
	EXPECT(&play, "tls a.example; pass"); /* RFC 9287 */
	seal.bits = 0x04;
	feed_text(&play, &seal, "\x01", 1);
	EXPECT(&play, "tls reserved bits of a QUIC packet are set");
	seal.bits = 0;
	seal.to.length = seal.keys.length = 7;
	feed_text(&play, &seal, "\x01", 1);
	EXPECT(&play, "tls first connection ID under 8 octets");
	seal.to.length = seal.keys.length = 8;
	seal.datagram = 1199;
	feed_text(&play, &seal, "\x01", 1);
	EXPECT(&play, "tls QUIC Initial in a datagram under 1200 octets");
	end(&play);
}

static void test_packet_numbers(void **state)
{
	struct seal seal = seal_first("original");
	struct play play;
	(void)state;

	begin(&play);
	feed_hello(&play, &seal, "a.example");
	seal.number_length = 1;
	for (seal.number = 1; seal.number < 256; seal.number += 127) {
		feed_text(&play, &seal, "\x01", 1);
	}
	seal.number = 0; /* 256 to whoever has seen 255 */
	feed_text(&play, &seal, "\x01", 1);
	seal.number_length = 2;
	feed_text(&play, &seal, "\x01", 1);
	seal.number = 256;
	feed_text(&play, &seal, "\x01", 1);
	EXPECT(&play, "tls a.example; pass; pass; pass; drop; pass; pass");

	seal.number_length = 4;
	seal.number = 0x7fffffff;
	feed_hello(&play, &seal, "a.example");
	EXPECT(&play, "tls a.example");
	end(&play);
}

static void test_coalesced(void **state)
{
	static uint8_t datagram[3 * SEAL_SIZE];
	struct seal seal = seal_first("original"), other;
	uint8_t message[600], frames[700];
	size_t length = seal_hello("a.example", 0, message), at, frame;
	struct play play;
	(void)state;

	begin(&play);
	/* two Initial packets, one for 0-RTT, one with a short header, whatever is behind it */
	seal.datagram = 0;
	frame = seal_crypto(0, message, 30, frames);
	at = seal_initial(&seal, frames, frame, datagram);
	seal.datagram = 1100;
	seal.number = 1;
	frame = seal_crypto(30, message + 30, length - 30, frames);
	at += seal_initial(&seal, frames, frame, datagram + at);
	size_t zero_rtt = at;
	memcpy(datagram + at, "\xd0\0\0\0\1\x08original\0\x14", 16);
	at += 16 + 20;
	datagram[at++] = 0x40;
	memset(datagram + at, 0xff, 100);
	at += 100;
	assert_true(at >= 1200);
	feed(&play, datagram, at);
	feed(&play, datagram + zero_rtt, at - zero_rtt);
	EXPECT(&play, "tls a.example; pass");

	/* a part is held with what comes behind it */
	seal.datagram = 1200;
	feed_part(&play, &seal, message, 0, 30, length);
	feed(&play, datagram + zero_rtt, at - zero_rtt);
	feed(&play, (const uint8_t *)"\x41short", 6);
	feed_part(&play, &seal, message, 0, 0, 30);
	EXPECT(&play, "hold; hold; hold; tls a.example");

	/* packets of two connections, of two versions; junk behind a packet */
	for (int i = 0; i < 3; i++) {
		other = seal;
		if (i == 0)
			other.to.bytes[0] = 'O';
		if (i == 1)
			other.version = INITIAL_VERSION_2;
		at = seal_initial(&seal, (const uint8_t *)"\x01", 1, datagram);
		at += seal_initial(&other, (const uint8_t *)"\x01", 1, datagram + at);
		feed(&play, datagram, i < 2 ? at : at - 1);
		EXPECT(&play, i < 2 ? "tls packets of two connections in one datagram"
				    : "tls broken header of a QUIC packet");
	}
	end(&play);
}

static void test_large(void **state)
{
	static uint8_t message[20000];
	struct seal seal = seal_first("original");
	struct play play;
	(void)state;

	/* 4 + 2 + 32 + 1 + 2 + 2 + 2 + 2 octets, 5 + 4 + 1 for "a", 7, 4 */
	for (size_t more = 0; more < 2; more++) {
		size_t length = seal_hello("a", QUIC_CRYPTO_MAX - 47 - 10 - 11 + more, message);
		assert_int_equal(length, QUIC_CRYPTO_MAX + more);
		begin(&play);
		seal.number = 0;
		for (size_t at = 0; at < length; at += 1000, seal.number++)
			feed_part(&play, &seal, message, 0, at,
				  at + 1000 < length ? at + 1000 : length);
		const char *tail = strrchr(play.text, ';') + 2;
		assert_string_equal(tail, more == 0 ? "tls a" : "pass");
		if (more == 1)
			assert_memory_equal(play.text, "tls ClientHello over 16 KiB; ", 29);
		end(&play);
	}
}

static void test_names(void **state)
{
	struct seal seal = seal_first("original");
	struct play play;
	(void)state;

	begin(&play);
	feed_hello(&play, &seal, NULL);
	EXPECT(&play, "tls -");
	feed_hello(&play, &seal, "A.Example.");
	EXPECT(&play, "tls a.example");
	feed_hello(&play, &seal, "");
	EXPECT(&play, "tls empty server_name");
	feed_hello(&play, &seal, "a b");
	EXPECT(&play, "tls server_name has bytes outside a host name");
	end(&play);
}

static size_t allocations;

static void *counted_malloc(size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	allocations++;
	return malloc(size);
}

static void *counted_realloc(void *old, size_t size, const char *file, int line)
{
	(void)file;
	(void)line;
	allocations++;
	return realloc(old, size);
}

static void counted_free(void *old, const char *file, int line)
{
	(void)file;
	(void)line;
	free(old);
}

/* The gate allocates nothing after its start. */
static void test_allocates_nothing(void **state)
{
	static uint8_t datagram[SEAL_SIZE], buffer[4096];
	alignas(16) static uint8_t storage[STREAM_SIZE];
	struct seal seal = seal_first("original");
	uint8_t message[600], frames[700];
	size_t length = seal_hello("a.example", 0, message);
	(void)state;

	length = seal_crypto(0, message, length, frames);
	length = seal_initial(&seal, frames, length, datagram);
	assert_true(allocations > 0);
	for (int i = 0; i < 3; i++) {
		struct quic *quic = quic_init(storage, initial, buffer, sizeof(buffer));
		size_t before = allocations;
		assert_int_equal(quic_feed(quic, datagram, length), QUIC_EVENT);
		quic_resume(quic);
		datagram[6]++; /* another connection ID */
		assert_int_equal(quic_feed(quic, datagram, length), QUIC_DROP);
		datagram[6]--;
		assert_int_equal(allocations, before);
	}
}

static int setup(void **state)
{
	(void)state;
	initial = initial_new();
	return initial == NULL;
}

static int teardown(void **state)
{
	(void)state;
	initial_free(initial);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_flow),
		cmocka_unit_test(test_retry_and_second_hello),
		cmocka_unit_test(test_further_connections),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_frames),
		cmocka_unit_test(test_headers),
		cmocka_unit_test(test_packet_numbers),
		cmocka_unit_test(test_coalesced),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_allocates_nothing),
	};

	CRYPTO_set_mem_functions(counted_malloc, counted_realloc, counted_free);
	return cmocka_run_group_tests(tests, setup, teardown);
}
