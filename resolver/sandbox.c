/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Stages, in order. Each names what the process should still be able to do after it, and what it
 * must not.
 *
 * 1 identity      Should: hold the descriptors that the parent sent.
 *                 Mustn't: be root, have a supplementary group, get a privilege by exec, be traced
 *                 or dump its memory.
 * 2 capabilities  Should: nothing that needs one; the sockets came bound.
 *                 Mustn't: have any, in any set, the bounding set included.
 * 3 file system   Should: open its own memfds through /proc/self/fd (libunbound takes its
 *                 configuration from a path).
 *                 Mustn't: open, create or change any other file, where the kernel has Landlock.
 *                 Without it stage 4 leaves reading what every user may read.
 * 4 system calls  Should: run its event loop, open UDP, TCP and netlink sockets, map memory.
 *                 Mustn't: start a program, fork, write files, load code, trace, change namespaces.
 *                 A violation kills the process and shows in the kernel's audit log.
 */
#include "resolver/sandbox.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int drop_identity(uint32_t uid, uint32_t gid)
{
	if (uid != 0 || gid != 0) {
		if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 ||
		    setresuid(uid, uid, uid) != 0)
			return -errno;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return -errno;
	return 0;
}

/* Before the identity goes: dropping from the bounding set needs CAP_SETPCAP. */
static int drop_bounding_set(void)
{
	capng_clear(CAPNG_SELECT_BOUNDS);
	return capng_apply(CAPNG_SELECT_BOUNDS) == 0 || geteuid() != 0 ? 0 : -EPERM;
}

static int drop_capabilities(void)
{
	capng_clear(CAPNG_SELECT_ALL);
	return capng_apply(CAPNG_SELECT_CAPS) == 0 ? 0 : -EPERM;
}

/* A Landlock domain without any rule. A memfd lies on no mounted file system and is exempt. */
static int close_file_system(void)
{
	struct landlock_ruleset_attr attributes = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				     LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
				     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);

	if (fd < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	int error = syscall(SYS_landlock_restrict_self, fd, 0) != 0 ? -errno : 0;
	close(fd);
	return error;
}

/* What event loop, libunbound, ldns, OpenSSL and libc need once everything is set up. */
static const int allowed[] = {
	SCMP_SYS(read),
	SCMP_SYS(readv),
	SCMP_SYS(pread64),
	SCMP_SYS(write),
	SCMP_SYS(writev),
	SCMP_SYS(recvfrom),
	SCMP_SYS(recvmsg),
	SCMP_SYS(recvmmsg),
	SCMP_SYS(sendto),
	SCMP_SYS(sendmsg),
	SCMP_SYS(sendmmsg),
	SCMP_SYS(bind),
	SCMP_SYS(connect),
	SCMP_SYS(accept),
	SCMP_SYS(accept4),
	SCMP_SYS(listen),
	SCMP_SYS(shutdown),
	SCMP_SYS(getsockname),
	SCMP_SYS(getpeername),
	SCMP_SYS(getsockopt),
	SCMP_SYS(setsockopt),
	SCMP_SYS(close),
	SCMP_SYS(fcntl),
	SCMP_SYS(ioctl),
	SCMP_SYS(fstat),
	SCMP_SYS(newfstatat),
	SCMP_SYS(lseek),
	SCMP_SYS(memfd_create),
	SCMP_SYS(ftruncate),
	SCMP_SYS(pipe2),
	SCMP_SYS(eventfd2),
	SCMP_SYS(socketpair),
	SCMP_SYS(epoll_create1),
	SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_wait),
	SCMP_SYS(epoll_pwait),
	SCMP_SYS(epoll_pwait2),
	SCMP_SYS(poll),
	SCMP_SYS(ppoll),
	SCMP_SYS(select),
	SCMP_SYS(pselect6),
	SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime),
	SCMP_SYS(clock_gettime),
	SCMP_SYS(clock_getres),
	SCMP_SYS(clock_nanosleep),
	SCMP_SYS(nanosleep),
	SCMP_SYS(gettimeofday),
	SCMP_SYS(time),
	SCMP_SYS(getrandom),
	SCMP_SYS(brk),
	SCMP_SYS(munmap),
	SCMP_SYS(mremap),
	SCMP_SYS(madvise),
	SCMP_SYS(futex),
	SCMP_SYS(sched_yield),
	SCMP_SYS(rseq),
	SCMP_SYS(rt_sigaction),
	SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn),
	SCMP_SYS(sigaltstack),
	SCMP_SYS(restart_syscall),
	SCMP_SYS(exit),
	SCMP_SYS(exit_group),
	SCMP_SYS(getpid),
	SCMP_SYS(gettid),
	SCMP_SYS(tgkill),
	SCMP_SYS(getuid),
	SCMP_SYS(geteuid),
	SCMP_SYS(getgid),
	SCMP_SYS(getegid),
	SCMP_SYS(uname),
	SCMP_SYS(sysinfo),
	SCMP_SYS(prlimit64),
	SCMP_SYS(getrusage),
};

static int allow_sockets(scmp_filter_ctx filter)
{
	static const int families[] = {AF_INET, AF_INET6, AF_NETLINK};
	int error = 0;

	for (size_t i = 0; error == 0 && i < sizeof(families) / sizeof(families[0]); i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
					 SCMP_A0(SCMP_CMP_EQ, families[i]));
	/* libc asks for others now and then (AF_UNIX for nscd): no is an answer it can live with.
	 */
	for (int family = 0; error == 0 && family < AF_MAX; family++)
		if (family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
			error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT),
						 SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, family));
	return error;
}

/* Memory that is not executable, files for reading alone. */
static int allow_with_limits(scmp_filter_ctx filter)
{
	const scmp_datum_t writing = O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND;
	int error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
				     SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (error == 0)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
					 SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (error == 0)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
					 SCMP_A2(SCMP_CMP_MASKED_EQ, writing, O_RDONLY));
	return error;
}

static int close_system_calls(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int error = filter == NULL ? -ENOMEM : 0;

	for (size_t i = 0; error == 0 && i < sizeof(allowed) / sizeof(allowed[0]); i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, allowed[i], 0);
	if (error == 0)
		error = allow_sockets(filter);
	if (error == 0)
		error = allow_with_limits(filter);
	if (error == 0)
		error = seccomp_load(filter);
	if (filter != NULL)
		seccomp_release(filter);
	return error;
}

int sandbox_enter(uint32_t uid, uint32_t gid, char *problem, size_t size)
{
	const char *stage = "bounding set";
	int error = drop_bounding_set();

	if (error == 0) {
		stage = "user and group";
		error = drop_identity(uid, gid);
	}
	if (error == 0) {
		stage = "capabilities";
		error = drop_capabilities();
	}
	if (error == 0) {
		stage = "file system";
		error = close_file_system();
	}
	if (error == 0) {
		stage = "system calls";
		error = close_system_calls();
	}
	if (error != 0)
		snprintf(problem, size, "sandbox, %s: %s", stage, strerror(-error));
	return error;
}
