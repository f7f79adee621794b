/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/idna.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <idn2.h>

static bool is_ascii(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] >= 0x80)
			return false;
	return true;
}

static int map(const char *text, char *out)
{
	uint8_t *ascii = NULL;
	int status = idn2_lookup_u8((const uint8_t *)text, &ascii,
				    IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);

	if (status != IDN2_OK)
		return -EINVAL;
	size_t length = strlen((const char *)ascii);
	if (length < IDNA_TEXT_SIZE)
		memcpy(out, ascii, length + 1);
	idn2_free(ascii);
	return length < IDNA_TEXT_SIZE ? 0 : -EINVAL;
}

int idna_ascii(const char *text, size_t length, char *out)
{
	char copy[IDNA_TEXT_SIZE];

	if (length >= sizeof(copy) || memchr(text, '\0', length) != NULL)
		return -EINVAL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (!is_ascii(copy, length))
		return map(copy, out);
	memcpy(out, copy, length + 1);
	return 0;
}

enum name_error idna_name(const char *text, size_t length, struct name *out)
{
	char ascii[IDNA_TEXT_SIZE];

	/* an over-long or NUL-holding ASCII name keeps its own error */
	if (is_ascii(text, length))
		return name_from_text(text, length, out);
	if (idna_ascii(text, length, ascii) < 0)
		return NAME_BAD_BYTE;
	return name_from_text(ascii, strlen(ascii), out);
}
