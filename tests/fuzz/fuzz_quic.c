/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Datagrams of one QUIC flow: raw ones, and Initial packets whose frames are the input, sealed with
 * the keys of one of a few connections. An event ends what is half read, a step leaves the reader in
 * the state that it says, and nothing is read that is not there.
 */

#include <stdalign.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/quic.h"
#include "tests/unit/inspect/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static uint8_t datagram[SEAL_SIZE];

struct run {
	struct quic *quic;
	uint8_t *buffer;
	size_t capacity;
};

static void give_room(struct run *run)
{
	size_t capacity = quic_buffer_needed(run->quic);
	uint8_t *larger = malloc(capacity);

	if (larger == NULL || capacity <= run->capacity)
		abort();
	quic_rebuffer(run->quic, larger, capacity);
	free(run->buffer);
	run->buffer = larger;
	run->capacity = capacity;
}

static void feed(struct run *run, const uint8_t *bytes, size_t length)
{
	uint8_t *copy = malloc(length + 1); /* so that a read behind the end is seen */
	enum quic_step step;

	if (copy == NULL)
		abort();
	if (length > 0)
		memcpy(copy, bytes, length);
	while ((step = quic_feed(run->quic, copy, length)) == QUIC_ROOM)
		give_room(run);
	free(copy);
	if (step == QUIC_EVENT) {
		const struct stream_event *event = quic_event(run->quic);
		if (event->request.malformed != (event->problem != NULL) ||
		    event->request.host.kind == HOST_MALFORMED)
			abort();
		quic_resume(run->quic);
		if (!quic_is_judged(run->quic))
			abort();
	} else if ((step == QUIC_PASS) != quic_is_judged(run->quic) && step != QUIC_DROP) {
		abort();
	}
}

/* What to do, its length in two octets, then that many: 0x80 raw; else two bits of connection, one
 * of version, the rest of packet number. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char *const ids[] = {"original", "chosen-1", "another1", "another2"};
	alignas(16) static uint8_t storage[STREAM_SIZE];
	static struct initial *initial;
	struct run run = {.buffer = NULL};

	if (initial == NULL)
		initial = initial_new();
	run.quic = quic_init(storage, initial, NULL, 0);
	while (size >= 3) {
		uint8_t what = bytes[0];
		size_t length = (size_t)(bytes[1] << 8 | bytes[2]) % 1500;
		bytes += 3;
		size -= 3;
		if (length > size)
			length = size;
		if ((what & 0x80) != 0) {
			feed(&run, bytes, length);
		} else {
			struct seal seal = seal_first(ids[what & 3]);
			if ((what & 3) == 1)
				memcpy(seal.keys.bytes, ids[0], 8);
			if ((what & 4) != 0)
				seal.version = INITIAL_VERSION_2;
			seal.number = what >> 3;
			feed(&run, datagram, seal_initial(&seal, bytes, length, datagram));
		}
		bytes += length;
		size -= length;
	}
	free(run.buffer);
	return 0;
}
