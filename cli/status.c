/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "cli/client.h"
#include "cli/command.h"

static void print_scalar(const json_t *value)
{
	if (json_is_string(value))
		printf("%s", json_string_value(value));
	else if (json_is_integer(value))
		printf("%lld", json_integer_value(value));
	else
		printf("%s", json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "-");
}

/* "key value" a line; what is nested is indented below its key. */
static void print_object(json_t *object, int depth)
{
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value)
	{
		if (json_is_object(value) && json_object_size(value) == 0)
			continue;
		printf("%*s%s", depth * 2, "", key);
		if (json_is_object(value)) {
			putchar('\n');
			print_object(value, depth + 1);
		} else {
			putchar(' ');
			print_scalar(value);
			putchar('\n');
		}
	}
}

static int status_run(int argc, char **argv)
{
	struct client_options options;
	struct client client;
	int status = client_options(&command_status, argc, argv, NULL, &options);

	if (status != STATUS_OK)
		return status;
	if (client_open(&client, options.config) != 0)
		return STATUS_FAILED;
	status = STATUS_FAILED;
	if (client_ask(&client, json_pack("{s:s}", "command", "status")) == 0) {
		json_t *answer = client_answer(&client);
		if (answer != NULL) {
			json_object_del(answer, "ok");
			if (options.json) {
				json_dumpf(answer, stdout, JSON_COMPACT);
				putchar('\n');
			} else {
				print_object(answer, 0);
			}
			status = STATUS_OK;
		}
		json_decref(answer);
	}
	client_close(&client);
	return status;
}

const struct command command_status = {
	.name = "status",
	.summary = "print counters, generation and the state of both children",
	.usage = "pinfold status [--json] [-c FILE]",
	.options = "  --json    as one object\n"
		   "  -c FILE   the configuration that names the control socket\n",
	.run = status_run,
};
