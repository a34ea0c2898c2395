/* SPDX-License-Identifier: GPL-2.0-only */
/* The layout of a tracepoint's record, as this kernel's tracefs describes it. */
#ifndef CAPTURE_TRACEPOINT_FORMAT_H
#define CAPTURE_TRACEPOINT_FORMAT_H

#include <stddef.h>
#include <traceevent/event-parse.h>

#include "bpf/capture/tracepoint_source.h"

/* Parses the format into `tep`; *out belongs to it. 0, -ENOENT: no such tracepoint (or no tracefs),
 * -EACCES, -ENOMEM, -EPROTO: not understood. */
int tracepoint_format_parse(struct tep_handle *tep, const char *system, const char *name,
			    struct tep_event **out);

/* A tracepoint_reader: finds n fields by name. A field that the record lacks gets bytes = 0. */
int tracepoint_format_read(const char *system, const char *name, struct tracepoint_field *fields,
			   size_t n);

#endif
