/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Encodes a decoder's record as a frame. The frame is packed, compressed and given its CRC in the
 * collector from checked values, and keeps the session id and sequence number of the guest's frame.
 * Therefore no later reader, `report` included, parses bytes that a guest encoded.
 */
#ifndef DECODE_FRAMER_H
#define DECODE_FRAMER_H

#include "host-collector/decode/record.h"
#include "proto/frame.h"

struct framer;

struct framer *framer_new(void); /* NULL: no memory */
void framer_free(struct framer *f);
/* Keeps the fields of a RECORD_UNKNOWN. The next frame includes them if its record has the same
 * session id and sequence number and the fields pass unknown_check() (proto/unknown.h). */
void framer_unknown(struct framer *f, const struct guest_record *record);
/* Makes the frame of a record that passed record_check(). `out` is valid until the next call.
 * Returns 0, -EINVAL (a record that is not a guest's frame, or values that no agent sends) or
 * -ENOMEM. */
int framer_frame(struct framer *f, struct guest_record *record, struct frame_view *out);

#endif
