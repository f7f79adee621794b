/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * `pinfold suggest`: reads an audit log line by line and has an allow list made of it.
 */

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/protocol.h"
#include "cli/command.h"
#include "cli/suggestion.h"

struct reading {
	const char *path, *client; /* client NULL: all of them */
	struct suggestion *suggestion;
	unsigned long number; /* of the line */
	bool failed;          /* some line is none of an audit log */
};

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* A number from 1 to MOST, 0 when there is none; false when it is no such number. */
static bool number_of(const json_t *object, const char *key, json_int_t most, uint64_t *out)
{
	const json_t *value = json_object_get(object, key);

	*out = 0;
	if (value == NULL)
		return true;
	if (!json_is_integer(value) || json_integer_value(value) < 1 ||
	    json_integer_value(value) > most)
		return false;
	*out = (uint64_t)json_integer_value(value);
	return true;
}

static bool read_stage(const char *text, enum stage *out)
{
	for (enum stage stage = 0; text != NULL && stage < STAGE_COUNT; stage++) {
		if (strcmp(stage_text(stage), text) != 0)
			continue;
		*out = stage;
		return true;
	}
	return false;
}

/* The reason of a denial, REASON_NONE of what was allowed. */
static bool read_reason(const json_t *object, enum reason *out)
{
	const char *verdict = text_of(object, "verdict"), *text = text_of(object, "reason");

	if (verdict == NULL || text == NULL)
		return false;
	*out = REASON_NONE;
	if (strcmp(verdict, outcome_text(OUTCOME_ALLOW)) == 0)
		return true;
	if (strcmp(verdict, outcome_text(OUTCOME_DENY)) != 0)
		return false;
	for (enum reason reason = REASON_NONE + 1; reason < REASON_COUNT; reason++) {
		if (strcmp(reason_text(reason), text) != 0)
			continue;
		*out = reason;
		return true;
	}
	return false;
}

static bool read_name(const json_t *object, struct suggestion_event *out)
{
	const char *text = text_of(object, "name");

	out->has_name = json_object_get(object, "name") != NULL;
	if (!out->has_name)
		return true;
	return text != NULL && (strcmp(text, ".") == 0 ||
				name_from_text(text, strlen(text), &out->name) == NAME_OK);
}

/* The first address stands for all: a name is listed whatever its addresses are. */
static bool read_address(const json_t *object, struct address *out)
{
	const json_t *list = json_object_get(object, "addresses");
	const char *text = json_string_value(json_array_get(list, 0));

	if (list == NULL)
		return true;
	return text != NULL && address_parse(text, strlen(text), out) == 0;
}

static bool read_protocol(const json_t *object, uint8_t *out)
{
	const char *text = text_of(object, "protocol");

	if (json_object_get(object, "protocol") == NULL)
		return true;
	return text != NULL && protocol_parse(text, out) == 0;
}

/* What OBJECT says; false when it is no line of an audit log. */
static bool read_event(const json_t *object, struct suggestion_event *out)
{
	uint64_t port, qtype, suppressed;

	*out = (struct suggestion_event){.port = 0};
	if (!read_stage(text_of(object, "stage"), &out->stage) ||
	    !read_reason(object, &out->reason) || text_of(object, "client") == NULL ||
	    !read_name(object, out) || !read_address(object, &out->address) ||
	    !read_protocol(object, &out->protocol) ||
	    !number_of(object, "port", UINT16_MAX, &port) ||
	    !number_of(object, "qtype", UINT16_MAX, &qtype) ||
	    !number_of(object, "suppressed", UINT32_MAX, &suppressed))
		return false;
	out->port = (uint16_t)port;
	out->qtype = (uint16_t)qtype;
	out->count = 1 + suppressed;
	return true;
}

/* 0 or -ENOMEM; a line that is none is told and passed over. */
static int take_line(struct reading *reading, const char *line, size_t length)
{
	struct suggestion_event event;
	json_error_t problem;
	json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &problem);
	bool good = read_event(object, &event);
	int error = 0;

	if (object == NULL)
		fprintf(stderr, "%s:%lu: error: no JSON: %s\n", reading->path, reading->number,
			problem.text);
	else if (!good)
		fprintf(stderr, "%s:%lu: error: no line of an audit log\n", reading->path,
			reading->number);
	else if (reading->client == NULL || strcmp(reading->client, text_of(object, "client")) == 0)
		error = suggestion_add(reading->suggestion, &event);
	reading->failed = reading->failed || !good;
	json_decref(object);
	return error;
}

static int read_log(struct reading *reading, FILE *log)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int error = 0;

	while (error == 0 && (length = getline(&line, &room, log)) >= 0) {
		reading->number++;
		if (length > 0 && line[length - 1] == '\n')
			length--;
		error = take_line(reading, line, (size_t)length);
	}
	if (error == 0 && ferror(log))
		error = -EIO;
	free(line);
	return error;
}

static int suggest(struct reading *reading)
{
	bool from_stdin = strcmp(reading->path, "-") == 0;
	FILE *log = from_stdin ? stdin : fopen(reading->path, "re");
	int error;

	if (log == NULL)
		return command_error(STATUS_USAGE, "%s: %s", reading->path, strerror(errno));
	error = read_log(reading, log);
	if (!from_stdin)
		fclose(log);
	if (error == 0)
		error = suggestion_print(reading->suggestion, stdout);
	if (error < 0)
		return command_error(STATUS_USAGE, "%s: %s", reading->path, strerror(-error));
	return reading->failed ? STATUS_FAILED : STATUS_OK;
}

static int suggest_run(int argc, char **argv)
{
	struct reading reading = {.path = NULL};
	bool wildcards = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--wildcards") == 0)
			wildcards = true;
		else if (strcmp(argv[i], "--client") == 0 && i + 1 < argc)
			reading.client = argv[++i];
		else if (argv[i][0] == '-' && argv[i][1] != '\0')
			return command_usage_error(&command_suggest,
						   "unknown option '%s', or it needs a value",
						   argv[i]);
		else if (reading.path != NULL)
			return command_usage_error(&command_suggest, "one log at a time");
		else
			reading.path = argv[i];
	}
	if (reading.path == NULL)
		return command_usage_error(&command_suggest, "which log?");
	reading.suggestion = suggestion_new(wildcards);
	if (reading.suggestion == NULL)
		return command_error(STATUS_USAGE, "out of memory");
	int status = suggest(&reading);
	suggestion_free(reading.suggestion);
	return status;
}

const struct command command_suggest = {
	.name = "suggest",
	.summary = "make an allow list of an audit log",
	.usage = "pinfold suggest [--wildcards] [--client NAME] LOG",
	.options =
		"Prints the smallest allow_hosts under which nothing that LOG tells of would be\n"
		"denied, as YAML. What no list should open is told in comments, with its reason.\n"
		"`-` is standard input. Take a log of `mode: audit`, or with `allowed: true`.\n"
		"  --wildcards     several children of a domain become one \"*.domain\"\n"
		"  --client NAME   lines of this client alone\n"
		"Exit status: 0 all lines were read, 1 some are none of an audit log, 2 no LOG.\n",
	.run = suggest_run,
};
