/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

/* Closes every descriptor above 2 but the COUNT ones in KEEP (negative ones are ignored). */
void descriptors_keep(const int *keep, size_t count);

/* Opens /dev/null in place of 0, 1 and 2 where they are closed, so that no descriptor of ours is one. */
void descriptors_fill(void);

/*
 * Closes every descriptor above 2 that is a socket of another family than AF_UNIX: it belongs to
 * the network namespace in which it was made, and so does what is sent through it. -ENOTSOCK with
 * nothing closed when 0, 1 or 2 is one, which cannot just be closed; other negative errno when
 * /proc does not tell.
 */
int descriptors_close_network(void);
