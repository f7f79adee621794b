/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/entry.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define HOSTS   (ENTRY_NAMES | ENTRY_WILDCARDS | ENTRY_PREFIXES | ENTRY_PORT | ENTRY_GUARDED)
#define ORIGINS (HOSTS | ENTRY_ORIGIN)
#define CIDRS   (ENTRY_PREFIXES | ENTRY_GUARDED)
#define NAMES   (ENTRY_NAMES | ENTRY_WILDCARDS | ENTRY_GUARDED)
#define PROXIES (ENTRY_NAMES | ENTRY_PREFIXES | ENTRY_PORT | ENTRY_PORT_REQUIRED | ENTRY_GUARDED)
#define BLOCKED (HOSTS & ~ENTRY_GUARDED)

static void entries_are_read_and_written(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		unsigned rules;
		enum match_kind kind;
		uint16_t port;
		const char *normal;
	} rows[] = {
		{"example.com", HOSTS, MATCH_NAME, 0, "example.com"},
		{"Example.COM.", HOSTS, MATCH_NAME, 0, "example.com"},
		{"example.com:443", HOSTS, MATCH_NAME, 443, "example.com:443"},
		{"example.com:1", HOSTS, MATCH_NAME, 1, "example.com:1"},
		{"example.com:65535", HOSTS, MATCH_NAME, 65535, "example.com:65535"},
		{"*.example.com", HOSTS, MATCH_SUBDOMAINS, 0, "*.example.com"},
		{"*.example.com:8443", HOSTS, MATCH_SUBDOMAINS, 8443, "*.example.com:8443"},
		{"_srv.example.com", HOSTS, MATCH_NAME, 0, "_srv.example.com"},
		{"intranet", HOSTS, MATCH_NAME, 0, "intranet"},
		{"staging.internal:8443", HOSTS, MATCH_NAME, 8443, "staging.internal:8443"},
		{"b\xc3\xbc"
		 "cher.example.com",
		 HOSTS, MATCH_NAME, 0, "xn--bcher-kva.example.com"},
		{"*.B\xc3\x9c"
		 "CHER.example.com",
		 HOSTS, MATCH_SUBDOMAINS, 0, "*.xn--bcher-kva.example.com"},
		{"xn--bcher-kva.example.com", HOSTS, MATCH_NAME, 0, "xn--bcher-kva.example.com"},
		{"fa\xc3\x9f.example.com", HOSTS, MATCH_NAME, 0, "xn--fa-hia.example.com"},
		{"10.1.2.3", HOSTS, MATCH_PREFIX, 0, "10.1.2.3"},
		{"10.1.2.3/32", HOSTS, MATCH_PREFIX, 0, "10.1.2.3"},
		{"10.1.2.3:8080", HOSTS, MATCH_PREFIX, 8080, "10.1.2.3:8080"},
		{"10.0.0.0/8", HOSTS, MATCH_PREFIX, 0, "10.0.0.0/8"},
		{"10.0.0.0/8:443", HOSTS, MATCH_PREFIX, 443, "10.0.0.0/8:443"},
		{"[2001:DB8::1]", HOSTS, MATCH_PREFIX, 0, "[2001:db8::1]"},
		{"[2001:db8:0:0::1]:443", HOSTS, MATCH_PREFIX, 443, "[2001:db8::1]:443"},
		{"2001:db8::1", HOSTS, MATCH_PREFIX, 0, "[2001:db8::1]"},
		{"fd12:3456::/32", HOSTS, MATCH_PREFIX, 0, "fd12:3456::/32"},
		{"[fd12:3456::/32]:80", HOSTS, MATCH_PREFIX, 80, "[fd12:3456::/32]:80"},
		{"::1", HOSTS, MATCH_PREFIX, 0, "[::1]"},
		{"[::ffff:10.1.2.3]", HOSTS, MATCH_PREFIX, 0, "10.1.2.3"},
		{"::ffff:10.0.0.0/104", HOSTS, MATCH_PREFIX, 0, "10.0.0.0/8"},
		{"https://github.com", ORIGINS, MATCH_EXACT, 443, "https://github.com"},
		{"HTTPS://GitHub.com:443", ORIGINS, MATCH_EXACT, 443, "https://github.com"},
		{"https://github.com:8443", ORIGINS, MATCH_EXACT, 8443, "https://github.com:8443"},
		{"http://ci.example.com:8080", ORIGINS, MATCH_EXACT, 8080,
		 "http://ci.example.com:8080"},
		{"http://example.com:443", ORIGINS, MATCH_EXACT, 443, "http://example.com:443"},
		{"ws://example.com", ORIGINS, MATCH_EXACT, 80, "http://example.com"},
		{"wss://example.com", ORIGINS, MATCH_EXACT, 443, "https://example.com"},
		{"https://*.example.org", ORIGINS, MATCH_SUBDOMAINS, 443, "https://*.example.org"},
		{"https://10.1.2.3", ORIGINS, MATCH_PREFIX, 443, "https://10.1.2.3"},
		{"https://[2001:db8::1]:8443", ORIGINS, MATCH_PREFIX, 8443,
		 "https://[2001:db8::1]:8443"},
		{"172.20.0.0/16", CIDRS, MATCH_PREFIX, 0, "172.20.0.0/16"},
		{"home.example.com", NAMES, MATCH_NAME, 0, "home.example.com"},
		{"proxy.example.com:3128", PROXIES, MATCH_NAME, 3128, "proxy.example.com:3128"},
		{"10.0.0.1:3128", PROXIES, MATCH_PREFIX, 3128, "10.0.0.1:3128"},
		{"zip", BLOCKED, MATCH_NAME, 0, "zip"},
		{"metadata.google.internal", BLOCKED, MATCH_NAME, 0, "metadata.google.internal"},
		{"169.254.169.254", BLOCKED, MATCH_PREFIX, 0, "169.254.169.254"},
		{"224.0.0.0/4", BLOCKED, MATCH_PREFIX, 0, "224.0.0.0/4"},
		{"223.255.255.255", HOSTS, MATCH_PREFIX, 0, "223.255.255.255"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct match_entry entry, again;
		char problem[ENTRY_PROBLEM_SIZE] = "", text[ENTRY_TEXT_SIZE];
		int status = entry_parse(rows[i].text, strlen(rows[i].text), rows[i].rules, &entry,
					 problem);
		if (status != 0)
			print_message("%s: %d %s\n", rows[i].text, status, problem);
		assert_int_equal(status, 0);
		assert_int_equal(entry.kind, rows[i].kind);
		assert_int_equal(entry.port, rows[i].port);
		assert_string_equal(entry_format(&entry, text), rows[i].normal);
		/* what is written is read back as the same */
		assert_int_equal(entry_parse(text, strlen(text), rows[i].rules, &again, problem),
				 0);
		assert_memory_equal(&entry.prefix, &again.prefix, sizeof(entry.prefix));
		assert_string_equal(entry.kind == MATCH_PREFIX ? "" : entry.name.text,
				    again.kind == MATCH_PREFIX ? "" : again.name.text);
		assert_int_equal(entry.kind, again.kind);
		assert_int_equal(entry.port, again.port);
		assert_int_equal(entry.scheme, again.scheme);
	}
}

static void bad_entries_are_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		unsigned rules;
		const char *problem; /* part of it */
	} rows[] = {
		{"", HOSTS, "empty"},
		{":443", HOSTS, "without a host"},
		{"[]", HOSTS, "without a host"},
		{"example.com:", HOSTS, "no port"},
		{"example.com:0", HOSTS, "no port"},
		{"example.com:080", HOSTS, "no port"},
		{"example.com:65536", HOSTS, "no port"},
		{"example.com:99999999999999999999", HOSTS, "no port"},
		{"example.com:https", HOSTS, "no port"},
		{"example.com:4 43", HOSTS, "no port"},
		{"example.com:-1", HOSTS, "no port"},
		{"example.com:443:80", HOSTS, "no address"},
		{"exa mple.com", HOSTS, "byte outside a host name"},
		{" example.com", HOSTS, "byte outside a host name"},
		{"example..com", HOSTS, "empty label"},
		{".example.com", HOSTS, "empty label"},
		{".", HOSTS, "empty label"},
		{"example.com..", HOSTS, "empty label"},
		{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com", HOSTS,
		 "over 63"},
		{"example.com/path", HOSTS, "no path"},
		{"example.com/", HOSTS, "no path"},
		{"user@example.com", HOSTS, "byte outside a host name"},
		{"https://example.com", HOSTS, "no scheme"},
		{"*", HOSTS, "alone"},
		{"*.", HOSTS, "can never match"},
		{"*.*.example.com", HOSTS, "'*'"},
		{"ex*mple.com", HOSTS, "'*'"},
		{"www.*.com", HOSTS, "'*'"},
		{"**.example.com", HOSTS, "'*'"},
		{"2.3", HOSTS, "can never match"},
		{"256.1.1.1", HOSTS, "can never match"},
		{"1.2.3.4.5", HOSTS, "can never match"},
		{"2852039166", HOSTS, "can never match"},
		{"0xa9fea9fe", HOSTS, "can never match"},
		{"example.0x", HOSTS, "can never match"},
		{"010.1.2.3", HOSTS, "can never match"},
		{"\xef\xbc\x91\xef\xbc\x90.1.2.3", HOSTS, "can never match"},
		{"*.1", HOSTS, "can never match"},
		{"10.0.0.0/33", HOSTS, "no CIDR"},
		{"10.0.0.0/", HOSTS, "no CIDR"},
		{"10.0.0.0/08", HOSTS, "no CIDR"},
		{"10.0.0/8", HOSTS, "no CIDR"},
		{"10.1.2.3/8", HOSTS, "behind its length"},
		{"fd00::1/8", HOSTS, "behind its length"},
		{"fd00::/129", HOSTS, "no CIDR"},
		{"fe80::1%eth0", HOSTS, "no address"},
		{"[fe80::1", HOSTS, "bracket"},
		{"[::1]443", HOSTS, "bracket"},
		{"[::1]/64", HOSTS, "bracket"},
		{"[10.1.2.3]", HOSTS, "brackets are for IPv6"},
		{"[example.com]", HOSTS, "no address"},
		{"metadata.google.internal", HOSTS, "floor"},
		{"x.metadata.goog", HOSTS, "floor"},
		{"*.metadata.goog", HOSTS, "floor"},
		{"METADATA.goog.", HOSTS, "floor"},
		{"metadata", HOSTS, "floor"},
		{"169.254.169.254", HOSTS, "floor"},
		{"169.254.169.254:80", HOSTS, "floor"},
		{"169.254.169.254/32", HOSTS, "floor"},
		{"[fd00:ec2::254]", HOSTS, "floor"},
		{"fd00:ec2::/32", HOSTS, "floor"},
		{"[::ffff:169.254.169.254]", HOSTS, "floor"},
		{"[64:ff9b::a9fe:a9fe]", HOSTS, "floor"},
		{"[2002:a9fe:a9fe::1]", HOSTS, "floor"},
		{"https://metadata.google.internal", ORIGINS, "floor"},
		{"http://169.254.169.254", ORIGINS, "floor"},
		{"metadata.goog", NAMES, "floor"},
		{"169.254.169.254/32", CIDRS, "floor"},
		{"metadata.goog:80", PROXIES, "floor"},
		{"224.0.0.1", HOSTS, "never open"},
		{"239.0.0.0/8", CIDRS, "never open"},
		{"255.255.255.255", HOSTS, "never open"},
		{"240.0.0.0/4:80", HOSTS, "never open"},
		{"[ff02::1]:80", HOSTS, "never open"},
		{"http://224.0.0.1", ORIGINS, "never open"},
		{"com", HOSTS, "public suffix"},
		{"com.", HOSTS, "public suffix"},
		{"COM:443", HOSTS, "public suffix"},
		{"*.com", HOSTS, "public suffix"},
		{"co.uk", HOSTS, "public suffix"},
		{"https://*.co.uk", ORIGINS, "public suffix"},
		{"com", NAMES, "public suffix"},
		{"example.com", ORIGINS, "no origin"},
		{"https:example.com", ORIGINS, "no origin"},
		{"ftp://example.com", ORIGINS, "no origin"},
		{"https://", ORIGINS, "without a host"},
		{"https://example.com/", ORIGINS, "no path"},
		{"https://example.com/x", ORIGINS, "no path"},
		{"https://example.com?x", ORIGINS, "no path"},
		{"https://10.0.0.0/8", ORIGINS, "no path"},
		{"https://[fd00::/8]", ORIGINS, "no path"},
		{"example.com", CIDRS, "no address"},
		{"10.0.0.0/8:80", CIDRS, "no port"},
		{"10.1.2.3", NAMES, "no addresses"},
		{"example.com:80", NAMES, "no port"},
		{"proxy.example.com", PROXIES, "needs a port"},
		{"*.example.com:3128", PROXIES, "no wildcard"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct match_entry entry = {.port = 7};
		char problem[ENTRY_PROBLEM_SIZE] = "";
		int status = entry_parse(rows[i].text, strlen(rows[i].text), rows[i].rules, &entry,
					 problem);
		if (status != -EINVAL || strstr(problem, rows[i].problem) == NULL)
			print_message("'%s': %d %s\n", rows[i].text, status, problem);
		assert_int_equal(status, -EINVAL);
		assert_non_null(strstr(problem, rows[i].problem));
		assert_int_equal(entry.port, 7); /* untouched */
	}
}

static void doubtful_entries_are_warned_of(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		unsigned rules;
		const char *problem;
	} rows[] = {
		{"github.io", HOSTS, "private suffix"},
		{"*.github.io", HOSTS, "private suffix"},
		{"https://*.github.io", ORIGINS, "private suffix"},
		{"https://*.githubusercontent.com", ORIGINS, "private suffix"},
		{"169.254.169.254:53", HOSTS, "infrastructure"},
		{"128.0.0.0/1", HOSTS, "metadata addresses"},
		{"100.64.0.0/10", HOSTS, "metadata addresses"},
		{"169.254.0.0/16", CIDRS, "metadata addresses"},
		{"0.0.0.0/0", HOSTS, "metadata addresses"},
		{"::/0", HOSTS, "metadata addresses"},
		{"fd00::/8", HOSTS, "metadata addresses"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct match_entry entry;
		char problem[ENTRY_PROBLEM_SIZE] = "";
		assert_int_equal(entry_parse(rows[i].text, strlen(rows[i].text), rows[i].rules,
					     &entry, problem),
				 1);
		assert_non_null(strstr(problem, rows[i].problem));
	}
}

/* The message is cut, never the check. */
static void long_entries_are_refused(void **state)
{
	(void)state;
	static char text[100000];
	struct match_entry entry;
	char problem[ENTRY_PROBLEM_SIZE];

	for (const char *byte = "a.:[/1*"; *byte != '\0'; byte++) {
		memset(text, *byte, sizeof(text));
		assert_int_equal(entry_parse(text, sizeof(text), HOSTS, &entry, problem), -EINVAL);
		assert_true(memchr(problem, '\0', sizeof(problem)) != NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_read_and_written),
		cmocka_unit_test(bad_entries_are_refused),
		cmocka_unit_test(doubtful_entries_are_warned_of),
		cmocka_unit_test(long_entries_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
