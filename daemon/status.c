/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Answers of the control socket. A status asks both children for their counters first and waits for
 * them a little; a child that does not answer is shown with what it said last.
 */

#include <string.h>
#include <unistd.h>

#include "daemon/state.h"

#define STATUS_WAIT_MS 500u

static json_t *counters_json(const struct message_status *status)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < COUNTER_COUNT; i++)
		if (status->counters[i] != 0)
			json_object_set_new(object, counter_text((enum counter)i),
					    json_integer((json_int_t)status->counters[i]));
	return object;
}

static json_t *reasons_json(const struct message_status *status)
{
	json_t *object = json_object();

	for (unsigned i = 0; i < REASON_COUNT; i++)
		if (status->by_reason[i] != 0)
			json_object_set_new(object, reason_text((enum reason)i),
					    json_integer((json_int_t)status->by_reason[i]));
	return object;
}

/* A text that may hold anything a file name may hold. */
static json_t *text_json(const char *text)
{
	json_t *string = json_string(text);

	return string != NULL ? string : json_string("?");
}

static json_t *child_json(const struct child *child)
{
	json_t *object = json_pack(
		"{s:s,s:I,s:I,s:o,s:o}", "state", child_state_text(child->state), "starts",
		(json_int_t)child->starts, "generation", (json_int_t)child->generation, "counters",
		counters_json(&child->status), "refused", reasons_json(&child->status));

	if (child->state == CHILD_STARTING || child->state == CHILD_READY)
		json_object_set_new(object, "pid", json_integer(child->process.pid));
	if (child->problem[0] != '\0')
		json_object_set_new(object, "problem", text_json(child->problem));
	return object;
}

static json_t *rules_json(const struct guard *guard)
{
	json_t *object = json_pack("{s:b,s:I,s:I,s:I}", "managed", guard->installed, "checks",
				   (json_int_t)guard->checks, "repairs", (json_int_t)guard->repairs,
				   "failures", (json_int_t)guard->failures);

	if (guard->problem[0] != '\0')
		json_object_set_new(object, "problem", text_json(guard->problem));
	return object;
}

static json_t *log_json(const struct parent *parent)
{
	const struct audit *audit = &parent->audit;
	json_t *object =
		json_pack("{s:o,s:I,s:I}", "file", text_json(parent->config->log_file), "written",
			  (json_int_t)audit->written, "failed", (json_int_t)audit->failed);

	if (audit->error != 0)
		json_object_set_new(object, "problem", json_string(strerror(audit->error)));
	return object;
}

static json_t *status_json(struct parent *parent)
{
	struct pins_stats pins;

	pins_stats(parent->pins, &pins);
	json_t *object = json_pack("{s:b,s:I,s:I,s:I}", "ok", 1, "pid", (json_int_t)getpid(),
				   "uptime", (json_int_t)((loop_now() - parent->started) / 1000),
				   "generation", (json_int_t)parent->image.generation);
	json_object_set_new(object, "config",
			    parent->options->config_path == NULL
				    ? json_null()
				    : text_json(parent->options->config_path));
	for (size_t i = 0; i < CHILD_COUNT; i++)
		json_object_set_new(object, child_kind_text((enum child_kind)i),
				    child_json(&parent->children[i]));
	json_object_set_new(object, "pins",
			    json_pack("{s:I,s:I,s:I,s:I,s:I}", "live", (json_int_t)pins.live,
				      "capacity", (json_int_t)pins.capacity, "written",
				      (json_int_t)pins.written, "evicted", (json_int_t)pins.evicted,
				      "failed", (json_int_t)pins.failed));
	json_object_set_new(object, "registered_clients",
			    json_integer((json_int_t)parent->registry.count));
	json_object_set_new(object, "rules", rules_json(&parent->guard));
	json_object_set_new(object, "log", log_json(parent));
	return object;
}

static bool somebody_owes(const struct parent *parent)
{
	for (size_t i = 0; i < CHILD_COUNT; i++)
		if (parent->children[i].state == CHILD_READY && parent->children[i].owes_status)
			return true;
	return false;
}

static void answer_all(struct parent *parent)
{
	parent->status_deadline = 0;
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		struct control_connection *connection = parent->control.connections[i];
		if (connection == NULL || !connection->wants_status)
			continue;
		connection->wants_status = false;
		control_answer(connection, status_json(parent), -1);
	}
}

void status_arrived(struct parent *parent)
{
	if (parent->status_deadline != 0 && !somebody_owes(parent))
		answer_all(parent);
}

void status_tick(struct parent *parent, uint64_t now)
{
	if (parent->status_deadline != 0 && now >= parent->status_deadline)
		answer_all(parent);
}

static void begin_status(struct parent *parent, struct control_connection *connection)
{
	connection->waiting = connection->wants_status = true;
	for (size_t i = 0; i < CHILD_COUNT; i++)
		if (parent->children[i].state == CHILD_READY)
			child_ask_status(&parent->children[i]);
	if (parent->status_deadline == 0)
		parent->status_deadline = loop_now() + STATUS_WAIT_MS;
	status_arrived(parent);
}

static void append_key(json_t *clients, const struct client_source *client)
{
	json_array_append_new(clients, json_pack("{s:s,s:I}", "name", client->name, "serial",
						 (json_int_t)client->serial));
}

/* What the keys in the table are made of. */
static void answer_pins(struct parent *parent, struct control_connection *connection)
{
	json_t *clients = json_array();
	int table = dup(parent->pins_readable);

	for (size_t i = 0; i < parent->config->source.client_count; i++)
		append_key(clients, &parent->config->source.clients[i]);
	for (size_t i = 0; i < parent->registry.count; i++)
		append_key(clients, &parent->registry.items[i]->client->source);
	if (table < 0) {
		json_decref(clients);
		control_fail(connection, "out of descriptors");
		return;
	}
	control_answer(connection, json_pack("{s:b,s:o}", "ok", 1, "clients", clients), table);
}

static void answer_log(struct parent *parent, struct control_connection *connection, bool follow)
{
	const struct audit *audit = &parent->audit;

	for (size_t i = 0; i < AUDIT_KEPT; i++) {
		const char *line = audit->kept[(audit->next + i) % AUDIT_KEPT];
		if (line != NULL)
			control_line(connection, line, strlen(line));
	}
	if (follow)
		connection->following = true;
	else
		control_answer(connection, json_pack("{s:b}", "ok", 1), -1);
}

static void take_request(void *context, struct control_connection *connection, const char *command,
			 const json_t *body)
{
	struct parent *parent = context;

	if (strcmp(command, "status") == 0)
		begin_status(parent, connection);
	else if (strcmp(command, "pins") == 0)
		answer_pins(parent, connection);
	else if (strcmp(command, "reload") == 0)
		reload_request(parent, connection);
	else if (strcmp(command, "log") == 0)
		answer_log(parent, connection, json_is_true(json_object_get(body, "follow")));
	else if (strcmp(command, "client-add") == 0)
		changes_request(parent, connection, false, body);
	else if (strcmp(command, "client-remove") == 0)
		changes_request(parent, connection, true, body);
	else if (strcmp(command, "client-list") == 0)
		changes_list(parent, connection);
	else
		control_fail(connection, "there is no such command");
}

static void asker_gone(void *context, struct control_connection *connection)
{
	reload_asker_gone(context, connection);
	changes_asker_gone(context, connection);
}

const struct control_handler status_handler = {.request = take_request, .gone = asker_gone};
