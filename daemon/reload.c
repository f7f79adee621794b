/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A new policy: of the configuration file, read again whole and validated, or of other registered clients
 * (changes.c). The image is given to the resolver first, which refuses a bad trust anchor before the gate
 * has changed anything, then to the gate, and only then is the new policy in force. Any failure on the way
 * keeps the running one; a child that had taken the new one is sent the old one again.
 *
 * A child that is about to start has the policy of before and is waited for; one that is down will
 * start with the new one. So no child that runs has another policy than the one in force, and what waits
 * for a commit may rely on that.
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
	registry_release(&reload->registry);
	config_free(reload->config);
	reload->config = NULL;
	reload->asked = NULL;
	reload->asker = NULL;
	reload->state = RELOAD_IDLE;
}

void reload_release(struct parent *parent)
{
	release(&parent->reload);
}

/* Sends the policy in force to children that have another one. */
static void converge(struct parent *parent)
{
	for (size_t i = 0; i < CHILD_COUNT; i++) {
		struct child *child = &parent->children[i];
		if (parent->reload.state == RELOAD_IDLE && child->state == CHILD_READY &&
		    child->reloading == 0 && child->generation != parent->image.generation)
			child_reload(child, &parent->image, loop_now());
	}
}

/* The file's reload is over. */
static void finish(struct parent *parent, json_t *answer)
{
	struct control_connection *asker = parent->reload.asker;

	release(&parent->reload);
	notify("READY=1");
	if (asker != NULL)
		control_answer(asker, answer, -1);
	else
		json_decref(answer);
}

static void fail(struct parent *parent, const char *problem)
{
	if (parent->reload.config == NULL && parent->staged != NULL) {
		release(&parent->reload);
		changes_failed(parent, problem);
	} else {
		json_t *text = json_string(problem);
		report("reload refused, the running policy stays: %s", problem);
		finish(parent, json_pack("{s:b,s:o}", "ok", 0, "error",
					 text != NULL ? text : json_string("unprintable error")));
	}
	converge(parent);
	reload_next(parent);
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

/* The new configuration takes the place of the old one; the answer to whoever asked. */
static json_t *commit_config(struct parent *parent, uint64_t generation)
{
	struct reload *reload = &parent->reload;
	char problem[512] = "";
	struct ruleset ruleset;

	if (strcmp(parent->config->log_file, reload->config->log_file) != 0)
		audit_switch(&parent->audit, reload->config->log_file, problem, sizeof(problem));
	registry_release(&parent->registry);
	config_free(parent->owned);
	parent->registry = reload->registry;
	parent->config = parent->owned = reload->config;
	reload->registry = (struct registry){.count = 0};
	reload->config = NULL;

	/* From here on the policy is in force; what goes wrong is reported, and repaired by the
	 * guard. */
	if (parent->guard.installed &&
	    parent_ruleset(parent, &parent->registry, &ruleset, problem, sizeof(problem)) == 0 &&
	    memcmp(&ruleset, &parent->guard.ruleset, sizeof(ruleset)) != 0) {
		parent->guard.ruleset = ruleset;
		guard_install(&parent->guard, &ruleset, loop_now(), problem, sizeof(problem));
	}
	if (problem[0] != '\0')
		report("the new policy is in force, but not all of it: %s", problem);
	report("policy reloaded, generation %llu", (unsigned long long)generation);
	json_t *answer = json_pack("{s:b,s:I}", "ok", 1, "generation", (json_int_t)generation);
	if (problem[0] != '\0')
		json_object_set_new(answer, "warning", json_string(problem));
	return answer;
}

static void commit(struct parent *parent)
{
	struct reload *reload = &parent->reload;

	image_release(&parent->image);
	parent->image = reload->image;
	reload->image = IMAGE_EMPTY;
	if (reload->config != NULL) {
		finish(parent, commit_config(parent, parent->image.generation));
	} else {
		changes_committed(parent);
		release(reload);
	}
	converge(parent);
	reload_next(parent);
}

/* Goes on with the next child that has to take the new policy. */
static void advance(struct parent *parent)
{
	struct reload *reload = &parent->reload;

	for (size_t i = 0; i < CHILD_COUNT; i++) {
		struct child *child = &parent->children[i];
		if (child->state == CHILD_STARTING || child->state == CHILD_ENDING)
			return; /* reload_child_ready() or reload_child_died() goes on */
		if (child->state != CHILD_READY || child->generation == reload->image.generation)
			continue;
		if (reload->asked == NULL) {
			reload->asked = child;
			child_reload(child, &reload->image, loop_now());
		}
		return; /* its answer or its death goes on */
	}
	commit(parent);
}

void reload_start(struct parent *parent)
{
	parent->reload.state = RELOAD_RUNS;
	parent->reload.asked = NULL;
	advance(parent);
}

static void begin_file(struct parent *parent, struct control_connection *asker)
{
	struct reload *reload = &parent->reload;
	char problem[512];

	notify_reloading();
	reload->asker = asker;
	if (parent->options->config_path == NULL) {
		fail(parent, "there is no configuration file to read again");
		return;
	}
	if (!read_config(parent)) {
		reload_next(parent);
		return;
	}
	const char *fixed = fixed_difference(parent->config, reload->config);
	if (fixed != NULL) {
		snprintf(problem, sizeof(problem), "%s cannot change while running; restart",
			 fixed);
		fail(parent, problem);
		return;
	}
	if (registry_reread(&parent->registry, reload->config, &reload->registry, problem,
			    sizeof(problem)) != 0 ||
	    audit_probe(reload->config->log_file, problem, sizeof(problem)) != 0 ||
	    parent_image(parent, reload->config, &reload->registry, &reload->image, problem,
			 sizeof(problem)) != 0) {
		fail(parent, problem);
		return;
	}
	reload_start(parent);
}

/* A start, a reload or a child that goes back to the old policy is under way. */
static bool is_busy(const struct parent *parent)
{
	for (size_t i = 0; i < CHILD_COUNT; i++)
		if (parent->children[i].reloading != 0)
			return true;
	return parent->reload.state != RELOAD_IDLE || !parent->ready || parent->ending;
}

void reload_next(struct parent *parent)
{
	struct reload *reload = &parent->reload;
	struct control_connection *asker = reload->wanted_by;

	if (is_busy(parent))
		return;
	if (reload->wanted) {
		reload->wanted = false;
		reload->wanted_by = NULL;
		begin_file(parent, asker);
	} else if (parent->pending != NULL) {
		changes_begin(parent);
	}
}

void reload_request(struct parent *parent, struct control_connection *asker)
{
	struct reload *reload = &parent->reload;

	/* The one that waits reads the file as it is by then. */
	if (reload->wanted && asker != NULL) {
		control_fail(asker, "a reload waits already");
		return;
	}
	reload->wanted = true;
	reload->wanted_by = asker != NULL ? asker : reload->wanted_by;
	if (asker != NULL)
		asker->waiting = true;
	reload_next(parent);
}

void reload_answered(struct parent *parent, struct child *child, const char *problem)
{
	char text[640];

	if (child != parent->reload.asked) {
		/* It was to go back to the policy in force and cannot: a fresh start can. */
		if (problem != NULL)
			child_end(child, loop_now());
		reload_next(parent);
		return;
	}
	parent->reload.asked = NULL;
	if (problem == NULL) {
		advance(parent);
		return;
	}
	snprintf(text, sizeof(text), "%s: %s", child_kind_text(child->kind), problem);
	fail(parent, text);
}

void reload_child_ready(struct parent *parent, struct child *child)
{
	(void)child;
	if (parent->reload.state == RELOAD_RUNS) {
		advance(parent);
		return;
	}
	converge(parent);
	reload_next(parent);
}

void reload_child_died(struct parent *parent, struct child *child)
{
	char text[640];

	if (parent->reload.state == RELOAD_IDLE) {
		reload_next(parent);
		return;
	}
	if (child != parent->reload.asked) {
		advance(parent);
		return;
	}
	snprintf(text, sizeof(text), "%s died over it: %s", child_kind_text(child->kind),
		 child->problem);
	fail(parent, text);
}

void reload_asker_gone(struct parent *parent, struct control_connection *asker)
{
	if (parent->reload.asker == asker)
		parent->reload.asker = NULL;
	if (parent->reload.wanted_by == asker)
		parent->reload.wanted_by = NULL;
}
