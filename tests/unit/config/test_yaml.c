/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What one reading gave: the first report, and the tree written on one line. */
struct reading {
	struct arena arena;
	char reports[512];
	const struct yaml_node *root;
	bool good;
};

static void note(void *context, unsigned line, unsigned column, const char *text)
{
	struct reading *reading = context;
	size_t used = strlen(reading->reports);

	snprintf(reading->reports + used, sizeof(reading->reports) - used, "%u:%u: %s\n", line,
		 column, text);
}

static void start(struct reading *reading, const char *text, size_t length)
{
	memset(reading, 0, sizeof(*reading));
	reading->good = yaml_read(text, length, &reading->arena, note, reading, &reading->root);
}

static size_t flatten(const struct yaml_node *node, char *out, size_t size)
{
	size_t used = 0;
	size_t count = node->kind == YAML_MAPPING ? 2 * node->count : node->count;

	if (node->kind == YAML_SCALAR)
		return (size_t)snprintf(out, size, node->plain ? "%s@%u:%u" : "'%s'@%u:%u",
					node->text, node->line, node->column);
	used += (size_t)snprintf(out, size, node->kind == YAML_MAPPING ? "{" : "[");
	for (size_t i = 0; i < count; i++) {
		used += flatten(node->items[i], out + used, size - used);
		used += (size_t)snprintf(out + used, size - used, i + 1 < count ? " " : "");
	}
	return used + (size_t)snprintf(out + used, size - used, "%s@%u:%u",
				       node->kind == YAML_MAPPING ? "}" : "]", node->line,
				       node->column);
}

static void values_have_places(void **state)
{
	(void)state;
	static const struct {
		const char *text, *tree;
	} rows[] = {
		{"", NULL},
		{"# only a comment\n", NULL},
		{"---\n", "@1:1"},
		{"a: 1\n", "{a@1:1 1@1:4}@1:1"},
		{"a:\n  b: 'x'\n", "{a@1:1 {b@2:3 'x'@2:6}@2:3}@1:1"},
		{"a: \"x\"\n", "{a@1:1 'x'@1:4}@1:1"},
		{"{a: [1, 2]}", "{a@1:2 [1@1:6 2@1:9]@1:5}@1:1"},
		{"a:\nb:\n", "{a@1:1 @1:1 b@2:1 @2:1}@1:1"},
		{"a: 1\r\nb: 2\r\n", "{a@1:1 1@1:4 b@2:1 2@2:4}@1:1"},
		{"x: &a [1]\ny: *a\n", "{x@1:1 [1@1:8]@1:7 y@2:1 [1@1:8]@1:7}@1:1"},
		{"x: [::1, ::1/128]\n", "{x@1:1 [::1@1:5 ::1/128@1:10]@1:4}@1:1"},
		{"b\xc3\xbc: x\n", "{b\xc3\xbc@1:1 x@1:5}@1:1"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct reading reading;
		char tree[512] = "";
		start(&reading, rows[i].text, strlen(rows[i].text));
		assert_string_equal(reading.reports, "");
		assert_true(reading.good);
		if (rows[i].tree == NULL) {
			assert_null(reading.root);
		} else {
			assert_non_null(reading.root);
			flatten(reading.root, tree, sizeof(tree));
			assert_string_equal(tree, rows[i].tree);
		}
		arena_free(&reading.arena);
	}
}

#define TEXT(literal) literal, sizeof(literal) - 1

static void bad_text_has_a_place(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t length;
		const char *report;
	} rows[] = {
		{TEXT("a: 1\nb: \0\n"), "2:4: NUL byte\n"},
		{TEXT("a: \"\\0\"\n"), "1:4: a value holds a NUL byte\n"},
		{TEXT("a: \x01\n"), "1:4: control byte 0x01\n"},
		{TEXT("a: \x7f\n"), "1:4: control byte 0x7f\n"},
		{TEXT("a: \xff\n"), "1:4: byte 0xff is no UTF-8\n"},
		{TEXT("b\xc3\xbc: \xc3\n"), "1:5: byte 0xc3 is no UTF-8\n"},
		{TEXT("a: \xc0\x80\n"), "1:4: byte 0xc0 is no UTF-8\n"},
		{TEXT("a: \xe0\x80\x80\n"), "1:4: byte 0xe0 is no UTF-8\n"},
		{TEXT("a: \xed\xa0\x80\n"), "1:4: byte 0xed is no UTF-8\n"},
		{TEXT("a: \xf4\x90\x80\x80\n"), "1:4: byte 0xf4 is no UTF-8\n"},
		{TEXT("a: \xf5\x80\x80\x80\n"), "1:4: byte 0xf5 is no UTF-8\n"},
		{TEXT("a: \xe2\x82"), "1:4: byte 0xe2 is no UTF-8\n"},
		{TEXT("{a: 1, a: 2}"), "1:8: key 'a' is there twice, first in line 1\n"},
		{TEXT("{a: 1, \"a\": 2}"), "1:8: key 'a' is there twice, first in line 1\n"},
		{TEXT("x: *b\n"), "1:5: alias 'b' names nothing that is finished before it\n"},
		{TEXT("x: &a [*a]\n"), "1:9: alias 'a' names nothing that is finished before it\n"},
		{TEXT("--- a\n--- b\n"), "2:1: more than one document\n"},
		{TEXT("a: !!str 1"), "1:4: tags (!…) have no meaning here\n"},
		{TEXT("? [a]\n: b"), "1:3: a key must be text, not a list\n"},
		{TEXT("a: [1\nb: 2\n"), "3:1: YAML: flow sequence without a closing bracket\n"},
		{TEXT("a: @x\n"), "1:4: YAML: plain scalar cannot start with '@'\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct reading reading;
		start(&reading, rows[i].text, rows[i].length);
		assert_string_equal(reading.reports, rows[i].report);
		assert_false(reading.good);
		assert_null(reading.root);
		arena_free(&reading.arena);
	}
}

/* Every text that libfyaml calls broken is one report with a place inside it, never a crash. */
static void broken_syntax_is_reported(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"a: b: c\n",
		"a:\n\t b: 1\n",
		"- a\n b: c\n",
		"{a: 1,, b: 2}",
		"\"open",
		"a: 'open\n",
		"a: 1\n  b: 2\n",
		"[1, 2}",
		"}",
		"]",
		"%YAML 3.0\n---\na: 1\n",
		"a: `x`\n",
		"&a",
		"*",
		"? ? ?\n: :\n-",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct reading reading;
		start(&reading, texts[i], strlen(texts[i]));
		if (!reading.good)
			assert_true(strncmp(reading.reports, "0:", 2) != 0 &&
				    reading.reports[0] != '\0');
		arena_free(&reading.arena);
	}
}

static void depth_is_bounded(void **state)
{
	(void)state;
	enum { DEEP = 100000 };
	char *text = malloc(2 * DEEP);
	struct reading reading;

	assert_non_null(text);
	for (unsigned depth = 1; depth <= YAML_DEPTH_MAX + 1; depth++) {
		memset(text, '[', depth);
		memset(text + depth, ']', depth);
		start(&reading, text, 2 * depth);
		assert_int_equal(reading.good, depth <= YAML_DEPTH_MAX);
		arena_free(&reading.arena);
	}
	memset(text, '[', DEEP);
	memset(text + DEEP, ']', DEEP);
	start(&reading, text, 2 * DEEP);
	assert_string_equal(reading.reports, "1:17: nested more than 16 levels deep\n");
	arena_free(&reading.arena);
	memset(text, '{', 2 * DEEP);
	start(&reading, text, 2 * DEEP);
	assert_string_equal(reading.reports, "1:17: nested more than 16 levels deep\n");
	arena_free(&reading.arena);
	free(text);
}

/* Ten aliases a level, eight levels: a hundred million values in 400 octets. */
static void alias_bombs_are_refused(void **state)
{
	(void)state;
	char text[2048];
	size_t used = (size_t)snprintf(text, sizeof(text), "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
	struct reading reading;

	for (int level = 1; level < 8; level++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "a%d: &a%d [", level,
					 level);
		for (int i = 0; i < 10; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s*a%d",
						 i == 0 ? "" : ",", level - 1);
		used += (size_t)snprintf(text + used, sizeof(text) - used, "]\n");
	}
	start(&reading, text, used);
	assert_false(reading.good);
	assert_non_null(strstr(reading.reports, "more than 1000000 values"));
	arena_free(&reading.arena);
}

static void size_is_bounded(void **state)
{
	(void)state;
	char *text = malloc(YAML_SIZE_MAX + 1);
	struct reading reading;

	assert_non_null(text);
	memset(text, '#', YAML_SIZE_MAX + 1);
	start(&reading, text, YAML_SIZE_MAX);
	assert_true(reading.good);
	arena_free(&reading.arena);
	start(&reading, text, YAML_SIZE_MAX + 1);
	assert_false(reading.good);
	arena_free(&reading.arena);
	free(text);
}

static void many_anchors_are_refused(void **state)
{
	(void)state;
	char text[8192] = "";
	size_t used = 0;
	struct reading reading;

	for (int i = 0; i < 257; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "- &b%d x\n", i);
	start(&reading, text, used);
	assert_string_equal(reading.reports, "257:9: more than 256 anchors\n");
	arena_free(&reading.arena);
}

/* Every prefix and every flipped byte of a text that has it all: no crash, and a report or a tree.
 */
static void damaged_text_is_harmless(void **state)
{
	(void)state;
	static const char whole[] = "a: &x {b: [1, \"two\", 'three'], c: |\n  text\n  more\n}\n"
				    "d: *x\n? e\n: - f\n  - g: h\n# end\n";
	char text[sizeof(whole)];
	struct reading reading;

	for (size_t length = 0; length < sizeof(whole); length++) {
		start(&reading, whole, length);
		assert_true(reading.good || reading.reports[0] != '\0');
		arena_free(&reading.arena);
	}
	for (size_t i = 0; i < sizeof(whole) - 1; i++) {
		for (unsigned byte = 1; byte < 256; byte += 7) {
			memcpy(text, whole, sizeof(whole));
			text[i] = (char)byte;
			start(&reading, text, sizeof(whole) - 1);
			assert_true(reading.good || reading.reports[0] != '\0');
			arena_free(&reading.arena);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_have_places),
		cmocka_unit_test(bad_text_has_a_place),
		cmocka_unit_test(broken_syntax_is_reported),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(alias_bombs_are_refused),
		cmocka_unit_test(size_is_bounded),
		cmocka_unit_test(many_anchors_are_refused),
		cmocka_unit_test(damaged_text_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
