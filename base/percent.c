/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/percent.h"

static int hex_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit |= 0x20;
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

size_t percent_decode(const char *text, size_t length, char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		int high = -1, low = -1;
		if (text[i] == '%' && length - i > 2) {
			high = hex_value(text[i + 1]);
			low = hex_value(text[i + 2]);
		}
		if (high >= 0 && low >= 0) {
			out[used++] = (char)(high << 4 | low);
			i += 2;
		} else {
			out[used++] = text[i];
		}
	}
	return used;
}
