/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the events that a user chose (proto/user_event.h) as instants with their fields, one track
 * for each event of the host and of each guest. They stand at their own time: those of a guest are
 * not moved into the guest mode of their vCPU.
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
	struct chosen_row rows[CHOSEN_ROWS_MAX]; /* events of further ones are left out */
};

/* The other members are set. Returns 0 or -ENOMEM; call chosen_rows_fini() in both cases. */
int chosen_rows_init(struct chosen_rows *x);
void chosen_rows_fini(struct chosen_rows *x);
/* Takes an event of a stream; other events than those of a user, and LOST, are ignored. */
void chosen_rows_event(struct chosen_rows *x, uint32_t source, const struct vs_event *e,
		       struct host_ns t, uint32_t err_ns);
/* Writes what waits for its last records. */
void chosen_rows_finish(struct chosen_rows *x);

#endif
