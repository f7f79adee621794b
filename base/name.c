/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "name.h"

#include <assert.h>
#include <string.h>

static const char *const error_texts[] = {
	[NAME_OK] = "no error",
	[NAME_EMPTY_LABEL] = "empty label",
	[NAME_LABEL_TOO_LONG] = "label over 63 octets",
	[NAME_TOO_LONG] = "name over 253 octets",
	[NAME_BAD_BYTE] = "byte outside a host name",
	[NAME_TRUNCATED] = "name is cut short",
};
static_assert(sizeof(error_texts) / sizeof(error_texts[0]) == NAME_TRUNCATED + 1, "one text each");

const char *name_error_text(enum name_error error)
{
	return (unsigned)error <= NAME_TRUNCATED ? error_texts[error] : "?";
}

/* The canonical form of BYTE, 0 when it may not stand in a name. */
static char canonical_byte(uint8_t byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return (char)(byte - 'A' + 'a');
	if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
	    byte == '_')
		return (char)byte;
	return 0;
}

enum name_error name_from_text(const char *text, size_t length, struct name *out)
{
	struct name name;
	size_t label = 0;

	if (length > 0 && text[length - 1] == '.')
		length--;
	if (length == 0)
		return NAME_EMPTY_LABEL;
	if (length > NAME_TEXT_MAX)
		return NAME_TOO_LONG;
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '.') {
			if (label == 0)
				return NAME_EMPTY_LABEL;
			label = 0;
			name.text[i] = '.';
			continue;
		}
		name.text[i] = canonical_byte((uint8_t)text[i]);
		if (name.text[i] == 0)
			return NAME_BAD_BYTE;
		if (++label > NAME_LABEL_MAX)
			return NAME_LABEL_TOO_LONG;
	}
	if (label == 0)
		return NAME_EMPTY_LABEL;
	name.text[length] = '\0';
	name.length = (uint8_t)length;
	*out = name;
	return NAME_OK;
}

enum name_error name_from_wire(const uint8_t *wire, size_t size, struct name *out, size_t *used)
{
	struct name name = {.length = 0};
	size_t at = 0, length = 0;
	bool bad_byte = false;

	for (;;) {
		if (at >= size)
			return NAME_TRUNCATED;
		size_t label = wire[at++];
		if (label == 0)
			break;
		if (label > NAME_LABEL_MAX || label > size - at)
			return NAME_TRUNCATED;
		if (at + label + 1 > NAME_WIRE_MAX)
			return NAME_TOO_LONG;
		if (length > 0)
			name.text[length++] = '.';
		for (size_t i = 0; i < label; i++) {
			char byte = canonical_byte(wire[at++]);
			bad_byte = bad_byte || byte == 0;
			name.text[length++] = byte;
		}
	}
	if (used != NULL)
		*used = at;
	if (bad_byte)
		return NAME_BAD_BYTE;
	name.text[length] = '\0';
	name.length = (uint8_t)length;
	*out = name;
	return NAME_OK;
}

size_t name_to_wire(const struct name *name, uint8_t *wire)
{
	size_t at = 0, start = 0;

	for (size_t i = 0; name->length > 0 && i <= name->length; i++) {
		if (i < name->length && name->text[i] != '.')
			continue;
		wire[at++] = (uint8_t)(i - start);
		memcpy(wire + at, name->text + start, i - start);
		at += i - start;
		start = i + 1;
	}
	wire[at++] = 0;
	return at;
}

bool name_equal(const struct name *a, const struct name *b)
{
	return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

bool name_is_within(const struct name *name, const struct name *ancestor)
{
	if (ancestor->length == 0 || name_equal(name, ancestor))
		return true;
	if (name->length <= ancestor->length)
		return false;

	size_t skip = (size_t)(name->length - ancestor->length);
	return name->text[skip - 1] == '.' &&
	       memcmp(name->text + skip, ancestor->text, ancestor->length) == 0;
}

size_t name_label_count(const struct name *name)
{
	size_t count = name->length > 0;

	for (size_t i = 0; i < name->length; i++)
		count += name->text[i] == '.';
	return count;
}

struct name name_parent(const struct name *name)
{
	const char *dot = memchr(name->text, '.', name->length);
	struct name parent = {.length = 0};

	if (dot != NULL) {
		parent.length = (uint8_t)(name->text + name->length - dot - 1);
		memcpy(parent.text, dot + 1, parent.length);
	}
	parent.text[parent.length] = '\0';
	return parent;
}
