/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Host names as people write them, to the ASCII that goes over the wire: UTS 46, not transitional,
 * by libidn2. ASCII text stays as it is, so an A-label that libidn2 would not like is still a name.
 */

#include <stddef.h>

#include "name.h"

/* Bytes of a host after mapping, at most, and the NUL; longer ones are no names. */
#define IDNA_TEXT_SIZE 512

/* Maps UTF-8 TEXT into OUT (IDNA_TEXT_SIZE). 0, or -EINVAL when it has no ASCII form. */
int idna_ascii(const char *text, size_t length, char *out);

/* The canonical name of UTF-8 TEXT. What has no ASCII form is NAME_BAD_BYTE. */
enum name_error idna_name(const char *text, size_t length, struct name *out);
