/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How the gate gives up what it does not need, stage by stage. Each stage ends for good.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Stage 1, first thing. Should: no new privileges by any exec, no core files, no debugger of the
 * same user. Mustn't: anything that opening the queue needs.
 */
int privilege_begin(char *problem, size_t size);

/*
 * Stage 2, after the queue is bound. Should: be UID and GID (0: stay what we are, in a user
 * namespace that has no other), CAP_NET_ADMIN alone in every set, nothing in the bounding set.
 * Mustn't: lose CAP_NET_ADMIN, which the kernel asks for at every verdict.
 */
int privilege_drop(uint32_t uid, uint32_t gid, char *problem, size_t size);

/*
 * Stage 3, before READY. Should: a list of system calls without file system, new sockets, processes
 * or a way to make memory executable (secrets_settle() came before); anything else ends the
 * process. Mustn't: the calls of the loop in main.c and of a
 * reload.
 */
int privilege_confine(char *problem, size_t size);
