/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A connection being judged: what STAGE_CONNECT and STAGE_REQUEST share. Private to rules/.
 *
 * A destination may be used under several names: the client's live pins for it, static names, and
 * localhost by nature for a loopback address. Each is judged by its own rules; beside them stands
 * the bare address.
 */

#include "rules/judge.h"

struct flow {
	const struct judge *judge;
	const struct connection *connection;
	struct address destination; /* unmapped */
	uint64_t now;
	enum match_scheme scheme; /* SCHEME_ANY before the first bytes are known */
};

void flow_begin(const struct judge *judge, const struct connection *connection, uint64_t now,
		struct flow *out);

static inline struct list_query flow_query(const struct flow *flow)
{
	return (struct list_query){
		.port_rule = PORT_THIS, .port = flow->connection->port, .scheme = flow->scheme};
}

/* The steps that follow are about NAME, the bare address, or the flow whatever its name is. */
static inline void flow_trace(const struct flow *flow, enum trace_kind kind,
			      const struct name *name)
{
	if (flow->judge->trace != NULL)
		tell_begin(flow->judge->trace, kind, STAGE_CONNECT, name);
}

/* One of our resolver's sockets, asked over UDP or TCP. */
bool flow_is_our_dns(const struct flow *flow, struct place *place);

/* Rule 9: one of our own sockets that no client may use. */
bool rule_self(const struct flow *flow, struct verdict *out);

/* The client holds a live pin, or the configuration a static address, of this destination: for
 * NAME, or with NULL for any name. Localhost by nature counts for a NAME within localhost alone. */
bool flow_is_pinned(const struct flow *flow, const struct named *named);

/* `hosts` gives NAME, or with NULL any name, this destination. */
bool flow_is_static(const struct flow *flow, const struct named *named);

/* Any pin for this destination has expired. */
bool flow_has_expired(const struct flow *flow);

/* Rules 7 and 10 for the bare address: an allow list names it, or literals are open. */
bool flow_opens_literal(const struct flow *flow);

/* Rule 10's denial: `expired` or `unpinned`. True. */
bool flow_deny_unpinned(const struct flow *flow, struct verdict *out);

/* Rules 5 to 10 for the destination under all its names: allowed when one of them, or the bare
 * address, passes; else the denial whose rule is asked first. */
struct verdict flow_judge_names(const struct flow *flow);

/* LIST names the destination: the address, or a name pinned to it that passes its own rules. */
bool flow_is_listed_in(const struct flow *flow, enum policy_list list);
