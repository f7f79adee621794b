/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rules/tell.h"

#include <stdbool.h>

static void add(struct trace *trace, struct trace_step step)
{
	if (trace->count < trace->room)
		trace->steps[trace->count] = step;
	trace->count++;
}

void tell_begin(struct trace *trace, enum trace_kind kind, enum stage stage,
		const struct name *name)
{
	struct trace_step step = {.kind = kind, .stage = stage};

	if (kind == TRACE_NAME)
		step.name = *name;
	add(trace, step);
}

void tell_listed(struct trace *trace, struct place entry)
{
	add(trace, (struct trace_step){.kind = TRACE_LISTED, .place = entry});
}

/* Whether the step for REASON stands already, since the last beginning. */
static bool is_told(const struct trace *trace, enum trace_kind kind, enum reason reason)
{
	size_t at = trace->count < trace->room ? trace->count : trace->room;

	while (at > 0) {
		const struct trace_step *step = &trace->steps[--at];
		if (step->kind < TRACE_LISTED)
			break;
		if (step->kind == kind && step->reason == reason)
			return true;
	}
	return false;
}

void tell_lifted(struct trace *trace, enum reason reason, struct place by)
{
	if (!is_told(trace, TRACE_LIFTED, reason))
		add(trace,
		    (struct trace_step){.kind = TRACE_LIFTED, .reason = reason, .place = by});
}

void tell_rules(struct trace *trace, uint32_t reasons, const struct verdict *refusal)
{
	for (enum reason reason = REASON_NONE; reason < REASON_COUNT; reason++) {
		if (refusal != NULL && reason == refusal->reason) {
			add(trace, (struct trace_step){.kind = TRACE_REFUSED,
						       .reason = reason,
						       .place = refusal->rule});
			return;
		}
		if ((reasons & UINT32_C(1) << reason) != 0 && !is_told(trace, TRACE_LIFTED, reason))
			add(trace, (struct trace_step){.kind = TRACE_PASSED, .reason = reason});
	}
}
