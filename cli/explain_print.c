/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * What `explain` prints: the verdict as a line or a JSON object, with --trace the way to it.
 */

#include <assert.h>
#include <jansson.h>
#include <stdio.h>

#include "cli/explain.h"

#define PLACE_SIZE 512

static const char *format_place(const struct policy_image *image, const struct place *place,
				char text[PLACE_SIZE])
{
	const char *source = policy_source_name(image, place->source);

	if (place->line > 0)
		snprintf(text, PLACE_SIZE, "%.480s:%u", source, place->line);
	else
		snprintf(text, PLACE_SIZE, "%.480s",
			 place->source == SOURCE_BUILTIN ? "default" : source);
	return text;
}

static const char *const results[] = {
	[TRACE_STAGE] = "",        [TRACE_NAME] = "",           [TRACE_ADDRESS] = "",
	[TRACE_FLOW] = "",         [TRACE_LISTED] = "matched",  [TRACE_PASSED] = "passed",
	[TRACE_LIFTED] = "lifted", [TRACE_REFUSED] = "refused",
};
static_assert(sizeof(results) / sizeof(results[0]) == TRACE_KINDS, "one word a kind");

static const char *rule_of(const struct trace_step *step)
{
	return step->kind == TRACE_LISTED ? "allow list" : reason_text(step->reason);
}

static void print_step(const struct explain *explain, const struct trace_step *step)
{
	char place[PLACE_SIZE];

	switch (step->kind) {
	case TRACE_STAGE:
		printf("%s:\n", stage_text(step->stage));
		return;
	case TRACE_NAME:
		printf("  as %s:\n", step->name.text);
		return;
	case TRACE_ADDRESS:
		puts("  as a bare address:");
		return;
	case TRACE_FLOW:
		puts("  whatever its name:");
		return;
	case TRACE_LISTED:
	case TRACE_PASSED:
	case TRACE_LIFTED:
	case TRACE_REFUSED:
	case TRACE_KINDS:
		break;
	}
	printf("    %s %s", rule_of(step), results[step->kind]);
	if (step->kind == TRACE_LIFTED && step->place.line == 0)
		fputs(" by the configuration", stdout);
	else if (step->place.line > 0)
		printf("%s %s", step->kind == TRACE_LISTED ? "," : " by",
		       format_place(explain->image, &step->place, place));
	putchar('\n');
}

/* How many steps there are to print. */
static size_t steps(const struct trace *trace)
{
	return trace->count < trace->room ? trace->count : trace->room;
}

static void print_steps(const struct explain *explain)
{
	const struct trace *trace = &explain->trace;

	for (size_t i = 0; i < steps(trace); i++)
		print_step(explain, &trace->steps[i]);
	if (trace->count > trace->room)
		printf("    … and %zu steps more\n", trace->count - trace->room);
}

/* Each rule as an object of its own, with the stage and the name it was asked for. */
static json_t *steps_json(const struct explain *explain)
{
	const struct trace *trace = &explain->trace;
	const struct trace_step *stage = NULL, *about = NULL;
	json_t *list = json_array();
	char place[PLACE_SIZE];

	for (size_t i = 0; i < steps(trace); i++) {
		const struct trace_step *step = &trace->steps[i];
		if (step->kind == TRACE_STAGE)
			stage = step;
		if (step->kind < TRACE_LISTED) {
			about = step;
			continue;
		}
		json_t *object = json_pack("{s:s, s:s}", "rule", rule_of(step), "result",
					   results[step->kind]);
		if (stage != NULL)
			json_object_set_new(object, "stage", json_string(stage_text(stage->stage)));
		if (about != NULL && about->kind == TRACE_NAME)
			json_object_set_new(object, "name", json_string(about->name.text));
		if (step->kind != TRACE_PASSED && step->place.line > 0)
			json_object_set_new(
				object, "place",
				json_string(format_place(explain->image, &step->place, place)));
		json_array_append_new(list, object);
	}
	return list;
}

static int print_json(const struct explain *explain, const struct explanation *explanation,
		      const char *rule)
{
	const struct verdict *verdict = &explanation->verdict;
	json_t *object = json_pack(
		"{s:s, s:s, s:s, s:s, s:b}", "verdict", outcome_text(verdict->outcome), "reason",
		reason_text(verdict->reason), "rule", rule, "stage", stage_text(explanation->stage),
		"enforced", verdict->outcome == OUTCOME_DENY ? verdict->enforced : true);

	if (explanation->hook != NULL)
		json_object_set_new(object, "hook", json_string(explanation->hook));
	if (explain->subject.trace != NULL)
		json_object_set_new(object, "trace", steps_json(explain));
	if (object == NULL || json_dumpf(object, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) != 0) {
		json_decref(object);
		return command_error(STATUS_USAGE, "cannot write JSON");
	}
	putchar('\n');
	json_decref(object);
	return 0;
}

/* The way, and one line: "deny metadata, by floor.txt:12, at stage connect". */
static int print_text(const struct explain *explain, const struct explanation *explanation,
		      const char *rule)
{
	const struct verdict *verdict = &explanation->verdict;

	if (explain->subject.trace != NULL)
		print_steps(explain);
	fputs(outcome_text(verdict->outcome), stdout);
	if (verdict->outcome == OUTCOME_DENY)
		printf(" %s, by %s", reason_text(verdict->reason), rule);
	else if (verdict->outcome == OUTCOME_ALLOW && verdict->rule.line > 0)
		printf(", by %s", rule);
	printf(", at stage %s", stage_text(explanation->stage));
	if (explanation->note != NULL)
		printf(": %s", explanation->note);
	if (explanation->hook != NULL)
		printf(", before the hook %s is asked (--ask-hook)", explanation->hook);
	if (verdict->outcome == OUTCOME_DENY && !verdict->enforced)
		fputs(" (mode: audit, so it is reported and let through)", stdout);
	putchar('\n');
	return 0;
}

int explain_print(const struct explain *explain, bool json, const struct explanation *explanation)
{
	char rule[PLACE_SIZE];
	int status;

	format_place(explain->image, &explanation->verdict.rule, rule);
	status = json ? print_json(explain, explanation, rule)
		      : print_text(explain, explanation, rule);
	if (status != 0)
		return status;
	switch (explanation->verdict.outcome) {
	case OUTCOME_ALLOW:
		return STATUS_OK;
	case OUTCOME_WAIT:
		return STATUS_WAIT;
	case OUTCOME_DENY:
	case OUTCOME_COUNT:
		break;
	}
	return STATUS_DENY;
}
