/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "address.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

static void addresses_parse_strictly(void **state)
{
	(void)state;
	static const char *const good[][2] = {
		{"1.2.3.4", "1.2.3.4"},
		{"0.0.0.0", "0.0.0.0"},
		{"255.255.255.255", "255.255.255.255"},
		{"::", "::"},
		{"2001:DB8::1", "2001:db8::1"},
		{"::ffff:1.2.3.4", "::ffff:1.2.3.4"},
		{"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"}, /* RFC 5952 section 4.2.3 */
	};
	static const char *const bad[] = {"",          "1.2.3",        "01.2.3.4", "1.2.3.4.",
					  "1.2.3.256", "0x1.2.3.4",    " 1.2.3.4", "1.2.3.4 ",
					  ":::",       "fe80::1%eth0", "[::1]",    "1::2::3",
					  "12345::",   "example"};
	char text[ADDRESS_TEXT_SIZE];
	struct address address;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(address_parse(good[i][0], strlen(good[i][0]), &address), 0);
		assert_string_equal(address_format(&address, text), good[i][1]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		address = address_ipv4(9, 9, 9, 9);
		assert_int_equal(address_parse(bad[i], strlen(bad[i]), &address), -EINVAL);
		assert_string_equal(address_format(&address, text), "9.9.9.9");
	}
	assert_int_equal(address_parse("1.2.3.4\0", 8, &address), -EINVAL);
}

static void prefixes_have_no_host_bits(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int result;
		const char *shown;
	} rows[] = {
		{"10.0.0.0/8", 0, "10.0.0.0/8"}, {"10.0.0.1", 0, "10.0.0.1/32"},
		{"0.0.0.0/0", 0, "0.0.0.0/0"},   {"fd00::/8", 0, "fd00::/8"},
		{"::1", 0, "::1/128"},           {"10.0.0.1/8", -ERANGE, NULL},
		{"10.0.0.0/33", -EINVAL, NULL},  {"10.0.0.0/", -EINVAL, NULL},
		{"10.0.0.0/08", -EINVAL, NULL},  {"10.0.0.0/-1", -EINVAL, NULL},
		{"fd00::/129", -EINVAL, NULL},   {"fd00::1/64", -ERANGE, NULL},
		{"10.0.0.0/8/8", -EINVAL, NULL}, {"10/8", -EINVAL, NULL},
	};
	char text[ADDRESS_TEXT_SIZE];
	struct prefix prefix;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(prefix_parse(rows[i].text, strlen(rows[i].text), &prefix),
				 rows[i].result);
		if (rows[i].shown != NULL)
			assert_string_equal(prefix_format(&prefix, text), rows[i].shown);
	}
}

/* prefix_contains against a bit-by-bit oracle, every length of both families. */
static void containment_is_exact(void **state)
{
	(void)state;
	struct address base[2] = {address_ipv4(0xa5, 0x5a, 0xc3, 0x3c)};
	static const uint8_t v6[16] = {0x20, 1,    0xd,  0xb8, 0xa5, 0x5a, 0xc3, 0x3c,
				       0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88};
	base[1] = address_from_bytes(v6, 16);

	for (int f = 0; f < 2; f++) {
		for (unsigned length = 0; length <= address_bits(&base[f]); length++) {
			struct prefix prefix = {.address = base[f], .length = (uint8_t)length};
			for (unsigned bit = length; bit < address_bits(&base[f]); bit++)
				prefix.address.bytes[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
			assert_true(prefix_contains(&prefix, &base[f]));
			for (unsigned bit = 0; bit < address_bits(&base[f]); bit++) {
				struct address other = base[f];
				other.bytes[bit / 8] ^= (uint8_t)(0x80u >> bit % 8);
				assert_int_equal(prefix_contains(&prefix, &other), bit >= length);
			}
			assert_false(prefix_contains(&prefix, &base[1 - f]));
		}
	}
}

static void endpoints_parse(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		char separator;
		uint16_t default_port;
		const char *shown; /* NULL: refused */
	} rows[] = {
		{"1.2.3.4:80", ':', 0, "1.2.3.4:80"},
		{"1.2.3.4", ':', 53, "1.2.3.4:53"},
		{"1.2.3.4", ':', 0, NULL},
		{"[::1]:3000", ':', 0, "[::1]:3000"},
		{"[::1]", ':', 53, "[::1]:53"},
		{"::1", ':', 53, "[::1]:53"},
		{"::1@5353", '@', 53, "[::1]:5353"},
		{"127.0.0.1@53", '@', 53, "127.0.0.1:53"},
		{"127.0.0.1@", '@', 53, NULL},
		{"127.0.0.1@0", '@', 53, NULL},
		{"127.0.0.1@65536", '@', 53, NULL},
		{"127.0.0.1@053", '@', 53, NULL},
		{"[127.0.0.1]:80", ':', 0, NULL},
		{"[::1]80", ':', 0, NULL},
		{"[::1", ':', 53, NULL},
		{"", ':', 53, NULL},
	};
	char text[ADDRESS_TEXT_SIZE];
	struct endpoint endpoint;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc = endpoint_parse(rows[i].text, strlen(rows[i].text), rows[i].separator,
					rows[i].default_port, &endpoint);
		assert_int_equal(rc, rows[i].shown == NULL ? -EINVAL : 0);
		if (rows[i].shown != NULL)
			assert_string_equal(endpoint_format(&endpoint, text), rows[i].shown);
	}
}

static void sockaddrs_round_trip(void **state)
{
	(void)state;
	static const char *const texts[] = {"1.2.3.4:80", "[2001:db8::1]:443"};
	struct endpoint endpoint, back;
	struct sockaddr_storage sockaddr;

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(endpoint_parse(texts[i], strlen(texts[i]), ':', 0, &endpoint), 0);
		assert_true(endpoint_to_sockaddr(&endpoint, &sockaddr) > 0);
		assert_int_equal(endpoint_from_sockaddr((struct sockaddr *)&sockaddr, &back), 0);
		assert_true(address_equal(&endpoint.address, &back.address));
		assert_int_equal(endpoint.port, back.port);
	}
	/* a mapped address is the IPv4 address */
	assert_int_equal(endpoint_parse("[::ffff:1.2.3.4]:5", 18, ':', 0, &endpoint), 0);
	endpoint_to_sockaddr(&endpoint, &sockaddr);
	assert_int_equal(endpoint_from_sockaddr((struct sockaddr *)&sockaddr, &back), 0);
	assert_int_equal(back.address.family, ADDRESS_IPV4);
	sockaddr.ss_family = AF_UNIX;
	assert_int_equal(endpoint_from_sockaddr((struct sockaddr *)&sockaddr, &back),
			 -EAFNOSUPPORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_parse_strictly),
		cmocka_unit_test(prefixes_have_no_host_bits),
		cmocka_unit_test(containment_is_exact),
		cmocka_unit_test(endpoints_parse),
		cmocka_unit_test(sockaddrs_round_trip),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
