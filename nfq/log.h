/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One NFLOG group of the kernel, by libmnl: notices of what the static floor rules refused
 * (include/notice.h). Nothing waits for them.
 */

#include <stddef.h>
#include <stdint.h>

#include "nfq/gate.h"

/*
 * Binds group NUMBER in the network namespace of the process. 0, or negative errno with one line in
 * PROBLEM (SIZE octets): -EBUSY when another program has the group, -EPERM, -EINVAL for a kernel
 * without NFLOG.
 */
int log_open(uint16_t number, char *problem, size_t size);

/* To poll for reading. */
int log_fd(void);

/*
 * Takes what is there, at most one batch, and calls TAKE for each notice of ours: `bytes`,
 * `length`, `interface`, `uid` and `uid_known` are set, `whole` is not. Returns how many notices
 * are known to be lost since the last call.
 */
uint64_t log_receive(void (*take)(void *context, const struct arrival *notice), void *context);
