/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One question to a hook and one answer of it, as lines of JSON (pinfold-hook(7)). Pure but for
 * memory. One thread at a time.
 */

#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "pins.h"
#include "policy.h"
#include "verdict.h"

/* A longer request target is not put to a hook: half of one would be judged as the whole. */
#define HOOK_TARGET_MAX 8192u
/* The same for other parts: what a whole answer or all pins of an address may have. */
#define HOOK_ADDRESSES_MAX 256u
/* A question with its line end: target and names, each octet of which may take six. */
#define HOOK_QUESTION_MAX 98304u
/* An answer without its line end; it needs some 200 octets. */
#define HOOK_REPLY_MAX 4096u
/* Octets of an answer's reason that are kept for the log. */
#define HOOK_REASON_MAX 96u

/* All pointers are borrowed for the call. */
struct hook_question {
	enum stage stage;
	const char *client;                      /* its name, or the text of its address */
	const char *name;                        /* asked; Host or SNI; NULL for none */
	uint16_t qtype;                          /* STAGE_RESOLVE and STAGE_ANSWER, else 0 */
	const struct address *addresses, *hints; /* of the answer, or the destination */
	size_t address_count, hint_count;
	uint16_t port;      /* 0: none */
	uint8_t protocol;   /* IPPROTO_*; 0: none */
	const char *scheme; /* of a request, "" for none */
	const char *method; /* no NUL; NULL when invisible */
	size_t method_length;
	const char *target; /* no NUL; NULL when invisible */
	size_t target_length;
	const struct pin *pins; /* of the client for the destination */
	size_t pin_count;
	uint64_t now; /* pins that expired before are left out */
	const struct verdict *verdict;
};

/* Fills in what a destination tells, with pins as they were NOW; CONNECTION is borrowed. */
void hook_question_connection(struct hook_question *question, const struct connection *connection,
			      uint64_t now);

/*
 * Fills in what a request tells besides its connection, a target that holds a secret left out;
 * REQUEST and BUFFER are borrowed.
 */
void hook_question_request(struct hook_question *question, const struct request *request,
			   char buffer[ADDRESS_TEXT_SIZE]);

/*
 * Writes QUESTION with its line end into OUT and its length into *LENGTH. 0; -EMSGSIZE when a part
 * is too long or SIZE too small; -ENOMEM.
 */
int hook_question_write(const struct hook_question *question, uint64_t id, char *out, size_t size,
			size_t *length);

struct hook_reply {
	uint64_t id;
	enum hook_answer answer;
	const char *problem;              /* HOOK_ERROR: static text, else NULL */
	char reason[HOOK_REASON_MAX + 1]; /* the hook's own words, printable ASCII; "" for none */
};

/*
 * Reads one line without its end. 0, with HOOK_ERROR for a verdict that is none of the three;
 * -EPROTO when it is no JSON object with an id and a verdict.
 */
int hook_reply_read(const char *line, size_t length, struct hook_reply *out);

/*
 * To be called once, before privileges go: the seed of the JSON library's tables, so that it never
 * looks for random octets itself.
 */
void hook_protocol_seed(const uint8_t seed[16]);

/*
 * From now on the JSON library has a static arena that each call of the two functions above empties
 * first, and malloc() is not called any more. For programs that use the library for nothing else.
 */
void hook_protocol_use_arena(void);
