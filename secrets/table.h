/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The table that secrets/generate.py makes from rules/secret-shapes.txt. */

#include <stddef.h>
#include <stdint.h>

struct secret_shape {
	const char *name;
	uint32_t line;          /* of its heading in secret-shapes.txt */
	const char *pattern;    /* PCRE2, without the boundary before it */
	const char *const *yes; /* examples, NULL-terminated: for the tests */
	const char *const *no;
};

extern const struct secret_shape secret_shapes[];
extern const size_t secret_shape_count;
