/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "secrets/secrets.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/percent.h"
#include "secrets/table.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE              65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

/* As many ordinary targets as the corpus must hold at least. */
#define CORPUS_MIN 300

static struct secrets *secrets;

static int open_secrets(void **state)
{
	(void)state;
	const char *problem;

	return secrets_new(&secrets, &problem);
}

static int close_secrets(void **state)
{
	(void)state;
	secrets_free(secrets);
	return 0;
}

/* The name of what is found in TEXT, "" for nothing. */
static const char *found_in(const char *text)
{
	struct secret secret = {.name = ""};

	return secrets_find(secrets, text, strlen(text), &secret) == 1 ? secret.name : "";
}

static void every_example_holds(void **state)
{
	(void)state;
	assert_true(secret_shape_count >= 40);
	for (size_t i = 0; i < secret_shape_count; i++) {
		const struct secret_shape *shape = &secret_shapes[i];
		for (const char *const *text = shape->yes; *text != NULL; text++)
			if (strcmp(found_in(*text), shape->name) != 0)
				fail_msg("line %u: %s: yes %s: got \"%s\"", shape->line,
					 shape->name, *text, found_in(*text));
		for (const char *const *text = shape->no; *text != NULL; text++)
			if (strcmp(found_in(*text), "") != 0)
				fail_msg("line %u: %s: no %s: got %s", shape->line, shape->name,
					 *text, found_in(*text));
	}
}

/* Percent-encodes every octet of TEXT, in lower or upper hex. */
static void encode_all(const char *text, size_t length, bool upper, char *out)
{
	for (size_t i = 0; i < length; i++)
		out += sprintf(out, upper ? "%%%02X" : "%%%02x", (unsigned char)text[i]);
}

static void encoded_once_and_twice_is_found(void **state)
{
	(void)state;
	static char once[65536], twice[196608], thrice[589824];

	for (size_t i = 0; i < secret_shape_count; i++) {
		for (const char *const *text = secret_shapes[i].yes; *text != NULL; text++) {
			if (strchr(*text, '%') != NULL)
				continue;
			for (int upper = 0; upper < 2; upper++) {
				encode_all(*text, strlen(*text), upper, once);
				encode_all(once, strlen(once), upper, twice);
				encode_all(twice, strlen(twice), upper, thrice);
				assert_string_equal(found_in(once), secret_shapes[i].name);
				assert_string_equal(found_in(twice), secret_shapes[i].name);
				assert_string_equal(found_in(thrice), "");
			}
		}
	}
}

static void decoding_keeps_what_is_malformed(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
		{"", ""},           {"%", "%"},     {"%4", "%4"},           {"%41", "A"},
		{"%4g%41", "%4gA"}, {"%%41", "%A"}, {"100%&%41", "100%&A"}, {"%41%4", "A%4"},
		{"%2541", "%41"},   {"+%2B", "++"}, {"%aA", "\xaa"},
	};
	char out[32];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t length = percent_decode(rows[i][0], strlen(rows[i][0]), out);
		assert_int_equal(length, strlen(rows[i][1]));
		assert_memory_equal(out, rows[i][1], length);
	}
}

static void malformed_escapes_disable_nothing(void **state)
{
	(void)state;
	assert_string_equal(found_in("/?x=100%&key=sk%2Dabcdefghijklmnopqrstuvwxyz123456"),
			    "openai-key");
	assert_string_equal(found_in("/?key=sk%2Dabcdefghijklmnopqrstuvwxyz123456&tail=%4"),
			    "openai-key");
	assert_string_equal(found_in("/?key=%zz%sk%252Dabcdefghijklmnopqrstuvwxyz123456&%"),
			    "openai-key");
	/* a NUL that was encoded ends nothing */
	assert_string_equal(found_in("/%00?key=sk-abcdefghijklmnopqrstuvwxyz123456"), "openai-key");
	assert_string_equal(found_in("/?a=%00%00sk%2Dabcdefghijklmnopqrstuvwxyz123456"),
			    "openai-key");
}

static void no_boundary_no_finding(void **state)
{
	(void)state;
	assert_string_equal(found_in("/%74ask-abcdefghijklmnopqrstuvwxyz0123"), "");
	assert_string_equal(found_in("/fl%61sk-abcdefghijklmnopqrstuvwxyz0123"), "");
}

static void a_search_that_gives_up_is_a_finding(void **state)
{
	(void)state;
	struct secret secret;
	char *target = malloc(SECRETS_TARGET_MAX + 1);

	memset(target, 'a', SECRETS_TARGET_MAX + 1);
	assert_int_equal(secrets_find(secrets, target, SECRETS_TARGET_MAX + 1, &secret), 1);
	assert_string_equal(secret.name, "match-limit");
	assert_int_equal(secret.line, 0);
	/* the longest ordinary target there can be is searched to its end */
	assert_int_equal(secrets_find(secrets, target, SECRETS_TARGET_MAX, &secret), 0);
	/* and so is one in which many shapes begin at every step */
	for (size_t i = 0; i + 4 <= SECRETS_TARGET_MAX; i += 4)
		memcpy(target + i, "-ey.", 4);
	assert_int_equal(secrets_find(secrets, target, SECRETS_TARGET_MAX, &secret), 0);
	memcpy(target + SECRETS_TARGET_MAX - 41, "/ghp_abcdefghijklmnopqrstuvwxyz0123456789", 41);
	assert_int_equal(secrets_find(secrets, target, SECRETS_TARGET_MAX, &secret), 1);
	assert_string_equal(secret.name, "github-token");
	free(target);
}

static void ordinary_targets_pass(void **state)
{
	(void)state;
	FILE *corpus = fopen(CORPUS, "re");
	char *line = NULL;
	size_t size = 0;
	int ordinary = 0, number = 0;

	assert_non_null(corpus);
	while (getline(&line, &size, corpus) > 0) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#')
			continue;
		const char *want = "", *target = line;
		if (line[0] == '!') {
			want = strtok(line + 1, " ");
			target = strtok(NULL, "");
		} else {
			ordinary++;
		}
		if (strcmp(found_in(target), want) != 0)
			fail_msg("line %d: %s: want \"%s\", got \"%s\"", number, target, want,
				 found_in(target));
	}
	free(line);
	fclose(corpus);
	assert_true(ordinary >= CORPUS_MIN);
}

static int open_settled(void **state)
{
	return open_secrets(state) != 0 ? -1 : secrets_settle(secrets);
}

static void no_memory_is_written_and_executed(void **state)
{
	(void)state;
	FILE *maps = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t size = 0;

	assert_non_null(maps);
	while (getline(&line, &size, maps) > 0)
		assert_null(strstr(line, " rwx"));
	free(line);
	fclose(maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_example_holds),
		cmocka_unit_test(encoded_once_and_twice_is_found),
		cmocka_unit_test(decoding_keeps_what_is_malformed),
		cmocka_unit_test(malformed_escapes_disable_nothing),
		cmocka_unit_test(no_boundary_no_finding),
		cmocka_unit_test(a_search_that_gives_up_is_a_finding),
		cmocka_unit_test(ordinary_targets_pass),
		cmocka_unit_test(no_memory_is_written_and_executed),
	};
	int failed = cmocka_run_group_tests_name("as made", tests, open_secrets, close_secrets);
	int status = 0;
	pid_t child = fork();

	if (child == 0) {
		/* kernels before 6.3 do not know it: the same again with machine code */
		prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0);
		_exit(cmocka_run_group_tests_name("settled, no machine code", tests, open_settled,
						  NULL));
	}
	failed += child < 0 || waitpid(child, &status, 0) < 0 || status != 0;
	failed += cmocka_run_group_tests_name("settled", tests, open_settled, NULL);
	return failed;
}
