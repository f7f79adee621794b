/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs a system program to its end: found in /usr/sbin:/sbin:/usr/bin:/bin, minimal environment, no
 * shell.
 */

#include <stddef.h>

/*
 * INPUT (may be NULL) is its standard input. *OUTPUT, unless OUTPUT is NULL, becomes its standard
 * output, malloc()ed and NUL-terminated, the caller's. 0; -ENOENT when it is not installed; -EIO
 * when it failed, with the last line of its standard error in PROBLEM; or another negative errno.
 */
int program_run(const char *const *arguments, const char *input, char **output, char *problem,
		size_t size);
