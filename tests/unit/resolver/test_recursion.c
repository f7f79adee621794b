/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/recursion.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DS ". IN DS 20326 8 2 E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D"

static struct resolver_settings *settings_new(void)
{
	struct resolver_settings *settings = calloc(1, sizeof(*settings));
	settings->ipv4 = settings->ipv6 = 1;
	strcpy(settings->trust_anchor, "root.key");
	strcpy(settings->trust_anchor_text, "; a comment\n" DS " ; tail\n\n");
	return settings;
}

/* Builds a context; returns the problem, "" for none. */
static const char *try_settings(const struct resolver_settings *settings)
{
	static char problem[256];
	struct event_base *base = event_base_new();
	struct upstream *upstream;
	struct recursion *recursion;

	assert_int_equal(upstream_new(settings, &upstream, problem, sizeof(problem)), 0);
	if (recursion_new(base, settings, upstream, &recursion, problem, sizeof(problem)) == 0) {
		recursion_free(recursion);
		problem[0] = '\0';
	}
	upstream_free(upstream);
	event_base_free(base);
	return problem;
}

static void test_good(void **state)
{
	(void)state;
	struct resolver_settings *settings = settings_new();

	assert_string_equal(try_settings(settings), "");
	strcpy(settings->validation_date, "20250101000000");
	strcpy(settings->root_hints_text, ". 3600000 NS A.ROOT.\nA.ROOT. 3600000 A "
					  "192.0.2.1\nA.ROOT. 3600000 AAAA 2001:db8::1\n");
	settings->message_cache_bytes = settings->rrset_cache_bytes = 4 << 20;
	settings->zone_count = 1;
	name_from_text("internal", 8, &settings->zones[0].zone);
	settings->zones[0].count = 1;
	endpoint_parse("10.0.0.1@5300", 13, '@', 53, &settings->zones[0].forwarders[0]);
	settings->negative_anchor_count = 1;
	name_from_text("unsigned.example", 16, &settings->negative_anchors[0]);
	assert_string_equal(try_settings(settings), "");

	struct upstream *upstream;
	char problem[256];
	assert_int_equal(upstream_new(settings, &upstream, problem, sizeof(problem)), 0);
	char *text = recursion_config(settings, upstream, problem, sizeof(problem));
	static const char *const wanted[] = {
		"  trust-anchor: \".",
		"  val-override-date: \"20250101000000\"\n",
		"  domain-insecure: \"unsigned.example.\"\n",
		"  domain-insecure: \"internal.\"\n",
		"forward-zone:\n  name: \"internal.\"\n  forward-addr: 10.0.0.1@5300\n",
		"stub-zone:\n  name: \".\"\n  stub-prime: yes\n  stub-addr: 192.0.2.1@53\n",
		"  do-not-query-address: 169.254.169.254/32\n",
		"  do-not-query-address: 10.0.0.0/32\n",
		"  do-ip4: yes\n",
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		if (strstr(text, wanted[i]) == NULL)
			fail_msg("missing: %s", wanted[i]);
	assert_null(strstr(text, "do-not-query-address: 10.0.0.1/32"));
	free(text);
	upstream_free(upstream);
	free(settings);
}

static void test_bad(void **state)
{
	(void)state;
	struct resolver_settings *settings = settings_new();
	static const struct {
		const char *anchor, *hints, *problem;
	} rows[] = {
		{" \n\t\n", "", "trust anchor root.key is empty"},
		{"junk", "", "trust anchor, line 1: no usable record"},
		{"\n\n. IN A 192.0.2.1", "", "trust anchor, line 3: no usable record"},
		{". IN DS 1 8 2 zz", "", "trust anchor, line 1: no usable record"},
		{"a\" IN DS 1 8 2 00\n", "", "trust anchor, line 1: no usable record"},
		{DS, "a. 1 A 192.0.2.1\nb. 1 MX 1 c.\n", "root hints, line 2: no usable record"},
		{DS, "a. 1 A 192.0.2\n", "root hints, line 1: no usable record"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		strcpy(settings->trust_anchor_text, rows[i].anchor);
		strcpy(settings->root_hints_text, rows[i].hints);
		assert_string_equal(try_settings(settings), rows[i].problem);
	}
	strcpy(settings->trust_anchor_text, DS);
	settings->root_hints_text[0] = '\0';
	strcpy(settings->validation_date, "2025");
	assert_string_equal(try_settings(settings), "validation date: not YYYYMMDDHHMMSS");
	free(settings);
}

static unsigned done;
static void on_done(struct recursion_call *call, const struct recursion_result *result)
{
	(void)call;
	assert_true(result->failed);
	done++;
}

/* With neither family there is no server to ask: it fails, and at once; a cancelled one never
 * calls. */
static void test_calls(void **state)
{
	(void)state;
	struct resolver_settings *settings = settings_new();
	struct event_base *base = event_base_new();
	struct upstream *upstream;
	struct recursion *recursion;
	struct recursion_call calls[2] = {{.done = on_done}, {.done = on_done}};
	char problem[256];

	settings->trust_anchor[0] = '\0';
	settings->zone_count = 1; /* a root forwarder that guard and list both refuse */
	settings->zones[0].count = 1;
	endpoint_parse("127.0.0.1@9", 11, '@', 53, &settings->zones[0].forwarders[0]);
	assert_int_equal(upstream_new(settings, &upstream, problem, sizeof(problem)), 0);
	settings->zones[0].count = 0;
	settings->ipv4 = settings->ipv6 = 0;
	assert_int_equal(
		recursion_new(base, settings, upstream, &recursion, problem, sizeof(problem)), 0);
	assert_int_equal(recursion_start(recursion, "a.example.", 1, &calls[0]), 0);
	assert_int_equal(done, 1);
	assert_int_equal(recursion_start(recursion, "bad..name.", 1, &calls[1]), -5);
	assert_int_equal(done, 1);
	recursion_free(recursion);
	upstream_free(upstream);
	event_base_free(base);
	free(settings);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
