/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Changes the entries of a recording by a script. Frames, CRCs, compression and protobuf stay
 * well-formed; the values in them do not. Bytes that a fuzzer changes at random hardly ever pass
 * the CRCs.
 *
 * A script is a sequence of operations of MUTATE_OP_BYTES each. Any bytes are a valid script.
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

/* Reads the recording `path`. Returns 0 or -errno. The caller calls mutate_free(). */
int mutate_read(const char *path, struct mutate_recording *out);
void mutate_free(struct mutate_recording *r);
/* Returns a deep copy, for which the caller calls mutate_free(). */
struct mutate_recording mutate_copy(const struct mutate_recording *from);
/* Changes the recording by a script of `len` bytes. */
void mutate_apply(struct mutate_recording *r, const uint8_t *script, size_t len);
/* Writes the recording to `path`. Returns 0 or -errno. */
int mutate_write(const struct mutate_recording *r, const char *path);

#endif
