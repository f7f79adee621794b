/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * `pinfold rules`: prints, installs, removes and verifies the packet-filter rules of the
 * configuration, or of what the command line says instead of its clients.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "config/config.h"
#include "daemon/guard.h"
#include "daemon/registry.h"
#include "daemon/identity.h"
#include "filter/apply.h"

struct rules_line {
	const char *action, *config;
	bool hook_given;
	enum gate_hook hook;
	enum filter_backend backend;
	size_t selector_count;
	struct ruleset_selector selectors[RULESET_SELECTORS_MAX];
};

static int parse_uid(const char *text, struct ruleset_selector *out)
{
	char *end;
	unsigned long first, last;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	first = last = strtoul(text, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		last = strtoul(end + 1, &end, 10);
	if (*end != '\0' || errno != 0 || first > last || last >= UINT32_MAX)
		return -EINVAL;
	*out = (struct ruleset_selector){
		.by_uid = true, .uid_first = (uint32_t)first, .uid_last = (uint32_t)last};
	return 0;
}

static int parse_selector(struct rules_line *line, const char *option, const char *value)
{
	struct ruleset_selector selector = {.by_uid = false};
	enum gate_hook hook = strcmp(option, "--uid") == 0 ? HOOK_OUTPUT : HOOK_FORWARD;

	if (line->selector_count == RULESET_SELECTORS_MAX)
		return command_usage_error(&command_rules, "more than %d clients",
					   RULESET_SELECTORS_MAX);
	if (line->hook_given && line->hook != hook)
		return command_usage_error(&command_rules,
					   "--uid is for the hook output, --interface for forward");
	if (hook == HOOK_OUTPUT && parse_uid(value, &selector) != 0)
		return command_usage_error(&command_rules, "'%s' is no uid or range of uids",
					   value);
	if (hook == HOOK_FORWARD) {
		if (value[0] == '\0' || strlen(value) >= sizeof(selector.interface))
			return command_usage_error(&command_rules,
						   "'%s' is no name of an interface", value);
		strcpy(selector.interface, value);
	}
	line->hook_given = true;
	line->hook = hook;
	line->selectors[line->selector_count++] = selector;
	return 0;
}

/* One option with its value; 0, or STATUS_USAGE. */
static int parse_option(struct rules_line *line, const char *option, const char *value)
{
	if (strcmp(option, "-c") == 0) {
		line->config = value;
		return 0;
	}
	if (strcmp(option, "--uid") == 0 || strcmp(option, "--interface") == 0)
		return parse_selector(line, option, value);
	if (strcmp(option, "--hook") == 0) {
		enum gate_hook hook = strcmp(value, "output") == 0 ? HOOK_OUTPUT : HOOK_FORWARD;
		if (hook == HOOK_FORWARD && strcmp(value, "forward") != 0)
			return command_usage_error(&command_rules, "'%s' is no hook", value);
		if (line->hook_given && line->hook != hook)
			return command_usage_error(
				&command_rules,
				"--uid is for the hook output, --interface for forward");
		line->hook_given = true;
		line->hook = hook;
		return 0;
	}
	if (strcmp(option, "--backend") == 0) {
		if (strcmp(value, "nft") == 0)
			line->backend = FILTER_IPTABLES_NFT;
		else if (strcmp(value, "legacy") == 0)
			line->backend = FILTER_IPTABLES_LEGACY;
		else
			return command_usage_error(&command_rules, "'%s' is no back end", value);
		return 0;
	}
	return command_usage_error(&command_rules, "unknown option '%s'", option);
}

static int parse_line(int argc, char **argv, struct rules_line *line)
{
	for (int i = 1; i < argc; i++) {
		int status;
		if (argv[i][0] != '-') {
			if (line->action != NULL)
				return command_usage_error(&command_rules, "one action at a time");
			line->action = argv[i];
			continue;
		}
		if (i + 1 == argc)
			return command_usage_error(&command_rules, "'%s' needs a value", argv[i]);
		status = parse_option(line, argv[i], argv[i + 1]);
		if (status != 0)
			return status;
		i++;
	}
	if (line->action == NULL)
		return command_usage_error(&command_rules, "print, install, remove or verify?");
	return 0;
}

/* The configuration; without -c and without the file of the service the default posture. */
static struct config *read_config(const char *path)
{
	struct config_findings findings;
	struct config *config;

	if (path == NULL && access(CONFIG_PATH_DEFAULT, F_OK) != 0 && errno == ENOENT)
		config = config_read_text("(defaults)", "", 0, &findings);
	else
		config = config_read(path != NULL ? path : CONFIG_PATH_DEFAULT, &findings);
	if (config == NULL)
		config_findings_print(&findings, path != NULL ? path : CONFIG_PATH_DEFAULT, stderr);
	config_findings_free(&findings);
	return config;
}

/* The rules of the service under CONFIG, with the clients that are registered there. */
static int rules_of_service(const struct config *config, uint32_t uid, struct ruleset *out,
			    char *problem, size_t size)
{
	struct registry registry;
	struct client_source *clients;
	uint64_t serial = 0;
	size_t count;
	int error = registry_load(&registry, config, &serial, problem, size);

	if (error != 0)
		return error;
	error = registry_clients(&registry, config, &clients, &count);
	if (error == 0) {
		error = guard_ruleset(config, clients, count, uid, out, problem, size);
		free(clients);
	} else {
		snprintf(problem, size, "out of memory");
	}
	registry_release(&registry);
	return error;
}

static int make_ruleset(const struct rules_line *line, struct ruleset *out)
{
	struct config *config = read_config(line->config);
	enum gate_hook hook;
	char problem[256];
	uint32_t uid = 0, gid;
	int error;

	if (config == NULL)
		return STATUS_USAGE;
	hook = line->hook_given ? line->hook : (enum gate_hook)config->settings.gate.hook;
	/* Clients of the command line replace those of the file, so these must not be missed. */
	config->settings.gate.hook = (uint8_t)(line->selector_count > 0 ? HOOK_OUTPUT : hook);
	error = identity_find(config->user, &uid, &gid, problem, sizeof(problem));
	if (error == 0)
		error = rules_of_service(config, hook == HOOK_OUTPUT ? uid : 0, out, problem,
					 sizeof(problem));
	config_free(config);
	if (error != 0)
		return command_error(STATUS_USAGE, "%s", problem);
	out->hook = hook;
	if (line->selector_count > 0) {
		memcpy(out->selectors, line->selectors, sizeof(out->selectors));
		out->selector_count = line->selector_count;
	}
	if (ruleset_check(out, problem, sizeof(problem)) != 0)
		return command_error(STATUS_USAGE, "%s", problem);
	return STATUS_OK;
}

static int print(const struct ruleset *ruleset)
{
	static const enum address_family families[] = {ADDRESS_IPV4, ADDRESS_IPV6};

	for (int i = 0; i < 2; i++) {
		char *text = ruleset_text(ruleset, families[i]);
		if (text == NULL)
			return command_error(STATUS_FAILED, "out of memory");
		printf("# for %s-restore --noflush\n%s", i == 0 ? "iptables" : "ip6tables", text);
		free(text);
	}
	return STATUS_OK;
}

static int rules_run(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*act)(const struct ruleset *, enum filter_backend, char *, size_t);
		int failure;
	} actions[] = {
		{"install", filter_install, STATUS_USAGE},
		{"remove", filter_remove, STATUS_USAGE},
		{"verify", filter_verify, STATUS_FAILED},
	};
	struct rules_line line = {.backend = FILTER_AUTO};
	struct ruleset ruleset;
	char problem[1024];
	int status = parse_line(argc, argv, &line);

	if (status != 0)
		return status;
	if (strcmp(line.action, "print") == 0) {
		status = make_ruleset(&line, &ruleset);
		return status != STATUS_OK ? status : print(&ruleset);
	}
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(line.action, actions[i].name) != 0)
			continue;
		status = make_ruleset(&line, &ruleset);
		if (status != STATUS_OK)
			return status;
		if (actions[i].act(&ruleset, line.backend, problem, sizeof(problem)) != 0)
			return command_error(actions[i].failure, "%s", problem);
		return STATUS_OK;
	}
	return command_usage_error(&command_rules, "'%s' is no action", line.action);
}

const struct command command_rules = {
	.name = "rules",
	.summary = "print, install, remove or verify the packet-filter rules",
	.usage = "pinfold rules print|install|remove|verify [-c FILE] [--backend nft|legacy]\n"
		 "    [--hook output|forward] [--uid UID[-UID]]... [--interface NAME]...",
	.options =
		"Rules are those of the configuration; without -c and " CONFIG_PATH_DEFAULT
		" those of the defaults.\n"
		"  --hook output     govern programs of this host\n"
		"  --hook forward    govern what comes in by an interface\n"
		"  --uid UID         govern this user instead of the clients of the configuration\n"
		"  --interface NAME  the same for an interface; a final '+' stands for any ending\n"
		"  --backend WHICH   iptables' nft or legacy front end; else whichever works\n"
		"Exit status: 0 done, 1 verify found something missing, 2 anything else.\n",
	.run = rules_run,
};
