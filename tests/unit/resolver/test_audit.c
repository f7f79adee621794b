/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/audit.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const uint8_t seed[16] = "resolver audits";

static struct client_key client(uint8_t number)
{
	struct address address = address_ipv4(192, 0, 2, number);
	return client_key_of_address(&address);
}

static uint32_t receive(int fd)
{
	struct message message;
	assert_int_equal(message_receive(fd, &message, MSG_DONTWAIT), 1);
	assert_int_equal(message.type, MESSAGE_AUDIT);
	return message.body.audit.suppressed;
}

static void test_notice(void **state)
{
	(void)state;
	struct message message;
	uint64_t now = 1;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	struct audit *audit = audit_new(pair[0], seed);
	assert_int_equal(audit_notice(audit, now, "%s is lost", "a.example"), 0);
	assert_int_equal(message_receive(pair[1], &message, MSG_DONTWAIT), 1);
	assert_int_equal(message.type, MESSAGE_NOTICE);
	assert_string_equal(message.body.notice.text, "a.example is lost");
	assert_int_equal(audit_notice(audit, now + AUDIT_NOTICE_MS - 1, "again"), -EDQUOT);
	assert_int_equal(message_receive(pair[1], &message, MSG_DONTWAIT), -EAGAIN);
	assert_int_equal(audit_notice(audit, now + AUDIT_NOTICE_MS, "%1000d", 1), 0);
	assert_int_equal(message_receive(pair[1], &message, MSG_DONTWAIT), 1);
	assert_int_equal(strlen(message.body.notice.text), sizeof(message.body.notice.text) - 1);
	/* one that did not arrive may be told again */
	close(pair[1]);
	now += 2 * AUDIT_NOTICE_MS;
	assert_int_equal(audit_notice(audit, now, "lost"), -EPIPE);
	assert_int_equal(audit_notice(audit, now, "lost"), -EPIPE);
	audit_free(audit);
	close(pair[0]);
}

static void test_limit(void **state)
{
	(void)state;
	struct audit_record record = {.reason = REASON_METADATA};
	struct client_key first = client(1), second = client(2);
	uint64_t now = 1000000;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	struct audit *audit = audit_new(pair[0], seed);
	for (unsigned i = 0; i < AUDIT_BURST; i++) {
		assert_int_equal(audit_send(audit, &first, &record, now), 0);
		assert_int_equal(receive(pair[1]), 0);
	}
	for (unsigned i = 0; i < 7; i++)
		assert_int_equal(audit_send(audit, &first, &record, now), -EDQUOT);
	/* another client and another reason have limits of their own */
	assert_int_equal(audit_send(audit, &second, &record, now), 0);
	assert_int_equal(receive(pair[1]), 0);
	record.reason = REASON_REBINDING;
	assert_int_equal(audit_send(audit, &first, &record, now), 0);
	assert_int_equal(receive(pair[1]), 0);
	/* time earns tokens, and the next record tells of the ones left out, once */
	record.reason = REASON_METADATA;
	now += 2 * 1000 / AUDIT_PER_SECOND;
	assert_int_equal(audit_send(audit, &first, &record, now), 0);
	assert_int_equal(receive(pair[1]), 7);
	assert_int_equal(audit_send(audit, &first, &record, now), 0);
	assert_int_equal(receive(pair[1]), 0);
	assert_int_equal(audit_send(audit, &first, &record, now), -EDQUOT);
	/* a long rest earns no more than a burst */
	now += 1000000;
	for (unsigned i = 0; i < AUDIT_BURST; i++) {
		assert_int_equal(audit_send(audit, &first, &record, now), 0);
		receive(pair[1]);
	}
	assert_int_equal(audit_send(audit, &first, &record, now), -EDQUOT);
	audit_free(audit);
	close(pair[0]);
	close(pair[1]);
}

/* A parent that does not read costs records and never blocks. */
static void test_never_blocks(void **state)
{
	(void)state;
	struct audit_record record = {.reason = REASON_METADATA};
	int pair[2], error = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	struct audit *audit = audit_new(pair[0], seed);
	for (unsigned i = 0; i < 100000 && error == 0; i++) {
		struct client_key key = client((uint8_t)i);
		error = audit_send(audit, &key, &record, i * 1000ull);
	}
	assert_int_equal(error, -EAGAIN);
	close(pair[1]);
	struct client_key key = client(1);
	record.reason = REASON_SELF;
	error = audit_send(audit, &key, &record, 1);
	assert_true(error == -EPIPE || error == -ECONNRESET);
	audit_free(audit);
	close(pair[0]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_notice),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_never_blocks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
