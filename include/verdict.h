/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The words of a judgement: stage, outcome, reason, and the place of the rule that decided.
 *
 * The reason list exists here and nowhere else; its order is the order in which rules are asked, so a
 * smaller value outranks a larger one when several parts of one answer are bad (docs/policy.md).
 */

#include <stdbool.h>
#include <stdint.h>

enum stage {
	STAGE_RESOLVE, /* a question, before anything is sent upstream */
	STAGE_ANSWER,  /* what came back, before it is handed out */
	STAGE_CONNECT, /* the destination of a new flow */
	STAGE_REQUEST, /* the first request of a flow */
	STAGE_COUNT
};

enum outcome {
	OUTCOME_ALLOW,
	OUTCOME_DENY,
	OUTCOME_WAIT, /* STAGE_REQUEST alone: more bytes are needed */
	OUTCOME_COUNT
};

enum reason {
	REASON_NONE, /* allowed */
	REASON_MALFORMED,
	REASON_QTYPE,
	REASON_METADATA,
	REASON_INFRASTRUCTURE,
	REASON_SCHEME,
	REASON_HTTP2,
	REASON_PROTOCOL,
	REASON_SECRET_URL,
	REASON_BLOCKED_HOST,
	REASON_ENCRYPTED_DNS,
	REASON_SPECIAL_NAME,
	REASON_NOT_ALLOWLISTED,
	REASON_REBINDING,
	REASON_SELF,
	REASON_LOOPBACK,
	REASON_PRIVATE_ADDRESS,
	REASON_PRIVATE_HOST,
	REASON_SPECIAL_ADDRESS,
	REASON_EXPIRED,
	REASON_UNPINNED,
	REASON_NAME_MISMATCH,
	REASON_NO_NAME,
	REASON_CUSTOM,
	REASON_POLICY_ERROR,
	REASON_COUNT
};

/*
 * Where a rule stands. Sources below SOURCE_CONFIG are the data files of rules/ that are compiled in,
 * those from it on are the configuration files of the policy image, in the order of
 * config_source.source_names.
 */
enum source {
	SOURCE_BUILTIN,	      /* the program itself: a default that nobody wrote down, line 0 */
	SOURCE_FLOOR,	      /* rules/floor.txt */
	SOURCE_CLASSES,	      /* rules/address-classes.txt */
	SOURCE_IANA_IPV4,     /* rules/iana-ipv4-special.csv */
	SOURCE_IANA_IPV6,     /* rules/iana-ipv6-special.csv */
	SOURCE_SPECIAL_NAMES, /* rules/special-names.txt */
	SOURCE_ENCRYPTED_DNS, /* rules/encrypted-dns.txt */
	SOURCE_SECRET_SHAPES, /* rules/secret-shapes.txt */
	SOURCE_CONFIG	      /* the first configuration file */
};

struct place {
	uint32_t source; /* enum source, and beyond */
	uint32_t line;	 /* from 1; 0 when the rule is a default that nobody wrote down */
};

struct verdict {
	enum outcome outcome;
	enum reason reason;
	bool enforced; /* false: audit mode reports this denial and lets it pass */
	/* The policy's hook is to be asked before anything is done: policy_hook(), policy_hooked(). */
	bool asks_hook;
	struct place rule;
};

/* Texts as they appear in audit lines and in `explain --json`; never NULL, "?" out of range. */
const char *stage_text(enum stage stage);
const char *outcome_text(enum outcome outcome);
const char *reason_text(enum reason reason);

/* The denial is not just reported: outcome deny and enforced. */
bool verdict_refuses(const struct verdict *verdict);
