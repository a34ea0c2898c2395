/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's tracepoints that an import knows, and the event that each becomes. */
#ifndef IMPORT_EVENT_ROW_H
#define IMPORT_EVENT_ROW_H

#include "proto/event.h"

struct event_row {
	const char *name;
	vs_u16 type;
	enum vs_vector vector; /* vector, for tracepoints of irq_vectors */
};

/* Returns the row of a tracepoint, NULL if vcpuscope does not know it. */
const struct event_row *event_row_find(const char *name);

#endif
