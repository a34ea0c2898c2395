/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Small sets of times, stored as sorted intervals that neither overlap nor touch. A set holds at
 * most INTERVALS_MAX intervals. A full set discards its latest interval, so its length may be too
 * small.
 */
#ifndef UTIL_INTERVALS_H
#define UTIL_INTERVALS_H

#include <stddef.h>
#include <stdint.h>

enum { INTERVALS_MAX = 128 };

struct intervals {
	size_t n;
	struct interval {
		int64_t begin, end;
	} at[INTERVALS_MAX];
};

/* Adds [begin, end), clipped to `within`. Joins it with the intervals that it touches. */
void intervals_add(struct intervals *s, int64_t begin, int64_t end, struct interval within);
/* Writes the intersection of `a` and `b` to `out`, which must be neither of them. */
void intervals_common(const struct intervals *a, const struct intervals *b, struct intervals *out);
/* Writes the times that are in `a` and not in `b` to `out`, which must be neither of them. */
void intervals_without(const struct intervals *a, const struct intervals *b, struct intervals *out);
int64_t intervals_length(const struct intervals *s);
int64_t intervals_longest(const struct intervals *s);

#endif
