// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>
#include <stdio.h>

#include "proto/query/expr.h"

int expr_fail(struct expr_error *error, int err, size_t at, const char *format, ...)
{
	va_list args;

	error->at = at;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return err;
}
