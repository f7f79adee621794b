/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The flow table: what the gate remembers of each flow, the packets held for it, and when it is
 * due. Static; see flow.c for the theory. Times are milliseconds of CLOCK_BOOTTIME and always
 * arguments.
 */

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "client.h"
#include "inspect/quic.h"
#include "inspect/reassembly.h"
#include "inspect/stream.h"
#include "name.h"
#include "nfq/buffers.h"
#include "nfq/sink.h"
#include "policy.h"

/* What a flow is known by. Unused octets are zero: keys are compared and hashed as bytes. */
struct flow_key {
	uint8_t source[16], destination[16];
	uint16_t source_port, destination_port; /* host order; 0 without */
	uint32_t interface; /* input interface, so that two guests may share an address; 0: this
			       host */
	uint8_t protocol;
	uint8_t family; /* enum address_family */
	uint8_t zero[2];
};

enum flow_state {
	FLOW_FREE,    /* on the free list */
	FLOW_OPENED,  /* SYN passed, marked watched, no client octet seen; UDP: no datagram read.
			 -> READING by data, -> QUIET never, gone by RST, age or need of room */
	FLOW_READING, /* a head has begun: its packets are held.
			 -> QUIET or ALLOWED by an allowed request, -> REFUSED by a denied one, by
			 HEAD_TIMEOUT_MS or a contradiction; never makes room for others */
	FLOW_ASKING,  /* the hook is asked, about the destination (no reader yet) or a request: what
			 comes is held, unless it is a SYN again.
			 -> OPENED, READING, QUIET, ALLOWED or REFUSED by the answer, which always
			 comes: the hook has its own deadline; never makes room for others */
	FLOW_QUIET,   /* all octets seen so far are judged, more heads may follow.
			 -> READING by the next head, -> ALLOWED, gone by RST, age or need of room */
	FLOW_ALLOWED, /* decided: every packet is allowed; gone by need of room */
	FLOW_REFUSED, /* decided: every packet is refused; gone by age or need of room */
	FLOW_STATES
};

/* What only a flow with first bytes needs; taken from a pool. */
struct reader_slot {
	alignas(16) uint8_t storage[STREAM_SIZE];
	struct stream *stream; /* TCP; in `storage` */
	struct quic *quic;     /* UDP; in `storage`, NULL before the first datagram */
	struct reassembly reassembly;
	struct buffer head;     /* lent to the stream or to QUIC */
	struct buffer segments; /* lent to the reassembly */
	uint64_t octets;        /* given to the stream */
	bool early;        /* this unfinished head is judged as far as it goes, its packets pass */
	bool asking_early; /* FLOW_ASKING: what the hook is asked about is such a head */
	bool hooked_early; /* the hook was asked about this early head, and said `hooked` */
	enum hook_answer hooked;
};

/* What the last request that passed has said: enough to judge it again under another policy. */
struct flow_use {
	struct host host; /* Host or SNI; the target of a request to a proxy */
	uint8_t kind;     /* enum request_kind */
	uint8_t form;     /* enum target_form */
	bool malformed;   /* audit mode let it pass */
	bool pinned;      /* `host` is a name, and was pinned */
};

struct flow {
	struct flow_key key;
	struct client_key client;
	uint32_t chain;                 /* next in its hash bucket */
	uint32_t newer, older;          /* its list of `when`, by age */
	uint32_t hold_first, hold_last; /* held packets in order of arrival */
	uint16_t hold_count;
	uint16_t client_slot;
	uint8_t state; /* enum flow_state */
	bool root, uid_known;
	bool passed;       /* its SYN was let through */
	bool logged;       /* an allowed flow was reported */
	bool lifted;       /* the hook let it through, whatever the rules say */
	bool used;         /* there is a flow_use() */
	bool reads;        /* its first bytes are read; UDP alone */
	uint32_t sequence; /* TCP: of the SYN; UDP: datagram_tag() of what was refused */
	uint32_t uid;
	policy_index policy;
	enum reason reason;  /* FLOW_REFUSED: why */
	uint64_t opened;     /* pins alive then are alive for the flow */
	uint64_t when;       /* start of the head in FLOW_READING, else last packet */
	uint64_t generation; /* of the policy that judged its destination */
	uint64_t question;   /* FLOW_ASKING: the hook's answer to this one counts */
	struct reader_slot *reader;
};

/* Empties everything; SEED keys the hash. Packets held are forgotten: only for start and tests. */
void flow_init(const uint8_t seed[16]);

/* NULL when it is not known. */
struct flow *flow_find(const struct flow_key *key);

/*
 * A new flow in state OPENED. When the table is full the oldest decided flow goes, then the oldest
 * idle one, of a client that holds more than half of the table before others'. NULL when all flows are
 * READING, or when CLIENT is that client and none of its own is old. KEY must not be in the table.
 */
struct flow *flow_add(const struct flow_key *key, const struct client_key *client, uint64_t now,
		      struct sink *sink);

/* Room for FLOW's use, which has something in it when FLOW is `used`; good until FLOW is forgotten. */
struct flow_use *flow_use(const struct flow *flow);

/* Forgets FLOW: its held packets are dropped, its reader and buffer returned. */
void flow_remove(struct flow *flow, struct sink *sink);

/*
 * Moves FLOW to STATE and to the end of that state's list. ALLOWED and REFUSED return the reader.
 * Entering READING is refused with -ENOBUFS when the client has its share of heads; FLOW is
 * untouched then.
 */
int flow_enter(struct flow *flow, enum flow_state state, uint64_t now);

/* FLOW had a packet: it is the youngest of its list now. Not for READING, whose age is its head's.
 */
void flow_touch(struct flow *flow, uint64_t now);

/*
 * Gives FLOW a reader; that of TCP has a stream that begins after its SYN; when there is none the oldest quiet flow is
 * forgotten, chosen as by flow_add(). 0, -ENOBUFS.
 */
int flow_read(struct flow *flow, struct sink *sink);

/* The flow of STATE whose `when` is oldest, or NULL. */
struct flow *flow_oldest(enum flow_state state);

/* Forgets refused flows past DECIDED_MS and idle ones past IDLE_MS, at most MAX of them. */
void flow_expire(uint64_t now, struct sink *sink, unsigned max);

struct flow_counts {
	uint32_t in_state[FLOW_STATES];
	uint32_t readers;
	uint64_t crowded; /* flows forgotten for want of room */
};
struct flow_counts flow_counts(void);
