/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The kernel's connection tracking, by libmnl: what a reload of the policy needs of it.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Opens the sockets and looks whether the kernel lets us read its connections. 0, or negative errno
 * with one line in PROBLEM (SIZE octets) when there is not even a socket; a kernel that cannot is
 * told by tracking_check().
 */
int tracking_open(char *problem, size_t size);

/* Can connections be asked again? 0, or what the kernel says. */
int tracking_check(void);

/*
 * Sets MARK_AGAIN on each connection that has a mark of ours in MARK_MASK and is not refused, so that
 * its next packet comes to the queue. A connection that ends meanwhile is none. 0, or negative
 * errno: some may not have it.
 */
int tracking_ask_again(uint32_t mark_mask);
