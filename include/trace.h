/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The way to a verdict, rule by rule, for people: `pinfold explain --trace`. The caller of the
 * engine gives the room, and the engine writes each step while it judges, so the way told is the way
 * taken.
 */

#include <stddef.h>

#include "name.h"
#include "verdict.h"

enum trace_kind {
	TRACE_STAGE,   /* STAGE begins */
	TRACE_NAME,    /* the steps up to the next of these judge the destination under NAME, */
	TRACE_ADDRESS, /* as a bare address, */
	TRACE_FLOW,    /* or whatever its name is */
	TRACE_LISTED,  /* an allow list holds the name or address; PLACE: the entry */
	TRACE_PASSED,  /* the rule of REASON was asked and did not refuse */
	TRACE_LIFTED, /* it would have, but for what stands at PLACE (line 0: an entry told before) */
	TRACE_REFUSED, /* it refused, by what stands at PLACE */
	TRACE_KINDS
};

struct trace_step {
	enum trace_kind kind;
	enum stage stage;
	enum reason reason;
	struct place place;
	struct name name;
};

/* STEPS and ROOM are the caller's; COUNT begins at 0 and goes past ROOM when steps did not fit. */
struct trace {
	struct trace_step *steps;
	size_t room, count;
};
