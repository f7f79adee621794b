/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Environment variables that take the place of options of the policy `default`, for containers. A variable's
 * value becomes the node that a file would have, so that the parsers of the file read it; its line is the
 * column in the value, its place the variable.
 */

#include <stdio.h>
#include <string.h>

#include "config/entry.h"
#include "config/load.h"

#define PREFIX "PINFOLD_"

struct variable {
	const char *name;
	void (*parse)(struct load *load, const struct yaml_node *value, const struct option *option,
		      void *target);
	struct option option; /* of the policy */
};

static const char *const allow_deny[] = {"allow", "deny", NULL};

static option_parser deny_private, log_allowed, split_list;

#define AT(field) offsetof(struct policy_source, field)

/* By enum config_place, from CONFIG_SOURCE_VARIABLES on. */
static const struct variable variables[CONFIG_VARIABLES] = {
	{"PINFOLD_DEFAULT",
	 option_choice,
	 {"PINFOLD_DEFAULT", NULL, AT(default_deny), .words = allow_deny}},
	{"PINFOLD_ALLOWED_ORIGINS",
	 split_list,
	 {"allowed_origins", option_entries, AT(allowed_origins),
	  .rules = ENTRY_HOSTS | ENTRY_ORIGIN}},
	{"PINFOLD_ALLOW_PRIVATE_CIDRS",
	 split_list,
	 {"allow_private_cidrs", option_entries, AT(allow_private_cidrs),
	  .rules = ENTRY_PREFIXES | ENTRY_GUARDED}},
	{"PINFOLD_DENY_PRIVATE", deny_private, {"PINFOLD_DENY_PRIVATE", NULL, 0}},
	{"PINFOLD_LOG_ALLOWED", log_allowed, {"PINFOLD_LOG_ALLOWED", NULL, 0}},
};

const char *environment_variable(size_t index)
{
	return variables[index].name;
}

static struct place place_of(const struct load *load, const struct yaml_node *value)
{
	return (struct place){.source = SOURCE_CONFIG + load->source, .line = value->line};
}

static bool parse_switch(struct load *load, const struct yaml_node *value, const char *name,
			 bool *out)
{
	static const char *const words[] = {"false", "0", "true", "1"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(value->text, words[i]) != 0)
			continue;
		*out = i >= 2;
		return true;
	}
	load_error(load, value, "%s must be true or false, not '%.40s'", name, value->text);
	return false;
}

/* False leaves what the file says: nothing is opened by it. */
static void deny_private(struct load *load, const struct yaml_node *value,
			 const struct option *option, void *target)
{
	struct policy_source *policy = target;
	bool deny;

	if (!parse_switch(load, value, option->key, &deny) || !deny)
		return;
	policy->allow_private_network =
		(struct option_bool){.value = false, .place = place_of(load, value)};
	policy->allow_loopback = policy->allow_private_network;
}

static void log_allowed(struct load *load, const struct yaml_node *value,
			const struct option *option, void *target)
{
	bool log;

	(void)target;
	if (parse_switch(load, value, option->key, &log))
		load->private->config.settings.log_allowed = log;
}

/* The entries of VALUE, parted by a comma, by blanks, or by both. */
static void split_list(struct load *load, const struct yaml_node *value,
		       const struct option *option, void *target)
{
	static const char blank[] = " \t\r\n";
	struct yaml_node list = {.kind = YAML_SEQUENCE, .line = 1};
	struct yaml_node *items = load_alloc(load, value->length / 2 + 1, sizeof(*items));
	const char *at = value->text + strspn(value->text, blank);
	struct match_list *out = target;

	list.items = load_alloc(load, value->length / 2 + 1, sizeof(struct yaml_node *));
	if (items == NULL || list.items == NULL)
		return;
	while (*at != '\0') {
		size_t length = strcspn(at, ", \t\r\n");
		struct yaml_node *item = &items[list.count];
		*item = (struct yaml_node){.kind = YAML_SCALAR,
					   .text = arena_text(load->arena, at, length),
					   .length = length,
					   .line = (unsigned)(at - value->text) + 1};
		if (length == 0) {
			load_error(load, item, "%s: an entry is missing before the comma",
				   option->key);
			return;
		}
		if (item->text == NULL)
			return;
		list.items[list.count++] = item;
		at += length;
		at += strspn(at, blank);
		if (*at == ',') {
			item->column = 1; /* one is owed */
			at++;
		}
		at += strspn(at, blank);
		if (*at == '\0' && item->column == 1) {
			item->line = (unsigned)(at - value->text);
			load_error(load, item, "%s: an entry is missing after the comma",
				   option->key);
			return;
		}
	}
	option_entries(load, &list, option, out);
	for (size_t i = 0; i < out->count; i++)
		out->entries[i].place.source = SOURCE_CONFIG + load->source;
}

static void take_variable(struct load *load, const struct variable *variable, const char *text)
{
	struct yaml_node value = {.kind = YAML_SCALAR,
				  .plain = true,
				  .text = text,
				  .length = strlen(text),
				  .line = 1};
	struct policy_source *policy = &load->private->config.source.policies[0];
	void *target = (char *)policy + variable->option.offset;

	variable->parse(load, &value, &variable->option, target);
	if (variable->parse == option_choice)
		((struct option_bool *)target)->place = place_of(load, &value);
}

static void refuse_unknown(struct load *load, const char *name)
{
	const char *names[CONFIG_VARIABLES], *nearest;

	for (size_t i = 0; i < CONFIG_VARIABLES; i++)
		names[i] = variables[i].name;
	nearest = option_nearest(name, names, CONFIG_VARIABLES);
	if (nearest != NULL)
		load_error(load, NULL, "unknown environment variable '%.80s'; did you mean '%s'?",
			   name, nearest);
	else
		load_error(load, NULL, "unknown environment variable '%.80s'", name);
}

void environment_read(struct load *load, char *const *environment)
{
	bool seen[CONFIG_VARIABLES] = {false};
	char name[128];

	for (; environment != NULL && *environment != NULL; environment++) {
		const char *equals = strchr(*environment, '=');
		size_t i = 0;
		if (equals == NULL || strncmp(*environment, PREFIX, strlen(PREFIX)) != 0)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(equals - *environment), *environment);
		while (i < CONFIG_VARIABLES && strcmp(variables[i].name, name) != 0)
			i++;
		load->source = CONFIG_SOURCE_FILE;
		if (i == CONFIG_VARIABLES) {
			refuse_unknown(load, name);
			continue;
		}
		load->source = CONFIG_SOURCE_VARIABLES + (unsigned)i;
		/* Which of two holds depends on who looks. */
		if (seen[i])
			load_error(load, NULL, "the variable is there twice");
		else
			take_variable(load, &variables[i], equals + 1);
		seen[i] = true;
	}
	load->source = CONFIG_SOURCE_FILE;
}
