/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/url.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NAME(text)    HOST_NAME, text
#define LITERAL(text) HOST_LITERAL, text
#define BAD           HOST_MALFORMED, NULL
#define NONE          HOST_NONE, NULL

static void urls_are_taken_apart(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum url_scheme scheme;
		bool malformed;
		enum host_kind kind;
		const char *host;
		uint16_t port;
		bool port_given;
		const char *target; /* NULL: none */
	} rows[] = {
		{"http://example.com", URL_HTTP, false, NAME("example.com"), 80, false, "/"},
		{"http://example.com/", URL_HTTP, false, NAME("example.com"), 80, false, "/"},
		{"HTTPS://EXAMPLE.com/x", URL_HTTPS, false, NAME("example.com"), 443, false, "/x"},
		{"ws://example.com/s?a=b", URL_WS, false, NAME("example.com"), 80, false, "/s?a=b"},
		{"wss://example.com/", URL_WSS, false, NAME("example.com"), 443, false, "/"},
		{"http://example.com.:80/", URL_HTTP, false, NAME("example.com"), 80, false, "/"},
		{"https://example.com:443", URL_HTTPS, false, NAME("example.com"), 443, false, "/"},
		{"https://example.com:80", URL_HTTPS, false, NAME("example.com"), 80, true, "/"},
		{"http://example.com:8080/a", URL_HTTP, false, NAME("example.com"), 8080, true,
		 "/a"},
		{"http://example.com:/a", URL_HTTP, false, NAME("example.com"), 80, false, "/a"},
		{"http://example.com:65535/", URL_HTTP, false, NAME("example.com"), 65535, true,
		 "/"},
		{"http://example.com:00080/", URL_HTTP, false, NAME("example.com"), 80, false, "/"},
		/* the fragment is never sent, the query is no host */
		{"http://example.com/a#b?c", URL_HTTP, false, NAME("example.com"), 80, false, "/a"},
		{"http://example.com#b", URL_HTTP, false, NAME("example.com"), 80, false, "/"},
		{"http://example.com?x=1", URL_HTTP, false, NAME("example.com"), 80, false,
		 "/?x=1"},
		{"http://1.2.3.4?@example.com/", URL_HTTP, false, LITERAL("1.2.3.4"), 80, false,
		 "/?@example.com/"},
		{"http://1.2.3.4#@example.com/", URL_HTTP, false, LITERAL("1.2.3.4"), 80, false,
		 "/"},
		{"http://1.2.3.4/@example.com/", URL_HTTP, false, LITERAL("1.2.3.4"), 80, false,
		 "/@example.com/"},
		{"http://example.com/a//b://c", URL_HTTP, false, NAME("example.com"), 80, false,
		 "/a//b://c"},
		/* user information is not the host */
		{"http://example.com@1.2.3.4/", URL_HTTP, false, LITERAL("1.2.3.4"), 80, false,
		 "/"},
		{"http://user:pass@example.com:81/", URL_HTTP, false, NAME("example.com"), 81, true,
		 "/"},
		{"http://www.example.com:80@1.2.3.4/", URL_HTTP, false, LITERAL("1.2.3.4"), 80,
		 false, "/"},
		{"http://@example.com/", URL_HTTP, false, NAME("example.com"), 80, false, "/"},
		{"http://a@b@example.com/", URL_HTTP, true, NAME("example.com"), 80, false, "/"},
		/* literals in every spelling */
		{"http://2852039166/", URL_HTTP, false, LITERAL("169.254.169.254"), 80, false, "/"},
		{"http://0xA9.0376.43518/", URL_HTTP, false, LITERAL("169.254.169.254"), 80, false,
		 "/"},
		{"http://127.1:8080/", URL_HTTP, false, LITERAL("127.0.0.1"), 8080, true, "/"},
		{"http://[::1]/", URL_HTTP, false, LITERAL("::1"), 80, false, "/"},
		{"https://[2001:db8::1]:8443/x", URL_HTTPS, false, LITERAL("2001:db8::1"), 8443,
		 true, "/x"},
		{"http://169%2e254%2E169%2e254/", URL_HTTP, false, LITERAL("169.254.169.254"), 80,
		 false, "/"},
		{"http://%65xample.com/", URL_HTTP, false, NAME("example.com"), 80, false, "/"},
		/* U-labels, and digits that Unicode writes otherwise */
		{"http://b\xc3\xbc"
		 "cher.example/",
		 URL_HTTP, false, NAME("xn--bcher-kva.example"), 80, false, "/"},
		{"http://b%C3%BC"
		 "cher.example/",
		 URL_HTTP, false, NAME("xn--bcher-kva.example"), 80, false, "/"},
		{"http://169\xef\xbc\x8e"
		 "254.169.254/",
		 URL_HTTP, false, LITERAL("169.254.169.254"), 80, false, "/"},
		{"http://\xe2\x91\xa0.2.3.4/", URL_HTTP, false, LITERAL("1.2.3.4"), 80, false, "/"},
		/* what is no URL that everybody reads alike */
		{"http:///etc", URL_HTTP, true, BAD, 80, false, "/etc"},
		{"http://", URL_HTTP, true, BAD, 80, false, "/"},
		{"http:example.com", URL_HTTP, true, NONE, 80, false, NULL},
		{"http:/example.com", URL_HTTP, true, NONE, 80, false, NULL},
		{"http:\\\\example.com", URL_HTTP, true, NONE, 80, false, NULL},
		{"http://example.com\\@1.2.3.4/", URL_HTTP, true, LITERAL("1.2.3.4"), 80, false,
		 "/"},
		{"http://exa mple.com/", URL_HTTP, true, BAD, 80, false, "/"},
		{"http://example.com/a b", URL_HTTP, true, NAME("example.com"), 80, false, "/a b"},
		{"http://example.com/\t", URL_HTTP, true, NAME("example.com"), 80, false, "/\t"},
		{"http://exa%20mple.com/", URL_HTTP, true, BAD, 80, false, "/"},
		{"http://exa%mple.com/", URL_HTTP, true, BAD, 80, false, "/"},
		{"http://example.com%00.evil/", URL_HTTP, true, BAD, 80, false, "/"},
		{"http://example.com%2f@x/", URL_HTTP, false, NAME("x"), 80, false, "/"},
		{"http://127.0.0.08/", URL_HTTP, true, BAD, 80, false, "/"},
		{"http://256.1.1.1/", URL_HTTP, true, BAD, 80, false, "/"},
		{"http://[::1/", URL_HTTP, true, NONE, 80, false, "/"},
		{"http://[::g]/", URL_HTTP, true, BAD, 80, false, "/"},
		{"http://[1.2.3.4]/", URL_HTTP, true, BAD, 80, false, "/"},
		{"http://[::1]x/", URL_HTTP, true, BAD, 80, false, "/"},
		{"http://::1/", URL_HTTP, true, BAD, 80, false, "/"},
		{"http://example.com:0/", URL_HTTP, true, NAME("example.com"), 80, false, "/"},
		{"http://example.com:65536/", URL_HTTP, true, NAME("example.com"), 80, false, "/"},
		{"http://example.com:8o/", URL_HTTP, true, NAME("example.com"), 80, false, "/"},
		{"http://example.com:80:80/", URL_HTTP, true, NAME("example.com"), 80, false, "/"},
		{"http://\xff/", URL_HTTP, true, BAD, 80, false, "/"},
		/* other schemes */
		{"file:///etc/passwd", URL_OTHER, false, BAD, 0, false, "/etc/passwd"},
		{"gopher://127.0.0.1:6379/_x", URL_OTHER, false, LITERAL("127.0.0.1"), 6379, true,
		 "/_x"},
		{"data:text/plain,x", URL_OTHER, false, NONE, 0, false, NULL},
		{"ftp://example.com/", URL_OTHER, false, NAME("example.com"), 0, false, "/"},
		{"httpx://example.com/", URL_OTHER, false, NAME("example.com"), 0, false, "/"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[ADDRESS_TEXT_SIZE];
		struct url url;
		assert_int_equal(url_parse(rows[i].text, &url), 0);
		if (url.scheme != rows[i].scheme || url.malformed != rows[i].malformed ||
		    url.host.kind != rows[i].kind || url.port != rows[i].port)
			print_message("%s\n", rows[i].text);
		assert_int_equal(url.scheme, rows[i].scheme);
		assert_int_equal(url.malformed, rows[i].malformed);
		assert_int_equal(url.host.kind, rows[i].kind);
		if (rows[i].kind == HOST_NAME)
			assert_string_equal(url.host.name.text, rows[i].host);
		if (rows[i].kind == HOST_LITERAL)
			assert_string_equal(address_format(&url.host.literal, text), rows[i].host);
		assert_int_equal(url.port, rows[i].port);
		assert_int_equal(url.port_given, rows[i].port_given);
		if (rows[i].target == NULL) {
			assert_null(url.target);
		} else {
			assert_string_equal(url.target, rows[i].target);
			assert_int_equal(url.target_length, strlen(rows[i].target));
		}
		url_deinit(&url);
	}
}

static void what_has_no_scheme_is_no_url(void **state)
{
	(void)state;
	static const char *const texts[] = {"",          "example.com", "//example.com/",
					    "1http://x", ":",           "://x",
					    "ht tp://x", "/path",       "[::1]:80"};
	struct url url;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(url_parse(texts[i], &url), -EINVAL);
}

static void length_is_bounded(void **state)
{
	(void)state;
	char *text = malloc(URL_TEXT_MAX + 2);
	struct url url;

	assert_non_null(text);
	memset(text, 'a', URL_TEXT_MAX + 1);
	text[URL_TEXT_MAX + 1] = '\0';
	memcpy(text, "http://", 7);
	assert_int_equal(url_parse(text, &url), -E2BIG);
	text[URL_TEXT_MAX] = '\0';
	assert_int_equal(url_parse(text, &url), 0);
	assert_true(url.malformed);
	url_deinit(&url);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_taken_apart),
		cmocka_unit_test(what_has_no_scheme_is_no_url),
		cmocka_unit_test(length_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
