/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The gate's questions to the policy engine, put together from a flow, and what is done about the
 * answers.
 */

#include <stdint.h>

#include "nfq/flow.h"
#include "nfq/gate.h"

/* Whom the packets of KEY belong to. */
void ruling_client(struct gate *gate, const struct flow_key *key, bool uid_known, uint32_t uid,
		   uint64_t now, struct client_match *out);

struct ruling {
	struct verdict verdict;
	bool reads;              /* its first bytes are to be read if it is not refused */
	const struct name *name; /* the one pinned name, NULL for none or several; good until the
				    next ruling */
};

/* May CLIENT reach the destination of KEY at all? NAME, when not NULL, counts as pinned. */
struct ruling ruling_connect(struct gate *gate, const struct flow_key *key,
			     const struct client_match *client, const struct name *name,
			     uint64_t now);

/* What a packet or flow that cannot be read is to the engine, which knows the mode. */
struct verdict ruling_unreadable(struct gate *gate, const struct flow_key *key,
				 const struct client_key *client, const struct subject *subject,
				 uint64_t now);

/*
 * May FLOW make the request of EVENT, whose target is searched for secrets first? A name that was
 * pinned when the flow opened, or when the flow used it last, is pinned for the flow's life.
 * *PINNED: the request's name is a pinned one. EVENT's problem names the secret that decided.
 */
struct verdict ruling_request(struct gate *gate, const struct flow *flow,
			      struct stream_event *event, bool *pinned);

/*
 * May FLOW live on, now that CLIENT's policy is another? Judged by the last request that passed, as
 * far as it is remembered, else by the destination.
 */
struct verdict ruling_again(struct gate *gate, const struct flow *flow,
			    const struct client_match *client);

/* The same for a connection of KEY that nothing is remembered of: the bare address. */
struct verdict ruling_forgotten(struct gate *gate, const struct flow_key *key,
				const struct client_match *client, uint64_t now);

/*
 * Puts VERDICT, which asks_hook, to the hook: FLOW waits for it in state ASKING then. REQUEST is NULL
 * for a destination. NULL, or a static text that says why the hook cannot be asked.
 */
const char *ruling_ask(struct gate *gate, struct flow *flow, const struct verdict *verdict,
		       const struct request *request, uint64_t now);

/* Reports a verdict on a packet or flow of KEY. NAME and DETAIL may be NULL. */
void ruling_report(struct gate *gate, const struct flow_key *key, const struct client_match *client,
		   enum stage stage, const struct verdict *verdict, const struct name *name,
		   const char *detail, uint64_t now);

/* The same for a flow that is in the table. */
void ruling_report_flow(struct gate *gate, const struct flow *flow, enum stage stage,
			const struct verdict *verdict, const struct name *name, const char *detail,
			uint64_t now);

/* A denial of the gate's own, for want of room or knowledge; enforced in every mode. */
struct verdict ruling_own(void);
