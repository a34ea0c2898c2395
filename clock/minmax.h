/* SPDX-License-Identifier: GPL-2.0-only */
/* fmin() and fmax() without their care for NaN, which makes calls of what is one instruction. */
#ifndef CLOCK_MINMAX_H
#define CLOCK_MINMAX_H

static inline double smaller(double a, double b)
{
	return a < b ? a : b;
}

static inline double larger(double a, double b)
{
	return a > b ? a : b;
}

#endif
