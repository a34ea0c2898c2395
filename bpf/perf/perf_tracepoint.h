/* SPDX-License-Identifier: GPL-2.0-only */
/* Converts a tracepoint's raw record, as perf delivers it, to the vs_event that the BPF programs
 * would write. The event catalogue lists the tracepoints; their fields are resolved against the
 * formats of the running kernel. */
#ifndef PERF_PERF_TRACEPOINT_H
#define PERF_PERF_TRACEPOINT_H

#include <traceevent/event-parse.h>

#include "bpf/perf/perf_ring.h"
#include "bpf/prog/tracepoint.h"
#include "bpf/capture/tracepoint_source.h"

struct perf_tracepoint;

/* Event types that exist only inside a host capture. The replay (perf_follow.h) uses them and emits
 * them as other types or not at all. */
enum perf_host_type {
	PERF_WAKING = VS_EVENT_TYPE_LIMIT, /* pid2 wakes pid */
	PERF_NEW_TASK,                     /* a new task; the members are those of TASK_NAME */
	PERF_SWITCHED_IN, /* pid2 got the CPU after pid; from perf's switch record, no tracepoint */
};

typedef void (*perf_tracepoint_finish)(struct perf_tracepoint *t, const struct perf_record *record,
				       struct vs_event *event);

enum { PERF_TRACEPOINT_EXTRA = 2 };

/* What perf needs beside the catalogue's row. */
struct perf_tracepoint_special {
	const char *name;                         /* of the tracepoint */
	enum tracepoint_users user;               /* BY_HOST or BY_GUEST */
	vs_u16 type;                              /* replaces the row's type; 0: does not */
	const char *extra[PERF_TRACEPOINT_EXTRA]; /* further fields, for `finish` */
	perf_tracepoint_finish finish;            /* adjusts the decoded event; NULL: none */
	bool by_thread; /* only hits with a followed `pid` matter, so the kernel may filter by it */
};

struct perf_tracepoint_source {
	const struct event_tracepoint *row;
	struct perf_tracepoint_special special; /* all zero: none */
};

struct perf_tracepoint {
	int id; /* id of the tracepoint for perf, and the record's first field */
	vs_u16 type;
	vs_u16 scope;    /* enum vs_scope */
	bool is_row;     /* of tracepoint_row() */
	vs_u64 constant; /* added to arg0 */
	/* Of sched_switch: this kernel writes states one bit too high, as a record showed. */
	bool states_shifted;
	size_t raw_bytes; /* smallest size of a record */
	perf_tracepoint_finish finish;
	struct vs_tracepoint_field pid, pid2, arg0[VS_TRACEPOINT_PARTS], arg1[VS_TRACEPOINT_PARTS],
		extra[PERF_TRACEPOINT_EXTRA];
};

/* Sets *out to tracepoint number `index` of a capture of the host (BY_HOST: the scheduler, tasks
 * and signals) or of a guest (BY_GUEST), those by_thread last. Returns false past the last one. The
 * first one is mandatory. */
bool perf_tracepoint_source(enum tracepoint_users user, size_t index,
			    struct perf_tracepoint_source *out);
/* Resolves the fields of a tracepoint against this kernel. The format is stored in `tep`. Returns 0
 * or -errno: -ENOENT (no such tracepoint, or no tracefs), -EACCES, -ENOMEM, -EPROTO (a field is
 * missing or has an unexpected size). */
int perf_tracepoint_resolve(struct tep_handle *tep, const struct perf_tracepoint_source *source,
			    struct perf_tracepoint *out);
/* Resolves a row of tracepoint_row() in the same way; `reader` finds the places of its
 * fields. */
int perf_tracepoint_resolve_row(struct tep_handle *tep, const struct event_tracepoint *row,
				tracepoint_reader reader, struct perf_tracepoint *out);
/* Decodes a record into *event, except seq and cpu. Returns false if the record is shorter than its
 * format. Notes in *t how this kernel encodes task states once a record of sched_switch shows it.
 */
bool perf_tracepoint_decode(struct perf_tracepoint *t, const struct perf_record *record,
			    struct vs_event *event);

#endif
