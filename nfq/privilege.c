/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/privilege.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static int fail(int error, const char *what, char *problem, size_t size)
{
	snprintf(problem, size, "%s: %s", what, strerror(-error));
	return error;
}

int privilege_begin(char *problem, size_t size)
{
	const struct rlimit none = {0, 0};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return fail(-errno, "no_new_privs", problem, size);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		return fail(-errno, "no core files", problem, size);
	return 0;
}

int privilege_drop(uint32_t uid, uint32_t gid, char *problem, size_t size)
{
	int error;

	capng_clear(CAPNG_SELECT_ALL);
	capng_update(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_NET_ADMIN);
	if (uid != 0) {
		error = capng_change_id((int)uid, (int)gid,
					CAPNG_DROP_SUPP_GRP | CAPNG_CLEAR_BOUNDING);
	} else {
		error = capng_apply(CAPNG_SELECT_ALL);
	}
	if (error < 0) {
		snprintf(problem, size, "cannot keep CAP_NET_ADMIN alone as uid %u (step %d)", uid,
			 error);
		return -EPERM;
	}
	/* libcap-ng turns the flag off on its way; and it says nothing about a set it could not
	 * change. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return fail(-errno, "no core files", problem, size);
	if (capng_get_caps_process() < 0 ||
	    !capng_have_capability(CAPNG_EFFECTIVE, CAP_NET_ADMIN) ||
	    capng_have_capabilities(CAPNG_SELECT_CAPS) != CAPNG_PARTIAL) {
		snprintf(problem, size, "CAP_NET_ADMIN is missing");
		return -EPERM;
	}
	return 0;
}

/* Calls without a condition: the loop, its clock, and an orderly or disorderly end. */
static const int plain_calls[] = {
	SCMP_SYS(recvmsg),      SCMP_SYS(recvmmsg),      SCMP_SYS(sendmsg),
	SCMP_SYS(sendto),       SCMP_SYS(poll),          SCMP_SYS(ppoll),
	SCMP_SYS(epoll_ctl),    SCMP_SYS(epoll_wait),    SCMP_SYS(epoll_pwait),
	SCMP_SYS(recvfrom),     SCMP_SYS(clock_gettime), SCMP_SYS(close),
	SCMP_SYS(munmap),       SCMP_SYS(pread64),       SCMP_SYS(lseek),
	SCMP_SYS(fstat),        SCMP_SYS(brk),           SCMP_SYS(restart_syscall),
	SCMP_SYS(exit),         SCMP_SYS(exit_group),    SCMP_SYS(getpid),
	SCMP_SYS(gettid),       SCMP_SYS(tgkill),        SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(futex),
};

static int allow_calls(scmp_filter_ctx filter)
{
	int error = 0;

	for (size_t i = 0; error == 0 && i < sizeof(plain_calls) / sizeof(plain_calls[0]); i++)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, plain_calls[i], 0);
	if (error == 0) /* fstat() of the C library */
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
					 SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH));
	if (error == 0) /* a new policy image */
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
					 SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
	if (error == 0) /* its seals */
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
					 SCMP_A1(SCMP_CMP_EQ, F_GET_SEALS));
	if (error == 0) /* interface names */
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
					 SCMP_A1(SCMP_CMP_EQ, SIOCGIFNAME));
	if (error == 0) /* last words */
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(write), 1,
					 SCMP_A0(SCMP_CMP_EQ, STDERR_FILENO));
	return error;
}

int privilege_confine(char *problem, size_t size)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int error;

	if (filter == NULL)
		return fail(-ENOMEM, "seccomp", problem, size);
	error = allow_calls(filter);
	if (error == 0)
		error = seccomp_load(filter);
	seccomp_release(filter);
	return error < 0 ? fail(error, "seccomp", problem, size) : 0;
}
