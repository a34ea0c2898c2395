/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Small sets of times: sorted pieces that do not touch. Bounded: of more than INTERVALS_MAX pieces
 * the later ones are left out, so a length is never too large.
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

/* Adds [begin, end), clipped to `within`. */
void intervals_add(struct intervals *s, int64_t begin, int64_t end, struct interval within);
/* What lies in both. `out` is neither of them. */
void intervals_common(const struct intervals *a, const struct intervals *b, struct intervals *out);
/* What lies in `a` and not in `b`. `out` is neither of them. */
void intervals_without(const struct intervals *a, const struct intervals *b, struct intervals *out);
int64_t intervals_length(const struct intervals *s);
int64_t intervals_longest(const struct intervals *s);

#endif
