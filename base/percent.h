/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stddef.h>

/*
 * Percent-decodes (RFC 3986 section 2.1) LENGTH octets of TEXT into OUT, which is as large as TEXT and may be
 * TEXT itself, and returns the decoded length. A "%" without two hex digits is copied as it is.
 */
size_t percent_decode(const char *text, size_t length, char *out);
