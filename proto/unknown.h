/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Extracts the fields of a newer peer's message that this version does not know. The collector
 * checks and packs each message anew; it appends these fields, so a newer reader of the recording
 * gets them. Only the lengths of the fields are checked, not their content.
 *
 * Only fields of the message itself are kept. Unknown fields of sub-messages are dropped: new
 * versions must add fields to the message itself.
 */
#ifndef PROTO_UNKNOWN_H
#define PROTO_UNKNOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { VS_UNKNOWN_MAX = 2048 };

/* Copies the unknown fields of a payload of `kind` (enum frame_kind) to `out`. Returns their
 * number of bytes, 0 for a kind that no agent sends, -EBADMSG (not a protobuf message) or -E2BIG
 * (they exceed out_bytes). */
long unknown_extract(uint8_t kind, const uint8_t *payload, size_t len, uint8_t *out,
		     size_t out_bytes);
/* Returns true if `bytes` is a valid output of unknown_extract(): unknown fields only, at least
 * one. */
bool unknown_check(uint8_t kind, const uint8_t *bytes, size_t len);

#endif
