/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One child of the parent: the resolver or the gate, over its deaths and restarts.
 *
 * Goal: the child runs whenever it can, with the current policy. Invariants: a child gets START as
 * its first message; at most one RELOAD and one STATUS are unanswered; a message that does not fit
 * the state ends that child, and it is started anew. A child that keeps dying is restarted ever
 * more slowly. While it is away its half of Pinfold is shut (no new pins; the kernel drops what
 * would be queued), so nothing here has to hurry.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/image.h"
#include "daemon/loop.h"
#include "daemon/spawn.h"
#include "message.h"
#include "policy.h"

/* From START to READY, from RELOAD to RELOADED: the resolver reads anchors and builds a context. */
#define CHILD_ANSWER_MS 10000u
/*
 * A child that is stopped or stuck does not die by itself. It is asked for its status this often,
 * and killed when so many questions in a row find it silent. Turns are counted and not time, so that
 * a machine that slept wakes up to living children.
 */
#define CHILD_PULSE_MS   5000u
#define CHILD_SILENT_MAX 2u
/* From the end of what it is sent to SIGKILL. */
#define CHILD_END_MS 2000u
/* A NOTICE sooner than this after another is dropped: only a child gone bad sends so many. */
#define CHILD_NOTICE_MS 1000u
/* Restart delay: the first, doubled with each death, the largest; forgotten after a steady while.
 */
#define CHILD_BACKOFF_MIN_MS 50u
#define CHILD_BACKOFF_MAX_MS 5000u
#define CHILD_STEADY_MS      10000u
/* Wishes for a connection to a hook: a child repeats one for each socket four times a second. */
#define CHILD_HOOKS_BURST      (4 * POLICY_HOOKS_MAX)
#define CHILD_HOOKS_PER_SECOND (8 * POLICY_HOOKS_MAX)

enum child_kind { CHILD_RESOLVER, CHILD_GATE, CHILD_COUNT };

enum child_state {
	CHILD_UNUSED,   /* not wanted (gate: {enabled: false}); stays */
	CHILD_DOWN,     /* no process; leaves at `deadline` by starting one */
	CHILD_STARTING, /* START is sent; leaves by READY, or by ENDING at `deadline` or after
			   FAILED */
	CHILD_READY,    /* works; leaves by death, or by ENDING after junk or silence */
	CHILD_ENDING    /* gets no more messages, its audit records are taken until its socket ends;
			   killed at `deadline`; leaves by death */
};

struct child;

/* What its owner wants to know; all in the loop's thread, all may use the child. */
struct child_events {
	void (*ready)(struct child *child);
	void (*died)(struct child *child); /* also a start that failed; `problem` says why */
	void (*reloaded)(struct child *child, const char *problem); /* NULL: it took the policy */
	void (*status)(struct child *child);
	/* False when the record is not right, which ends the child. */
	bool (*audit)(struct child *child, const struct audit_record *record);
	void (*notice)(struct child *child, const char *text); /* one printable line */
	void (*hook)(struct child *child, const struct message_hook *wish);
};

struct child {
	enum child_kind kind;
	enum child_state state;
	const struct child_events *events;
	void *owner;
	struct loop *loop;
	char path[256];
	struct loop_source messages, death; /* our end of the socket; the pidfd */
	struct spawned process;
	uint64_t deadline, backoff, ready_since;
	uint64_t starts;
	uint64_t generation; /* of the policy in force there; 0: none */
	uint64_t reloading;  /* generation of an unanswered RELOAD; 0: none */
	uint64_t served;     /* generation that the last process was ready with; 0: none was */
	uint64_t noticed;    /* when the last NOTICE was passed on; 0: none yet */
	bool owes_status;
	unsigned silent;     /* pulses that found it owing a status */
	uint64_t pulse;      /* CHILD_READY: the next one */
	uint32_t hooks_left; /* wishes for hooks that it may still make */
	uint64_t hooks_filled;
	struct message_status status; /* the last answer */
	char problem[512];            /* the last one; "" for none */
};

const char *child_kind_text(enum child_kind kind);
const char *child_state_text(enum child_state state);

/* State CHILD_DOWN, to be started at once. PATH is the program. */
void child_init(struct child *child, enum child_kind kind, struct loop *loop, const char *path,
		const struct child_events *events, void *owner);

/*
 * Starts the process and sends START with FDS. 0 and CHILD_STARTING, or negative errno with
 * `problem` set and CHILD_DOWN.
 */
int child_start(struct child *child, const struct message_start *start, const int *fds,
		size_t fd_count, uint64_t now);

/* In CHILD_READY: sends RELOAD, or asks for a STATUS. A child that cannot take it is ended. */
int child_reload(struct child *child, const struct image *image, uint64_t now);
int child_ask_status(struct child *child);

/* In CHILD_READY, to the resolver: the pins of a client go. A child that cannot take it is ended. */
int child_drop_client(struct child *child, const struct client_key *key);

/* Ends at once a child that does what its program does not; WHY is for the log. */
void child_break(struct child *child, const char *why);

/* Ends what it is sent, which asks it to send its last records and exit. */
void child_end(struct child *child, uint64_t now);

/* Ends what takes too long, and asks whether it is alive. */
void child_tick(struct child *child, uint64_t now);

/* When child_tick() or child_start() has something to do; UINT64_MAX: never. */
uint64_t child_deadline(const struct child *child);
