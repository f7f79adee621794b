/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/guard.h"

#include <stdio.h>
#include <string.h>

#include "daemon/report.h"
#include "filter/apply.h"

int guard_ruleset(const struct config *config, const struct client_source *clients,
		  size_t client_count, uint32_t uid, struct ruleset *out, char *problem,
		  size_t size)
{
	int error = config_ruleset(config, clients, client_count, out, problem, size);

	if (error == 0 && out->hook == HOOK_OUTPUT && uid != 0) {
		out->exempt = true;
		out->exempt_uid = uid;
	}
	return error;
}

int guard_install(struct guard *guard, const struct ruleset *ruleset, uint64_t now, char *problem,
		  size_t size)
{
	int error = guard->alone && !guard->installed
			    ? filter_install_fresh(ruleset, problem, size)
			    : filter_install(ruleset, FILTER_AUTO, problem, size);

	if (error != 0)
		return error;
	guard->ruleset = *ruleset;
	guard->installed = true;
	guard->next = guard->alone ? UINT64_MAX : now + GUARD_CHECK_MS;
	return 0;
}

void guard_tick(struct guard *guard, uint64_t now)
{
	char problem[256];

	if (!guard->installed || now < guard->next)
		return;
	guard->checks++;
	guard->next = now + GUARD_CHECK_MS;
	/* Asked once: with a front end named, a check takes half the programs. */
	if (guard->backend == FILTER_AUTO)
		guard->backend = filter_backend_in_use(&guard->ruleset);
	if (filter_verify(&guard->ruleset, guard->backend, guard->problem,
			  sizeof(guard->problem)) == 0) {
		guard->problem[0] = '\0';
		return;
	}
	guard->backend = FILTER_AUTO;
	if (filter_install(&guard->ruleset, FILTER_AUTO, problem, sizeof(problem)) == 0) {
		guard->repairs++;
		report("repaired the packet-filter rules: %s", guard->problem);
		guard->problem[0] = '\0';
		return;
	}
	guard->failures++;
	if (guard->warned == 0 || now - guard->warned >= GUARD_WARNING_MS) {
		guard->warned = now;
		report("cannot repair the packet-filter rules (%s): %s", guard->problem, problem);
	}
}

void guard_remove(struct guard *guard)
{
	char problem[256];

	if (!guard->installed)
		return;
	if (filter_remove(&guard->ruleset, FILTER_AUTO, problem, sizeof(problem)) != 0)
		report("cannot remove the packet-filter rules: %s", problem);
	guard->installed = false;
}
