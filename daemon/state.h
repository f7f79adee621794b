/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The parent's state, shared by the files of this folder and by nobody else.
 *
 * Everything happens in one thread. `config`, `registry` and `image` are the policy in force; they change
 * together and only in reload.c's commit(). A child whose generation differs from that of `image` while
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
#include "daemon/registry.h"
#include "daemon/sockets.h"
#include "pins.h"

enum reload_state {
	RELOAD_IDLE,
	RELOAD_RUNS /* children take the new policy; leaves by commit when none is left, or by failure */
};

/* A new policy on its way: of a file that was read again, or of other registered clients. */
struct reload {
	enum reload_state state;
	struct config *config; /* the new one, owned; NULL: other registered clients alone */
	struct registry registry;
	struct image image;
	struct child *asked;              /* owes an answer */
	struct control_connection *asker; /* NULL: a signal, or gone */

	bool wanted; /* the file is to be read when this is over */
	struct control_connection *wanted_by;
};

struct parent {
	const struct parent_options *options;
	const struct config *config;
	struct config *owned;            /* what `config` points to after a reload */
	struct registry registry;        /* clients that are registered */
	uint64_t serial;                 /* the last one of them */
	struct change *pending, *staged; /* changes.c */
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
	size_t copied; /* octets, of options->copy_fd */
	struct control control;
	struct guard guard;
	struct reload reload;
	uint64_t status_deadline; /* when askers of a status get what there is; 0: nobody asks */
	uint64_t control_tick;    /* when idle connections are looked for next */
	uint64_t watchdog_ms;     /* how often the service manager hears of us; 0: never */
	uint64_t watchdog_next;

	bool ready;  /* both children were ready once and the rules stand */
	bool ending; /* in order */
	bool failed; /* could not start; the reason is printed */
};

/* parent.c: what CONFIG and REGISTRY give together; 0, or negative errno with one line in PROBLEM. */
int parent_image(struct parent *parent, const struct config *config,
		 const struct registry *registry, struct image *out, char *problem, size_t size);
int parent_ruleset(const struct parent *parent, const struct registry *registry,
		   struct ruleset *out, char *problem, size_t size);

/* reload.c: ASKER is answered sooner or later; NULL for SIGHUP, which reports alone. */
void reload_request(struct parent *parent, struct control_connection *asker);
/* Begins what waits, if nothing is under way. */
void reload_next(struct parent *parent);
/* parent->reload is filled: gives it to the children. */
void reload_start(struct parent *parent);
void reload_answered(struct parent *parent, struct child *child, const char *problem);
void reload_child_ready(struct parent *parent, struct child *child);
void reload_child_died(struct parent *parent, struct child *child);
void reload_asker_gone(struct parent *parent, struct control_connection *asker);
void reload_release(struct parent *parent);

/* changes.c: a request of the control socket, answered sooner or later. */
struct change;
void changes_request(struct parent *parent, struct control_connection *asker, bool remove,
		     const json_t *body);
void changes_list(struct parent *parent, struct control_connection *asker);
/* Called by reload.c: tries what is pending, and the ends of what that began. */
void changes_begin(struct parent *parent);
void changes_committed(struct parent *parent);
void changes_failed(struct parent *parent, const char *problem);
void changes_asker_gone(struct parent *parent, const struct control_connection *asker);
void changes_release(struct parent *parent);

/* status.c: the requests of the control socket. */
extern const struct control_handler status_handler;
void status_arrived(struct parent *parent);
void status_tick(struct parent *parent, uint64_t now);
