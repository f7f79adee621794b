/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What every part of the gate works with: the policy in force, the pins, the sink and the counters.
 */

#include <stdbool.h>
#include <stdint.h>

#include "message.h"
#include "nfq/sink.h"
#include "pins.h"
#include "policy.h"

struct flow;
struct flow_key;
struct hook_question;
struct initial;
struct secrets;

struct gate {
	const struct policy_image *image;
	const struct pins_table *pins;
	struct secrets *secrets; /* settled (secrets/secrets.h) */
	struct initial *initial; /* inspect/initial.h */
	struct sink *sink;
	/* The name of an input interface, or NULL when it is gone. */
	const char *(*interface_name)(uint32_t index, uint64_t now);
	/* The cgroup of who holds the socket of KEY, a flow of this host's own; 0: not known. */
	uint64_t (*cgroup_of)(const struct flow_key *key);
	/*
	 * Puts QUESTION to the hook of POLICY; 0 and *ID, and its answer goes to judge_hooked().
	 * An error of asker_ask(): there will be none.
	 */
	int (*ask)(policy_index policy, const struct hook_question *question,
		   const struct client_key *client, struct flow *flow, uint64_t now, uint64_t *id);
	uint64_t generation; /* of `image` */
	int64_t wall_offset; /* CLOCK_REALTIME minus CLOCK_BOOTTIME, ms */
	bool log_allowed;
	uint64_t counters[COUNTER_COUNT];
	uint64_t by_reason[REASON_COUNT]; /* denials, reported ones of audit mode included */
};

/* One packet as the kernel queued it. */
struct arrival {
	const uint8_t *bytes; /* from the network header on */
	size_t length;
	bool whole;         /* nothing was cut off */
	bool merged;        /* several datagrams or segments in one; where one ends is not known */
	uint32_t id, mark;  /* of the packet */
	uint32_t interface; /* input interface, 0 for this host's own traffic */
	uint32_t uid;
	bool uid_known;
	enum mark_state mark_state; /* what the connection's mark said */
	bool again;                 /* the connection was decided under another policy */
};
