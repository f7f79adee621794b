/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The commands of `pinfold`: one file each, one row each in the table of cli/main.c.
 *
 * To add a command: write cli/NAME.c with `const struct command command_NAME`, declare it at the
 * end of this header, add it to the table in cli/main.c and the file to cli/meson.build.
 */

#include <stddef.h>

/* Exit statuses that scripts may rely on. */
enum {
	STATUS_OK = 0,
	STATUS_FAILED = 1, /* `check` found errors, `selfcheck` found a hole, … */
	STATUS_USAGE = 2,  /* wrong usage, a configuration that does not load, or no start */
	STATUS_DENY = 3,   /* `explain` */
	STATUS_WAIT = 4    /* `explain bytes`: more bytes are needed */
};

struct command {
	const char *name;
	const char *summary; /* half a line for `pinfold help` */
	const char *usage;   /* the lines after "usage: ", parted by '\n', no final one */
	const char *options; /* lines that explain the options, each with '\n', or NULL */

	/* ARGV[0] is the command's name. Returns the exit status. `--help` alone never gets here.
	 */
	int (*run)(int argc, char **argv);
};

/*
 * Prints "pinfold NAME: MESSAGE" to standard error, and the usage if it is one line, else where to
 * find it; returns STATUS_USAGE.
 */
int command_usage_error(const struct command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints "pinfold: MESSAGE" to standard error; returns STATUS. */
int command_error(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

extern const struct command command_check;
extern const struct command command_explain;
extern const struct command command_help;
extern const struct command command_rules;
extern const struct command command_version;
extern const struct command command_client;
extern const struct command command_daemon;
extern const struct command command_log;
extern const struct command command_pins;
extern const struct command command_reload;
extern const struct command command_report;
extern const struct command command_run;
extern const struct command command_selfcheck;
extern const struct command command_status;
extern const struct command command_suggest;
