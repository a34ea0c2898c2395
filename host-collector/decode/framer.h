/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A decoder's record back into a frame: packed, compressed and summed by ourselves from checked
 * values, with the session and number that the guest's frame had. So nobody behind the collector,
 * `report` included, ever parses bytes that a guest made.
 */
#ifndef DECODE_FRAMER_H
#define DECODE_FRAMER_H

#include "host-collector/decode/record.h"
#include "proto/frame.h"

struct framer;

struct framer *framer_new(void); /* NULL on ENOMEM */
void framer_free(struct framer *f);
/* Keeps the fields of a RECORD_UNKNOWN for the frame of the next record, if that has the same
 * session and number and they check out (proto/unknown.h). */
void framer_unknown(struct framer *f, const struct guest_record *record);
/* The frame of a guest's record that passed record_check(); valid until the next call. 0, -EINVAL
 * (a record of the decoder's own; values that no agent sends), -ENOMEM. */
int framer_frame(struct framer *f, struct guest_record *record, struct frame_view *out);

#endif
