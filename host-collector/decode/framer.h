/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns a decoder's record into an item for the users of frames. A batch stays the events that it
 * is; any other frame is packed, compressed and given its CRC in the collector from checked values.
 * It keeps the session id and sequence number of the guest's frame. Therefore no later reader,
 * `report` included, parses bytes that a guest encoded.
 */
#ifndef DECODE_FRAMER_H
#define DECODE_FRAMER_H

#include "host-collector/decode/record.h"
#include "proto/frame_item.h"

struct framer;

struct framer *framer_new(void); /* NULL: no memory */
void framer_free(struct framer *f);
/* Keeps the fields of a RECORD_UNKNOWN. The next frame includes them if its record has the same
 * session id and sequence number and the fields pass unknown_check() (proto/unknown.h). */
void framer_unknown(struct framer *f, const struct guest_record *record);
/* Makes the item of a record that passed record_check(). `out` borrows the record and is valid
 * until the next call. Returns 0, -EINVAL (a record that is not a guest's frame, or values that no
 * agent sends) or -ENOMEM. */
int framer_item(struct framer *f, struct guest_record *record, struct frame_item *out);

#endif
