/* SPDX-License-Identifier: GPL-2.0-or-later */

/* One packet, whole and as the beginning of one: no read outside it, and a payload inside it. */

#include <stdlib.h>

#include "inspect/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(const uint8_t *bytes, size_t size, const struct packet *packet)
{
	if (packet->payload < bytes || packet->payload + packet->payload_length > bytes + size)
		abort();
	if (address_length(&packet->source) != address_length(&packet->destination))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct packet packet;

	if (packet_read(bytes, size, &packet) == PACKET_OK)
		check(bytes, size, &packet);
	if (packet_read_head(bytes, size, &packet) == PACKET_OK)
		check(bytes, size, &packet);
	return 0;
}
