/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * From a queued packet to its verdict.
 */

#include <stdint.h>

#include "hook/protocol.h"
#include "nfq/flow.h"
#include "nfq/gate.h"

/* Ends or holds one packet: one call of the sink's verdict, now or later. */
void judge_packet(struct gate *gate, const struct arrival *arrival, uint64_t now);

/*
 * Reports a packet of which the static floor rules sent a notice: NOTICE has its first octets,
 * interface and uid, and nothing to end.
 */
void judge_notice(struct gate *gate, const struct arrival *notice, uint64_t now);

/*
 * The hook's answer to question ID, which FLOW asked; nothing happens when FLOW does not wait for it
 * any more.
 */
void judge_hooked(struct gate *gate, struct flow *flow, uint64_t id, const struct hook_reply *reply,
		  uint64_t now);

/* Refuses heads that are overdue and forgets old flows; cheap when nothing is due. */
void judge_expire(struct gate *gate, uint64_t now);

/* Milliseconds until judge_expire() has something to do, -1 when no flow is known. */
int judge_next_expiry(uint64_t now);
