/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SEARCH_PATH "/usr/sbin:/sbin:/usr/bin:/bin"
/* A saved rule set beyond this is not one that we want to search. */
#define OUTPUT_MAX (64u << 20)

/* What the program reads and writes goes through memfds: no pipe, no dead lock, no loop. */
static int make_file(const char *text)
{
	int fd = memfd_create("pinfold-program", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (text != NULL) {
		size_t length = strlen(text);
		if (write(fd, text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) < 0) {
			close(fd);
			return -EIO;
		}
	}
	return fd;
}

static int read_file(int fd, char **out)
{
	struct stat file;

	if (fstat(fd, &file) < 0)
		return -errno;
	if (file.st_size < 0 || (uint64_t)file.st_size > OUTPUT_MAX)
		return -EFBIG;
	size_t length = (size_t)file.st_size, have = 0;
	char *text = malloc(length + 1);
	if (text == NULL)
		return -ENOMEM;
	while (have < length) {
		ssize_t count = pread(fd, text + have, length - have, (off_t)have);
		if (count <= 0)
			break;
		have += (size_t)count;
	}
	text[have] = '\0';
	*out = text;
	return 0;
}

static void become(const char *const *arguments, const int fds[3])
{
	static char *environment[] = {(char *)(uintptr_t) "PATH=" SEARCH_PATH,
				      (char *)(uintptr_t) "LC_ALL=C", NULL};
	sigset_t none;
	char path[256];

	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			_exit(126);
	close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	for (const char *folder = SEARCH_PATH; *folder != '\0';) {
		size_t length = strcspn(folder, ":");
		snprintf(path, sizeof(path), "%.*s/%s", (int)length, folder, arguments[0]);
		execve(path, (char *const *)(uintptr_t)arguments, environment);
		folder += length + (folder[length] == ':');
	}
	_exit(127);
}

static void last_line(int fd, char *problem, size_t size)
{
	char *text = NULL;

	if (read_file(fd, &text) != 0)
		return;
	size_t end = strlen(text);
	while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '))
		text[--end] = '\0';
	const char *line = strrchr(text, '\n');
	snprintf(problem, size, "%s", line != NULL ? line + 1 : text);
	free(text);
}

static int wait_for(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -ENOENT : -EIO;
}

int program_run(const char *const *arguments, const char *input, char **output, char *problem,
		size_t size)
{
	int fds[3] = {-1, -1, -1};
	int error = 0;

	for (int i = 0; i < 3 && error == 0; i++) {
		/* Above 2, so that dup2() in the child overwrites none that is still needed. */
		int fd = make_file(i == 0 ? input : NULL);
		fds[i] = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (fd >= 0)
			close(fd);
		if (fds[i] < 0)
			error = -EMFILE;
	}
	if (error == 0) {
		pid_t pid = fork();
		if (pid == 0)
			become(arguments, fds);
		error = pid < 0 ? -errno : wait_for(pid);
	}
	if (error == -ENOENT)
		snprintf(problem, size, "%s is not installed", arguments[0]);
	else if (error == -EIO)
		last_line(fds[2], problem, size);
	else if (error != 0)
		snprintf(problem, size, "cannot run %s: %s", arguments[0], strerror(-error));
	if (error == 0 && output != NULL)
		error = read_file(fds[1], output);
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	return error;
}
