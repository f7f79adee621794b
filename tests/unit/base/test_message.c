/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static int pair[2];

static int open_pair(void **state)
{
	(void)state;
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int close_pair(void **state)
{
	(void)state;
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static int count_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

static void messages_arrive_whole(void **state)
{
	(void)state;
	union message_body body = {.start = {.generation = 7, .uid = 1, .gid = 2}};
	int fds[3] = {0, 0, 0};
	static struct message message;

	assert_int_equal(message_send(pair[0], MESSAGE_START, &body, fds, 3, 0), 0);
	assert_int_equal(message_receive(pair[1], &message, 0), 1);
	assert_int_equal(message.type, MESSAGE_START);
	assert_int_equal(message.fd_count, 3);
	assert_int_equal(message.body.start.generation, 7);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fcntl(message.fds[i], F_GETFD), FD_CLOEXEC);
		close(message.fds[i]);
	}
	assert_int_equal(message_send(pair[0], MESSAGE_READY, NULL, NULL, 0, 0), 0);
	assert_int_equal(message_receive(pair[1], &message, 0), 1);
	assert_int_equal(message.type, MESSAGE_READY);
	assert_int_equal(message_receive(pair[1], &message, MSG_DONTWAIT), -EAGAIN);
	close(pair[0]);
	assert_int_equal(message_receive(pair[1], &message, 0), 0);
	pair[0] = dup(pair[1]);
}

static void wrong_shapes_are_not_sent(void **state)
{
	(void)state;
	union message_body body = {0};
	int fds[3] = {0, 0, 0};

	assert_int_equal(message_send(pair[0], MESSAGE_START, &body, fds, 2, 0), -EINVAL);
	assert_int_equal(message_send(pair[0], MESSAGE_READY, NULL, fds, 1, 0), -EINVAL);
	assert_int_equal(message_send(pair[0], 0, &body, NULL, 0, 0), -EINVAL);
	assert_int_equal(message_send(pair[0], MESSAGE_TYPE_COUNT, &body, NULL, 0, 0), -EINVAL);
}

/* Sends raw bytes with one descriptor and expects them to be refused and the descriptor closed. */
static void expect_junk(const void *bytes, size_t size)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct msghdr datagram = {.msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&datagram);
	static struct message message;
	int before = count_descriptors(), zero = 0;

	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(rights), &zero, sizeof(zero));
	assert_int_equal(sendmsg(pair[0], &datagram, 0), size);
	assert_int_equal(message_receive(pair[1], &message, 0), -EPROTO);
	assert_int_equal(count_descriptors(), before);
}

static void junk_is_refused_and_closed(void **state)
{
	(void)state;
	static const uint32_t rows[][2] = {
		{MESSAGE_READY, 0}, /* right, but for the descriptor */
		{MESSAGE_READY, 4},
		{0, 0},
		{MESSAGE_TYPE_COUNT, 0},
		{0xffffffff, 0xffffffff},
		{MESSAGE_STATUS, 0},
		{MESSAGE_RELOAD, 8}, /* announces a body that is not there */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_junk(rows[i], sizeof(rows[i]));
	expect_junk("x", 1);
	expect_junk("1234567", 7);
	static uint8_t large[sizeof(union message_body) + 64];
	expect_junk(large, sizeof(large));
}

static void counters_have_texts(void **state)
{
	(void)state;
	for (int i = 0; i < COUNTER_COUNT; i++)
		assert_string_not_equal(counter_text((enum counter)i), "?");
	assert_string_equal(counter_text(COUNTER_COUNT), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(messages_arrive_whole, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(wrong_shapes_are_not_sent, open_pair, close_pair),
		cmocka_unit_test_setup_teardown(junk_is_refused_and_closed, open_pair, close_pair),
		cmocka_unit_test(counters_have_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
