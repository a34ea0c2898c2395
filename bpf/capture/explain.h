/* SPDX-License-Identifier: GPL-2.0-only */
/* Formats the reason of a failure for the user. */
#ifndef CAPTURE_EXPLAIN_H
#define CAPTURE_EXPLAIN_H

#include <stddef.h>

/* Writes the reason into why[0..why_bytes-1]; does not write if why_bytes is 0. Returns `error`, so
 * that a caller can write `return explain(...)`. */
int explain(char *why, size_t why_bytes, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
