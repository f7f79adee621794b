/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "message.h"

static void default_signals(void)
{
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child; returns an errno when it cannot become the program. */
static int become(const char *path, int message_fd, pid_t parent)
{
	char *arguments[] = {(char *)(uintptr_t)path, NULL};
	char *environment[] = {NULL};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return errno;
	if (getppid() != parent)
		return ESRCH; /* it died before the line above */
	setsid();
	default_signals();

	/* Both may be a number that is about to be overwritten. */
	int null = fcntl(open("/dev/null", O_RDWR), F_DUPFD, MESSAGE_FD + 1);
	int message = fcntl(message_fd, F_DUPFD, MESSAGE_FD + 1);
	if (null < 0 || message < 0)
		return errno;
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(message, MESSAGE_FD) < 0)
		return errno;
	if (close_range(MESSAGE_FD + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return errno;
	execve(path, arguments, environment);
	return errno;
}

/* What the child wrote before it could exec: its errno; nothing means that it did. */
static int exec_result(int fd)
{
	int error = 0;
	ssize_t count;

	do
		count = read(fd, &error, sizeof(error));
	while (count < 0 && errno == EINTR);
	return count == sizeof(error) ? -error : 0;
}

int spawn(const char *path, struct spawned *out)
{
	int pair[2], result[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	if (pipe2(result, O_CLOEXEC) < 0) {
		int error = errno;
		close(pair[0]);
		close(pair[1]);
		return -error;
	}

	pid_t pid = fork();
	if (pid == 0) {
		/* Out of the way of 0…MESSAGE_FD, and closed by a successful exec. */
		int report = fcntl(result[1], F_DUPFD_CLOEXEC, MESSAGE_FD + 1);
		int error = become(path, pair[1], parent);
		_exit(write(report, &error, sizeof(error)) == sizeof(error) ? 126 : 127);
	}
	int error = pid < 0 ? -errno : 0;
	close(pair[1]);
	close(result[1]);
	if (error == 0) {
		error = exec_result(result[0]);
		if (error != 0)
			waitpid(pid, NULL, 0);
	}
	close(result[0]);
	if (error == 0) {
		out->pidfd = pidfd_open(pid, 0);
		if (out->pidfd < 0) {
			error = -errno;
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
	}
	if (error == 0 && fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0)
		error = -errno;
	if (error != 0) {
		close(pair[0]);
		return error;
	}
	out->pid = pid;
	out->fd = pair[0];
	return 0;
}

int spawn_collect(struct spawned *child, int *status)
{
	pid_t pid = waitpid(child->pid, status, WNOHANG);

	if (pid == 0)
		return -EAGAIN;
	return pid < 0 ? -errno : 0;
}

int spawn_find(const char *folders, const char *name, char *path, size_t size)
{
	for (const char *folder = folders; *folder != '\0';) {
		size_t length = strcspn(folder, ":");
		int written = snprintf(path, size, "%.*s/%s", (int)length, folder, name);
		if (written < 0 || (size_t)written >= size)
			return -ENAMETOOLONG;
		if (access(path, X_OK) == 0)
			return 0;
		folder += length + (folder[length] == ':');
	}
	return -ENOENT;
}
