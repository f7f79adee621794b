/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Takes an answer of the recursion apart for the policy engine: every address, hint and target of
 * every section, and what of it a client gets to see. Pure.
 */

#include <ldns/ldns.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "name.h"

/* An address of the answer section, or a hint there: what is pinned when the answer is handed out.
 */
struct judge_pin {
	struct address address;
	uint32_t ttl; /* seconds */
};

struct judge_answer {
	ldns_pkt *packet; /* NULL when it could not be parsed: malformed is set then */
	uint8_t rcode;
	bool malformed; /* a record that policy depends on breaks its grammar */
	bool has_ech;
	bool answered, has_soa; /* the answer section has the type asked for; the authority a SOA */
	uint32_t ttl; /* seconds: the least of these two sections, 0 when they are empty */
	struct address *addresses, *hints;
	struct name *targets;
	struct judge_pin *pins;
	size_t address_count, hint_count, target_count, pin_count;
	/* private: what the arrays have room for */
	size_t address_room, hint_room, target_room, pin_room;
};

/*
 * Reads the message WIRE that answers a question of TYPE. Only a question about a host (A, AAAA,
 * SVCB, HTTPS) makes a CNAME target with odd octets malformed: classless reverse zones (RFC 2317)
 * have such names. 0 and *OUT, to be freed by judge_deinit(), or -ENOMEM.
 */
int judge_read(const uint8_t *wire, size_t size, uint16_t type, struct judge_answer *out);
void judge_deinit(struct judge_answer *answer);

/*
 * Takes `ech` (SvcParamKey 5, RFC 9848) out of every SVCB and HTTPS record of the answer, out of
 * its `mandatory` list too, and drops the signatures over what was changed. 0 or -ENOMEM; then the
 * answer must not be used.
 */
int judge_strip_ech(struct judge_answer *answer);

/*
 * What a client gets: the whole answer section, of the authority section what a negative answer or
 * a DNSSEC proof needs; without DNSSEC_OK no DNSSEC record but of the TYPE asked for (RFC 4035
 * section 3.2.1). Lists are shallow, freed by ldns_rr_list_free(). NULL: out of memory.
 */
ldns_rr_list *judge_answer_section(const struct judge_answer *answer, uint16_t type,
				   bool dnssec_ok);
ldns_rr_list *judge_authority_section(const struct judge_answer *answer, bool dnssec_ok);
