/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * clients: [{name, address | addresses, interface, uid, cgroup, policy}, …]. Read last, since a
 * client names a policy and its selectors are held against the hook.
 */

#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "config/entry.h"
#include "config/load.h"

/* What one machine governs; the pairwise checks below stay quick. */
#define CLIENTS_MAX   1024u
#define SELECTORS_MAX 4096u

#define CGROUP_ROOT "/sys/fs/cgroup"

/* One client as it is written; the values that need more than their own text stay nodes. */
struct draft {
	const struct yaml_node *name, *policy, *address, *addresses, *interface, *uid, *cgroup;
	const struct yaml_node *via; /* of one that is registered */
};

static void keep(struct load *load, const struct yaml_node *value, const struct option *option,
		 void *target)
{
	(void)load;
	(void)option;
	*(const struct yaml_node **)target = value;
}

static const struct option options[] = {
	{"name", keep, offsetof(struct draft, name)},
	{"policy", keep, offsetof(struct draft, policy)},
	{"address", keep, offsetof(struct draft, address)},
	{"addresses", keep, offsetof(struct draft, addresses)},
	{"interface", keep, offsetof(struct draft, interface)},
	{"uid", keep, offsetof(struct draft, uid)},
	{"cgroup", keep, offsetof(struct draft, cgroup)},
	{"via", keep, offsetof(struct draft, via)},
};
/* The last row is for clients that are registered. */
#define OPTIONS_REGISTERED (sizeof(options) / sizeof(options[0]))
#define OPTIONS_CONFIGURED (OPTIONS_REGISTERED - 1)

void clients_section(struct load *load, const struct yaml_node *value, const struct option *option,
		     void *target)
{
	(void)target;
	if (!yaml_is_null(value))
		load->clients = option_list(load, value, option->key);
}

static void add_prefix(struct load *load, const struct yaml_node *value,
		       struct client_source *client)
{
	struct match_entry entry;
	char problem[ENTRY_PROBLEM_SIZE];
	const char *text = option_text(load, value, "a client's address");

	if (text == NULL)
		return;
	if (entry_parse(text, value->length, ENTRY_PREFIXES, &entry, problem) < 0) {
		load_error(load, value, "address: %s", problem);
		return;
	}
	client->selectors[client->selector_count++] =
		(struct client_selector){.kind = SELECT_PREFIX, .prefix = entry.prefix};
}

static void add_interface(struct load *load, const struct yaml_node *value,
			  struct client_source *client)
{
	struct client_selector *selector = &client->selectors[client->selector_count];

	*selector = (struct client_selector){.kind = SELECT_INTERFACE};
	if (!option_interface(load, value, "interface", false, selector->interface))
		return;
	client->selector_count++;
	if (load->private->config.settings.gate.hook == HOOK_OUTPUT)
		load_warning(
			load, value,
			"interface: the gate sees none with `hook: output`; use uid or cgroup");
}

static void warn_of_forward(struct load *load, const struct yaml_node *value, const char *key)
{
	if (load->private->config.settings.gate.hook == HOOK_FORWARD)
		load_warning(load, value,
			     "%s: the gate sees none with `hook: forward`; use interface", key);
}

static void add_uid(struct load *load, const struct yaml_node *value, struct client_source *client)
{
	uint64_t uid;

	if (!option_number(load, value, "uid", 0, UINT32_MAX - 1, &uid))
		return;
	client->selectors[client->selector_count++] =
		(struct client_selector){.kind = SELECT_UID, .uid = (uint32_t)uid};
	warn_of_forward(load, value, "uid");
}

/* "/a/b": no way up, and nothing that YAML or a rule would need escaped. */
static bool is_cgroup_path(const char *text)
{
	size_t length = strlen(text);

	for (const char *byte = text; *byte != '\0'; byte++)
		if ((unsigned char)*byte <= 0x20 || *byte == 0x7f || strchr("\"'\\", *byte) != NULL)
			return false;
	return text[0] == '/' && strstr(text, "/../") == NULL &&
	       (length < 3 || strcmp(text + length - 3, "/..") != 0);
}

static void add_cgroup(struct load *load, const struct yaml_node *value,
		       struct client_source *client)
{
	const char *text = option_text(load, value, "cgroup");
	char full[sizeof(CGROUP_ROOT) + CGROUP_PATH_MAX];
	struct stat status;
	struct statfs system;

	if (text == NULL)
		return;
	if (!is_cgroup_path(text) || value->length >= CGROUP_PATH_MAX) {
		load_error(load, value, "cgroup: must be an absolute path under " CGROUP_ROOT);
		return;
	}
	snprintf(full, sizeof(full), CGROUP_ROOT "%s", text);
	if (stat(full, &status) != 0 || statfs(full, &system) != 0) {
		load_error(load, value, "cgroup: " CGROUP_ROOT "%.100s: %s", text, strerror(errno));
		return;
	}
	if (!S_ISDIR(status.st_mode) || system.f_type != CGROUP2_SUPER_MAGIC) {
		load_error(load, value, "cgroup: " CGROUP_ROOT "%.100s is no cgroup v2", text);
		return;
	}
	/* the inode number of a cgroup v2 folder is the cgroup's id: cgroups(7) */
	client->selectors[client->selector_count++] = (struct client_selector){
		.kind = SELECT_CGROUP,
		.cgroup = status.st_ino,
		.cgroup_path = arena_text(load->arena, text, value->length)};
	warn_of_forward(load, value, "cgroup");
}

/* Which policy, by name; `default` when none is written. */
static size_t find_policy(struct load *load, const struct yaml_node *value)
{
	const struct config_source *source = &load->private->config.source;
	const char *names[64], *nearest;
	size_t count = 0;
	char name[CLIENT_NAME_MAX + 1];

	if (value == NULL || !option_name(load, value, "policy", name))
		return 0;
	for (size_t i = 0; i < source->policy_count; i++) {
		if (strcmp(source->policies[i].name, name) == 0)
			return i;
		if (count < sizeof(names) / sizeof(names[0]))
			names[count++] = source->policies[i].name;
	}
	nearest = option_nearest(name, names, count);
	if (nearest != NULL)
		load_error(load, value, "there is no policy '%s'; did you mean '%s'?", name,
			   nearest);
	else
		load_error(load, value, "there is no policy '%s'", name);
	return 0;
}

static void parse_selectors(struct load *load, const struct draft *draft,
			    struct client_source *client)
{
	size_t most = 4 + (draft->addresses != NULL && draft->addresses->kind == YAML_SEQUENCE
				   ? draft->addresses->count
				   : 0);
	const struct yaml_node *list;

	client->selectors = load_alloc(load, most, sizeof(struct client_selector));
	if (client->selectors == NULL)
		return;
	if (draft->address != NULL)
		add_prefix(load, draft->address, client);
	list = draft->addresses != NULL ? option_list(load, draft->addresses, "addresses") : NULL;
	if (list != NULL && list->count == 0)
		load_error(load, list, "addresses: an empty list");
	for (size_t i = 0; list != NULL && i < list->count; i++)
		add_prefix(load, list->items[i], client);
	if (draft->interface != NULL)
		add_interface(load, draft->interface, client);
	if (draft->uid != NULL)
		add_uid(load, draft->uid, client);
	if (draft->cgroup != NULL)
		add_cgroup(load, draft->cgroup, client);
}

bool clients_same_selector(const struct client_selector *a, const struct client_selector *b)
{
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case SELECT_PREFIX:
		return a->prefix.length == b->prefix.length &&
		       address_equal(&a->prefix.address, &b->prefix.address);
	case SELECT_INTERFACE:
		return strcmp(a->interface, b->interface) == 0;
	case SELECT_UID:
		return a->uid == b->uid;
	case SELECT_CGROUP:
		return a->cgroup == b->cgroup;
	}
	return false;
}

enum config_clash config_clients_clash(const struct client_source *a, const struct client_source *b,
				       const struct client_selector **shared)
{
	if (strcmp(a->name, b->name) == 0)
		return CLASH_NAME;
	if (a->serial == 0 && b->serial == 0) {
		struct client_key left = client_key_of_name(a->name);
		struct client_key right = client_key_of_name(b->name);
		if (client_key_equal(&left, &right))
			return CLASH_KEY;
	}
	for (size_t i = 0; i < a->selector_count; i++) {
		for (size_t j = 0; j < b->selector_count; j++) {
			if (!clients_same_selector(&a->selectors[i], &b->selectors[j]))
				continue;
			*shared = &a->selectors[i];
			return CLASH_SELECTOR;
		}
	}
	return CLASH_NONE;
}

/* CLIENT against those before it. */
static void check_against(struct load *load, const struct yaml_node *at,
			  const struct client_source *clients, size_t count,
			  const struct client_source *client)
{
	const struct client_selector *shared;

	for (size_t i = 0; i < count; i++) {
		const struct client_source *other = &clients[i];
		switch (config_clients_clash(client, other, &shared)) {
		case CLASH_NONE:
			break;
		case CLASH_NAME:
			load_error(load, at, "client '%s' is there twice, first in line %u",
				   client->name, other->place.line);
			return;
		case CLASH_KEY:
			load_error(load, at, "client '%s' has the key of '%s': choose another name",
				   client->name, other->name);
			break;
		case CLASH_SELECTOR:
			load_error(load, at, "client '%s' has a selector of '%s' in line %u",
				   client->name, other->name, other->place.line);
			break;
		}
	}
}

bool clients_parse(struct load *load, const struct yaml_node *value, struct client_source *client,
		   const struct yaml_node **via)
{
	struct draft draft = {.name = NULL};

	if (value->kind != YAML_MAPPING) {
		load_error(load, value, "a client must be a mapping, not %s",
			   yaml_kind_text(value));
		return false;
	}
	options_parse(load, value, "client", options,
		      via != NULL ? OPTIONS_REGISTERED : OPTIONS_CONFIGURED, &draft);
	if (draft.name == NULL) {
		load_error(load, value, "a client needs a name");
		return false;
	}
	if (!option_name(load, draft.name, "a client's name", client->name))
		return false;
	if (strcmp(client->name, "host") == 0) {
		load_error(load, draft.name, "the client 'host' is this machine itself");
		return false;
	}
	client->place = load_place(value);
	client->policy = find_policy(load, draft.policy);
	parse_selectors(load, &draft, client);
	if (draft.address == NULL && draft.addresses == NULL && draft.interface == NULL &&
	    draft.uid == NULL && draft.cgroup == NULL)
		load_error(load, value, "client '%s' needs an address, interface, uid or cgroup",
			   client->name);
	if (via != NULL)
		*via = draft.via;
	return true;
}

void clients_finish(struct load *load)
{
	struct config_source *source = &load->private->config.source;
	const struct yaml_node *list = load->clients;
	struct client_source *clients;
	size_t selectors = 0;

	if (list == NULL)
		return;
	if (list->count > CLIENTS_MAX) {
		load_error(load, list, "more than %u clients", CLIENTS_MAX);
		return;
	}
	clients = load_alloc(load, list->count, sizeof(struct client_source));
	source->clients = clients;
	if (clients == NULL)
		return;
	for (size_t i = 0; i < list->count; i++) {
		struct client_source *client = &clients[source->client_count];
		if (!clients_parse(load, list->items[i], client, NULL))
			continue;
		selectors += client->selector_count;
		if (selectors > SELECTORS_MAX) {
			load_error(load, list->items[i], "more than %u selectors of clients",
				   SELECTORS_MAX);
			return;
		}
		check_against(load, list->items[i], source->clients, source->client_count, client);
		source->client_count++;
	}
}

static void print_client(const struct config_private *private, size_t index, FILE *out)
{
	const struct client_source *client = &private->config.source.clients[index];
	char text[ADDRESS_TEXT_SIZE];
	const char *lead = "    addresses: [";

	fprintf(out, "  - name: \"%s\"\n    policy: \"%s\"\n", client->name,
		private->config.source.policies[client->policy].name);
	for (size_t i = 0; i < client->selector_count; i++) {
		if (client->selectors[i].kind != SELECT_PREFIX)
			continue;
		fprintf(out, "%s\"%s\"", lead, prefix_format(&client->selectors[i].prefix, text));
		lead = ", ";
	}
	if (lead[0] == ',')
		fputs("]\n", out);
	for (size_t i = 0; i < client->selector_count; i++) {
		switch (client->selectors[i].kind) {
		case SELECT_INTERFACE:
			fprintf(out, "    interface: \"%s\"\n", client->selectors[i].interface);
			break;
		case SELECT_UID:
			fprintf(out, "    uid: %u\n", client->selectors[i].uid);
			break;
		case SELECT_CGROUP:
			fprintf(out, "    cgroup: \"%s\"\n", client->selectors[i].cgroup_path);
			break;
		case SELECT_PREFIX:
			break;
		}
	}
}

void clients_print(const struct config_private *private, FILE *out)
{
	size_t count = private->config.source.client_count;

	fprintf(out, "clients:%s\n", count == 0 ? " []" : "");
	for (size_t i = 0; i < count; i++)
		print_client(private, i, out);
}

int config_set_client(struct config *config, const char *name, const char *interface)
{
	struct config_private *private = (struct config_private *)config;
	struct client_source *client = arena_alloc(&private->arena, 1, sizeof(*client));
	struct client_selector *selector = arena_alloc(&private->arena, 1, sizeof(*selector));

	if (client == NULL || selector == NULL)
		return -ENOMEM;
	if (strlen(name) >= sizeof(client->name) ||
	    strlen(interface) >= sizeof(selector->interface))
		return -EINVAL;
	strcpy(client->name, name);
	strcpy(selector->interface, interface);
	selector->kind = SELECT_INTERFACE;
	client->selectors = selector;
	client->selector_count = 1;
	config->source.clients = client;
	config->source.client_count = 1;
	config->interface_count = 0;
	return 0;
}
