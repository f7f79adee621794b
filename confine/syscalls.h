/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The few system calls that would lead COMMAND around its network namespace, closed by a seccomp
 * filter.
 */

#include <stddef.h>

/* Takes effect at once and for every descendant. 0, or negative errno with one line in PROBLEM. */
int syscalls_restrict(char *problem, size_t size);
