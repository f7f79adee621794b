/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Inside `pinfold explain`: one question to the policy engine, as the command line puts it. Each
 * stage takes a struct explain and gives a struct explanation, or says what is wrong and gives a
 * status.
 */

#include <stdbool.h>
#include <stddef.h>

#include "cli/command.h"
#include "config/config.h"
#include "hook/protocol.h"
#include "policy.h"

/* Which options a command line had; each stage says which it takes. */
enum explain_option {
	EXPLAIN_PINNED = 1 << 0,
	EXPLAIN_EXPIRED = 1 << 1,
	EXPLAIN_CNAME = 1 << 2,
	EXPLAIN_HINT = 1 << 3,
	EXPLAIN_TO = 1 << 4
};

/* --pinned or --expired NAME[=ADDRESS]; without an address it is one for the destination. */
struct explain_pin {
	struct name name;
	struct address address;
	bool expired;
};

struct explain {
	const struct config *config;
	const struct policy_image *image;
	struct subject subject;
	struct trace trace; /* the subject's, with --trace */
	const char *client; /* --client, or NULL */
	bool ask_hook;

	/* All arrays are as long as the command line at most. */
	const char **words; /* arguments without options, the stage left out */
	size_t word_count;
	struct explain_pin *pins;
	size_t pin_count;
	const char **cnames;
	size_t cname_count;
	struct address *hints;
	size_t hint_count;
	struct endpoint to; /* family ADDRESS_NONE: not given; port 0: not given */
};

struct explanation {
	enum stage stage;
	struct verdict verdict;
	const char *note; /* more for people, or NULL; static */
	const char *hook; /* the socket of the hook that would be asked, or NULL */
};

/* 0, or an exit status after a message on standard error. */
typedef int explain_stage(const struct explain *explain, struct explanation *out);

explain_stage explain_resolve;
explain_stage explain_answer;
explain_stage explain_connect;
explain_stage explain_request;
explain_stage explain_bytes;

/*
 * Steps of a trace that are kept: bytes may hold any number of requests, and people read no more.
 */
#define EXPLAIN_STEPS_MAX 1024u

/* Prints verdict and trace; returns the exit status of the verdict, or STATUS_USAGE. */
int explain_print(const struct explain *explain, bool json, const struct explanation *explanation);

/* The moment at which everything is judged: pins live before and after it. */
#define EXPLAIN_NOW 1000000u

/*
 * The connection to DESTINATION with those of the pins that are for it. Its pins are malloc()ed:
 * free them. 0 or an exit status.
 */
int explain_connection(const struct explain *explain, const struct endpoint *destination,
		       uint8_t protocol, struct connection *out, struct pin **pins);

/*
 * policy_request() with what its caller has to find: the shape of a secret in the target. 0 or an
 * exit status.
 */
int explain_judge(const struct explain *explain, struct request *request, struct explanation *out);

/*
 * Puts the verdict in OUT to the hook where it is to be asked and the command line says so, else
 * notes which would be. QUESTION has what the stage knows.
 */
void explain_ask(const struct explain *explain, struct hook_question *question,
		 struct explanation *out);

/* The same for a destination. */
void explain_ask_connection(const struct explain *explain, const struct connection *connection,
			    struct explanation *out);

/* "A", "HTTPS", "TYPE65280"; false when it is none. */
bool rrtype_parse(const char *text, uint16_t *out);
