/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Plays a client's bytes through a stream and writes down what it says, one line an event:
 *
 *   OFFSET KIND HOST[:PORT] FORM [SCHEME TARGET-HOST] TARGET
 *   OFFSET KIND malformed PROBLEM
 *   state STATE
 */

#include <stddef.h>
#include <stdint.h>

#define PLAY_SIZE 16384

struct play {
	size_t first_capacity; /* of the first buffer that is lent; it doubles when it is full */
	unsigned seed;         /* 0: all at once; else cuts at random places */
	size_t cut_max;        /* longest piece then */
	int takes_away;        /* take the buffer away whenever the stream is idle */
	int early;             /* ask for the early event after each piece */
};

/* Returns TRANSCRIPT (PLAY_SIZE octets). */
const char *play(const struct play *how, const uint8_t *bytes, size_t length, char *transcript);

/* The same bytes, whole, must give EXPECTED, and so must a number of cuts of them. */
void play_expect(const uint8_t *bytes, size_t length, const char *expected);
