/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * pinfold-cni, a chained plugin of a container network: CNI specification 0.4.0, 1.0.0 and 1.1.0. The
 * runtime calls it once a verb, after the plugins that give the container its interface and addresses.
 * It changes nothing itself: it asks the running service to govern the container (docs/containers.md).
 *
 * Input are the CNI_ variables and a JSON object, output is a JSON object: the result, or the error with
 * exit status 1.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cni/attachment.h"
#include "cni/failure.h"
#include "cni/network.h"

/* The result of a chain has some hundred octets an interface. */
#define INPUT_MAX (1u << 20)

/* All of standard input; 0, or -1 with FAILURE. */
static int read_input(char **out, size_t *length, struct failure *failure)
{
	char *input = malloc(INPUT_MAX + 1);
	size_t have = 0;
	ssize_t count = 1;

	if (input == NULL)
		return fail(failure, FAILURE_IO, "out of memory");
	while (have <= INPUT_MAX && count != 0) {
		count = read(STDIN_FILENO, input + have, INPUT_MAX + 1 - have);
		if (count < 0 && errno != EINTR) {
			free(input);
			return fail(failure, FAILURE_IO, "cannot read the configuration: %s",
				    strerror(errno));
		}
		if (count > 0)
			have += (size_t)count;
	}
	if (have > INPUT_MAX) {
		free(input);
		return fail(failure, FAILURE_DECODE, "the configuration is longer than %u octets",
			    INPUT_MAX);
	}
	*out = input;
	*length = have;
	return 0;
}

/* The JSON object of standard input, the caller's; NULL with FAILURE. VERSION may come without one. */
static json_t *read_object(enum verb verb, struct failure *failure)
{
	json_error_t error = {.line = 0};
	char *input = NULL;
	size_t length = 0;

	if (read_input(&input, &length, failure) != 0)
		return NULL;
	json_t *json = length == 0 && verb == VERB_VERSION
			       ? json_object()
			       : json_loadb(input, length, JSON_REJECT_DUPLICATES, &error);
	free(input);
	if (!json_is_object(json)) {
		json_decref(json);
		fail(failure, FAILURE_DECODE, "the configuration is no JSON object: %d:%d: %s",
		     error.line, error.column, error.text);
		return NULL;
	}
	return json;
}

static json_t *version_result(const json_t *json)
{
	const char *asked = json_string_value(json_object_get(json, "cniVersion"));
	json_t *supported = json_array();
	const char *last = "";

	for (size_t i = 0; network_versions[i] != NULL; i++) {
		last = network_versions[i];
		json_array_append_new(supported, json_string(last));
	}
	return json_pack("{s:s,s:o}", "cniVersion", asked != NULL ? asked : last,
			 "supportedVersions", supported);
}

/* Carries VERB out; *RESULT is what to print, or NULL. 0, or -1 with FAILURE. */
static int carry_out(enum verb verb, const json_t *json, const struct attachment *attachment,
		     json_t **result, struct failure *failure)
{
	struct network network;

	if (verb == VERB_VERSION) {
		*result = version_result(json);
		return 0;
	}
	if (network_read(json, verb, &network, failure) != 0)
		return -1;
	switch (verb) {
	case VERB_ADD:
		return attachment_add(&network, attachment, result, failure);
	case VERB_DEL:
		return attachment_del(&network, attachment, failure);
	case VERB_CHECK:
		return attachment_check(&network, attachment, failure);
	case VERB_GC:
		return attachment_gc(&network, failure);
	case VERB_STATUS:
		return attachment_status(&network, failure);
	case VERB_VERSION:
		break;
	}
	return 0;
}

static json_t *error_result(const json_t *json, const struct failure *failure)
{
	const char *version = json_string_value(json_object_get(json, "cniVersion"));

	/* Texts may quote what people wrote; "?" stands for what is not UTF-8. */
	json_t *message = json_string(failure->message);
	return json_pack("{s:s,s:i,s:o}", "cniVersion", version != NULL ? version : "1.0.0", "code",
			 (int)failure->code, "msg", message != NULL ? message : json_string("?"));
}

int main(void)
{
	const struct variables variables = {
		.command = getenv("CNI_COMMAND"),
		.container = getenv("CNI_CONTAINERID"),
		.netns = getenv("CNI_NETNS"),
		.interface = getenv("CNI_IFNAME"),
		.path = getenv("CNI_PATH"),
	};
	const struct attachment attachment = {variables.container, variables.interface};
	struct failure failure = {.code = FAILURE_NONE};
	json_t *json = NULL, *output = NULL;
	enum verb verb;
	int status = 1;

	if (network_verb(&variables, &verb, &failure) == 0) {
		json = read_object(verb, &failure);
		if (json != NULL && carry_out(verb, json, &attachment, &output, &failure) == 0)
			status = 0;
	}
	if (status != 0)
		output = error_result(json, &failure);
	if (output != NULL && json_dumpf(output, stdout, JSON_INDENT(2)) == 0)
		putchar('\n');
	json_decref(output);
	json_decref(json);
	return fflush(stdout) == 0 && !ferror(stdout) ? status : 1;
}
