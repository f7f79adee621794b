/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Running system programs, and the descriptors that a process keeps.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/descriptors.h"
#include "filter/tool.h"

static int run(const char *const *arguments, const char *input, char **output, char problem[256])
{
	problem[0] = '\0';
	char *unread = NULL;
	int error = tool_run(arguments, input, output != NULL ? output : &unread, problem, 256);

	free(unread);
	return error;
}

static void test_input_output(void **state)
{
	const char *const cat[] = {"cat", NULL};
	char *big = malloc(1 << 20), *output = NULL, problem[256];

	(void)state;
	assert_int_equal(run(cat, "one\ntwo\n", &output, problem), 0);
	assert_string_equal(output, "one\ntwo\n");
	free(output);
	assert_int_equal(run(cat, NULL, &output, problem), 0);
	assert_string_equal(output, "");
	free(output);
	/* Larger than any pipe. */
	memset(big, 'x', (1 << 20) - 1);
	big[(1 << 20) - 1] = '\0';
	assert_int_equal(run(cat, big, &output, problem), 0);
	assert_string_equal(output, big);
	free(output);
	free(big);
}

static void test_failure(void **state)
{
	const char *const missing[] = {"no-such-program-anywhere", NULL};
	const char *const list[] = {"ls", "/nonexistent/x", NULL};
	const char *const quiet[] = {"false", NULL};
	char *output = NULL, problem[256];

	(void)state;
	assert_int_equal(run(missing, NULL, NULL, problem), -ENOENT);
	assert_string_equal(problem, "there is no program no-such-program-anywhere");
	assert_int_equal(run(list, NULL, &output, problem), -EIO);
	assert_string_equal(problem,
			    "ls: ls: cannot access '/nonexistent/x': No such file or directory");
	free(output);
	assert_int_equal(run(quiet, NULL, &output, problem), -EIO);
	assert_string_equal(problem, "false: exit status 1");
	free(output);
}

/* Nothing of ours goes along: neither descriptors nor the environment. */
static void test_bare(void **state)
{
	const char *const environment[] = {"env", NULL};
	const char *const descriptors[] = {"ls", "/proc/self/fd", NULL};
	char *output, problem[256];

	(void)state;
	setenv("LD_PRELOAD_X", "secret", 1);
	assert_int_equal(run(environment, NULL, &output, problem), 0);
	assert_string_equal(output, "PATH=/usr/sbin:/sbin:/usr/bin:/bin\nLC_ALL=C\n");
	free(output);
	int open_one = open("/dev/null", O_RDONLY); /* not close-on-exec */
	assert_int_equal(run(descriptors, NULL, &output, problem), 0);
	assert_string_equal(output, "0\n1\n2\n3\n"); /* the last is ls's own */
	free(output);
	close(open_one);
}

/* The keys of the terminal do not reach it: it leads a process group. */
static void test_group(void **state)
{
	const char *const group[] = {"sh", "-c",
				     "set -- $(cut -d' ' -f1,5 /proc/$$/stat); echo $1 $2", NULL};
	char *output, problem[256];
	int pid, leader;

	(void)state;
	assert_int_equal(run(group, NULL, &output, problem), 0);
	assert_int_equal(sscanf(output, "%d %d", &pid, &leader), 2);
	assert_int_equal(pid, leader);
	free(output);
}

static void assert_kept(const int *keep, size_t count, const int *expected, size_t expected_count)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		for (int fd = 3; fd < 40; fd++)
			dup2(2, fd);
		descriptors_keep(keep, count);
		int bad = 0;
		for (int fd = 0; fd < 64; fd++) {
			int is_open = fcntl(fd, F_GETFD) >= 0, wanted = fd < 3;
			for (size_t i = 0; i < expected_count; i++)
				wanted |= expected[i] == fd;
			bad |= is_open != wanted;
		}
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void test_descriptors(void **state)
{
	(void)state;
	assert_kept(NULL, 0, NULL, 0);
	assert_kept((int[]){3}, 1, (int[]){3}, 1);
	assert_kept((int[]){9, -1, 3, 4, 39, 9}, 6, (int[]){3, 4, 9, 39}, 4);
	assert_kept((int[]){1, 2, 0}, 3, NULL, 0);
	assert_kept((int[]){20}, 1, (int[]){20}, 1);
}

/* A socket belongs to the network in which it was made: none goes along, unless it is local. */
static void test_network_sockets(void **state)
{
	static const int families[] = {AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_UNIX};
	pid_t pid = fork();
	int status;

	(void)state;
	if (pid == 0) {
		for (int i = 0; i < 5; i++)
			dup2(socket(families[i], SOCK_DGRAM, 0), 20 + i);
		dup2(2, 25);
		int bad = descriptors_close_network() != 0;
		for (int fd = 20; fd < 24; fd++)
			bad |= fcntl(fd, F_GETFD) >= 0;
		bad |= fcntl(24, F_GETFD) < 0 || fcntl(25, F_GETFD) < 0;
		dup2(socket(AF_INET, SOCK_STREAM, 0), 0);
		bad |= descriptors_close_network() != -ENOTSOCK;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_input_output), cmocka_unit_test(test_failure),
		cmocka_unit_test(test_bare),         cmocka_unit_test(test_group),
		cmocka_unit_test(test_descriptors),  cmocka_unit_test(test_network_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
