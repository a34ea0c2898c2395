/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the kernel functions through which a tracepoint reaches a BPF program or perf. */
#ifndef SYMBOLS_KALLSYMS_H
#define SYMBOLS_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

enum { KALLSYMS_PLUMBING_MAX = 64 };

struct kallsyms_range {
	uint64_t begin, end;
};

/* Reads /proc/kallsyms once (about 50 ms). Returns how many ranges were found; 0 if addresses are
 * hidden from us. */
size_t kallsyms_plumbing(struct kallsyms_range out[KALLSYMS_PLUMBING_MAX]);
/* How many of the innermost frames (leaf first) belong to the way to the program: those up to the
 * last one that lies in such a range, among the first few. */
size_t kallsyms_plumbing_frames(const struct kallsyms_range *ranges, size_t n_ranges,
				const uint64_t *frames, size_t n_frames);

#endif
