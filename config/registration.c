/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A client that is registered while the service runs: an entry of `clients` in a text of its own. The
 * text is JSON, and so it is YAML.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"

/* Of one client: both families, some prefixes. */
#define SELECTORS_MAX 64u

/* Whether what comes in by INTERFACE is governed, and is told apart by address. */
static void check_via(struct load *load, const struct yaml_node *value, const struct config *config,
		      const char *interface)
{
	const struct client_source *clients = config->source.clients;
	bool governed = false;

	for (size_t i = 0; i < config->source.client_count; i++) {
		for (size_t j = 0; j < clients[i].selector_count; j++) {
			if (clients[i].selectors[j].kind != SELECT_INTERFACE ||
			    strcmp(clients[i].selectors[j].interface, interface) != 0)
				continue;
			load_error(load, value, "via: all of '%s' is the client '%s'", interface,
				   clients[i].name);
			return;
		}
	}
	for (size_t i = 0; i < config->interface_count; i++) {
		const char *known = config->interfaces[i];
		size_t length = strlen(known);
		governed = governed ||
			   (known[length - 1] == '+' ? strncmp(known, interface, length - 1) == 0
						     : strcmp(known, interface) == 0);
	}
	if (config->settings.gate.hook != HOOK_FORWARD)
		load_error(load, value, "via: the gate has `hook: output`");
	else if (!governed)
		load_error(load, value, "via: '%s' is not in `gate: {interfaces}`", interface);
}

static void read_registration(struct load *load, const struct yaml_node *root,
			      struct config_client *client)
{
	const struct yaml_node *via = NULL;

	if (root == NULL) {
		load_error(load, NULL, "nothing is written");
		return;
	}
	if (!clients_parse(load, root, &client->source, &via))
		return;
	if (client->source.selector_count > SELECTORS_MAX)
		load_error(load, root, "more than %u selectors", SELECTORS_MAX);
	client->source.place = (struct place){.source = SOURCE_CONFIG + CONFIG_SOURCE_REGISTERED};
	if (via != NULL && option_interface(load, via, "via", false, client->via))
		check_via(load, via, &load->private->config, client->via);
}

struct config_client *config_client_read(const struct config *config, const char *text,
					 size_t length, char *problem, size_t size)
{
	struct config_findings findings = {.count = 0};
	struct arena tree = {.blocks = NULL};
	struct config_client *client = calloc(1, sizeof(*client));
	/* Nothing is written into it: what is read goes into the arena of the client. */
	struct load load = {.findings = &findings, .private = (struct config_private *)(uintptr_t)config};
	const struct yaml_node *root = NULL;

	if (client == NULL) {
		snprintf(problem, size, "out of memory");
		return NULL;
	}
	load.arena = &client->arena;
	if (yaml_read(text, length, &tree, load_report, &load, &root))
		read_registration(&load, root, client);
	/* What would be a warning in a file is an error here: nobody reads it. */
	if (findings.count > 0)
		snprintf(problem, size, "%s", findings.items[0].text);
	else if (client->arena.failed || findings.errors > 0)
		snprintf(problem, size, "out of memory");
	bool good = findings.count == 0 && findings.errors == 0 && !client->arena.failed;
	config_findings_free(&findings);
	arena_free(&tree);
	if (good)
		return client;
	config_client_free(client);
	return NULL;
}

void config_client_free(struct config_client *client)
{
	if (client == NULL)
		return;
	arena_free(&client->arena);
	free(client);
}

static bool has_selectors_of(const struct client_source *a, const struct client_source *b)
{
	for (size_t i = 0; i < b->selector_count; i++) {
		bool found = false;
		for (size_t j = 0; j < a->selector_count && !found; j++)
			found = clients_same_selector(&a->selectors[j], &b->selectors[i]);
		if (!found)
			return false;
	}
	return true;
}

bool config_client_same(const struct config_client *a, const struct config_client *b)
{
	return strcmp(a->source.name, b->source.name) == 0 &&
	       a->source.policy == b->source.policy && strcmp(a->via, b->via) == 0 &&
	       has_selectors_of(&a->source, &b->source) && has_selectors_of(&b->source, &a->source);
}
