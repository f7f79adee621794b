/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Running a program: input, output, failure, environment. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "filter/tool.h"

static int run(const char *const *argv, const char *input, char **output, char problem[64])
{
	return tool_run(argv, input, output, problem, 64);
}

static void input_comes_back(void **state)
{
	const char *const cat[] = {"cat", NULL};
	const size_t size = 1u << 20; /* more than any pipe holds */
	char *input = malloc(size + 1), *output, problem[64];
	(void)state;

	assert_non_null(input);
	memset(input, 'x', size);
	input[size] = '\0';
	assert_int_equal(run(cat, input, &output, problem), 0);
	assert_string_equal(output, input);
	free(output);
	free(input);
	assert_int_equal(run(cat, NULL, &output, problem), 0);
	assert_string_equal(output, "");
	free(output);
}

static void arguments_are_not_for_a_shell(void **state)
{
	const char *const echo[] = {"echo", "$HOME; `id` > x", "*", NULL};
	char *output, problem[64];
	(void)state;

	assert_int_equal(run(echo, NULL, &output, problem), 0);
	assert_string_equal(output, "$HOME; `id` > x *\n");
	free(output);
}

static void the_environment_is_fixed(void **state)
{
	const char *const env[] = {"env", NULL};
	char *output, problem[64];
	(void)state;

	setenv("IPTABLES_LIB_DIR", "/tmp", 1);
	setenv("LD_PRELOAD", "", 1);
	assert_int_equal(run(env, NULL, &output, problem), 0);
	assert_string_equal(output, "PATH=/usr/sbin:/sbin:/usr/bin:/bin\nLC_ALL=C\n");
	free(output);
}

static void the_search_path_is_fixed(void **state)
{
	const char *const none[] = {"pinfold-no-such-program", NULL};
	const char *const path[] = {"./cat", NULL};
	char *output, problem[64];
	(void)state;

	assert_int_equal(run(none, NULL, &output, problem), -ENOENT);
	assert_string_equal(problem, "there is no program pinfold-no-such-program");
	assert_null(output);
	assert_int_equal(run(path, NULL, &output, problem), -ENOENT);
}

static void failures_are_one_line(void **state)
{
	const char *const false_[] = {"false", NULL};
	const char *const ls[] = {"cat", "/no/such\nfile", "/nor\tthat", NULL};
	char *output, problem[64];
	(void)state;

	assert_int_equal(run(false_, NULL, &output, problem), -EIO);
	assert_string_equal(problem, "false: exit status 1");
	free(output);
	assert_int_equal(run(ls, "", &output, problem), -EIO);
	assert_int_equal(strncmp(problem, "cat: cat: ", 10), 0);
	for (const char *at = problem; *at != '\0'; at++)
		assert_in_range(*at, ' ', '~');
	assert_in_range(strlen(problem), 20, 63);
	free(output);
}

static void a_signal_is_told(void **state)
{
	const char *const kill_[] = {"sh", "-c", "kill -KILL $$", NULL};
	char *output, problem[64];
	(void)state;

	assert_int_equal(run(kill_, NULL, &output, problem), -EIO);
	assert_string_equal(problem, "sh: signal 9");
	free(output);
}

/* Blocked and ignored signals of the caller are not the program's. */
static void signals_are_the_programs_own(void **state)
{
	const char *const kill_[] = {"sh", "-c", "kill -TERM $$", NULL};
	char *output, problem[64];
	sigset_t set, before;
	(void)state;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &before);
	assert_int_equal(run(kill_, NULL, &output, problem), -EIO);
	sigprocmask(SIG_SETMASK, &before, NULL);
	assert_string_equal(problem, "sh: signal 15");
	free(output);
}

static void nothing_is_inherited_or_left(void **state)
{
	const char *const ls[] = {"ls", "/proc/self/fd", NULL};
	char *output, problem[64];
	int before = dup(0), after;
	(void)state;

	close(before);
	assert_int_equal(run(ls, NULL, &output, problem), 0);
	/* 3 is ls' own look into the folder */
	assert_string_equal(output, "0\n1\n2\n3\n");
	free(output);
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_comes_back),
		cmocka_unit_test(arguments_are_not_for_a_shell),
		cmocka_unit_test(the_environment_is_fixed),
		cmocka_unit_test(the_search_path_is_fixed),
		cmocka_unit_test(failures_are_one_line),
		cmocka_unit_test(a_signal_is_told),
		cmocka_unit_test(signals_are_the_programs_own),
		cmocka_unit_test(nothing_is_inherited_or_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
