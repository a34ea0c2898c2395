/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parses the values that options, configuration keys and addresses contain. All programs use these
 * parsers, so a duration or a size is written in the same way everywhere. The parsers ignore the
 * locale and accept neither blanks nor a sign where none is documented.
 */
#ifndef PROGRAM_VALUE_H
#define PROGRAM_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses text[0..len-1], which must be decimal digits, into *out. Returns 0, or -EINVAL if the text
 * is empty, contains another character or exceeds UINT64_MAX; *out is unchanged then. */
int digits_parse(const char *text, size_t len, uint64_t *out);
/* Parses a decimal number that is the whole text. Returns 0 or -EINVAL. */
int number_parse(const char *text, uint64_t *out);
/* Parses a decimal number with an optional '-'. Returns 0 or -EINVAL. */
int signed_parse(const char *text, int64_t *out);
/* Parses a positive number with a unit (ns, us, ms, s, m, h), such as "100ms" or "1.5s", into
 * nanoseconds. Returns 0, or -EINVAL if the number or the unit is missing, or if the result is
 * below 1 ns or exceeds INT64_MAX ns. */
int duration_parse(const char *text, uint64_t *ns);
/* Parses a size: a number of bytes, or a number with K, M, G or T (powers of 1024; "iB" may
 * follow). Returns 0 or -EINVAL. */
int size_parse(const char *text, uint64_t *bytes);
/* Parses a whole percentage from 0% to 100%; the '%' is required. Returns 0 or -EINVAL. */
int percent_parse(const char *text, uint64_t *percent);
/* Parses "yes" or "no". Returns 0 or -EINVAL. */
int flag_parse(const char *text, bool *out);

#endif
