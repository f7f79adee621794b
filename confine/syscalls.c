/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A network namespace holds what the Internet protocols can reach. What is closed here is outside
 * of it:
 *
 *   socket(family)      families without network namespaces (AF_VSOCK reaches the hypervisor,
 *                       Bluetooth, RDMA, …): only those that are known to have one, or to be local,
 *                       are open
 *   io_uring_setup      makes sockets without the call socket(); programs fall back when it is
 *                       missing
 *   TIOCSTI, TIOCLINUX  type into the terminal, and so into the shell that called us
 *
 * This is no sandbox: everything else is open.
 */

#include "confine/syscalls.h"

#include <errno.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* From linux/tiocl.h and asm-generic/ioctls.h; the C library's headers do not all have it. */
#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

/* One comparison for each family: libseccomp takes one comparison for an argument in a rule. */
#define FAMILY_LAST 64u

/* Within a network namespace, or local: AF_ALG and AF_KEY are tables of the kernel. */
static const unsigned families[] = {AF_UNSPEC,  AF_UNIX,   AF_INET, AF_INET6,
				    AF_NETLINK, AF_PACKET, AF_KEY,  AF_ALG};

static int is_open(unsigned family)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (families[i] == family)
			return 1;
	return 0;
}

static int close_families(scmp_filter_ctx filter)
{
	int error = 0;

	for (unsigned family = 0; error == 0 && family < FAMILY_LAST; family++)
		if (!is_open(family))
			error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT),
						 SCMP_SYS(socket), 1,
						 SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffffu, family));
	/* Only the low half counts for the kernel; a set bit above the last family is one beyond
	 * it. */
	for (unsigned bit = 6; error == 0 && bit < 32; bit++)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
					 SCMP_A0(SCMP_CMP_MASKED_EQ, 1u << bit, 1u << bit));
	return error;
}

static int close_ioctl(scmp_filter_ctx filter, uint64_t request)
{
	return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
				SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffffu, request));
}

static int fill(scmp_filter_ctx filter)
{
	/* A foreign calling convention would number the calls differently. */
	int error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(ENOSYS));

	/* Keeps setuid programs working; we hold CAP_SYS_ADMIN in COMMAND's user namespace. */
	if (error == 0)
		error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	if (error == 0)
		error = close_families(filter);
	if (error == 0)
		error = close_ioctl(filter, TIOCSTI);
	if (error == 0)
		error = close_ioctl(filter, TIOCLINUX);
	if (error == 0)
		error = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_setup),
					 0);
	return error;
}

int syscalls_restrict(char *problem, size_t size)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int error = filter == NULL ? -ENOMEM : fill(filter);

	if (error == 0)
		error = seccomp_load(filter);
	if (filter != NULL)
		seccomp_release(filter);
	if (error != 0)
		snprintf(problem, size, "cannot restrict the system calls of the command: %s",
			 strerror(-error));
	return error;
}
