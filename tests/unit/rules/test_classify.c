/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Classes of addresses against the data files themselves, read here once more and asked row by row:
 * the slow and obvious way.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/classify.h"
#include "rules/embedding.h"
#include "world.h"

struct row {
	struct prefix prefix;
	enum address_class class;
	int rank; /* the class file before the registries */
};

static struct row rows[256];
static size_t row_count;
static const char *folder;

static void add_row(const char *text, enum address_class class, int rank)
{
	char buffer[64];

	snprintf(buffer, sizeof(buffer), "%.*s", (int)strcspn(text, " ,[\""), text);
	if (prefix_parse(buffer, strlen(buffer), &rows[row_count].prefix) < 0)
		fail_msg("%s is no prefix", buffer);
	rows[row_count].class = class;
	rows[row_count++].rank = rank;
}

static FILE *open_file(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "r");
	if (file == NULL)
		fail_msg("%s cannot be read", path);
	return file;
}

static void read_classes(void)
{
	static const struct {
		const char *text;
		enum address_class class;
	} classes[] = {{"loopback ", CLASS_LOOPBACK},
		       {"private ", CLASS_PRIVATE},
		       {"special ", CLASS_SPECIAL},
		       {"never ", CLASS_NEVER}};
	FILE *file = open_file("address-classes.txt");
	char line[512];

	while (fgets(line, sizeof(line), file) != NULL)
		for (size_t i = 0; i < 4; i++)
			if (strncmp(line, classes[i].text, strlen(classes[i].text)) == 0)
				add_row(line + strlen(classes[i].text), classes[i].class, 1);
	fclose(file);
}

/* One row; a quoted column goes on in the next line. */
static bool read_csv_row(FILE *file, char *row, size_t size)
{
	size_t used = 0, quotes = 0;

	do {
		if (fgets(row + used, (int)(size - used), file) == NULL)
			return false;
		for (; row[used] != '\0'; used++)
			quotes += row[used] == '"';
	} while (quotes % 2 != 0);
	return true;
}

/* The ninth column from the front is the second but one from the end; "True" anywhere there is yes.
 */
static void read_registry(const char *name)
{
	FILE *file = open_file(name);
	char line[512];

	assert_true(read_csv_row(file, line, sizeof(line)));
	while (read_csv_row(file, line, sizeof(line))) {
		char *last = strrchr(line, ',');
		*last = '\0';
		enum address_class class =
			strcmp(strrchr(line, ','), ",True") == 0 ? CLASS_PUBLIC : CLASS_SPECIAL;
		const char *block = line[0] == '"' ? line + 1 : line;
		add_row(block, class, 0);
		if (line[0] == '"')
			add_row(strchr(block, ' ') + 1, class, 0);
	}
	fclose(file);
}

static int read_rows(void **state)
{
	(void)state;
	read_classes();
	read_registry("iana-ipv4-special.csv");
	read_registry("iana-ipv6-special.csv");
	struct address unicast = {ADDRESS_IPV6, {0x20}};
	rows[row_count++] = (struct row){{unicast, 3}, CLASS_PUBLIC, 0};
	assert_true(row_count > 60);
	return 0;
}

static enum address_class oracle(const struct address *address)
{
	const struct row *best = NULL;

	for (size_t i = 0; i < row_count; i++) {
		const struct row *row = &rows[i];
		if (!prefix_contains(&row->prefix, address))
			continue;
		if (best == NULL || row->prefix.length > best->prefix.length ||
		    (row->prefix.length == best->prefix.length && row->rank > best->rank))
			best = row;
	}
	if (best != NULL)
		return best->class;
	return address->family == ADDRESS_IPV4 ? CLASS_PUBLIC : CLASS_SPECIAL;
}

static void check(const struct address *address)
{
	struct embedded embedded[EMBEDDED_MAX];
	char text[ADDRESS_TEXT_SIZE];
	unsigned want = CLASS_BIT(oracle(address));

	/* embedding forms have tests of their own */
	if (embedding_decode(address, embedded) > 0)
		return;
	unsigned got = class_of_address(address, NULL);
	if (got != want)
		fail_msg("%s: classes %x, want %x", address_format(address, text), got, want);
}

/* Adds DELTA (1 or -1) to an address as a number. */
static struct address neighbour(struct address address, int delta)
{
	for (size_t i = address_length(&address); i-- > 0;) {
		address.bytes[i] = (uint8_t)(address.bytes[i] + delta);
		if (address.bytes[i] != (delta > 0 ? 0 : 0xff))
			break;
	}
	return address;
}

static struct address last_of(const struct prefix *prefix)
{
	struct address last = prefix->address;

	for (unsigned bit = prefix->length; bit < address_bits(&last); bit++)
		last.bytes[bit / 8] |= (uint8_t)(0x80u >> bit % 8);
	return last;
}

static void test_boundaries(void **state)
{
	(void)state;
	for (size_t i = 0; i < row_count; i++) {
		struct address first = rows[i].prefix.address, last = last_of(&rows[i].prefix);
		struct address below = neighbour(first, -1), above = neighbour(last, 1);
		check(&first);
		check(&last);
		check(&below);
		check(&above);
	}
}

static void test_random(void **state)
{
	struct address address;

	(void)state;
	srandom(2);
	for (int i = 0; i < 200000; i++) {
		/* half anywhere, half inside some row */
		uint8_t bytes[16];
		for (size_t b = 0; b < sizeof(bytes); b++)
			bytes[b] = (uint8_t)random();
		address = address_from_bytes(bytes, random() % 2 ? 4 : 16);
		if (random() % 2) {
			const struct prefix *prefix = &rows[(size_t)random() % row_count].prefix;
			address = address_from_bytes(bytes, address_length(&prefix->address));
			for (unsigned bit = 0; bit < prefix->length; bit++) {
				uint8_t mask = (uint8_t)(0x80u >> bit % 8);
				address.bytes[bit / 8] &= (uint8_t)~mask;
				address.bytes[bit / 8] |= prefix->address.bytes[bit / 8] & mask;
			}
		}
		check(&address);
	}
}

static void test_known(void **state)
{
	static const struct {
		const char *text;
		enum address_class class;
	} known[] = {
		{"8.8.8.8", CLASS_PUBLIC},
		{"0.0.0.0", CLASS_LOOPBACK},
		{"0.0.0.1", CLASS_SPECIAL},
		{"127.255.255.255", CLASS_LOOPBACK},
		{"100.64.0.1", CLASS_PRIVATE},
		{"169.254.1.1", CLASS_PRIVATE},
		{"192.0.0.9", CLASS_PUBLIC},
		{"192.0.0.11", CLASS_SPECIAL},
		{"192.88.99.1", CLASS_SPECIAL},
		{"192.88.99.2", CLASS_SPECIAL},
		{"224.0.0.251", CLASS_NEVER},
		{"255.255.255.255", CLASS_NEVER},
		{"240.0.0.1", CLASS_NEVER},
		{"::", CLASS_LOOPBACK},
		{"::1", CLASS_LOOPBACK},
		{"fec0::1", CLASS_PRIVATE},
		{"fe00::1", CLASS_SPECIAL},
		{"ff02::1", CLASS_NEVER},
		{"2001:4860:4860::8888", CLASS_PUBLIC},
		{"2001:10::1", CLASS_SPECIAL},
		{"2001:20::1", CLASS_PUBLIC},
		{"3ffe::1", CLASS_SPECIAL},
		{"3fff::1", CLASS_SPECIAL},
		{"3fff:1000::1", CLASS_PUBLIC},
		{"4000::1", CLASS_SPECIAL},
		{"1fff:ffff::1", CLASS_SPECIAL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct address address = world_address(known[i].text);
		if (class_of_address(&address, NULL) != CLASS_BIT(known[i].class))
			fail_msg("%s", known[i].text);
	}
	struct address none = {0};
	assert_int_equal(class_of_address(&none, NULL), CLASS_BIT(CLASS_NEVER));
}

/* The prefixes for other programs cover exactly what is not public. */
static void test_nonpublic_prefixes(void **state)
{
	size_t count;
	const struct prefix *prefixes = class_nonpublic_prefixes(&count);

	(void)state;
	assert_true(count > 20);
	srandom(3);
	for (int i = 0; i < 50000; i++) {
		uint8_t bytes[16];
		struct embedded embedded[EMBEDDED_MAX];
		for (size_t b = 0; b < sizeof(bytes); b++)
			bytes[b] = (uint8_t)random();
		if (random() % 2)
			bytes[0] = 0x20;
		struct address address = address_from_bytes(bytes, random() % 2 ? 4 : 16);
		if (embedding_decode(&address, embedded) > 0)
			continue;
		bool covered = false;
		for (size_t p = 0; p < count; p++)
			covered = covered || prefix_contains(&prefixes[p], &address);
		assert_int_equal(covered, !class_is_public(&address));
	}
}

struct embedding_case {
	const char *text;
	unsigned classes;
	size_t count;
	const char *first; /* decoded */
};

#define PUBLIC   CLASS_BIT(CLASS_PUBLIC)
#define LOOPBACK CLASS_BIT(CLASS_LOOPBACK)
#define PRIVATE  CLASS_BIT(CLASS_PRIVATE)
#define SPECIAL  CLASS_BIT(CLASS_SPECIAL)
#define NEVER    CLASS_BIT(CLASS_NEVER)

static const struct embedding_case embedding_cases[] = {
	{"::ffff:8.8.8.8", PUBLIC, 1, "8.8.8.8"},
	{"::ffff:10.0.0.1", PRIVATE, 1, "10.0.0.1"},
	{"::ffff:224.0.0.1", NEVER, 1, "224.0.0.1"},
	{"::ffff:0.0.0.0", LOOPBACK, 1, "0.0.0.0"},
	{"::8.8.8.8", SPECIAL, 1, "8.8.8.8"},
	{"::10.0.0.1", PRIVATE, 1, "10.0.0.1"},
	{"::127.0.0.1", LOOPBACK, 1, "127.0.0.1"},
	{"::", LOOPBACK, 0, NULL},
	{"::1", LOOPBACK, 0, NULL},
	{"::2", SPECIAL, 1, "0.0.0.2"},
	{"::ffff:0:8.8.8.8", SPECIAL, 1, "8.8.8.8"},
	{"::ffff:0:192.168.0.1", PRIVATE, 1, "192.168.0.1"},
	{"64:ff9b::8.8.8.8", PUBLIC, 1, "8.8.8.8"},
	{"64:ff9b::127.0.0.1", LOOPBACK, 1, "127.0.0.1"},
	{"64:ff9b::192.0.2.1", SPECIAL, 1, "192.0.2.1"},
	{"64:ff9b::1:8.8.8.8", SPECIAL, 0, NULL},
	{"64:ff9b:1::8.8.8.8", SPECIAL, 1, "8.8.8.8"},
	{"64:ff9b:1::10.0.0.1", PRIVATE, 1, "10.0.0.1"},
	{"64:ff9b:1:a9fe:a9:fe00::", PRIVATE | NEVER, 3, "169.254.169.254"},
	{"64:ff9b:1:a00:0:100::", PRIVATE | SPECIAL, 3, "10.0.0.1"},
	{"64:ff9b:1:7:8:808:800::", SPECIAL, 2, "8.8.8.8"},
	{"64:ff9b:2::8.8.8.8", SPECIAL, 0, NULL},
	{"2002:808:808::1", SPECIAL, 1, "8.8.8.8"},
	{"2002:a00:1::1", PRIVATE, 1, "10.0.0.1"},
	{"2002:7f00:1::", LOOPBACK, 1, "127.0.0.1"},
	{"2002:808:808::5efe:a00:1", PRIVATE | SPECIAL, 2, "8.8.8.8"},
	{"2001:0:4136:e378:8000:63bf:3fff:fdd2", SPECIAL, 2, "192.0.2.45"},
	{"2001:0:4136:e378:8000:63bf:f5ff:fffe", PRIVATE, 2, "10.0.0.1"},
	{"2001:0:a00:1:8000:63bf:f7f7:f7f7", PRIVATE | SPECIAL, 2, "8.8.8.8"},
	{"2001:470:1:2:0:5efe:808:808", PUBLIC, 1, "8.8.8.8"},
	{"2001:470:1:2:200:5efe:808:808", PUBLIC, 1, "8.8.8.8"},
	{"2001:470:1:2:100:5efe:808:808", PUBLIC, 0, NULL},
	{"2001:470:1:2:0:5efe:c0a8:101", PRIVATE, 1, "192.168.1.1"},
	{"fe80::5efe:808:808", PRIVATE, 1, "8.8.8.8"},
	{"8.8.8.8", PUBLIC, 0, NULL},
};

static void test_embeddings(void **state)
{
	struct embedded embedded[EMBEDDED_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(embedding_cases) / sizeof(embedding_cases[0]); i++) {
		const struct embedding_case *c = &embedding_cases[i];
		struct address address = world_address(c->text);
		size_t count = embedding_decode(&address, embedded);
		unsigned classes = class_of_address(&address, NULL);
		if (count != c->count || classes != c->classes)
			fail_msg("%s: %zu forms, classes %x", c->text, count, classes);
		if (count > 0) {
			struct address first = world_address(c->first);
			assert_true(address_equal(&embedded[0].address, &first));
		}
	}
}

static void test_same(void **state)
{
	static const struct {
		const char *a, *b;
		bool same;
	} pairs[] = {
		{"1.2.3.4", "1.2.3.4", true},
		{"1.2.3.4", "1.2.3.5", false},
		{"1.2.3.4", "::ffff:1.2.3.4", true},
		{"1.2.3.4", "64:ff9b::1.2.3.4", true},
		{"::ffff:1.2.3.4", "64:ff9b::1.2.3.4", true},
		{"1.2.3.4", "2002:102:304::1", true},
		{"1.2.3.4", "2001:470:1:2:0:5efe:102:304", false},
		{"10.0.0.1", "2001:0:4136:e378:8000:63bf:f5ff:fffe", false},
		{"2001:db8::1", "2001:db8::1", true},
		{"2001:db8::1", "2001:db8::2", false},
		{"169.254.169.254", "64:ff9b:1:a9fe:a9:fe00::", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct address a = world_address(pairs[i].a), b = world_address(pairs[i].b);
		if (embedding_same(&a, &b) != pairs[i].same ||
		    embedding_same(&b, &a) != pairs[i].same)
			fail_msg("%s and %s", pairs[i].a, pairs[i].b);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boundaries), cmocka_unit_test(test_random),
		cmocka_unit_test(test_known),      cmocka_unit_test(test_nonpublic_prefixes),
		cmocka_unit_test(test_embeddings), cmocka_unit_test(test_same),
	};

	if (argc != 2)
		return 2;
	folder = argv[1];
	return cmocka_run_group_tests(tests, read_rows, NULL);
}
