/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Packets held in the kernel: their ids, flow by flow in order of arrival, bounded by flow, by
 * client and in all (nfq/limits.h). Every packet that is added is ended exactly once, by one of the
 * three endings.
 */

#include <stdbool.h>
#include <stdint.h>

#include "nfq/flow.h"
#include "nfq/sink.h"

/* Forgets all holds; for start and tests. */
void hold_init(void);

/*
 * Holds a packet of FLOW: ID and MARK as it came, END the sequence number after its last octet. 0,
 * or -ENOBUFS when the flow, its client or the gate has no room.
 */
int hold_add(struct flow *flow, uint32_t id, uint32_t mark, uint32_t end);

/* Lets packets go whose octets are all judged, in order of arrival, with STATE. Returns how many.
 */
unsigned hold_release(struct flow *flow, enum mark_state state, struct sink *sink);

/* Lets all go with STATE. */
unsigned hold_release_all(struct flow *flow, enum mark_state state, struct sink *sink);

/* Ends all: the first is refused, so that its sender gets a reset, unless RESET is false; the rest
 * dropped. */
unsigned hold_refuse(struct flow *flow, bool reset, struct sink *sink);

/* Packets held in all. */
uint32_t hold_count(void);
