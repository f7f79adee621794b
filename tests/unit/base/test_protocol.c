/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/protocol.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void test_every_protocol_comes_back(void **state)
{
	char buffer[PROTOCOL_TEXT_SIZE];

	(void)state;
	for (unsigned protocol = 0; protocol <= UINT8_MAX; protocol++) {
		uint8_t again = (uint8_t)~protocol;
		const char *text = protocol_text((uint8_t)protocol, buffer);
		assert_int_equal(protocol_parse(text, &again), 0);
		assert_int_equal(again, protocol);
	}
	assert_string_equal(protocol_text(6, buffer), "tcp");
	assert_string_equal(protocol_text(17, buffer), "udp");
	assert_string_equal(protocol_text(1, buffer), "icmp");
	assert_string_equal(protocol_text(58, buffer), "icmpv6");
	assert_string_equal(protocol_text(132, buffer), "132");
}

static void test_what_is_none(void **state)
{
	static const char *const bad[] = {"", "TCP", "tcp ", "256", "6x", "-1"};
	uint8_t protocol = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(protocol_parse(bad[i], &protocol), -EINVAL);
	assert_int_equal(protocol, 77);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_protocol_comes_back),
		cmocka_unit_test(test_what_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
