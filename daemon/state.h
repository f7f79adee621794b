/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The parent's state, shared by the files of this folder and by nobody else.
 *
 * Everything happens in one thread. `config` and `image` are the policy in force; both change
 * together and only in reload_commit(). A child whose generation differs from that of `image` while
 * no reload is under way is sent the policy in force (parent_converge), so that restarts and failed
 * reloads heal by themselves.
 */

#include "daemon/audit.h"
#include "daemon/child.h"
#include "daemon/control.h"
#include "daemon/guard.h"
#include "daemon/image.h"
#include "daemon/loop.h"
#include "daemon/parent.h"
#include "daemon/sockets.h"
#include "pins.h"

/* The resolver first: it refuses a bad trust anchor before the gate has changed anything. */
enum reload_state {
	RELOAD_IDLE,
	RELOAD_RESOLVER, /* waits for the resolver's answer; leaves to RELOAD_GATE or by failure */
	RELOAD_GATE      /* waits for the gate's answer; leaves by commit or by failure */
};

struct reload {
	enum reload_state state;
	struct config *config; /* the new one, owned */
	struct image image;
	struct control_connection *asker; /* NULL: a signal, or gone */
};

struct parent {
	const struct parent_options *options;
	const struct config *config;
	struct config *owned; /* what `config` points to after a reload */
	struct image image;
	uint64_t generation; /* the last one given out, also to a reload that failed */
	uint64_t started;    /* ms of CLOCK_BOOTTIME */
	uint32_t uid, gid;   /* what the children become */

	struct loop loop;
	struct loop_source signals, lifetime;
	struct sockets sockets;
	int pins_writable, pins_readable;
	struct pins_table *pins;
	struct child children[CHILD_COUNT];
	struct audit audit;
	struct control control;
	struct guard guard;
	struct reload reload;
	uint64_t status_deadline; /* when askers of a status get what there is; 0: nobody asks */
	uint64_t control_tick;    /* when idle connections are looked for next */

	bool ready;  /* both children were ready once and the rules stand */
	bool ending; /* in order */
	bool failed; /* could not start; the reason is printed */
};

/* parent.c */
void parent_converge(struct parent *parent, struct child *child);

/* reload.c: ASKER is answered sooner or later; NULL for SIGHUP, which reports alone. */
void reload_begin(struct parent *parent, struct control_connection *asker);
void reload_answered(struct parent *parent, struct child *child, const char *problem);
void reload_child_died(struct parent *parent, struct child *child);
void reload_asker_gone(struct parent *parent, struct control_connection *asker);
void reload_release(struct parent *parent);

/* status.c: the requests of the control socket. */
extern const struct control_handler status_handler;
void status_arrived(struct parent *parent);
void status_tick(struct parent *parent, uint64_t now);
