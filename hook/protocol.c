/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "hook/protocol.h"

#include <errno.h>
#include <jansson.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#include "base/protocol.h"

/*
 * The arena. A question with 64 names, 512 addresses and the longest target needs some 120 KiB
 * while it is put together, an answer's line a tenth of that; nothing in it outlives the call.
 */
#define ARENA_SIZE (512u << 10)

static alignas(16) uint8_t arena[ARENA_SIZE];
static size_t arena_used;
static bool uses_arena;

static void *arena_take(size_t size)
{
	size_t rounded = (size + 15) & ~(size_t)15;

	if (rounded < size || rounded > ARENA_SIZE - arena_used)
		return NULL;
	void *bytes = arena + arena_used;
	arena_used += rounded;
	return bytes;
}

static void arena_give(void *bytes)
{
	(void)bytes;
}

void hook_protocol_seed(const uint8_t seed[16])
{
	size_t number;

	memcpy(&number, seed, sizeof(number));
	json_object_seed(number | 1); /* 0 would mean: look for one */
}

void hook_protocol_use_arena(void)
{
	uses_arena = true;
	json_set_alloc_funcs(arena_take, arena_give);
}

static void begin(void)
{
	if (uses_arena)
		arena_used = 0;
}

/* Octets as text: what is no ASCII counts as Latin-1, so that every octet stays what it was. */
static json_t *text_of(const char *bytes, size_t length)
{
	static char utf8[2 * HOOK_TARGET_MAX];
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		uint8_t byte = (uint8_t)bytes[i];
		if (byte >= 0x80) {
			utf8[used++] = (char)(0xc0 | byte >> 6);
			byte = (uint8_t)(0x80 | (byte & 0x3f));
		}
		utf8[used++] = (char)byte;
	}
	return json_stringn(utf8, used);
}

/* Takes VALUE; false when it or the object has no memory. */
static bool put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) == 0;
}

static bool append_addresses(json_t *list, const struct address *addresses, size_t count)
{
	char text[ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < count; i++)
		if (json_array_append_new(list, json_string(address_format(&addresses[i], text))) !=
		    0)
			return false;
	return true;
}

static bool put_addresses(json_t *object, const struct hook_question *question)
{
	json_t *list = json_array();
	bool complete = list != NULL &&
			append_addresses(list, question->addresses, question->address_count) &&
			append_addresses(list, question->hints, question->hint_count);

	if (!complete) {
		json_decref(list);
		return false;
	}
	return put(object, "addresses", list);
}

/* The names under which the client was given the destination. */
static bool put_pins(json_t *object, const struct hook_question *question)
{
	json_t *list = json_array();
	bool complete = list != NULL;

	for (size_t i = 0; complete && i < question->pin_count; i++) {
		const struct name *name = &question->pins[i].name;
		if (question->pins[i].expiry <= question->now || name->length > NAME_TEXT_MAX)
			continue;
		complete = json_array_append_new(list, text_of(name->text, name->length)) == 0;
	}
	if (!complete) {
		json_decref(list);
		return false;
	}
	return put(object, "resolved_from", list);
}

static bool put_request(json_t *object, const struct hook_question *question)
{
	return (question->scheme[0] == '\0' ||
		put(object, "scheme", json_string(question->scheme))) &&
	       (question->method == NULL ||
		put(object, "method", text_of(question->method, question->method_length))) &&
	       (question->target == NULL ||
		put(object, "target", text_of(question->target, question->target_length)));
}

static bool fill(json_t *object, const struct hook_question *question, uint64_t id)
{
	const struct verdict *verdict = question->verdict;
	char buffer[PROTOCOL_TEXT_SIZE];
	bool flow = question->stage == STAGE_CONNECT || question->stage == STAGE_REQUEST;

	return put(object, "id", json_integer((json_int_t)id)) &&
	       put(object, "stage", json_string(stage_text(question->stage))) &&
	       put(object, "client", json_string(question->client)) &&
	       (question->name == NULL || put(object, "name", json_string(question->name))) &&
	       (question->qtype == 0 || put(object, "qtype", json_integer(question->qtype))) &&
	       (question->stage == STAGE_RESOLVE || put_addresses(object, question)) &&
	       (question->port == 0 || put(object, "port", json_integer(question->port))) &&
	       (question->protocol == 0 ||
		put(object, "proto", json_string(protocol_text(question->protocol, buffer)))) &&
	       put_request(object, question) && (!flow || put_pins(object, question)) &&
	       put(object, "decision", json_string(outcome_text(verdict->outcome))) &&
	       put(object, "reason", json_string(reason_text(verdict->reason)));
}

int hook_question_write(const struct hook_question *question, uint64_t id, char *out, size_t size,
			size_t *length)
{
	json_t *object;
	size_t written = 0;

	if (question->target_length > HOOK_TARGET_MAX ||
	    question->method_length > HOOK_TARGET_MAX ||
	    question->address_count > HOOK_ADDRESSES_MAX ||
	    question->hint_count > HOOK_ADDRESSES_MAX)
		return -EMSGSIZE;
	begin();
	object = json_object();
	if (object == NULL)
		return -ENOMEM;
	bool filled = fill(object, question, id);
	if (filled)
		written = json_dumpb(object, out, size, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(object);
	if (!filled || written == 0)
		return -ENOMEM;
	if (written >= size)
		return -EMSGSIZE;
	out[written] = '\n';
	*length = written + 1;
	return 0;
}

/* One printable line, however it was written. */
static void copy_reason(const char *text, char out[HOOK_REASON_MAX + 1])
{
	size_t used = 0;

	for (; *text != '\0' && used < HOOK_REASON_MAX; text++)
		out[used++] = *text >= 0x20 && *text <= 0x7e ? *text : '?';
	out[used] = '\0';
}

static int take_reply(json_t *object, struct hook_reply *out)
{
	static const struct {
		const char *text;
		enum hook_answer answer;
	} answers[] = {{"allow", HOOK_ALLOW}, {"deny", HOOK_DENY}, {"keep", HOOK_KEEP}};
	const json_t *id = json_object_get(object, "id");
	const json_t *verdict = json_object_get(object, "verdict");
	const json_t *reason = json_object_get(object, "reason");
	struct hook_reply reply = {.answer = HOOK_ERROR, .problem = "the hook has no such verdict"};

	if (!json_is_integer(id) || json_integer_value(id) < 0 || !json_is_string(verdict) ||
	    (reason != NULL && !json_is_string(reason) && !json_is_null(reason)))
		return -EPROTO;
	reply.id = (uint64_t)json_integer_value(id);
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		if (strcmp(answers[i].text, json_string_value(verdict)) != 0)
			continue;
		reply.answer = answers[i].answer;
		reply.problem = NULL;
	}
	if (json_is_string(reason))
		copy_reason(json_string_value(reason), reply.reason);
	*out = reply;
	return 0;
}

int hook_reply_read(const char *line, size_t length, struct hook_reply *out)
{
	json_error_t where;
	json_t *object;
	int error = -EPROTO;

	if (length > HOOK_REPLY_MAX)
		return -EPROTO;
	begin();
	object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &where);
	if (json_is_object(object))
		error = take_reply(object, out);
	json_decref(object);
	return error;
}
