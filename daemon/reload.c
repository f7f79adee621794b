/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A reload: read the whole file, validate it, build the image, give it to the resolver, then to the
 * gate, and only then make it the policy in force. Any failure on the way keeps the running policy;
 * a child that had taken the new one is sent the old one again.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/notify.h"
#include "daemon/report.h"
#include "daemon/state.h"

/* Findings that one answer carries; the rest is in the log. */
#define FINDINGS_ANSWERED 32

static void release(struct reload *reload)
{
	image_release(&reload->image);
	config_free(reload->config);
	reload->config = NULL;
	reload->asker = NULL;
	reload->state = RELOAD_IDLE;
}

void reload_release(struct parent *parent)
{
	release(&parent->reload);
}

static void finish(struct parent *parent, json_t *answer)
{
	struct control_connection *asker = parent->reload.asker;

	release(&parent->reload);
	notify("READY=1");
	if (asker != NULL)
		control_answer(asker, answer, -1);
	else
		json_decref(answer);
	for (size_t i = 0; i < CHILD_COUNT; i++)
		parent_converge(parent, &parent->children[i]);
}

static void fail(struct parent *parent, const char *problem)
{
	json_t *text = json_string(problem);

	report("reload refused, the running policy stays: %s", problem);
	finish(parent, json_pack("{s:b,s:o}", "ok", 0, "error",
				 text != NULL ? text : json_string("unprintable error")));
}

/* Everything the running parent cannot change; the first difference, or NULL. */
static const char *fixed_difference(const struct config *a, const struct config *b)
{
	const struct settings *x = &a->settings, *y = &b->settings;

	if (x->resolver.listen_count != y->resolver.listen_count ||
	    memcmp(x->resolver.listen, y->resolver.listen,
		   x->resolver.listen_count * sizeof(x->resolver.listen[0])) != 0)
		return "resolver: {listen}";
	if (x->resolver.threads != y->resolver.threads)
		return "resolver: {threads}";
	if (a->gate_enabled != b->gate_enabled)
		return "gate: {enabled}";
	if (x->gate.queue != y->gate.queue)
		return "gate: {queue}";
	if (x->gate.hook != y->gate.hook)
		return "gate: {hook}";
	if (x->gate.mark_mask != y->gate.mark_mask)
		return "gate: {mark_mask}";
	if (a->pins.capacity != b->pins.capacity || a->pins.per_client != b->pins.per_client)
		return "pins";
	if (strcmp(a->control_socket, b->control_socket) != 0)
		return "control: {socket}";
	if (strcmp(a->user, b->user) != 0)
		return "user";
	return NULL;
}

static json_t *findings_json(const struct config_findings *findings, const char *path)
{
	json_t *list = json_array();

	for (size_t i = 0; i < findings->count && i < FINDINGS_ANSWERED; i++) {
		const struct config_finding *item = &findings->items[i];
		char text[768];
		snprintf(text, sizeof(text), "%s:%u:%u: %s: %s", path, item->line, item->column,
			 item->warning ? "warning" : "error", item->text);
		json_t *line = json_string(text);
		json_array_append_new(list, line != NULL ? line : json_string("?"));
	}
	return list;
}

/* Reads the file. False: it was refused and answered. */
static bool read_config(struct parent *parent)
{
	const char *path = parent->options->config_path;
	struct config_findings findings = {.count = 0};
	struct config *config = config_read(path, &findings);

	config_findings_print(&findings, path, stderr);
	if (config == NULL) {
		json_t *list = findings_json(&findings, path);
		report("reload refused, the running policy stays: %s has %zu errors", path,
		       findings.errors);
		finish(parent, json_pack("{s:b,s:s,s:o}", "ok", 0, "error",
					 "the configuration has errors", "findings", list));
	}
	config_findings_free(&findings);
	parent->reload.config = config;
	return config != NULL;
}

static void commit(struct parent *parent)
{
	struct reload *reload = &parent->reload;
	char problem[512] = "";
	struct ruleset ruleset;
	json_t *answer;

	if (strcmp(parent->config->log_file, reload->config->log_file) != 0)
		audit_switch(&parent->audit, reload->config->log_file, problem, sizeof(problem));
	image_release(&parent->image);
	config_free(parent->owned);
	parent->image = reload->image;
	parent->config = parent->owned = reload->config;
	reload->image = IMAGE_EMPTY;
	reload->config = NULL;

	/* From here on the policy is in force; what goes wrong is reported, and repaired by the
	 * guard. */
	if (parent->guard.installed &&
	    guard_ruleset(parent->config, parent->uid, &ruleset, problem, sizeof(problem)) == 0 &&
	    memcmp(&ruleset, &parent->guard.ruleset, sizeof(ruleset)) != 0) {
		parent->guard.ruleset = ruleset;
		guard_install(&parent->guard, &ruleset, loop_now(), problem, sizeof(problem));
	}
	if (problem[0] != '\0')
		report("the new policy is in force, but not all of it: %s", problem);
	report("policy reloaded, generation %llu", (unsigned long long)parent->image.generation);
	answer =
		json_pack("{s:b,s:I}", "ok", 1, "generation", (json_int_t)parent->image.generation);
	if (problem[0] != '\0')
		json_object_set_new(answer, "warning", json_string(problem));
	finish(parent, answer);
}

/* Goes on with the next child that has to take the new policy. One that is not ready gets it later.
 */
static void advance(struct parent *parent)
{
	struct reload *reload = &parent->reload;

	while (reload->state != RELOAD_IDLE) {
		struct child *child =
			&parent->children[reload->state == RELOAD_RESOLVER ? CHILD_RESOLVER
									   : CHILD_GATE];
		if (child->state == CHILD_READY) {
			if (child->reloading == 0)
				child_reload(child, &reload->image, loop_now());
			return; /* its answer or its death goes on */
		}
		if (reload->state == RELOAD_GATE) {
			commit(parent);
			return;
		}
		reload->state = RELOAD_GATE;
	}
}

void reload_begin(struct parent *parent, struct control_connection *asker)
{
	char problem[512];

	if (parent->reload.state != RELOAD_IDLE || !parent->ready) {
		if (asker != NULL)
			control_fail(asker, "a start or a reload is under way");
		return;
	}
	for (size_t i = 0; i < CHILD_COUNT; i++) {
		if (parent->children[i].reloading != 0) {
			if (asker != NULL)
				control_fail(asker, "a child is still taking the last policy");
			return;
		}
	}
	notify_reloading();
	parent->reload.asker = asker;
	if (asker != NULL)
		asker->waiting = true;
	if (parent->options->config_path == NULL) {
		fail(parent, "there is no configuration file to read again");
		return;
	}
	if (!read_config(parent))
		return;
	const char *fixed = fixed_difference(parent->config, parent->reload.config);
	if (fixed != NULL) {
		snprintf(problem, sizeof(problem), "%s cannot change while running; restart",
			 fixed);
		fail(parent, problem);
		return;
	}
	if (audit_probe(parent->reload.config->log_file, problem, sizeof(problem)) != 0 ||
	    image_build(parent->reload.config, ++parent->generation, &parent->reload.image, problem,
			sizeof(problem)) != 0) {
		fail(parent, problem);
		return;
	}
	parent->reload.state = RELOAD_RESOLVER;
	advance(parent);
}

void reload_answered(struct parent *parent, struct child *child, const char *problem)
{
	char text[640];

	if (parent->reload.state == RELOAD_IDLE) {
		/* It was to go back to the policy in force and cannot: a fresh start can. */
		if (problem != NULL)
			child_end(child, loop_now());
		return;
	}
	if (problem != NULL) {
		snprintf(text, sizeof(text), "%s: %s", child_kind_text(child->kind), problem);
		fail(parent, text);
		return;
	}
	if (parent->reload.state == RELOAD_GATE) {
		commit(parent);
		return;
	}
	parent->reload.state = RELOAD_GATE;
	advance(parent);
}

void reload_child_died(struct parent *parent, struct child *child)
{
	enum child_kind asked =
		parent->reload.state == RELOAD_RESOLVER ? CHILD_RESOLVER : CHILD_GATE;
	char text[640];

	if (parent->reload.state == RELOAD_IDLE || child->kind != asked)
		return;
	snprintf(text, sizeof(text), "%s died over it: %s", child_kind_text(child->kind),
		 child->problem);
	fail(parent, text);
}

void reload_asker_gone(struct parent *parent, struct control_connection *asker)
{
	if (parent->reload.asker == asker)
		parent->reload.asker = NULL;
}
