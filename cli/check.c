/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "config/config.h"

static int check(const char *path, bool print)
{
	struct config_findings findings;
	struct config *config = config_read(path, &findings);

	config_findings_print(&findings, path, stderr);
	config_findings_free(&findings);
	if (config == NULL)
		return STATUS_FAILED;
	if (print)
		config_print(config, stdout);
	config_free(config);
	return STATUS_OK;
}

static int check_run(int argc, char **argv)
{
	const char *path = NULL;
	bool print = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--print") == 0)
			print = true;
		else if (argv[i][0] == '-' && argv[i][1] != '\0')
			return command_usage_error(&command_check, "unknown option '%s'", argv[i]);
		else if (path != NULL)
			return command_usage_error(&command_check, "one file at a time");
		else
			path = argv[i];
	}
	return check(path != NULL ? path : CONFIG_PATH_DEFAULT, print);
}

const struct command command_check = {
	.name = "check",
	.summary = "find every error of a configuration",
	.usage = "pinfold check [--print] [FILE]",
	.options = "FILE is " CONFIG_PATH_DEFAULT " when left out, `-` is standard input.\n"
		   "Each finding is one line, FILE:LINE:COLUMN: error|warning: TEXT, on standard "
		   "error.\n"
		   "  --print   print the normalised configuration, every option with its value\n"
		   "Exit status: 0 no errors, 1 errors.\n",
	.run = check_run,
};
