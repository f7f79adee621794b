/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A client's bytes, whole and in pieces: both give the same events at the same places. The first
 * two octets of the input seed the cuts.
 */

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define EVENTS_MAX 64

struct seen {
	size_t offset;
	enum request_kind kind;
	const char *problem;
	enum host_kind host;
	size_t target_length;
	uint32_t target_sum;
};

struct run {
	struct stream *stream;
	uint8_t *buffer;
	size_t capacity;
	size_t count;
	struct seen seen[EVENTS_MAX];
};

static void grow(struct run *run, size_t first)
{
	size_t capacity = run->capacity == 0 ? first : run->capacity * 2;
	uint8_t *buffer = malloc(capacity);

	if (buffer == NULL || run->capacity >= STREAM_HTTP_HEAD_MAX)
		abort();
	stream_rebuffer(run->stream, buffer, capacity);
	free(run->buffer);
	run->buffer = buffer;
	run->capacity = capacity;
}

static void note(struct run *run, size_t offset)
{
	const struct stream_event *event = stream_event(run->stream);
	const struct request *request = &event->request;
	struct seen seen = {.offset = offset,
			    .kind = request->kind,
			    .problem = event->problem,
			    .host = request->host.kind,
			    .target_length = request->target_length};

	if ((event->problem != NULL) != request->malformed)
		abort();
	if (request->host.kind == HOST_MALFORMED || request->target_host.kind == HOST_MALFORMED)
		abort();
	for (size_t i = 0; i < request->target_length; i++)
		seen.target_sum = seen.target_sum * 31 + (uint8_t)request->target[i];
	if (run->count < EVENTS_MAX)
		run->seen[run->count++] = seen;
	stream_resume(run->stream);
}

static void play(struct run *run, const uint8_t *bytes, size_t size, bool cut, unsigned seed)
{
	alignas(16) static uint8_t storage[STREAM_SIZE];

	memset(run, 0, sizeof(*run));
	run->stream = stream_init(storage, NULL, 0);
	for (size_t at = 0; at < size;) {
		size_t piece = cut ? 1 + (size_t)rand_r(&seed) % 64 : size - at;
		if (piece > size - at)
			piece = size - at;
		size_t took = stream_feed(run->stream, bytes + at, piece);
		at += took;
		enum stream_state state = stream_state(run->stream);
		if (state == STREAM_EVENT)
			note(run, at);
		else if (state == STREAM_FULL)
			grow(run, cut ? 1 : STREAM_HTTP_HEAD_MAX);
		else if (state == STREAM_BROKEN)
			break;
		else if (took != piece)
			abort();
		if (cut && stream_is_idle(run->stream) && seed % 2 == 0) {
			stream_rebuffer(run->stream, NULL, 0);
			free(run->buffer);
			run->buffer = NULL;
			run->capacity = 0;
		}
		stream_early(run->stream);
	}
	free(run->buffer);
}

static bool is_same(const struct seen *a, const struct seen *b)
{
	return a->offset == b->offset && a->kind == b->kind && a->problem == b->problem &&
	       a->host == b->host && a->target_length == b->target_length &&
	       a->target_sum == b->target_sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct run whole, pieces;

	if (size < 2)
		return 0;
	play(&whole, bytes + 2, size - 2, false, 0);
	play(&pieces, bytes + 2, size - 2, true, (unsigned)(bytes[0] << 8 | bytes[1]));
	if (whole.count != pieces.count)
		abort();
	for (size_t i = 0; i < whole.count; i++) {
		if (!is_same(&whole.seen[i], &pieces.seen[i]))
			abort();
	}
	return 0;
}
