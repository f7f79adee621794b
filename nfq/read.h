/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The first requests of watched flows: segments held, put in order, read and judged.
 */

#include <stdint.h>

#include "inspect/packet.h"
#include "nfq/flow.h"
#include "nfq/gate.h"

/* One TCP packet of a flow in state OPENED, READING, QUIET or ASKING about a request; ends or holds it. RST is not for
 * here. */
void read_packet(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		 const struct packet *packet, uint64_t now);

/*
 * FLOW, which is in READING again, was ASKING about a request: ANSWER, and WORDS for the log. With
 * NULL as WORDS the policy has changed since, and the request is judged anew.
 */
void read_hooked(struct gate *gate, struct flow *flow, enum hook_answer answer, const char *words,
		 uint64_t now);

/* FLOW is READING since HEAD_TIMEOUT_MS: refuses it. */
void read_overdue(struct gate *gate, struct flow *flow, uint64_t now);
