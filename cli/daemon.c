/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/libexec.h"
#include "config/config.h"
#include "confine/descriptors.h"
#include "daemon/parent.h"

static int serve(const char *path, bool manage_rules)
{
	struct config_findings findings;
	struct config *config = config_read(path, &findings);
	int result = -1;

	config_findings_print(&findings, path, stderr);
	config_findings_free(&findings);
	if (config != NULL) {
		const struct parent_options options = {
			.config = config,
			.config_path = path,
			.libexec = libexec_folders(),
			.ready_fd = -1,
			.lifetime_fd = -1,
			.manage_rules = manage_rules,
		};
		result = parent_run(&options);
	}
	config_free(config);
	return result == 0 ? STATUS_OK : STATUS_USAGE;
}

static int daemon_run(int argc, char **argv)
{
	const char *path = CONFIG_PATH_DEFAULT;
	bool manage_rules = true;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-c") == 0 && i + 1 < argc)
			path = argv[++i];
		else if (strcmp(argv[i], "--no-rules") == 0)
			manage_rules = false;
		else
			return command_usage_error(&command_daemon, "unknown argument '%s'",
						   argv[i]);
	}
	descriptors_fill();
	return serve(path, manage_rules);
}

const struct command command_daemon = {
	.name = "daemon",
	.summary = "run the service in the foreground",
	.usage = "pinfold daemon [-c FILE] [--no-rules]",
	.options = "  -c FILE      the configuration, " CONFIG_PATH_DEFAULT " by default\n"
		   "  --no-rules   leave the packet-filter rules to `pinfold rules`\n"
		   "SIGHUP reloads, SIGUSR1 opens the log anew, SIGTERM ends. The rules stay when "
		   "it ends.\n"
		   "Exit status: 0 ended in order, 2 could not start.\n",
	.run = daemon_run,
};
