/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * From the configuration to the description of the packet-filter rules.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/load.h"

/* The selector that the packet-filter rules can tell, if SELECTOR is one. */
static bool rule_selector(const struct client_selector *selector, const char *cgroup,
			  enum gate_hook hook, struct ruleset_selector *out)
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
		snprintf(out->cgroup_path, sizeof(out->cgroup_path), "%s", cgroup + 1);
		return hook == HOOK_OUTPUT;
	case SELECT_PREFIX:
		break;
	}
	return false;
}

int config_ruleset(const struct config *config, struct ruleset *out, char *problem, size_t size)
{
	const struct config_private *private = config_private_of(config);
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
	for (size_t i = 0; i < config->source.client_count; i++) {
		const struct client_source *client = &config->source.clients[i];
		for (size_t j = 0; j < client->selector_count; j++) {
			struct ruleset_selector selector;
			if (!rule_selector(&client->selectors[j], private->cgroups[i].path,
					   ruleset.hook, &selector))
				continue;
			if (ruleset.selector_count == RULESET_SELECTORS_MAX) {
				snprintf(problem, size,
					 "more than %u interfaces, uids and cgroups to govern",
					 RULESET_SELECTORS_MAX);
				return -E2BIG;
			}
			ruleset.selectors[ruleset.selector_count++] = selector;
		}
	}
	for (size_t i = 0; i < config->source.floor.count; i++) {
		const struct match_entry *entry = &config->source.floor.entries[i];
		if (entry->kind != MATCH_PREFIX)
			continue;
		if (ruleset.floor_count == RULESET_FLOOR_MAX) {
			snprintf(problem, size, "more than %u addresses added to the floor",
				 RULESET_FLOOR_MAX);
			return -E2BIG;
		}
		ruleset.floor[ruleset.floor_count++] =
			(struct ruleset_floor){.prefix = entry->prefix, .tcp_port = entry->port};
	}
	if (ruleset.hook == HOOK_FORWARD && ruleset.selector_count == 0) {
		snprintf(problem, size,
			 "`hook: forward` governs nothing without a client that has an interface");
		return -EINVAL;
	}
	*out = ruleset;
	return 0;
}
