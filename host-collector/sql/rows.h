/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tables of `vcpuscope query` and their rows (docs/query.md). Times are nanoseconds on the
 * timeline, the host's CLOCK_MONOTONIC_RAW, as in JSON and CSV.
 */
#ifndef SQL_ROWS_H
#define SQL_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/analyze/stall/report.h"
#include "host-collector/model/narrow.h"

/* X(name, TYPE): the columns */
#define SQL_EVENTS(X)                                                                              \
	X(t_ns, INTEGER)                                                                           \
	X(error_ns, INTEGER)                                                                       \
	X(side, TEXT)                                                                              \
	X(event, TEXT)                                                                             \
	X(cpu, INTEGER)                                                                            \
	X(vm, TEXT)                                                                                \
	X(vcpu, INTEGER)                                                                           \
	X(tid, INTEGER)                                                                            \
	X(comm, TEXT)                                                                              \
	X(fields, TEXT)
#define SQL_SPANS(X)                                                                               \
	X(kind, TEXT)                                                                              \
	X(vm, TEXT)                                                                                \
	X(vcpu, INTEGER)                                                                           \
	X(guest_cpu, INTEGER)                                                                      \
	X(state, TEXT)                                                                             \
	X(begin_ns, INTEGER)                                                                       \
	X(end_ns, INTEGER)                                                                         \
	X(duration_ns, INTEGER)                                                                    \
	X(pid, INTEGER)                                                                            \
	X(task, TEXT)                                                                              \
	X(pcpu, INTEGER)                                                                           \
	X(exit, TEXT)                                                                              \
	X(wait, TEXT)                                                                              \
	X(other_pid, INTEGER)                                                                      \
	X(other_task, TEXT)                                                                        \
	X(interrupt, TEXT)                                                                         \
	X(whole, INTEGER)
#define SQL_INCIDENTS(X)                                                                           \
	X(number, INTEGER)                                                                         \
	X(vm, TEXT)                                                                                \
	X(vcpu, INTEGER)                                                                           \
	X(guest_cpu, INTEGER)                                                                      \
	X(begin_ns, INTEGER)                                                                       \
	X(end_ns, INTEGER)                                                                         \
	X(duration_ns, INTEGER)                                                                    \
	X(verdict, TEXT)                                                                           \
	X(confidence, TEXT)                                                                        \
	X(because, TEXT)                                                                           \
	X(denied, TEXT)                                                                            \
	X(task_pid, INTEGER)                                                                       \
	X(task, TEXT)                                                                              \
	X(culprit_pid, INTEGER)                                                                    \
	X(culprit, TEXT)                                                                           \
	X(culprit_side, TEXT)
#define SQL_RECORDING(X)                                                                           \
	X(begin_ns, INTEGER)                                                                       \
	X(end_ns, INTEGER)                                                                         \
	X(begin_realtime_ns, INTEGER)                                                              \
	X(simulated, INTEGER)                                                                      \
	X(imported, INTEGER)                                                                       \
	X(complete, INTEGER)                                                                       \
	X(incidents, INTEGER)

/* The arguments come last: pairs('A', 'B', 'key'). */
#define SQL_PAIRS(X)                                                                               \
	X(begin_ns, INTEGER)                                                                       \
	X(end_ns, INTEGER)                                                                         \
	X(duration_ns, INTEGER)                                                                    \
	X(error_ns, INTEGER)                                                                       \
	X(key, TEXT)                                                                               \
	X(vm, TEXT)                                                                                \
	X(vcpu, INTEGER)                                                                           \
	X(from_event, TEXT)                                                                        \
	X(from_cpu, INTEGER)                                                                       \
	X(from_tid, INTEGER)                                                                       \
	X(to_event, TEXT)                                                                          \
	X(to_cpu, INTEGER)                                                                         \
	X(to_tid, INTEGER)                                                                         \
	X(past_losses, INTEGER)                                                                    \
	X(past_both, INTEGER)                                                                      \
	X(guest_ns, INTEGER)                                                                       \
	X(exits_ns, INTEGER)                                                                       \
	X(not_scheduled_ns, INTEGER)                                                               \
	X(blocked_ns, INTEGER)                                                                     \
	X(halted_ns, INTEGER)                                                                      \
	X(unknown_ns, INTEGER)                                                                     \
	X(a, TEXT HIDDEN)                                                                          \
	X(b, TEXT HIDDEN)                                                                          \
	X(k, TEXT HIDDEN)

enum { SQL_COLUMNS_MAX = 24, SQL_ROW_BYTES = 1536, SQL_EVENT_BYTES = 512 };

enum sql_events_column {
#define X(name, type) EVENTS_##name,
	SQL_EVENTS(X)
#undef X
};
enum sql_spans_column {
#define X(name, type) SPANS_##name,
	SQL_SPANS(X)
#undef X
};
enum sql_pairs_column {
#define X(name, type) PAIRS_##name,
	SQL_PAIRS(X)
#undef X
};
enum sql_incidents_column {
#define X(name, type) INCIDENTS_##name,
	SQL_INCIDENTS(X)
#undef X
};
enum sql_recording_column {
#define X(name, type) RECORDING_##name,
	SQL_RECORDING(X)
#undef X
};

struct sql_row {
	uint32_t known; /* bit n: column n has a value */
	uint32_t texts; /* bit n: it is text */
	size_t used;    /* bytes of `text` */
	union {
		int64_t number;
		size_t text; /* where it begins */
	} cells[SQL_COLUMNS_MAX];
	char text[SQL_ROW_BYTES];
};

void sql_row_clear(struct sql_row *row);
/* Set a column. A text that does not fit is cut. */
void sql_row_number(struct sql_row *row, unsigned column, int64_t number);
void sql_row_text(struct sql_row *row, unsigned column, const char *text);

/* The conditions that a query puts on the rows of a scan. The scan may also pass rows that do not
 * meet them. */
struct sql_wanted {
	struct narrow rows; /* vm: by name; vcpu; the time */
	char vm[256];       /* memory of rows.vm */
	char event[256];    /* of events: the name; "": all */
	/* Of pairs: the events, as in -e, and the key; "": absent. */
	char from[SQL_EVENT_BYTES], to[SQL_EVENT_BYTES], key[SQL_EVENT_BYTES];
};

/* The recording that the rows come from. */
struct sql_source {
	const char *recording;
	const struct narrow *narrow; /* shows these rows only; NULL: all */
	/* Returns the report of the recording, the same each time; NULL on failure, after it has
	 * printed the reason. */
	const struct report *(*report)(void *context);
	/* Returns true to end all reading soon. Called on any thread. */
	bool (*stopped)(void *context);
	void *context;
};

/* The tables whose rows each scan reads from the recording again. */
enum sql_scanned { SQL_SCAN_EVENTS, SQL_SCAN_SPANS, SQL_SCAN_PAIRS };

/* Receives a row, borrowed. NULL: no row that meets the conditions follows. */
typedef void sql_row_take(void *context, const struct sql_row *row);

/* Subscribe to a model and pass rows. Return NULL on ENOMEM, or, for events, if no event has the
 * requested name; then *none is true. */
struct sql_events;
struct sql_events *sql_events_new(struct model *m, const struct sql_source *source,
				  const struct sql_wanted *wanted, sql_row_take *take,
				  void *context, bool *none);
void sql_events_free(struct sql_events *x); /* NULL is allowed */
/* Returns NULL on ENOMEM, or with one line in `why` if the arguments name no pairs. */
struct sql_pairs;
struct sql_pairs *sql_pairs_new(struct model *m, const struct sql_source *source,
				const struct sql_wanted *wanted, sql_row_take *take, void *context,
				char *why, size_t why_bytes);
/* Passes the last rows. Returns 0 or -ENOMEM. */
int sql_pairs_finish(struct sql_pairs *x);
void sql_pairs_free(struct sql_pairs *x); /* NULL is allowed */
struct sql_spans;
struct sql_spans *sql_spans_new(struct model *m, const struct sql_source *source,
				const struct sql_wanted *wanted, sql_row_take *take, void *context);
void sql_spans_free(struct sql_spans *x); /* NULL is allowed */

/* Fill row number `index`. Return false past the last. */
bool sql_incidents_row(const struct report *r, size_t index, struct sql_row *row);
bool sql_recording_row(const struct report *r, size_t index, struct sql_row *row);

#endif
