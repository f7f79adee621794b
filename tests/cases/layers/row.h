/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A row of the policy vectors, put to a program's own judging half instead of `pinfold explain`: the
 * command line of `explain` in, its JSON and exit status out. A row that the program cannot see
 * exits with ROW_UNSEEN.
 */

#include "config/config.h"
#include "policy.h"

#define ROW_UNSEEN 77
#define ROW_WORDS  256

struct row_pin {
	struct name name;
	struct address address; /* family ADDRESS_NONE: the destination */
	bool expired;
};

struct row {
	struct config *config;
	const struct policy_image *image;
	const char *stage;
	const char *words[ROW_WORDS], *cnames[ROW_WORDS];
	struct address hints[ROW_WORDS];
	struct row_pin pins[ROW_WORDS];
	size_t word_count, cname_count, hint_count, pin_count;
	struct endpoint to; /* family ADDRESS_NONE: not given */
};

/* Reads the command line and its configuration; ends the program when it cannot, or with ROW_UNSEEN. */
void row_read(int argc, char **argv, struct row *out);

/* Ends the program with what explain would print and exit with. */
void row_end(enum stage stage, enum outcome outcome, enum reason reason) __attribute__((noreturn));
