/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes the notes that come before the first stall: untrusted clocks, reboots of guests, and
 * changes of the wall clock. */
#ifndef VIEW_TEXT_NOTES_H
#define VIEW_TEXT_NOTES_H

#include <stdio.h>

#include "host-collector/analyze/stall/report.h"

void text_notes_write(const struct report *r, FILE *out);

#endif
