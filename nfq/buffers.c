/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/buffers.h"

/*
 * Theory: a class is an array of buffers and a stack of free indices. The stack is filled lazily:
 * indices from `fresh` upwards were never lent, so the arrays stay untouched pages until they are
 * needed.
 */

#include <errno.h>
#include <stdalign.h>
#include <string.h>

#include "nfq/limits.h"

static alignas(64) uint8_t small_bytes[BUFFER_SMALL_COUNT][BUFFER_SMALL];
static alignas(64) uint8_t middle_bytes[BUFFER_MIDDLE_COUNT][BUFFER_MIDDLE];
static alignas(64) uint8_t large_bytes[BUFFER_LARGE_COUNT][BUFFER_LARGE];
static alignas(64) uint8_t huge_bytes[BUFFER_HUGE_COUNT][BUFFER_HUGE];

static uint32_t small_free[BUFFER_SMALL_COUNT];
static uint32_t middle_free[BUFFER_MIDDLE_COUNT];
static uint32_t large_free[BUFFER_LARGE_COUNT];
static uint32_t huge_free[BUFFER_HUGE_COUNT];

static struct pool {
	uint8_t *bytes;
	size_t size;
	uint32_t count;
	uint32_t *free; /* indices returned, a stack */
	uint32_t returned;
	uint32_t fresh; /* indices from here on were never lent */
} pools[BUFFER_CLASSES] = {
	[BUFFER_CLASS_SMALL] = {small_bytes[0], BUFFER_SMALL, BUFFER_SMALL_COUNT, small_free, 0, 0},
	[BUFFER_CLASS_MIDDLE] = {middle_bytes[0], BUFFER_MIDDLE, BUFFER_MIDDLE_COUNT, middle_free,
				 0, 0},
	[BUFFER_CLASS_LARGE] = {large_bytes[0], BUFFER_LARGE, BUFFER_LARGE_COUNT, large_free, 0, 0},
	[BUFFER_CLASS_HUGE] = {huge_bytes[0], BUFFER_HUGE, BUFFER_HUGE_COUNT, huge_free, 0, 0},
};

/* Loans of each client, but for small ones. */
static uint16_t by_client[BUFFER_CLASSES][CLIENT_SLOTS];

void buffers_init(void)
{
	memset(by_client, 0, sizeof(by_client));
	for (unsigned class = 0; class < BUFFER_CLASSES; class ++) {
		pools[class].returned = 0;
		pools[class].fresh = 0;
	}
}

static int pool_take(struct pool *pool, uint32_t *index)
{
	if (pool->returned > 0) {
		*index = pool->free[--pool->returned];
		return 0;
	}
	if (pool->fresh == pool->count)
		return -ENOBUFS;
	*index = pool->fresh++;
	return 0;
}

int buffers_borrow(size_t capacity, uint16_t slot, struct buffer *out)
{
	int error = -E2BIG;

	for (unsigned class = 0; class < BUFFER_CLASSES; class ++) {
		struct pool *pool = &pools[class];
		uint32_t index;

		if (pool->size < capacity)
			continue;
		if (class != BUFFER_CLASS_SMALL && by_client[class][slot] >= pool->count / 2)
			error = -ENOBUFS;
		else
			error = pool_take(pool, &index);
		if (error < 0)
			continue;
		if (class != BUFFER_CLASS_SMALL)
			by_client[class][slot]++;
		*out = (struct buffer){.bytes = pool->bytes + (size_t)index * pool->size,
				       .capacity = pool->size,
				       .class = (enum buffer_class) class,
				       .index = index,
				       .slot = slot};
		return 0;
	}
	return error;
}

void buffers_return(struct buffer *buffer)
{
	if (buffer->bytes == NULL)
		return;
	struct pool *pool = &pools[buffer->class];

	pool->free[pool->returned++] = buffer->index;
	if (buffer->class != BUFFER_CLASS_SMALL)
		by_client[buffer->class][buffer->slot]--;
	*buffer = (struct buffer){.bytes = NULL};
}

uint32_t buffers_lent(enum buffer_class class)
{
	return pools[class].fresh - pools[class].returned;
}
