/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define LABEL_63 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static struct name name_of(const char *text)
{
	struct name name;

	assert_int_equal(name_from_text(text, strlen(text), &name), NAME_OK);
	return name;
}

static void text_becomes_canonical(void **state)
{
	(void)state;
	static const struct {
		const char *text, *canonical;
	} rows[] = {
		{"example.com", "example.com"},
		{"ExAmPlE.CoM", "example.com"},
		{"example.com.", "example.com"},
		{"_dmarc.example.com", "_dmarc.example.com"},
		{"a", "a"},
		{"xn--bcher-kva.example", "xn--bcher-kva.example"},
		{"1.2.3.4", "1.2.3.4"}, /* an address is no name, but that is policy's to say */
		{LABEL_63 ".com", LABEL_63 ".com"},
		{LABEL_63 "." LABEL_63 "." LABEL_63 "."
			  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		 LABEL_63 "." LABEL_63 "." LABEL_63 "."
			  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct name name = name_of(rows[i].text);
		assert_string_equal(name.text, rows[i].canonical);
		assert_int_equal(name.length, strlen(rows[i].canonical));
	}
}

static void bad_text_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t length;
		enum name_error error;
	} rows[] = {
		{"", 0, NAME_EMPTY_LABEL},
		{".", 1, NAME_EMPTY_LABEL},
		{"..", 2, NAME_EMPTY_LABEL},
		{".a", 2, NAME_EMPTY_LABEL},
		{"a..b", 4, NAME_EMPTY_LABEL},
		{"a..", 3, NAME_EMPTY_LABEL},
		{"a b", 3, NAME_BAD_BYTE},
		{"a\0b", 3, NAME_BAD_BYTE},
		{"a/b", 3, NAME_BAD_BYTE},
		{"*.a", 3, NAME_BAD_BYTE},
		{"b\xc3\xbc"
		 "cher.example",
		 14, NAME_BAD_BYTE},
		{"a\x7f", 2, NAME_BAD_BYTE},
		{LABEL_63 "a.com", 68, NAME_LABEL_TOO_LONG},
		{LABEL_63 "." LABEL_63 "." LABEL_63 "." LABEL_63, 255, NAME_TOO_LONG},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct name name = {.length = 7, .text = "untouch"};
		assert_int_equal(name_from_text(rows[i].text, rows[i].length, &name),
				 rows[i].error);
		assert_string_equal(name.text, "untouch");
	}
}

static void wire_and_text_agree(void **state)
{
	(void)state;
	static const char *const texts[] = {"example.com", "a", "a.b.c.d", LABEL_63 ".x"};
	uint8_t wire[NAME_WIRE_MAX];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct name name = name_of(texts[i]), back;
		size_t used = 0, length = name_to_wire(&name, wire);
		assert_int_equal(length, name.length + 2);
		assert_int_equal(name_from_wire(wire, length, &back, &used), NAME_OK);
		assert_int_equal(used, length);
		assert_true(name_equal(&name, &back));
		for (size_t cut = 0; cut < length; cut++)
			assert_int_equal(name_from_wire(wire, cut, &back, NULL), NAME_TRUNCATED);
	}
	struct name root = {.length = 0};
	assert_int_equal(name_to_wire(&root, wire), 1);
	assert_int_equal(name_from_wire(wire, 1, &root, NULL), NAME_OK);
	assert_int_equal(root.length, 0);
}

static void bad_wire_is_refused(void **state)
{
	(void)state;
	struct name name;
	size_t used = 0;
	static const uint8_t pointer[] = {1, 'a', 0xc0, 0};
	static const uint8_t reserved[] = {0x41, 'a', 0};
	static const uint8_t dot_inside[] = {3, 'a', '.', 'b', 0, 99};
	uint8_t long_name[300];

	assert_int_equal(name_from_wire(pointer, sizeof(pointer), &name, &used), NAME_TRUNCATED);
	assert_int_equal(name_from_wire(reserved, sizeof(reserved), &name, &used), NAME_TRUNCATED);
	assert_int_equal(used, 0);
	assert_int_equal(name_from_wire(dot_inside, sizeof(dot_inside), &name, &used),
			 NAME_BAD_BYTE);
	assert_int_equal(used, 5);

	/* 254 octets of labels and the root are 255, the most there can be; one label more is not
	 */
	memset(long_name, 0, sizeof(long_name));
	for (size_t at = 0; at < 254; at += 2) {
		long_name[at] = 1;
		long_name[at + 1] = 'a';
	}
	assert_int_equal(name_from_wire(long_name, sizeof(long_name), &name, &used), NAME_OK);
	assert_int_equal(name.length, NAME_TEXT_MAX);
	long_name[254] = 1;
	long_name[255] = 'a';
	assert_int_equal(name_from_wire(long_name, sizeof(long_name), &name, &used), NAME_TOO_LONG);
}

static void ancestry_has_a_dot_boundary(void **state)
{
	(void)state;
	struct name www = name_of("www.example.com"), apex = name_of("example.com");
	struct name evil = name_of("evilexample.com"), com = name_of("com"), root = {.length = 0};

	assert_true(name_is_within(&www, &apex));
	assert_true(name_is_within(&apex, &apex));
	assert_false(name_is_within(&apex, &www));
	assert_false(name_is_within(&evil, &apex));
	assert_true(name_is_within(&evil, &com));
	assert_true(name_is_within(&evil, &root));
	assert_int_equal(name_label_count(&www), 3);
	assert_int_equal(name_label_count(&root), 0);
	struct name parent = name_parent(&www);
	assert_string_equal(parent.text, "example.com");
	parent = name_parent(&com);
	assert_int_equal(parent.length, 0);
	parent = name_parent(&root);
	assert_int_equal(parent.length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_becomes_canonical),
		cmocka_unit_test(bad_text_is_refused),
		cmocka_unit_test(wire_and_text_agree),
		cmocka_unit_test(bad_wire_is_refused),
		cmocka_unit_test(ancestry_has_a_dot_boundary),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
