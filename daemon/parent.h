/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The parent of `pinfold daemon` and of `pinfold run`: it creates the pin table, binds the sockets, starts
 * resolver and gate, restarts one that dies, writes the audit log and serves the control socket. It parses
 * no network input.
 */

#include <stdbool.h>
#include <stddef.h>

#include "config/config.h"

struct parent_options {
	const struct config *config;
	const char *config_path; /* for `reload`; NULL: reload is refused */
	const char *libexec;     /* folders of pinfold-resolver and pinfold-gate, parted by ':' */
	int ready_fd;            /* one byte is written when both children are ready; -1: none */
	int lifetime_fd;   /* end of file or a byte on it ends the parent in order; -1: none */
	bool manage_rules; /* install the rules before ready, verify and repair them while running */
	bool remove_rules; /* and remove them at the end */
	int copy_fd;       /* audit lines go there too, those of allowed flows always; 0: nowhere */
	bool copy_allowed_alone; /* lines of allowed flows go there and not to the log */
	/* Nobody else knows this network namespace: rules need no look before and none after. */
	bool own_namespace;
};

/*
 * Runs until SIGTERM, SIGINT or lifetime_fd ends it. 0 for an orderly end; -1 when it could not start or
 * could not go on, with one line on standard error for the reason.
 */
int parent_run(const struct parent_options *options);
