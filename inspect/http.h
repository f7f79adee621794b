/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The strict reader of HTTP/1.x request heads (RFC 9112); private to inspect/.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inspect/body.h"
#include "inspect/buffer.h"
#include "inspect/target.h"
#include "policy.h"

enum http_step {
	HTTP_MORE,     /* all bytes were read, the head is not complete */
	HTTP_FULL,     /* the buffer has no room for the next byte */
	HTTP_COMPLETE, /* the head is complete and keeps the grammar */
	HTTP_PREFACE,  /* it is the preface of HTTP/2 */
	HTTP_FOREIGN,  /* it is no HTTP at all */
	HTTP_MALFORMED /* it began as HTTP and breaks its grammar: `problem` */
};

enum http_state {
	HTTP_METHOD,      /* before the first space of the request line; leaves by it */
	HTTP_LINE,        /* in the rest of the request line; leaves by CR */
	HTTP_LINE_LF,     /* its CR was read */
	HTTP_FIELD_START, /* at the start of a line; leaves to a field or the end */
	HTTP_FIELD,       /* in a field line; leaves by CR */
	HTTP_FIELD_LF,    /* its CR was read */
	HTTP_END_LF,      /* the CR of the empty line was read */
	HTTP_PREFACE_REST /* "PRI * HTTP/2.0" was read, the rest of the preface follows */
};

struct http {
	enum http_state state;
	const char *problem;
	uint32_t head_length; /* octets of the head so far */
	uint32_t line_length; /* of the request line, at the front of the buffer */
	uint32_t target_offset, target_length;
	uint16_t field_count;
	uint8_t preface_at;
	bool line_read, http2; /* the request line is complete; it is the one of the preface */
	bool connect, get, version_10;
	bool host_seen, length_seen, chunked, upgrade, websocket;
	uint64_t body_length;
	struct target target;
	struct host host;
};

/* Before each head. */
void http_init(struct http *http);

/*
 * Reads on from BYTES, no further than the end of the head. The request line stays at the front of
 * BUFFER, each field line is read behind it and given up.
 */
enum http_step http_feed(struct http *http, struct head_buffer *buffer, const uint8_t *bytes,
			 size_t length, size_t *taken);

/* After HTTP_COMPLETE: the framing of the body that follows. */
void http_body(const struct http *http, struct body *out);

/* A client may send WebSocket frames after this request. */
bool http_asks_for_websocket(const struct http *http);
