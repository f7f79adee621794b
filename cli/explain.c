/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * `pinfold explain`: reads the command line and the configuration, lets a stage judge, prints the
 * verdict.
 */

#include "cli/explain.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/idna.h"
#include "rules/embedding.h"

/* What the command line says besides struct explain. */
struct request_line {
	const char *config, *client;
	bool json;
	unsigned options; /* enum explain_option */
};

static const struct {
	const char *name;
	explain_stage *run;
	size_t least, most; /* words after the stage's name */
	unsigned options;   /* that it takes */
} stages[] = {
	{"resolve", explain_resolve, 1, 2, 0},
	{"answer", explain_answer, 1, SIZE_MAX, EXPLAIN_CNAME | EXPLAIN_HINT},
	{"connect", explain_connect, 2, 2, EXPLAIN_PINNED | EXPLAIN_EXPIRED},
	{"request", explain_request, 1, 1, EXPLAIN_PINNED | EXPLAIN_EXPIRED | EXPLAIN_TO},
	{"bytes", explain_bytes, 1, SIZE_MAX, EXPLAIN_PINNED | EXPLAIN_EXPIRED | EXPLAIN_TO},
};
#define STAGES (sizeof(stages) / sizeof(stages[0]))

static int add_pin(struct explain *explain, const char *text, bool expired)
{
	struct explain_pin *pin = &explain->pins[explain->pin_count];
	const char *equals = strchr(text, '=');
	size_t length = equals != NULL ? (size_t)(equals - text) : strlen(text);

	*pin = (struct explain_pin){.expired = expired};
	if (idna_name(text, length, &pin->name) != NAME_OK)
		return command_usage_error(&command_explain, "'%s': '%.*s' is no name to pin", text,
					   (int)length, text);
	if (equals != NULL && address_parse(equals + 1, strlen(equals + 1), &pin->address) < 0)
		return command_usage_error(&command_explain, "'%s': '%s' is no address", text,
					   equals + 1);
	explain->pin_count++;
	return 0;
}

static int set_to(struct explain *explain, const char *text)
{
	if (address_parse(text, strlen(text), &explain->to.address) == 0) {
		explain->to.port = 0;
		return 0;
	}
	if (endpoint_parse(text, strlen(text), ':', 0, &explain->to) == 0)
		return 0;
	return command_usage_error(&command_explain, "--to '%s' is no ADDRESS or ADDRESS:PORT",
				   text);
}

static int add_hint(struct explain *explain, const char *text)
{
	struct address *hint = &explain->hints[explain->hint_count];

	if (address_parse(text, strlen(text), hint) < 0)
		return command_usage_error(&command_explain, "--hint '%s' is no address", text);
	explain->hint_count++;
	return 0;
}

/* An option with a value; 0 or an exit status. */
static int take_option(struct explain *explain, struct request_line *line, const char *option,
		       const char *value)
{
	if (strcmp(option, "-c") == 0 || strcmp(option, "--config") == 0) {
		line->config = value;
		return 0;
	}
	if (strcmp(option, "--client") == 0) {
		line->client = value;
		return 0;
	}
	if (strcmp(option, "--pinned") == 0) {
		line->options |= EXPLAIN_PINNED;
		return add_pin(explain, value, false);
	}
	if (strcmp(option, "--expired") == 0) {
		line->options |= EXPLAIN_EXPIRED;
		return add_pin(explain, value, true);
	}
	if (strcmp(option, "--cname") == 0) {
		line->options |= EXPLAIN_CNAME;
		explain->cnames[explain->cname_count++] = value;
		return 0;
	}
	if (strcmp(option, "--hint") == 0) {
		line->options |= EXPLAIN_HINT;
		return add_hint(explain, value);
	}
	line->options |= EXPLAIN_TO;
	return set_to(explain, value);
}

static bool is_option(const char *word)
{
	static const char *const with_value[] = {"-c",        "--config", "--client", "--pinned",
						 "--expired", "--cname",  "--hint",   "--to"};

	for (size_t i = 0; i < sizeof(with_value) / sizeof(with_value[0]); i++)
		if (strcmp(with_value[i], word) == 0)
			return true;
	return false;
}

static int read_line(int argc, char **argv, struct explain *explain, struct request_line *line)
{
	bool words_alone = false;

	for (int i = 1; i < argc; i++) {
		int status = 0;
		if (words_alone || argv[i][0] != '-' || argv[i][1] == '\0') {
			explain->words[explain->word_count++] = argv[i];
		} else if (strcmp(argv[i], "--") == 0) {
			words_alone = true;
		} else if (strcmp(argv[i], "--json") == 0) {
			line->json = true;
		} else if (strcmp(argv[i], "--trace") == 0) {
			explain->subject.trace = &explain->trace;
		} else if (strcmp(argv[i], "--ask-hook") == 0) {
			explain->ask_hook = true;
		} else if (!is_option(argv[i])) {
			status = command_usage_error(&command_explain, "unknown option '%s'",
						     argv[i]);
		} else if (i + 1 == argc) {
			status = command_usage_error(&command_explain, "%s needs a value", argv[i]);
		} else {
			status = take_option(explain, line, argv[i], argv[i + 1]);
			i++;
		}
		if (status != 0)
			return status;
	}
	return 0;
}

int explain_connection(const struct explain *explain, const struct endpoint *destination,
		       uint8_t protocol, struct connection *out, struct pin **pins)
{
	struct pin *list = calloc(explain->pin_count + 1, sizeof(*list));
	size_t count = 0;

	if (list == NULL)
		return command_error(STATUS_USAGE, "out of memory");
	for (size_t i = 0; i < explain->pin_count; i++) {
		const struct explain_pin *pin = &explain->pins[i];
		if (pin->address.family != ADDRESS_NONE &&
		    !embedding_same(&pin->address, &destination->address))
			continue;
		list[count].address = destination->address;
		list[count].name = pin->name;
		list[count++].expiry = pin->expired ? EXPLAIN_NOW - 1 : EXPLAIN_NOW + 60000;
	}
	*out = (struct connection){
		.destination = destination->address,
		.port = destination->port,
		.protocol = protocol,
		.pins = list,
		.pin_count = count,
	};
	*pins = list;
	return 0;
}

static int run_stage(struct explain *explain, const struct request_line *line)
{
	struct explanation explanation = {.note = NULL};
	const char *name = explain->words[0];
	int status;

	for (size_t i = 0; i < STAGES; i++) {
		if (strcmp(stages[i].name, name) != 0)
			continue;
		explain->words++;
		explain->word_count--;
		if (explain->word_count < stages[i].least || explain->word_count > stages[i].most)
			return command_usage_error(&command_explain,
						   "%s: wrong number of arguments", name);
		if ((line->options & ~stages[i].options) != 0)
			return command_usage_error(&command_explain,
						   "%s does not take all of these options", name);
		status = stages[i].run(explain, &explanation);
		return status != 0 ? status : explain_print(explain, line->json, &explanation);
	}
	return command_usage_error(&command_explain, "there is no stage '%s'", name);
}

/* Without -c a machine that has no configuration yet is judged by the default posture. */
static struct config *read_config(const char *path)
{
	struct config_findings findings;
	struct config *config;

	if (path == NULL && access(CONFIG_PATH_DEFAULT, F_OK) != 0 && errno == ENOENT) {
		path = "default posture";
		config = config_read_text(path, "", 0, &findings);
	} else {
		path = path != NULL ? path : CONFIG_PATH_DEFAULT;
		config = config_read(path, &findings);
	}
	config_findings_print(&findings, path, stderr);
	config_findings_free(&findings);
	return config;
}

static int set_subject(struct explain *explain, const char *client)
{
	struct client_match match;

	if (client == NULL)
		return 0;
	explain->client = client;
	if (policy_client_by_name(explain->image, client, &match) < 0)
		return command_error(STATUS_USAGE, "there is no client '%s'", client);
	explain->subject.policy = match.policy;
	explain->subject.root = match.root;
	return 0;
}

static int explain_by(struct explain *explain, const struct request_line *line)
{
	struct config *config = read_config(line->config);
	void *bytes = NULL;
	size_t size;
	int status;

	if (config == NULL)
		return STATUS_USAGE;
	explain->config = config;
	explain->subject.policy = POLICY_DEFAULT;
	if (policy_image_build(&config->source, &bytes, &size) < 0 ||
	    policy_image_open(bytes, size, &explain->image) < 0)
		status = command_error(STATUS_USAGE, "cannot build the policy");
	else
		status = set_subject(explain, line->client);
	if (status == 0)
		status = run_stage(explain, line);
	free(bytes);
	config_free(config);
	return status;
}

static int explain_run(int argc, char **argv)
{
	struct explain explain = {.image = NULL};
	struct request_line line = {.config = NULL};
	size_t room = (size_t)argc;
	const char **words = calloc(room, sizeof(*words));
	int status;

	explain.words = words;
	explain.pins = calloc(room, sizeof(*explain.pins));
	explain.cnames = calloc(room, sizeof(*explain.cnames));
	explain.hints = calloc(room, sizeof(*explain.hints));
	explain.trace.steps = calloc(EXPLAIN_STEPS_MAX, sizeof(*explain.trace.steps));
	explain.trace.room = EXPLAIN_STEPS_MAX;
	if (explain.words == NULL || explain.pins == NULL || explain.cnames == NULL ||
	    explain.hints == NULL || explain.trace.steps == NULL)
		status = command_error(STATUS_USAGE, "out of memory");
	else
		status = read_line(argc, argv, &explain, &line);
	if (status == 0 && explain.word_count == 0)
		status = command_usage_error(&command_explain, "which stage?");
	if (status == 0)
		status = explain_by(&explain, &line);
	free(words);
	free(explain.pins);
	free(explain.cnames);
	free(explain.hints);
	free(explain.trace.steps);
	return status;
}

const struct command command_explain = {
	.name = "explain",
	.summary = "say what the verdict would be, and why",
	.usage = "pinfold explain [OPTION…] resolve NAME [TYPE]\n"
		 "pinfold explain [OPTION…] answer NAME ADDRESS… [--cname TARGET]… [--hint "
		 "ADDRESS]…\n"
		 "pinfold explain [OPTION…] connect DESTINATION PORT[/tcp|/udp] [PIN]…\n"
		 "pinfold explain [OPTION…] request URL [--to ADDRESS[:PORT]] [PIN]…\n"
		 "pinfold explain [OPTION…] bytes SEGMENT-FILE… --to ADDRESS:PORT [PIN]…",
	.options =
		"  -c FILE                    the configuration; " CONFIG_PATH_DEFAULT
		" by default\n"
		"  --client NAME              judge as this client; without it by policy "
		"`default`\n"
		"  --json                     one JSON object\n"
		"  --trace                    each rule on the way to the verdict as well\n"
		"  --ask-hook                 ask the policy's hook as well, if it has one\n"
		"  --pinned NAME[=ADDRESS]    PIN: the client holds a live pin for the "
		"destination\n"
		"  --expired NAME[=ADDRESS]   PIN: it held one, and its time is over\n"
		"  --cname TARGET             the answer goes through this alias\n"
		"  --hint ADDRESS             the answer holds this SVCB or HTTPS hint\n"
		"  --to ADDRESS[:PORT]        where the flow goes\n"
		"Exit status: 0 allow, 3 deny, 4 more bytes are needed, 2 usage or configuration "
		"error.\n",
	.run = explain_run,
};
