/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Hosts as clients spell them, against inet_aton(3) where it reads what a URL parser reads. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy.h"
#include "rules/names.h"

struct host_case {
	const char *text;
	enum host_kind kind;
	const char *value; /* canonical name, or address */
};

static const struct host_case cases[] = {
	{"example.com", HOST_NAME, "example.com"},
	{"ExAmPle.COM", HOST_NAME, "example.com"},
	{"example.com.", HOST_NAME, "example.com"},
	{"example.com..", HOST_MALFORMED, NULL},
	{".example.com", HOST_MALFORMED, NULL},
	{"a..b", HOST_MALFORMED, NULL},
	{"", HOST_MALFORMED, NULL},
	{".", HOST_MALFORMED, NULL},
	{"_dmarc.example.com", HOST_NAME, "_dmarc.example.com"},
	{"xn--bcher-kva.example", HOST_NAME, "xn--bcher-kva.example"},
	{"123.example.com", HOST_NAME, "123.example.com"},
	{"0x7f.example", HOST_NAME, "0x7f.example"},
	{"example.0xzz", HOST_NAME, "example.0xzz"},
	{"example.0xg", HOST_NAME, "example.0xg"},
	{"1.2.3.4", HOST_LITERAL, "1.2.3.4"},
	{"1.2.3.4.", HOST_LITERAL, "1.2.3.4"},
	{"1.2.3.4..", HOST_MALFORMED, NULL},
	{"1.2.3", HOST_LITERAL, "1.2.0.3"},
	{"1.2", HOST_LITERAL, "1.0.0.2"},
	{"127.1", HOST_LITERAL, "127.0.0.1"},
	{"0", HOST_LITERAL, "0.0.0.0"},
	{"00", HOST_LITERAL, "0.0.0.0"},
	{"0x", HOST_LITERAL, "0.0.0.0"},
	{"0X", HOST_LITERAL, "0.0.0.0"},
	{"1.0x", HOST_LITERAL, "1.0.0.0"},
	{"2852039166", HOST_LITERAL, "169.254.169.254"},
	{"0xa9fea9fe", HOST_LITERAL, "169.254.169.254"},
	{"0xA9FEA9FE", HOST_LITERAL, "169.254.169.254"},
	{"025177524776", HOST_LITERAL, "169.254.169.254"},
	{"0251.0376.0251.0376", HOST_LITERAL, "169.254.169.254"},
	{"0xa9.0376.43518", HOST_LITERAL, "169.254.169.254"},
	{"169.16689662", HOST_LITERAL, "169.254.169.254"},
	{"0000000000000000000000000000000000000000000000000251.254.169.254", HOST_LITERAL,
	 "169.254.169.254"},
	{"4294967295", HOST_LITERAL, "255.255.255.255"},
	{"4294967296", HOST_MALFORMED, NULL},
	{"99999999999999999999999999999999999999999999", HOST_MALFORMED, NULL},
	{"0xffffffffffffffffffffffffffffffff", HOST_MALFORMED, NULL},
	{"1.16777215", HOST_LITERAL, "1.255.255.255"},
	{"1.16777216", HOST_MALFORMED, NULL},
	{"1.2.65535", HOST_LITERAL, "1.2.255.255"},
	{"1.2.65536", HOST_MALFORMED, NULL},
	{"1.2.3.255", HOST_LITERAL, "1.2.3.255"},
	{"1.2.3.256", HOST_MALFORMED, NULL},
	{"256.2.3.4", HOST_MALFORMED, NULL},
	{"1.256.3.4", HOST_MALFORMED, NULL},
	{"1.2.3.4.5", HOST_MALFORMED, NULL},
	{"127.0.0.08", HOST_MALFORMED, NULL},
	{"09", HOST_MALFORMED, NULL},
	{"example.123", HOST_MALFORMED, NULL},
	{"example.0x", HOST_MALFORMED, NULL},
	{"example.0xf", HOST_MALFORMED, NULL},
	{"1..4", HOST_MALFORMED, NULL},
	{"-1", HOST_NAME, "-1"},
	{"1.2.3.+4", HOST_MALFORMED, NULL},
	{"1e3", HOST_NAME, "1e3"},
	{"[::1]", HOST_LITERAL, "::1"},
	{"[2001:DB8::A]", HOST_LITERAL, "2001:db8::a"},
	{"[::ffff:1.2.3.4]", HOST_LITERAL, "::ffff:1.2.3.4"},
	{"[1.2.3.4]", HOST_MALFORMED, NULL},
	{"[::1", HOST_MALFORMED, NULL},
	{"::1", HOST_MALFORMED, NULL},
	{"[]", HOST_MALFORMED, NULL},
	{"[fe80::1%eth0]", HOST_MALFORMED, NULL},
	{"[fe80::1%25eth0]", HOST_MALFORMED, NULL},
	{"[::1]x", HOST_MALFORMED, NULL},
	{"x[::1]", HOST_MALFORMED, NULL},
	{"[::127.0.0.01]", HOST_MALFORMED, NULL},
	{"169%2e254%2e169%2e254", HOST_MALFORMED, NULL},
	{"a%62c", HOST_MALFORMED, NULL},
	{"a b", HOST_MALFORMED, NULL},
	{"user@example.com", HOST_MALFORMED, NULL},
	{"example.com:80", HOST_MALFORMED, NULL},
	{"b\303\274cher.example", HOST_MALFORMED, NULL},
	{"1.2.3.4\n", HOST_MALFORMED, NULL},
	{"1.2.3.4 ", HOST_MALFORMED, NULL},
};

static void test_table(void **state)
{
	char buffer[ADDRESS_TEXT_SIZE];
	struct host host;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		host_parse(cases[i].text, strlen(cases[i].text), &host);
		if (host.kind != cases[i].kind)
			fail_msg("%s: kind %d, want %d", cases[i].text, host.kind, cases[i].kind);
		assert_int_equal(host.port, 0);
		if (host.kind == HOST_NAME)
			assert_string_equal(host.name.text, cases[i].value);
		else if (host.kind == HOST_LITERAL)
			assert_string_equal(address_format(&host.literal, buffer), cases[i].value);
	}
}

static void test_nul(void **state)
{
	struct host host;

	(void)state;
	host_parse("example\0.com", 12, &host);
	assert_int_equal(host.kind, HOST_MALFORMED);
	host_parse("1.2.3.4\0", 8, &host);
	assert_int_equal(host.kind, HOST_MALFORMED);
	host_parse("[::1\0]", 6, &host);
	assert_int_equal(host.kind, HOST_MALFORMED);
}

static void print_number(char *out, size_t size, uint32_t value)
{
	switch (random() % 4) {
	case 0:
		snprintf(out, size, "%u", value);
		break;
	case 1:
		snprintf(out, size, "0%o", value);
		break;
	case 2:
		snprintf(out, size, "0x%x", value);
		break;
	default:
		snprintf(out, size, "0X%X", value);
		break;
	}
}

/* Random numbers in random bases: what inet_aton accepts, the parser reads the same way. */
static void test_inet_aton(void **state)
{
	static const uint32_t limits[] = {0,     1,        9,        255,        256,       65535,
					  65536, 16777215, 16777216, 0x7fffffff, 0xffffffff};

	(void)state;
	srandom(1);
	for (int round = 0; round < 20000; round++) {
		char text[100] = "";
		int parts = (int)(random() % 5) + 1;
		for (int i = 0; i < parts; i++) {
			uint32_t limit = limits[random() % 11];
			size_t used = strlen(text);
			if (i > 0)
				text[used++] = '.';
			if (random() % 2 && limit > 0)
				limit = (uint32_t)random() % limit;
			print_number(text + used, sizeof(text) - used, limit);
		}
		struct in_addr want;
		struct host host;
		bool accepted = inet_aton(text, &want) == 1;
		host_parse(text, strlen(text), &host);
		if (accepted != (host.kind == HOST_LITERAL))
			fail_msg("%s: inet_aton says %d", text, accepted);
		if (accepted && memcmp(&want, host.literal.bytes, 4) != 0)
			fail_msg("%s: another address", text);
	}
}

static void test_ends_in_number(void **state)
{
	static const char *const yes[] = {"1",    "1.",    "a.1",    "a.0x",    "a.0xf", "a.0XF.",
					  "a.00", "a.099", "a.b.1.", "1.2.3.4", "a.0x0", "0x"};
	static const char *const no[] = {"",      ".",     "a",   "a.b", "1.a",  "a.1a",
					 "a.1.b", "a.0xg", "a..", "1..", "a.x1", "a.1-"};

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!names_ends_in_number(yes[i], strlen(yes[i])))
			fail_msg("%s ends in a number", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (names_ends_in_number(no[i], strlen(no[i])))
			fail_msg("%s ends in no number", no[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_inet_aton),
		cmocka_unit_test(test_ends_in_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
