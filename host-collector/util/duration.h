/* SPDX-License-Identifier: GPL-2.0-only */
/* Converts durations to the text that reports print; proto/program/value.h parses them. */
#ifndef UTIL_DURATION_H
#define UTIL_DURATION_H

#include <stdint.h>

/* A duration as text: "80 us", "3.5 ms", "412 ms", "12.0 s". */
struct duration_text {
	char text[24];
};
/* Formats nanoseconds for people. Returns the text by value, for use in an argument list. */
struct duration_text duration_text(int64_t ns);
/* Does the same with three digits, for places with little room: "940 ns", "85.0 us", "1.86 ms",
 * "12.0 s". */
struct duration_text duration_digits(uint64_t ns);

#endif
