/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Denials (and allowed answers, when asked for) as MESSAGE_AUDIT to the parent. Never blocks: what
 * the parent does not take at once is lost and counted. What a client can cause is limited per
 * (client, reason): AUDIT_BURST records at once, then AUDIT_PER_SECOND; the next record says how
 * many were left out.
 */

#include <stdint.h>

#include "client.h"
#include "message.h"

#define AUDIT_BURST      20u
#define AUDIT_PER_SECOND 5u
/* What clients can cause and is no denial is told this seldom: the first one is the news. */
#define AUDIT_NOTICE_MS 60000u

struct audit;

/* FD is the control socket, borrowed; SEED keys the table. NULL: out of memory. */
struct audit *audit_new(int fd, const uint8_t seed[16]);
void audit_free(struct audit *audit);

/*
 * Sends RECORD for the client KEY; fills in its `suppressed`. NOW is milliseconds of a clock that
 * does not jump. 0, -EDQUOT when the limit left it out, or the error that lost it.
 */
int audit_send(struct audit *audit, const struct client_key *key, struct audit_record *record,
	       uint64_t now);

/* A line for people, as MESSAGE_NOTICE. 0, -EDQUOT within AUDIT_NOTICE_MS of the last, or an error. */
int audit_notice(struct audit *audit, uint64_t now, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
