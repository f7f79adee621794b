/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Requests to rtnetlink, in a network namespace of the test's own. Skipped where none can be made.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "confine/netlink.h"
#include "confine/sysctl.h"

static struct netlink netlink;
static int here = -1, there = -1;

/* Two namespaces; the test is in the first. */
static int set_up(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET) < 0)
		return 0; /* every test skips */
	there = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return netlink_open(&netlink);
}

static void need_namespace(void)
{
	if (here < 0)
		skip();
}

static void test_link(void **state)
{
	struct netlink other;

	(void)state;
	need_namespace();
	assert_int_equal(netlink_veth(&netlink, "a0", "b0", there), 0);
	assert_int_equal(netlink_veth(&netlink, "a0", "b1", there), -EEXIST);
	assert_int_equal(netlink_veth(&netlink, "sixteen-letters-", "b1", there), -ERANGE);
	assert_int_not_equal(if_nametoindex("a0"), 0);
	assert_int_equal(if_nametoindex("b0"), 0);
	assert_int_equal(netlink_up(&netlink, "a0"), 0);
	assert_int_equal(netlink_up(&netlink, "nothing"), -ENODEV);

	assert_int_equal(setns(there, CLONE_NEWNET), 0);
	assert_int_not_equal(if_nametoindex("b0"), 0);
	assert_int_equal(netlink_open(&other), 0);
	assert_int_equal(netlink_up(&other, "b0"), 0);
	netlink_close(&other);
	assert_int_equal(setns(here, CLONE_NEWNET), 0);

	assert_int_equal(netlink_delete(&netlink, "a0"), 0);
	assert_int_equal(netlink_delete(&netlink, "a0"), -ENODEV);
	assert_int_equal(if_nametoindex("a0"), 0);
}

struct seen {
	unsigned routes, defaults, gateways;
	bool run;
};

static void see(const struct netlink_route *route, void *context)
{
	struct seen *seen = context;
	char text[ADDRESS_TEXT_SIZE];

	seen->routes++;
	seen->gateways += route->gateway;
	if (route->destination.length == 0)
		seen->defaults++;
	else if (strcmp(prefix_format(&route->destination, text), "198.18.0.4/30") == 0 ||
		 strcmp(prefix_format(&route->destination, text), "fd01::/64") == 0)
		seen->run = true;
}

static void test_routes(void **state)
{
	struct address mine = address_ipv4(198, 18, 0, 1), other = address_ipv4(198, 18, 0, 2);
	struct prefix all = {.length = 0}, run;
	struct seen seen = {0};

	(void)state;
	need_namespace();
	assert_int_equal(netlink_veth(&netlink, "a0", "b0", there), 0);
	assert_int_equal(netlink_up(&netlink, "a0"), 0);
	assert_int_equal(netlink_address(&netlink, "a0", &mine, 30), 0);
	assert_int_equal(netlink_address(&netlink, "a0", &mine, 30), -EEXIST);
	assert_int_equal(netlink_address(&netlink, "nothing", &mine, 30), -ENODEV);
	assert_int_equal(prefix_parse("198.18.0.4/30", 13, &run), 0);
	assert_int_equal(netlink_route(&netlink, "a0", &run, &other), 0);
	assert_int_equal(netlink_route(&netlink, "a0", &run, &other), -EEXIST);
	assert_int_equal(netlink_route(&netlink, "a0", &all, &other), 0);
	assert_int_equal(netlink_routes(&netlink, ADDRESS_IPV4, see, &seen), 0);
	assert_int_equal(seen.routes, 3);
	assert_int_equal(seen.defaults, 1);
	assert_int_equal(seen.gateways, 2);
	assert_true(seen.run);
	assert_int_equal(netlink_delete(&netlink, "a0"), 0);
}

static void test_routes_ipv6(void **state)
{
	struct address mine, other;
	struct prefix all = {.length = 0};
	struct seen seen = {0};

	(void)state;
	need_namespace();
	if (access("/proc/sys/net/ipv6", F_OK) < 0)
		skip();
	assert_int_equal(address_parse("fd01::1", 7, &mine), 0);
	assert_int_equal(address_parse("fd01::2", 7, &other), 0);
	assert_int_equal(netlink_veth(&netlink, "a0", "b0", there), 0);
	assert_int_equal(netlink_up(&netlink, "a0"), 0);
	assert_int_equal(netlink_address(&netlink, "a0", &mine, 64), 0);
	assert_int_equal(netlink_route(&netlink, "a0", &all, &other), 0);
	assert_int_equal(netlink_routes(&netlink, ADDRESS_IPV6, see, &seen), 0);
	assert_int_equal(seen.defaults, 1);
	assert_true(seen.run);
	assert_int_equal(netlink_delete(&netlink, "a0"), 0);
}

/* More routes than one part of a dump holds. */
static void test_many_routes(void **state)
{
	struct address mine = address_ipv4(198, 18, 0, 1), other = address_ipv4(198, 18, 0, 2);
	struct seen seen = {0};

	(void)state;
	need_namespace();
	assert_int_equal(netlink_veth(&netlink, "a0", "b0", there), 0);
	assert_int_equal(netlink_up(&netlink, "a0"), 0);
	assert_int_equal(netlink_address(&netlink, "a0", &mine, 30), 0);
	for (unsigned i = 0; i < 2000; i++) {
		struct prefix to = {.address = address_ipv4(10, (uint8_t)(i >> 8), (uint8_t)i, 0),
				    .length = 24};
		assert_int_equal(netlink_route(&netlink, "a0", &to, &other), 0);
	}
	assert_int_equal(netlink_routes(&netlink, ADDRESS_IPV4, see, &seen), 0);
	assert_int_equal(seen.routes, 2001);
	assert_int_equal(netlink_delete(&netlink, "a0"), 0);
}

static void test_sysctl(void **state)
{
	char value[16], tiny[1];

	(void)state;
	need_namespace();
	assert_int_equal(sysctl_write("net/ipv4/ip_forward", "1"), 0);
	assert_int_equal(sysctl_read("net/ipv4/ip_forward", value, sizeof(value)), 0);
	assert_string_equal(value, "1");
	assert_int_equal(sysctl_read("net/ipv4/ip_forward", tiny, sizeof(tiny)), 0);
	assert_string_equal(tiny, "");
	assert_int_equal(sysctl_read("net/nothing", value, sizeof(value)), -ENOENT);
	assert_int_equal(sysctl_write("net/nothing", "1"), -ENOENT);
	assert_int_equal(sysctl_write("net/ipv4/ip_forward", "x"), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link),        cmocka_unit_test(test_routes),
		cmocka_unit_test(test_routes_ipv6), cmocka_unit_test(test_many_routes),
		cmocka_unit_test(test_sysctl),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
