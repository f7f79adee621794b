/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "play.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inspect/stream.h"

static const char *const kinds[] = {"http", "http2", "tls", "other"};
static const char *const forms[] = {"origin", "absolute", "authority", "asterisk"};
static const char *const states[] = {"start", "head",    "event",  "full",
				     "body",  "between", "opaque", "broken"};

static void host_text(const struct host *host, char *out, size_t size)
{
	char address[ADDRESS_TEXT_SIZE];
	const char *text = "-";

	if (host->kind == HOST_NAME)
		text = host->name.text;
	else if (host->kind == HOST_LITERAL)
		text = address_format(&host->literal, address);
	else if (host->kind == HOST_MALFORMED)
		text = "?";
	if (host->port != 0)
		snprintf(out, size, "%s:%u", text, host->port);
	else
		snprintf(out, size, "%s", text);
}

static void event_text(const struct stream_event *event, char *out, size_t size)
{
	const struct request *request = &event->request;
	char host[300], target_host[300] = "";
	const char *second = event->second_hello ? " second" : "";

	if (request->malformed) {
		assert_non_null(event->problem);
		snprintf(out, size, "%s%s malformed %s", kinds[request->kind], second,
			 event->problem);
		return;
	}
	assert_null(event->problem);
	host_text(&request->host, host, sizeof(host));
	if (request->kind != REQUEST_HTTP1) {
		snprintf(out, size, "%s%s %s", kinds[request->kind], second, host);
		return;
	}
	if (request->form == TARGET_ABSOLUTE || request->form == TARGET_AUTHORITY) {
		snprintf(target_host, sizeof(target_host), " %s%s", request->scheme,
			 request->scheme[0] != '\0' ? " " : "");
		host_text(&request->target_host, target_host + strlen(target_host),
			  sizeof(target_host) - strlen(target_host));
	} else {
		assert_int_equal(request->target_host.kind, HOST_NONE);
		assert_string_equal(request->scheme, "");
	}
	snprintf(out, size, "http %s %s%s %.*s", host, forms[request->form], target_host,
		 request->target_length > 200 ? 200 : (int)request->target_length, request->target);
}

struct player {
	struct stream *stream;
	uint8_t *buffer; /* malloc()ed, so that a sanitizer sees each end */
	size_t capacity;
	char *at, *end;
};

static void grow(struct player *player, const struct play *how)
{
	size_t capacity = player->capacity == 0 ? how->first_capacity : player->capacity * 2;
	uint8_t *buffer = malloc(capacity);

	assert_true(player->capacity < STREAM_HTTP_HEAD_MAX);
	stream_rebuffer(player->stream, buffer, capacity);
	free(player->buffer);
	player->buffer = buffer;
	player->capacity = capacity;
}

static void take_away(struct player *player)
{
	stream_rebuffer(player->stream, NULL, 0);
	free(player->buffer);
	player->buffer = NULL;
	player->capacity = 0;
}

static void note(struct player *player, size_t offset)
{
	char text[2048];

	event_text(stream_event(player->stream), text, sizeof(text));
	player->at +=
		snprintf(player->at, (size_t)(player->end - player->at), "%zu %s\n", offset, text);
	assert_true(player->at < player->end);
}

/* One piece, in a copy of its own. */
static void piece(struct player *player, const struct play *how, const uint8_t *bytes,
		  size_t offset, size_t length)
{
	uint8_t *copy = malloc(length);
	size_t at = 0;

	memcpy(copy, bytes + offset, length);
	for (;;) {
		at += stream_feed(player->stream, copy + at, length - at);
		enum stream_state state = stream_state(player->stream);
		if (state == STREAM_FULL) {
			grow(player, how);
		} else if (state == STREAM_EVENT) {
			note(player, offset + at);
			stream_resume(player->stream);
		} else {
			assert_true(at == length || state == STREAM_BROKEN);
			break;
		}
	}
	free(copy);
	if (how->early && stream_early(player->stream) != NULL)
		assert_false(stream_early(player->stream)->request.malformed);
	if (how->takes_away && stream_is_idle(player->stream))
		take_away(player);
}

const char *play(const struct play *how, const uint8_t *bytes, size_t length, char *transcript)
{
	alignas(16) static uint8_t storage[STREAM_SIZE];
	struct player player = {.at = transcript, .end = transcript + PLAY_SIZE};
	unsigned seed = how->seed;

	player.stream = stream_init(storage, NULL, 0);
	for (size_t at = 0, size; at < length; at += size) {
		size = length - at;
		if (how->seed != 0 && size > how->cut_max)
			size = how->cut_max;
		if (how->seed != 0)
			size = 1 + (size_t)rand_r(&seed) % size;
		piece(&player, how, bytes, at, size);
	}
	snprintf(player.at, (size_t)(player.end - player.at), "state %s\n",
		 states[stream_state(player.stream)]);
	free(player.buffer);
	return transcript;
}

void play_expect(const uint8_t *bytes, size_t length, const char *expected)
{
	static char transcript[PLAY_SIZE];
	static const struct play ways[] = {
		{.first_capacity = 65536},
		{.first_capacity = 1},
		{.first_capacity = 1, .seed = 1, .cut_max = 1, .takes_away = 1, .early = 1},
		{.first_capacity = 512, .seed = 2, .cut_max = 7, .takes_away = 1},
		{.first_capacity = 3, .seed = 3, .cut_max = 40, .early = 1},
		{.first_capacity = 64, .seed = 4, .cut_max = 200, .takes_away = 1, .early = 1},
		{.first_capacity = 64, .seed = 5, .cut_max = 100000, .takes_away = 1},
	};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		assert_string_equal(play(&ways[i], bytes, length, transcript), expected);
}
