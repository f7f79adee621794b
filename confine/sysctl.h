/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Values below /proc/sys of the calling process's network namespace.
 */

#include <stddef.h>

/* KEY with '/', as in "net/ipv4/ip_forward". 0, or negative errno; VALUE comes without its line
 * end. */
int sysctl_read(const char *key, char *value, size_t size);
int sysctl_write(const char *key, const char *value);
