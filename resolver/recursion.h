/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Recursion and validation by libunbound on our event loop. A context is frozen once it is built:
 * other forwarders, anchors or limits need a new one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "resolver/upstream.h"
#include "settings.h"

struct event_base;
struct recursion;

struct recursion_result {
	bool failed; /* no answer at all; nothing below is set */
	bool bogus, secure;
	const char *why_bogus; /* may be NULL */
	const uint8_t *wire;   /* the whole message, NXDOMAIN and the like in its header */
	size_t size;
};

struct recursion_call;

/* RESULT and all in it are libunbound's, good until the call returns. It must not free the
 * recursion. */
typedef void recursion_done(struct recursion_call *call, const struct recursion_result *result);

/* One outstanding look-up: part of a structure of the caller's, which lives until DONE or cancel.
 */
struct recursion_call {
	recursion_done *done;
	int ticket;
};

/*
 * Builds a context and proves that libunbound takes it. 0, or negative errno with one line in
 * PROBLEM. UPSTREAM is only read here.
 */
int recursion_new(struct event_base *base, const struct resolver_settings *settings,
		  const struct upstream *upstream, struct recursion **out, char *problem,
		  size_t size);

/* Outstanding look-ups are forgotten without a call. Never from inside a recursion_done. */
void recursion_free(struct recursion *recursion);

/*
 * Looks up TEXT (absolute, presentation form) of class IN. CALL->done is called once, perhaps
 * before this returns. 0, or -EIO: then it is not called.
 */
int recursion_start(struct recursion *recursion, const char *text, uint16_t type,
		    struct recursion_call *call);

/* CALL->done will not be called. */
void recursion_cancel(struct recursion *recursion, struct recursion_call *call);

/* The configuration text for libunbound, for recursion_new() and its tests. malloc()ed; NULL with
 * one line in PROBLEM. */
char *recursion_config(const struct resolver_settings *settings, const struct upstream *upstream,
		       char *problem, size_t size);
