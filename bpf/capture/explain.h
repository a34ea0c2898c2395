/* SPDX-License-Identifier: GPL-2.0-only */
/* Failures with a reason for people. */
#ifndef CAPTURE_EXPLAIN_H
#define CAPTURE_EXPLAIN_H

#include <stddef.h>

/* Writes the reason into why[0..why_bytes-1], if there is one, and returns `error`, for `return`.
 */
int explain(char *why, size_t why_bytes, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
