/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * What runs share: who lives, what is stale, which settings go back. In a network namespace and
 * with a /run of the test's own; skipped where these cannot be made.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/state.h"
#include "confine/sysctl.h"

#define FORWARD "net/ipv4/ip_forward"

static bool possible;

static int set_up(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
		return 0; /* every test skips */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("test", "/run", "tmpfs", 0, NULL) < 0)
		return -1;
	possible = true;
	return 0;
}

static void need_namespace(void)
{
	if (!possible)
		skip();
}

static void assert_forward(const char *expected)
{
	char value[16];

	assert_int_equal(sysctl_read(FORWARD, value, sizeof(value)), 0);
	assert_string_equal(value, expected);
}

static size_t live_runs(struct state *state, size_t *stale)
{
	struct state_run runs[8];
	size_t count = state_runs(state, runs, 8), live = 0;

	for (size_t i = 0; i < count; i++)
		live += runs[i].live;
	*stale = count - live;
	return live;
}

static void test_runs(void **unused)
{
	struct state_run one = {.id = "0000000a", .block = 17}, two = {.id = "0000000b"}, seen[8];
	struct state state;
	size_t stale;

	(void)unused;
	need_namespace();
	assert_int_equal(state_open(&state), 0);
	assert_int_equal(live_runs(&state, &stale), 0);
	int first = state_add(&state, &one), second = state_add(&state, &two);
	assert_true(first >= 0 && second >= 0);
	assert_int_equal(state_add(&state, &one), -EEXIST);
	assert_int_equal(live_runs(&state, &stale), 2);
	assert_int_equal(stale, 0);
	/* Its last process is gone: stale, and still with its block. */
	close(second);
	assert_int_equal(live_runs(&state, &stale), 1);
	assert_int_equal(stale, 1);
	state_remove(&state, two.id);
	assert_int_equal(state_runs(&state, seen, 8), 1);
	assert_string_equal(seen[0].id, "0000000a");
	assert_int_equal(seen[0].block, 17);
	/* Not ours: left alone. A file that was cut short: stale. */
	close(openat(state.folder, "notes", O_CREAT | O_WRONLY, 0600));
	close(openat(state.folder, "0000000c", O_CREAT | O_WRONLY, 0600));
	assert_int_equal(live_runs(&state, &stale), 1);
	assert_int_equal(stale, 1);
	unlinkat(state.folder, "notes", 0);
	state_remove(&state, "0000000c");
	state_remove(&state, one.id);
	close(first);
	state_vanish(&state);
	state_close(&state);
	assert_int_equal(access("/run/pinfold", F_OK), -1);
}

/* The flock belongs to every process that inherited it. */
static void test_life_is_shared(void **unused)
{
	struct state_run run = {.id = "0000000a"};
	struct state state;
	size_t stale;

	(void)unused;
	need_namespace();
	assert_int_equal(state_open(&state), 0);
	int fd = state_add(&state, &run);
	assert_true(fd >= 0);
	pid_t pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	close(fd);
	assert_int_equal(live_runs(&state, &stale), 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(live_runs(&state, &stale), 0);
	assert_int_equal(stale, 1);
	state_remove(&state, run.id);
	state_vanish(&state);
	state_close(&state);
}

static void test_settings(void **unused)
{
	struct state state;

	(void)unused;
	need_namespace();
	assert_int_equal(sysctl_write(FORWARD, "0"), 0);
	assert_int_equal(state_open(&state), 0);
	state_restore(&state); /* nothing yet */
	assert_int_equal(state_set(&state, FORWARD, "1"), 0);
	assert_int_equal(state_set(&state, FORWARD, "1"), 0); /* a second run */
	assert_forward("1");
	state_restore(&state);
	assert_forward("0");

	/* Set already by somebody else: it stays when the runs go. */
	assert_int_equal(sysctl_write(FORWARD, "1"), 0);
	assert_int_equal(state_set(&state, FORWARD, "1"), 0);
	state_restore(&state);
	assert_forward("1");

	/* Changed by somebody else meanwhile: theirs now. */
	assert_int_equal(sysctl_write(FORWARD, "0"), 0);
	assert_int_equal(state_set(&state, FORWARD, "1"), 0);
	assert_int_equal(sysctl_write(FORWARD, "0"), 0);
	state_restore(&state);
	assert_forward("0");

	assert_int_equal(state_set(&state, "net/nothing", "1"), -ENOENT);
	state_vanish(&state);
	state_close(&state);
}

/* Whoever waits for the lock while the last one out takes the folder away makes it anew. */
static void test_vanishing(void **unused)
{
	struct state_run run = {.id = "0000000a"};
	struct state state, other;
	int status;

	(void)unused;
	need_namespace();
	assert_int_equal(state_open(&state), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(state.lock); /* the copy */
		alarm(10);
		int error = state_open(&other);
		int fd = error == 0 ? state_add(&other, &run) : -1;
		_exit(fd >= 0 && access("/run/pinfold", F_OK) == 0 ? 0 : 1);
	}
	usleep(50000);
	state_vanish(&state);
	state_close(&state);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(state_open(&state), 0);
	state_remove(&state, run.id);
	state_vanish(&state);
	state_close(&state);
}

/* The runs of another network namespace are none of ours. */
static void test_namespaces_apart(void **unused)
{
	struct state_run run = {.id = "0000000a"}, seen[8];
	struct state state, other;

	(void)unused;
	need_namespace();
	assert_int_equal(state_open(&state), 0);
	int fd = state_add(&state, &run);
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_int_equal(unshare(CLONE_NEWNET), 0);
	assert_int_equal(state_open(&other), 0);
	assert_int_equal(state_runs(&other, seen, 8), 0);
	state_vanish(&other);
	state_close(&other);
	assert_int_equal(setns(here, CLONE_NEWNET), 0);
	assert_int_equal(state_runs(&state, seen, 8), 1);
	state_remove(&state, run.id);
	state_vanish(&state);
	state_close(&state);
	close(fd);
	close(here);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),
		cmocka_unit_test(test_life_is_shared),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_vanishing),
		cmocka_unit_test(test_namespaces_apart),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
