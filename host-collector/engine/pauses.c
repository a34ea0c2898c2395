/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/pauses.h"

#include <string.h>

/* Without a vCPU in the model there is nothing that a pause could explain. */
static void pause_deliver(struct model *m, const struct pause *p)
{
	if (p->kind == NOTE_MIGRATION || p->kind == NOTE_MIGRATION_OVER)
		model_vm_migrates(m, p->vm, p->kind == NOTE_MIGRATION);
	else
		model_vm_paused(m, p->vm, p->t, p->kind == NOTE_VM_PAUSED);
}

static void pauses_deliver_first(struct pauses *p, struct model *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pause_deliver(m, &p->waiting[i]);
	p->n -= n;
	memmove(p->waiting, p->waiting + n, p->n * sizeof(*p->waiting));
}

void pauses_add(struct pauses *p, struct model *m, const struct pause *pause)
{
	size_t at;

	if (p->n == PAUSES_MAX)
		pauses_deliver_first(p, m, 1);
	for (at = p->n; at > 0 && p->waiting[at - 1].t.ns > pause->t.ns; at--)
		p->waiting[at] = p->waiting[at - 1];
	p->waiting[at] = *pause;
	p->n++;
}

void pauses_deliver(struct pauses *p, struct model *m, struct host_ns t)
{
	size_t n = 0;

	while (n < p->n && p->waiting[n].t.ns <= t.ns)
		n++;
	if (n)
		pauses_deliver_first(p, m, n);
}
