/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writes the answer to one client: its ID, its question letter by letter, the header bits of RFC
 * 1035 section 4.1.1 and RFC 4035 section 3.2, its EDNS (RFC 6891) with an Extended DNS Error (RFC
 * 8914), cut to what the client can take. Pure.
 *
 * A reply is begun, gets its records, and is finished; records that do not fit make it truncated:
 * TC set and no record at all, so that nothing is decided on half an answer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "resolver/query.h"

struct stored;

#define REPLY_SIZE_MAX 65535u

/* How long a client may remember a refusal: short, so that a changed policy is soon felt. */
#define REPLY_REFUSAL_TTL 10u

enum reply_rcode {
	RCODE_NOERROR = 0,
	RCODE_FORMERR = 1,
	RCODE_SERVFAIL = 2,
	RCODE_NXDOMAIN = 3,
	RCODE_NOTIMP = 4,
	RCODE_REFUSED = 5,
	RCODE_YXDOMAIN = 6,
	RCODE_BADVERS = 16
};

enum reply_ede { /* INFO-CODE of RFC 8914 section 5.2; REPLY_EDE_NONE is ours */
		 EDE_OTHER = 0,
		 EDE_STALE_ANSWER = 3,
		 EDE_DNSSEC_BOGUS = 6,
		 EDE_BLOCKED = 15,
		 EDE_NO_REACHABLE_AUTHORITY = 22,
		 REPLY_EDE_NONE = 0x10000
};

struct reply {
	const struct query_message *query;
	uint8_t *bytes; /* REPLY_SIZE_MAX octets of the caller's */
	size_t length;
	uint16_t answers, authorities;
	bool authentic, truncated;
	enum reply_rcode rcode;
	enum reply_ede ede;
	const char *ede_text; /* printable, may be ""; cut to REPLY_EDE_TEXT_MAX */
};
#define REPLY_EDE_TEXT_MAX 160u

/* Starts a reply in BYTES, which has room for REPLY_SIZE_MAX. QUERY and BYTES outlive the reply. */
void reply_begin(struct reply *reply, const struct query_message *query, uint8_t *bytes,
		 enum reply_rcode rcode);

/* An A or AAAA record, owned by the question's name. */
void reply_address(struct reply *reply, const struct address *address, uint32_t ttl);

/*
 * A SOA that says for how long the answer may be remembered (RFC 2308): owned by the question's
 * name, or for RCODE_NXDOMAIN by its parent, since a name with a SOA would exist.
 */
void reply_soa(struct reply *reply, uint32_t ttl);

/* The TTL of records whose time is over (RFC 8767 section 4). */
#define REPLY_STALE_TTL 30u

/*
 * The records of STORED, which answers the question of the reply's query (stored_key()), with AGE
 * seconds off their TTLs, or each with REPLY_STALE_TTL; no other record function is called.
 */
void reply_stored(struct reply *reply, const struct stored *stored, uint32_t age);
void reply_stale(struct reply *reply, const struct stored *stored);

/* Writes header and OPT; LIMIT is what the transport takes. Returns the length of the whole. */
size_t reply_finish(struct reply *reply, size_t limit);
