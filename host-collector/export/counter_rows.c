/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/counter_rows.h"

#include <errno.h>
#include <stdlib.h>

#include "host-collector/util/escape.h"

enum counter_kind { COUNTER_RUN_DELAY, COUNTER_LATENCY, COUNTER_STEAL, COUNTER_KINDS };
/* After the VMs' interrupts, before the losses. */
enum { RANK_COUNTERS = 500000 };

static const char *const counter_names[COUNTER_KINDS] = {
	[COUNTER_RUN_DELAY] = "vCPU %u: run delay in 100 ms",
	[COUNTER_LATENCY] = "vCPU %u: interrupt latency",
	[COUNTER_STEAL] = "guest CPU %u: steal since boot",
};

int counter_rows_init(struct counter_rows *x)
{
	x->items = calloc(COUNTERS_MAX, sizeof(*x->items));
	x->group_tracks = calloc(MODEL_VMS_MAX, sizeof(*x->group_tracks));
	if (!x->items || !x->group_tracks || lru_init(&x->groups, MODEL_VMS_MAX))
		return -ENOMEM;
	return lru_init(&x->index, COUNTERS_MAX);
}

void counter_rows_fini(struct counter_rows *x)
{
	free(x->items);
	free(x->group_tracks);
	lru_fini(&x->index);
	lru_fini(&x->groups);
}

static uint64_t group_get(struct counter_rows *x, uint32_t vm)
{
	char name[TRACE_NAME_BYTES];
	bool fresh;
	uint64_t *track = &x->group_tracks[lru_put(&x->groups, vm, &fresh)];

	if (fresh) {
		snprintf(name, sizeof(name), "VM %.60s: counters",
			 escape(model_vm_name(x->model, vm)).text);
		*track = trace_track_new(x->file, 0, name, RANK_COUNTERS);
	}
	return *track;
}

static struct counter *counter_get(struct counter_rows *x, enum counter_kind kind, uint32_t vm,
				   uint32_t cpu)
{
	uint64_t key = (uint64_t)vm << 32 | (uint64_t)kind << 28 | cpu;
	bool fresh;
	struct counter *c = &x->items[lru_put(&x->index, key, &fresh)];
	char name[TRACE_NAME_BYTES];

	if (!fresh)
		return c;
	snprintf(name, sizeof(name), counter_names[kind], cpu);
	*c = (struct counter){.window = -1};
	c->track = trace_counter_track_new(x->file, group_get(x, vm), name,
					   cpu * COUNTER_KINDS + (uint32_t)kind);
	return c;
}

static void put(struct counter_rows *x, struct counter *c, int64_t t_ns, int64_t value)
{
	trace_counter(x->file, boottime_of(x->boottime, (struct host_ns){t_ns}), c->track, value);
	c->nonzero = value != 0;
}

/* Writes the window that is being added up, and where it is over. */
static void window_close(struct counter_rows *x, struct counter *c, int64_t next)
{
	if (c->window >= 0 && (c->sum_ns || c->nonzero))
		put(x, c, c->window * COUNTER_WINDOW_NS, c->sum_ns);
	if (c->nonzero && next != c->window + 1)
		put(x, c, (c->window + 1) * COUNTER_WINDOW_NS, 0);
	c->window = next;
	c->sum_ns = 0;
}

void counter_rows_span(struct counter_rows *x, const struct vcpu_span *span)
{
	struct counter *c;
	int64_t t = span->begin.ns;

	if (span->state != VCPU_RUNNABLE || span->begin.ns < 0)
		return;
	c = counter_get(x, COUNTER_RUN_DELAY, span->vm, span->vcpu);
	while (t < span->end.ns) {
		int64_t window = t / COUNTER_WINDOW_NS;
		int64_t end = (window + 1) * COUNTER_WINDOW_NS;

		if (end > span->end.ns)
			end = span->end.ns;
		if (window != c->window)
			window_close(x, c, window);
		c->sum_ns += end - t;
		t = end;
	}
}

void counter_rows_steal(struct counter_rows *x, const struct guest_steal *steal)
{
	if (steal->clock)
		put(x, counter_get(x, COUNTER_STEAL, steal->vm, steal->cpu), steal->t.ns,
		    (int64_t)steal->steal_ns);
}

void counter_rows_chain(struct counter_rows *x, const struct chain *c)
{
	int64_t ns;

	if (chain_saw(c, CHAIN_HANDLER) && chain_stage_ns(c, CHAIN_STAGE_LATENCY, &ns))
		put(x, counter_get(x, COUNTER_LATENCY, c->vm, c->vcpu), c->at[CHAIN_HANDLER].ns,
		    ns > 0 ? ns : 0);
}

void counter_rows_finish(struct counter_rows *x)
{
	for (uint32_t i = 0; i < x->index.count; i++) {
		if (x->items[i].window >= 0)
			window_close(x, &x->items[i], -1);
	}
}
