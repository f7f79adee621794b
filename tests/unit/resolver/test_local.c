/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/local.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "resolver/query.h"
#include "rules/source.h"

static struct name name_of(const char *text)
{
	struct name name;
	assert_int_equal(name_from_text(text, strlen(text), &name), NAME_OK);
	return name;
}

static void test_empty_zones(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum local_kind kind;
	} rows[] = {
		{"10.in-addr.arpa", LOCAL_NODATA},
		{"1.2.3.10.in-addr.arpa", LOCAL_NXDOMAIN},
		{"110.in-addr.arpa", LOCAL_NONE},
		{"11.in-addr.arpa", LOCAL_NONE},
		{"15.172.in-addr.arpa", LOCAL_NONE},
		{"16.172.in-addr.arpa", LOCAL_NODATA},
		{"1.1.31.172.in-addr.arpa", LOCAL_NXDOMAIN},
		{"32.172.in-addr.arpa", LOCAL_NONE},
		{"172.in-addr.arpa", LOCAL_NONE},
		{"63.100.in-addr.arpa", LOCAL_NONE},
		{"64.100.in-addr.arpa", LOCAL_NODATA},
		{"200.100.100.100.in-addr.arpa", LOCAL_NXDOMAIN},
		{"127.100.in-addr.arpa", LOCAL_NODATA},
		{"128.100.in-addr.arpa", LOCAL_NONE},
		{"254.169.254.169.in-addr.arpa", LOCAL_NXDOMAIN},
		{"1.168.192.in-addr.arpa", LOCAL_NXDOMAIN},
		{"d.f.ip6.arpa", LOCAL_NODATA},
		{"0.0.d.f.ip6.arpa", LOCAL_NXDOMAIN},
		{"7.e.f.ip6.arpa", LOCAL_NONE},
		{"_dns.resolver.arpa", LOCAL_NODATA},
		{"resolver.arpa", LOCAL_NODATA},
		{"notresolver.arpa", LOCAL_NONE},
		{"in-addr.arpa", LOCAL_NONE},
		{"arpa", LOCAL_NONE},
		{"10.in-addr.arpa.example.com", LOCAL_NONE},
		{"www.example.com", LOCAL_NONE},
	};
	struct resolver_settings *settings = calloc(1, sizeof(*settings));

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct name name = name_of(rows[i].name);
		assert_int_equal(local_empty_zone(&name, settings), rows[i].kind);
	}
	/* A forwarder takes its zone out; not resolver.arpa, and not by being the root. */
	struct name reverse = name_of("1.0.0.10.in-addr.arpa");
	struct name dns = name_of("_dns.resolver.arpa");
	settings->zone_count = 1;
	settings->zones[0].zone = (struct name){.length = 0};
	assert_int_equal(local_empty_zone(&reverse, settings), LOCAL_NXDOMAIN);
	settings->zones[0].zone = name_of("10.in-addr.arpa");
	assert_int_equal(local_empty_zone(&reverse, settings), LOCAL_NONE);
	settings->zones[0].zone = name_of("arpa");
	assert_int_equal(local_empty_zone(&dns, settings), LOCAL_NODATA);
	free(settings);
}

static void test_addresses(void **state)
{
	(void)state;
	struct policy_source policy;
	struct address both[] = {address_ipv4(10, 0, 0, 5), {ADDRESS_IPV6, {0xfd, [15] = 5}}};
	struct static_host host = {
		.name = name_of("build.internal"), .addresses = both, .address_count = 2};
	struct config_source source = {
		.policies = &policy, .policy_count = 1, .hosts = &host, .host_count = 1};
	const struct policy_image *image;
	void *bytes;
	size_t size;
	static const struct {
		const char *name;
		uint16_t type;
		enum local_kind kind;
		size_t count;
		bool from_static;
		const char *first;
	} rows[] = {
		{"localhost", QUERY_TYPE_A, LOCAL_ADDRESSES, 1, false, "127.0.0.1"},
		{"a.b.localhost", QUERY_TYPE_AAAA, LOCAL_ADDRESSES, 1, false, "::1"},
		{"localhost", 15, LOCAL_NODATA, 0, false, NULL},
		{"notlocalhost", QUERY_TYPE_A, LOCAL_NONE, 0, false, NULL},
		{"ipv4only.arpa", QUERY_TYPE_A, LOCAL_ADDRESSES, 2, false, "192.0.0.170"},
		{"ipv4only.arpa", QUERY_TYPE_AAAA, LOCAL_NODATA, 0, false, NULL},
		{"a.ipv4only.arpa", QUERY_TYPE_A, LOCAL_NONE, 0, false, NULL},
		{"build.internal", QUERY_TYPE_A, LOCAL_ADDRESSES, 1, true, "10.0.0.5"},
		{"build.internal", QUERY_TYPE_AAAA, LOCAL_ADDRESSES, 1, true, "fd00::5"},
		{"build.internal", QUERY_TYPE_HTTPS, LOCAL_NODATA, 0, true, NULL},
		{"a.build.internal", QUERY_TYPE_A, LOCAL_NONE, 0, false, NULL},
		{"www.example.com", QUERY_TYPE_A, LOCAL_NONE, 0, false, NULL},
	};

	policy_source_init(&policy, "default");
	assert_int_equal(policy_image_build(&source, &bytes, &size), 0);
	assert_int_equal(policy_image_open(bytes, size, &image), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct name name = name_of(rows[i].name);
		struct local_answer answer;
		char text[ADDRESS_TEXT_SIZE];
		local_addresses(&name, rows[i].type, image, &answer);
		assert_int_equal(answer.kind, rows[i].kind);
		assert_int_equal(answer.count, rows[i].count);
		assert_int_equal(answer.from_static, rows[i].from_static);
		if (rows[i].first != NULL)
			assert_string_equal(address_format(&answer.addresses[0], text),
					    rows[i].first);
	}
	free(bytes);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty_zones),
		cmocka_unit_test(test_addresses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
