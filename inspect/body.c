/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inspect/body.h"

#include <string.h>

#include "inspect/text.h"

/* Sixty bits: no sum with another length overflows. */
#define SIZE_DIGITS_MAX 15
/* Nobody sends chunk extensions; what is longer than a signature is an attempt to hide something.
 */
#define EXTENSION_MAX 1024u
#define TRAILERS_MAX  16384u

void body_init_counted(struct body *body, uint64_t length)
{
	*body = (struct body){.state = length > 0 ? BODY_COUNTED : BODY_DONE, .left = length};
}

void body_init_chunked(struct body *body)
{
	*body = (struct body){.state = BODY_SIZE};
}

static const char *size_byte(struct body *body, uint8_t byte)
{
	int digit = text_hex_digit(byte);

	if (digit >= 0) {
		if (++body->digits > SIZE_DIGITS_MAX)
			return "chunk size too long";
		body->left = body->left << 4 | (unsigned)digit;
		return NULL;
	}
	if (body->digits == 0)
		return "chunk size is no number";
	if (byte == ';')
		body->state = BODY_EXTENSION;
	else if (byte == '\r')
		body->state = BODY_SIZE_LF;
	else
		return "chunk size is no number";
	return NULL;
}

static const char *extension_byte(struct body *body, uint8_t byte)
{
	if (byte == '\r')
		body->state = BODY_SIZE_LF;
	else if (!text_is_printable(byte) && byte != '\t')
		return "control byte in a chunk extension";
	else if (++body->extra > EXTENSION_MAX)
		return "chunk extension too long";
	return NULL;
}

/* The line end behind a size: data follows, or the trailers behind the last chunk. */
static const char *size_line_end(struct body *body, uint8_t byte)
{
	if (byte != '\n')
		return "bare CR in a chunk size line";
	body->state = body->left > 0 ? BODY_CHUNK : BODY_TRAILER;
	body->digits = 0;
	body->extra = 0;
	return NULL;
}

/* A trailer that would change the framing or the host if it were merged into the head: RFC
 * 9110 6.5.1. */
static const char *trailer_name_end(struct body *body)
{
	if (text_is(body->name, body->name_length, "host") ||
	    text_is(body->name, body->name_length, "content-length") ||
	    text_is(body->name, body->name_length, "transfer-encoding"))
		return "forbidden trailer";
	body->state = BODY_TRAILER_VALUE;
	return NULL;
}

static const char *trailer_byte(struct body *body, uint8_t byte)
{
	if (++body->extra > TRAILERS_MAX)
		return "trailers too long";
	if (body->state == BODY_TRAILER) {
		body->name_length = 0;
		if (byte == '\r') {
			body->state = BODY_END_LF;
			return NULL;
		}
		body->state = BODY_TRAILER_NAME;
	}
	if (body->state == BODY_TRAILER_NAME) {
		if (byte == ':' && body->name_length > 0)
			return trailer_name_end(body);
		if (!text_is_token(byte))
			return "bad trailer name";
		if (body->name_length < BODY_NAME_SIZE)
			body->name[body->name_length++] = text_lower(byte);
		return NULL;
	}
	if (byte == '\r')
		body->state = BODY_TRAILER_LF;
	else if (!text_is_field(byte))
		return "control byte in a trailer";
	return NULL;
}

static const char *line_feed(struct body *body, uint8_t byte, enum body_state next)
{
	if (byte != '\n')
		return "bare CR in a chunked body";
	body->state = next;
	return NULL;
}

static const char *body_byte(struct body *body, uint8_t byte)
{
	switch (body->state) {
	case BODY_SIZE:
		return size_byte(body, byte);
	case BODY_EXTENSION:
		return extension_byte(body, byte);
	case BODY_SIZE_LF:
		return size_line_end(body, byte);
	case BODY_CHUNK_CR:
		if (byte != '\r')
			return "chunk longer than its size";
		body->state = BODY_CHUNK_LF;
		return NULL;
	case BODY_CHUNK_LF:
		return line_feed(body, byte, BODY_SIZE);
	case BODY_TRAILER:
	case BODY_TRAILER_NAME:
	case BODY_TRAILER_VALUE:
		return trailer_byte(body, byte);
	case BODY_TRAILER_LF:
		return line_feed(body, byte, BODY_TRAILER);
	case BODY_END_LF:
		return line_feed(body, byte, BODY_DONE);
	case BODY_DONE:
	case BODY_COUNTED:
	case BODY_CHUNK:
		break;
	}
	return NULL;
}

const char *body_feed(struct body *body, const uint8_t *bytes, size_t length, size_t *taken)
{
	size_t at = 0;
	const char *problem = NULL;

	while (at < length && body->state != BODY_DONE && problem == NULL) {
		if (body->state != BODY_COUNTED && body->state != BODY_CHUNK) {
			problem = body_byte(body, bytes[at++]);
			continue;
		}
		size_t skip = body->left < length - at ? (size_t)body->left : length - at;
		at += skip;
		body->left -= skip;
		if (body->left == 0)
			body->state = body->state == BODY_CHUNK ? BODY_CHUNK_CR : BODY_DONE;
	}
	*taken = at;
	return problem;
}
