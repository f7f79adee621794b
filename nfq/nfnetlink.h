/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the sockets to nfnetlink have in common, by libmnl. Each socket is configured first, then
 * read without waiting.
 */

#include <stdint.h>
#include <sys/uio.h>

#include <libmnl/libmnl.h>

/*
 * A socket with a receive buffer of BYTES, of which less may be granted outside the first user
 * namespace. NULL with errno.
 */
struct mnl_socket *nfnetlink_open(int bytes);

/* Sends a configuration message and waits for the kernel's answer. 0 or its negative errno. */
int nfnetlink_configure(struct mnl_socket *netlink, struct nlmsghdr *header);

/* Messages of one batch. */
#define NFNETLINK_BATCH 16

/*
 * Takes what is there, at most one batch, into PARTS, and calls TAKE for each message of the kernel
 * that came whole. Returns how many messages there were, or a negative errno.
 */
int nfnetlink_receive(struct mnl_socket *netlink, struct iovec parts[NFNETLINK_BATCH],
		      mnl_cb_t take, void *context);
