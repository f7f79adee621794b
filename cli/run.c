/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/libexec.h"
#include "cli/report.h"
#include "config/config.h"
#include "confine/confine.h"

struct run_request {
	const char *policy; /* NULL: the default posture */
	int allow_count;
	bool strict;
	const char *report; /* NULL: none */
	bool selfcheck;
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

/*
 * The value of the option NAME at ARGV[*I], in the same word after '=' or in the next one; false
 * when it is another option. VALUE is NULL when it was forgotten: there is no next word, or it is
 * an option.
 */
static bool take_value(int argc, char **argv, int *i, const char *name, const char **value)
{
	size_t length = strlen(name);

	if (strncmp(argv[*i], name, length) != 0)
		return false;
	if (argv[*i][length] == '=')
		*value = argv[*i] + length + 1;
	else if (argv[*i][length] != '\0')
		return false;
	else
		*value = *i + 1 < argc && (argv[*i + 1][0] != '-' || argv[*i + 1][1] == '\0')
				 ? argv[++*i]
				 : NULL;
	return true;
}

/* Reads the options up to COMMAND: 0, or a status. Entries of --allow are collected in ALLOW. */
static int take_options(int argc, char **argv, struct run_request *request, const char **allow)
{
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		const char *option = argv[i], *value = option;
		if (strcmp(option, "--") == 0) {
			i++;
			break;
		}
		if (strcmp(option, "--strict") == 0)
			request->strict = true;
		else if (strcmp(option, "--selfcheck") == 0)
			request->selfcheck = true;
		else if (take_value(argc, argv, &i, "--report", &value))
			request->report = value;
		else if (take_value(argc, argv, &i, "--policy", &value))
			request->policy = value;
		else if (take_value(argc, argv, &i, "--allow", &value))
			allow[request->allow_count++] = value;
		else
			return command_usage_error(&command_run, "unknown option '%s'", option);
		if (value == NULL)
			return command_usage_error(&command_run, "%s needs a value", option);
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
	/* Easily taken for a list of all that is allowed. */
	if (config != NULL && request->allow_count > 0 &&
	    !config->source.policies[0].default_deny.value)
		fputs("pinfold: note: --allow alone forbids nothing else; add --strict for that\n",
		      stderr);
	return config;
}

/*
 * For the audit lines: in memory, where COMMAND cannot write, whoever it is. Above the descriptors that
 * are COMMAND's; the self-check inherits it and closes it before COMMAND.
 */
static int open_audit(bool inherited)
{
	int fd = memfd_create("audit", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	int high = fcntl(fd, inherited ? F_DUPFD : F_DUPFD_CLOEXEC, 3);
	int error = -errno;
	close(fd);
	return high < 0 ? error : high;
}

/* `pinfold selfcheck -- COMMAND` in COMMAND's place; the words are the caller's to free. */
static char **wrap_command(char **command, int witness, bool strict)
{
	static char program[] = "/proc/self/exe", name[] = "selfcheck", option[] = "--witness",
		    strict_option[] = "--strict", end[] = "--";
	static char number[16];
	size_t count = 0, at = 0;

	while (command[count] != NULL)
		count++;
	char **words = calloc(count + 8, sizeof(*words));
	if (words == NULL)
		return NULL;
	snprintf(number, sizeof(number), "%d", witness);
	words[at++] = program;
	words[at++] = name;
	words[at++] = option;
	words[at++] = number;
	if (strict)
		words[at++] = strict_option;
	words[at++] = end;
	memcpy(words + at, command, count * sizeof(*words));
	return words;
}

/* The run with what it needs beside its configuration; the status of COMMAND, or 2. */
static int run_with(const struct run_request *request, struct config *config)
{
	bool strict = config->source.policies[0].default_deny.value;
	char **words = NULL;
	struct confine_options options = {
		.config = config,
		.libexec = libexec_folders(),
		.command = request->command,
	};

	/* Better said now than after COMMAND has run. */
	if (request->report != NULL && access(request->report, W_OK) < 0 && errno != ENOENT)
		return command_error(STATUS_USAGE, "--report %s: %s", request->report,
				     strerror(errno));
	if (request->report != NULL || request->selfcheck) {
		options.audit = open_audit(request->selfcheck);
		if (options.audit < 0)
			return command_error(STATUS_USAGE, "cannot keep the audit lines: %s",
					     strerror(-options.audit));
	}
	if (request->selfcheck) {
		words = wrap_command(request->command, options.audit, strict);
		if (words == NULL)
			return command_error(STATUS_USAGE, "out of memory");
		options.command = words;
	}
	int status = confine_run(&options);
	if (request->report != NULL) {
		int written = report_write_file(options.audit, request->report);
		if (status == STATUS_OK)
			status = written;
	}
	free(words);
	return status;
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
		status = config != NULL ? run_with(&request, config) : STATUS_USAGE;
		config_free(config);
	}
	free(allow);
	return status;
}

const struct command command_run = {
	.name = "run",
	.summary = "run a command whose only way out is through us",
	.usage = "pinfold run [--policy FILE] [--allow HOST[:PORT]]… [--strict] [--selfcheck] "
		 "[--report FILE] -- "
		 "COMMAND…",
	.options =
		"  --policy FILE         a configuration, whose policy `default` governs\n"
		"  --allow HOST[:PORT]   one more entry of allow_hosts; forbids nothing by itself\n"
		"  --report FILE         afterwards, what was reached and refused: .html, or "
		"Markdown\n"
		"  --selfcheck           try first whether what must be refused is refused, and "
		"start\n"
		"                        COMMAND only then\n"
		"  --strict              default: deny; what no list allows is refused\n"
		"Works for root, and for an ordinary user with pasta (package passt). What COMMAND "
		"leaves\n"
		"running ends with it.\n"
		"Exit status: that of COMMAND, 128 + N when signal N ended it, 127 not found, "
		"126 not\n"
		"executable, 2 when the run could not be set up.\n",
	.run = run_run,
};
