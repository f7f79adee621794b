/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "resolver/query.h"
#include "resolver/reply.h"

/* A message from records in presentation form, a section mark ('q', 'a', 'n', 'x') before each. */
static size_t make(uint8_t *out, const char *const *lines)
{
	ldns_pkt *packet = ldns_pkt_new();
	uint8_t *wire;
	size_t size;

	for (; *lines != NULL; lines++) {
		ldns_rr *rr;
		bool question = (*lines)[0] == 'q';
		assert_int_equal(question
					 ? ldns_rr_new_question_frm_str(&rr, *lines + 1, NULL, NULL)
					 : ldns_rr_new_frm_str(&rr, *lines + 1, 0, NULL, NULL),
				 LDNS_STATUS_OK);
		ldns_pkt_push_rr(packet,
				 question             ? LDNS_SECTION_QUESTION
				 : (*lines)[0] == 'a' ? LDNS_SECTION_ANSWER
				 : (*lines)[0] == 'n' ? LDNS_SECTION_AUTHORITY
						      : LDNS_SECTION_ADDITIONAL,
				 rr);
	}
	assert_int_equal(ldns_pkt2wire(&wire, packet, &size), LDNS_STATUS_OK);
	memcpy(out, wire, size);
	LDNS_FREE(wire);
	ldns_pkt_free(packet);
	return size;
}

static void read_lines(struct judge_answer *answer, uint16_t type, const char *const *lines)
{
	uint8_t bytes[4096];
	size_t size = make(bytes, lines);
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

/* Whole answers with octets changed and cut short: no crash, all that was read can be written. */
static void test_random(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"qwww.example. IN HTTPS",
		"awww.example. 300 IN CNAME b.example.",
		"ab.example. 300 IN HTTPS 1 svc.example. alpn=h2 ech=AAAA ipv4hint=192.0.2.1",
		"ab.example. 60 IN A 192.0.2.1",
		"ab.example. 60 IN AAAA 2001:db8::1",
		"nexample. 60 IN SOA a. b. 1 2 3 4 5",
		"xns.example. 60 IN A 10.0.0.1",
		NULL};
	static uint8_t reply_bytes[REPLY_SIZE_MAX];
	uint8_t whole[4096], bytes[4096];
	size_t size = make(whole, lines);
	struct query_message query;

	static const uint8_t question[] = "\0\1\1\0\0\1\0\0\0\0\0\0\3www\7example\0\0\101\0\1";
	assert_int_equal(query_read(question, sizeof(question) - 1, &query), QUERY_OK);
	srandom(2);
	for (int round = 0; round < 20000; round++) {
		struct judge_answer answer;
		size_t length = round % 3 == 0 ? (size_t)random() % (size + 1) : size;
		memcpy(bytes, whole, size);
		for (long n = random() % 8; n > 0; n--)
			bytes[(size_t)random() % size] = (uint8_t)random();
		uint8_t *copy = malloc(length == 0 ? 1 : length);
		memcpy(copy, bytes, length);
		assert_int_equal(judge_read(copy, length, QUERY_TYPE_HTTPS, &answer), 0);
		free(copy);
		if (answer.packet != NULL) {
			assert_int_equal(judge_strip_ech(&answer), 0);
			ldns_rr_list *a = judge_answer_section(&answer, QUERY_TYPE_HTTPS, true);
			ldns_rr_list *n = judge_authority_section(&answer, true);
			struct reply reply;
			reply_begin(&reply, &query, reply_bytes, RCODE_NOERROR);
			if (reply_records(&reply, a, n) == 0)
				assert_in_range(reply_finish(&reply, 1232), 12, 1232);
			ldns_rr_list_free(a);
			ldns_rr_list_free(n);
		}
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
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
