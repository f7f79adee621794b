/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Segments of one flow, four octets of input each, against an array of every octet that was taken:
 * what is given out is what was taken first, and no octet that is not judged is ever taken twice.
 */

#include <stdlib.h>
#include <string.h>

#include "inspect/reassembly.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define SPAN         4096
#define SYN_SEQUENCE 0xffffff00u

struct truth {
	bool seen[SPAN];
	uint8_t octet[SPAN];
	size_t next, released;
};

static void check(struct truth *truth, const struct reassembly *r, const struct segment *segment,
		  size_t at, const uint8_t *payload, size_t length)
{
	if (segment->kind == SEGMENT_OUTSIDE || segment->kind == SEGMENT_CONTRADICTORY)
		return;
	for (size_t i = at; i < at + length; i++) {
		if (truth->seen[i] && i >= truth->released && truth->octet[i] != payload[i - at])
			abort();
		if (!truth->seen[i])
			truth->octet[i] = payload[i - at];
		truth->seen[i] = true;
	}
	if (segment->kind == SEGMENT_NEW) {
		if (segment->length > SPAN - truth->next ||
		    (segment->length > 0 &&
		     memcmp(segment->bytes, truth->octet + truth->next, segment->length) != 0))
			abort();
		truth->next += segment->length;
	}
	if (truth->next < SPAN && truth->seen[truth->next])
		abort();
	if (reassembly_is_released(r, segment->end) != (at + length <= truth->released))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static uint8_t buffers[2][SPAN];
	static struct truth truth;
	struct reassembly r;
	size_t at = 0;

	memset(&truth, 0, sizeof(truth));
	reassembly_init(&r, SYN_SEQUENCE);
	for (size_t i = 0; i + 4 <= size; i += 4) {
		uint8_t payload[256];
		size_t length = bytes[i + 2];
		struct segment segment;
		at = ((size_t)bytes[i] << 8 | bytes[i + 1]) % (SPAN - 256);
		for (size_t j = 0; j < length; j++)
			payload[j] = (uint8_t)((at + j) * 7);
		if ((bytes[i + 3] & 0x0f) == 1 && length > 0)
			payload[length / 2] ^= 1;
		struct packet packet = {.sequence = SYN_SEQUENCE + 1 + (uint32_t)at,
					.flags = (bytes[i + 3] & 0x1f) == 2 ? PACKET_FIN : 0,
					.payload = payload,
					.payload_length = length};
		reassembly_add(&r, &packet, &segment);
		if (segment.kind == SEGMENT_ROOM) {
			uint8_t *other = r.buffer == buffers[0] ? buffers[1] : buffers[0];
			if (segment.needed > SPAN ||
			    reassembly_rebuffer(&r, other, segment.needed) != 0)
				abort();
			reassembly_add(&r, &packet, &segment);
			if (segment.kind == SEGMENT_ROOM)
				abort();
		}
		check(&truth, &r, &segment, at, payload, length);
		if ((bytes[i + 3] & 0x30) == 0x10) {
			reassembly_release(&r);
			truth.released = truth.next;
		}
		if ((bytes[i + 3] & 0xc0) == 0x40 && reassembly_is_idle(&r) &&
		    reassembly_rebuffer(&r, NULL, 0) != 0)
			abort();
	}
	return 0;
}
