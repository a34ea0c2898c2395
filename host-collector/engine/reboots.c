/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/reboots.h"

#include <stdio.h>
#include <string.h>

#include "host-collector/engine/internal.h"

bool note_is_reset(const struct message_note *m)
{
	/* vm/vm.c writes the name of QEMU's event after the text. */
	return m->kind == NOTE_VM_EVENT && strstr(m->text, "(QMP RESET");
}

void reboots_note(struct stream_reboots *r, const struct message_note *m)
{
	if (note_is_reset(m)) {
		r->reset_tsc = m->host_tsc;
		snprintf(r->reset, sizeof(r->reset), "%s", m->text);
	} else if (strstr(m->text, "(QMP GUEST_PANICKED")) {
		snprintf(r->panic, sizeof(r->panic), "%s", m->text);
	}
}

/* Returns the newest line of the boot's log that says why the boot ended, or NULL. */
static const char *log_why(const struct stream *s, uint32_t boot)
{
	static const char *const marks[] = {"Kernel panic - not syncing", "reboot: ", "kexec: ",
					    "kexec_core: Starting new kernel"};
	uint64_t first = s->n_log > PIPELINE_LOG_LINES ? s->n_log - PIPELINE_LOG_LINES : 0;

	for (uint64_t i = s->n_log; i-- > first;) {
		const struct pipeline_log *line = &s->log[i % PIPELINE_LOG_LINES];

		for (size_t k = 0; line->boot == boot && k < sizeof(marks) / sizeof(*marks); k++) {
			if (strstr(line->line.text, marks[k]))
				return line->line.text;
		}
	}
	return NULL;
}

static void why_add(struct reboot *r, const char *text)
{
	size_t used = strlen(r->why);

	if (text && *text)
		snprintf(r->why + used, sizeof(r->why) - used, "%s%s", used ? "; " : "", text);
}

static void reboot_add(struct pipeline *p, struct stream *s, struct host_ns after,
		       uint64_t arrival_tsc)
{
	struct stream_reboots *all = &s->reboots;
	struct reboot *r;

	if (all->n++ >= REBOOTS_KEPT)
		return;
	r = &all->kept[all->n - 1];
	*r = (struct reboot){.boot = s->continuity.boots.current, .after = after, .until = after};
	clock_book_host_ns(p->clocks, arrival_tsc ? arrival_tsc : p->last_tsc, &r->until);
	r->reset_known = all->reset_tsc && clock_book_host_ns(p->clocks, all->reset_tsc, &r->reset);
	why_add(r, log_why(s, r->boot - 1));
	why_add(r, all->panic);
	why_add(r, all->reset);
	all->reset_tsc = 0;
	*all->reset = *all->panic = '\0';
}

static void reboot_emit(struct pipeline *p, struct stream *s)
{
	s->reboots.due = false;
	p->reboots_due--;
	model_guest_boot(pipeline_model(p), s->id, s->continuity.boots.current);
}

int stream_reboot(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	struct host_ns last = {s->promised_ns};
	int err = s->joined ? stream_cpus_end(p, s, s->promised_ns, &last) : 0;

	if (s->reboots.due)
		reboot_emit(p, s);
	s->reboots.due = true;
	s->reboots.due_at = last;
	p->reboots_due++;
	reboot_add(p, s, last, arrival_tsc);
	return err;
}

void reboots_deliver(struct pipeline *p, struct host_ns t)
{
	for (size_t i = 0; i < p->n_streams && p->reboots_due; i++) {
		struct stream *s = p->streams[i];

		if (s->reboots.due && s->reboots.due_at.ns < t.ns)
			reboot_emit(p, s);
	}
}
