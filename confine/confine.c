/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The runner: the process that the caller sees.
 *
 *   runner ─┬─ middle ─┬─ pinfold-resolver     a session of their own: the terminal's signals are
 *           │          └─ pinfold-gate         COMMAND's
 *           ├─ inner ─── COMMAND               the caller's session and process group
 *           └─ pasta                           of an ordinary user alone (pasta.c)
 *
 * For root the runner stays where it was. An ordinary user makes himself root of a user namespace
 * first (userns.c); from there on everything is the same but for the way out (uplink.h).
 *
 * Who dies, and what becomes of it:
 *
 *   COMMAND   inner says how and exits; what COMMAND left running dies with inner's PID namespace
 *   inner     the kernel kills all of its namespace; the runner ends as for COMMAND killed
 *   middle    the way out is gone with its namespace; the runner kills inner and cleans up
 *   pasta     the same
 *   runner    inner and pasta are killed by PR_SET_PDEATHSIG; middle sees the end of `lifetime` and
 *             cleans up
 *   all       interfaces and namespaces go with their last process; rules and settings of the host
 *             are swept by the next run
 *
 * The runner handles no terminal signal: COMMAND is in the same process group and gets them itself.
 * What another process sends to the runner is passed on.
 */

#include "confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/descriptors.h"
#include "confine/inner.h"
#include "confine/middle.h"
#include "confine/uplink.h"
#include "confine/userns.h"
#include "confine/wire.h"
#include "daemon/report.h"

#define STATUS_TROUBLE 2
/* Until resolver and gate are ready: the parent has a shorter limit of its own and says more. */
#define READY_MS 20000

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

struct run {
	const struct confine_options *options;
	struct uplink uplink;
	uid_t uid; /* the caller, who is root for the rest of the run */
	gid_t gid;
	bool ordinary; /* he is not root */
	bool recorded; /* the uplink is open: there is something to take away */
	char resolv_conf[1024], hosts[512];
	sigset_t mask; /* the caller's */
	int signals;   /* of passed_on, as a descriptor */
	pid_t inner, middle;
	int inner_death, middle_death;   /* pidfds */
	int inner_socket, middle_socket; /* our ends */
	int lifetime, ready;             /* our ends of middle's pipes */
	int signal;                      /* that ended the set-up, 0 none */
};

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The two files by which names are found. */
static void write_files(struct run *run)
{
	const struct plan *plan = &run->uplink.plan;
	const struct config_source *source = &run->options->config->source;
	char text[ADDRESS_TEXT_SIZE], host[65] = "localhost";
	size_t at;

	at = (size_t)snprintf(run->resolv_conf, sizeof(run->resolv_conf), "nameserver %s\n",
			      address_format(&plan->v4.in, text));
	if (plan->ipv6)
		at += (size_t)snprintf(run->resolv_conf + at, sizeof(run->resolv_conf) - at,
				       "nameserver %s\n", address_format(&plan->v6.in, text));
	for (size_t i = 0; i < source->search_count; i++) {
		size_t room = sizeof(run->resolv_conf) - at;
		int length = snprintf(run->resolv_conf + at, room, "%s%s", i == 0 ? "search " : " ",
				      source->search[i].text);
		if ((size_t)length + 2 > room) {
			run->resolv_conf[at] = '\0'; /* no half a name */
			break;
		}
		at += (size_t)length;
	}
	if (source->search_count > 0)
		snprintf(run->resolv_conf + at, sizeof(run->resolv_conf) - at, "\n");

	gethostname(host, sizeof(host) - 1);
	if (strpbrk(host, " \t\n#") != NULL || host[0] == '\0')
		snprintf(host, sizeof(host), "localhost");
	snprintf(run->hosts, sizeof(run->hosts),
		 "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 %s\n",
		 host);
}

static int make_pair(int pair[2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0;
}

static int start_inner(struct run *run)
{
	int pair[2];
	int error = make_pair(pair);

	if (error != 0)
		return error;
	int not_its[3 + UPLINK_DESCRIPTORS] = {pair[0], run->signals};
	size_t count = 2;
	for (size_t i = 0; i < UPLINK_DESCRIPTORS; i++)
		if (run->uplink.descriptors[i] >= 0)
			not_its[count++] = run->uplink.descriptors[i];
	not_its[count] = -1;
	const struct inner_options inner = {
		.plan = &run->uplink.plan,
		.command = run->options->command,
		.resolv_conf = run->resolv_conf,
		.hosts = run->hosts,
		.uid = run->uid,
		.socket = pair[1],
		.close = not_its,
		.mask = &run->mask,
	};
	run->inner = inner_start(&inner, &run->inner_death);
	close(pair[1]);
	run->inner_socket = pair[0];
	return run->inner < 0 ? run->inner : 0;
}

static int start_middle(struct run *run)
{
	int pair[2], lifetime[2] = {-1, -1}, ready[2] = {-1, -1};
	int error = make_pair(pair);

	if (error != 0)
		return error;
	if (pipe2(lifetime, O_CLOEXEC) < 0 || pipe2(ready, O_CLOEXEC) < 0)
		error = -errno;
	run->middle = error == 0 ? fork() : -1;
	if (run->middle == 0) {
		const struct middle_options middle = {
			.config = run->options->config,
			.uplink = &run->uplink,
			.libexec = run->options->libexec,
			.socket = pair[1],
			.lifetime = lifetime[0],
			.ready = ready[1],
			.audit = run->options->audit,
		};
		_exit(middle_run(&middle)); /* which closes every other descriptor */
	}
	if (error == 0 && run->middle < 0)
		error = -errno;
	close(pair[1]);
	close_one(&lifetime[0]);
	close_one(&ready[1]);
	run->middle_socket = pair[0];
	run->lifetime = lifetime[1];
	run->ready = ready[0];
	if (error == 0) {
		run->middle_death = pidfd_open(run->middle, 0);
		if (run->middle_death < 0)
			error = -errno;
	}
	return error;
}

/*
 * A signal to pass on; 0: none. Not what the terminal's keys send, since COMMAND gets that itself.
 * But the SIGHUP of a terminal that hangs up goes to the leader of its session alone, and that may
 * be we.
 */
static int take_signal(struct run *run)
{
	struct signalfd_siginfo info;

	if (read(run->signals, &info, sizeof(info)) != sizeof(info))
		return 0;
	return info.ssi_code <= 0 || info.ssi_signo == SIGHUP ? (int)info.ssi_signo : 0;
}

/* Why the way out is gone. */
static void report_uplink(const struct run *run)
{
	char problem[512];

	run->uplink.kind->explain(&run->uplink, problem, sizeof(problem));
	report("%s", problem);
}

/* Waits for FD while nothing else happens. False: a child died or a signal came. */
static bool await(struct run *run, int fd)
{
	struct pollfd fds[5] = {{.fd = fd, .events = POLLIN},
				{.fd = run->signals, .events = POLLIN},
				{.fd = run->inner_death, .events = POLLIN},
				{.fd = run->middle_death, .events = POLLIN},
				{.fd = run->uplink.death, .events = POLLIN}};
	struct signalfd_siginfo info;

	for (;;) {
		int count = poll(fds, 5, READY_MS);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0) {
			report("the run was not ready in time");
			return false;
		}
		/* While nothing runs yet, the terminal's Ctrl-C is for us. */
		if ((fds[1].revents & POLLIN) != 0 &&
		    read(run->signals, &info, sizeof(info)) == sizeof(info)) {
			run->signal = (int)info.ssi_signo;
			return false;
		}
		if ((fds[0].revents & POLLIN) != 0)
			return true;
		if (fds[4].revents != 0) {
			report_uplink(run);
			return false;
		}
		if (fds[0].revents != 0 || fds[2].revents != 0 || fds[3].revents != 0)
			return false; /* whoever died has said why */
	}
}

static bool await_word(struct run *run, int socket, enum wire_word word)
{
	struct wire wire;

	return await(run, socket) && wire_expect(socket, word, &wire) == 0;
}

/* Everything until COMMAND may start; false when it may not. */
static bool connect_all(struct run *run)
{
	char problem[512];
	char byte;

	if (!await_word(run, run->middle_socket, WIRE_SEPARATE))
		return false;
	struct uplink *uplink = &run->uplink;
	if (uplink->kind->connect(uplink, run->middle, problem, sizeof(problem)) != 0) {
		report("%s", problem);
		return false;
	}
	if (!await_word(run, run->inner_socket, WIRE_SEPARATE))
		return false;
	int error = run->ordinary ? userns_map_one(run->inner, run->uid, run->gid)
				  : userns_map_all(run->inner);
	if (error != 0) {
		report("cannot map the ids of the command's user namespace: %s", strerror(-error));
		return false;
	}
	if (wire_send(run->middle_socket, WIRE_CONNECT, run->inner) != 0 ||
	    !await_word(run, run->middle_socket, WIRE_LINKED) ||
	    wire_send(run->inner_socket, WIRE_LINKED, 0) != 0 ||
	    !await_word(run, run->inner_socket, WIRE_CONFIGURED))
		return false;
	return await(run, run->ready) && read(run->ready, &byte, 1) == 1 &&
	       wire_send(run->inner_socket, WIRE_GO, 0) == 0;
}

static bool start_all(struct run *run)
{
	char problem[512];
	int error;

	uplink_init(&run->uplink, run->ordinary ? &uplink_pasta : &uplink_veth);
	if (run->uplink.kind->open(&run->uplink, problem, sizeof(problem)) != 0) {
		report("%s", problem);
		return false;
	}
	run->recorded = true;
	if (run->ordinary && userns_enter(problem, sizeof(problem)) != 0) {
		report("%s", problem);
		return false;
	}
	write_files(run);
	error = start_inner(run);
	if (error == 0 && run->uplink.kind->allow(&run->uplink, problem, sizeof(problem)) != 0) {
		report("%s", problem);
		return false;
	}
	if (error == 0)
		error = start_middle(run);
	if (error != 0) {
		report("cannot start the processes of the run: %s", strerror(-error));
		return false;
	}
	return connect_all(run);
}

static int status_of(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* Until COMMAND is over; returns the exit status. */
static int attend(struct run *run)
{
	struct pollfd fds[5] = {{.fd = run->inner_socket, .events = POLLIN},
				{.fd = run->signals, .events = POLLIN},
				{.fd = run->inner_death, .events = POLLIN},
				{.fd = run->middle_death, .events = POLLIN},
				{.fd = run->uplink.death, .events = POLLIN}};
	struct wire wire;

	for (;;) {
		if (poll(fds, 5, -1) < 0) {
			if (errno == EINTR)
				continue;
			report("cannot wait for the command: %s", strerror(errno));
			return STATUS_TROUBLE;
		}
		if ((fds[0].revents & POLLIN) != 0 &&
		    wire_expect(run->inner_socket, WIRE_EXIT, &wire) == 0)
			return status_of(wire.value);
		if ((fds[1].revents & POLLIN) != 0) {
			int number = take_signal(run);
			if (number != 0)
				wire_send(run->inner_socket, WIRE_SIGNAL, number);
		}
		if (fds[2].revents != 0)
			return 128 + SIGKILL; /* nobody but a SIGKILL ends it without a word */
		if (fds[3].revents != 0) {
			report("resolver and gate are gone; the command was killed");
			return STATUS_TROUBLE;
		}
		if (fds[4].revents != 0) {
			report_uplink(run);
			report("the way out is gone; the command was killed");
			return STATUS_TROUBLE;
		}
	}
}

static void collect(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void end_all(struct run *run)
{
	/* All of COMMAND's processes are dead when inner has been collected. */
	if (run->inner > 0) {
		kill(run->inner, SIGKILL);
		collect(run->inner);
	}
	close_one(&run->lifetime);
	close_one(&run->middle_socket);
	if (run->middle > 0)
		collect(run->middle);
	/* The middle has taken everything away, unless it was killed: then this does. */
	if (run->recorded)
		run->uplink.kind->close(&run->uplink);
	close_one(&run->inner_socket);
	close_one(&run->inner_death);
	close_one(&run->middle_death);
	close_one(&run->ready);
	close_one(&run->signals);
}

static int prepare(struct run *run)
{
	sigset_t set, limit;

	/* A file over the caller's limit is an error to report, not the end of us. */
	sigemptyset(&limit);
	sigaddset(&limit, SIGXFSZ);
	if (sigprocmask(SIG_BLOCK, &limit, &run->mask) < 0)
		return -errno;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&set, passed_on[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return run->signals < 0 ? -errno : 0;
}

int confine_run(const struct confine_options *options)
{
	struct run run = {
		.options = options,
		.signals = -1,
		.inner_death = -1,
		.middle_death = -1,
		.inner_socket = -1,
		.middle_socket = -1,
		.lifetime = -1,
		.ready = -1,
		.uid = geteuid(),
		.gid = getegid(),
		.ordinary = geteuid() != 0,
	};
	int status = STATUS_TROUBLE;

	descriptors_fill();
	int error = prepare(&run);
	if (error != 0)
		report("cannot prepare the run: %s", strerror(-error));
	else if (start_all(&run))
		status = attend(&run);
	end_all(&run);
	return run.signal != 0 ? 128 + run.signal : status;
}
