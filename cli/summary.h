/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What an audit log tells, for people: which hosts were reached and which were refused, with reasons
 * and counts, as Markdown or as a page of HTML.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct summary;

struct summary *summary_new(void); /* NULL: out of memory */
void summary_free(struct summary *summary);

/* One line of the log. 0, -EINVAL when it is none, or -ENOMEM. */
int summary_add(struct summary *summary, const char *line, size_t length);

/* How many refusals there were, those of `mode: audit` that were let through included. */
uint64_t summary_refused(const struct summary *summary);

/* Everything from strangers is escaped. Once, after all was added. */
void summary_print(struct summary *summary, bool html, FILE *out);
