/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Input, output and errors are three memfds, so no pipe can fill up and nothing can wait for each
 * other.
 */

#include "filter/tool.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of a program that prints more something is wrong; a rule set of a large host is a few megabytes.
 */
#define OUTPUT_MAX (64u << 20)

/* Of the iptables programs; the legacy ones lock this file, and their standard input is theirs alone. */
static char own_lock[] = "XTABLES_LOCKFILE=/proc/self/fd/0";
static bool has_own_lock;

void tool_own_lock(void)
{
	has_own_lock = true;
}

static int find_program(const char *name, char *path, size_t size)
{
	static const char *const folders[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin"};

	if (strchr(name, '/') != NULL)
		return -ENOENT;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		int length = snprintf(path, size, "%s/%s", folders[i], name);
		if (length > 0 && (size_t)length < size && access(path, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

static int write_all(int fd, const char *text)
{
	size_t length = strlen(text);

	for (size_t at = 0; at < length;) {
		ssize_t written = write(fd, text + at, length - at);
		if (written < 0 && errno != EINTR)
			return -errno;
		at += written < 0 ? 0 : (size_t)written;
	}
	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : 0;
}

/* All of FD from its start, with a NUL; NULL with errno. */
static char *read_all(int fd)
{
	struct stat stat;
	char *text;
	size_t at = 0;

	if (fstat(fd, &stat) != 0)
		return NULL;
	if (stat.st_size > OUTPUT_MAX) {
		errno = EFBIG;
		return NULL;
	}
	text = malloc((size_t)stat.st_size + 1);
	if (text == NULL)
		return NULL;
	while (at < (size_t)stat.st_size) {
		ssize_t got = pread(fd, text + at, (size_t)stat.st_size - at, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		at += (size_t)got;
	}
	text[at] = '\0';
	return text;
}

/* Starts PATH with the three descriptors; *PID gets the child. */
static int spawn(const char *path, const char *const *argv, const int fds[3], pid_t *pid)
{
	static char search[] = "PATH=/usr/sbin:/sbin:/usr/bin:/bin", locale[] = "LC_ALL=C";
	char *const environment[] = {search, locale, has_own_lock ? own_lock : NULL, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, all;
	int error = posix_spawn_file_actions_init(&actions);

	if (error != 0)
		return -error;
	error = posix_spawnattr_init(&attributes);
	if (error != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return -error;
	}
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	/* A group of its own: Ctrl-C on the terminal ends no program half way through a table. */
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
						      POSIX_SPAWN_SETPGROUP);
	for (int i = 0; i < 3 && error == 0; i++)
		error = posix_spawn_file_actions_adddup2(&actions, fds[i], i);
	if (error == 0)
		error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (error == 0) /* execve takes pointers to char and writes to none of them */
		error = posix_spawn(pid, path, &actions, &attributes,
				    (char *const *)(uintptr_t)argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -error;
}

/* One line of all that TEXT says. */
static void one_line(const char *program, const char *text, int status, char *problem, size_t size)
{
	char *at = problem;
	int length = snprintf(problem, size, "%s: ", program);
	bool said = false, space = false;

	if (length < 0 || (size_t)length >= size)
		return;
	for (at += length; *text != '\0' && at + 2 < problem + size; text++) {
		bool blank = *text < ' ' || *text > '~';
		if (blank || *text == ' ') {
			space = said;
			continue;
		}
		if (space)
			*at++ = ' ';
		space = false;
		said = true;
		*at++ = *text;
	}
	*at = '\0';
	if (said)
		return;
	if (WIFEXITED(status))
		snprintf(at, size - (size_t)length, "exit status %d", WEXITSTATUS(status));
	else
		snprintf(at, size - (size_t)length, "signal %d", WTERMSIG(status));
}

static void close_all(struct tool *tool)
{
	for (int i = 0; i < 3; i++)
		if (tool->fds[i] >= 0)
			close(tool->fds[i]);
}

int tool_begin(struct tool *tool, const char *const *argv, const char *input, char *problem,
	       size_t size)
{
	char path[128];
	int error = find_program(argv[0], path, sizeof(path));

	*tool = (struct tool){.name = argv[0], .fds = {-1, -1, -1}};
	if (error != 0) {
		snprintf(problem, size, "there is no program %s", argv[0]);
		return error;
	}
	for (int i = 0; i < 3 && error == 0; i++) {
		tool->fds[i] = memfd_create(argv[0], MFD_CLOEXEC);
		error = tool->fds[i] < 0 ? -errno : 0;
	}
	if (error == 0)
		error = write_all(tool->fds[0], input == NULL ? "" : input);
	if (error == 0)
		error = spawn(path, argv, tool->fds, &tool->pid);
	if (error != 0) {
		snprintf(problem, size, "%s: %s", argv[0], strerror(-error));
		close_all(tool);
	}
	return error;
}

int tool_end(struct tool *tool, char **output, char *problem, size_t size)
{
	int status = 0, error = 0;

	while (waitpid(tool->pid, &status, 0) < 0 && error == 0)
		error = errno == EINTR ? 0 : -errno;
	*output = error == 0 ? read_all(tool->fds[1]) : NULL;
	if (error == 0 && *output == NULL)
		error = -errno;
	if (error != 0) {
		snprintf(problem, size, "%s: %s", tool->name, strerror(-error));
	} else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		char *said = read_all(tool->fds[2]);
		one_line(tool->name, said == NULL ? "" : said, status, problem, size);
		free(said);
		error = -EIO;
	}
	close_all(tool);
	return error;
}

int tool_run(const char *const *argv, const char *input, char **output, char *problem, size_t size)
{
	struct tool tool;
	int error = tool_begin(&tool, argv, input, problem, size);

	*output = NULL;
	return error != 0 ? error : tool_end(&tool, output, problem, size);
}
