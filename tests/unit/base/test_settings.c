/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "settings.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* A file of LENGTH octets of BYTES whose path goes into PATH. */
static int make_file(char path[SETTINGS_PATH_MAX], const void *bytes, size_t length)
{
	strcpy(path, "/tmp/pinfold-settings-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	return fd;
}

static void test_reads_texts(void **state)
{
	(void)state;
	struct resolver_settings *resolver = calloc(1, sizeof(*resolver));
	char problem[128];
	int fd = make_file(resolver->trust_anchor, ". IN DS 1 8 2 00\n", 17);

	assert_int_equal(settings_read_files(resolver, problem, sizeof(problem)), 0);
	assert_string_equal(resolver->trust_anchor_text, ". IN DS 1 8 2 00\n");
	assert_string_equal(resolver->root_hints_text, "");

	strcpy(resolver->root_hints, "/nonexistent/hints");
	strcpy(resolver->trust_anchor_text, "kept");
	assert_int_equal(settings_read_files(resolver, problem, sizeof(problem)), -ENOENT);
	assert_non_null(strstr(problem, "root hints /nonexistent/hints"));
	assert_string_equal(resolver->trust_anchor_text, "kept");
	unlink(resolver->trust_anchor);
	close(fd);
	free(resolver);
}

static void test_refuses_files(void **state)
{
	(void)state;
	struct resolver_settings *resolver = calloc(1, sizeof(*resolver));
	char *large = malloc(SETTINGS_HINTS_TEXT_MAX);
	char problem[128];

	memset(large, ';', SETTINGS_HINTS_TEXT_MAX);
	int fd = make_file(resolver->root_hints, large, SETTINGS_HINTS_TEXT_MAX);
	assert_int_equal(settings_read_files(resolver, problem, sizeof(problem)), -EFBIG);
	assert_int_equal(ftruncate(fd, SETTINGS_HINTS_TEXT_MAX - 1), 0);
	assert_int_equal(settings_read_files(resolver, problem, sizeof(problem)), 0);
	assert_int_equal(pwrite(fd, "", 1, 5), 1);
	assert_int_equal(settings_read_files(resolver, problem, sizeof(problem)), -EINVAL);
	unlink(resolver->root_hints);
	close(fd);
	strcpy(resolver->root_hints, "/tmp");
	assert_int_equal(settings_read_files(resolver, problem, sizeof(problem)), -EINVAL);
	free(large);
	free(resolver);
}

static void test_receive(void **state)
{
	(void)state;
	struct settings *settings = calloc(1, sizeof(*settings));
	struct settings *out = calloc(1, sizeof(*out));
	int fd = memfd_create("settings", MFD_CLOEXEC);

	settings->version = SETTINGS_VERSION;
	settings->size = sizeof(*settings);
	settings->generation = 7;
	assert_int_equal(pwrite(fd, settings, sizeof(*settings), 0), sizeof(*settings));
	assert_int_equal(settings_receive(fd, out), 0);
	assert_int_equal(out->generation, 7);

	static const struct {
		size_t offset, length;
	} damage[] = {
		{offsetof(struct settings, version), 1},
		{offsetof(struct settings, size), 1},
		{offsetof(struct settings, resolver.listen_count), 4},
		{offsetof(struct settings, resolver.network_count), 4},
		{offsetof(struct settings, resolver.zone_count), 4},
		{offsetof(struct settings, resolver.negative_anchor_count), 4},
		{offsetof(struct settings, resolver.trust_anchor), SETTINGS_PATH_MAX},
		{offsetof(struct settings, resolver.root_hints_text), SETTINGS_HINTS_TEXT_MAX},
		{offsetof(struct settings, resolver.validation_date), 16},
	};
	out->generation = 1;
	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
		struct settings *bad = malloc(sizeof(*bad));
		*bad = *settings;
		memset((char *)bad + damage[i].offset, 0xff, damage[i].length);
		assert_int_equal(pwrite(fd, bad, sizeof(*bad), 0), sizeof(*bad));
		assert_int_equal(settings_receive(fd, out), -EPROTO);
		free(bad);
	}
	assert_int_equal(pwrite(fd, settings, sizeof(*settings), 0), sizeof(*settings));
	assert_int_equal(ftruncate(fd, sizeof(*settings) - 1), 0);
	assert_int_equal(settings_receive(fd, out), -EPROTO);
	assert_int_equal(ftruncate(fd, sizeof(*settings) + 1), 0);
	assert_int_equal(settings_receive(fd, out), -EPROTO);
	assert_int_equal(out->generation, 1);
	close(fd);
	free(out);
	free(settings);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_texts),
		cmocka_unit_test(test_refuses_files),
		cmocka_unit_test(test_receive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
