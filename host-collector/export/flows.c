/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/export/flows.h"

#include <errno.h>
#include <stdlib.h>

struct flow {
	struct host_ns handler;
	uint32_t vm;
	uint16_t cpu;
	uint8_t vector;
	bool injected, raised;
	enum chain_source source;
	uint32_t gsi;
	int32_t raiser, tid;
	struct host_ns raised_at, delivered_at;
	int64_t err_ns; /* of the time between delivery and handler */
};

int flows_init(struct flows *x)
{
	x->items = calloc(FLOWS_MAX, sizeof(*x->items));
	return x->items ? lru_init(&x->index, FLOWS_MAX) : -ENOMEM;
}

void flows_fini(struct flows *x)
{
	free(x->items);
	lru_fini(&x->index);
}

static uint64_t key_of(uint32_t vm, uint16_t cpu, struct host_ns handler)
{
	return (uint64_t)handler.ns ^ (uint64_t)vm << 52 ^ (uint64_t)cpu << 42;
}

void flows_chain(void *context, const struct chain *c)
{
	struct flows *x = context;
	bool injected = chain_saw(c, CHAIN_INJECT);
	struct vcpu_span now;
	struct flow *f;
	uint16_t cpu;
	bool fresh;

	if (!chain_saw(c, CHAIN_HANDLER) || (!injected && !chain_saw(c, CHAIN_ACCEPT)) ||
	    model_guest_cpu_of_vcpu(x->model, c->vm, c->vcpu, &cpu) ||
	    model_vcpu_current(x->model, c->vm, c->vcpu, &now))
		return;
	f = &x->items[lru_put(&x->index, key_of(c->vm, cpu, c->at[CHAIN_HANDLER]), &fresh)];
	*f = (struct flow){
		.handler = c->at[CHAIN_HANDLER],
		.vm = c->vm,
		.cpu = cpu,
		.vector = c->vector,
		.injected = injected,
		.source = c->source,
		.gsi = c->gsi,
		.raiser = c->raiser,
		.tid = now.tid,
		.delivered_at = c->at[injected ? CHAIN_INJECT : CHAIN_ACCEPT],
		.err_ns = (int64_t)c->host_err_ns + c->guest_err_ns,
	};
	/* A timer is raised by whomever it interrupts: nothing to point from. */
	f->raised = chain_saw(c, CHAIN_SOURCE) && c->source != CHAIN_SOURCE_TIMER &&
		    c->source != CHAIN_SOURCE_UNKNOWN && c->raiser > 0;
	f->raised_at = c->at[CHAIN_SOURCE];
}

/* Readers draw an arrow from the earlier of its events to the later one. So no step is drawn later
 * than the handler. */
static void step(struct flows *x, uint64_t t, uint64_t handler, int32_t tid, uint32_t name)
{
	uint64_t track = tasks_track(x->tasks, tid);
	struct trace_event e =
		trace_event_open(x->file, t < handler ? t : handler, track, EVENT_INSTANT, name);

	trace_flow(x->file, x->file->last_flow, false);
	if (t > handler)
		trace_annotate_int(x->file, "later_by_ns", (int64_t)(t - handler));
	trace_event_close(x->file, e);
}

static uint32_t delivery_name(struct flows *x, const struct flow *f)
{
	uint32_t *name = f->injected ? &x->injects[f->vector] : &x->accepts[f->vector];
	char text[TRACE_NAME_BYTES];

	if (!*name) {
		snprintf(text, sizeof(text), "%s 0x%02x", f->injected ? "inject" : "accept",
			 f->vector);
		*name = trace_name(x->file, text);
	}
	return *name;
}

static uint32_t source_name(struct flows *x, const struct flow *f)
{
	uint32_t other = 0, *name = &x->sources[f->source][f->vector];
	char text[TRACE_NAME_BYTES];

	if (f->source == CHAIN_SOURCE_GSI)
		name = f->gsi < 256 ? &x->gsis[f->gsi] : &other;
	if (!*name) {
		if (f->source == CHAIN_SOURCE_GSI)
			snprintf(text, sizeof(text), "gsi %u", f->gsi);
		else
			snprintf(text, sizeof(text), "%s 0x%02x", chain_source_name(f->source),
				 f->vector);
		*name = trace_name(x->file, text);
	}
	return *name;
}

uint64_t flows_to(struct flows *x, uint32_t vm, uint16_t cpu, struct host_ns handler, uint64_t t)
{
	uint32_t slot = lru_find(&x->index, key_of(vm, cpu, handler));
	uint64_t delivered, raised;
	struct flow f;

	if (slot == LRU_NONE)
		return 0;
	f = x->items[slot];
	if (f.vm != vm || f.cpu != cpu || f.handler.ns != handler.ns)
		return 0;
	lru_remove(&x->index, slot);
	delivered = boottime_of(x->boottime, f.delivered_at);
	raised = boottime_of(x->boottime, f.raised_at);
	/* The clocks' error does not explain it: one of the two stamps is wrong. */
	if (f.delivered_at.ns - handler.ns > f.err_ns) {
		x->contradicted++;
		return 0;
	}
	if (!trace_has(x->file, delivered) || (f.raised && !trace_has(x->file, raised)))
		return 0;
	x->file->last_flow++;
	x->drawn++;
	if (f.raised && raised <= delivered)
		step(x, raised, t, f.raiser, source_name(x, &f));
	step(x, delivered, t, f.tid, delivery_name(x, &f));
	return x->file->last_flow;
}
