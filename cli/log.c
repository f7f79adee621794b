/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/command.h"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

/* Colours of a terminal; empty texts where there is none. */
static struct colours {
	const char *deny, *allow, *faint, *end;
} colours = {"", "", "", ""};

static void choose_colours(void)
{
	const char *terminal = getenv("TERM");

	if (isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL && terminal != NULL &&
	    strcmp(terminal, "dumb") != 0)
		colours = (struct colours){"\033[31m", "\033[32m", "\033[2m", "\033[0m"};
}

static void print_what(const json_t *record)
{
	const json_t *addresses = json_object_get(record, "addresses");
	const char *gap = "";

	if (text_of(record, "name")[0] != '\0') {
		printf("%s", text_of(record, "name"));
		gap = " ";
	}
	for (size_t i = 0; i < json_array_size(addresses); i++) {
		const char *address = json_string_value(json_array_get(addresses, i));
		printf("%s%s", gap, address != NULL ? address : "?");
		gap = " ";
	}
	if (json_object_get(record, "port") != NULL)
		printf("%sport %lld", gap, json_integer_value(json_object_get(record, "port")));
	if (text_of(record, "protocol")[0] != '\0')
		printf(" %s", text_of(record, "protocol"));
}

/* One line for people, in columns: time, verdict, stage, client, reason; then what and why. */
static void print_record(const json_t *record)
{
	const char *verdict = text_of(record, "verdict");
	const char *colour = strcmp(verdict, "allow") == 0 ? colours.allow : colours.deny;

	if (json_is_false(json_object_get(record, "enforced"))) {
		verdict = "would deny";
		colour = "";
	}
	printf("%s  %s%-10s%s  %-7s  %-15s  %-15s  ", text_of(record, "time"), colour, verdict,
	       *colour != '\0' ? colours.end : "", text_of(record, "stage"),
	       text_of(record, "client"), text_of(record, "reason"));
	print_what(record);
	printf("  %s%s%s", colours.faint, text_of(record, "rule"), colours.end);
	if (text_of(record, "detail")[0] != '\0')
		printf(", %s", text_of(record, "detail"));
	if (json_object_get(record, "suppressed") != NULL)
		printf(", %lld more like it",
		       json_integer_value(json_object_get(record, "suppressed")));
	putchar('\n');
}

/* True until the closing answer, or for good with -f. */
static bool print_line(const char *line, bool json)
{
	json_t *record = json_loads(line, 0, NULL);
	bool more = json_object_get(record, "ok") == NULL;

	if (more && (json || record == NULL))
		puts(line);
	else if (more)
		print_record(record);
	fflush(stdout);
	json_decref(record);
	return more && ferror(stdout) == 0;
}

static int log_run(int argc, char **argv)
{
	struct client_options options;
	struct client client;
	int status = client_options(&command_log, argc, argv, "-f", &options);

	if (status != STATUS_OK)
		return status;
	if (client_open(&client, options.config) != 0)
		return STATUS_FAILED;
	status = STATUS_FAILED;
	choose_colours();
	if (client_ask(&client, json_pack("{s:s,s:b}", "command", "log", "follow", options.flag)) ==
	    0) {
		const char *line;
		while ((line = client_line(&client)) != NULL && print_line(line, options.json))
			;
		if (line != NULL || options.flag)
			status = STATUS_OK;
		else
			command_error(0, "the service went away");
	}
	client_close(&client);
	return status;
}

const struct command command_log = {
	.name = "log",
	.summary = "print the audit log for people",
	.usage = "pinfold log [-f] [--json] [-c FILE]",
	.options = "  -f        go on as it grows\n"
		   "  --json    the lines as they are\n"
		   "  -c FILE   the configuration that names the control socket\n",
	.run = log_run,
};
