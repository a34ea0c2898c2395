/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The host's classic tracepoints: the table of what is captured, and how it becomes the programs'
 * table (tracepoint.h). Reading tracefs is left to a function, so that programs that need no
 * tracepoints of this kind do without libtraceevent.
 */
#ifndef CAPTURE_TRACEPOINT_SOURCE_H
#define CAPTURE_TRACEPOINT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/prog/tracepoint.h"

struct tracepoint_field {
	const char *name; /* NULL: none */
	unsigned int offset, bytes;
	bool is_signed;
};

/* Sets the fields' places; bytes = 0 for one that does not exist. 0 or -errno, -ENOENT: this kernel
 * has no such tracepoint now. */
typedef int (*tracepoint_reader)(const char *system, const char *name,
				 struct tracepoint_field *fields, size_t n);

struct tracepoint_source {
	const char *system, *name;
	struct vs_tracepoint as; /* type, by_anyone; arguments: only shifts */
	const char *arg0[VS_TRACEPOINT_PARTS], *arg1[VS_TRACEPOINT_PARTS];
};

/* The table; ends where *n says, at most VS_TRACEPOINTS_MAX. */
const struct tracepoint_source *tracepoint_sources(size_t *n);
/* What the programs need to know of `source` on this kernel. 0 or the reader's -errno; -EPROTO: a
 * field does not fit. */
int tracepoint_resolve(const struct tracepoint_source *source, tracepoint_reader reader,
		       struct vs_tracepoint *out);

#endif
