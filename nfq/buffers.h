/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Buffers in four sizes, static. They are lent to flows while these read a head.
 */

#include <stddef.h>
#include <stdint.h>

enum buffer_class {
	BUFFER_CLASS_SMALL,
	BUFFER_CLASS_MIDDLE,
	BUFFER_CLASS_LARGE,
	BUFFER_CLASS_HUGE,
	BUFFER_CLASSES
};

struct buffer {
	uint8_t *bytes; /* NULL: none */
	size_t capacity;
	enum buffer_class class;
	uint32_t index; /* the pool's business, */
	uint16_t slot;  /* and so is its client */
};

/* Forgets every loan; called once before the first, and by tests. */
void buffers_init(void);

/*
 * Lends the client counted at SLOT (below CLIENT_SLOTS) the smallest free buffer of at least CAPACITY
 * octets. Of each class but the small one, whose number bounds heads per client anyway, a client gets
 * half at most, so that no client stalls the others' requests. 0, -E2BIG when no class has that
 * size, or -ENOBUFS; *OUT untouched on failure. The last one returned is lent first, so few pages
 * are touched.
 */
int buffers_borrow(size_t capacity, uint16_t slot, struct buffer *out);

/* Takes BUFFER back and makes it "none"; a buffer that is none already is left alone. */
void buffers_return(struct buffer *buffer);

/* Lent buffers of CLASS. */
uint32_t buffers_lent(enum buffer_class class);
