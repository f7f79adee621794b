/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the processes of a run say to each other while it is set up and when it ends: one datagram
 * is one word with one value, over a SOCK_SEQPACKET pair.
 *
 *   runner                         middle                        inner
 *                               <- SEPARATE
 *                                                             <- SEPARATE
 *   (maps ids, makes the way out)
 *   CONNECT inner's pid         ->
 *                               <- LINKED
 *   LINKED                                                    ->
 *                                                             <- CONFIGURED
 *                               <- (ready, on the pipe of the parent)
 *   GO                                                        ->
 *   SIGNAL number                                             -> any time
 *                                                             <- EXIT wait status
 *
 * A process that fails prints why and exits.
 */

#include <stdint.h>

enum wire_word {
	WIRE_SEPARATE = 1,
	WIRE_CONNECT,
	WIRE_LINKED,
	WIRE_CONFIGURED,
	WIRE_GO,
	WIRE_SIGNAL,
	WIRE_EXIT
};

struct wire {
	uint32_t word; /* enum wire_word */
	int32_t value;
};

/* 0 or negative errno. */
int wire_send(int fd, enum wire_word word, int32_t value);

/* 1, 0 at end of file, -EPROTO for anything that is no word, or another negative errno. */
int wire_receive(int fd, struct wire *out);

/* Receives WORD and nothing else: 0, -EPIPE at end of file, -EPROTO, or another negative errno. */
int wire_expect(int fd, enum wire_word word, struct wire *out);
