/* SPDX-License-Identifier: GPL-2.0-only */
/* The host's classic tracepoints (BY_ROW in proto/events.def), and their conversion to the table of
 * the BPF programs (tracepoint.h). The caller passes the function that reads tracefs, so that
 * programs that need no classic tracepoints do not link libtraceevent. */
#ifndef CAPTURE_TRACEPOINT_SOURCE_H
#define CAPTURE_TRACEPOINT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/prog/tracepoint.h"
#include "proto/event_catalog.h"

struct tracepoint_field {
	const char *name; /* NULL: no field */
	unsigned int offset, bytes;
	bool is_signed;
};

/* Sets offset, bytes and is_signed of n fields; bytes = 0 for a field that does not exist. Returns
 * 0; -ENOENT: this kernel does not have the tracepoint now; or -errno. */
typedef int (*tracepoint_reader)(const char *system, const char *name,
				 struct tracepoint_field *fields, size_t n);

/* Returns row number `index`, NULL past the last. There are at most VS_TRACEPOINTS_MAX. */
const struct event_tracepoint *tracepoint_row(size_t index);
/* Fills `out` with the row for this kernel. Returns 0, -errno of the reader, or -EPROTO: a field is
 * too large or too far back in the record. */
int tracepoint_resolve(const struct event_tracepoint *row, tracepoint_reader reader,
		       struct vs_tracepoint *out);

#endif
