/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/plan.h"

#include <stdio.h>
#include <string.h>

static struct address block_address(uint32_t block, uint32_t offset)
{
	uint32_t value = (198u << 24 | 18u << 16) + block * 8 + offset;

	return address_ipv4((uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8),
			    (uint8_t)value);
}

struct prefix plan_block_prefix(uint32_t block)
{
	return (struct prefix){.address = block_address(block, 0), .length = 29};
}

/* fd, 40 random bits (RFC 4193 section 3.1), the link, the host on it. */
static struct address local_address(const uint8_t random[5], uint8_t link, uint8_t host)
{
	uint8_t bytes[16] = {0xfd, [7] = link, [15] = host};

	memcpy(bytes + 1, random, 5);
	return address_from_bytes(bytes, sizeof(bytes));
}

void plan_interface(const char *id, char *interface)
{
	snprintf(interface, 16, "pfu%.8s", id);
}

void plan_make(struct plan *plan, const uint8_t random[9], uint32_t block)
{
	memset(plan, 0, sizeof(*plan));
	snprintf(plan->id, sizeof(plan->id), "%02x%02x%02x%02x", random[0], random[1], random[2],
		 random[3]);
	plan_interface(plan->id, plan->interface);
	plan->block = block;

	struct plan_side *v4 = &plan->v4, *v6 = &plan->v6;
	v4->host = block_address(block, 1);
	v4->up = block_address(block, 2);
	v4->in = block_address(block, 5);
	v4->command = block_address(block, 6);
	v4->run = plan_block_prefix(block);
	v4->governed = (struct prefix){.address = block_address(block, 4), .length = 30};
	v4->length = 30;

	v6->host = local_address(random + 4, 0, 1);
	v6->up = local_address(random + 4, 0, 2);
	v6->in = local_address(random + 4, 1, 1);
	v6->command = local_address(random + 4, 1, 2);
	v6->run = (struct prefix){.address = local_address(random + 4, 0, 0), .length = 48};
	v6->governed = (struct prefix){.address = local_address(random + 4, 1, 0), .length = 64};
	v6->length = 64;
}
