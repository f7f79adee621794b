/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One DNS query off the wire (RFC 1035 section 4, EDNS of RFC 6891), read by the bounded reader:
 * header, exactly one question, at most one OPT. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "name.h"

#define QUERY_HEADER_SIZE  12u
#define QUERY_QUESTION_MAX (NAME_WIRE_MAX + 4u)
#define QUERY_UDP_SIZE_MIN 512u  /* RFC 6891 section 6.2.3: smaller values mean 512 */
#define QUERY_UDP_SIZE_MAX 1232u /* fits every path without fragments (DNS flag day 2020) */
#define QUERY_RECORDS_MAX  8u    /* additional records that are skipped: TSIG, padding, oddities */

/* Types and classes that are looked at by number. */
enum {
	QUERY_TYPE_A = 1,
	QUERY_TYPE_CNAME = 5,
	QUERY_TYPE_SOA = 6,
	QUERY_TYPE_AAAA = 28,
	QUERY_TYPE_OPT = 41,
	QUERY_TYPE_SVCB = 64,
	QUERY_TYPE_HTTPS = 65,
	QUERY_CLASS_IN = 1
};

enum query_result {
	QUERY_OK,
	QUERY_DROP,    /* shorter than a header, or itself a response: no answer, or two could play
			  ball */
	QUERY_FORMERR, /* not one question, trailing bytes, a broken record, two OPTs */
	QUERY_NOTIMP,  /* an opcode other than QUERY */
	QUERY_BADVERS, /* EDNS version over 0 */
	QUERY_REFUSED  /* a class other than IN (version.bind and its kin), or no recursion desired
			*/
};

struct query_message {
	uint16_t id;
	uint8_t opcode;
	bool recursion_desired, authentic_data, checking_disabled;
	bool edns, dnssec_ok;
	uint16_t udp_size; /* what an answer over UDP may have, within the two bounds above */
	uint16_t type, class;
	enum name_error name_error; /* NAME_OK, or NAME_BAD_BYTE: NAME is unspecified then */
	struct name name;
	uint16_t question_length;             /* 0 when there is no question to echo */
	uint8_t question[QUERY_QUESTION_MAX]; /* as sent: an answer echoes the case of its letters
					       */
};

/*
 * Reads SIZE octets. *OUT is filled as far as it could be read, so that an error can be answered;
 * with QUERY_DROP it is unspecified.
 */
enum query_result query_read(const uint8_t *bytes, size_t size, struct query_message *out);

/* What a client would send that asks for NAME, plainly: all that names and types the question. */
void query_of_name(const struct name *name, uint16_t type, struct query_message *out);

struct reader;

/* Skips a wire name, compressed or not, without following it (RFC 1035 section 4.1.4). */
void query_skip_name(struct reader *reader);

/* Octets of the longest name in presentation form with every octet escaped, and the NUL. */
#define QUERY_TEXT_SIZE 1024u

/* The question's name in lower-case presentation form (RFC 1035 section 5.1), absolute with a dot.
 */
void query_text(const struct query_message *message, char text[QUERY_TEXT_SIZE]);

/* The longest end of the question's name that is canonical: the name itself, or what follows the
 * last label with an odd byte. */
struct name query_canonical_end(const struct query_message *message);
