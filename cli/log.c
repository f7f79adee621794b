/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>
#include <string.h>

#include "cli/client.h"
#include "cli/command.h"

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

/* One line for people: time, client, stage, verdict, what, why. */
static void print_record(const json_t *record)
{
	const json_t *addresses = json_object_get(record, "addresses");
	const char *verdict = text_of(record, "verdict");

	if (json_is_false(json_object_get(record, "enforced")))
		verdict = "would deny";
	printf("%s %s %s %s", text_of(record, "time"), text_of(record, "client"),
	       text_of(record, "stage"), verdict);
	if (text_of(record, "name")[0] != '\0')
		printf(" %s", text_of(record, "name"));
	for (size_t i = 0; i < json_array_size(addresses); i++) {
		const char *address = json_string_value(json_array_get(addresses, i));
		printf(" %s", address != NULL ? address : "?");
	}
	if (json_object_get(record, "port") != NULL)
		printf(" port %lld", json_integer_value(json_object_get(record, "port")));
	if (text_of(record, "protocol")[0] != '\0')
		printf(" %s", text_of(record, "protocol"));
	printf(": %s (%s)", text_of(record, "reason"), text_of(record, "rule"));
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
