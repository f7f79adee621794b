/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * From the configuration to the description of the packet-filter rules.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/load.h"

/* The selector that the packet-filter rules can tell, if SELECTOR is one. */
static bool rule_selector(const struct client_selector *selector, enum gate_hook hook,
			  struct ruleset_selector *out)
{
	*out = (struct ruleset_selector){.by_uid = false};
	switch (selector->kind) {
	case SELECT_INTERFACE:
		memcpy(out->interface, selector->interface, sizeof(out->interface));
		return hook == HOOK_FORWARD;
	case SELECT_UID:
		out->by_uid = true;
		out->uid_first = out->uid_last = selector->uid;
		return hook == HOOK_OUTPUT;
	case SELECT_CGROUP:
		out->by_cgroup = true;
		snprintf(out->cgroup_path, sizeof(out->cgroup_path), "%s",
			 selector->cgroup_path + 1);
		return hook == HOOK_OUTPUT;
	case SELECT_PREFIX:
		break;
	}
	return false;
}

static bool same(const struct ruleset_selector *a, const struct ruleset_selector *b)
{
	return strcmp(a->interface, b->interface) == 0 && a->by_uid == b->by_uid &&
	       a->by_cgroup == b->by_cgroup && a->uid_first == b->uid_first &&
	       a->uid_last == b->uid_last && strcmp(a->cgroup_path, b->cgroup_path) == 0;
}

/* Adds SELECTOR unless it is there. */
static int add_selector(struct ruleset *ruleset, const struct ruleset_selector *selector,
			char *problem, size_t size)
{
	for (size_t i = 0; i < ruleset->selector_count; i++)
		if (same(&ruleset->selectors[i], selector))
			return 0;
	if (ruleset->selector_count == RULESET_SELECTORS_MAX) {
		snprintf(problem, size, "more than %u interfaces, uids and cgroups to govern",
			 RULESET_SELECTORS_MAX);
		return -E2BIG;
	}
	ruleset->selectors[ruleset->selector_count++] = *selector;
	return 0;
}

/* The interfaces of the gate, then what the clients are known by. */
static int add_selectors(const struct config *config, const struct client_source *clients,
			 size_t client_count, struct ruleset *ruleset, char *problem, size_t size)
{
	struct ruleset_selector selector;
	int error = 0;

	for (size_t i = 0; i < config->interface_count && ruleset->hook == HOOK_FORWARD; i++) {
		selector = (struct ruleset_selector){.by_uid = false};
		memcpy(selector.interface, config->interfaces[i], sizeof(selector.interface));
		error = error != 0 ? error : add_selector(ruleset, &selector, problem, size);
	}
	for (size_t i = 0; i < client_count; i++)
		for (size_t j = 0; j < clients[i].selector_count && error == 0; j++)
			if (rule_selector(&clients[i].selectors[j], ruleset->hook, &selector))
				error = add_selector(ruleset, &selector, problem, size);
	return error;
}

static int add_floor(const struct config *config, struct ruleset *ruleset, char *problem,
		     size_t size)
{
	for (size_t i = 0; i < config->source.floor.count; i++) {
		const struct match_entry *entry = &config->source.floor.entries[i];
		if (entry->kind != MATCH_PREFIX)
			continue;
		if (ruleset->floor_count == RULESET_FLOOR_MAX) {
			snprintf(problem, size, "more than %u addresses added to the floor",
				 RULESET_FLOOR_MAX);
			return -E2BIG;
		}
		ruleset->floor[ruleset->floor_count++] =
			(struct ruleset_floor){.prefix = entry->prefix, .tcp_port = entry->port};
	}
	return 0;
}

int config_ruleset(const struct config *config, const struct client_source *clients,
		   size_t client_count, struct ruleset *out, char *problem, size_t size)
{
	const struct gate_settings *gate = &config->settings.gate;
	const struct resolver_settings *resolver = &config->settings.resolver;
	struct ruleset ruleset = {
		.instance = "pinfold",
		.hook = (enum gate_hook)gate->hook,
		.govern_all = gate->govern_all,
		.queue = gate->queue,
		.mark_mask = gate->mark_mask,
		.resolver_count = resolver->listen_count,
	};

	memcpy(ruleset.resolvers, resolver->listen, sizeof(ruleset.resolvers));
	int error = add_selectors(config, clients, client_count, &ruleset, problem, size);
	if (error == 0)
		error = add_floor(config, &ruleset, problem, size);
	if (error != 0)
		return error;
	if (ruleset.hook == HOOK_FORWARD && ruleset.selector_count == 0) {
		snprintf(problem, size,
			 "`hook: forward` governs nothing without an interface, in `gate: "
			 "{interfaces}` or of a client");
		return -EINVAL;
	}
	*out = ruleset;
	return 0;
}
