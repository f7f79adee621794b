/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who the children become.
 */

#include <stddef.h>
#include <stdint.h>

/* The user that is taken for USER when USER is the default and does not exist. */
#define IDENTITY_DEFAULT  "pinfold"
#define IDENTITY_FALLBACK "nobody"

/*
 * The ids of USER. 0 and 0: stay who you are; so it is for anyone but root, and in a user namespace
 * that has no such id. -ENOENT with one line in PROBLEM when there is no such user.
 */
int identity_find(const char *user, uint32_t *uid, uint32_t *gid, char *problem, size_t size);
