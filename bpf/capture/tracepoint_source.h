/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of the host's classic tracepoints, and its conversion to the table of the BPF programs
 * (tracepoint.h). The caller passes the function that reads tracefs, so that programs that need no
 * classic tracepoints do not link libtraceevent. */
#ifndef CAPTURE_TRACEPOINT_SOURCE_H
#define CAPTURE_TRACEPOINT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/prog/tracepoint.h"

struct tracepoint_field {
	const char *name; /* NULL: no field */
	unsigned int offset, bytes;
	bool is_signed;
};

/* Sets offset, bytes and is_signed of n fields; bytes = 0 for a field that does not exist. 0;
 * -ENOENT: this kernel does not have the tracepoint now; or -errno. */
typedef int (*tracepoint_reader)(const char *system, const char *name,
				 struct tracepoint_field *fields, size_t n);

struct tracepoint_source {
	const char *system, *name;
	struct vs_tracepoint as; /* type, scope, always; of the arguments only the shifts */
	const char *arg0[VS_TRACEPOINT_PARTS], *arg1[VS_TRACEPOINT_PARTS];
};

/* Returns the table and sets *n to its number of rows, at most VS_TRACEPOINTS_MAX. */
const struct tracepoint_source *tracepoint_sources(size_t *n);
/* Fills `out` with the row of `source` for this kernel. 0, -errno of the reader, or -EPROTO: a
 * field is too large or too far back in the record. */
int tracepoint_resolve(const struct tracepoint_source *source, tracepoint_reader reader,
		       struct vs_tracepoint *out);

#endif
