/* SPDX-License-Identifier: GPL-2.0-only */
/* Durations as text: what reports print and what options accept. */
#ifndef UTIL_DURATION_H
#define UTIL_DURATION_H

#include <stdint.h>

/* "412 ms", "3.5 ms", "80 us": three digits at least, for people. */
struct duration_text {
	char text[24];
};
/* Of nanoseconds, with a unit that people read ("250 us", "1.5 ms", "12.0 s"). By value, to stand
 * in an argument list. */
struct duration_text duration_text(int64_t ns);

/* "100ms" to nanoseconds. 0 or -EINVAL (no unit, zero, overflow). */
int duration_parse(const char *text, uint64_t *ns);

#endif
