/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The packet-filter rules as text for iptables-restore and ip6tables-restore, made from a plain
 * description; pure. filter/apply.h installs, removes and verifies them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "settings.h"

#define RULESET_SELECTORS_MAX 64

/* The uid or cgroup of HOOK_OUTPUT, the input interface of HOOK_FORWARD, that is governed. */
struct ruleset_selector {
	char interface[16]; /* HOOK_FORWARD */
	bool by_uid, by_cgroup;
	uint32_t uid_first, uid_last; /* HOOK_OUTPUT, an inclusive range */
	char cgroup_path[256];	      /* HOOK_OUTPUT, cgroup v2 path without leading '/' */
};

struct ruleset {
	char instance[16]; /* part of the chain names: "pinfold" for the service, unique otherwise */
	enum gate_hook hook;
	bool govern_all; /* HOOK_OUTPUT without selectors: uid 0 as well */
	uint16_t queue;
	uint32_t mark_mask;
	size_t selector_count; /* 0 with HOOK_OUTPUT: everything (but uid 0) */
	struct ruleset_selector selectors[RULESET_SELECTORS_MAX];
	size_t resolver_count; /* the sockets that are open for DNS */
	struct endpoint resolvers[SETTINGS_LISTEN_MAX];
};

/*
 * The whole of our chains and the jumps into them for one family, in iptables-restore form for
 * --noflush. Returned text is malloc()ed, the caller's. NULL on -ENOMEM.
 */
char *ruleset_text(const struct ruleset *ruleset, enum address_family family);
