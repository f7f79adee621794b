/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Memory that is freed whole. A failed allocation returns NULL and sets `failed`, which is asked
 * once at the end.
 */

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *blocks;
	bool failed;
};

/* Zeroed memory for COUNT values of SIZE octets, aligned for any type; NULL when there is none. */
void *arena_alloc(struct arena *arena, size_t count, size_t size);

/* A NUL-terminated copy of LENGTH octets. */
char *arena_text(struct arena *arena, const char *text, size_t length);

void arena_free(struct arena *arena);
