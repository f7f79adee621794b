/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What becomes of packets, of what was read of a flow, and of the flow: the endings that every reader
 * of flows (nfq/read.c, nfq/datagram.c) shares. ARRIVAL may be NULL where there is none to end.
 */

#include <stdint.h>

#include "nfq/flow.h"
#include "nfq/gate.h"

/* Lets ARRIVAL go with STATE, to be refused or not; or drops it without a word. */
void settle_pass(struct gate *gate, const struct arrival *arrival, enum mark_state state);
void settle_drop(struct gate *gate, const struct arrival *arrival);

/* Holds ARRIVAL, whose last octet is before END; drops it when there is no room. */
void settle_hold(struct gate *gate, struct flow *flow, const struct arrival *arrival, uint32_t end);

/* Ends FLOW as refused by VERDICT, with all its held packets and ARRIVAL. */
void settle_refuse(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		   const struct verdict *verdict, uint64_t now);

/* Nothing of FLOW is read any more: its packets pass, and the connection never comes back. */
void settle_allow(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		  uint64_t now);

/* The gate itself cannot go on with FLOW: refused and reported in every mode. */
void settle_give_up(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		    const char *detail, uint64_t now);

/* FLOW cannot be read: a malformed request to the engine, which knows the mode. */
void settle_unreadable(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		       const char *problem, uint64_t now);

enum settled {
	SETTLED_ALLOWED,
	SETTLED_REFUSED, /* reported, not yet carried out: settle_refuse() with *VERDICT */
	SETTLED_ASKING   /* FLOW waits for the hook */
};

/* Judges EVENT, puts it to the hook where that is to be asked, reports it and remembers its name.
 * EARLY: its own event will follow. */
enum settled settle_event(struct gate *gate, struct flow *flow, struct stream_event *event,
			  bool early, struct verdict *verdict, uint64_t now);

/*
 * The same with the hook's ANSWER; WORDS are of or about the hook. NULL: the policy has changed since it was
 * asked, and EVENT is judged anew.
 */
enum settled settle_hooked_event(struct gate *gate, struct flow *flow, struct stream_event *event,
				 enum hook_answer answer, const char *words,
				 struct verdict *verdict, uint64_t now);
