/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The smallest allow list under which nothing that was seen is denied: inside `pinfold suggest`.
 *
 * What was seen is collected, then judged by the policy engine as if everything of it were listed.
 * What that does not let through is told apart with its reason; what is left becomes entries of
 * `allow_hosts`, without those that another one covers. A floor name, a private name or address, and
 * what no list lifts is never among them.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "address.h"
#include "name.h"
#include "verdict.h"

/* What one line of an audit log says. */
struct suggestion_event {
	enum stage stage;
	enum reason reason; /* REASON_NONE: it was allowed */
	bool has_name;
	struct name name;
	struct address address; /* the first; family ADDRESS_NONE: none */
	uint16_t port, qtype;   /* 0: none */
	uint8_t protocol;       /* IPPROTO_*, 0: none */
	uint64_t count;
};

struct suggestion;

/* WILDCARDS: several children of one registered domain become "*.domain". NULL: out of memory. */
struct suggestion *suggestion_new(bool wildcards);
void suggestion_free(struct suggestion *suggestion);

/* 0 or -ENOMEM. */
int suggestion_add(struct suggestion *suggestion, const struct suggestion_event *event);

/* Writes the list as YAML, what is not in it as comments. Once, after all was added. 0 or -ENOMEM. */
int suggestion_print(struct suggestion *suggestion, FILE *out);
