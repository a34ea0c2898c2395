/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long a VM-exit took, sorted into buckets: each power of two of nanoseconds in four equal
 * parts, so a bucket's middle is at most 12.5 % off; what is longer than the last goes there, too.
 * Included by BPF programs and by userspace.
 */
#ifndef PROTO_EXIT_BUCKET_H
#define PROTO_EXIT_BUCKET_H

#include "proto/event.h"

enum {
	VS_EXIT_BUCKET_RANGES = 32, /* up to 2^33 ns: 8.6 s */
	VS_EXIT_BUCKETS = 4 * VS_EXIT_BUCKET_RANGES,
};

/* 0..3 ns are buckets of their own; then 4 and 5, 6 and 7, ... */
static inline __attribute__((always_inline)) vs_u32 exit_bucket_of(vs_u64 ns)
{
	vs_u32 range = 0, bucket;
	vs_u64 rest = ns;

	/* Without a loop or a builtin: the verifier and every compiler take it. */
	if (rest >> 32) {
		range += 32;
		rest >>= 32;
	}
	if (rest >> 16) {
		range += 16;
		rest >>= 16;
	}
	if (rest >> 8) {
		range += 8;
		rest >>= 8;
	}
	if (rest >> 4) {
		range += 4;
		rest >>= 4;
	}
	if (rest >> 2) {
		range += 2;
		rest >>= 2;
	}
	range += (vs_u32)(rest >> 1);
	if (range < 2)
		return (vs_u32)ns;
	bucket = (range - 1) * 4 + ((vs_u32)(ns >> (range - 2)) & 3);
	return bucket < VS_EXIT_BUCKETS ? bucket : VS_EXIT_BUCKETS - 1;
}

/* The middle of a bucket. */
static inline vs_u64 exit_bucket_middle_ns(vs_u32 bucket)
{
	const vs_u32 range = bucket / 4 + 1;

	if (bucket < 4)
		return bucket;
	return ((vs_u64)(4 + bucket % 4) << (range - 2)) + ((1ull << (range - 2)) >> 1);
}

#endif
