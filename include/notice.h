/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Notices: what the static floor rules refuse never reaches the queue, so they send a copy of its
 * headers to the gate by NFLOG, for the audit line. The rules (filter/ruleset.c) and the gate
 * (nfq/notice.c) must agree on what stands here. The log group is the number of the queue.
 */

/* Tells our copies from those of somebody else's rule with the same group. */
#define NOTICE_PREFIX "pinfold-floor"

/*
 * Octets of a packet that are copied: the longest IPv4 and TCP headers are 120, and IPv6 has 160
 * left for extension headers before those of TCP.
 */
#define NOTICE_SIZE 256u
