/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording as a list of entries that a script changes: what lies inside stays well-formed
 * (frames, CRCs, compression, protobuf), what it says does not. Bytes that a fuzzer changes at
 * random hardly ever get so far.
 *
 * A script is a row of operations of MUTATE_OP_BYTES each; whatever the bytes, it means something.
 */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/buffer.h"
#include "proto/recording.h"

enum { MUTATE_OP_BYTES = 8, MUTATE_OPS_MAX = 16 };

struct mutate_entry {
	uint32_t source;
	uint64_t arrival_tsc, session_id;
	uint32_t frame_seq;
	uint8_t kind;
	struct byte_buffer payload;
};

struct mutate_recording {
	struct mutate_entry *entries;
	size_t n;
};

/* Reads all of `path`. 0 or -errno. */
int mutate_read(const char *path, struct mutate_recording *out);
void mutate_free(struct mutate_recording *r);
/* A copy of its own. */
struct mutate_recording mutate_copy(const struct mutate_recording *from);
void mutate_apply(struct mutate_recording *r, const uint8_t *script, size_t len);
/* 0 or -errno. */
int mutate_write(const struct mutate_recording *r, const char *path);

#endif
