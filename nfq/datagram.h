/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * UDP flows that are read: QUIC, whose ClientHello is judged before a datagram goes.
 */

#include <stdint.h>

#include "inspect/packet.h"
#include "nfq/flow.h"
#include "nfq/gate.h"

/* One datagram of a flow in state OPENED, READING or QUIET; ends or holds it. */
void datagram_read(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		   const struct packet *packet, uint64_t now);

/* As read_hooked(). */
void datagram_hooked(struct gate *gate, struct flow *flow, enum hook_answer answer,
		     const char *words, uint64_t now);

/* The same for all first datagrams of a QUIC connection, and hardly for those of two. */
uint32_t datagram_tag(const struct packet *packet);
