/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the layout of a tracepoint's record from this kernel's tracefs. */
#ifndef CAPTURE_TRACEPOINT_FORMAT_H
#define CAPTURE_TRACEPOINT_FORMAT_H

#include <stddef.h>
#include <traceevent/event-parse.h>

#include "bpf/capture/tracepoint_source.h"

/* Parses the tracepoint's format. `tep` owns *out. Returns 0; -ENOENT: no such tracepoint, or no
 * tracefs; -EACCES; -ENOMEM; -EPROTO: the format cannot be parsed. */
int tracepoint_format_parse(struct tep_handle *tep, const char *system, const char *name,
			    struct tep_event **out);

/* A tracepoint_reader: finds n fields by name. Sets bytes = 0 for a field that the record lacks. */
int tracepoint_format_read(const char *system, const char *name, struct tracepoint_field *fields,
			   size_t n);

#endif
