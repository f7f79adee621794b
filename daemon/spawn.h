/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Starting a child program with nothing but what it may have: MESSAGE_FD, /dev/null, standard
 * error, an empty environment, default signals, a session of its own (so that Ctrl-C of a terminal
 * is the parent's business alone), and death with the parent.
 */

#include <sys/types.h>

struct spawned {
	pid_t pid;
	int pidfd; /* readable when the child is dead */
	int fd;    /* our end of the message socket, non-blocking */
};

/* 0, or negative errno: -ENOENT when PATH is no program. */
int spawn(const char *path, struct spawned *out);

/* Collects a dead child without waiting: 0 and its wait status, or -EAGAIN while it lives. */
int spawn_collect(struct spawned *child, int *status);

/*
 * Finds NAME in FOLDERS, which are parted by ':' (an installed program has one, a build tree two),
 * and writes its path. 0, -ENOENT, or -ENAMETOOLONG.
 */
int spawn_find(const char *folders, const char *name, char *path, size_t size);
