/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * User namespaces of a run. Root needs one, for COMMAND. An ordinary user needs another around the
 * whole run, in which he is root and may make the other namespaces:
 *
 *   host             the caller: 1000
 *   └ of the run     runner, middle, resolver, gate: 0; made by userns_enter() for an ordinary user
 *     └ COMMAND's    1000 again, and no capability in those above
 */

#include <stddef.h>
#include <sys/types.h>

/*
 * Makes a user namespace whose root the caller is and enters it. He keeps his rights to files, those of
 * his groups too; setgroups(2) is forbidden inside. Needs a single thread. 0, or negative errno with one
 * line in PROBLEM that says what this system forbids and how it is allowed.
 */
int userns_enter(char *problem, size_t size);

/* In the user namespace of PID, which the calling process must be able to map: 0 or negative errno. */
int userns_map_all(pid_t pid); /* every id of ours is itself there */
int userns_map_one(pid_t pid, uid_t uid,
		   gid_t gid); /* our root is UID and GID there, nobody else exists */
