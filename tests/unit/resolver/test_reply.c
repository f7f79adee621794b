/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/reply.h"

#include <ldns/ldns.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static uint8_t bytes[REPLY_SIZE_MAX];

#define QUESTION     "\003wWw\007exaMple\000\000\001\000\001"
#define QUESTION_LEN 17
#define PLAIN        "\x12\x34\x01\x30\x00\x01\x00\x00\x00\x00\x00\x00" QUESTION
#define EDNS                                                                                       \
	"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01" QUESTION "\0\0\051\4\320\0\0\200\0\0\0"

static void read_query(struct query_message *query, const char *text, size_t size)
{
	assert_int_equal(query_read((const uint8_t *)text, size, query), QUERY_OK);
}

static void test_refusal(void **state)
{
	(void)state;
	struct query_message query;
	struct reply reply;
	ldns_pkt *packet;

	read_query(&query, EDNS, sizeof(EDNS) - 1);
	reply_begin(&reply, &query, bytes, RCODE_NXDOMAIN);
	reply_soa(&reply, REPLY_REFUSAL_TTL);
	reply.ede = EDE_BLOCKED;
	reply.ede_text = "rebinding";
	size_t size = reply_finish(&reply, 1232);

	assert_memory_equal(bytes, "\x12\x34\x81\x83\0\1\0\0\0\1\0\1" QUESTION, 12 + QUESTION_LEN);
	assert_memory_equal(bytes + size - 15, "\0\17\0\13\0\17rebinding", 15);
	assert_int_equal(ldns_wire2pkt(&packet, bytes, size), LDNS_STATUS_OK);
	ldns_rr *soa = ldns_rr_list_rr(ldns_pkt_authority(packet), 0);
	char *text = ldns_rr2str(soa);
	assert_string_equal(
		text, "exaMple.\t10\tIN\tSOA\tlocalhost. nobody.invalid. 1 3600 1200 604800 10\n");
	LDNS_FREE(text);
	assert_true(ldns_pkt_edns(packet));
	assert_true(ldns_pkt_edns_do(packet));
	assert_int_equal(ldns_pkt_edns_udp_size(packet), 1232);
	ldns_pkt_free(packet);
}

static void test_without_edns(void **state)
{
	(void)state;
	struct query_message query;
	struct reply reply;

	read_query(&query, PLAIN, sizeof(PLAIN) - 1);
	reply_begin(&reply, &query, bytes, RCODE_SERVFAIL);
	reply.ede = EDE_DNSSEC_BOGUS;
	reply.ede_text = "why";
	reply.authentic = true;
	assert_int_equal(reply_finish(&reply, 512), 12 + QUESTION_LEN);
	/* QR RD RA AD CD, SERVFAIL; nothing additional */
	assert_memory_equal(bytes, "\x12\x34\x81\xb2\0\1\0\0\0\0\0\0", 12);
}

static void test_badvers(void **state)
{
	(void)state;
	struct query_message query;
	struct reply reply;
	static const char text[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x01" QUESTION
				   "\0\0\051\4\320\0\1\0\0\0\0";

	assert_int_equal(query_read((const uint8_t *)text, sizeof(text) - 1, &query),
			 QUERY_BADVERS);
	reply_begin(&reply, &query, bytes, RCODE_BADVERS);
	size_t size = reply_finish(&reply, 512);
	assert_int_equal(bytes[3] & 15, 0);
	assert_memory_equal(bytes + size - 11, "\0\0\051\4\320\1\0\0\0\0\0", 11);
}

static void test_addresses(void **state)
{
	(void)state;
	struct query_message query;
	struct reply reply;
	struct address address = address_ipv4(192, 0, 2, 1);

	read_query(&query, PLAIN, sizeof(PLAIN) - 1);
	reply_begin(&reply, &query, bytes, RCODE_NOERROR);
	reply_address(&reply, &address, 60);
	assert_int_equal(reply_finish(&reply, 512), 12 + QUESTION_LEN + 16);
	assert_memory_equal(bytes + 12 + QUESTION_LEN, "\300\014\0\1\0\1\0\0\0\074\0\4\300\0\2\1",
			    16);
}

/* What does not fit leaves the question alone and TC; what fits exactly is whole. */
static void test_truncation(void **state)
{
	(void)state;
	struct query_message query;
	struct reply reply;
	struct address address = address_ipv4(192, 0, 2, 1);

	read_query(&query, EDNS, sizeof(EDNS) - 1);
	for (size_t limit = 400; limit < 500; limit++) {
		reply_begin(&reply, &query, bytes, RCODE_NOERROR);
		for (int i = 0; i < 25; i++)
			reply_address(&reply, &address, 60);
		reply.authentic = true;
		size_t whole = 12 + QUESTION_LEN + 25 * 16 + 11;
		size_t size = reply_finish(&reply, limit);
		bool cut = whole > limit;
		assert_int_equal(size, cut ? 12 + QUESTION_LEN + 11 : whole);
		assert_int_equal(bytes[2] & 2, cut ? 2 : 0);
		assert_int_equal(bytes[3] & 0x20, cut ? 0 : 0x20);
		assert_int_equal(bytes[7], cut ? 0 : 25);
		assert_int_equal(bytes[11], 1);
	}
}

static void test_over_64k(void **state)
{
	(void)state;
	struct query_message query;
	struct reply reply;
	struct address address = address_ipv4(192, 0, 2, 1);

	read_query(&query, PLAIN, sizeof(PLAIN) - 1);
	reply_begin(&reply, &query, bytes, RCODE_NOERROR);
	for (int i = 0; i < 5000; i++)
		reply_address(&reply, &address, 60);
	assert_int_equal(reply_finish(&reply, 65535), 12 + QUESTION_LEN);
	assert_int_equal(bytes[2] & 2, 2);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusal),    cmocka_unit_test(test_without_edns),
		cmocka_unit_test(test_badvers),    cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_truncation), cmocka_unit_test(test_over_64k),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
