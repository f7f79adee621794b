/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The way out of a run: from its middle network namespace into the host's. Here by veth, forwarding
 * and masquerading, which takes root; whatever else may serve as a way out keeps to these four
 * functions.
 *
 * Everything on the host carries the run's id: the interface by its name, the rules by a comment,
 * so that a later run can sweep what a killed one left.
 */

#include <stddef.h>

#include "confine/plan.h"
#include "confine/state.h"

struct uplink {
	struct plan plan;
	struct state state;
	int backend;
	int live; /* its flock says that the run lives; shared by every process that may clean up */
};

/*
 * In the host's network namespace. Sweeps what killed runs left, chooses names and addresses that are
 * free, and records the run. 0, or negative errno with one line in PROBLEM and nothing left behind.
 */
int uplink_open(struct uplink *uplink, char *problem, size_t size);

/*
 * In the host's network namespace: lets the run's packets through the host. May take plan.ipv6 back.
 * On failure uplink_close() is still due.
 */
int uplink_allow(struct uplink *uplink, char *problem, size_t size);

/* In the host's network namespace: connects the one behind MIDDLE, as PLAN_UP. */
int uplink_connect(const struct uplink *uplink, int middle, char *problem, size_t size);

/* In the middle network namespace, afterwards: its own end. */
int uplink_configure(const struct uplink *uplink, char *problem, size_t size);

/* In the host's network namespace: takes everything away. May be called again, by any process of
 * the run. */
void uplink_close(struct uplink *uplink);
