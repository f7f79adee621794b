/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The parent's part in rule 12: it connects to a hook for a child, which has no file system, and
 * hands the connection over. It neither reads nor writes a byte of it.
 */

#include <stddef.h>

#include "daemon/child.h"
#include "policy.h"

/*
 * Connects to the UNIX socket PATH, without waiting. A descriptor (close-on-exec, non-blocking), or
 * negative errno with one line in PROBLEM.
 */
int hook_connect(const char *path, char *problem, size_t size);

/* Answers the wish of CHILD for the hook of a policy of IMAGE; NULL: no such image. */
void hook_grant(struct child *child, const struct message_hook *wish,
		const struct policy_image *image, uint64_t now);
