/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdio.h>

#include "cli/client.h"
#include "cli/command.h"

static int reload_run(int argc, char **argv)
{
	struct client_options options;
	struct client client;
	int status = client_options(&command_reload, argc, argv, NULL, &options);

	if (status != STATUS_OK)
		return status;
	if (client_open(&client, options.config) != 0)
		return STATUS_FAILED;
	status = STATUS_FAILED;
	if (client_ask(&client, json_pack("{s:s}", "command", "reload")) == 0) {
		json_t *answer = client_answer(&client);
		if (answer != NULL) {
			printf("generation %lld is in force\n",
			       json_integer_value(json_object_get(answer, "generation")));
			status = STATUS_OK;
		}
		json_decref(answer);
	}
	client_close(&client);
	return status;
}

const struct command command_reload = {
	.name = "reload",
	.summary = "make the service read its configuration again",
	.usage = "pinfold reload [-c FILE]",
	.options = "  -c FILE   the configuration that names the control socket\n"
		   "Exit status: 0 the new policy is in force, 1 refused and the old one stays.\n",
	.run = reload_run,
};
