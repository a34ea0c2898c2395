/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the kernel functions through which a tracepoint calls a BPF program or perf, so that a
 * stack can be shown without them. */
#ifndef SYMBOLS_KALLSYMS_H
#define SYMBOLS_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

enum { KALLSYMS_PLUMBING_MAX = 64 };

struct kallsyms_range {
	uint64_t begin, end;
};

/* Reads /proc/kallsyms once (about 50 ms). Returns the number of address ranges found, 0 if the
 * kernel hides its addresses. */
size_t kallsyms_plumbing(struct kallsyms_range out[KALLSYMS_PLUMBING_MAX]);
/* Returns how many of the first frames (leaf first) to leave out: all up to the last one of the
 * first eight that lies in a range. */
size_t kallsyms_plumbing_frames(const struct kallsyms_range *ranges, size_t n_ranges,
				const uint64_t *frames, size_t n_frames);

#endif
