/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pairs of instants whose order is necessary, and how many of the recent ones were the wrong way
 * round. A few may be accidents: a map that is a moment out of date. Many refute the map that
 * placed them, whatever error it claims, for as long as they are recent.
 */
#ifndef CLOCK_AUDIT_H
#define CLOCK_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

enum { AUDIT_REFUTES = 8 };

/* All zero: none yet. */
struct audit {
	uint32_t pairs, violations; /* violations: what is older than a window counts half */
};

/* window: of so many pairs. */
static inline void audit_add(struct audit *a, bool violated, uint32_t window)
{
	a->violations += violated;
	if (++a->pairs < window)
		return;
	a->pairs = 0;
	a->violations /= 2;
}

static inline bool audit_refutes(const struct audit *a)
{
	return a->violations >= AUDIT_REFUTES;
}

#endif
