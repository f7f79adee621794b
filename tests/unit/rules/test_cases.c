/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The cases of a text file: "policy WORDS" begins a section, every other line is a question, " -> "
 * and the answer; "deny" stands for any reason. All lines that disagree are printed before the test
 * fails.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

static const char *path;

static bool agrees(const char *want, const char *got)
{
	return strcmp(want, got) == 0 || (strcmp(want, "deny") == 0 && strcmp(got, "allow") != 0);
}

static void test_file(void **state)
{
	FILE *file = fopen(path, "r");
	struct world *world = calloc(1, sizeof(*world));
	unsigned number = 0, asked = 0, wrong = 0;
	char line[4096];

	(void)state;
	assert_non_null(file);
	world_init(world, "");
	while (fgets(line, sizeof(line), file) != NULL) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' || line[0] == '\0')
			continue;
		if (strncmp(line, "policy", 6) == 0) {
			world_free(world);
			world_init(world, line + 6);
			continue;
		}
		char *arrow = strstr(line, " -> ");
		if (arrow == NULL)
			fail_msg("%s:%u: no answer", path, number);
		*arrow = '\0';
		const char *got = world_ask(world, line);
		asked++;
		if (agrees(arrow + 4, got))
			continue;
		wrong++;
		print_error("%s:%u: %s: want %s, got %s\n", path, number, line, arrow + 4, got);
	}
	fclose(file);
	world_free(world);
	free(world);
	assert_int_equal(wrong, 0);
	assert_true(asked > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_file)};

	if (argc != 2)
		return 2;
	path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
