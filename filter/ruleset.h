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

#define RULESET_SELECTORS_MAX 256
#define RULESET_FLOOR_MAX     64

/* Chains are PF-INSTANCE-PART; with the longest part that stays within the 28 octets of x_tables.
 */
#define RULESET_INSTANCE_MAX 15

/* The uid or cgroup of HOOK_OUTPUT, the input interface of HOOK_FORWARD, that is governed. */
struct ruleset_selector {
	char interface[16]; /* HOOK_FORWARD */
	bool by_uid, by_cgroup;
	uint32_t uid_first, uid_last; /* HOOK_OUTPUT, an inclusive range */
	char cgroup_path[256];        /* HOOK_OUTPUT, cgroup v2 path without leading '/' */
};

/* What the operator adds to the floor; as a row of rules/floor.txt. */
struct ruleset_floor {
	struct prefix prefix;
	uint16_t tcp_port; /* 0: every port and protocol but those that are infrastructure */
};

struct ruleset {
	/* part of the chain names: "pinfold" for the service, unique otherwise; letters, digits, -
	 * _ */
	char instance[RULESET_INSTANCE_MAX + 1];
	enum gate_hook hook;
	bool govern_all; /* HOOK_OUTPUT without selectors: uid 0 as well */
	uint16_t queue;
	uint32_t mark_mask;
	size_t selector_count; /* 0 with HOOK_OUTPUT: everything (but uid 0) */
	struct ruleset_selector selectors[RULESET_SELECTORS_MAX];
	size_t resolver_count; /* the sockets that are open for DNS */
	struct endpoint resolvers[SETTINGS_LISTEN_MAX];
	/* HOOK_OUTPUT: the resolver's own user, whose queries to servers are not a client's. */
	bool exempt;
	uint32_t exempt_uid;
	size_t floor_count; /* additions to the floor that is built in */
	struct ruleset_floor floor[RULESET_FLOOR_MAX];
};

/* 0, or -EINVAL with one line in PROBLEM: what could not be written, or would govern nothing. */
int ruleset_check(const struct ruleset *ruleset, char *problem, size_t size);

/*
 * The whole of our chains and the jumps into them for one family, in iptables-restore form for
 * --noflush, written as iptables-save writes them. RULESET has passed ruleset_check(). Jumps are
 * `-I HOOK 1`, in reverse, so that ours end up first and in order. Returned text is malloc()ed, the
 * caller's. NULL on -ENOMEM.
 */
char *ruleset_text(const struct ruleset *ruleset, enum address_family family);
