/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inspect/stream.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#include "inspect/http.h"
#include "inspect/tls.h"

/*
 * Theory
 *
 * The first octet says which reader gets the bytes: a TLS content type (20..23), or else HTTP,
 * which finds out by itself that it is none. A reader works octet by octet, so a cut changes
 * nothing; it stops behind the octet that completes or breaks a head, and that makes an event.
 *
 * We see the client alone, so what the server made of a request is not known. Two kinds of request
 * may be followed by something that is no HTTP, or by the next request if the server said no:
 *
 *   WebSocket  A client's frame is masked (RFC 6455 section 5.1), so the high bit of its second
 *              octet is set, which no request's ever is, and few octets begin one. Two such octets end
 *              the reading. Otherwise the next request is read and judged like any other. A server
 *              that said no may take more for white space than we do: Python's http.server skips 0x85
 *              and 0xa0, so a first octet that begins no frame is a request's.
 *
 *   CONNECT    Bytes that begin no request are the tunnel's and end the reading. Requests are
 * judged: one to a proxy that refused has absolute form or is a CONNECT. One in origin form goes
 * through the tunnel, or to a proxy that serves it by its Host; either way its Host is whom it is
 *              for, so it is shown as the absolute form of that Host.
 *
 * All other upgrades (h2c, TLS, anything) go on as HTTP: a preface of HTTP/2 is an event of its
 * own, other bytes are REQUEST_OTHER.
 */

enum phase {
	PHASE_DETECT,    /* nothing was read */
	PHASE_HTTP_HEAD, /* in or before a request head */
	PHASE_HTTP_BODY, /* in a body */
	PHASE_TLS,       /* in records up to the last ClientHello */
	PHASE_EVENT,     /* an event waits for stream_resume() */
	PHASE_OPAQUE,
	PHASE_BROKEN
};

struct stream {
	enum phase phase;
	bool full;        /* the reader needs a larger buffer */
	bool first;       /* the first head is not complete */
	bool tunnel;      /* a CONNECT was allowed */
	bool frames;      /* WebSocket frames may come now */
	bool frame_begun; /* one octet of what may be a frame was read: */
	uint8_t frame_octet;
	struct head_buffer buffer;
	struct body body;
	union {
		struct http http;
		struct tls tls;
	};
	struct stream_event event;
};

static_assert(sizeof(struct stream) <= STREAM_SIZE, "STREAM_SIZE is what callers reserve");
static_assert(alignof(struct stream) <= 16, "and this its alignment");

struct stream *stream_init(void *storage, uint8_t *buffer, size_t capacity)
{
	struct stream *stream = storage;

	*stream = (struct stream){.phase = PHASE_DETECT,
				  .first = true,
				  .buffer = {.bytes = buffer, .capacity = capacity}};
	return stream;
}

static void emit(struct stream *stream, enum request_kind kind, const char *problem)
{
	stream->phase = PHASE_EVENT;
	stream->event = (struct stream_event){
		.request = {.kind = kind, .malformed = problem != NULL, .scheme = ""},
		.problem = problem};
}

/* What is known of the request so far. */
static void fill_http(struct stream *stream)
{
	struct request *request = &stream->event.request;
	struct http *http = &stream->http;
	bool through_tunnel =
		stream->tunnel && http->host.kind != HOST_NONE &&
		(http->target.form == TARGET_ORIGIN || http->target.form == TARGET_ASTERISK);

	request->host = http->host;
	request->form = through_tunnel ? TARGET_ABSOLUTE : http->target.form;
	request->scheme = through_tunnel ? "http" : http->target.scheme;
	request->target_host = through_tunnel ? http->host : http->target.host;
	if (http->line_read) {
		request->target = (const char *)stream->buffer.bytes + http->target_offset;
		request->target_length = http->target_length;
		request->method = (const char *)stream->buffer.bytes;
		request->method_length = http->target_offset > 0 ? http->target_offset - 1 : 0;
	}
}

static void next_head(struct stream *stream)
{
	stream->buffer.used = 0;
	stream->phase = PHASE_HTTP_HEAD;
	http_init(&stream->http);
}

static void become_opaque(struct stream *stream)
{
	stream->buffer.used = 0;
	stream->phase = PHASE_OPAQUE;
}

static void http_foreign(struct stream *stream)
{
	if (stream->tunnel)
		become_opaque(stream);
	else
		emit(stream, REQUEST_OTHER, NULL);
}

static size_t feed_head(struct stream *stream, const uint8_t *bytes, size_t length)
{
	size_t taken;

	switch (http_feed(&stream->http, &stream->buffer, bytes, length, &taken)) {
	case HTTP_MORE:
		break;
	case HTTP_FULL:
		stream->full = true;
		break;
	case HTTP_COMPLETE:
		emit(stream, REQUEST_HTTP1, NULL);
		fill_http(stream);
		break;
	case HTTP_PREFACE:
		emit(stream, REQUEST_HTTP2, NULL);
		break;
	case HTTP_FOREIGN:
		http_foreign(stream);
		break;
	case HTTP_MALFORMED:
		emit(stream, stream->http.http2 ? REQUEST_HTTP2 : REQUEST_HTTP1,
		     stream->http.problem);
		fill_http(stream);
		break;
	}
	return taken;
}

/* RFC 6455 section 5.2: text, binary, close, ping or pong; whole or the first of several, perhaps
 * compressed (RSV1, RFC 7692). */
static bool begins_frame(uint8_t octet)
{
	switch (octet) {
	case 0x01:
	case 0x02:
	case 0x41:
	case 0x42:
	case 0x81:
	case 0x82:
	case 0xc1:
	case 0xc2:
	case 0x88:
	case 0x89:
	case 0x8a:
		return true;
	default:
		return false;
	}
}

/* The first two octets where a WebSocket frame or a request may begin. */
static size_t feed_frame(struct stream *stream, const uint8_t *bytes)
{
	if (!stream->frame_begun) {
		if (!begins_frame(bytes[0])) {
			stream->frames = false;
			return 0;
		}
		stream->frame_begun = true;
		stream->frame_octet = bytes[0];
		return 1;
	}
	if ((bytes[0] & 0x80) != 0) {
		become_opaque(stream);
		return 1;
	}
	if (feed_head(stream, &stream->frame_octet, 1) == 1)
		stream->frames = stream->frame_begun = false;
	return 0;
}

static size_t feed_body(struct stream *stream, const uint8_t *bytes, size_t length)
{
	size_t taken;
	const char *problem = body_feed(&stream->body, bytes, length, &taken);

	if (problem != NULL) {
		struct host host = stream->event.request.host;
		emit(stream, REQUEST_HTTP1, problem);
		stream->event.request.host = host; /* whose body it is */
	} else if (stream->body.state == BODY_DONE) {
		next_head(stream);
	}
	return taken;
}

static void emit_hello(struct stream *stream, const char *problem)
{
	emit(stream, REQUEST_TLS, problem);
	stream->event.second_hello = stream->tls.second;
	if (problem == NULL)
		stream->event.request.host = stream->tls.hello.host;
}

static size_t feed_tls(struct stream *stream, const uint8_t *bytes, size_t length)
{
	size_t taken;

	switch (tls_feed(&stream->tls, &stream->buffer, bytes, length, &taken)) {
	case TLS_MORE:
		break;
	case TLS_FULL:
		stream->full = true;
		break;
	case TLS_HELLO:
		emit_hello(stream, NULL);
		break;
	case TLS_FOREIGN:
		emit(stream, REQUEST_OTHER, NULL);
		break;
	case TLS_DONE:
		become_opaque(stream);
		break;
	case TLS_MALFORMED:
		emit_hello(stream, stream->tls.problem);
		break;
	}
	return taken;
}

static void detect(struct stream *stream, uint8_t first)
{
	if (first >= 20 && first <= 23) {
		stream->phase = PHASE_TLS;
		tls_init(&stream->tls);
	} else {
		next_head(stream);
	}
}

size_t stream_feed(struct stream *stream, const uint8_t *bytes, size_t length)
{
	size_t at = 0;

	while (at < length && !stream->full) {
		switch (stream->phase) {
		case PHASE_DETECT:
			detect(stream, bytes[at]);
			break;
		case PHASE_HTTP_HEAD:
			at += stream->frames ? feed_frame(stream, bytes + at)
					     : feed_head(stream, bytes + at, length - at);
			break;
		case PHASE_HTTP_BODY:
			at += feed_body(stream, bytes + at, length - at);
			break;
		case PHASE_TLS:
			at += feed_tls(stream, bytes + at, length - at);
			break;
		case PHASE_OPAQUE:
			return length;
		case PHASE_EVENT:
		case PHASE_BROKEN:
			return at;
		}
	}
	return at;
}

static enum stream_state head_state(const struct stream *stream)
{
	if (stream->first && !stream->http.line_read && !stream->http.http2)
		return STREAM_START;
	return stream->http.head_length == 0 && !stream->frame_begun ? STREAM_BETWEEN : STREAM_HEAD;
}

static enum stream_state tls_state(const struct stream *stream)
{
	if (!stream->tls.second)
		return stream->tls.header_length == 1 && !stream->tls.inside ? STREAM_START
									     : STREAM_HEAD;
	if (stream->tls.state == TLS_SKIP)
		return STREAM_BODY;
	return stream->tls.header_length == 0 && stream->tls.state == TLS_HEADER &&
			       !stream->tls.inside
		       ? STREAM_BETWEEN
		       : STREAM_HEAD;
}

enum stream_state stream_state(const struct stream *stream)
{
	if (stream->full)
		return STREAM_FULL;
	switch (stream->phase) {
	case PHASE_DETECT:
		break;
	case PHASE_HTTP_HEAD:
		return head_state(stream);
	case PHASE_HTTP_BODY:
		return STREAM_BODY;
	case PHASE_TLS:
		return tls_state(stream);
	case PHASE_EVENT:
		return STREAM_EVENT;
	case PHASE_OPAQUE:
		return STREAM_OPAQUE;
	case PHASE_BROKEN:
		return STREAM_BROKEN;
	}
	return STREAM_START;
}

struct stream_event *stream_event(struct stream *stream)
{
	return stream->phase == PHASE_EVENT || stream->phase == PHASE_BROKEN ? &stream->event
									     : NULL;
}

struct stream_event *stream_early(struct stream *stream)
{
	if (stream->phase != PHASE_HTTP_HEAD || !stream->http.line_read || !stream->http.host_seen)
		return NULL;
	emit(stream, REQUEST_HTTP1, NULL);
	fill_http(stream);
	stream->phase = PHASE_HTTP_HEAD;
	return &stream->event;
}

static void resume_http(struct stream *stream)
{
	stream->tunnel = stream->tunnel || stream->http.connect;
	stream->frames = http_asks_for_websocket(&stream->http);
	stream->frame_begun = false;
	http_body(&stream->http, &stream->body);
	next_head(stream);
	if (stream->body.state != BODY_DONE)
		stream->phase = PHASE_HTTP_BODY;
}

static void resume_tls(struct stream *stream)
{
	stream->buffer.used = 0;
	stream->phase = PHASE_TLS;
	if (tls_resume(&stream->tls) == TLS_DONE)
		become_opaque(stream);
}

void stream_resume(struct stream *stream)
{
	struct request *request = &stream->event.request;

	if (stream->phase != PHASE_EVENT)
		return;
	stream->first = false;
	request->target = NULL; /* it points into the buffer, which may go */
	request->target_length = 0;
	request->method = NULL;
	request->method_length = 0;
	if (request->malformed) {
		stream->buffer.used = 0;
		stream->phase = PHASE_BROKEN;
	} else if (request->kind == REQUEST_HTTP1) {
		resume_http(stream);
	} else if (request->kind == REQUEST_TLS) {
		resume_tls(stream);
	} else {
		become_opaque(stream);
	}
}

void stream_rebuffer(struct stream *stream, uint8_t *buffer, size_t capacity)
{
	struct head_buffer *old = &stream->buffer;
	struct request *request = &stream->event.request;

	assert(capacity >= old->used);
	if (old->used > 0)
		memmove(buffer, old->bytes, old->used);
	if (request->target != NULL)
		request->target = (const char *)buffer + stream->http.target_offset;
	if (request->method != NULL)
		request->method = (const char *)buffer;
	old->bytes = buffer;
	old->capacity = capacity;
	stream->full = stream->full && capacity == old->used;
}

bool stream_is_idle(const struct stream *stream)
{
	return stream->buffer.used == 0 && !stream->full && stream->phase != PHASE_EVENT;
}
