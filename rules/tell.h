/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Writes the steps of a trace (include/trace.h). Private to rules/; the trace is never NULL. */

#include <stdint.h>

#include "trace.h"

/* STAGE, NAME, ADDRESS and FLOW; NAME is read for TRACE_NAME alone. */
void tell_begin(struct trace *trace, enum trace_kind kind, enum stage stage,
		const struct name *name);

void tell_listed(struct trace *trace, struct place entry);

/* A rule that would have refused; tell_rules() of the same REASON then says no more of it. */
void tell_lifted(struct trace *trace, enum reason reason, struct place by);

/*
 * The rules of REASONS (a set of bits by enum reason) were asked in their order: all passed, or one
 * refused, and those before it passed.
 */
void tell_rules(struct trace *trace, uint32_t reasons, const struct verdict *refusal);
