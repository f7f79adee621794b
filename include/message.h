/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Messages between the parent and a child, over one SOCK_SEQPACKET pair (descriptor MESSAGE_FD in the
 * child). One datagram is one message: a header, a body whose size its type fixes, and descriptors.
 * A message that is not exactly right ends the program that gets it: siblings do not send junk by
 * accident.
 *
 *   parent                           child
 *   START {settings, image, pins,    (maps, opens its sockets and queues, drops privilege)
 *          listen sockets…}  ->
 *                                <-  READY, or FAILED {text} and exit
 *   RELOAD {settings, image}     ->
 *                                <-  RELOADED, or FAILED {text}: the old policy goes on
 *   STATUS                       ->
 *                                <-  STATUS {counters}
 *   DROP_CLIENT {key}            ->  (resolver)
 *                                <-  HOOK_WANTED {policy, generation}: a child has no file system, so
 *   HOOK {policy, generation,    ->  the parent connects to the policy's hook for it; without a
 *         problem} [connection]      descriptor when it could not
 *                                <-  AUDIT {record}, any time, never blocking
 *                                <-  NOTICE {text} for people, after READY, seldom, never blocking
 *   (end of file)                ->  the records it still has, and exit
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "client.h"
#include "name.h"
#include "verdict.h"

#define MESSAGE_FD      3
#define MESSAGE_FDS_MAX 40

enum message_type {
	MESSAGE_START = 1,
	MESSAGE_READY,
	MESSAGE_FAILED,
	MESSAGE_RELOAD,
	MESSAGE_RELOADED,
	MESSAGE_STATUS,
	MESSAGE_AUDIT,
	MESSAGE_DROP_CLIENT,
	MESSAGE_NOTICE,
	MESSAGE_HOOK_WANTED,
	MESSAGE_HOOK,
	MESSAGE_TYPE_COUNT
};

/*
 * Descriptors of START, in this order: settings, policy image, pin table (writable for the resolver,
 * read-only for the gate), then for the resolver the listening sockets: for each listen address UDP,
 * then TCP. RELOAD has settings and policy image.
 */
struct message_start {
	uint64_t generation;
	uint32_t uid, gid; /* what to become; 0 in a user namespace without another id: stay */
	uint32_t listen_count;
	uint32_t
		judge_again; /* 1, for the gate: there may be connections that another policy decided */
};

struct message_reload {
	uint64_t generation;
};

struct message_text {
	char text[512]; /* NUL-terminated, one line, printable */
};

#define AUDIT_ADDRESSES_MAX 8

/* One denial (or allowed flow, when asked for): what the parent turns into one JSON line. */
struct audit_record {
	uint64_t time_ms; /* CLOCK_REALTIME */
	uint32_t stage, outcome, reason;
	struct place rule;
	uint32_t suppressed; /* like records left out before this one */
	uint16_t port, qtype;
	uint8_t protocol; /* 0: none */
	uint8_t enforced;
	uint8_t address_count;
	uint8_t name_present;
	char client[CLIENT_NAME_MAX + 1]; /* name, or address text for an unregistered one */
	struct name name;
	struct address addresses[AUDIT_ADDRESSES_MAX];
	char detail[128]; /* free text, printable ASCII, "" for none; never holds a secret */
};

/* Counters of a child, by index; the names are what `pinfold status` prints. */
enum counter {
	COUNTER_QUERIES,
	COUNTER_ANSWERS,
	COUNTER_CACHE_HITS,
	COUNTER_REFUSED_ANSWERS,
	COUNTER_SERVFAIL,
	COUNTER_DROPPED_QUERIES,
	COUNTER_PINS_FAILED,
	COUNTER_PACKETS,
	COUNTER_FLOWS,
	COUNTER_ALLOWED,
	COUNTER_REFUSED,
	COUNTER_HELD,
	COUNTER_OVERFLOW, /* ENOBUFS and full tables */
	COUNTER_AUDIT_LOST,
	COUNTER_COUNT
};
const char *counter_text(enum counter counter);

struct message_status {
	uint64_t generation;
	uint64_t counters[COUNTER_COUNT];
	uint64_t by_reason[REASON_COUNT];
};

struct message_drop_client {
	struct client_key key;
};

/* Which hook: that of a policy in the image of a generation. */
struct message_hook {
	uint64_t generation;
	uint32_t policy;
	uint32_t reserved;
	char problem[128]; /* HOOK without a descriptor: why, printable; "" otherwise */
};

union message_body {
	struct message_start start;
	struct message_reload reload; /* RELOAD and RELOADED */
	struct message_text failed, notice;
	struct message_status status; /* child to parent; the request is all zero */
	struct audit_record audit;
	struct message_drop_client drop_client;
	struct message_hook hook; /* HOOK_WANTED and HOOK */
};

struct message {
	uint32_t type; /* enum message_type */
	uint32_t fd_count;
	int fds[MESSAGE_FDS_MAX]; /* owned by the receiver */
	union message_body body;
};

/*
 * Sends one message. FDS stay the caller's. 0, -EAGAIN when FLAGS has MSG_DONTWAIT and the peer is
 * slow, -EPIPE when it is gone, or another negative errno.
 */
int message_send(int fd, enum message_type type, const union message_body *body, const int *fds,
		 size_t fd_count, int flags);

/*
 * Receives one message; its descriptors are close-on-exec and the caller's to close. Returns 1, 0 at
 * end of file, -EAGAIN, -EPROTO for a message that is not exactly right (its descriptors are closed),
 * or another negative errno.
 */
int message_receive(int fd, struct message *out, int flags);
