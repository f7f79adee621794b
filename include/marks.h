/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What Pinfold writes into packet and connection marks, inside `gate: {mark_mask}` and nowhere
 * else.
 *
 * The gate sets the mark with its verdict in the mangle table; the rules of our chains save it to
 * the connection in mangle POSTROUTING and map it in the filter table (filter/ruleset.c). No mark
 * of ours on a governed new flow means that nobody judged it: it is dropped. MARK_QUEUED is set
 * just before a packet goes to the queue, and any verdict that sets a state takes it away: a packet
 * that still has it behind the queue was never read.
 *
 * MARK_AGAIN stands beside the state of a connection that was decided under another policy than the
 * one in force. Its next packet, of whatever kind, is decided like a new flow's and queued; what is
 * saved then has a state alone.
 */

#include <stdbool.h>
#include <stdint.h>

enum mark_state {
	MARK_NONE = 0,
	MARK_ALLOWED = 1, /* decided: later packets of the flow never reach user space */
	MARK_WATCHED = 2, /* the destination passed; client bytes go through the queue */
	MARK_REFUSED = 3  /* filter REJECTs it */
};

#define MARK_STATES 3u /* the bits of a state */
#define MARK_QUEUED 4u /* set by the rules alone, never saved to a connection */
#define MARK_AGAIN  8u /* set by the gate, on connections */
#define MARK_BITS   4  /* that the rules use, from the lowest of the mask on */

/* A state shifted into the lowest bits of MASK. */
static inline uint32_t mark_value(uint32_t mask, enum mark_state state)
{
	return mask == 0 ? 0 : ((uint32_t)state << __builtin_ctz(mask)) & mask;
}

static inline enum mark_state mark_state(uint32_t mask, uint32_t mark)
{
	return mask == 0 ? MARK_NONE
			 : (enum mark_state)((mark & mask) >> __builtin_ctz(mask) & MARK_STATES);
}

/* MARK_AGAIN in MARK. */
static inline bool mark_again(uint32_t mask, uint32_t mark)
{
	return (mark & mark_value(mask, (enum mark_state)MARK_AGAIN)) != 0;
}

/* MARK with the bits of a state replaced by STATE, all others kept, also those of MASK that no state uses. */
static inline uint32_t mark_with(uint32_t mark, uint32_t mask, enum mark_state state)
{
	uint32_t bits = mark_value(mask, (enum mark_state)(MARK_STATES | MARK_QUEUED | MARK_AGAIN));

	return (mark & ~bits) | mark_value(mask, state);
}
