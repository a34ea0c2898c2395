/* SPDX-License-Identifier: GPL-2.0-only */
/* Says what a recording lacks if this kernel does not have a tracepoint: for the doctors, and for
 * the first lines of a recording. */
#ifndef CAPTURE_TRACEPOINT_LOSSES_H
#define CAPTURE_TRACEPOINT_LOSSES_H

#include <stdbool.h>
#include <stddef.h>

#include "bpf/capture/capture.h"
#include "bpf/capture/tracepoint_source.h"

/* Writes what a recording of this side lacks without the tracepoints of a list ("a, b", as of
 * capture_left_out()): "a, b: what is lost; c: what is lost". "" for an empty list. */
void tracepoint_losses(enum capture_kind side, const char *names, char *out, size_t out_bytes);
/* Appends to the list `names` those classic tracepoints (tracepoint_source.h) that this kernel does
 * not have; "kvm:*" if it has none of KVM's. kvm: include those of KVM. Of a tracepoint that was
 * renamed, only the newest name is appended, and only if this kernel has none of its names. */
void tracepoint_rows_missing(tracepoint_reader reader, bool kvm, char *names, size_t names_bytes);

#endif
