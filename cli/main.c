/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * `pinfold COMMAND …`: finds the command in the table and runs it. Nothing else happens here.
 */

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"

#ifndef PINFOLD_VERSION
#error "the build defines PINFOLD_VERSION"
#endif

/* In the order of `pinfold help`. */
static const struct command *const commands[] = {
	&command_run,
	&command_daemon,
	&command_status,
	&command_pins,
	&command_client,
	&command_log,
	&command_reload,
	&command_check,
	&command_explain,
	&command_suggest,
	&command_report,
	&command_rules,
	&command_selfcheck,
	&command_version,
	&command_help,
};
#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

/* Every line of the usage text, the first after "usage: ". */
static void print_usage(const struct command *command, FILE *out)
{
	const char *lead = "usage:";

	for (const char *line = command->usage; *line != '\0'; lead = "      ") {
		size_t length = strcspn(line, "\n");
		fprintf(out, "%s %.*s\n", lead, (int)length, line);
		line += length + (line[length] == '\n');
	}
}

int command_usage_error(const struct command *command, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "pinfold %s: ", command->name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	/* A usage of many lines would hide the error. */
	if (strchr(command->usage, '\n') == NULL)
		print_usage(command, stderr);
	else
		fprintf(stderr, "`pinfold help %s` tells the usage\n", command->name);
	return STATUS_USAGE;
}

int command_error(int status, const char *format, ...)
{
	va_list arguments;

	fputs("pinfold: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return status;
}

static void print_commands(FILE *out)
{
	fputs("usage: pinfold COMMAND [ARGUMENT…]\n\n", out);
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n`pinfold help COMMAND` tells more.\n", out);
}

static void print_help(const struct command *command, FILE *out)
{
	fprintf(out, "pinfold %s: %s\n", command->name, command->summary);
	print_usage(command, out);
	if (command->options != NULL)
		fprintf(out, "\n%s", command->options);
}

static int help_run(int argc, char **argv)
{
	const struct command *command;

	if (argc == 1) {
		print_commands(stdout);
		return STATUS_OK;
	}
	if (argc > 2)
		return command_usage_error(&command_help, "one command at a time");
	command = command_find(argv[1]);
	if (command == NULL)
		return command_usage_error(&command_help, "there is no command '%s'", argv[1]);
	print_help(command, stdout);
	return STATUS_OK;
}

const struct command command_help = {
	.name = "help",
	.summary = "explain a command",
	.usage = "pinfold help [COMMAND]",
	.run = help_run,
};

static int version_run(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return command_usage_error(&command_version, "takes no arguments");
	puts("pinfold " PINFOLD_VERSION);
	return STATUS_OK;
}

const struct command command_version = {
	.name = "version",
	.summary = "print the version",
	.usage = "pinfold version",
	.run = version_run,
};

/* The names that the world tries first. */
static const char *spelled(const char *name)
{
	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		return "version";
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		return "help";
	return name;
}

/* What was written to standard output must have arrived, or the status would lie. */
static int finish(int status)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return command_error(STATUS_USAGE, "cannot write to standard output");
	return status;
}

int main(int argc, char **argv)
{
	const struct command *command;

	/* A caller that ignores it has us inherit that, and every wait for a child would fail. */
	signal(SIGCHLD, SIG_DFL);
	if (argc < 2) {
		print_commands(stderr);
		return STATUS_USAGE;
	}
	command = command_find(spelled(argv[1]));
	if (command == NULL)
		return command_error(STATUS_USAGE, "there is no command '%s'; see `pinfold help`",
				     argv[1]);
	if (argc == 3 && (strcmp(argv[2], "--help") == 0 || strcmp(argv[2], "-h") == 0)) {
		print_help(command, stdout);
		return finish(STATUS_OK);
	}
	return finish(command->run(argc - 1, argv + 1));
}
