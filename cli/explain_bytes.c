/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * `explain bytes`: the connect verdict, then each request in the bytes as the gate would read them.
 */

#include <errno.h>
#include <netinet/in.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain.h"
#include "inspect/stream.h"

/* A segment is one packet, at most; the largest is a GSO super-packet, but captures may be joined.
 */
#define SEGMENT_MAX (16u << 20)
/* Any head fits: past STREAM_HTTP_HEAD_MAX it is malformed, and never longer. */
#define BUFFER_SIZE (STREAM_HTTP_HEAD_MAX + 4096u)

struct flow {
	const struct explain *explain;
	struct connection connection;
	struct stream *stream;
	alignas(16) uint8_t storage[STREAM_SIZE];
	uint8_t *buffer;
	size_t capacity;
	bool decided; /* a denial: nothing after it counts */
};

static int read_segment(const char *path, uint8_t **bytes, size_t *length)
{
	FILE *file = fopen(path, "rbe");
	uint8_t *buffer = NULL;
	size_t size = 0, room = 0;

	if (file == NULL)
		return command_error(STATUS_USAGE, "%s: %s", path, strerror(errno));
	while (size == room && size <= SEGMENT_MAX) {
		uint8_t *larger = realloc(buffer, room + 65536);
		if (larger == NULL)
			break;
		buffer = larger;
		room += 65536;
		size += fread(buffer + size, 1, room - size, file);
	}
	if (ferror(file) || size == room) {
		int error = ferror(file) ? errno : EFBIG;
		fclose(file);
		free(buffer);
		return command_error(STATUS_USAGE, "%s: %s", path, strerror(error));
	}
	fclose(file);
	*bytes = buffer;
	*length = size;
	return 0;
}

static int judge_event(struct flow *flow, struct explanation *out)
{
	struct stream_event *event = stream_event(flow->stream);
	int status;

	event->request.connection = flow->connection;
	out->note = event->problem;
	status = explain_judge(flow->explain, &event->request, out);
	flow->decided = out->verdict.outcome != OUTCOME_ALLOW;
	return status;
}

/* A larger buffer for a long head; the old one goes. */
static int enlarge(struct flow *flow)
{
	size_t capacity = flow->capacity < BUFFER_SIZE ? BUFFER_SIZE : flow->capacity * 2;
	uint8_t *larger = malloc(capacity);

	if (larger == NULL || capacity > SEGMENT_MAX) {
		free(larger);
		return command_error(STATUS_USAGE, "a head that no buffer holds");
	}
	stream_rebuffer(flow->stream, larger, capacity);
	free(flow->buffer);
	flow->buffer = larger;
	flow->capacity = capacity;
	return 0;
}

static int feed(struct flow *flow, const uint8_t *bytes, size_t length, struct explanation *out)
{
	size_t at = 0;
	int status = 0;

	for (;;) {
		at += stream_feed(flow->stream, bytes + at, length - at);
		switch (stream_state(flow->stream)) {
		case STREAM_EVENT:
			status = judge_event(flow, out);
			if (status != 0 || flow->decided)
				return status;
			stream_resume(flow->stream);
			break;
		case STREAM_BROKEN:
			status = judge_event(flow, out);
			/* audit lets it through, and there is nothing left to read */
			flow->decided = true;
			return status;
		case STREAM_FULL:
			status = enlarge(flow);
			if (status != 0)
				return status;
			break;
		case STREAM_START:
		case STREAM_HEAD:
		case STREAM_BODY:
		case STREAM_BETWEEN:
		case STREAM_OPAQUE:
			if (at == length)
				return 0;
			break;
		}
	}
}

static int read_flow(struct flow *flow, struct explanation *out)
{
	const struct explain *explain = flow->explain;

	for (size_t i = 0; i < explain->word_count && !flow->decided; i++) {
		uint8_t *bytes = NULL;
		size_t length = 0;
		int status = read_segment(explain->words[i], &bytes, &length);
		if (status != 0)
			return status;
		status = feed(flow, bytes, length, out);
		free(bytes);
		if (status != 0)
			return status;
	}
	if (flow->decided)
		return 0;
	switch (stream_state(flow->stream)) {
	case STREAM_START:
	case STREAM_HEAD:
	case STREAM_FULL:
		out->verdict = (struct verdict){.outcome = OUTCOME_WAIT, .enforced = true};
		out->note = "the head is not complete";
		break;
	case STREAM_EVENT:
	case STREAM_BROKEN:
	case STREAM_BODY:
	case STREAM_BETWEEN:
	case STREAM_OPAQUE:
		break;
	}
	return 0;
}

static int judge_flow(struct flow *flow, struct explanation *out)
{
	const struct explain *explain = flow->explain;

	out->stage = STAGE_CONNECT;
	out->verdict =
		policy_connect(explain->image, &explain->subject, &flow->connection, EXPLAIN_NOW);
	explain_ask_connection(explain, &flow->connection, out);
	if (out->verdict.outcome != OUTCOME_ALLOW)
		return 0;
	if (!policy_reads_first_bytes(explain->image, &explain->subject, &flow->connection,
				      EXPLAIN_NOW)) {
		out->note = "allow_raw: the bytes are not read";
		return 0;
	}
	out->stage = STAGE_REQUEST;
	flow->capacity = BUFFER_SIZE;
	flow->buffer = malloc(flow->capacity);
	if (flow->buffer == NULL)
		return command_error(STATUS_USAGE, "out of memory");
	flow->stream = stream_init(flow->storage, flow->buffer, flow->capacity);
	int status = read_flow(flow, out);
	free(flow->buffer);
	return status;
}

int explain_bytes(const struct explain *explain, struct explanation *out)
{
	struct flow flow = {.explain = explain};
	struct pin *pins;
	int status;

	if (explain->to.address.family == ADDRESS_NONE || explain->to.port == 0)
		return command_usage_error(&command_explain, "bytes needs --to ADDRESS:PORT");
	status = explain_connection(explain, &explain->to, IPPROTO_TCP, &flow.connection, &pins);
	if (status != 0)
		return status;
	status = judge_flow(&flow, out);
	free(pins);
	return status;
}
