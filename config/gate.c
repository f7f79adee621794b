/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * gate: {…}, log: {…}, control: {…}, pins: {…}, floor: {…}, user: …
 */

#include <stdio.h>
#include <string.h>

#include "config/entry.h"
#include "config/load.h"

#define COUNT(table)    (sizeof(table) / sizeof((table)[0]))
#define GATE(field)     offsetof(struct config_private, config.settings.gate.field)
#define PRIVATE(field)  offsetof(struct config_private, field)
#define CONTROL_MAX     108 /* sizeof(sun_path): unix(7) */
#define MARK_BITS_LEAST 8   /* settings.h */

static const char *const hooks[] = {[HOOK_OUTPUT] = "output", [HOOK_FORWARD] = "forward", NULL};
static const char *const governs[] = {"users", "all", NULL};
static const char *const quics[] = {"refuse", "inspect", NULL}; /* by quic_inspect */

static void parse_mark_mask(struct load *load, const struct yaml_node *value,
			    const struct option *option, void *target)
{
	uint64_t mask, run;

	if (!option_number(load, value, option->key, 1, UINT32_MAX, &mask))
		return;
	run = mask >> __builtin_ctzll(mask);
	if ((run & (run + 1)) != 0 || __builtin_popcountll(mask) < MARK_BITS_LEAST)
		load_error(load, value, "%s must be at least %u adjacent bits", option->key,
			   MARK_BITS_LEAST);
	else
		*(uint32_t *)target = (uint32_t)mask;
}

static void parse_interfaces(struct load *load, const struct yaml_node *value,
			     const struct option *option, void *target)
{
	struct config *config = &((struct config_private *)target)->config;
	const struct yaml_node *list = option_list(load, value, option->key);

	if (list != NULL && list->count > CONFIG_INTERFACES_MAX) {
		load_error(load, list, "%s: more than %u", option->key, CONFIG_INTERFACES_MAX);
		return;
	}
	for (size_t i = 0; list != NULL && i < list->count; i++)
		if (option_interface(load, list->items[i], option->key, true,
				     config->interfaces[config->interface_count]))
			config->interface_count++;
}

static const struct option gate_options[] = {
	{"enabled", option_bool, PRIVATE(config.gate_enabled)},
	{"hook", option_word, GATE(hook), .words = hooks},
	{"interfaces", parse_interfaces, 0},
	{"govern", option_word, GATE(govern_all), .words = governs},
	{"queue", option_u16, GATE(queue), .least = 0, .most = 65535},
	{"mark_mask", parse_mark_mask, GATE(mark_mask)},
	{"quic", option_word, GATE(quic_inspect), .words = quics},
};

void gate_section(struct load *load, const struct yaml_node *value, const struct option *option,
		  void *target)
{
	struct config_private *private = target;

	options_parse(load, value, option->key, gate_options, COUNT(gate_options), target);
	private->config.source.govern_all = private->config.settings.gate.govern_all;
	private->config.source.quic_inspect = private->config.settings.gate.quic_inspect;
	if (private->config.interface_count > 0 &&
	    private->config.settings.gate.hook == HOOK_OUTPUT)
		load_warning(load, value, "gate: the gate sees no interfaces with `hook: output`");
}

static void parse_log_file(struct load *load, const struct yaml_node *value,
			   const struct option *option, void *target)
{
	if (value->kind == YAML_SCALAR &&
	    (strcmp(value->text, "stderr") == 0 || strcmp(value->text, "journald") == 0))
		memcpy(target, value->text, strlen(value->text) + 1);
	else
		option_path(load, value, option, target);
}

static const struct option log_options[] = {
	{"file", parse_log_file, PRIVATE(config.log_file), .most = SETTINGS_PATH_MAX},
	{"allowed", option_flag, PRIVATE(config.settings.log_allowed)},
};

void log_section(struct load *load, const struct yaml_node *value, const struct option *option,
		 void *target)
{
	options_parse(load, value, option->key, log_options, COUNT(log_options), target);
}

static const struct option control_options[] = {
	{"socket", option_path, PRIVATE(config.control_socket), .most = CONTROL_MAX},
};

void control_section(struct load *load, const struct yaml_node *value, const struct option *option,
		     void *target)
{
	options_parse(load, value, option->key, control_options, COUNT(control_options), target);
}

static const struct option pins_options[] = {
	{"capacity", option_u32, PRIVATE(config.pins.capacity), .least = 64,
	 .most = PINS_CAPACITY_MAX},
	{"per_client", option_u32, PRIVATE(config.pins.per_client), .least = 64,
	 .most = PINS_CAPACITY_MAX},
};

void pins_section(struct load *load, const struct yaml_node *value, const struct option *option,
		  void *target)
{
	const struct pins_limits *pins = &((struct config_private *)target)->config.pins;

	options_parse(load, value, option->key, pins_options, COUNT(pins_options), target);
	if (pins->per_client > pins->capacity)
		load_error(load, value, "pins: per_client is larger than capacity");
}

static const struct option floor_options[] = {
	{"names", option_entries, PRIVATE(floor_names), .rules = ENTRY_NAMES},
	{"addresses", option_entries, PRIVATE(floor_addresses), .rules = ENTRY_PREFIXES},
};

void floor_section(struct load *load, const struct yaml_node *value, const struct option *option,
		   void *target)
{
	struct config_private *private = target;
	struct match_list *floor = &private->config.source.floor;
	const struct match_list *names = &private->floor_names;
	const struct match_list *addresses = &private->floor_addresses;

	options_parse(load, value, option->key, floor_options, COUNT(floor_options), target);
	floor->entries =
		load_alloc(load, names->count + addresses->count, sizeof(struct match_entry));
	if (floor->entries == NULL)
		return;
	floor->count = names->count + addresses->count;
	for (size_t i = 0; i < floor->count; i++)
		floor->entries[i] =
			i < names->count ? names->entries[i] : addresses->entries[i - names->count];
}

void user_option(struct load *load, const struct yaml_node *value, const struct option *option,
		 void *target)
{
	struct config *config = target;
	char name[CLIENT_NAME_MAX + 1];

	if (!option_name(load, value, option->key, name))
		return;
	if (strcmp(name, "root") == 0)
		load_error(load, value, "user must not be root: the children give up privilege");
	else if (strlen(name) >= sizeof(config->user))
		load_error(load, value, "user must be at most %zu letters",
			   sizeof(config->user) - 1);
	else
		memcpy(config->user, name, strlen(name) + 1);
}

void gate_defaults(struct config_private *private)
{
	struct config *config = &private->config;

	config->gate_enabled = true;
	config->settings.gate.queue = 4400;
	config->settings.gate.mark_mask = 0x00ff0000;
	config->pins.capacity = PINS_CAPACITY_DEFAULT;
	config->pins.per_client = 0; /* the default depends on capacity: see config.c */
	snprintf(config->log_file, sizeof(config->log_file), "stderr");
	snprintf(config->control_socket, sizeof(config->control_socket),
		 "/run/pinfold/control.sock");
	snprintf(config->user, sizeof(config->user), "pinfold");
}

static void print_floor(const char *key, const struct match_list *list, FILE *out)
{
	char text[ENTRY_TEXT_SIZE];

	fprintf(out, "  %s: [", key);
	for (size_t i = 0; i < list->count; i++)
		fprintf(out, "%s\"%s\"", i == 0 ? "" : ", ", entry_format(&list->entries[i], text));
	fputs("]\n", out);
}

void gate_print(const struct config_private *private, FILE *out)
{
	const struct config *config = &private->config;
	const struct gate_settings *gate = &config->settings.gate;

	fprintf(out, "gate:\n  enabled: %s\n", config->gate_enabled ? "true" : "false");
	fprintf(out, "  hook: %s\n  govern: %s\n", hooks[gate->hook], governs[gate->govern_all]);
	fputs("  interfaces: [", out);
	for (size_t i = 0; i < config->interface_count; i++)
		fprintf(out, "%s\"%s\"", i == 0 ? "" : ", ", config->interfaces[i]);
	fputs("]\n", out);
	fprintf(out, "  queue: %u\n  mark_mask: 0x%08x\n  quic: %s\n", gate->queue, gate->mark_mask,
		quics[gate->quic_inspect]);
	fputs("log:\n", out);
	option_print("file", config->log_file, out);
	fprintf(out, "  allowed: %s\n", config->settings.log_allowed ? "true" : "false");
	fputs("control:\n", out);
	option_print("socket", config->control_socket, out);
	fprintf(out, "pins:\n  capacity: %u\n  per_client: %u\n", config->pins.capacity,
		config->pins.per_client);
	fputs("floor:\n", out);
	print_floor("names", &private->floor_names, out);
	print_floor("addresses", &private->floor_addresses, out);
	fprintf(out, "user: \"%s\"\n", config->user);
}
