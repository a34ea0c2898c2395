/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/engine/quotas.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { QUOTAS_FIRST = 64, QUOTAS_MAX = 16384 };

void quotas_fini(struct quotas *q)
{
	free(q->waiting);
	*q = (struct quotas){0};
}

static void deliver_first(struct quotas *q, struct model *m, size_t n)
{
	/* There is nothing to explain for a vCPU that the model does not know. */
	for (size_t i = 0; i < n; i++)
		model_quota(m, &q->waiting[i]);
	q->n -= n;
	memmove(q->waiting, q->waiting + n, q->n * sizeof(*q->waiting));
}

static int grow(struct quotas *q)
{
	size_t capacity = q->capacity ? 2 * q->capacity : QUOTAS_FIRST;
	struct quota_reading *bigger = reallocarray(q->waiting, capacity, sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	q->waiting = bigger;
	q->capacity = capacity;
	return 0;
}

int quotas_add(struct quotas *q, struct model *m, const struct quota_reading *reading)
{
	size_t at;

	if (q->n == QUOTAS_MAX)
		deliver_first(q, m, QUOTAS_MAX / 2);
	if (q->n == q->capacity && grow(q))
		return -ENOMEM;
	for (at = q->n; at > 0 && q->waiting[at - 1].until.ns > reading->until.ns; at--)
		q->waiting[at] = q->waiting[at - 1];
	q->waiting[at] = *reading;
	q->n++;
	return 0;
}

void quotas_deliver(struct quotas *q, struct model *m, struct host_ns t)
{
	size_t n = 0;

	while (n < q->n && q->waiting[n].until.ns <= t.ns)
		n++;
	if (n)
		deliver_first(q, m, n);
}
