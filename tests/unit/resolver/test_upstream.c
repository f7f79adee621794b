/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/upstream.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct endpoint endpoint_of(const char *text)
{
	struct endpoint endpoint;
	assert_int_equal(endpoint_parse(text, strlen(text), '@', 53, &endpoint), 0);
	return endpoint;
}

static struct upstream *build(struct resolver_settings *settings, const char *const *forwarders)
{
	struct upstream *upstream;
	char problem[256];

	settings->zone_count = forwarders[0] != NULL;
	settings->zones[0].count = 0;
	for (; *forwarders != NULL; forwarders++)
		settings->zones[0].forwarders[settings->zones[0].count++] =
			endpoint_of(*forwarders);
	assert_int_equal(upstream_new(settings, &upstream, problem, sizeof(problem)), 0);
	return upstream;
}

/* Asks both layers: what connect() would do, and whether libunbound's list holds the address. */
struct search {
	struct address address;
	bool found;
};

static void search_prefix(const struct prefix *prefix, void *context)
{
	struct search *search = context;
	search->found = search->found || prefix_contains(prefix, &search->address);
}

static bool is_listed(const struct upstream *upstream, const struct endpoint *server)
{
	struct search search = {.address = server->address};
	upstream_each_blocked(upstream, search_prefix, &search);
	return search.found;
}

static void check(const struct upstream *upstream, const char *server, bool permitted)
{
	struct endpoint endpoint = endpoint_of(server);
	if (upstream_permits(upstream, &endpoint) != permitted ||
	    is_listed(upstream, &endpoint) == permitted)
		fail_msg("%s should be %s", server, permitted ? "permitted" : "blocked");
}

static const char *const none[] = {NULL};

static void test_default(void **state)
{
	(void)state;
	struct resolver_settings *settings = calloc(1, sizeof(*settings));
	struct upstream *upstream = build(settings, none);
	static const char *const blocked[] = {
		"0.0.0.0",
		"10.0.0.1",
		"100.64.0.1",
		"100.100.100.200",
		"127.0.0.1",
		"127.9.9.9",
		"168.63.129.16",
		"169.254.169.254",
		"169.254.1.1",
		"172.16.0.1",
		"172.31.255.255",
		"192.0.0.192",
		"192.0.2.1",
		"192.168.0.1",
		"198.18.0.1",
		"203.0.113.1",
		"224.0.0.1",
		"240.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::7f00:1",
		"::ffff:127.0.0.1",
		"::ffff:8.8.8.8",
		"64:ff9b::a9fe:a9fe",
		"64:ff9b::808:808",
		"64:ff9b:1::1",
		"2001::1",
		"2001:db8::1",
		"2002:7f00:1::",
		"2002:808:808::1",
		"3fff::1",
		"4000::1",
		"fc00::1",
		"fd00:ec2::254",
		"fe80::1",
		"fe80::a9fe:a9fe",
		"fec0::1",
		"ff02::1",
	};
	static const char *const open[] = {
		"8.8.8.8", "9.255.255.255",       "11.0.0.0",        "172.32.0.1", "198.41.0.4",
		"1.1.1.1", "2001:503:ba3e::2:30", "2606:4700::1111", "2620:fe::fe"};

	for (size_t i = 0; i < sizeof(blocked) / sizeof(blocked[0]); i++)
		check(upstream, blocked[i], false);
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		check(upstream, open[i], true);
	upstream_free(upstream);
	free(settings);
}

static void test_nonpublic(void **state)
{
	(void)state;
	struct resolver_settings *settings = calloc(1, sizeof(*settings));
	settings->upstream_nonpublic = 1;
	struct upstream *upstream = build(settings, none);
	static const char *const open[] = {"10.0.0.1", "127.0.0.1", "192.0.2.1",
					   "fd00::1",  "::1",       "8.8.8.8"};
	static const char *const floor[] = {"169.254.169.254",        "100.100.100.200",
					    "168.63.129.16",          "fd00:ec2::254",
					    "fe80::a9fe:a9fe",        "192.0.0.192",
					    "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe",
					    "2002:a9fe:a9fe::1",      "::a9fe:a9fe"};

	/* ::1 lies in the prefix of compatible addresses, which stays shut. */
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (strcmp(open[i], "::1") != 0)
			check(upstream, open[i], true);
	for (size_t i = 0; i < sizeof(floor) / sizeof(floor[0]); i++)
		check(upstream, floor[i], false);
	upstream_free(upstream);
	free(settings);
}

static void test_forwarders(void **state)
{
	(void)state;
	struct resolver_settings *settings = calloc(1, sizeof(*settings));
	static const char *const forwarders[] = {
		"10.0.0.53",          "192.168.1.1@5353", "fd00::53", "169.254.169.253",
		"169.254.169.254@53", "127.0.0.1",        NULL};
	struct upstream *upstream = build(settings, forwarders);

	for (const char *const *forwarder = forwarders; *forwarder != NULL; forwarder++)
		check(upstream, *forwarder, true);
	check(upstream, "10.0.0.52", false);
	check(upstream, "10.0.0.54", false);
	check(upstream, "192.168.1.2@5353", false);
	check(upstream, "fd00::54", false);
	check(upstream, "169.254.169.252", false);
	check(upstream, "127.0.0.2", false);
	/* The list knows no ports; the guard does. */
	struct endpoint other = endpoint_of("192.168.1.1@80");
	assert_false(upstream_permits(upstream, &other));
	other = endpoint_of("169.254.169.254@80");
	assert_false(upstream_permits(upstream, &other));
	upstream_free(upstream);
	free(settings);
}

static void test_floor_forwarder(void **state)
{
	(void)state;
	struct resolver_settings *settings = calloc(1, sizeof(*settings));
	struct upstream *upstream = NULL;
	char problem[256];

	settings->upstream_nonpublic = 1;
	settings->zone_count = 1;
	settings->zones[0].count = 1;
	settings->zones[0].forwarders[0] = endpoint_of("169.254.169.254@80");
	assert_int_equal(upstream_new(settings, &upstream, problem, sizeof(problem)), -EACCES);
	assert_non_null(strstr(problem, "169.254.169.254:80"));
	assert_null(upstream);
	free(settings);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_nonpublic),
		cmocka_unit_test(test_forwarders),
		cmocka_unit_test(test_floor_forwarder),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
