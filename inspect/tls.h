/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The reader of a client's TLS records up to its last ClientHello (RFC 8446 section 5.1); private
 * to inspect/.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inspect/buffer.h"
#include "inspect/hello.h"

enum tls_step {
	TLS_MORE,
	TLS_FULL,     /* the buffer has no room for the next byte */
	TLS_HELLO,    /* `hello` is complete */
	TLS_FOREIGN,  /* first bytes that are no TLS */
	TLS_DONE,     /* no ClientHello can follow: the rest is the peers' business */
	TLS_MALFORMED /* `problem` */
};

enum tls_state {
	TLS_HEADER,  /* in the five octets of a record header */
	TLS_MESSAGE, /* in a record that carries the ClientHello */
	TLS_SKIP     /* in a record that carries none: ChangeCipherSpec, alert, early data */
};

struct tls {
	enum tls_state state;
	const char *problem;
	bool second; /* the first hello was read */
	bool inside; /* a message has begun: no other record may come between */
	uint8_t header_length;
	uint8_t header[5];
	uint16_t record_left;
	uint32_t message_length; /* with its header; 0 until it is known */
	uint32_t skipped;        /* octets of early data records */
	struct hello hello;
	struct host first_host;
};

void tls_init(struct tls *tls);

/* Reads on from BYTES, no further than the end of a ClientHello, which BUFFER collects. */
enum tls_step tls_feed(struct tls *tls, struct head_buffer *buffer, const uint8_t *bytes,
		       size_t length, size_t *taken);

/* After TLS_HELLO: goes on to look for the second one. TLS_MORE, or TLS_DONE when there cannot be
 * one. */
enum tls_step tls_resume(struct tls *tls);
