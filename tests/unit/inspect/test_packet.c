/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/packet.h"

#define S4 "\x0a\x01\x02\x03" /* 10.1.2.3 */
#define D4 "\x5d\xb8\xd8\x22" /* 93.184.216.34 */
#define S6 "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
#define D6 "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02"
#define TCP                                                                                        \
	"\x30\x39\x00\x50\x01\x02\x03\x04\x05\x06\x07\x08\x50\x18\x12\x34\xab\xcd\x00\x07" /* 20   \
											    */
#define TCP_OPTIONS                                                                                \
	"\x30\x39\x00\x50\x01\x02\x03\x04\x05\x06\x07\x08\x60\x18\x12\x34\xab\xcd\x00\x07"         \
	"\x01\x01\x01\x01"                     /* 24 */
#define UDP "\x30\x39\x00\x35\x00\x0b\xab\xcd" /* 8, with 3 of payload */

struct built {
	size_t length;
	uint8_t at[70000];
};

static void put(struct built *out, const void *bytes, size_t length)
{
	memcpy(out->at + out->length, bytes, length);
	out->length += length;
}

static void build4(struct built *out, uint8_t protocol, uint16_t fragment, const void *options,
		   size_t options_length, const void *body, size_t body_length)
{
	size_t header = 20 + options_length, total = header + body_length;
	uint8_t start[12] = {(uint8_t)(0x40 | header / 4),
			     0,
			     (uint8_t)(total >> 8),
			     (uint8_t)total,
			     0,
			     0,
			     (uint8_t)(fragment >> 8),
			     (uint8_t)fragment,
			     64,
			     protocol};

	out->length = 0;
	put(out, start, sizeof(start));
	put(out, S4 D4, 8);
	put(out, options, options_length);
	put(out, body, body_length);
}

static void build6(struct built *out, uint8_t next, const void *body, size_t length)
{
	uint8_t start[8] = {0x60, 0, 0, 0, (uint8_t)(length >> 8), (uint8_t)length, next, 64};

	out->length = 0;
	put(out, start, sizeof(start));
	put(out, S6 D6, 32);
	put(out, body, length);
}

/* Reads from memory that ends where the packet ends. */
static enum packet_error read_copy(const struct built *built, size_t length, struct packet *out)
{
	uint8_t *copy = malloc(length > 0 ? length : 1);

	memcpy(copy, built->at, length);
	enum packet_error error = packet_read(copy, length, out);
	if (error == PACKET_OK) { /* into the caller's bytes, to compare after free() */
		assert_true(out->payload >= copy &&
			    out->payload + out->payload_length <= copy + length);
		out->payload = built->at + (out->payload - copy);
	}
	free(copy);
	return error;
}

static enum packet_error read_built(const struct built *built, struct packet *out)
{
	*out = (struct packet){.protocol = 0xee};
	return read_copy(built, built->length, out);
}

static struct built built;

static void test_tcp(void **state)
{
	struct packet p;
	(void)state;

	build4(&built, IPPROTO_TCP, 0x4000, "", 0, TCP "abc", 23);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	struct address source = address_ipv4(10, 1, 2, 3);
	struct address destination = address_ipv4(93, 184, 216, 34);
	assert_true(address_equal(&p.source, &source));
	assert_true(address_equal(&p.destination, &destination));
	assert_int_equal(p.protocol, IPPROTO_TCP);
	assert_false(p.more_fragments);
	assert_int_equal(p.source_port, 12345);
	assert_int_equal(p.destination_port, 80);
	assert_int_equal(p.sequence, 0x01020304);
	assert_int_equal(p.acknowledgment, 0x05060708);
	assert_int_equal(p.flags, 0x18);
	assert_int_equal(p.window, 0x1234);
	assert_int_equal(p.urgent, 7);
	assert_int_equal(p.payload_length, 3);
	assert_memory_equal(p.payload, "abc", 3);

	build6(&built, IPPROTO_TCP, TCP_OPTIONS "abcd", 28);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.source.family, ADDRESS_IPV6);
	assert_int_equal(p.destination.bytes[15], 2);
	assert_int_equal(p.payload_length, 4);
	assert_memory_equal(p.payload, "abcd", 4);
	built.length += 5; /* what lies behind the packet's own length is no payload */
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.payload_length, 4);

	build4(&built, IPPROTO_TCP, 0, "", 0, TCP, 20);
	built.length += 6;
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.payload_length, 0);
}

static void test_udp(void **state)
{
	struct packet p;
	(void)state;

	build4(&built, IPPROTO_UDP, 0, "", 0, UDP "abcde", 13);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.destination_port, 53);
	assert_int_equal(p.payload_length, 3);
	assert_memory_equal(p.payload, "abc", 3);
	build4(&built, IPPROTO_UDP, 0, "", 0, UDP "ab", 10);
	assert_int_equal(read_built(&built, &p), PACKET_TRUNCATED);
	build4(&built, IPPROTO_UDP, 0x2000, "", 0, UDP "ab", 10);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_true(p.more_fragments);
	build6(&built, IPPROTO_UDP, "\x30\x39\x00\x35\x00\x07\xab\xcd", 8);
	assert_int_equal(read_built(&built, &p), PACKET_BAD_HEADER);
	build6(&built, IPPROTO_UDP,
	       "\x30\x39\x00\x35\x00\x00\xab\xcd"
	       "abcd",
	       12);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.payload_length, 4);
}

static void test_other_protocols(void **state)
{
	struct packet p;
	(void)state;

	build4(&built, IPPROTO_ICMP, 0, "", 0,
	       "\x08\x01\xab\xcd"
	       "1234",
	       8);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.icmp_type, 8);
	assert_int_equal(p.icmp_code, 1);
	assert_int_equal(p.payload_length, 4);
	build6(&built, IPPROTO_ICMPV6, "\x87\x00\xab\xcd", 4);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.icmp_type, 135);
	build6(&built, IPPROTO_ICMP, "\x87\x00\xab\xcd", 4); /* the other family's */
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.icmp_type, 0);
	assert_int_equal(p.payload_length, 4);
	build4(&built, IPPROTO_SCTP, 0, "", 0, "\x30\x39\x00\x50", 4);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.destination_port, 80);
	build4(&built, IPPROTO_SCTP, 0, "", 0, "\x30\x39\x00", 3);
	assert_int_equal(read_built(&built, &p), PACKET_TRUNCATED);
	build4(&built, IPPROTO_GRE, 0, "", 0, "", 0);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.protocol, IPPROTO_GRE);
	assert_int_equal(p.destination_port, 0);
	build6(&built, 59, "xyz", 3); /* no next header */
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.protocol, 59);
}

struct row {
	const char *bytes;
	size_t length;
	enum packet_error error;
};
#define ROW(bytes, error)                                                                          \
	{                                                                                          \
		bytes, sizeof(bytes) - 1, error                                                    \
	}

static void test_ipv4_options(void **state)
{
	static const struct row rows[] = {
		ROW("", PACKET_OK),
		ROW("\x01\x01\x01\x01", PACKET_OK),
		ROW("\x00\xff\xff\xff", PACKET_OK), /* nothing counts after the end */
		ROW("\x94\x04\x00\x00", PACKET_OK), /* router alert */
		ROW("\x07\x07\x04\x00\x00\x00\x00\x00", PACKET_OK), /* record route */
		ROW("\x01\x01\x01\x94", PACKET_BAD_HEADER),
		ROW("\x94\x00\x00\x00", PACKET_BAD_HEADER),
		ROW("\x94\x01\x00\x00", PACKET_BAD_HEADER),
		ROW("\x94\x05\x00\x00", PACKET_BAD_HEADER),
		ROW("\x83\x07\x04\xa9\xfe\xa9\xfe\x00", PACKET_BAD_HEADER), /* LSRR */
		ROW("\x89\x03\x04\x00", PACKET_BAD_HEADER),                 /* SSRR */
		ROW("\x01\x83\x03\x04", PACKET_BAD_HEADER),
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct packet p;
		build4(&built, IPPROTO_TCP, 0, rows[i].bytes, rows[i].length, TCP "a", 21);
		assert_int_equal(read_built(&built, &p), rows[i].error);
		assert_int_equal(p.protocol, IPPROTO_TCP); /* known all the same */
		assert_int_equal(p.destination.family, ADDRESS_IPV4);
		if (rows[i].error == PACKET_OK)
			assert_int_equal(p.payload_length, 1);
		else
			assert_int_equal(p.destination_port, 0);
	}
}

static void test_ipv4_header(void **state)
{
	struct packet p;
	(void)state;

	build4(&built, IPPROTO_TCP, 0, "", 0, TCP, 20);
	built.at[0] = 0x44; /* header of 16 octets */
	assert_int_equal(read_built(&built, &p), PACKET_BAD_HEADER);
	built.at[0] = 0x4b; /* of more than there is */
	assert_int_equal(read_built(&built, &p), PACKET_BAD_HEADER);
	built.at[0] = 0x35;
	assert_int_equal(read_built(&built, &p), PACKET_BAD_HEADER);
	assert_int_equal(p.protocol, 0xee);
	built.at[0] = 0x45;
	built.at[3] = 41; /* one octet longer than it is */
	assert_int_equal(read_built(&built, &p), PACKET_TRUNCATED);
	built.at[3] = 39;
	assert_int_equal(read_built(&built, &p), PACKET_TRUNCATED);
	built.at[3] = 0;
	assert_int_equal(read_built(&built, &p), PACKET_BAD_HEADER);
	built.at[3] = 40;
	built.at[32] = 0x40; /* data offset of 16 octets */
	assert_int_equal(read_built(&built, &p), PACKET_BAD_HEADER);
	built.at[32] = 0x60;
	assert_int_equal(read_built(&built, &p), PACKET_TRUNCATED);
}

static void test_fragments(void **state)
{
	struct packet p;
	(void)state;

	build4(&built, IPPROTO_TCP, 0x2000, "", 0, TCP "a", 21);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_true(p.more_fragments);
	build4(&built, IPPROTO_TCP, 0x2000, "", 0, TCP, 19);
	assert_int_equal(read_built(&built, &p), PACKET_FRAGMENT);
	build4(&built, IPPROTO_TCP, 0x2001, "", 0, TCP, 20);
	assert_int_equal(read_built(&built, &p), PACKET_FRAGMENT);
	build4(&built, IPPROTO_TCP, 0x1fff, "", 0, TCP, 20);
	assert_int_equal(read_built(&built, &p), PACKET_FRAGMENT);
	build4(&built, IPPROTO_TCP, 0x0001, "\x94\x00\x00\x00", 4, TCP, 20);
	assert_int_equal(read_built(&built, &p), PACKET_BAD_HEADER);
}

#define HBH(next)        next "\0\x05\x02\0\0\x01\0"
#define DST(next)        next "\x01\x01\x0c\0\0\0\0\0\0\0\0\0\0\0\0"
#define RT(next, left)   next "\0\x02" left "\0\0\0\0"
#define FR(next, offset) next "\0" offset "\0\0\0\x01"
#define AH(next)                                                                                   \
	next "\x04\0\0\0\0\0\x01\0\0\0\x01"                                                        \
	     "123456789012"

static void test_ipv6_extensions(void **state)
{
	static const struct {
		uint8_t next;
		struct row row;
		bool more;
	} rows[] = {
		{IPPROTO_TCP, ROW(TCP "a", PACKET_OK), false},
		{0, ROW(HBH("\x06") TCP "a", PACKET_OK), false},
		{60, ROW(DST("\x06") TCP "a", PACKET_OK), false},
		{43, ROW(RT("\x06", "\0") TCP "a", PACKET_OK), false},
		{51, ROW(AH("\x06") TCP "a", PACKET_OK), false},
		{135, ROW(HBH("\x06") TCP "a", PACKET_OK), false},
		{0,
		 ROW(HBH("\x3c") DST("\x2b") RT("\x2c", "\0") FR("\x33", "\0\0") AH("\x3c")
			     DST("\x06") TCP "a",
		     PACKET_OK),
		 false},
		{44, ROW(FR("\x06", "\0\0") TCP "a", PACKET_OK), false},
		{44, ROW(FR("\x06", "\0\x01") TCP "a", PACKET_OK), true},
		{44, ROW(FR("\x3c", "\0\x01") DST("\x06") TCP "a", PACKET_OK), true},
		/* the destination in the header is not the last one */
		{43, ROW(RT("\x06", "\x01") TCP "a", PACKET_BAD_HEADER), false},
		{60, ROW(DST("\0") HBH("\x06") TCP "a", PACKET_BAD_HEADER), false},
		{44, ROW(FR("\x2c", "\0\x01") FR("\x06", "\0\0") TCP "a", PACKET_BAD_HEADER),
		 false},
		{44, ROW(FR("\x06", "\0\x08") TCP "a", PACKET_FRAGMENT), false},
		{44, ROW(FR("\x06", "\xff\xf9") TCP "a", PACKET_FRAGMENT), false},
		{44, ROW(FR("\x06", "\0\x01") "123456789", PACKET_FRAGMENT), false},
		{44, ROW(FR("\x3c", "\0\x01") "\x06\x01\0", PACKET_FRAGMENT), false},
		{44, ROW(FR("\x2b", "\0\x01") "\x06\x01\0", PACKET_FRAGMENT), false},
		{0, ROW("\x06\x01\0\0\0\0\0\0", PACKET_TRUNCATED), false},
		{60, ROW("\x06", PACKET_TRUNCATED), false},
		{60, ROW("", PACKET_TRUNCATED), false},
		{43, ROW("\x06\0\x02", PACKET_TRUNCATED), false},
		{43, ROW("\x06\x01\x02\0\0\0\0\0", PACKET_TRUNCATED), false},
		{44, ROW("\x06\0\0\0\0\0\0", PACKET_TRUNCATED), false},
		{51, ROW("\x06\x04\0\0", PACKET_TRUNCATED), false},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct packet p;
		build6(&built, rows[i].next, rows[i].row.bytes, rows[i].row.length);
		assert_int_equal(read_built(&built, &p), rows[i].row.error);
		assert_int_equal(p.destination.family, ADDRESS_IPV6);
		if (rows[i].row.error != PACKET_OK)
			continue;
		assert_int_equal(p.protocol, IPPROTO_TCP);
		assert_int_equal(p.more_fragments, rows[i].more);
		assert_int_equal(p.destination_port, 80);
		assert_int_equal(p.payload_length, 1);
	}
}

static void test_ipv6_chain_limit(void **state)
{
	struct packet p;
	(void)state;

	for (size_t count = 1; count < 20; count++) {
		struct built chain = {.length = 0};
		for (size_t i = 0; i < count; i++)
			put(&chain, i + 1 < count ? HBH("\x3c") : HBH("\x06"), 8);
		put(&chain, TCP, 20);
		build6(&built, 60, chain.at, chain.length);
		assert_int_equal(read_built(&built, &p),
				 count <= 8 ? PACKET_OK : PACKET_BAD_HEADER);
	}
}

static void test_large_packets(void **state)
{
	static uint8_t body[65535];
	struct packet p;
	(void)state;

	memcpy(body, TCP, 20);
	build4(&built, IPPROTO_TCP, 0, "", 0, body, 65515);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.payload_length, 65495);
	build6(&built, IPPROTO_TCP, body, 65495);
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.payload_length, 65475);
	built.at[4] = built.at[5] = 0; /* as long as what we got */
	assert_int_equal(read_built(&built, &p), PACKET_OK);
	assert_int_equal(p.payload_length, 65475);
	built.at[4] = built.at[5] = 0xff;
	assert_int_equal(read_built(&built, &p), PACKET_TRUNCATED);
}

/* Every prefix of a packet is refused: the length it announces is not there. */
static void test_truncation(void **state)
{
	struct built whole[4];
	(void)state;

	build4(&whole[0], IPPROTO_TCP, 0, "\x94\x04\0\0", 4, TCP_OPTIONS "abc", 27);
	build4(&whole[1], IPPROTO_UDP, 0, "", 0, UDP "abc", 11);
	build6(&whole[2], 0, HBH("\x3c") DST("\x33") AH("\x06") TCP "a", 8 + 16 + 24 + 21);
	build6(&whole[3], IPPROTO_ICMPV6, "\x80\0\0\0", 4);
	for (size_t i = 0; i < 4; i++) {
		struct packet p;
		for (size_t length = 0; length < whole[i].length; length++) {
			p = (struct packet){.protocol = 0xee};
			assert_int_equal(read_copy(&whole[i], length, &p), PACKET_TRUNCATED);
			assert_int_equal(p.protocol == 0xee, length < (i < 2 ? 20u : 40u));
			assert_null(p.payload);
		}
		assert_int_equal(read_copy(&whole[i], whole[i].length, &p), PACKET_OK);
	}
}

/* Of a packet that was cut behind its headers the rest is known; what was not cut reads the same. */
static void test_head(void **state)
{
	static uint8_t body[2000] = TCP;
	struct packet whole, p;
	(void)state;

	build4(&built, IPPROTO_TCP, 0, "\x94\x04\x00\x00", 4, body, sizeof(body));
	assert_int_equal(packet_read_head(built.at, 44, &p), PACKET_OK);
	assert_int_equal(p.destination_port, 80);
	assert_int_equal(p.sequence, 0x01020304);
	assert_int_equal(p.payload_length, 0);
	assert_int_equal(packet_read_head(built.at, 47, &p), PACKET_OK);
	assert_int_equal(p.payload_length, 3);
	assert_int_equal(read_built(&built, &whole), PACKET_OK);
	assert_int_equal(packet_read_head(built.at, built.length, &p), PACKET_OK);
	assert_memory_equal(&p, &whole, sizeof(p));
	for (size_t length = 0; length < 44; length++) {
		p = (struct packet){.protocol = 0xee};
		assert_int_equal(packet_read_head(built.at, length, &p), PACKET_TRUNCATED);
		assert_int_equal(p.destination_port, 0);
		assert_int_equal(p.destination.family, length < 20 ? ADDRESS_NONE : ADDRESS_IPV4);
	}
	build6(&built, IPPROTO_TCP, body, sizeof(body));
	assert_int_equal(packet_read_head(built.at, 60, &p), PACKET_OK);
	assert_int_equal(p.destination_port, 80);
	assert_int_equal(packet_read_head(built.at, 59, &p), PACKET_TRUNCATED);
	build6(&built, 60, DST("\x06") TCP, 36);
	assert_int_equal(packet_read_head(built.at, 50, &p), PACKET_TRUNCATED);
	memcpy(body, "\x30\x39\x00\x35\x07\xd0\xab\xcd", 8);
	build4(&built, IPPROTO_UDP, 0, "", 0, body, sizeof(body));
	assert_int_equal(packet_read_head(built.at, 100, &p), PACKET_OK);
	assert_int_equal(p.destination_port, 53);
	assert_int_equal(p.payload_length, 72);
	/* A broken header is one, cut or not. */
	build4(&built, IPPROTO_UDP, 0, "\x83\x03\x04\x00", 4, body, sizeof(body));
	assert_int_equal(packet_read_head(built.at, 100, &p), PACKET_BAD_HEADER);
}

static void test_hostile(void **state)
{
	struct built seeds[3];
	(void)state;

	build4(&seeds[0], IPPROTO_TCP, 0, "\x07\x07\x04\0\0\0\0\0", 8, TCP "abc", 23);
	build6(&seeds[1], 0, HBH("\x3c") DST("\x2c") FR("\x06", "\0\0") TCP "a", 8 + 16 + 8 + 21);
	build6(&seeds[2], 43, RT("\x33", "\0") AH("\x11") UDP "abc", 8 + 24 + 11);
	srandom(3);
	for (int round = 0; round < 50000; round++) {
		struct packet p = {.protocol = 0};
		const struct built *seed = &seeds[round % 3];
		built.length = seed->length;
		memcpy(built.at, seed->at, seed->length);
		for (long changes = random() % 5; changes >= 0; changes--)
			built.at[(size_t)random() % built.length] = (uint8_t)random();
		read_copy(&built, (size_t)random() % (built.length + 1), &p);
		read_copy(&built, built.length, &p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcp),
		cmocka_unit_test(test_udp),
		cmocka_unit_test(test_other_protocols),
		cmocka_unit_test(test_ipv4_options),
		cmocka_unit_test(test_ipv4_header),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_ipv6_extensions),
		cmocka_unit_test(test_ipv6_chain_limit),
		cmocka_unit_test(test_large_packets),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
