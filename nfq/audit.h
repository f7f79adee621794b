/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Denials (and allowed flows, when asked for) as records for the parent: counted always, sent
 * within a rate per client and reason, never blocking.
 */

#include <stdint.h>

#include "nfq/gate.h"

struct audit_event {
	enum stage stage;
	struct verdict verdict;
	const struct client_match *client;
	struct address source; /* names an unregistered client */
	struct address destination;
	uint16_t port;
	uint8_t protocol;
	const struct name *name; /* NULL: none */
	const char *detail;      /* NULL: none */
};

/* Forgets all rates; SEED keys the hash of clients. */
void audit_init(const uint8_t seed[16]);

void audit_report(struct gate *gate, const struct audit_event *event, uint64_t now);
