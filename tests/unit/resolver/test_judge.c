/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/resolver/wire.h"

static void read_lines(struct judge_answer *answer, uint16_t type, const char *const *lines)
{
	uint8_t bytes[4096];
	size_t size = wire_answer(bytes, lines);
	assert_int_equal(judge_read(bytes, size, type, answer), 0);
}

static const char *text_of(const struct address *address)
{
	static char text[ADDRESS_TEXT_SIZE];
	return address_format(address, text);
}

static void test_every_section(void **state)
{
	(void)state;
	struct judge_answer answer;
	static const char *const lines[] = {"qwww.example. IN A",
					    "awww.example. 300 IN CNAME a.example.",
					    "aa.example. 60 IN A 192.0.2.1",
					    "aa.example. 61 IN A 192.0.2.2",
					    "nexample. 60 IN NS ns.example.",
					    "xns.example. 60 IN A 10.0.0.1",
					    "xns.example. 60 IN AAAA fd00::1",
					    NULL};

	read_lines(&answer, QUERY_TYPE_A, lines);
	assert_false(answer.malformed);
	assert_int_equal(answer.address_count, 4);
	assert_string_equal(text_of(&answer.addresses[0]), "192.0.2.1");
	assert_string_equal(text_of(&answer.addresses[3]), "fd00::1");
	assert_int_equal(answer.target_count, 1);
	assert_string_equal(answer.targets[0].text, "a.example");
	assert_int_equal(answer.pin_count, 2);
	assert_int_equal(answer.pins[1].ttl, 61);
	judge_deinit(&answer);
}

static void test_hints(void **state)
{
	(void)state;
	struct judge_answer answer;
	static const char *const lines[] = {
		"qwww.example. IN HTTPS",
		"awww.example. 300 IN HTTPS 1 svc.example. alpn=h2 ipv4hint=192.0.2.1,10.0.0.1 "
		"ipv6hint=2001:db8::1",
		"awww.example. 300 IN HTTPS 2 . port=8443", NULL};

	read_lines(&answer, QUERY_TYPE_HTTPS, lines);
	assert_false(answer.malformed);
	assert_false(answer.has_ech);
	assert_int_equal(answer.hint_count, 3);
	assert_int_equal(answer.pin_count, 3);
	assert_int_equal(answer.target_count, 1);
	assert_string_equal(answer.targets[0].text, "svc.example");
	assert_string_equal(text_of(&answer.hints[1]), "10.0.0.1");
	judge_deinit(&answer);
}

static void test_strip_ech(void **state)
{
	(void)state;
	struct judge_answer answer;
	static const char *const lines[] = {
		"qwww.example. IN HTTPS",
		"awww.example. 300 IN HTTPS 1 . mandatory=alpn,ech alpn=h2 ech=AAAA "
		"ipv4hint=192.0.2.1",
		"awww.example. 300 IN HTTPS 2 . mandatory=ech ech=AAAA",
		"awww.example. 300 IN HTTPS 3 . alpn=h3",
		"awww.example. 300 IN RRSIG HTTPS 13 2 300 20300101000000 20200101000000 1 "
		"example. AAAA",
		NULL};

	read_lines(&answer, QUERY_TYPE_HTTPS, lines);
	assert_true(answer.has_ech);
	assert_int_equal(judge_strip_ech(&answer), 0);
	ldns_rr_list *list = judge_answer_section(&answer, QUERY_TYPE_HTTPS, true);
	char *text = ldns_rr_list2str(list);
	assert_string_equal(
		text,
		"www.example.\t300\tIN\tHTTPS\t1 . mandatory=alpn alpn=h2 ipv4hint=192.0.2.1\n"
		"www.example.\t300\tIN\tHTTPS\t2 .\n"
		"www.example.\t300\tIN\tHTTPS\t3 . alpn=h3\n");
	free(text);
	ldns_rr_list_free(list);
	judge_deinit(&answer);
}

static void test_sections_for_client(void **state)
{
	(void)state;
	struct judge_answer answer;
	static const char *const lines[] = {
		"qwww.example. IN A",
		"awww.example. 60 IN A 192.0.2.1",
		"awww.example. 60 IN RRSIG A 13 2 60 20300101000000 20200101000000 1 example. AAAA",
		"nexample. 60 IN NS ns.example.",
		"nexample. 60 IN RRSIG NS 13 1 60 20300101000000 20200101000000 1 example. AAAA",
		"nexample. 60 IN SOA a. b. 1 2 3 4 5",
		"nexample. 60 IN RRSIG SOA 13 1 60 20300101000000 20200101000000 1 example. AAAA",
		"na.example. 60 IN NSEC c.example. A",
		"xns.example. 60 IN A 192.0.2.9",
		NULL};

	read_lines(&answer, QUERY_TYPE_A, lines);
	static const struct {
		uint16_t type;
		bool dnssec_ok;
		size_t answers, authorities;
	} rows[] = {{1, false, 1, 1}, {1, true, 2, 3}, {46, false, 2, 1}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ldns_rr_list *list = judge_answer_section(&answer, rows[i].type, rows[i].dnssec_ok);
		assert_int_equal(ldns_rr_list_rr_count(list), rows[i].answers);
		ldns_rr_list_free(list);
		list = judge_authority_section(&answer, rows[i].dnssec_ok);
		assert_int_equal(ldns_rr_list_rr_count(list), rows[i].authorities);
		ldns_rr_list_free(list);
	}
	judge_deinit(&answer);
}

/* One question "a. TYPE", then one answer record of it with the RDATA given. */
static bool is_malformed(uint16_t type, uint16_t question, const char *data, size_t size)
{
	uint8_t bytes[512] = {0, 0, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0, 1, 'a', 0};
	struct judge_answer answer;
	size_t at = 15;

	bytes[at + 1] = (uint8_t)question;
	bytes[at + 3] = 1;
	at += 4;
	const uint8_t record[12] = {0xc0, 12, 0, (uint8_t)type, 0, 1, 0, 0,
				    0,    60, 0, (uint8_t)size};
	memcpy(bytes + at, record, sizeof(record));
	memcpy(bytes + at + sizeof(record), data, size);
	uint8_t *copy = malloc(at + sizeof(record) + size);
	memcpy(copy, bytes, at + sizeof(record) + size);
	assert_int_equal(judge_read(copy, at + sizeof(record) + size, question, &answer), 0);
	bool malformed = answer.malformed;
	judge_deinit(&answer);
	free(copy);
	return malformed;
}
#define MALFORMED(type, question, data) is_malformed(type, question, data, sizeof(data) - 1)

static void test_malformed_records(void **state)
{
	(void)state;
	assert_false(MALFORMED(1, 1, "\1\2\3\4"));
	assert_true(MALFORMED(1, 1, "\1\2\3"));
	assert_true(MALFORMED(1, 1, "\1\2\3\4\5"));
	assert_true(MALFORMED(1, 1, ""));
	assert_false(MALFORMED(28, 28, "0123456789abcdef"));
	assert_true(MALFORMED(28, 28, "0123456789abcde"));
	assert_true(MALFORMED(28, 28, "0123456789abcdefg"));
	/* CNAME: odd octets matter to hosts alone; junk behind the name matters always */
	assert_false(MALFORMED(5, 1, "\1b\0"));
	assert_true(MALFORMED(5, 1, "\4b/25\0"));
	assert_false(MALFORMED(5, 12, "\4b/25\0"));
	assert_true(MALFORMED(5, 12, "\1b\0x"));
	assert_true(MALFORMED(5, 1, "\1b"));
	assert_true(MALFORMED(5, 1, "\300\377"));
	assert_false(MALFORMED(5, 1, "\1b\300\014"));
	assert_true(MALFORMED(5, 1, "\300\037")); /* points at itself */
	/* SVCB: order, lengths, hints of whole addresses */
	assert_false(MALFORMED(65, 65, "\0\1\0"));
	assert_false(MALFORMED(65, 65, "\0\1\0\0\4\0\4\1\2\3\4"));
	assert_true(MALFORMED(65, 65, "\0\1\0\0\4\0\3\1\2\3"));
	assert_true(MALFORMED(65, 65, "\0\1\0\0\4\0\0"));
	assert_true(MALFORMED(65, 65, "\0\1\0\0\4\0\5\1\2\3\4"));
	assert_true(MALFORMED(65, 65, "\0\1\0\0\6\0\4\1\2\3\4"));
	assert_true(MALFORMED(65, 65, "\0\1\0\0\4\0\4\1\2\3\4\0\4\0\4\1\2\3\4"));
	assert_true(MALFORMED(65, 65, "\0\1\0\0\4\0\4\1\2\3\4\0\3\0\2\1\1"));
	assert_true(MALFORMED(65, 65, "\0\1"));
	assert_true(MALFORMED(64, 64, "\0\1\0\0"));
}

/* How long an answer is one, and what says that it is negative. */
static void test_life(void **state)
{
	(void)state;
	static const struct {
		const char *lines[5];
		uint32_t ttl;
		bool answered, has_soa;
	} rows[] = {
		{{"qa. IN A", "aa. 300 IN CNAME b.", "ab. 60 IN A 192.0.2.1",
		  "xc. 5 IN A 192.0.2.2"},
		 60,
		 true,
		 false},
		{{"qa. IN A", "aa. 300 IN CNAME b.", "n. 20 IN SOA a. b. 1 2 3 4 5"},
		 20,
		 false,
		 true},
		{{"qa. IN A", "aa. 0 IN A 192.0.2.1", "aa. 9 IN A 192.0.2.2"}, 0, true, false},
		{{"qa. IN A", "aa. 4294967295 IN A 192.0.2.1"}, 0, true, false},
		{{"qa. IN A", "aa. 2147483647 IN A 192.0.2.1"}, 2147483647, true, false},
		{{"qa. IN A"}, 0, false, false},
		{{"qa. IN A", "na. 7 IN NS b."}, 7, false, false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct judge_answer answer;
		read_lines(&answer, QUERY_TYPE_A, rows[i].lines);
		assert_int_equal(answer.ttl, rows[i].ttl);
		assert_int_equal(answer.answered, rows[i].answered);
		assert_int_equal(answer.has_soa, rows[i].has_soa);
		judge_deinit(&answer);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_section),
		cmocka_unit_test(test_hints),
		cmocka_unit_test(test_strip_ech),
		cmocka_unit_test(test_sections_for_client),
		cmocka_unit_test(test_malformed_records),
		cmocka_unit_test(test_life),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
