/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the filter of a tracepoint in the kernel's own syntax (Documentation/trace/events.rst,
 * "Event filtering"), for perf. The kernel's syntax cannot express all filters of vcpuscope. A part
 * that it cannot express is left out if the rest still keeps every hit that the whole filter keeps.
 */
#ifndef CHOSEN_KERNEL_FILTER_H
#define CHOSEN_KERNEL_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/capture/event_source.h"
#include "proto/query/expr.h"

/* Writes the filter `e`, which uses the numbers in `fields` and the common fields
 * (event_schema.h), to `out`; "" if nothing of it can be written. Returns whether the kernel's
 * filter keeps exactly the hits that `e` keeps; otherwise it keeps these and others. */
bool kernel_filter_write(const struct expr *e, const struct source_field *fields, char *out,
			 size_t out_bytes);

#endif
