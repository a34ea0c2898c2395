/* SPDX-License-Identifier: GPL-2.0-only */
/* Converts durations to the text that reports print, and from the text that options accept. */
#ifndef UTIL_DURATION_H
#define UTIL_DURATION_H

#include <stdint.h>

/* A duration as text: "80 us", "3.5 ms", "412 ms", "12.0 s". */
struct duration_text {
	char text[24];
};
/* Formats nanoseconds for people. Returns the text by value, for use in an argument list. */
struct duration_text duration_text(int64_t ns);

/* Parses a positive number with a unit (ns, us, ms, s, m, h), such as "100ms", into nanoseconds.
 * Returns 0, or -EINVAL if the number or the unit is missing, or if the result is below 1 ns or
 * exceeds 9.2e18 ns. */
int duration_parse(const char *text, uint64_t *ns);

#endif
