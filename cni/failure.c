/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cni/failure.h"

#include <stdarg.h>
#include <stdio.h>

int fail(struct failure *failure, enum failure_code code, const char *format, ...)
{
	va_list arguments;

	failure->code = code;
	va_start(arguments, format);
	vsnprintf(failure->message, sizeof(failure->message), format, arguments);
	va_end(arguments);
	return -1;
}
