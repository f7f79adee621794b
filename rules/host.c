/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A host as clients spell it: the host parser of the WHATWG URL standard for ASCII input. IPv4 is
 * read as inet_aton(3) reads it, since that is what a client does with it: one to four parts,
 * decimal, octal or hexadecimal, the last one filling the rest.
 */

#include <string.h>

#include "policy.h"
#include "rules/names.h"

/* A part of an IPv4 address; anything past 32 bits is as wrong as the next larger number. */
#define PART_TOO_LARGE (UINT64_C(1) << 40)

static int digit(char octet, unsigned base)
{
	int value = -1;

	if (octet >= '0' && octet <= '9')
		value = octet - '0';
	else if (octet >= 'a' && octet <= 'f')
		value = octet - 'a' + 10;
	else if (octet >= 'A' && octet <= 'F')
		value = octet - 'A' + 10;
	return value < (int)base ? value : -1;
}

/* "0x" and "0X" alone are the number 0. False for anything that is no number. */
static bool parse_part(const char *text, size_t length, uint64_t *out)
{
	unsigned base = 10;
	uint64_t value = 0;

	if (length == 0)
		return false;
	if (length >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		base = 16;
		text += 2;
		length -= 2;
	} else if (length >= 2 && text[0] == '0') {
		base = 8;
		text++;
		length--;
	}
	for (size_t i = 0; i < length; i++) {
		int d = digit(text[i], base);
		if (d < 0)
			return false;
		value = value * base + (unsigned)d;
		if (value > PART_TOO_LARGE)
			value = PART_TOO_LARGE;
	}
	*out = value;
	return true;
}

/* The text without one trailing dot. */
static size_t without_dot(const char *text, size_t length)
{
	return length > 0 && text[length - 1] == '.' ? length - 1 : length;
}

bool names_ends_in_number(const char *text, size_t length)
{
	uint64_t value;
	size_t end = without_dot(text, length), start = end;
	bool digits = true;

	while (start > 0 && text[start - 1] != '.')
		start--;
	if (start == end)
		return false;
	for (size_t i = start; i < end; i++)
		digits = digits && text[i] >= '0' && text[i] <= '9';
	return digits || parse_part(text + start, end - start, &value);
}

static bool parse_ipv4(const char *text, size_t length, struct address *out)
{
	uint64_t value = 0, part;
	size_t end = without_dot(text, length), start = 0;

	for (unsigned parts = 1; parts <= 4; parts++) {
		const char *dot = memchr(text + start, '.', end - start);
		size_t stop = dot != NULL ? (size_t)(dot - text) : end;
		if (!parse_part(text + start, stop - start, &part))
			return false;
		if (dot == NULL) {
			unsigned bits = 8 * (5 - parts);
			if (part >> bits != 0)
				return false;
			value = value << bits | part;
			*out = address_ipv4((uint8_t)(value >> 24), (uint8_t)(value >> 16),
					    (uint8_t)(value >> 8), (uint8_t)value);
			return true;
		}
		if (part > 255)
			return false;
		value = value << 8 | part;
		start = stop + 1;
	}
	return false;
}

void host_parse(const char *text, size_t length, struct host *out)
{
	*out = (struct host){.kind = HOST_MALFORMED};
	if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
		if (address_parse(text + 1, length - 2, &out->literal) == 0 &&
		    out->literal.family == ADDRESS_IPV6)
			out->kind = HOST_LITERAL;
		else
			out->literal = (struct address){0};
		return;
	}
	if (names_ends_in_number(text, length)) {
		if (parse_ipv4(text, length, &out->literal))
			out->kind = HOST_LITERAL;
		return;
	}
	if (name_from_text(text, length, &out->name) == NAME_OK)
		out->kind = HOST_NAME;
}
