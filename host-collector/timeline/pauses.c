/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/pauses.h"

#include <string.h>

static void pauses_deliver_first(struct pauses *p, struct model *m, size_t n)
{
	/* A VM that the model does not know has no vCPU to explain. */
	for (size_t i = 0; i < n; i++)
		model_vm_paused(m, p->waiting[i].vm, p->waiting[i].t, p->waiting[i].paused);
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
