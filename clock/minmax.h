/* SPDX-License-Identifier: GPL-2.0-only */
/* fmin() and fmax() without the handling of NaN, which would turn one instruction into a call. */
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
