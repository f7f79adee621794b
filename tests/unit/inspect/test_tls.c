/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/hello.h"
#include "inspect/stream.h"
#include "play.h"

/* Bytes that are put together piece by piece. */
struct bytes {
	size_t length;
	uint8_t at[40000];
};

static void put(struct bytes *out, const void *bytes, size_t length)
{
	assert_true(out->length + length <= sizeof(out->at));
	memcpy(out->at + out->length, bytes, length);
	out->length += length;
}

static void put_number(struct bytes *out, size_t octets, size_t value)
{
	for (size_t i = octets; i > 0; i--) {
		uint8_t octet = (uint8_t)(value >> 8 * (i - 1));
		put(out, &octet, 1);
	}
}

static void put_extension(struct bytes *out, unsigned type, const void *body, size_t length)
{
	put_number(out, 2, type);
	put_number(out, 2, length);
	put(out, body, length);
}

static void put_name(struct bytes *out, unsigned type, const void *name, size_t length)
{
	put_number(out, 1, type);
	put_number(out, 2, length);
	put(out, name, length);
}

/* A server_name extension with one host_name. */
static void put_sni(struct bytes *out, const void *name, size_t length)
{
	struct bytes list = {.length = 0};

	put_number(&list, 2, length + 3);
	put_name(&list, 0, name, length);
	put_extension(out, 0, list.at, list.length);
}

struct hello_parts {
	size_t session, suites, compressions; /* octets */
	uint8_t major;
	const struct bytes *extensions; /* NULL: not even their length */
	size_t announced;               /* more than there are of extension octets */
};

/* A whole handshake message. */
static void put_hello(struct bytes *out, const struct hello_parts *parts)
{
	static const uint8_t zeros[512];
	struct bytes body = {.length = 0};

	put_number(&body, 1, parts->major);
	put_number(&body, 1, 3);
	put(&body, zeros, 32);
	put_number(&body, 1, parts->session);
	put(&body, zeros, parts->session);
	put_number(&body, 2, parts->suites);
	put(&body, zeros, parts->suites);
	put_number(&body, 1, parts->compressions);
	put(&body, zeros, parts->compressions);
	if (parts->extensions != NULL) {
		put_number(&body, 2, parts->extensions->length + parts->announced);
		put(&body, parts->extensions->at, parts->extensions->length);
	}
	put_number(out, 1, 1);
	put_number(out, 3, body.length);
	put(out, body.at, body.length);
}

static void put_record(struct bytes *out, unsigned type, const void *bytes, size_t length)
{
	put_number(out, 1, type);
	put_number(out, 2, 0x0301);
	put_number(out, 2, length);
	put(out, bytes, length);
}

/* MESSAGE over records of at most SIZE octets. */
static void put_records(struct bytes *out, const struct bytes *message, size_t size)
{
	for (size_t at = 0; at < message->length; at += size) {
		size_t left = message->length - at;
		put_record(out, 22, message->at + at, left < size ? left : size);
	}
}

#define PARTS(extensions_)                                                                         \
	{                                                                                          \
		.suites = 4, .compressions = 1, .major = 3, .extensions = (extensions_)            \
	}

enum hello_flags { OFFERS = 1, EARLY = 2, NAMELESS = 4 };

static void put_usual_hello(struct bytes *out, const char *name, int flags)
{
	struct bytes extensions = {.length = 0};
	struct hello_parts parts = PARTS(&extensions);

	put_extension(&extensions, 0x1a1a, "", 0);
	if (!(flags & NAMELESS))
		put_sni(&extensions, name, strlen(name));
	put_extension(&extensions, 0xfe0d, "outer", 5);
	if (flags & OFFERS)
		put_extension(&extensions, 43, "\x04\x03\x04\x03\x03", 5);
	if (flags & EARLY)
		put_extension(&extensions, 42, "", 0);
	put_hello(out, &parts);
}

__attribute__((format(printf, 2, 3))) static void expect(const struct bytes *bytes,
							 const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	play_expect(bytes->at, bytes->length, text);
}

static void test_records(void **state)
{
	static const size_t sizes[] = {16384, 100, 7, 5, 4, 3, 2, 1};
	struct bytes hello = {.length = 0};
	(void)state;

	put_usual_hello(&hello, "a.example", 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct bytes flow = {.length = 0};
		put_records(&flow, &hello, sizes[i]);
		expect(&flow, "%zu tls a.example\nstate opaque\n", flow.length);
		for (size_t length = 2; length < flow.length; length += 1 + flow.length / 50) {
			struct bytes part = flow;
			part.length = length;
			expect(&part, "state head\n");
		}
		put(&flow, "\x16\x03\x03", 3);
		expect(&flow, "%zu tls a.example\nstate opaque\n", flow.length - 3);
	}
}

static void expect_text(const char *text, size_t length, const char *expected)
{
	play_expect((const uint8_t *)text, length, expected);
}

#define NOT_FIRST "tls malformed TLS that does not begin with a ClientHello\nstate broken\n"

static void test_bad_beginnings(void **state)
{
	(void)state;

	expect_text("\x16", 1, "state start\n");
	expect_text("\x14", 1, "state start\n");
	expect_text("\x16\x02\x01", 3, "2 other -\nstate opaque\n");
	expect_text("\x17GET", 3, "2 other -\nstate opaque\n");
	expect_text("\x13\x03", 2, "1 other -\nstate opaque\n");
	expect_text("\x18\x03\x03", 3, "1 other -\nstate opaque\n");
	expect_text("\x15\x03\x03\x00\x02\x01\x00", 7, "2 " NOT_FIRST);
	expect_text("\x17\x03\x03", 3, "2 " NOT_FIRST);
	expect_text("\x14\x03\x03\x00\x01\x01", 6, "2 " NOT_FIRST);
	expect_text("\x16\x03\x03\x00\x04\x14\x00\x00\x0c", 9, "6 " NOT_FIRST);
	expect_text("\x16\x03\x03\x00\x04\x02", 6, "6 " NOT_FIRST);
	expect_text("\x16\x03\x01\x00\x00", 5,
		    "5 tls malformed empty handshake record\nstate broken\n");
	expect_text("\x16\x03\x01\x40\x01", 5,
		    "5 tls malformed handshake record over 16 KiB\nstate broken\n");
	expect_text("\x16\x03\x09\x40\x00\x01", 6, "state head\n");
	expect_text("\x16\x03\x01\x01\x00\x01\x00\x3f\xfd", 9,
		    "9 tls malformed ClientHello over 16 KiB\nstate broken\n");
	expect_text("\x16\x03\x01\x01\x00\x01\x00\x3f\xfc", 9, "state head\n");
	expect_text("\x16\x03\x01\x01\x00\x01\xff\xff\xff", 9,
		    "9 tls malformed ClientHello over 16 KiB\nstate broken\n");
	expect_text("\x16\x03\x01\x00\x04\x01\x00\x00\x00", 9,
		    "9 tls malformed broken ClientHello\nstate broken\n");
}

static void test_interleaving(void **state)
{
	struct bytes hello = {.length = 0}, flow = {.length = 0};
	(void)state;

	put_usual_hello(&hello, "a.example", 0);
	put_record(&flow, 22, hello.at, 10);
	struct bytes begun = flow;
	put_record(&flow, 20, "\x01", 1);
	expect(&flow, "%zu tls malformed another record inside the ClientHello\nstate broken\n",
	       begun.length + 1);
	flow = begun;
	put(&flow, "\x16\x02", 2);
	expect(&flow,
	       "%zu tls malformed record of another version inside the ClientHello\nstate broken\n",
	       begun.length + 2);
	flow = begun;
	put(&flow, "\x16\x03\x03\0\0", 5);
	expect(&flow, "%zu tls malformed empty handshake record\nstate broken\n", begun.length + 5);

	flow.length = 0; /* a second message in the hello's last record */
	struct bytes two = hello;
	put(&two, "\x01", 1);
	put_records(&flow, &two, 16384);
	expect(&flow, "%zu tls malformed more behind the ClientHello in its record\nstate broken\n",
	       flow.length - 1);
}

/* The grammar of the message, without records around it. */
static void test_hello_grammar(void **state)
{
	struct bytes none = {.length = 0}, message;
	struct hello hello;
	const struct {
		struct hello_parts parts;
		bool good;
	} rows[] = {
		{{0, 2, 1, 3, NULL, 0}, true},   {{32, 2, 1, 3, NULL, 0}, true},
		{{33, 2, 1, 3, NULL, 0}, false}, {{0, 0, 1, 3, NULL, 0}, false},
		{{0, 3, 1, 3, NULL, 0}, false},  {{0, 2, 0, 3, NULL, 0}, false},
		{{0, 2, 255, 3, NULL, 0}, true}, {{0, 2, 1, 2, NULL, 0}, false},
		{{0, 2, 1, 4, NULL, 0}, false},  {{0, 2, 1, 3, &none, 0}, true},
		{{0, 2, 1, 3, &none, 1}, false},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		message.length = 0;
		put_hello(&message, &rows[i].parts);
		const char *problem = hello_parse(message.at, message.length, &hello);
		if (rows[i].good)
			assert_null(problem);
		else
			assert_non_null(problem);
	}
	message.length = 0;
	put_usual_hello(&message, "a.example", OFFERS | EARLY);
	assert_null(hello_parse(message.at, message.length, &hello));
	assert_true(hello.offers_version && hello.early_data);
	assert_int_equal(hello.host.kind, HOST_NAME);
	for (size_t length = 0; length < message.length; length++) { /* cut, both lengths fitting */
		uint8_t *copy = malloc(length + 1);
		memcpy(copy, message.at, length);
		if (length >= 4) {
			copy[2] = (uint8_t)((length - 4) >> 8);
			copy[3] = (uint8_t)(length - 4);
		}
		/* a hello that ends behind its compression methods has no extensions */
		assert_int_equal(hello_parse(copy, length, &hello) == NULL, length == 47);
		free(copy);
	}
	message.at[message.length] = 0; /* one octet too many */
	message.at[3]++;
	assert_non_null(hello_parse(message.at, message.length + 1, &hello));
}

static void expect_extensions(const struct bytes *extensions, const char *expected)
{
	struct bytes hello = {.length = 0}, flow = {.length = 0};
	struct hello_parts parts = PARTS(extensions);

	put_hello(&hello, &parts);
	put_records(&flow, &hello, 16384);
	expect(&flow, "%zu tls %s\nstate %s\n", flow.length, expected,
	       strncmp(expected, "malformed", 9) == 0 ? "broken" : "opaque");
}

static void test_names(void **state)
{
	static const char label[] =
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example";
	const char *bytes = "malformed server_name has bytes outside a host name";
	const char *neither = "malformed server_name is neither a host name nor an address";
	const struct {
		const char *name;
		size_t length;
		const char *expected;
	} rows[] = {
		{"a.example", 9, "a.example"},
		{"A.Example", 9, "a.example"},
		{"a.example.", 10, "a.example"},
		{"localhost", 9, "localhost"},
		{"_x.example", 10, "_x.example"},
		{"1.2.3.4", 7, "1.2.3.4"},
		{"1.2.3.4.", 8, "1.2.3.4"},
		{"0x7f.1", 6, "127.0.0.1"},
		{"::1", 3, "::1"},
		{"2001:DB8::1", 11, "2001:db8::1"},
		{"1.2.3.400", 9, neither},
		{"a.08", 4, neither},
		{"[::1]", 5, bytes},
		{"a:443", 5, bytes},
		{"::g", 3, bytes},
		{"a..example", 10, bytes},
		{".", 1, bytes},
		{"", 0, "malformed empty server_name"},
		{"a.example\0.b", 12, bytes},
		{"\0", 1, bytes},
		{"a example", 9, bytes},
		{"a.example\n", 10, bytes},
		{"*.example", 9, bytes},
		{"a%2eexample", 11, bytes},
		{"\xc3\xbc.example", 10, bytes},
		{label, sizeof(label) - 1, bytes},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bytes extensions = {.length = 0};
		put_sni(&extensions, rows[i].name, rows[i].length);
		expect_extensions(&extensions, rows[i].expected);
	}
}

static void test_extensions(void **state)
{
	struct bytes e, list;
	(void)state;

	e.length = 0;
	expect_extensions(&e, "-");
	put_extension(&e, 0x1a1a, "", 0);
	expect_extensions(&e, "-");
	put_sni(&e, "a", 1);
	expect_extensions(&e, "a");
	put_sni(&e, "a", 1);
	expect_extensions(&e, "malformed two server_name extensions");

	e.length = 0;
	put_extension(&e, 0, "", 0);
	expect_extensions(&e, "malformed broken server_name");
	e.length = 0;
	put_extension(&e, 0, "\0\0", 2);
	expect_extensions(&e, "malformed broken server_name");
	e.length = 0;
	put_extension(&e, 0,
		      "\0\x04\0\0\x01"
		      "ax",
		      7); /* octets behind the list */
	expect_extensions(&e, "malformed broken server_name");
	e.length = 0;
	put_extension(&e, 0,
		      "\0\x05\0\0\x01"
		      "a",
		      6); /* a list that is too long */
	expect_extensions(&e, "malformed broken server_name");
	e.length = 0;
	put_extension(&e, 0,
		      "\0\x04\0\0\x02"
		      "a",
		      6); /* a name that is too long */
	expect_extensions(&e, "malformed broken server_name");
	e.length = 0;
	put_extension(&e, 0,
		      "\0\x04\x01\0\x01"
		      "a",
		      6);
	expect_extensions(&e, "malformed server_name is no host name");

	e.length = list.length = 0;
	put_number(&list, 2, 8);
	put_name(&list, 0, "a", 1);
	put_name(&list, 0, "a", 1);
	put_extension(&e, 0, list.at, list.length);
	expect_extensions(&e, "malformed server_name lists several names");

	e.length = 0;
	put_sni(&e, "a", 1);
	put(&e, "\0\x10\0", 3); /* half an extension */
	expect_extensions(&e, "malformed broken extensions in the ClientHello");
	e.length = 0;
	put_sni(&e, "a", 1);
	put(&e, "\0\x10\0\x01", 4); /* its body is missing */
	expect_extensions(&e, "malformed broken extensions in the ClientHello");
}

static void test_large(void **state)
{
	static uint8_t padding[20000];
	struct bytes e = {.length = 0}, hello = {.length = 0}, flow = {.length = 0};
	struct hello_parts parts = PARTS(&e);
	(void)state;

	/* 4 + 2 + 32 + 1 + 2 + 4 + 1 + 1 + 2 octets around the extensions, 10 for the name, 4 */
	put_sni(&e, "a", 1);
	put_extension(&e, 21, padding, 16384 - 49 - 10 - 4);
	put_hello(&hello, &parts);
	assert_int_equal(hello.length, STREAM_HELLO_MAX);
	put_records(&flow, &hello, 1400);
	expect(&flow, "%zu tls a\nstate opaque\n", flow.length);
}

#define HELLO_1 "%zu tls a.example\n"

struct after {
	const char *name;         /* of the second hello; NULL: none */
	int first, second;        /* enum hello_flags */
	size_t split;             /* octets of each record of the second hello */
	unsigned between[4];      /* record types before it, 0 ends */
	const char *second_event; /* NULL: none */
	const char *state;
};

static void test_second_hello(void **state)
{
	static const struct after rows[] = {
		{NULL, OFFERS, 0, 0, {0}, NULL, "between"},
		{NULL, 0, 0, 0, {0}, NULL, "opaque"},
		{NULL, OFFERS, 0, 0, {20}, NULL, "between"},
		{NULL, OFFERS, 0, 0, {20, 23}, NULL, "opaque"},
		{NULL, OFFERS, 0, 0, {21}, NULL, "between"},
		{NULL, OFFERS | EARLY, 0, 0, {20, 23, 23}, NULL, "between"},
		{NULL, OFFERS, 0, 0, {24}, NULL, "opaque"},
		{"a.example", OFFERS, OFFERS, 9999, {0}, "a.example", "opaque"},
		{"A.EXAMPLE.", OFFERS, OFFERS, 9999, {20}, "a.example", "opaque"},
		{"a.example", OFFERS, OFFERS, 1, {20, 21, 20}, "a.example", "opaque"},
		{"a.example", OFFERS | EARLY, OFFERS, 50, {20, 23, 23}, "a.example", "opaque"},
		{"a.example", OFFERS, OFFERS, 9999, {23}, NULL, "opaque"},
		{"b.example", 0, OFFERS, 9999, {0}, NULL, "opaque"},
		{"b.example",
		 OFFERS,
		 OFFERS,
		 9999,
		 {20},
		 "malformed the second ClientHello names another host",
		 "broken"},
		{"1.2.3.4",
		 OFFERS,
		 0,
		 7,
		 {20},
		 "malformed the second ClientHello names another host",
		 "broken"},
		{"a.example",
		 OFFERS,
		 NAMELESS,
		 9999,
		 {20},
		 "malformed the second ClientHello names another host",
		 "broken"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct after *row = &rows[i];
		struct bytes hello = {.length = 0}, flow = {.length = 0};
		char second[128] = "";
		put_usual_hello(&hello, "a.example", row->first);
		put_records(&flow, &hello, 9999);
		size_t first_end = flow.length;
		for (size_t j = 0; j < 4 && row->between[j] != 0; j++)
			put_record(&flow, row->between[j], "\x01", 1);
		if (row->name != NULL) {
			hello.length = 0;
			put_usual_hello(&hello, row->name, row->second);
			put_records(&flow, &hello, row->split);
		}
		if (row->second_event != NULL)
			snprintf(second, sizeof(second), "%zu tls second %s\n", flow.length,
				 row->second_event);
		expect(&flow, HELLO_1 "%sstate %s\n", first_end, second, row->state);
	}
}

/* What follows a hello that may be retried, octet by octet. */
static void test_after_hello(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *state;
	} rows[] = {
		{"\x16", 1, "head"},
		{"\x14\x03\x03\x00", 4, "head"},
		{"\x14\x03\x03\x00\x01", 5, "body"},
		{"\x14\x03\x03\x00\x00", 5, "between"},
		{"\x16\x02", 2, "opaque"},
		{"GET", 3, "opaque"},
		{"\x14\x03\x03\xff\xff", 5, "opaque"},
		{"\x16\x03\x03\x00\x28", 5, "head"},
		{"\x16\x03\x03\x00\x28\x10", 6, "opaque"},                  /* ClientKeyExchange */
		{"\x16\x03\x03\x00\x28\x01\x00\x00\x00\x02", 10, "opaque"}, /* encrypted */
		{"\x16\x03\x03\x00\x28\x01\xff\xff\xff\x02", 10, "opaque"},
		{"\x16\x03\x03\x00\x28\x01\x00\x01\x00\x03", 10, "head"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bytes hello = {.length = 0}, flow = {.length = 0};
		put_usual_hello(&hello, "a.example", OFFERS);
		put_records(&flow, &hello, 9999);
		size_t first_end = flow.length;
		put(&flow, rows[i].bytes, rows[i].length);
		expect(&flow, HELLO_1 "state %s\n", first_end, rows[i].state);
	}
}

static void test_after_hello_bad(void **state)
{
	static const struct {
		const char *bytes;
		size_t length;
		const char *problem;
	} rows[] = {
		{"\x16\x03\x03\x00\x00", 5, "empty handshake record"},
		{"\x16\x03\x03\x48\x01", 5, "handshake record over 16 KiB"},
		{"\x16\x03\x03\x00\x28\x01\xff\xff\xff\x03", 10, "ClientHello over 16 KiB"},
		{"\x16\x03\x03\x00\x28\x01\x00\x00\x00\x03", 10, "broken ClientHello"},
		{"\x16\x03\x03\x00\x01\x01\x14", 7, "another record inside the ClientHello"},
	};
	(void)state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct bytes hello = {.length = 0}, flow = {.length = 0};
		put_usual_hello(&hello, "a.example", OFFERS);
		put_records(&flow, &hello, 9999);
		size_t first_end = flow.length;
		put(&flow, rows[i].bytes, rows[i].length);
		expect(&flow, HELLO_1 "%zu tls second malformed %s\nstate broken\n", first_end,
		       flow.length, rows[i].problem);
	}
}

static void test_early_data_limit(void **state)
{
	static uint8_t data[16384], flow[400000];
	struct bytes hello = {.length = 0}, first = {.length = 0}, record = {.length = 0};
	char transcript[PLAY_SIZE];
	const struct play how = {.first_capacity = 512, .seed = 1, .cut_max = 9000};
	(void)state;

	put_usual_hello(&hello, "a.example", OFFERS | EARLY);
	put_records(&first, &hello, 9999);
	put_record(&record, 23, data, sizeof(data));
	memcpy(flow, first.at, first.length);
	for (size_t records = 0; records < 17; records++) {
		size_t length = first.length + records * record.length;
		play(&how, flow, length, transcript);
		assert_non_null(strstr(transcript, records < 16 ? "between" : "opaque"));
		memcpy(flow + length, record.at, record.length);
	}
}

/* Octets of real flows, changed at random: no cut may change what they give. */
static void test_hostile(void **state)
{
	char whole[PLAY_SIZE], cut[PLAY_SIZE];
	(void)state;

	srandom(12);
	for (int round = 0; round < 4000; round++) {
		struct bytes hello = {.length = 0}, flow = {.length = 0};
		put_usual_hello(&hello, "a.example", round % 4);
		put_records(&flow, &hello, round % 3 == 0 ? 9999 : 1 + (size_t)random() % 60);
		put_record(&flow, 20, "\x01", 1);
		put_records(&flow, &hello, 9999);
		for (long changes = random() % 3; changes >= 0; changes--) {
			static const uint8_t octets[] = {0, 1, 2, 3, 20, 21, 22, 23, 0xff};
			flow.at[(size_t)random() % flow.length] =
				octets[(size_t)random() % sizeof(octets)];
		}
		struct play all = {.first_capacity = 65536};
		struct play some = {.first_capacity = 1 + (size_t)random() % 40,
				    .seed = (unsigned)random() | 1,
				    .cut_max = 1 + (size_t)random() % 30,
				    .takes_away = 1};
		assert_string_equal(play(&some, flow.at, flow.length, cut),
				    play(&all, flow.at, flow.length, whole));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records),
		cmocka_unit_test(test_bad_beginnings),
		cmocka_unit_test(test_interleaving),
		cmocka_unit_test(test_hello_grammar),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_extensions),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_second_hello),
		cmocka_unit_test(test_after_hello),
		cmocka_unit_test(test_after_hello_bad),
		cmocka_unit_test(test_early_data_limit),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
