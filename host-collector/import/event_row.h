/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's tracepoints that an import knows, and what each becomes. */
#ifndef IMPORT_EVENT_ROW_H
#define IMPORT_EVENT_ROW_H

#include "proto/event.h"

struct event_row {
	const char *name;
	vs_u16 type;
	enum vs_vector vector; /* of irq_vectors' */
};

/* NULL: none that vcpuscope knows. */
const struct event_row *event_row_find(const char *name);

#endif
