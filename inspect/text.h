/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The byte classes of HTTP (RFC 9110 section 5, RFC 5234 appendix B.1) and comparisons of counted
 * text; private to inspect/. No locale, no <ctype.h>.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool text_is_digit(uint8_t byte)
{
	return byte >= '0' && byte <= '9';
}

static inline char text_lower(uint8_t byte)
{
	return (char)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte);
}

static inline bool text_is_alpha(uint8_t byte)
{
	char lower = text_lower(byte);
	return lower >= 'a' && lower <= 'z';
}

/* SP and VCHAR. */
static inline bool text_is_printable(uint8_t byte)
{
	return byte >= 0x20 && byte <= 0x7e;
}

/* What may stand in a field value: HTAB, SP, VCHAR, obs-text. */
static inline bool text_is_field(uint8_t byte)
{
	return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

static inline bool text_is_token(uint8_t byte)
{
	return text_is_alpha(byte) || text_is_digit(byte) ||
	       (byte != 0 && strchr("!#$%&'*+-.^_`|~", byte) != NULL);
}

/* 0..15, or -1. */
static inline int text_hex_digit(uint8_t byte)
{
	if (text_is_digit(byte))
		return byte - '0';
	char lower = text_lower(byte);
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Equal to WORD, which is in lower case, but for the case of TEXT. */
static inline bool text_is(const char *text, size_t length, const char *word)
{
	if (length != strlen(word))
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text_lower((uint8_t)text[i]) != word[i])
			return false;
	}
	return true;
}

static inline bool text_begins(const char *text, size_t length, const char *word)
{
	return length >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}
