/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * COMMAND's view of the file system: that of the host, but for what tells names or opens a way
 * around the network namespace. Made in a mount namespace of its own by the host's root; COMMAND's
 * user namespace comes later, which locks these mounts.
 */

#include <stddef.h>
#include <sys/types.h>

/*
 * To be called in a new mount namespace, as process 1 of a new PID namespace. RESOLV_CONF and HOSTS
 * are the contents of the two files, UID the caller of the run on the host. 0, or negative errno with one line in PROBLEM.
 */
int mounts_make(uid_t uid, const char *resolv_conf, const char *hosts, char *problem, size_t size);
