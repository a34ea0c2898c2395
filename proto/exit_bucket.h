/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A histogram of the durations of VM-exits. Each power of two of nanoseconds has four buckets of
 * equal width, so the middle of a bucket is at most 12.5 % off. The last bucket also counts all
 * longer durations. BPF programs and user space include this header.
 */
#ifndef PROTO_EXIT_BUCKET_H
#define PROTO_EXIT_BUCKET_H

#include "proto/event.h"

enum {
	VS_EXIT_BUCKET_RANGES = 32, /* up to 2^33 ns: 8.6 s */
	VS_EXIT_BUCKETS = 4 * VS_EXIT_BUCKET_RANGES,
};

/* Returns the bucket of `ns`. 0 to 3 ns have one bucket each; then 4 and 5, 6 and 7, and so on. */
static inline __attribute__((always_inline)) vs_u32 exit_bucket_of(vs_u64 ns)
{
	vs_u32 range = 0, bucket;
	vs_u64 rest = ns;

	/* No loop and no builtin: the verifier and all compilers accept this. */
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

/* Returns the middle of a bucket, in ns. */
static inline vs_u64 exit_bucket_middle_ns(vs_u32 bucket)
{
	const vs_u32 range = bucket / 4 + 1;

	if (bucket < 4)
		return bucket;
	return ((vs_u64)(4 + bucket % 4) << (range - 2)) + ((1ull << (range - 2)) >> 1);
}

#endif
