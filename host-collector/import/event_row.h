/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's tracepoints that an import knows (BY_IMPORT in proto/events.def). */
#ifndef IMPORT_EVENT_ROW_H
#define IMPORT_EVENT_ROW_H

#include "proto/event_catalog.h"

/* Returns the row of a tracepoint, NULL if an import does not know it. */
const struct event_tracepoint *event_row_find(const char *name);

#endif
