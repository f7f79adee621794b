/* SPDX-License-Identifier: GPL-2.0-or-later */

/* One packet: no read outside it, and a payload inside it. */

#include <stdlib.h>

#include "inspect/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct packet packet;

	if (packet_read(bytes, size, &packet) != PACKET_OK)
		return 0;
	if (packet.payload < bytes || packet.payload + packet.payload_length > bytes + size)
		abort();
	if (address_length(&packet.source) != address_length(&packet.destination))
		abort();
	return 0;
}
