/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/text_notes.h"

#include <inttypes.h>
#include <stdlib.h>

#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/view/text_time.h"

static void untrusted_write(const struct report_clock *c, FILE *out)
{
	fprintf(out, "The times of guest %s are NOT PROVEN: ", escape(c->vm_name).text);
	if (c->disagreements) {
		fprintf(out,
			"%" PRIu64
			" of its answers contradict%s the TSC offset that the hypervisor "
			"shows",
			c->disagreements, c->disagreements == 1 ? "s" : "");
		if (c->contradiction_ns)
			fprintf(out, ", the last by %s",
				duration_text(llabs(c->contradiction_ns)).text);
		fputs(". Either the guest reports a wrong clock, or the hypervisor's value is out of date.",
		      out);
	} else {
		fprintf(out,
			"%" PRIu64
			" of its times are impossible: events while their vCPU was not in "
			"the guest, or messages stamped after they had arrived. Either the guest reports a "
			"wrong clock, or events of the host are missing.",
			c->causality_violations);
	}
	fputs(" The host's data is valid. The guest's data is not joined to it.\n", out);
}

static void reboot_write(const struct report *r, const struct report_reboot *b, FILE *out)
{
	fprintf(out, "VM %s rebooted ", escape(report_vm_name(r, b->vm)).text);
	if (b->reset_known)
		fprintf(out, "at %s", time_when(r, b->reset, true).text);
	else
		fprintf(out, "between %s and %s", time_when(r, b->after, true).text,
			time_when(r, b->until, false).text);
	if (b->why[0])
		fprintf(out, ": %s", escape(b->why).text);
	fputs(".", out);
	if (b->reset_known)
		fprintf(out,
			" The last event of its old kernel was at %s, the first one of the new kernel at %s.",
			time_when(r, b->after, false).text, time_when(r, b->until, false).text);
	fputc('\n', out);
}

static void wall_step_write(const struct report *r, const struct report_wall_step *s, FILE *out)
{
	const struct host_ns before = {s->t.ns - 1};

	fprintf(out,
		"The host's wall clock was set %s by %s at %s; times below are as it showed them.\n",
		s->by_ns < 0 ? "back" : "ahead", duration_text(llabs(s->by_ns)).text,
		time_when(r, before, true).text);
}

void text_notes_write(const struct report *r, FILE *out)
{
	for (size_t i = 0; i < r->n_clocks; i++) {
		if (r->clocks[i].untrusted)
			untrusted_write(&r->clocks[i], out);
	}
	for (size_t i = 0; i < r->n_reboots; i++)
		reboot_write(r, &r->reboots[i], out);
	for (size_t i = 0; i < r->n_wall_steps; i++)
		wall_step_write(r, &r->wall_steps[i], out);
}
