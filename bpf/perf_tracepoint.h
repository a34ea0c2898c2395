/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a tracepoint's raw record, as perf delivers it, to the vs_event that the BPF programs would
 * have written: tables of what is captured, resolved against this kernel's formats.
 */
#ifndef BPF_PERF_TRACEPOINT_H
#define BPF_PERF_TRACEPOINT_H

#include <traceevent/event-parse.h>

#include "bpf/perf_ring.h"
#include "bpf/tracepoint.h"

struct perf_tracepoint;

typedef void (*perf_tracepoint_finish)(const struct perf_tracepoint *t,
				       const struct perf_record *record, struct vs_event *event);

enum { PERF_TRACEPOINT_EXTRA = 2 };

struct perf_tracepoint_source {
	const char *system, *name;
	vs_u16 type;      /* enum vs_event_type */
	const char *pid;  /* NULL: the current task */
	const char *pid2; /* NULL: none */
	const char *arg0[VS_TRACEPOINT_PARTS], *arg1[VS_TRACEPOINT_PARTS];
	vs_u64 arg0_constant;                     /* added to arg0 */
	const char *extra[PERF_TRACEPOINT_EXTRA]; /* fields that `finish` needs */
	perf_tracepoint_finish finish;            /* the last touch; NULL: none */
};

struct perf_tracepoint {
	int id; /* of perf and of the record's first field */
	const struct perf_tracepoint_source *source;
	size_t raw_bytes; /* the least a record must have */
	struct vs_tracepoint_field pid, pid2, arg0[VS_TRACEPOINT_PARTS], arg1[VS_TRACEPOINT_PARTS],
		extra[PERF_TRACEPOINT_EXTRA];
};

/* What the guest's capture takes; the first is mandatory. */
const struct perf_tracepoint_source *perf_tracepoint_guest_sources(size_t *n);
/* tep: keeps the format. 0, -ENOENT: no such tracepoint (or no tracefs), -EACCES, -ENOMEM, -EPROTO:
 * a field is missing or does not fit. */
int perf_tracepoint_resolve(struct tep_handle *tep, const struct perf_tracepoint_source *source,
			    struct perf_tracepoint *out);
/* Fills all of *event but seq and cpu. False: the record is shorter than its format. */
bool perf_tracepoint_decode(const struct perf_tracepoint *t, const struct perf_record *record,
			    struct vs_event *event);

#endif
