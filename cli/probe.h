/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The probes of `pinfold selfcheck`: each tries what must be refused, and says whether it was refused as
 * Pinfold refuses. Addresses out of 192.0.2.0/24 (RFC 5737) and ports are drawn anew for each attempt,
 * so that the audit line of an attempt is told from every other, and nobody is bothered if nothing is
 * enforced.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A refusal comes from this machine: within this time. */
#define PROBE_RESET_MS 100
/* A busy machine may be late once. */
#define PROBE_ATTEMPTS 3

enum probe_kind { PROBE_QUESTION, PROBE_TCP, PROBE_UDP };

enum probe_result {
	PROBE_OPEN,    /* not refused, or not as we do */
	PROBE_REFUSED, /* as we do; the audit line is still to be seen */
	PROBE_NOWHERE, /* there is no such family here */
	PROBE_SEEN     /* refused, with its audit line */
};

struct probe {
	const char *name, *target; /* a domain for a question, else an address */
	enum probe_kind kind;
	uint16_t port;      /* 0: drawn */
	const char *reason; /* of the audit line; NULL: any */
	bool strict;        /* under `default: deny` alone */
	const char *mend;
};

/* What became of one; what its audit line names. */
struct probe_outcome {
	enum probe_result result;
	char what[128]; /* the name that was asked, or the address */
	uint16_t port;  /* 0: of a question */
	int error;      /* negative errno with which a connection ended; 0: none in time */
};

extern const struct probe probes[];
extern const size_t probe_count;

/* Tries PROBE, at most PROBE_ATTEMPTS times. Questions go to the first server of resolv.conf. */
void probe_try(const struct probe *probe, struct probe_outcome *outcome);
