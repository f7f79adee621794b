/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

/* Closes every descriptor above 2 but the COUNT ones in KEEP (negative ones are ignored). */
void descriptors_keep(const int *keep, size_t count);
