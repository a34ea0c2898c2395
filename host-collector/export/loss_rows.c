/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/loss_rows.h"

#include <inttypes.h>

#include "host-collector/util/escape.h"

enum { RANK_LAST = 1000000 };

void loss_row_begin(struct loss_row *l, uint64_t from, uint64_t n)
{
	if (!l->open)
		*l = (struct loss_row){.track = l->track, .open = true, .from = from};
	l->n += n;
	l->more |= n == 0;
}

void loss_row_end(struct loss_rows *x, struct loss_row *l, uint64_t t, const char *machine,
		  uint16_t cpu)
{
	char name[TRACE_NAME_BYTES];
	struct trace_event e;

	l->open = false;
	if (t < x->file->from || l->from >= x->file->until)
		return;
	if (l->from < x->file->from)
		l->from = x->file->from;
	if (t > x->file->until)
		t = x->file->until;
	if (!x->group)
		x->group = trace_track_new(x->file, 0, "Lost events", RANK_LAST);
	if (!l->track) {
		snprintf(name, sizeof(name), "%.60s CPU %u", escape(machine).text, cpu);
		l->track = trace_track_new(x->file, x->group, name, cpu);
	}
	e = trace_event_open(x->file, l->from, l->track, EVENT_BEGIN, trace_name(x->file, "lost"));
	if (l->n || !l->more)
		trace_annotate_int(x->file, l->more ? "events, at least" : "events", (int64_t)l->n);
	trace_event_close(x->file, e);
	trace_end(x->file, t > l->from ? t : l->from, l->track);
}
