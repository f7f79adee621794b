/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/arena.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Small values share a block; a value over a quarter of one gets its own. */
#define BLOCK_SIZE 65536u

struct arena_block {
	struct arena_block *next;
	size_t used, size;
	alignas(max_align_t) char bytes[];
};

static struct arena_block *block_new(struct arena *arena, size_t size)
{
	struct arena_block *block = calloc(1, sizeof(*block) + size);

	if (block == NULL) {
		arena->failed = true;
		return NULL;
	}
	block->size = size;
	return block;
}

void *arena_alloc(struct arena *arena, size_t count, size_t size)
{
	struct arena_block *block = arena->blocks;
	size_t total;

	if (__builtin_mul_overflow(count, size, &total) || total > SIZE_MAX / 2) {
		arena->failed = true;
		return NULL;
	}
	total = (total + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (block == NULL || block->size - block->used < total) {
		bool alone = total > BLOCK_SIZE / 4;
		struct arena_block *fresh = block_new(arena, alone ? total : BLOCK_SIZE);
		if (fresh == NULL)
			return NULL;
		/* a block of its own goes behind the one that still has room */
		struct arena_block **link = alone && block != NULL ? &block->next : &arena->blocks;
		fresh->next = *link;
		*link = fresh;
		block = fresh;
	}
	void *memory = block->bytes + block->used;
	block->used += total;
	return memory;
}

char *arena_text(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_alloc(arena, length + 1, 1);

	if (copy != NULL && length > 0)
		memcpy(copy, text, length);
	return copy;
}

void arena_free(struct arena *arena)
{
	while (arena->blocks != NULL) {
		struct arena_block *next = arena->blocks->next;
		free(arena->blocks);
		arena->blocks = next;
	}
}
