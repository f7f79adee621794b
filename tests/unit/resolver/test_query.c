/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/query.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* id 0x1234, RD, one question www.example.com A IN. */
#define HEADER "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
#define NAME   "\003wWw\007example\003com\000"
#define TAIL   "\000\001\000\001"
#define OPT    "\000\000\051\020\000\000\000\200\000\000\000" /* 4096, DO */

static enum query_result read_text(const char *bytes, size_t size, struct query_message *out)
{
	/* A copy of exactly this size, so that sanitizers see a read past its end. */
	uint8_t *copy = malloc(size == 0 ? 1 : size);
	memcpy(copy, bytes, size);
	enum query_result result = query_read(copy, size, out);
	free(copy);
	return result;
}
#define READ(text, out) read_text(text, sizeof(text) - 1, out)

static void test_plain(void **state)
{
	(void)state;
	struct query_message m;

	assert_int_equal(READ(HEADER NAME TAIL, &m), QUERY_OK);
	assert_int_equal(m.id, 0x1234);
	assert_true(m.recursion_desired);
	assert_false(m.edns);
	assert_int_equal(m.udp_size, 512);
	assert_int_equal(m.type, 1);
	assert_string_equal(m.name.text, "www.example.com");
	assert_int_equal(m.question_length, 21);
	assert_memory_equal(m.question, NAME TAIL, 21);
}

static void test_flags(void **state)
{
	(void)state;
	struct query_message m;

	assert_int_equal(READ("\0\0\x01\x30\0\1\0\0\0\0\0\0" NAME TAIL, &m), QUERY_OK);
	assert_true(m.authentic_data);
	assert_true(m.checking_disabled);
	assert_int_equal(READ("\0\0\x00\x00\0\1\0\0\0\0\0\0" NAME TAIL, &m), QUERY_REFUSED);
	assert_int_equal(READ("\0\0\x81\x00\0\1\0\0\0\0\0\0" NAME TAIL, &m), QUERY_DROP);
	assert_int_equal(READ("\0\7\x21\x00\0\1\0\0\0\0\0\0" NAME TAIL, &m), QUERY_NOTIMP);
	assert_int_equal(m.opcode, 4);
	assert_int_equal(m.id, 7);
}

static void test_edns(void **state)
{
	(void)state;
	struct query_message m;
	static const char head[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01" NAME TAIL;
	char bytes[128];
	static const struct {
		const char *opt;
		size_t size;
		enum query_result result;
		uint16_t udp_size;
	} rows[] = {
		{OPT, 11, QUERY_OK, 1232},
		{"\0\0\051\2\0\0\0\0\0\0\0", 11, QUERY_OK, 512},
		{"\0\0\051\0\1\0\0\0\0\0\0", 11, QUERY_OK, 512},
		{"\0\0\051\4\0\0\0\0\0\0\0", 11, QUERY_OK, 1024},
		{"\0\0\051\4\0\0\1\0\0\0\0", 11, QUERY_BADVERS, 1024},
		{"\0\0\051\4\0\0\0\0\0\0\4\0\12\0\0", 15, QUERY_OK, 1024},
		{"\0\0\051\4\0\0\0\0\0\0\4\0\12\0\1", 15, QUERY_FORMERR,
		 512}, /* option past RDLENGTH */
		{"\0\0\051\4\0\0\0\0\0\0\3\0\12\0", 14, QUERY_FORMERR, 512},
		{"\0\0\051\4\0\0\0\0\0\0\1", 11, QUERY_FORMERR, 512},    /* RDLENGTH past the end */
		{"\1a\0\0\051\4\0\0\0\0\0\0\0", 13, QUERY_FORMERR, 512}, /* owner is not the root */
		{"\300\014\0\1\0\1\0\0\0\0\0\0", 12, QUERY_OK, 512}, /* another record: skipped */
		{"\0\0\051\4\0\0\0\0\0\0\0x", 12, QUERY_FORMERR, 1024}, /* trailing octet */
		{"\0\0\051\4\0\0\0\0\0\0", 10, QUERY_FORMERR, 512},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memcpy(bytes, head, sizeof(head) - 1);
		memcpy(bytes + sizeof(head) - 1, rows[i].opt, rows[i].size);
		assert_int_equal(read_text(bytes, sizeof(head) - 1 + rows[i].size, &m),
				 rows[i].result);
		assert_int_equal(m.udp_size, rows[i].udp_size);
	}
	assert_int_equal(
		READ("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x02" NAME TAIL OPT OPT, &m),
		QUERY_FORMERR);
	assert_int_equal(READ("\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01" NAME TAIL OPT, &m),
			 QUERY_OK);
	assert_true(m.dnssec_ok);
}

static void test_malformed(void **state)
{
	(void)state;
	struct query_message m;
	static const char whole[] = HEADER NAME TAIL;

	for (size_t size = 0; size < sizeof(whole) - 1; size++)
		assert_int_equal(read_text(whole, size, &m),
				 size < QUERY_HEADER_SIZE ? QUERY_DROP : QUERY_FORMERR);
	assert_int_equal(READ("\0\0\1\0\0\2\0\0\0\0\0\0" NAME TAIL NAME TAIL, &m), QUERY_FORMERR);
	assert_int_equal(READ("\0\0\1\0\0\0\0\0\0\0\0\0", &m), QUERY_FORMERR);
	assert_int_equal(READ("\0\0\1\0\0\1\0\1\0\0\0\0" NAME TAIL, &m), QUERY_FORMERR);
	assert_int_equal(READ("\0\0\1\0\0\1\0\0\0\1\0\0" NAME TAIL, &m), QUERY_FORMERR);
	assert_int_equal(READ("\0\0\1\0\0\1\0\0\0\0\0\11" NAME TAIL, &m), QUERY_FORMERR);
	assert_int_equal(READ(HEADER "\300\014" TAIL, &m), QUERY_FORMERR);
	assert_int_equal(READ(HEADER NAME TAIL "x", &m), QUERY_FORMERR);
	assert_int_equal(READ(HEADER NAME "\0\1\0\3", &m), QUERY_REFUSED);
}

static void test_odd_names(void **state)
{
	(void)state;
	struct query_message m;
	char text[QUERY_TEXT_SIZE];

	assert_int_equal(READ(HEADER "\005A b\"\0\003Com\0" TAIL, &m), QUERY_OK);
	assert_int_equal(m.name_error, NAME_BAD_BYTE);
	query_text(&m, text);
	assert_string_equal(text, "a\\032b\\034\\000.com.");
	assert_string_equal(query_canonical_end(&m).text, "com");

	assert_int_equal(READ(HEADER "\0" TAIL, &m), QUERY_OK);
	query_text(&m, text);
	assert_string_equal(text, ".");
	assert_int_equal(query_canonical_end(&m).length, 0);

	assert_int_equal(READ(HEADER NAME TAIL, &m), QUERY_OK);
	query_text(&m, text);
	assert_string_equal(text, "www.example.com.");
	assert_string_equal(query_canonical_end(&m).text, "www.example.com");
}

/* The longest name there is, every octet escaped, fits the text. */
static void test_longest_text(void **state)
{
	(void)state;
	struct query_message m;
	char text[QUERY_TEXT_SIZE];
	uint8_t bytes[QUERY_HEADER_SIZE + QUERY_QUESTION_MAX];
	static const uint8_t labels[] = {63, 63, 63, 61};
	size_t at = QUERY_HEADER_SIZE;

	memcpy(bytes, HEADER, QUERY_HEADER_SIZE);
	for (size_t i = 0; i < 4; i++) {
		bytes[at++] = labels[i];
		memset(bytes + at, 0xff, labels[i]);
		at += labels[i];
	}
	memcpy(bytes + at, "\0\0\1\0\1", 5);
	assert_int_equal(query_read(bytes, at + 5, &m), QUERY_OK);
	assert_int_equal(m.question_length, QUERY_QUESTION_MAX);
	query_text(&m, text);
	assert_int_equal(strlen(text), 250 * 4 + 4);
}

/* Random octets, and whole queries with octets changed: no crash, and only proper ones are taken.
 */
static void test_random(void **state)
{
	(void)state;
	static const char whole[] =
		"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01" NAME TAIL OPT;
	struct query_message m;

	srandom(1);
	for (int round = 0; round < 200000; round++) {
		char bytes[sizeof(whole)];
		memcpy(bytes, whole, sizeof(whole));
		for (long n = random() % 6; n > 0; n--)
			bytes[(size_t)random() % sizeof(whole)] = (char)random();
		if (round % 4 == 0)
			for (size_t i = 0; i < sizeof(bytes); i++)
				bytes[i] = (char)random();
		size_t size = (size_t)random() % (sizeof(whole) + 1);
		if (round % 2 == 0)
			size = sizeof(whole) - 1;
		enum query_result result = read_text(bytes, size, &m);
		if (result == QUERY_DROP)
			continue;
		char text[QUERY_TEXT_SIZE];
		if (m.question_length > 0) {
			assert_in_range(m.question_length, 5, QUERY_QUESTION_MAX);
			query_text(&m, text);
			assert_true(strlen(text) < QUERY_TEXT_SIZE);
			query_canonical_end(&m);
		}
		assert_in_range(m.udp_size, QUERY_UDP_SIZE_MIN, QUERY_UDP_SIZE_MAX);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),     cmocka_unit_test(test_flags),
		cmocka_unit_test(test_edns),      cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_odd_names), cmocka_unit_test(test_longest_text),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
