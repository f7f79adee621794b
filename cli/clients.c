/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * `pinfold client add|remove|list`: registers clients with the running service by hand, as a network
 * plugin does by itself (docs/control.md).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/command.h"

struct request {
	const char *verb, *config, *name;
	json_t *body;
	bool json;
};

/* The options of `add` and their keys; their values are checked by the service. */
static const struct {
	const char *option, *key;
} keys[] = {
	{"--policy", "policy"},       {"--address", "addresses"}, {"--uid", "uid"},
	{"--interface", "interface"}, {"--cgroup", "cgroup"},     {"--via", "via"},
};
#define KEYS (sizeof(keys) / sizeof(keys[0]))

static int set_key(struct request *request, const char *key, const char *value)
{
	json_t *list = json_object_get(request->body, key);
	json_t *text = json_string(value);
	char *end;

	if (text == NULL)
		return command_usage_error(&command_client, "--%s: not UTF-8", key);
	if (strcmp(key, "addresses") == 0) {
		if (list == NULL)
			json_object_set_new(request->body, key, list = json_array());
		json_array_append_new(list, text);
		return STATUS_OK;
	}
	if (list != NULL) {
		json_decref(text);
		return command_usage_error(&command_client, "--%s is there twice", key);
	}
	unsigned long number = strtoul(value, &end, 10);
	if (strcmp(key, "uid") == 0 && value[0] >= '0' && value[0] <= '9' && *end == '\0') {
		json_decref(text);
		text = json_integer((json_int_t)number);
	}
	json_object_set_new(request->body, key, text);
	return STATUS_OK;
}

/* One option at ARGV[*I], and past its value. */
static int take_option(struct request *request, int argc, char **argv, int *i)
{
	const char *option = argv[*i];
	bool add = strcmp(request->verb, "add") == 0;

	if (strcmp(option, "--json") == 0 && strcmp(request->verb, "list") == 0) {
		request->json = true;
		return STATUS_OK;
	}
	for (size_t k = 0; k <= KEYS; k++) {
		if (strcmp(option, k < KEYS ? keys[k].option : "-c") != 0 || (k < KEYS && !add))
			continue;
		if (*i + 1 == argc)
			return command_usage_error(&command_client, "%s needs a value", option);
		++*i;
		if (k < KEYS)
			return set_key(request, keys[k].key, argv[*i]);
		request->config = argv[*i];
		return STATUS_OK;
	}
	return command_usage_error(&command_client, "unknown option '%s'", option);
}

static int read_line(int argc, char **argv, struct request *request)
{
	bool list;

	if (argc < 2)
		return command_usage_error(&command_client, "add, remove or list?");
	request->verb = argv[1];
	list = strcmp(request->verb, "list") == 0;
	if (!list && strcmp(request->verb, "add") != 0 && strcmp(request->verb, "remove") != 0)
		return command_usage_error(&command_client, "there is no '%s'", request->verb);
	for (int i = 2; i < argc; i++) {
		int status = STATUS_OK;
		if (argv[i][0] == '-')
			status = take_option(request, argc, argv, &i);
		else if (list || request->name != NULL)
			status = command_usage_error(&command_client, "unknown argument '%s'",
						     argv[i]);
		else
			request->name = argv[i];
		if (status != STATUS_OK)
			return status;
	}
	if (!list && request->name == NULL)
		return command_usage_error(&command_client, "which client?");
	return STATUS_OK;
}

static void print_value(const json_t *value)
{
	const char *lead = "";

	if (json_is_integer(value))
		printf("%lld", json_integer_value(value));
	if (json_is_string(value))
		fputs(json_string_value(value), stdout);
	for (size_t i = 0; i < json_array_size(value); i++, lead = " ")
		printf("%s%s", lead, json_string_value(json_array_get(value, i)));
}

/* "pod-7  ci  10.1.2.3 fd00::3" a line. */
static void print_list(const json_t *answer, bool as_json)
{
	static const char *const selectors[] = {"addresses", "interface", "uid", "cgroup"};
	json_t *clients = json_object_get(answer, "clients"), *client;
	size_t index;

	json_array_foreach(clients, index, client)
	{
		if (as_json) {
			json_dumpf(client, stdout, JSON_COMPACT);
			putchar('\n');
			continue;
		}
		printf("%-24s %-16s %-10s", json_string_value(json_object_get(client, "name")),
		       json_string_value(json_object_get(client, "policy")),
		       json_is_true(json_object_get(client, "registered")) ? "registered" : "file");
		for (size_t i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++) {
			const json_t *value = json_object_get(client, selectors[i]);
			if (value == NULL)
				continue;
			printf(" %s", i == 0 ? "" : selectors[i]);
			fputs(i == 0 ? "" : " ", stdout);
			print_value(value);
		}
		putchar('\n');
	}
}

static int ask(struct client *client, struct request *request)
{
	char command[32];
	int status = STATUS_OK;

	snprintf(command, sizeof(command), "client-%s", request->verb);
	json_object_set_new(request->body, "command", json_string(command));
	if (request->name != NULL)
		json_object_set_new(request->body, "name", json_string(request->name));
	if (client_ask(client, json_incref(request->body)) != 0)
		return STATUS_FAILED;
	json_t *answer = client_answer(client);
	if (answer == NULL)
		return STATUS_FAILED;
	bool changed = json_is_true(json_object_get(answer, "changed"));
	if (strcmp(request->verb, "list") == 0)
		print_list(answer, request->json);
	else if (strcmp(request->verb, "add") == 0)
		printf("%s %s\n", request->name, changed ? "is registered" : "was there already");
	else if (changed)
		printf("%s is removed\n", request->name);
	else
		status = command_error(STATUS_FAILED, "there is no registered client '%s'",
				       request->name);
	json_decref(answer);
	return status;
}

static int client_run(int argc, char **argv)
{
	struct request request = {.body = json_object()};
	struct client client;
	int status = read_line(argc, argv, &request);

	if (status == STATUS_OK) {
		status = STATUS_FAILED;
		if (client_open(&client, request.config) == 0) {
			status = ask(&client, &request);
			client_close(&client);
		}
	}
	json_decref(request.body);
	return status;
}

const struct command command_client = {
	.name = "client",
	.summary = "register clients with the running service",
	.usage = "pinfold client add NAME [--policy NAME] [--address PREFIX]… [OPTION]…\n"
		 "pinfold client remove NAME [-c FILE]\n"
		 "pinfold client list [--json] [-c FILE]",
	.options =
		"  --policy NAME      who governs it; `default` when left out\n"
		"  --address PREFIX   a source address or prefix; both families are one client\n"
		"  --interface NAME   all that comes in by it is this client\n"
		"  --uid NUMBER, --cgroup PATH\n"
		"                     users of this host, with `hook: output`\n"
		"  --via NAME         refuse unless what comes in by this interface is governed\n"
		"  -c FILE            the configuration that names the control socket\n"
		"It is governed when `add` ends. `remove` drops its pins.\n"
		"Exit status: 0 done, 1 refused or no such client, 2 usage.\n",
	.run = client_run,
};
