/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * An answer in the form in which it is kept and handed out: its records as octets, and beside them what
 * policy judges and what is pinned, taken apart once. Every reply is made from it, the first as well
 * as those out of the cache, so the two cannot differ. Pure.
 *
 * One block of memory. Whoever keeps it holds a reference. Nothing in it changes but what the cache and
 * the memory of verdicts note there.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "address.h"
#include "name.h"
#include "policy.h"
#include "resolver/judge.h"
#include "resolver/query.h"
#include "resolver/reply.h"

/* What clients want of the same answer: bits of a key. */
enum stored_form {
	STORED_DNSSEC = 1,            /* signatures and proofs: DO was set */
	STORED_ECH = 2,               /* `ech` stays in HTTPS and SVCB records */
	STORED_FORMS = 4,             /* how many combinations there are */
	STORED_FAILURE = STORED_FORMS /* no answer at all, whatever the client wants */
};

/*
 * The question's name in lower case, as on the wire, its type, and the form. CD turns nothing off here and
 * is no part of it; the class is always IN.
 */
#define STORED_KEY_MAX (NAME_WIRE_MAX + 3u)
struct stored_key {
	uint16_t length;
	uint8_t bytes[STORED_KEY_MAX];
};

void stored_key(const struct query_message *message, unsigned form, struct stored_key *out);

/* What one policy decided, in one generation of it (struct query, `generation`). */
struct stored_verdict {
	uint64_t generation; /* from 1 on; 0: none yet */
	policy_index policy;
	bool root;
	bool permitted; /* the question was allowed without a word, and its name is not local */
	struct verdict answer;
};
/* Clients have the same policy, or one of few. */
#define STORED_VERDICTS 4u

struct stored {
	/* cache.c alone: its hash chain, its queue. */
	LIST_ENTRY(stored) chain;
	TAILQ_ENTRY(stored) turn;
	uint64_t hash;
	bool used;

	bool failure; /* only `ede`, `ede_text` and `seconds` count then */
	bool malformed, readable, secure;
	uint8_t rcode;
	uint32_t references;
	uint32_t size;    /* octets of the block */
	uint32_t seconds; /* from `born` to `expiry` */
	uint64_t born;    /* ms of CLOCK_BOOTTIME: the TTLs count from here */
	uint64_t
		expiry; /* the same clock: no answer from here on; `born` for what is not to be kept */
	enum reply_ede ede;
	const char *ede_text; /* "" for none */

	const struct address *addresses, *hints;
	const struct name *targets;
	const struct judge_pin *pins;
	const uint16_t *ttls;   /* where in `records` the TTLs stand */
	const uint8_t *records; /* answer and authority section, as they follow the question */
	const uint8_t *key;
	uint16_t address_count, hint_count, target_count, pin_count, ttl_count;
	uint16_t answers, authorities, records_size, key_length;
	struct stored_verdict verdicts[STORED_VERDICTS];
};

/* An answer is not kept longer, whatever its TTLs say (RFC 8767 section 4 has a week as the most). */
#define STORED_SECONDS_MAX 86400u

/*
 * Makes what clients get for KEY out of ANSWER; NOW is ms of CLOCK_BOOTTIME. With STORED_ECH not in the
 * key's form, judge_strip_ech() has been called. 0, -ENOMEM, or -EMSGSIZE for more than a message holds.
 */
int stored_new(const struct stored_key *key, const struct judge_answer *answer, bool secure,
	       uint64_t now, struct stored **out);

/* A failure that is remembered for SECONDS; TEXT is cut to REPLY_EDE_TEXT_MAX. NULL: out of memory. */
struct stored *stored_new_failure(const struct stored_key *key, enum reply_ede ede,
				  const char *text, uint32_t seconds, uint64_t now);

/* Both begin with the caller's reference; the last one frees. */
struct stored *stored_ref(struct stored *stored);
void stored_unref(struct stored *stored);

/* The verdict that was remembered for this policy and generation, or NULL. */
const struct stored_verdict *stored_verdict(const struct stored *stored, uint64_t generation,
					    policy_index policy, bool root);

/* Remembers VERDICT, in the place of an older one. */
void stored_remember(struct stored *stored, const struct stored_verdict *verdict);

/* Whole seconds since it was made, which its TTLs have lost. */
static inline uint32_t stored_age(const struct stored *stored, uint64_t now)
{
	return now <= stored->born ? 0 : (uint32_t)((now - stored->born) / 1000);
}
