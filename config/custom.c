/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * custom, custom_stages and custom_timeout of a policy: its hook (pinfold-hook(7)).
 */

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "config/load.h"

#define PREFIX "unix:"

/* Below it a hook cannot answer on a busy machine; above it clients have given up. */
#define TIMEOUT_MIN_MS     10u
#define TIMEOUT_MAX_MS     10000u
#define TIMEOUT_DEFAULT_MS 1000u

#define STAGES_ALL ((1u << STAGE_COUNT) - 1)

void custom_option(struct load *load, const struct yaml_node *value, const struct option *option,
		   void *target)
{
	struct hook_source *hook = target;
	const char *text = option_text(load, value, option->key);
	size_t prefix = strlen(PREFIX);

	if (text == NULL)
		return;
	hook->place = load_place(value);
	hook->path[0] = '\0';
	if (strcmp(text, "none") == 0)
		return;
	bool good = strncmp(text, PREFIX, prefix) == 0 && text[prefix] == '/' &&
		    text[prefix + 1] != '\0' && value->length - prefix < sizeof(hook->path);
	for (const char *c = text; good && *c != '\0'; c++)
		good = (unsigned char)*c >= 0x20 && *c != 0x7f;
	if (good)
		memcpy(hook->path, text + prefix, value->length - prefix + 1);
	else
		load_error(load, value,
			   "%s must be none or unix:PATH with an absolute path of at most %zu "
			   "octets",
			   option->key, sizeof(hook->path) - 1);
}

/* The number of a stage's name, or STAGE_COUNT. */
static unsigned stage_of(const char *text)
{
	unsigned stage = 0;

	while (stage < STAGE_COUNT && strcmp(text, stage_text((enum stage)stage)) != 0)
		stage++;
	return stage;
}

void custom_stages_option(struct load *load, const struct yaml_node *value,
			  const struct option *option, void *target)
{
	struct hook_source *hook = target;
	const struct yaml_node *list = option_list(load, value, option->key);
	unsigned stages = 0;

	if (list == NULL)
		return;
	for (size_t i = 0; i < list->count; i++) {
		const struct yaml_node *item = list->items[i];
		const char *text = option_text(load, item, "a stage");
		unsigned stage = text == NULL ? STAGE_COUNT : stage_of(text);
		if (text == NULL)
			continue;
		if (stage == STAGE_COUNT)
			load_error(load, item,
				   "%s: a stage is resolve, answer, connect or request, not "
				   "'%.80s'",
				   option->key, text);
		else if ((stages & 1u << stage) != 0)
			load_error(load, item, "%s: '%s' is there twice", option->key, text);
		else
			stages |= 1u << stage;
	}
	if (list->count == 0)
		load_error(load, value, "%s must be at least one stage", option->key);
	hook->stages = stages;
}

/* "1", "0.25": milliseconds, or 0 when it is no such number. */
static uint32_t parse_seconds(const char *text)
{
	uint32_t whole = 0, fraction = 0, unit = 1000;
	size_t digits = 0;

	for (; isdigit((unsigned char)*text) && digits < 6; text++, digits++)
		whole = whole * 10 + (uint32_t)(*text - '0');
	if (digits == 0)
		return 0;
	if (*text == '.') {
		text++;
		if (*text == '\0')
			return 0;
		for (; isdigit((unsigned char)*text) && unit > 1; text++) {
			unit /= 10;
			fraction += unit * (uint32_t)(*text - '0');
		}
	}
	return *text == '\0' ? whole * 1000 + fraction : 0;
}

void custom_timeout_option(struct load *load, const struct yaml_node *value,
			   const struct option *option, void *target)
{
	struct hook_source *hook = target;
	uint32_t timeout =
		value->kind == YAML_SCALAR && value->plain ? parse_seconds(value->text) : 0;

	if (timeout < TIMEOUT_MIN_MS || timeout > TIMEOUT_MAX_MS)
		load_error(load, value,
			   "%s must be seconds from 0.01 to 10, with at most three digits behind "
			   "the point",
			   option->key);
	else
		hook->timeout_ms = timeout;
}

/* What is said of a hook that is not there would never come true. */
void custom_check(struct load *load, const struct yaml_node *policy, struct hook_source *hook)
{
	bool written = hook->stages != 0 || hook->timeout_ms != 0;

	if (hook->path[0] == '\0' && written && load->findings->errors == 0)
		load_error(load, policy, "custom_stages and custom_timeout without custom");
	if (hook->stages == 0)
		hook->stages = STAGES_ALL;
	if (hook->timeout_ms == 0)
		hook->timeout_ms = TIMEOUT_DEFAULT_MS;
}

/* Each socket is one connection of each child, and they have room for so many. */
void custom_count(struct load *load)
{
	const struct config_source *source = &load->private->config.source;
	size_t count = 0;

	for (size_t i = 0; i < source->policy_count; i++) {
		const char *path = source->policies[i].hook.path;
		bool known = path[0] == '\0';
		for (size_t j = 0; j < i && !known; j++)
			known = strcmp(path, source->policies[j].hook.path) == 0;
		count += !known;
	}
	if (count > POLICY_HOOKS_MAX)
		load_error(load, NULL, "custom: %zu different sockets, at most %u", count,
			   POLICY_HOOKS_MAX);
}

void custom_print(const struct hook_source *hook, FILE *out)
{
	const char *between = "";

	if (hook->path[0] == '\0') {
		fputs("    custom: none\n", out);
		return;
	}
	fputs("    custom: \"" PREFIX, out);
	for (const char *c = hook->path; *c != '\0'; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', out);
		fputc(*c, out);
	}
	fputs("\"\n    custom_stages: [", out);
	for (unsigned stage = 0; stage < STAGE_COUNT; stage++) {
		if ((hook->stages & 1u << stage) == 0)
			continue;
		fprintf(out, "%s%s", between, stage_text((enum stage)stage));
		between = ", ";
	}
	fprintf(out, "]\n    custom_timeout: %u.%03u\n", hook->timeout_ms / 1000,
		hook->timeout_ms % 1000);
}
