/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts pairs of events whose order is known and that a clock map placed in the wrong order. A
 * few violations can have a harmless cause, for example a map that is a moment out of date. Many
 * violations among the recent pairs refute the map, whatever bound it claims.
 */
#ifndef CLOCK_AUDIT_H
#define CLOCK_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

enum { AUDIT_REFUTES = 8 };

/* A struct of all zeros is an audit without pairs. */
struct audit {
	uint32_t pairs, violations; /* violations: halved at the end of each window */
};

/* Adds one pair. window: number of pairs after which the violations count half. */
static inline void audit_add(struct audit *a, bool violated, uint32_t window)
{
	a->violations += violated;
	if (++a->pairs < window)
		return;
	a->pairs = 0;
	a->violations /= 2;
}

/* Returns true if the recent violations refute the map. */
static inline bool audit_refutes(const struct audit *a)
{
	return a->violations >= AUDIT_REFUTES;
}

#endif
