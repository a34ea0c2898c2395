/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/top_history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/view/culprit_text.h"

enum { ROWS_MAX = 4096, VMS_MAX = 512 };

struct entry {
	char name[128];
	uint32_t vcpu;
	unsigned n;                                           /* refreshes so far */
	signed char delays[TOP_HISTORY], steals[TOP_HISTORY]; /* rings */
};

struct last {
	char name[128];
	struct top_stall stall;
};

struct top_history {
	size_t n_rows, n_vms;
	struct entry *rows;
	struct last *vms;
};

/* ---- one refresh ---- */

void top_row_add(struct top_row *to, const struct activity_row *a, double seconds)
{
	static const enum vcpu_state running[] = {VCPU_GUEST, VCPU_KVM, VCPU_VMM};

	/* Times first; shares when all of the VM is added up. */
	for (size_t i = 0; i < 3; i++)
		to->ran += (double)a->state_ns[running[i]];
	to->delay += (double)(a->state_ns[VCPU_RUNNABLE] + a->state_ns[VCPU_THROTTLED]);
	to->blocked += (double)a->state_ns[VCPU_BLOCKED];
	to->stopped += (double)a->state_ns[VCPU_STOPPED];
	to->halted += (double)a->state_ns[VCPU_HALTED];
	to->exits_per_s += seconds > 0 ? (double)a->exits / seconds : 0;
	if (a->steal_known && a->steal_span_ns > 0) {
		to->steal_known = true;
		to->steal += 100.0 * (double)a->steal_ns / (double)a->steal_span_ns;
	}
	if (a->latency_known) {
		to->latency_known = true;
		if (a->latency_ns > to->latency_ns)
			to->latency_ns = a->latency_ns;
	}
	to->n_vcpus++;
}

void top_row_finish(struct top_row *r)
{
	double all = r->ran + r->delay + r->blocked + r->stopped + r->halted;

	r->known = all > 0;
	if (!r->known)
		return;
	r->ran *= 100 / all;
	r->delay *= 100 / all;
	r->blocked *= 100 / all;
	r->stopped *= 100 / all;
	r->halted *= 100 / all;
	if (r->n_vcpus)
		r->steal /= r->n_vcpus;
}

/* ---- earlier refreshes ---- */

struct top_history *top_history_new(void)
{
	struct top_history *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->rows = calloc(ROWS_MAX, sizeof(*h->rows));
	h->vms = calloc(VMS_MAX, sizeof(*h->vms));
	if (h->rows && h->vms)
		return h;
	top_history_free(h);
	return NULL;
}

void top_history_free(struct top_history *h)
{
	if (!h)
		return;
	free(h->rows);
	free(h->vms);
	free(h);
}

static struct entry *entry_find(const struct top_history *h, const char *name, uint32_t vcpu)
{
	for (size_t i = 0; i < h->n_rows; i++) {
		if (h->rows[i].vcpu == vcpu && !strcmp(h->rows[i].name, name))
			return &h->rows[i];
	}
	return NULL;
}

static signed char share(bool known, double percent)
{
	return (signed char)(!known ? -1 : percent > 100 ? 100 : percent);
}

void top_history_add(struct top_history *h, const struct top_row *row, uint32_t vcpu)
{
	struct entry *e = entry_find(h, row->name, vcpu);

	if (!e && h->n_rows == ROWS_MAX)
		return;
	if (!e) {
		e = &h->rows[h->n_rows++];
		*e = (struct entry){.vcpu = vcpu};
		snprintf(e->name, sizeof(e->name), "%s", row->name);
	}
	e->delays[e->n % TOP_HISTORY] = share(row->known, row->delay);
	e->steals[e->n % TOP_HISTORY] = share(row->steal_known, row->steal);
	e->n++;
}

void top_history_fill(const struct top_history *h, struct top_row *row, uint32_t vcpu)
{
	const struct entry *e = entry_find(h, row->name, vcpu);

	for (unsigned i = 0; i < TOP_HISTORY; i++) {
		bool there = e && e->n + i >= TOP_HISTORY;

		row->delays[i] = there ? e->delays[(e->n + i) % TOP_HISTORY] : (signed char)-1;
		row->steals[i] = there ? e->steals[(e->n + i) % TOP_HISTORY] : (signed char)-1;
	}
}

void top_history_stall(struct top_history *h, const char *name, const struct top_stall *stall)
{
	size_t i = 0;

	while (i < h->n_vms && strcmp(h->vms[i].name, name) != 0)
		i++;
	if (i == VMS_MAX)
		return;
	snprintf(h->vms[i].name, sizeof(h->vms[i].name), "%s", name);
	h->vms[i].stall = *stall;
	h->n_vms += i == h->n_vms;
}

const struct top_stall *top_history_last(const struct top_history *h, const char *name)
{
	for (size_t i = 0; i < h->n_vms; i++) {
		if (!strcmp(h->vms[i].name, name))
			return &h->vms[i].stall;
	}
	return NULL;
}

struct top_stall top_stall_of(const struct report *report, const struct incident *i)
{
	struct top_stall s = {.known = true,
			      .guest_cpu = i->guest_cpu,
			      .duration_ns = i->end.ns - i->begin.ns,
			      .wall_known = report->wall_known,
			      .wall_ns = report_wall_ns(report, i->begin)};

	snprintf(s.verdict, sizeof(s.verdict), "%s", verdict_name(i->verdict));
	if (i->n_culprits)
		culprit_name(&i->culprits[0], s.culprit, sizeof(s.culprit));
	return s;
}
