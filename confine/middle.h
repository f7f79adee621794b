/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The middle process: the parent of resolver and gate in a network namespace of its own, between
 * COMMAND and the way out. It outlives a killed runner just long enough to take everything away.
 */

#include "config/config.h"
#include "confine/uplink.h"

struct middle_options {
	struct config *config; /* as read; made into that of the run here */
	struct uplink *uplink;
	const char *libexec;
	int socket;   /* words with the runner */
	int lifetime; /* end of file: the runner is done or dead */
	int audit;    /* see confine_options */
	int ready;    /* a byte is written when resolver and gate are ready */
};

/* The whole life of the process; returns its exit status. */
int middle_run(const struct middle_options *options);

/* Turns CONFIG into that of the run PLAN: who is governed, where the resolver listens. 0 or
 * negative errno. */
int middle_configure(struct config *config, const struct plan *plan);
