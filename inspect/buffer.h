/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The buffer that the caller of a stream lends; private to inspect/.
 */

#include <stddef.h>
#include <stdint.h>

struct head_buffer {
	uint8_t *bytes;
	size_t capacity, used;
};
