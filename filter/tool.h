/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs one program of the system to its end: no shell, a minimal environment, a fixed search path.
 */

#include <stddef.h>

/*
 * Runs ARGV[0], a bare name looked for in /usr/sbin, /sbin, /usr/bin, /bin, with INPUT (may be
 * NULL) on its standard input. *OUTPUT gets what it printed, malloc()ed with a NUL, also when it
 * fails. 0; -ENOENT when there is no such program; -EIO when its exit status is not 0, with what it
 * said on standard error as one line in PROBLEM; or the errno of an own call.
 */
int tool_run(const char *const *argv, const char *input, char **output, char *problem, size_t size);
