/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/explain.h"

#include <stdarg.h>
#include <stdio.h>

int explain(char *why, size_t why_bytes, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (why && why_bytes)
		vsnprintf(why, why_bytes, format, arguments);
	va_end(arguments);
	return error;
}
