/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Giving up what the resolver does not need, before it reads the first octet of a packet.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Becomes UID and GID (0: stays what it is), without capabilities, file system and most system
 * calls. There is no way back. 0, or negative errno with one line in PROBLEM; then the process must
 * end.
 */
int sandbox_enter(uint32_t uid, uint32_t gid, char *problem, size_t size);
