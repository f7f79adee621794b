/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the parent says to people: one event, one line on standard error. Never blocks: a line that
 * a slow reader has no room for is lost.
 */

#include <stddef.h>

/* Prints "pinfold: …" with a line end; at most 1024 octets. */
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Writes one whole line (LENGTH octets, at most PIPE_BUF) unless that would block. 0, -EAGAIN, or
 * the errno of write.
 */
int report_write(int fd, const char *line, size_t length);
