/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The way out of a run: from its middle network namespace into the host's. There are two, and whoever
 * starts a run decides which: root gets uplink_veth, forwarding and masquerading by the host's kernel; an
 * ordinary user gets uplink_pasta, a process of his own that carries packets to sockets of the host.
 *
 * Order of a run: open, allow, connect, configure, close. The middle end is PLAN_UP with the plan's
 * addresses in both.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "confine/plan.h"
#include "confine/state.h"

struct uplink;

struct uplink_kind {
	/*
	 * In the host's network namespace, before anything else of the run exists: chooses names and
	 * addresses that are free. 0, or negative errno with one line in PROBLEM and nothing left
	 * behind.
	 */
	int (*open)(struct uplink *uplink, char *problem, size_t size);

	/*
	 * There: lets the run's packets through the host. May take plan.ipv6 back. On failure close
	 * is still due, here and below.
	 */
	int (*allow)(struct uplink *uplink, char *problem, size_t size);

	/* There: connects the network namespace of the process MIDDLE. */
	int (*connect)(struct uplink *uplink, pid_t middle, char *problem, size_t size);

	/* In the middle network namespace, afterwards: its own end. Gives up once ABANDON is
	 * readable. */
	int (*configure)(const struct uplink *uplink, int abandon, char *problem, size_t size);

	/* Once `death` is readable: why, in one line. */
	void (*explain)(const struct uplink *uplink, char *problem, size_t size);

	/*
	 * Takes everything away. May be called again, by any process of the run that may clean up
	 * when another was killed; the caller's network namespace may be another one afterwards.
	 */
	void (*close)(struct uplink *uplink);
};

extern const struct uplink_kind uplink_veth, uplink_pasta;

#define UPLINK_DESCRIPTORS 4

struct uplink {
	const struct uplink_kind *kind;
	struct plan plan;
	/* Descriptors of the processes that may clean up, and of nobody else; -1: none. */
	int descriptors[UPLINK_DESCRIPTORS];
	/* A descriptor that is readable once the way out is gone, in the process that opened it; -1:
	 * that cannot be. */
	int death;
	struct state state; /* veth: which runs there are */
	int backend;        /* veth: which iptables */
	bool ipv4, ipv6;    /* pasta: there is a way out of this family */
};

/* Nothing is open. */
void uplink_init(struct uplink *uplink, const struct uplink_kind *kind);

/*
 * For the kinds: a plan from addresses that no route of this network namespace covers. TAKEN has
 * PLAN_BLOCK_COUNT entries, with the blocks that are not free. 0 or negative errno.
 */
int uplink_choose(struct uplink *uplink, bool *taken);

/* For the kinds, in the middle network namespace: PLAN_UP gets its addresses, and the default
 * routes, that of IPv4 if wanted. */
int uplink_address(const struct plan *plan, bool ipv4);
