/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The client's half of one TCP flow, read as requests.
 *
 * Bytes are fed in order, each once, however they were cut; the same bytes give the same events for
 * every cut. The first bytes decide what the flow is. Then:
 *
 *   HTTP/1.x   each request head is an event, also on a kept-alive or pipelined connection; bodies
 *              (Content-Length, chunked: RFC 9112 section 6) are skipped by their framing. After a
 *              CONNECT or a WebSocket upgrade, bytes that cannot be a request make the rest opaque;
 *              requests are judged like any other (stream.c)
 *   TLS        the ClientHello, and a second one after a HelloRetryRequest (RFC 8446
 * section 4.1.4), are events; everything after is opaque other      one event, REQUEST_OTHER;
 * everything after is opaque
 *
 * Pure: no I/O, no clock, no allocation. The caller lends a buffer for the head that is being read
 * and may swap it for a larger one when it is full.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy.h"

/* A request head of all lines; design: HTTP head 64 KiB. Past it the head is malformed. */
#define STREAM_HTTP_HEAD_MAX 65536u
/* All records of one ClientHello's handshake message, its header included. */
#define STREAM_HELLO_MAX 16384u

enum stream_state {
	STREAM_START,   /* nothing read, or too little to tell what it is; leaves by more bytes */
	STREAM_HEAD,    /* inside a request head or a ClientHello; leaves by EVENT or FULL */
	STREAM_EVENT,   /* `event` is to be judged; leaves by stream_resume() */
	STREAM_FULL,    /* the buffer is too small for the head; leaves by stream_rebuffer() */
	STREAM_BODY,    /* between head and next head; nothing to judge; leaves by more bytes */
	STREAM_BETWEEN, /* a whole request was read, the next has not begun */
	STREAM_OPAQUE,  /* nothing after this is read; stays */
	STREAM_BROKEN   /* an event with malformed set was resumed; nothing is read; stays */
};

/*
 * What an event says, ready for policy_request(): the caller fills in `connection`. Pointers point
 * into the stream and its buffer and are good until the next call.
 */
struct stream_event {
	struct request request;
	const char *problem; /* a static text for people when request.malformed, else NULL */
	bool second_hello;   /* after a HelloRetryRequest; malformed when it names another host */
};

/* Private but for state, event and early; see stream.c. Fixed size: the gate keeps a table of them.
 */
struct stream;

/* Bytes of struct stream, for static tables; stream.c asserts it. */
#define STREAM_SIZE 2048u

/*
 * BUFFER is lent, CAPACITY its octets; NULL and 0 are good, STREAM_FULL asks when one is needed.
 * STORAGE has STREAM_SIZE bytes, aligned to 16. A buffer holds the request line and one field line
 * at a time, or one ClientHello; STREAM_HTTP_HEAD_MAX octets are always enough.
 */
struct stream *stream_init(void *storage, uint8_t *buffer, size_t capacity);

/*
 * Reads from BYTES until all are read or there is something to do; returns how many it took. It
 * takes all of them in STREAM_OPAQUE. In STREAM_EVENT, STREAM_FULL and STREAM_BROKEN it takes none.
 * What is malformed is an event too, STREAM_EVENT as soon as the bytes are beyond repair.
 */
size_t stream_feed(struct stream *stream, const uint8_t *bytes, size_t length);

enum stream_state stream_state(const struct stream *stream);

/* In STREAM_EVENT (and STREAM_BROKEN) the event; owned by the stream. */
struct stream_event *stream_event(struct stream *stream);

/*
 * STREAM_HEAD of HTTP alone: request line and Host are complete, so the caller may judge early and
 * release a head that is longer than the sender's first window. NULL when they are not. The head's
 * own event still comes and must be judged as well.
 */
struct stream_event *stream_early(struct stream *stream);

/* After STREAM_EVENT: the event was judged and allowed, go on. A malformed one, which audit mode
 * lets pass, leaves the stream in STREAM_BROKEN. */
void stream_resume(struct stream *stream);

/* Replaces the buffer by one that has room for what is held, and copies it. The old one is the
 * caller's again; pointers of an event are good as before. */
void stream_rebuffer(struct stream *stream, uint8_t *buffer, size_t capacity);

/* Nothing is in the buffer now: the caller may take it away with stream_rebuffer(stream, NULL, 0)
 * and must give one back before the next head (STREAM_FULL asks). Always so in STREAM_BODY,
 * _BETWEEN, _OPAQUE. */
bool stream_is_idle(const struct stream *stream);
