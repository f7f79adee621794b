/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs one program of the system to its end: no shell, a minimal environment, a fixed search path.
 */

#include <stddef.h>
#include <sys/types.h>

/*
 * From now on the iptables programs take a lock of their own instead of that of the whole system: for a
 * process whose network namespace nobody else changes, and whose user may not open the system's.
 */
void tool_own_lock(void);

/* A program that was started: its pid, and memfds for what it reads, prints and complains of. */
struct tool {
	const char *name;
	pid_t pid;
	int fds[3];
};

/*
 * Starts ARGV[0], a bare name looked for in /usr/sbin, /sbin, /usr/bin, /bin, with INPUT (may be
 * NULL) on its standard input. 0, and tool_end() must follow; -ENOENT when there is no such
 * program; or the errno of an own call. PROBLEM (SIZE octets) gets one line on failure.
 */
int tool_begin(struct tool *tool, const char *const *argv, const char *input, char *problem,
	       size_t size);

/*
 * Waits for its end. *OUTPUT gets what it printed, malloc()ed with a NUL, also when it fails. 0;
 * -EIO when its exit status is not 0, with what it said on standard error as one line in PROBLEM;
 * or the errno of an own call.
 */
int tool_end(struct tool *tool, char **output, char *problem, size_t size);

/* Both. *OUTPUT is NULL when it was not even started. */
int tool_run(const char *const *argv, const char *input, char **output, char *problem, size_t size);
