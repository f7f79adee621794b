/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * client-add, client-remove, client-list: changes of the registry at the request of the control socket.
 *
 * A change waits in `pending` until no reload is under way; then all that wait are tried, in their order,
 * on a copy of the registry. What is refused or changes nothing is answered at once, the rest is `staged`
 * and goes to both children as one new policy. The order of the steps keeps whoever is added governed
 * from the answer on, and whoever is removed until then:
 *
 *   the file is written            or a restart would forget somebody who was told that he is governed
 *   rules for both, old and new    before the policy: what is governed without being known is judged by
 *                                  the policy `default`
 *   resolver, then gate            reload.c; each child that runs has the new policy now
 *   the registry is replaced       and who was removed loses his pins
 *   rules for the new alone
 *   answers
 *
 * A failure on the way undoes the steps before it and is the answer to all of them.
 */

#include <stdlib.h>
#include <string.h>

#include "daemon/report.h"
#include "daemon/state.h"

/* Of one request; a line for people. */
#define PROBLEM_SIZE 512

struct change {
	struct change *next;
	struct control_connection *asker; /* NULL: gone; the change is made all the same */
	bool remove;
	bool changed;                   /* staged: not just the same again */
	char name[CLIENT_NAME_MAX + 1]; /* of whom to remove */
	char *line;                     /* of whom to add */
};

static void change_free(struct change *change)
{
	free(change->line);
	free(change);
}

static void put(struct change **list, struct change *change)
{
	while (*list != NULL)
		list = &(*list)->next;
	change->next = NULL;
	*list = change;
}

/* Tries CHANGE on REGISTRY; false when it was refused and answered. */
static bool try(struct parent *parent, struct change *change, struct registry *registry)
{
	char problem[PROBLEM_SIZE];
	enum registry_result result =
		change->remove ? registry_remove(registry, parent->config, change->name, problem,
						 sizeof(problem))
			       : registry_add(registry, parent->config, change->line,
					      parent->serial + 1, problem, sizeof(problem));

	switch (result) {
	case REGISTRY_CHANGED:
		change->changed = true;
		parent->serial++;
		return true;
	case REGISTRY_SAME:
		return true;
	case REGISTRY_INVALID:
	case REGISTRY_TAKEN:
		break;
	}
	if (change->asker != NULL)
		control_refuse(change->asker, result == REGISTRY_TAKEN ? "taken" : "invalid",
			       problem);
	return false;
}

/* Tries all that wait; true when REGISTRY is not the one in force any more. */
static bool try_all(struct parent *parent, struct registry *registry)
{
	bool changed = false;

	while (parent->pending != NULL) {
		struct change *change = parent->pending;
		parent->pending = change->next;
		if (!try(parent, change, registry)) {
			change_free(change);
			continue;
		}
		changed = changed || change->changed;
		put(&parent->staged, change);
	}
	return changed;
}

/* Those of NOW, and after them those of NEXT that are not among them. */
static int join(const struct registry *now, const struct registry *next, struct registry *out)
{
	int error = registry_copy(now, out);

	for (size_t i = 0; i < next->count && error == 0; i++)
		if (!registry_holds(now, next->items[i]))
			error = registry_put(out, next->items[i]);
	return error;
}

/* The rules for REGISTRY, where we keep rules and they are others. */
static int change_rules(struct parent *parent, const struct registry *registry, char *problem,
			size_t size)
{
	struct ruleset ruleset;
	int error = 0;

	if (!parent->guard.installed)
		return 0;
	error = parent_ruleset(parent, registry, &ruleset, problem, size);
	if (error == 0 && memcmp(&ruleset, &parent->guard.ruleset, sizeof(ruleset)) != 0)
		error = guard_install(&parent->guard, &ruleset, loop_now(), problem, size);
	return error;
}

static int widen_rules(struct parent *parent, char *problem, size_t size)
{
	struct registry both = {.count = 0};
	int error = join(&parent->registry, &parent->reload.registry, &both);

	if (error != 0)
		snprintf(problem, size, "out of memory");
	else
		error = change_rules(parent, &both, problem, size);
	registry_release(&both);
	return error;
}

/* Answers all that are staged: PROBLEM, or NULL. */
static void answer_staged(struct parent *parent, const char *problem)
{
	while (parent->staged != NULL) {
		struct change *change = parent->staged;
		parent->staged = change->next;
		if (change->asker != NULL && problem != NULL)
			control_refuse(change->asker, "failed", problem);
		else if (change->asker != NULL)
			control_answer(change->asker,
				       json_pack("{s:b,s:I,s:b}", "ok", 1, "generation",
						 (json_int_t)parent->image.generation, "changed",
						 change->changed),
				       -1);
		change_free(change);
	}
}

void changes_failed(struct parent *parent, const char *problem)
{
	char again[PROBLEM_SIZE];

	report("registered clients stay as they were: %s", problem);
	if (registry_save(&parent->registry, parent->config, again, sizeof(again)) != 0 ||
	    change_rules(parent, &parent->registry, again, sizeof(again)) != 0)
		report("and not all could be undone: %s", again);
	answer_staged(parent, problem);
}

/* Its queries and flows are another client's already; the pins would be found by nobody. */
static void drop_pins(struct parent *parent, const struct registry *old)
{
	struct child *resolver = &parent->children[CHILD_RESOLVER];

	for (size_t i = 0; i < old->count; i++) {
		struct client_key key = client_key_of_serial(old->items[i]->client->source.serial);
		if (!registry_holds(&parent->registry, old->items[i]) &&
		    resolver->state == CHILD_READY)
			child_drop_client(resolver, &key);
	}
}

void changes_committed(struct parent *parent)
{
	struct registry old = parent->registry;
	char problem[PROBLEM_SIZE];

	parent->registry = parent->reload.registry;
	parent->reload.registry = (struct registry){.count = 0};
	drop_pins(parent, &old);
	registry_release(&old);
	/* Too many rules govern more than they should and nothing less. */
	if (change_rules(parent, &parent->registry, problem, sizeof(problem)) != 0)
		report("the rules of removed clients stay: %s", problem);
	report("%zu registered clients, generation %llu", parent->registry.count,
	       (unsigned long long)parent->image.generation);
	answer_staged(parent, NULL);
}

void changes_begin(struct parent *parent)
{
	struct registry *next = &parent->reload.registry;
	char problem[PROBLEM_SIZE] = "out of memory";
	int error = registry_copy(&parent->registry, next);

	if (!try_all(parent, next)) {
		registry_release(next);
		answer_staged(parent, NULL);
		return;
	}
	error = registry_save(next, parent->config, problem, sizeof(problem));
	if (error == 0)
		error = widen_rules(parent, problem, sizeof(problem));
	if (error == 0)
		error = parent_image(parent, parent->config, next, &parent->reload.image, problem,
				     sizeof(problem));
	if (error != 0) {
		registry_release(next);
		changes_failed(parent, problem);
		return;
	}
	reload_start(parent);
}

/* A request without its command: what the file keeps. */
static char *entry_of(const json_t *body)
{
	json_t *entry = json_copy((json_t *)(uintptr_t)body);
	char *line;

	json_object_del(entry, "command");
	line = json_dumps(entry, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(entry);
	return line;
}

void changes_request(struct parent *parent, struct control_connection *asker, bool remove,
		     const json_t *body)
{
	const char *name = json_string_value(json_object_get(body, "name"));
	struct change *change;

	if (remove && (name == NULL || json_object_size(body) != 2)) {
		control_refuse(asker, "invalid", "client-remove takes a \"name\" and nothing else");
		return;
	}
	change = calloc(1, sizeof(*change));
	if (change != NULL && !remove)
		change->line = entry_of(body);
	if (change == NULL || (!remove && change->line == NULL)) {
		free(change);
		control_refuse(asker, "failed", "out of memory");
		return;
	}
	change->asker = asker;
	change->remove = remove;
	/* A longer name is nobody's. */
	if (remove)
		snprintf(change->name, sizeof(change->name), "%s",
			 strlen(name) <= CLIENT_NAME_MAX ? name : "");
	asker->waiting = true;
	put(&parent->pending, change);
	reload_next(parent);
}

static void forget_asker(struct change *list, const struct control_connection *asker)
{
	for (; list != NULL; list = list->next)
		if (list->asker == asker)
			list->asker = NULL;
}

void changes_asker_gone(struct parent *parent, const struct control_connection *asker)
{
	forget_asker(parent->pending, asker);
	forget_asker(parent->staged, asker);
}

static void free_list(struct change *list)
{
	while (list != NULL) {
		struct change *change = list;
		list = change->next;
		change_free(change);
	}
}

void changes_release(struct parent *parent)
{
	free_list(parent->pending);
	free_list(parent->staged);
	parent->pending = parent->staged = NULL;
	registry_release(&parent->registry);
}

/* One client as client-add takes it. */
static json_t *client_json(const struct client_source *client, const char *policy)
{
	json_t *object = json_pack("{s:s,s:s,s:b}", "name", client->name, "policy", policy,
				   "registered", client->serial != 0);
	json_t *addresses = json_array();
	char text[ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < client->selector_count; i++) {
		const struct client_selector *selector = &client->selectors[i];
		switch (selector->kind) {
		case SELECT_PREFIX:
			json_array_append_new(addresses, json_string(registry_selector_text(
								 selector, text, sizeof(text))));
			break;
		case SELECT_INTERFACE:
			json_object_set_new(object, "interface", json_string(selector->interface));
			break;
		case SELECT_UID:
			json_object_set_new(object, "uid", json_integer(selector->uid));
			break;
		case SELECT_CGROUP:
			json_object_set_new(object, "cgroup", json_string(selector->cgroup_path));
			break;
		}
	}
	if (json_array_size(addresses) > 0)
		json_object_set(object, "addresses", addresses);
	json_decref(addresses);
	return object;
}

void changes_list(struct parent *parent, struct control_connection *asker)
{
	json_t *list = json_array();
	struct client_source *clients;
	size_t count;

	if (registry_clients(&parent->registry, parent->config, &clients, &count) != 0) {
		json_decref(list);
		control_fail(asker, "out of memory");
		return;
	}
	for (size_t i = 0; i < count; i++)
		json_array_append_new(
			list, client_json(&clients[i],
					  parent->config->source.policies[clients[i].policy].name));
	free(clients);
	control_answer(asker,
		       json_pack("{s:b,s:I,s:o}", "ok", 1, "generation",
				 (json_int_t)parent->image.generation, "clients", list),
		       -1);
}
