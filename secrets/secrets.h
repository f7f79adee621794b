/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the shape of an API key or token in a cleartext request target.
 *
 * Three views are searched: the target as sent, percent-decoded once (RFC 3986 section 2.1), and
 * decoded twice. A malformed escape stays as it is and disables nothing. The shapes are compiled in
 * from rules/secret-shapes.txt.
 *
 * secrets_new() and the first searches allocate. After secrets_settle() secrets_find() does not, and
 * needs no system call.
 */

#include <stddef.h>
#include <stdint.h>

#define SECRETS_TARGET_MAX 65536u /* a request head's own limit */

struct secrets; /* compiled shapes and scratch memory: one a thread */

/* A finding. NAME is static; it is never the secret itself. LINE stands in secret-shapes.txt. */
struct secret {
	const char *name;
	uint32_t line;
};

/* 0, -ENOMEM, or -EINVAL with a line for people in *PROBLEM (static) when a shape does not compile.
 */
int secrets_new(struct secrets **out, const char **problem);
void secrets_free(struct secrets *secrets);

/*
 * For a program that searches as long as it lives: compiles the shapes to machine code, and
 * allocates nothing from here on. No memory of the process can be written and executed afterwards.
 * At most once a process, before it confines itself, and SECRETS is not freed. Where there can be
 * no machine code the search stays slow. 0, -EPROTO when an example of the table is not found, or
 * the errno of mprotect(2).
 */
int secrets_settle(struct secrets *secrets);

/*
 * 1 and *OUT when TARGET carries a secret, 0 when it does not. When the search had to give up
 * (match limit, a target over SECRETS_TARGET_MAX) the answer is 1 with the name "match-limit" and
 * line 0: what cannot be searched is not let through.
 */
int secrets_find(struct secrets *secrets, const char *target, size_t length, struct secret *out);
