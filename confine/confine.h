/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * `pinfold run`: COMMAND in network, PID, mount and user namespaces of its own, whose only way out
 * leads through a resolver and a gate that are started for it and end with it.
 */

#include "config/config.h"

struct confine_options {
	struct config *config; /* its policy `default` governs; changed into that of the run */
	const char *libexec;   /* see spawn_find() */
	char *const *command;  /* NULL-terminated, one at least */
	/*
	 * A file above descriptor 2 that gets every audit line of the run, those of allowed flows
	 * too; 0: none. COMMAND has it as well, unless it is closed on exec.
	 */
	int audit;
};

/*
 * Returns COMMAND's exit status, 128 plus the number of the signal that ended it, 127 or 126 when
 * it cannot be executed, or 2 with one line on standard error when the run cannot be set up or held
 * up.
 */
int confine_run(const struct confine_options *options);

/* Becomes COMMAND, or says why not and exits with 127 or 126. */
_Noreturn void confine_exec(char *const *command);
