/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the runs of one host network namespace share, below /run/pinfold: which runs there are, and
 * which kernel settings were changed for all of them.
 *
 *   net-<namespace>/lock     held (flock) for every change below
 *   net-<namespace>/sysctl   settings that are to go back when the last run leaves: KEY OLD NEW
 *   net-<namespace>/<id>     a run: its block. Its processes hold a flock on it as long as one of
 * them lives; without one it is stale
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "confine/plan.h"

struct state {
	int folder; /* the folder of this network namespace */
	int lock;   /* -1: not held */
};

struct state_run {
	char id[PLAN_ID_SIZE];
	uint32_t block;
	bool live;
};

#define STATE_RUNS_MAX 256

/* Opens the folder of the current network namespace and takes the lock. 0 or negative errno. */
int state_open(struct state *state);
int state_lock(struct state *state);
void state_unlock(struct state *state);
void state_close(struct state *state);

/* All runs, at most MAX; returns how many. Under the lock. */
size_t state_runs(struct state *state, struct state_run *runs, size_t max);

/* Records a run; returns the descriptor whose flock says that it lives, or negative errno. */
int state_add(struct state *state, const struct state_run *run);
void state_remove(struct state *state, const char *id);

/*
 * Sets KEY to VALUE for as long as any run lives, remembering what it was the first time. 0 also
 * when it is so already. Under the lock.
 */
int state_set(struct state *state, const char *key, const char *value);

/* The last run is gone: every setting that nobody else has changed since goes back. Under the lock.
 */
void state_restore(struct state *state);

/* No run is left: takes the folder away. Under the lock, which whoever waits for it finds gone and
 * makes anew. */
void state_vanish(struct state *state);
