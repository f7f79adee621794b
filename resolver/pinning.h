/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The pins of an answer: for the name that was asked, and for names of which the client will think
 * while it connects to these addresses (aliases.h, and the name behind the labels of RFC 9460
 * section 9.1, `_8443._https.`).
 */

#include <stddef.h>
#include <stdint.h>

#include "resolver/cache.h"
#include "resolver/judge.h"
#include "resolver/lookups.h"
#include "resolver/respond.h"

/*
 * Pins COUNT addresses, AGE seconds off their TTLs, to the client and the name of QUERY. 0, or -ENOSPC:
 * then the answer must not leave. Pins for other names are made where policy allows that name these
 * addresses, as an answer of its own; where not, or without room, there is just no such pin.
 */
int pinning_put(struct respond *respond, const struct query *query, const struct judge_pin *pins,
		size_t count, uint32_t age, uint64_t now);

/*
 * STORED, an HTTPS or SVCB answer, is about to be handed out: remembers where it sends the client, and
 * pins for QUERY's name what the client holds of the targets already. Anything else is ignored.
 */
void pinning_follow(struct respond *respond, const struct query *query, const struct stored *stored,
		    uint64_t now);
