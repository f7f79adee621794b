/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The inner process: process 1 of COMMAND's PID namespace, which makes COMMAND's other namespaces,
 * starts it, and takes everything that COMMAND left running with it when it goes.
 */

#include <signal.h>
#include <sys/types.h>

#include "confine/plan.h"

struct inner_options {
	const struct plan *plan;
	char *const *command; /* NULL-terminated, one at least */
	const char *resolv_conf, *hosts;
	uid_t uid;            /* the caller's, on the host */
	int socket;           /* words with the runner */
	const int *close;     /* descriptors that are not COMMAND's, -1 at the end */
	const sigset_t *mask; /* the signal mask that COMMAND gets */
};

/*
 * Forks the process. Returns its pid with its pidfd in *PIDFD, or negative errno. It is in new PID
 * and mount namespaces from the beginning.
 */
pid_t inner_start(const struct inner_options *options, int *pidfd);
