/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/libexec.h"
#include "config/config.h"
#include "confine/confine.h"

struct run_request {
	const char *policy; /* NULL: the default posture */
	int allow_count;
	bool strict;
	char **command;
};

static struct config *read_policy(const char *path)
{
	struct config_findings findings;
	struct config *config = path != NULL ? config_read(path, &findings)
					     : config_read_text("default", "", 0, &findings);

	config_findings_print(&findings, path != NULL ? path : "default", stderr);
	config_findings_free(&findings);
	return config;
}

/* Reads the options up to COMMAND: 0, or a status. Entries of --allow are collected in ALLOW. */
static int take_options(int argc, char **argv, struct run_request *request, const char **allow)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		bool value = i + 1 < argc;
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "--strict") == 0)
			request->strict = true;
		else if (strcmp(argv[i], "--policy") == 0 && value)
			request->policy = argv[++i];
		else if (strncmp(argv[i], "--policy=", 9) == 0)
			request->policy = argv[i] + 9;
		else if (strcmp(argv[i], "--allow") == 0 && value)
			allow[request->allow_count++] = argv[++i];
		else if (strncmp(argv[i], "--allow=", 8) == 0)
			allow[request->allow_count++] = argv[i] + 8;
		else
			return command_usage_error(&command_run, "unknown option '%s'", argv[i]);
	}
	if (i == argc)
		return command_usage_error(&command_run, "there is no command to run");
	request->command = argv + i;
	return STATUS_OK;
}

/* The configuration of the run, or NULL with the reason printed. */
static struct config *make_config(const struct run_request *request, const char **allow)
{
	struct config *config = read_policy(request->policy);
	char problem[512];

	for (int i = 0; config != NULL && i < request->allow_count; i++) {
		if (config_allow(config, allow[i], problem, sizeof(problem)) != 0) {
			command_error(STATUS_USAGE, "--allow %s: %s", allow[i], problem);
			config_free(config);
			return NULL;
		}
	}
	if (config != NULL && request->strict)
		config->source.policies[0].default_deny.value = true;
	return config;
}

static int run_run(int argc, char **argv)
{
	const char **allow = calloc((size_t)argc, sizeof(*allow));
	struct run_request request = {.policy = NULL};

	if (allow == NULL)
		return command_error(STATUS_USAGE, "out of memory");
	int status = take_options(argc, argv, &request, allow);
	if (status == STATUS_OK) {
		struct config *config = make_config(&request, allow);
		const struct confine_options options = {
			.config = config,
			.libexec = libexec_folders(),
			.command = request.command,
		};
		status = config != NULL ? confine_run(&options) : STATUS_USAGE;
		config_free(config);
	}
	free(allow);
	return status;
}

const struct command command_run = {
	.name = "run",
	.summary = "run a command whose only way out is through us",
	.usage = "pinfold run [--policy FILE] [--allow HOST[:PORT]]… [--strict] -- COMMAND…",
	.options = "  --policy FILE         a configuration, whose policy `default` governs\n"
		   "  --allow HOST[:PORT]   one more entry of allow_hosts\n"
		   "  --strict              default: deny; what no list allows is refused\n"
		   "Needs root. What COMMAND leaves running ends with it.\n"
		   "Exit status: that of COMMAND, 128 + N when signal N ended it, 127 not found, "
		   "126 not\n"
		   "executable, 2 when the run could not be set up.\n",
	.run = run_run,
};
