/* SPDX-License-Identifier: GPL-2.0-or-later */

/* This program has the guard's connect(), sendto() and sendmsg(), as pinfold-resolver has. */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unbound.h>
#include <unistd.h>

#include <cmocka.h>

#include "resolver/upstream.h"

static int try_connect(int fd, const struct sockaddr *address, socklen_t length)
{
	return connect(fd, address, length) == 0 ? 0 : errno;
}

static int try_sendto(int fd, const struct sockaddr *address, socklen_t length)
{
	return sendto(fd, "x", 1, 0, address, length) == 1 ? 0 : errno;
}

static int try_sendmsg(int fd, const struct sockaddr *address, socklen_t length)
{
	char byte = 'x';
	struct iovec part = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_name = (void *)(uintptr_t)address,
				 .msg_namelen = length,
				 .msg_iov = &part,
				 .msg_iovlen = 1};
	return sendmsg(fd, &message, 0) == 1 ? 0 : errno;
}

static int (*const calls[])(int, const struct sockaddr *, socklen_t) = {try_connect, try_sendto,
									try_sendmsg};

/* What each call says to SERVER; they must agree. */
static int say(const char *server)
{
	struct endpoint endpoint;
	struct sockaddr_storage address;
	int result = 0;

	assert_int_equal(endpoint_parse(server, strlen(server), '@', 53, &endpoint), 0);
	unsigned length = endpoint_to_sockaddr(&endpoint, &address);
	for (size_t i = 0; i < 3; i++) {
		int fd = socket(address.ss_family, SOCK_DGRAM, 0);
		int got = calls[i](fd, (struct sockaddr *)&address, length);
		close(fd);
		if (i > 0)
			assert_int_equal(got == EACCES, result == EACCES);
		result = got;
	}
	return result;
}

static void test_guard(void **state)
{
	(void)state;
	struct resolver_settings *settings = calloc(1, sizeof(*settings));
	struct upstream *upstream;
	char problem[256];

	/* no rule: nothing */
	guard_set(NULL);
	assert_int_equal(say("127.0.0.1@9"), EACCES);
	assert_int_equal(say("192.0.2.1"), EACCES);
	/* a forwarder on loopback and nothing else there */
	settings->zone_count = 1;
	settings->zones[0].count = 1;
	endpoint_parse("127.0.0.1@9", 11, '@', 53, &settings->zones[0].forwarders[0]);
	assert_int_equal(upstream_new(settings, &upstream, problem, sizeof(problem)), 0);
	guard_set(upstream);
	assert_int_not_equal(say("127.0.0.1@9"), EACCES);
	assert_int_equal(say("127.0.0.1@10"), EACCES);
	assert_int_equal(say("127.0.0.2@9"), EACCES);
	assert_int_equal(say("::1"), EACCES);
	assert_int_equal(say("::ffff:127.0.0.2"), EACCES);
	assert_int_equal(say("169.254.169.254"), EACCES);
	assert_int_equal(say("0.0.0.0"), EACCES);
	guard_set(NULL);
	upstream_free(upstream);
	free(settings);
}

/* Short and foreign addresses; calls without a destination. */
static void test_shapes(void **state)
{
	(void)state;
	struct sockaddr_in address = {.sin_family = AF_INET};
	struct sockaddr_un local = {.sun_family = AF_UNIX, .sun_path = "/nonexistent/socket"};
	int pair[2];

	guard_set(NULL);
	assert_int_equal(try_connect(-1, (struct sockaddr *)&address, 4), EACCES);
	assert_int_equal(try_connect(-1, (struct sockaddr *)&address, 1), EBADF);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(calls[i](pair[0], (struct sockaddr *)&local, sizeof(local)),
				 ENOENT);
	assert_int_equal(try_sendto(pair[0], NULL, 0), 0);
	assert_int_equal(try_sendmsg(pair[0], NULL, 0), 0);
	close(pair[0]);
	close(pair[1]);
}

/* libunbound's own calls end here: the dynamic linker finds ours first. */
static void test_comes_first(void **state)
{
	(void)state;
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "connect"), (void *)connect);
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "sendto"), (void *)sendto);
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "sendmsg"), (void *)sendmsg);
	Dl_info info;
	assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "connect"), &info), 0);
	assert_null(strstr(info.dli_fname, "libc.so"));
	assert_non_null(ub_version());
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guard),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_comes_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
