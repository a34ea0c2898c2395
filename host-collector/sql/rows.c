/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/sql/rows.h"

#include <string.h>

#include "host-collector/util/escape.h"
#include "host-collector/view/finding_text.h"

void sql_row_clear(struct sql_row *row)
{
	row->known = row->texts = 0;
	row->used = 0;
}

void sql_row_number(struct sql_row *row, unsigned column, int64_t number)
{
	row->known |= 1u << column;
	row->cells[column].number = number;
}

/* Cut at the end of a character. */
void sql_row_text(struct sql_row *row, unsigned column, const char *text)
{
	size_t room = sizeof(row->text) - row->used, len = 0;

	if (!room)
		return;
	while (text[len]) {
		unsigned bytes = character_at(text + len).bytes;

		if (len + bytes >= room)
			break;
		len += bytes;
	}
	row->known |= 1u << column;
	row->texts |= 1u << column;
	row->cells[column].text = row->used;
	memcpy(row->text + row->used, text, len);
	row->text[row->used + len] = '\0';
	row->used += len + 1;
}

bool sql_incidents_row(const struct report *r, size_t index, struct sql_row *row)
{
	const struct report_culprit *c;
	const struct incident *i;

	if (index >= r->n_incidents)
		return false;
	i = &r->incidents[index];
	c = &i->culprits[0];
	sql_row_clear(row);
	sql_row_number(row, INCIDENTS_number, i->ordinal);
	sql_row_text(row, INCIDENTS_vm, report_vm_name(r, i->vm));
	sql_row_number(row, INCIDENTS_vcpu, i->vcpu);
	sql_row_number(row, INCIDENTS_guest_cpu, i->guest_cpu);
	sql_row_number(row, INCIDENTS_begin_ns, i->begin.ns);
	sql_row_number(row, INCIDENTS_end_ns, i->end.ns);
	sql_row_number(row, INCIDENTS_duration_ns, i->end.ns - i->begin.ns);
	sql_row_text(row, INCIDENTS_verdict, verdict_name(i->verdict));
	sql_row_text(row, INCIDENTS_confidence, confidence_name(i->confidence));
	sql_row_text(row, INCIDENTS_because, because_text(i).text);
	sql_row_text(row, INCIDENTS_denied, denied_text(i).text);
	if (i->task_pid > 0) {
		sql_row_number(row, INCIDENTS_task_pid, i->task_pid);
		sql_row_text(row, INCIDENTS_task, i->task_comm);
	}
	if (i->n_culprits) {
		if (c->pid > 0)
			sql_row_number(row, INCIDENTS_culprit_pid, c->pid);
		sql_row_text(row, INCIDENTS_culprit, c->comm);
		sql_row_text(row, INCIDENTS_culprit_side, c->host ? "host" : "guest");
	}
	return true;
}

bool sql_recording_row(const struct report *r, size_t index, struct sql_row *row)
{
	if (index)
		return false;
	sql_row_clear(row);
	sql_row_number(row, RECORDING_begin_ns, r->begin.ns);
	sql_row_number(row, RECORDING_end_ns, r->end.ns);
	if (r->wall_known)
		sql_row_number(row, RECORDING_begin_realtime_ns, r->begin.ns + r->wall_offset_ns);
	sql_row_number(row, RECORDING_simulated, r->simulated);
	sql_row_number(row, RECORDING_imported, r->imported);
	sql_row_number(row, RECORDING_complete, !r->cut);
	sql_row_number(row, RECORDING_incidents, (int64_t)r->n_incidents);
	return true;
}
