/* SPDX-License-Identifier: GPL-2.0-only */
/* What a reader must know before the first stall: clocks that prove nothing, guests that rebooted,
 * a wall clock that was set. */
#ifndef VIEW_TEXT_NOTES_H
#define VIEW_TEXT_NOTES_H

#include <stdio.h>

#include "host-collector/analyze/stall/report.h"

void text_notes_write(const struct report *r, FILE *out);

#endif
