/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fields of a newer peer's message that this version does not know: taken out of a payload that was
 * checked otherwise, to be put behind the message when it is packed anew. They are looked at as far
 * as their lengths; what they mean is for a newer reader of the recording.
 *
 * Kept are the message's own unknown fields. What a newer peer adds to a message inside the message
 * is dropped: additions belong into the message itself.
 */
#ifndef PROTO_UNKNOWN_H
#define PROTO_UNKNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VS_UNKNOWN_MAX = 2048 };

/* Copies the unknown fields of a frame of `kind` (enum frame_kind) to `out`. Their bytes; 0 also
 * for a kind that no agent sends; -EBADMSG: no protobuf message, -E2BIG: more than `out_bytes`. */
long unknown_extract(uint8_t kind, const uint8_t *payload, size_t len, uint8_t *out,
		     size_t out_bytes);
/* Whether `bytes` hold what unknown_extract() writes, and nothing that is known. */
bool unknown_check(uint8_t kind, const uint8_t *bytes, size_t len);

#endif
