/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * COMMAND must not reach the middle namespace, the host's network or the processes that govern it,
 * though it runs as root or as the very user whose processes they are. So each door has its own lock:
 *
 *   PID namespace    host processes cannot be named: no nsenter, no kill, no ptrace. When process 1
 *                    dies, and it dies with the runner, the kernel kills everything inside.
 *   user namespace   every id is itself, so files are as before; but capabilities count only inside:
 *                    no setns() into a network namespace above, no kernel modules, no devices made,
 *                    no look into a process above, of the same uid or not. COMMAND's own network
 *                    namespace belongs to it: for root ping, tcpdump and firewalls work. An ordinary
 *                    user is alone in it: setuid programs stay with his uid.
 *   mounts           made before the user namespace, hence locked: they cannot be undone inside.
 *   seccomp          see syscalls.c
 *
 * What stays open is the file system: who may write /etc/cron.d or talk to a container engine's
 * socket can have work done outside. That is what containers and ordinary users are for; and an
 * ordinary user's own shell profile is such a file.
 */

#include "confine/inner.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/confine.h"
#include "confine/descriptors.h"
#include "confine/mounts.h"
#include "confine/netlink.h"
#include "confine/syscalls.h"
#include "confine/wire.h"
#include "daemon/report.h"

#define STATUS_TROUBLE      2
#define STATUS_NOT_RUNNABLE 126
#define STATUS_NOT_FOUND    127

static int configure_side(struct netlink *netlink, const struct plan_side *side)
{
	const struct prefix all = {.length = 0};
	int error = netlink_address(netlink, PLAN_COMMAND, &side->command, side->length);

	return error != 0 ? error : netlink_route(netlink, PLAN_COMMAND, &all, &side->in);
}

static int configure_network(const struct plan *plan)
{
	struct netlink netlink;
	int error = netlink_open(&netlink);

	if (error != 0)
		return error;
	error = netlink_up(&netlink, "lo");
	if (error == 0)
		error = netlink_up(&netlink, PLAN_COMMAND);
	if (error == 0)
		error = configure_side(&netlink, &plan->v4);
	if (error == 0 && plan->ipv6)
		error = configure_side(&netlink, &plan->v6);
	netlink_close(&netlink);
	return error;
}

static bool set_up(const struct inner_options *options)
{
	char problem[512];
	struct wire wire;

	if (mounts_make(options->uid, options->resolv_conf, options->hosts, problem,
			sizeof(problem)) != 0) {
		report("%s", problem);
		return false;
	}
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) < 0) {
		report("cannot make a user and a network namespace: %s", strerror(errno));
		return false;
	}
	/* Cleared by every change of credentials, so it is set after the last one. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
	    wire_send(options->socket, WIRE_SEPARATE, 0) != 0 ||
	    wire_expect(options->socket, WIRE_LINKED, &wire) != 0)
		return false; /* the runner has said why, or is dead */
	int error = configure_network(options->plan);
	if (error != 0) {
		report("cannot configure the network of the command: %s", strerror(-error));
		return false;
	}
	return wire_send(options->socket, WIRE_CONFIGURED, 0) == 0 &&
	       wire_expect(options->socket, WIRE_GO, &wire) == 0;
}

_Noreturn void confine_exec(char *const *command)
{
	execvp(command[0], command);
	int error = errno;
	report("%s: %s", command[0], error == ENOENT ? "command not found" : strerror(error));
	_exit(error == ENOENT || error == ENOTDIR ? STATUS_NOT_FOUND : STATUS_NOT_RUNNABLE);
}

_Noreturn static void become_command(const struct inner_options *options)
{
	char problem[256];

	int closed = descriptors_close_network();
	if (closed != 0) {
		report("%s", closed == -ENOTSOCK
				     ? "standard input, output or error is a network socket, which "
				       "would be a way around"
				     : "cannot look through the open descriptors");
		_exit(STATUS_TROUBLE);
	}
	if (syscalls_restrict(problem, sizeof(problem)) != 0) {
		report("%s", problem);
		_exit(STATUS_TROUBLE);
	}
	close(options->socket);
	sigprocmask(SIG_SETMASK, options->mask, NULL);
	confine_exec(options->command);
}

/* Collects whatever died; true when COMMAND did, with its wait status. */
static bool collect(pid_t command, int *status)
{
	bool over = false;
	pid_t pid;
	int its;

	while ((pid = waitpid(-1, &its, WNOHANG)) > 0) {
		if (pid == command) {
			*status = its;
			over = true;
		}
	}
	return over;
}

/* Passes signals on until COMMAND is over. */
static int attend(const struct inner_options *options, pid_t command, int signals)
{
	struct pollfd fds[2] = {{.fd = signals, .events = POLLIN},
				{.fd = options->socket, .events = POLLIN}};
	struct signalfd_siginfo info;
	struct wire wire;
	int status = 0;

	while (!collect(command, &status)) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if ((fds[0].revents & POLLIN) != 0 && read(signals, &info, sizeof(info)) < 0)
			continue;
		if ((fds[1].revents & (POLLIN | POLLHUP)) == 0)
			continue;
		if (wire_expect(options->socket, WIRE_SIGNAL, &wire) != 0)
			return -EPIPE; /* without the runner nothing goes on */
		kill(command, wire.value);
	}
	return wire_send(options->socket, WIRE_EXIT, status);
}

static int inner_main(const struct inner_options *options)
{
	sigset_t all, deaths;

	/* Signals of the terminal are COMMAND's; process 1 neither stops nor ends by them. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (const int *fd = options->close; *fd >= 0; fd++)
		close(*fd);
	if (!set_up(options))
		return STATUS_TROUBLE;

	sigemptyset(&deaths);
	sigaddset(&deaths, SIGCHLD);
	int signals = signalfd(-1, &deaths, SFD_CLOEXEC | SFD_NONBLOCK);
	pid_t command = signals < 0 ? -1 : fork();
	if (command == 0)
		become_command(options);
	if (command < 0) {
		report("cannot start the command: %s", strerror(errno));
		return STATUS_TROUBLE;
	}
	return attend(options, command, signals) == 0 ? 0 : STATUS_TROUBLE;
}

pid_t inner_start(const struct inner_options *options, int *pidfd)
{
	int fd = -1;
	struct clone_args arguments = {
		.flags = CLONE_NEWPID | CLONE_NEWNS | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)&fd,
		.exit_signal = SIGCHLD,
	};
	pid_t pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));

	if (pid == 0)
		_exit(inner_main(options));
	if (pid < 0)
		return -errno;
	*pidfd = fd;
	return pid;
}
