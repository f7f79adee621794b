/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The bounded reader: the one way to untrusted bytes. A read past the end sets `failed`, gives zeros and
 * moves nothing; the caller checks once at the end of a structure, before it uses any field of it.
 * Multi-byte integers are in network order on the wire and in host order in the result.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool failed;
};

static inline struct reader reader_init(const uint8_t *bytes, size_t size)
{
	return (struct reader){.at = bytes, .end = bytes + size};
}

static inline size_t reader_left(const struct reader *reader)
{
	return (size_t)(reader->end - reader->at);
}

/* COUNT bytes in place, or NULL. */
static inline const uint8_t *reader_bytes(struct reader *reader, size_t count)
{
	if (reader->failed || reader_left(reader) < count) {
		reader->failed = true;
		return NULL;
	}
	const uint8_t *bytes = reader->at;
	reader->at += count;
	return bytes;
}

static inline uint8_t reader_u8(struct reader *reader)
{
	const uint8_t *b = reader_bytes(reader, 1);
	return b == NULL ? 0 : b[0];
}

static inline uint16_t reader_u16(struct reader *reader)
{
	const uint8_t *b = reader_bytes(reader, 2);
	return (uint16_t)(b == NULL ? 0 : b[0] << 8 | b[1]);
}

static inline uint32_t reader_u24(struct reader *reader)
{
	const uint8_t *b = reader_bytes(reader, 3);
	return b == NULL ? 0 : (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline uint32_t reader_u32(struct reader *reader)
{
	const uint8_t *b = reader_bytes(reader, 4);
	return b == NULL ? 0
			 : (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* A reader over the next COUNT bytes, which are skipped here; failed when there are fewer. */
static inline struct reader reader_sub(struct reader *reader, size_t count)
{
	const uint8_t *bytes = reader_bytes(reader, count);
	return bytes == NULL ? (struct reader){.failed = true}
			     : (struct reader){.at = bytes, .end = bytes + count};
}
