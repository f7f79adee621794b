/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Messages for the tests of the resolver. */

#include <ldns/ldns.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "resolver/query.h"

/* A message from records in presentation form, a section mark ('q', 'a', 'n', 'x') before each. */
static inline size_t wire_answer(uint8_t *out, const char *const *lines)
{
	ldns_pkt *packet = ldns_pkt_new();
	uint8_t *wire;
	size_t size;

	for (; *lines != NULL; lines++) {
		ldns_rr *rr;
		bool question = (*lines)[0] == 'q';
		assert_int_equal(question
					 ? ldns_rr_new_question_frm_str(&rr, *lines + 1, NULL, NULL)
					 : ldns_rr_new_frm_str(&rr, *lines + 1, 0, NULL, NULL),
				 LDNS_STATUS_OK);
		ldns_pkt_push_rr(packet,
				 question             ? LDNS_SECTION_QUESTION
				 : (*lines)[0] == 'a' ? LDNS_SECTION_ANSWER
				 : (*lines)[0] == 'n' ? LDNS_SECTION_AUTHORITY
						      : LDNS_SECTION_ADDITIONAL,
				 rr);
	}
	assert_int_equal(ldns_pkt2wire(&wire, packet, &size), LDNS_STATUS_OK);
	memcpy(out, wire, size);
	LDNS_FREE(wire);
	ldns_pkt_free(packet);
	return size;
}

/* The query of a client for NAME (text, its case is kept) and TYPE; EDNS with DO where wanted. */
static inline void wire_query(struct query_message *out, const char *name, uint16_t type, bool edns,
			      bool dnssec_ok)
{
	uint8_t bytes[512] = {0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, edns};
	size_t at = 12;

	for (const char *label = name; *label != '\0';) {
		size_t length = strcspn(label, ".");
		bytes[at++] = (uint8_t)length;
		memcpy(bytes + at, label, length);
		at += length;
		label += length + (label[length] == '.');
	}
	at++;
	bytes[at + 1] = (uint8_t)type;
	bytes[at + 3] = QUERY_CLASS_IN;
	at += 4;
	if (edns) {
		memcpy(bytes + at, "\0\0\051\4\320\0\0\0\0\0\0", 11);
		bytes[at + 7] = dnssec_ok ? 0x80 : 0;
		at += 11;
	}
	assert_int_equal(query_read(bytes, at, out), QUERY_OK);
}
