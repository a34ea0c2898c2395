/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From a tracepoint's raw record, as perf delivers it, to the vs_event that the BPF programs would
 * have written: tables of what is captured, resolved against this kernel's formats.
 */
#ifndef PERF_PERF_TRACEPOINT_H
#define PERF_PERF_TRACEPOINT_H

#include <traceevent/event-parse.h>

#include "bpf/perf/perf_ring.h"
#include "bpf/prog/tracepoint.h"
#include "bpf/capture/tracepoint_source.h"

struct perf_tracepoint;

/* What a host's capture takes and only some of which becomes an event: types behind all others. */
enum perf_host_type {
	PERF_WAKING = VS_EVENT_TYPE_LIMIT, /* pid: woken by pid2 */
	PERF_NEW_TASK,                     /* as TASK_NAME */
	PERF_SWITCHED_IN,                  /* pid2 has got the CPU from pid: no tracepoint */
};

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
	bool by_thread; /* matters only if `pid` is followed: the kernel may filter by it */
};

struct perf_tracepoint {
	int id; /* of perf and of the record's first field */
	vs_u16 type;
	vs_u16 scope;                                /* enum vs_tracepoint_scope */
	const struct perf_tracepoint_source *source; /* NULL: a row of tracepoint_sources() */
	size_t raw_bytes;                            /* the least a record must have */
	struct vs_tracepoint_field pid, pid2, arg0[VS_TRACEPOINT_PARTS], arg1[VS_TRACEPOINT_PARTS],
		extra[PERF_TRACEPOINT_EXTRA];
};

/* What the guest's capture takes; the first is mandatory. */
const struct perf_tracepoint_source *perf_tracepoint_guest_sources(size_t *n);
/* What a host's capture takes of the scheduler and of signals; so is its first. */
const struct perf_tracepoint_source *perf_tracepoint_host_sources(size_t *n);
/* tep: keeps the format. 0, -ENOENT: no such tracepoint (or no tracefs), -EACCES, -ENOMEM, -EPROTO:
 * a field is missing or does not fit. */
int perf_tracepoint_resolve(struct tep_handle *tep, const struct perf_tracepoint_source *source,
			    struct perf_tracepoint *out);
/* The same of a row of tracepoint_sources(); `reader` says where its fields lie. */
int perf_tracepoint_resolve_row(struct tep_handle *tep, const struct tracepoint_source *row,
				tracepoint_reader reader, struct perf_tracepoint *out);
/* Fills all of *event but seq and cpu. False: the record is shorter than its format. */
bool perf_tracepoint_decode(const struct perf_tracepoint *t, const struct perf_record *record,
			    struct vs_event *event);

#endif
