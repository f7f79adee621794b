/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/stored.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/resolver/wire.h"

static uint8_t fresh[REPLY_SIZE_MAX], kept[REPLY_SIZE_MAX];

/* A signed answer with something of everything. */
static const char *const service[] = {
	"qwww.example. IN HTTPS",
	"awww.example. 300 IN CNAME b.example.",
	"ab.example. 200 IN HTTPS 1 svc.example. alpn=h2 ech=AAAA ipv4hint=192.0.2.1",
	"ab.example. 200 IN RRSIG HTTPS 13 2 300 20300101000000 20200101000000 1 example. AAAA",
	"ab.example. 60 IN A 192.0.2.1",
	"nexample. 90 IN SOA a. b. 1 2 3 4 5",
	"na.example. 90 IN NSEC c.example. A",
	"xns.example. 5 IN A 10.0.0.1",
	NULL};

static struct stored *make(const struct query_message *query, const uint8_t *wire, size_t size,
			   unsigned form, bool secure, uint64_t now)
{
	struct judge_answer answer;
	struct stored_key key;
	struct stored *stored = NULL;

	stored_key(query, form, &key);
	assert_int_equal(judge_read(wire, size, query->type, &answer), 0);
	if (answer.packet != NULL && (form & STORED_ECH) == 0)
		assert_int_equal(judge_strip_ech(&answer), 0);
	int error = stored_new(&key, &answer, secure, now, &stored);
	if (error != 0)
		assert_null(stored);
	judge_deinit(&answer);
	return stored;
}

static struct stored *make_lines(const struct query_message *query, const char *const *lines,
				 unsigned form)
{
	uint8_t wire[4096];
	size_t size = wire_answer(wire, lines);

	return make(query, wire, size, form, true, 1000);
}

static size_t reply_of(const struct query_message *query, const struct stored *stored, uint64_t now,
		       uint8_t *bytes)
{
	struct reply reply;

	reply_begin(&reply, query, bytes, (enum reply_rcode)stored->rcode);
	reply_stored(&reply, stored, stored_age(stored, now));
	return reply_finish(&reply, 1232);
}

static void test_key(void **state)
{
	(void)state;
	struct query_message query;
	struct stored_key key, other;

	wire_query(&query, "wWw.Example", 28, false, false);
	stored_key(&query, STORED_DNSSEC, &key);
	assert_int_equal(key.length, 16);
	assert_memory_equal(key.bytes, "\3www\7example\0\0\34\1", 16);
	wire_query(&query, "www.example", 28, true, true);
	stored_key(&query, STORED_DNSSEC, &other);
	assert_int_equal(other.length, key.length);
	assert_memory_equal(other.bytes, key.bytes, key.length);
	wire_query(&query, "", 2, false, false);
	stored_key(&query, 0, &key);
	assert_int_equal(key.length, 4);
	assert_memory_equal(key.bytes, "\0\0\2\0", 4);
	/* The type is octets and no letter, whatever its number. */
	wire_query(&query, "a", 'A', false, false);
	stored_key(&query, 0, &key);
	assert_memory_equal(key.bytes, "\1a\0\0A\0", 6);
}

static void test_parts(void **state)
{
	(void)state;
	struct query_message query;

	wire_query(&query, "www.example", QUERY_TYPE_HTTPS, true, true);
	struct stored *stored = make_lines(&query, service, STORED_DNSSEC | STORED_ECH);
	assert_int_equal(stored->answers, 4);
	assert_int_equal(stored->authorities, 2);
	assert_int_equal(stored->ttl_count, 6);
	assert_int_equal(stored->address_count, 2);
	assert_int_equal(stored->hint_count, 1);
	assert_int_equal(stored->target_count, 2);
	assert_string_equal(stored->targets[1].text, "svc.example");
	assert_int_equal(stored->pin_count, 2);
	assert_int_equal(stored->pins[0].ttl, 200);
	/* The shortest of the sections that are handed out, the additional one not. */
	assert_int_equal(stored->seconds, 60);
	assert_int_equal(stored->expiry, 61000);
	assert_false(stored->malformed);
	stored_unref(stored);

	stored = make_lines(&query, service, 0);
	assert_int_equal(stored->answers, 3);
	assert_int_equal(stored->authorities, 1);
	stored_unref(stored);
}

/* TTLs go down with the clock, in whole seconds, and the letters of the question stay the client's. */
static void test_ageing(void **state)
{
	(void)state;
	static const char *const lines[] = {"qwww.example. IN A", "awww.example. 60 IN A 192.0.2.1",
					    NULL};
	struct query_message query;

	wire_query(&query, "wWw.example", QUERY_TYPE_A, false, false);
	struct stored *stored = make_lines(&query, lines, 0);
	static const struct {
		uint64_t now;
		uint8_t ttl;
	} rows[] = {{0, 60},    {1000, 60}, {1999, 60}, {2000, 59},
		    {60999, 1}, {61000, 0}, {999999, 0}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t size = reply_of(&query, stored, rows[i].now, kept);
		assert_int_equal(size, 12 + 17 + 16);
		assert_memory_equal(kept,
				    "\x12\x34\x81\x80\0\1\0\1\0\0\0\0\3wWw\7example\0\0\1\0\1", 29);
		assert_memory_equal(kept + 29, "\300\014\0\1\0\1\0\0\0", 9);
		assert_int_equal(kept[38], rows[i].ttl);
		assert_memory_equal(kept + 39, "\0\4\300\0\2\1", 6);
	}
	stored_unref(stored);
}

static void test_stale(void **state)
{
	(void)state;
	struct query_message query;
	struct reply reply;

	wire_query(&query, "www.example", QUERY_TYPE_HTTPS, false, false);
	struct stored *stored = make_lines(&query, service, STORED_DNSSEC);
	reply_begin(&reply, &query, kept, RCODE_NOERROR);
	reply_stale(&reply, stored);
	size_t size = reply_finish(&reply, 1232);
	ldns_pkt *packet;
	assert_int_equal(ldns_wire2pkt(&packet, kept, size), LDNS_STATUS_OK);
	ldns_rr_list *list = ldns_pkt_all_noquestion(packet);
	assert_int_equal(ldns_rr_list_rr_count(list), stored->ttl_count);
	for (size_t i = 0; i < ldns_rr_list_rr_count(list); i++)
		assert_int_equal(ldns_rr_ttl(ldns_rr_list_rr(list, i)), REPLY_STALE_TTL);
	ldns_rr_list_deep_free(list);
	ldns_pkt_free(packet);
	stored_unref(stored);
}

/* What must not be kept: TTL 0, negative answers without a SOA, what could not be read. */
static void test_life(void **state)
{
	(void)state;
	static const struct {
		const char *lines[4];
		uint32_t seconds;
	} rows[] = {
		{{"qa. IN A", "aa. 7 IN A 192.0.2.1"}, 7},
		{{"qa. IN A", "aa. 0 IN A 192.0.2.1"}, 0},
		{{"qa. IN A", "aa. 7 IN CNAME b."}, 0},
		{{"qa. IN A", "aa. 7 IN CNAME b.", "n. 5 IN SOA a. b. 1 2 3 4 5"}, 5},
		{{"qa. IN A", "n. 9 IN SOA a. b. 1 2 3 4 5"}, 9},
		{{"qa. IN A", "nb. 9 IN NS c."}, 0},
		{{"qa. IN A"}, 0},
		{{"qa. IN A", "aa. 999999 IN A 192.0.2.1"}, STORED_SECONDS_MAX},
	};
	struct query_message query;

	wire_query(&query, "a", QUERY_TYPE_A, false, false);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct stored *stored = make_lines(&query, rows[i].lines, 0);
		assert_int_equal(stored->seconds, rows[i].seconds);
		assert_int_equal(stored->expiry, 1000 + rows[i].seconds * 1000);
		stored_unref(stored);
	}
	struct stored *stored =
		make(&query, (const uint8_t *)"\0\0\201\200\0\1\0\1\0\0\0\0", 12, 0, false, 1000);
	assert_false(stored->readable);
	assert_true(stored->malformed);
	assert_int_equal(stored->seconds, 0);
	stored_unref(stored);
}

static void test_failure(void **state)
{
	(void)state;
	struct query_message query;
	struct stored_key key;
	char text[300];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	wire_query(&query, "a", QUERY_TYPE_A, false, false);
	stored_key(&query, STORED_FAILURE, &key);
	struct stored *stored = stored_new_failure(&key, EDE_DNSSEC_BOGUS, text, 5, 1000);
	assert_true(stored->failure);
	assert_int_equal(strlen(stored->ede_text), REPLY_EDE_TEXT_MAX);
	assert_int_equal(stored->expiry, 6000);
	stored_unref(stored);
}

static void test_verdicts(void **state)
{
	(void)state;
	struct query_message query;
	static const char *const lines[] = {"qa. IN A", "aa. 7 IN A 192.0.2.1", NULL};

	wire_query(&query, "a", QUERY_TYPE_A, false, false);
	struct stored *stored = make_lines(&query, lines, 0);
	const struct stored_verdict verdict = {.generation = 3, .policy = 1, .permitted = true};
	assert_null(stored_verdict(stored, 3, 1, false));
	assert_null(stored_verdict(stored, 0, 0, false));
	stored_remember(stored, &verdict);
	assert_non_null(stored_verdict(stored, 3, 1, false));
	assert_null(stored_verdict(stored, 4, 1, false));
	assert_null(stored_verdict(stored, 3, 1, true));
	assert_null(stored_verdict(stored, 3, 1 + STORED_VERDICTS, false));
	assert_null(stored_verdict(stored, 3, 0, false));
	stored_unref(stored);
}

/*
 * The slow oracle: an answer as ldns writes it, straight from the message, with the question as the client
 * sent it and TTLs that are AGE seconds shorter.
 */
static size_t oracle(const struct query_message *query, const uint8_t *wire, size_t size,
		     unsigned form, uint32_t age, uint8_t *out)
{
	struct judge_answer answer;
	ldns_rr *question = NULL;
	uint8_t *bytes = NULL;
	size_t length = 0, position = 0;

	assert_int_equal(judge_read(wire, size, query->type, &answer), 0);
	if ((form & STORED_ECH) == 0)
		assert_int_equal(judge_strip_ech(&answer), 0);
	ldns_pkt *packet = ldns_pkt_new();
	assert_int_equal(ldns_wire2rr(&question, query->question, query->question_length, &position,
				      LDNS_SECTION_QUESTION),
			 LDNS_STATUS_OK);
	ldns_pkt_push_rr(packet, LDNS_SECTION_QUESTION, question);
	ldns_rr_list *lists[2] = {
		judge_answer_section(&answer, query->type, (form & STORED_DNSSEC) != 0),
		judge_authority_section(&answer, (form & STORED_DNSSEC) != 0)};
	for (int s = 0; s < 2; s++) {
		for (size_t i = 0; i < ldns_rr_list_rr_count(lists[s]); i++) {
			ldns_rr *rr = ldns_rr_clone(ldns_rr_list_rr(lists[s], i));
			uint32_t ttl = ldns_rr_ttl(rr);
			ldns_rr_set_ttl(rr, ttl > age ? ttl - age : 0);
			ldns_pkt_push_rr(packet,
					 s == 0 ? LDNS_SECTION_ANSWER : LDNS_SECTION_AUTHORITY, rr);
		}
		ldns_rr_list_free(lists[s]);
	}
	ldns_pkt_set_qr(packet, true);
	ldns_pkt_set_rd(packet, true);
	ldns_pkt_set_ra(packet, true);
	ldns_pkt_set_id(packet, query->id);
	ldns_pkt_set_rcode(packet, answer.rcode);
	assert_int_equal(ldns_pkt2wire(&bytes, packet, &length), LDNS_STATUS_OK);
	memcpy(out, bytes, length);
	LDNS_FREE(bytes);
	ldns_pkt_free(packet);
	judge_deinit(&answer);
	return length;
}

static size_t random_answer(uint8_t *wire)
{
	static const char *const hosts[] = {"www.example", "WWW.Example", "b.example",
					    "example",     "x.b.other",   "deep.er.b.example"};
	static const char *const data[] = {
		"A 192.0.2.1",
		"AAAA 2001:db8::1",
		"CNAME b.example.",
		"MX 5 www.example.",
		"TXT \"words\"",
		"HTTPS 1 b.example. alpn=h2 ech=AAAA",
		"RRSIG A 13 2 300 20300101000000 20200101000000 1 example. AAAA",
		"NSEC c.example. A",
		"SOA a.example. b. 1 2 3 4 5"};
	char text[16][160];
	const char *lines[17] = {"qwww.example. IN A"};
	size_t count = 1 + (size_t)random() % 12;

	for (size_t i = 0; i < count; i++) {
		snprintf(text[i], sizeof(text[i]), "%c%s. %ld IN %s", i < count / 2 ? 'a' : 'n',
			 hosts[random() % 6], random() % 4 == 0 ? random() % 9 : random() % 100000,
			 data[random() % 9]);
		lines[i + 1] = text[i];
	}
	lines[count + 1] = NULL;
	return wire_answer(wire, lines);
}

/* Fresh or kept, a reply is what the oracle writes, for every form, age and spelling. */
static void test_against_oracle(void **state)
{
	(void)state;
	static const char *const spellings[] = {"www.example", "WWW.EXAMPLE", "wWw.eXaMpLe"};
	static uint8_t wanted[REPLY_SIZE_MAX];
	uint8_t wire[4096];

	srandom(7);
	for (int round = 0; round < 1000; round++) {
		size_t size = random_answer(wire);
		unsigned form = (unsigned)random() % STORED_FORMS;
		uint32_t age = (uint32_t)(random() % 3 == 0 ? 0 : random() % 200000);
		struct query_message first, later;
		wire_query(&first, spellings[random() % 3], QUERY_TYPE_A, false, false);
		wire_query(&later, spellings[random() % 3], QUERY_TYPE_A, false, false);
		struct stored *stored = make(&first, wire, size, form, false, 1000);
		size_t length = oracle(&first, wire, size, form, 0, wanted);
		if (length <= 1232) {
			assert_int_equal(reply_of(&first, stored, 1000, fresh), length);
			assert_memory_equal(fresh, wanted, length);
			oracle(&later, wire, size, form, age, wanted);
			uint64_t now = 1000 + age * 1000ull + (uint64_t)random() % 1000;
			assert_int_equal(reply_of(&later, stored, now, kept), length);
			assert_memory_equal(kept, wanted, length);
		}
		stored_unref(stored);
	}
}

/* Whole answers with octets changed and cut short: no crash, and all that is made can be sent. */
static void test_random(void **state)
{
	(void)state;
	uint8_t whole[4096], bytes[4096];
	size_t size = wire_answer(whole, service);
	struct query_message query;

	wire_query(&query, "www.example", QUERY_TYPE_HTTPS, true, true);
	srandom(2);
	for (int round = 0; round < 4000; round++) {
		size_t length = round % 3 == 0 ? (size_t)random() % (size + 1) : size;
		memcpy(bytes, whole, size);
		for (long n = random() % 8; n > 0; n--)
			bytes[(size_t)random() % size] = (uint8_t)random();
		uint8_t *copy = malloc(length == 0 ? 1 : length);
		memcpy(copy, bytes, length);
		struct stored *stored =
			make(&query, copy, length, (unsigned)round % STORED_FORMS, false, 1000);
		free(copy);
		if (stored == NULL)
			continue;
		assert_in_range(reply_of(&query, stored, 5000, kept), 12, 1232);
		stored_unref(stored);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key),      cmocka_unit_test(test_parts),
		cmocka_unit_test(test_ageing),   cmocka_unit_test(test_life),
		cmocka_unit_test(test_failure),  cmocka_unit_test(test_stale),
		cmocka_unit_test(test_verdicts), cmocka_unit_test(test_against_oracle),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
