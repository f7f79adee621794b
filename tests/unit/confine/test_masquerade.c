/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The text of the host's rules, and the text that takes them out of whatever they have become part
 * of.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "confine/masquerade.h"

static const uint8_t random_bytes[9] = {0xde, 0xad, 0x00, 0x0f, 1, 2, 3, 4, 5};

static void test_text(void **state)
{
	struct plan plan;
	char text[2048];

	(void)state;
	plan_make(&plan, random_bytes, 1);
	masquerade_text(&plan, false, true, text, sizeof(text));
	assert_string_equal(
		text,
		"*nat\n"
		"-A POSTROUTING -s 198.18.0.8/29 ! -o pfudead000f -m comment --comment "
		"pinfold-run:dead000f -j MASQUERADE\n"
		"COMMIT\n"
		"*filter\n"
		"-I FORWARD -o pfudead000f -m conntrack --ctstate RELATED,ESTABLISHED "
		"-m comment --comment pinfold-run:dead000f -j ACCEPT\n"
		"-I FORWARD -i pfudead000f -m comment --comment pinfold-run:dead000f -j ACCEPT\n"
		"-I FORWARD ! -s 198.18.0.8/29 -i pfudead000f -m comment --comment "
		"pinfold-run:dead000f -j DROP\n"
		"COMMIT\n");
	masquerade_text(&plan, true, false, text, sizeof(text));
	assert_non_null(strstr(text, "-D POSTROUTING -s fd01:203:405::/48 ! -o"));
	assert_null(strstr(text, "-A "));
	assert_null(strstr(text, "-I "));
}

static void assert_deletions(const char *saved, const char *expected)
{
	char *text = masquerade_deletions(saved, "pinfold-run:dead000f");

	assert_non_null(text);
	assert_string_equal(text, expected);
	free(text);
}

static void test_deletions(void **state)
{
	(void)state;
	assert_deletions("", "");
	assert_deletions("*nat\n:POSTROUTING ACCEPT [1:2]\n-A POSTROUTING -j MASQUERADE\nCOMMIT\n",
			 "");
	assert_deletions("# Generated\n"
			 "*filter\n"
			 ":FORWARD DROP [1:2]\n"
			 ":DOCKER - [0:0]\n"
			 "-A FORWARD -j DOCKER\n"
			 "-A FORWARD -i x -m comment --comment \"pinfold-run:dead000f\" -j ACCEPT\n"
			 "-A FORWARD -i y -m comment --comment \"pinfold-run:beef0001\" -j ACCEPT\n"
			 "-A DOCKER -m comment --comment pinfold-run:dead000f -j DROP\n"
			 "COMMIT\n"
			 "*nat\n"
			 "COMMIT\n",
			 "*filter\n"
			 "-D FORWARD -i x -m comment --comment \"pinfold-run:dead000f\" -j ACCEPT\n"
			 "-D DOCKER -m comment --comment pinfold-run:dead000f -j DROP\n"
			 "COMMIT\n"
			 "*nat\n"
			 "COMMIT\n");
	/* Cut short, and a chain that is named like the tag. */
	assert_deletions("*filter\n-A FORWARD -m comment --comment pinfold-run:dead000f",
			 "*filter\n-D FORWARD -m comment --comment pinfold-run:dead000f\n");
	assert_deletions(":pinfold-run:dead000f - [0:0]\n-A", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_deletions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
