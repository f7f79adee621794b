/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Every bound of the gate, each with its reason. All tables are static: nothing is allocated after
 * start, and a page of them that is never used is never resident.
 */

/*
 * Flows remembered, 184 octets each (12 MiB), and some 290 for what an allowed one has said (19
 * MiB), which is kept for the next reload as long as there is room. The oldest decided one makes
 * room for a new one, then the oldest idle one.
 */
#define FLOWS_MAX 65536u

/* Flows whose first request is being read or may be followed by another: some 2.7 KiB each (44
 * MiB). */
#define READERS_MAX 16384u

/* Heads in progress of one client: a quarter, so that one client cannot stall the others' requests.
 */
#define READING_PER_CLIENT (READERS_MAX / 4)

/*
 * Packets held in the kernel. A verdict may walk the kernel's list past every held packet, so the
 * list stays short; a refused hold is a dropped packet that its sender repeats.
 */
#define HOLDS_MAX        8192u
#define HOLDS_PER_CLIENT (HOLDS_MAX / 2)
/* A head of 64 KiB is 46 segments of 1448 octets. */
#define HOLDS_PER_FLOW 64u

/* The kernel's queue: everything held, and as much again for what waits to be read. */
#define QUEUE_LENGTH (2u * HOLDS_MAX)
/* Whole packets: GSO super-packets go up to 64 KiB. */
#define QUEUE_COPY 65535u
/* Socket buffer: QUEUE_LENGTH small packets at the kernel's accounting of some 2.3 KiB each. */
#define QUEUE_RECEIVE_BUFFER (40u << 20)

/*
 * Socket buffer for notices of what the static floor refused: some 200 of them. They only feed the
 * audit log, which takes AUDIT_BURST of a client at once; what does not fit is counted.
 */
#define LOG_RECEIVE_BUFFER (256u << 10)

/*
 * Buffers, lent while a head is read: one for the head, one for the segments that are not judged
 * yet. Most heads are below 4 KiB; a ClientHello needs up to 16, a request head up to 64, the
 * segments of one and a GSO super-packet behind it up to 128.
 */
#define BUFFER_SMALL        4096u
#define BUFFER_MIDDLE       16384u
#define BUFFER_LARGE        65536u
#define BUFFER_HUGE         131072u
#define BUFFER_SMALL_COUNT  16384u /* 64 MiB */
#define BUFFER_MIDDLE_COUNT 1024u  /* 16 MiB */
#define BUFFER_LARGE_COUNT  256u   /* 16 MiB */
#define BUFFER_HUGE_COUNT   128u   /* 16 MiB */

/*
 * Quiet flows keep a small buffer of judged octets, to compare retransmissions with, while no more
 * than this many are lent: 4 MiB.
 */
#define HISTORY_LENT_MAX 1024u

/* A head must be complete this long after its first byte (design). */
#define HEAD_TIMEOUT_MS 10000u

/*
 * A head that is judged early but not complete is let go when this many packets are held or one of
 * them comes again: the sender's first window is 10 segments (RFC 6928), and it waits for an
 * acknowledgment after them.
 */
#define EARLY_HOLDS 8u

/*
 * A SYN with another sequence number does not replace a flow that is younger: both may have been
 * queued before the connection had its mark, and the kernel keeps the first.
 */
#define SYN_SETTLE_MS 1000u

/*
 * The same for a flow of which octets have come with the connection's mark: the queue is in order,
 * so a SYN without a mark behind them is of a later connection, unless it had been taken out of
 * the queue's way for a whole round trip and all this time. A client that opens some thousand
 * connections a second to one destination uses a port again before SYN_SETTLE_MS is over.
 */
#define SYN_SETTLE_READ_MS 50u

/* A refused flow answers packets that were queued before its mark reached the connection. */
#define DECIDED_MS 30000u

/*
 * A watched flow between requests, or opened and silent. Servers close idle connections after 5 to
 * 75 seconds, browsers after 5 minutes; a flow that comes back later is reset and its client
 * reconnects.
 */
#define IDLE_MS 600000u

/* Clients are counted by a keyed hash of their key; two that meet share one allowance. */
#define CLIENT_SLOTS 4096u

/* Audit lines of one client and reason: burst, then a second. Past it they are counted. */
#define AUDIT_BURST      64u
#define AUDIT_PER_SECOND 16u
#define AUDIT_BUCKETS    1024u

/* Interface names remembered, and for how long: an interface can be renamed, its index is not
 * reused. */
#define INTERFACES_MAX          256u
#define INTERFACE_REMEMBERED_MS 1000u
