/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the events that a user chose (proto/user_event.h) as instants with their fields, one track
 * for each event of the host and of each guest. Each instant has the time of its event. An event of
 * a guest is not moved to a time at which its vCPU ran guest code.
 */
#ifndef EXPORT_CHOSEN_ROWS_H
#define EXPORT_CHOSEN_ROWS_H

#include "host-collector/export/boottime.h"
#include "host-collector/export/trace_file.h"
#include "host-collector/model/narrow.h"
#include "proto/user_event.h"

enum { CHOSEN_ROWS_MAX = 256 };

struct chosen_row {
	const struct message_user_event *event;
	uint32_t source, name;
	uint64_t track;
};

struct chosen_rows {
	struct trace_file *file;
	struct boottime *boottime;
	struct model *model;
	const struct narrow *narrow;
	struct user_hits *hits;
	uint64_t group; /* parent track, 0: none yet */
	size_t n;
	struct chosen_row rows[CHOSEN_ROWS_MAX]; /* events that have no row are left out */
};

/* The caller has set the other members. Returns 0 or -ENOMEM; call chosen_rows_fini() in both
 * cases. */
int chosen_rows_init(struct chosen_rows *x);
void chosen_rows_fini(struct chosen_rows *x);
/* Takes an event of a stream. Ignores it unless it is an event of a user or LOST. */
static inline void chosen_rows_event(struct chosen_rows *x, uint32_t source,
				     const struct vs_event *e, struct host_ns t, uint32_t err_ns)
{
	if (e->type == VS_EVENT_USER || e->type == VS_EVENT_USER_MORE || e->type == VS_EVENT_LOST)
		user_hits_take(x->hits, source, e, t.ns, err_ns);
}
/* Writes the hits that still wait for their last records. */
void chosen_rows_finish(struct chosen_rows *x);

#endif
