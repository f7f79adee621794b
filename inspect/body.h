/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The body of an HTTP/1.x request, skipped by its framing (RFC 9112 sections 6 and 7.1); private to
 * inspect/. Nothing is buffered.
 */

#include <stddef.h>
#include <stdint.h>

enum body_state {
	BODY_DONE,      /* no body, or all of it was read */
	BODY_COUNTED,   /* `left` octets of Content-Length remain */
	BODY_SIZE,      /* in the hexadecimal size of a chunk */
	BODY_EXTENSION, /* behind the ";" of a chunk extension */
	BODY_SIZE_LF,   /* the CR of the size line was read */
	BODY_CHUNK,     /* `left` octets of the chunk remain */
	BODY_CHUNK_CR,  /* the chunk was read, CR LF follows */
	BODY_CHUNK_LF,  /* its CR was read */
	BODY_TRAILER,   /* at the start of a trailer line */
	BODY_TRAILER_NAME,
	BODY_TRAILER_VALUE,
	BODY_TRAILER_LF, /* the CR of a trailer line was read */
	BODY_END_LF      /* the CR of the empty last line was read */
};

/* Longest forbidden trailer name, "transfer-encoding", and one octet to tell a longer one. */
#define BODY_NAME_SIZE 18

struct body {
	enum body_state state;
	uint8_t digits;            /* of the size that is being read */
	uint8_t name_length;       /* of the trailer name, at most BODY_NAME_SIZE */
	char name[BODY_NAME_SIZE]; /* its beginning, lower case */
	uint32_t extra;            /* octets of this size line or of all trailers */
	uint64_t left;
};

void body_init_counted(struct body *body, uint64_t length);
void body_init_chunked(struct body *body);

/*
 * Reads on from BYTES, no further than the end of the body; *TAKEN is how many were read. Returns
 * NULL, or what is wrong with the last of them.
 */
const char *body_feed(struct body *body, const uint8_t *bytes, size_t length, size_t *taken);
