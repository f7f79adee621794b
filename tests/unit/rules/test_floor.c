/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The floor: every address in every embedding, at every kind of port; the guard for the
 * configuration; and the property that no policy opens it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/embedding.h"
#include "rules/floor.h"
#include "world.h"

/* A host inside every rule: its first address, its last, and one of each provider as documented. */
static const char *const documented[] = {
	"169.254.169.254",    "169.254.170.2",   "169.254.170.23",
	"fd00:ec2::254",      "fd00:ec2::23",    "169.254.169.252",
	"fd20:ce::254",       "168.63.129.16",   "100.100.100.200",
	"100.96.0.96",        "169.254.0.23",    "192.0.0.192",
	"fd00:c1::a9fe:a9fe", "169.254.42.42",   "fd00:42::42",
	"fd00:a9fe:a9fe::1",  "fe80::a9fe:a9fe", "fd00:ec2:ffff:ffff:ffff:ffff:ffff:ffff",
};

static enum floor_answer ask(const struct address *address, uint16_t port, uint8_t protocol)
{
	uint32_t line = 0;
	enum floor_answer answer = floor_of_address(address, port, protocol, &line);

	assert_int_equal(line == 0, answer == FLOOR_NONE);
	return answer;
}

static void test_every_form(void **state)
{
	static const uint16_t tcp_left_out[] = FLOOR_TCP_INFRASTRUCTURE;
	static const uint16_t udp_left_out[] = FLOOR_UDP_INFRASTRUCTURE;
	static const uint16_t ports[] = {1, 22, 52, 54, 67, 80, 443, 1687, 1689, 3259, 3261, 65535};
	struct address forms[WORLD_FORMS_MAX];
	char text[ADDRESS_TEXT_SIZE];

	(void)state;
	for (size_t d = 0; d < sizeof(documented) / sizeof(documented[0]); d++) {
		struct address address = world_address(documented[d]);
		size_t count = world_forms(&address, forms);
		for (size_t f = 0; f < count; f++) {
			const struct address *a = &forms[f];
			if (ask(a, 80, IPPROTO_TCP) != FLOOR_IS_FLOOR)
				fail_msg("%s as %s", documented[d], address_format(a, text));
			for (size_t p = 0; p < sizeof(ports) / sizeof(ports[0]); p++)
				assert_int_equal(ask(a, ports[p], IPPROTO_TCP), FLOOR_IS_FLOOR);
			for (size_t p = 0; p < 3; p++)
				assert_int_equal(ask(a, tcp_left_out[p], IPPROTO_TCP),
						 FLOOR_IS_INFRASTRUCTURE);
			for (size_t p = 0; p < 4; p++)
				assert_int_equal(ask(a, udp_left_out[p], IPPROTO_UDP),
						 FLOOR_IS_INFRASTRUCTURE);
			assert_int_equal(ask(a, 80, IPPROTO_UDP), FLOOR_IS_FLOOR);
			assert_int_equal(ask(a, 1688, IPPROTO_UDP), FLOOR_IS_FLOOR);
			assert_int_equal(ask(a, 0, IPPROTO_ICMP), FLOOR_IS_FLOOR);
			assert_int_equal(ask(a, 53, IPPROTO_SCTP), FLOOR_IS_FLOOR);
			assert_int_equal(ask(a, 0, 0), FLOOR_IS_FLOOR);
		}
	}
}

static void test_neighbours(void **state)
{
	static const char *const free_ones[] = {
		"169.254.169.255",    "169.254.170.1",     "169.254.170.3",   "100.100.100.199",
		"100.100.100.201",    "192.0.0.191",       "192.0.0.193",     "168.63.129.15",
		"168.63.129.17",      "fd00:ec1::254",     "fd00:ec3::",      "fd20:ce::253",
		"fd20:ce::255",       "fd00:42::41",       "fe80::a9fe:a9fd", "169.254.42.43",
		"64:ff9b::a9fe:a9ff", "2002:a9fe:a9ff::1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(free_ones) / sizeof(free_ones[0]); i++) {
		struct address address = world_address(free_ones[i]);
		if (ask(&address, 80, IPPROTO_TCP) != FLOOR_NONE ||
		    ask(&address, 0, 0) != FLOOR_NONE)
			fail_msg("%s", free_ones[i]);
	}
	struct address app = world_address("169.254.130.3");
	assert_int_equal(ask(&app, 8081, IPPROTO_TCP), FLOOR_IS_FLOOR);
	assert_int_equal(ask(&app, 8081, IPPROTO_UDP), FLOOR_NONE);
	assert_int_equal(ask(&app, 0, 0), FLOOR_NONE);
	struct address rancher = world_address("169.254.169.250");
	assert_int_equal(ask(&rancher, 80, IPPROTO_TCP), FLOOR_IS_FLOOR);
	assert_int_equal(ask(&rancher, 443, IPPROTO_TCP), FLOOR_IS_INFRASTRUCTURE);
	assert_int_equal(ask(&rancher, 0, 0), FLOOR_IS_FLOOR);
}

/* What hosts need and governed programs do not: every port, and no neighbour. */
static void test_infrastructure(void **state)
{
	static const char *const inside[] = {
		"169.254.169.253",   "169.254.169.249",    "169.254.0.2",       "169.254.0.4",
		"169.254.2.2",       "169.254.4.255",      "169.254.5.0",       "fd00:c1::a9fe:2",
		"fd00:c1::a9fe:202", "fd00:c1::a9fe:504",  "fd00:c1::a9fe:4ff", "100.100.2.116",
		"100.100.2.118",     "100.100.2.137",      "100.100.2.138",     "fdaa::3",
		"169.254.20.10",     "::ffff:169.254.2.2",
	};
	static const char *const outside[] = {
		"169.254.0.1",       "169.254.0.5",     "169.254.1.255",   "169.254.3.0",
		"169.254.6.0",       "100.100.2.115",   "100.100.2.119",   "100.100.2.135",
		"100.100.2.139",     "fd00:c1::a9fe:1", "fd00:c1::a9fe:3", "fd00:c1::a9fe:300",
		"fd00:c1::a9fe:600", "fdaa::4",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
		struct address address = world_address(inside[i]);
		if (ask(&address, 3260, IPPROTO_TCP) != FLOOR_IS_INFRASTRUCTURE ||
		    ask(&address, 80, IPPROTO_TCP) != FLOOR_IS_INFRASTRUCTURE ||
		    ask(&address, 0, 0) != FLOOR_IS_INFRASTRUCTURE)
			fail_msg("%s", inside[i]);
	}
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		struct address address = world_address(outside[i]);
		if (ask(&address, 3260, IPPROTO_TCP) != FLOOR_NONE)
			fail_msg("%s", outside[i]);
	}
}

static void test_entries(void **state)
{
	static const char *const refused[] = {
		"169.254.169.254",
		"169.254.169.254:80",
		"[fd00:ec2::254]",
		"[::ffff:169.254.169.254]",
		"[64:ff9b::a9fe:a9fe]:443",
		"fd00:ec2::/32",
		"fd00:ec2:1::/48",
		"http://169.254.169.254",
		"metadata.google.internal",
		"x.metadata.google.internal",
		"*.metadata.google.internal",
		"metadata",
		"metadata.goog:443",
		"metadata.exoscale.com",
		"instance-data.eu-west-1.compute.internal",
		"169.254.7.7:8081",
		"169.254.169.250:80",
		"169.254.0.0/16:8081",
		"https://metadata.goog",
		"169.254.169.250",
	};
	static const char *const taken[] = {
		"169.254.169.254:53",
		"169.254.169.253",
		"169.254.7.7",
		"169.254.7.7:80",
		"google.internal",
		"*.google.internal",
		"169.254.0.0/16",
		"0.0.0.0/0",
		"fd00::/8",
		"example.com",
		"goog",
		"169.254.169.250:1688",
		"compute.internal",
		"169.254.169.254:3260",
		"100.64.0.0/10",
		"metadata.example.com",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct match_entry entry = world_entry(refused[i]);
		if (!floor_names_entry(&entry))
			fail_msg("%s names the floor", refused[i]);
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		struct match_entry entry = world_entry(taken[i]);
		if (floor_names_entry(&entry))
			fail_msg("%s does not name the floor", taken[i]);
	}
}

static void test_overlaps(void **state)
{
	static const struct {
		const char *prefix;
		bool overlaps;
	} cases[] = {
		{"0.0.0.0/0", true},
		{"169.254.0.0/16", true},
		{"169.254.169.0/24", true},
		{"169.254.7.0/24", true},
		{"100.64.0.0/10", true},
		{"100.100.100.192/28", true},
		{"100.100.101.0/24", false},
		{"10.0.0.0/8", false},
		{"172.16.0.0/12", false},
		{"192.168.0.0/16", false},
		{"192.0.0.0/24", true},
		{"168.63.0.0/16", true},
		{"::/0", true},
		{"fc00::/7", true},
		{"fd00::/16", true},
		{"fd00:ec2:5::/48", true},
		{"fd01::/16", false},
		{"fe80::/10", true},
		{"2001:db8::/32", false},
		{"64:ff9b::/96", true},
		{"64:ff9b::a00:0/104", false},
		{"2002::/16", true},
		{"2002:a00::/24", false},
		{"2002:a9fe:a9fe::/48", true},
		{"::ffff:0:0/96", true},
		{"::ffff:10.0.0.0/104", false},
		{"2001::/32", true},
		{"64:ff9b:1::/48", true},
		{"2000::/3", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct prefix prefix;
		assert_int_equal(prefix_parse(cases[i].prefix, strlen(cases[i].prefix), &prefix),
				 0);
		if (floor_overlaps_prefix(&prefix) != cases[i].overlaps)
			fail_msg("%s", cases[i].prefix);
	}
}

static void test_table(void **state)
{
	size_t count;
	const struct floor_address *rules = floor_addresses(&count);

	(void)state;
	assert_true(count >= 29);
	for (size_t i = 0; i < count; i++) {
		assert_true(rules[i].line > 0);
		assert_true(rules[i].prefix.length > 0);
	}
}

/* Words that a policy may be made of; a random choice of them is a random policy. */
static const char *const words[] = {
	"default=deny",
	"mode=audit",
	"literals=deny",
	"private=no",
	"loopback=no",
	"infrastructure=allow",
	"udp=allow",
	"icmp=allow",
	"other=allow",
	"http2=allow",
	"dns=allow",
	"root",
	"allow=169.254.0.0/16",
	"allow=0.0.0.0/0",
	"allow=169.254.169.254",
	"allow=metadata.goog",
	"allow=google.internal",
	"allow=*.google.internal",
	"allow=fd00::/8",
	"allow=[fd00:ec2::254]",
	"allow=168.63.129.16:80",
	"origin=http://169.254.169.254",
	"origin=http://metadata.goog",
	"cidr=0.0.0.0/0",
	"cidr=169.254.0.0/16",
	"cidr=fc00::/7",
	"cidr=::/0",
	"answers=internal",
	"answers=example.com",
	"answers=goog",
	"raw=169.254.169.254:80",
	"raw=www.example.com:80",
	"proxy=169.254.169.254:80",
	"proxy=www.example.com:80",
	"host=www.example.com=169.254.169.254",
	"host=metadata.goog=93.184.216.34",
	"host=m.lan=fd00:ec2::254",
	"search=google.internal",
	"search=goog",
	"forward=internal",
	"forward=google.internal",
	"forward=goog",
	"listen=169.254.169.254:80",
	"listen=[fd00:ec2::254]:80",
	"own=127.0.0.1:80",
	"block=example.org",
	"floor=example.net",
	"allow=::/0",
};

static void random_policy(char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (int i = (int)(random() % 12); i > 0; i--) {
		const char *word = words[(size_t)random() % (sizeof(words) / sizeof(words[0]))];
		used += (size_t)snprintf(out + used, size - used, "%s ", word);
	}
}

static void expect_shut(struct world *world, const char *policy, const char *question,
			bool malformed)
{
	const char *got = world_ask(world, question);

	if (strcmp(got, "metadata") == 0 || (malformed && strcmp(got, "malformed") == 0))
		return;
	fail_msg("policy %s: %s: %s", policy, question, got);
}

static void test_no_policy_opens_it(void **state)
{
	static const char *const names[] = {"metadata.goog",
					    "x.metadata.google.internal",
					    "metadata",
					    "data-server",
					    "metadata.tencentyun.com",
					    "instance-data.us-west-2.compute.internal"};
	struct world *world = calloc(1, sizeof(*world));
	struct address forms[WORLD_FORMS_MAX];
	char policy[1024], text[ADDRESS_TEXT_SIZE], question[512];

	(void)state;
	srandom(4);
	for (int round = 0; round < 4000; round++) {
		random_policy(policy, sizeof(policy));
		world_init(world, policy);
		struct address address = world_address(documented[(size_t)random() % 17]);
		size_t count = world_forms(&address, forms);
		address_format(&forms[(size_t)random() % count], text);
		const char *name = names[random() % 6];

		snprintf(question, sizeof(question), "connect %s 80 pinned=www.example.com", text);
		expect_shut(world, policy, question, false);
		snprintf(question, sizeof(question), "connect %s 80/udp", text);
		expect_shut(world, policy, question, false);
		snprintf(question, sizeof(question), "connect %s 0/icmp", text);
		expect_shut(world, policy, question, false);
		snprintf(question, sizeof(question),
			 "request http://www.example.com/ to=%s pinned=www.example.com %s", text,
			 random() % 2 ? "other" : "malformed");
		expect_shut(world, policy, question, true);
		snprintf(question, sizeof(question),
			 "request http://www.example.com/ to=93.184.216.34 pinned=www.example.com "
			 "absolute=http://%s",
			 name);
		if (!policy_reads_first_bytes(
			    world->image, &world->subject,
			    &(struct connection){.destination = world_address("93.184.216.34"),
						 .port = 80,
						 .protocol = IPPROTO_TCP},
			    0) ||
		    strstr(policy, "raw=www") != NULL)
			question[0] = '\0';
		if (question[0] != '\0')
			expect_shut(world, policy, question, false);
		snprintf(question, sizeof(question),
			 "answer www.example.com 93.184.216.34 %s static", text);
		expect_shut(world, policy, question, false);
		snprintf(question, sizeof(question), "answer www.example.com cname=%s", name);
		expect_shut(world, policy, question, false);
		snprintf(question, sizeof(question), "resolve %s HTTPS", name);
		expect_shut(world, policy, question, false);
		snprintf(question, sizeof(question), "connect 93.184.216.35 443 pinned=%s", name);
		const char *got = world_ask(world, question);
		if (strcmp(got, "allow") == 0 && strstr(policy, "allow=0.0.0.0/0") == NULL)
			fail_msg("policy %s: %s: %s", policy, question, got);
		world_free(world);
	}
	free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_form),         cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_infrastructure),     cmocka_unit_test(test_entries),
		cmocka_unit_test(test_overlaps),           cmocka_unit_test(test_table),
		cmocka_unit_test(test_no_policy_opens_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
