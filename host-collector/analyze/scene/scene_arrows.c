/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/scene/scene_arrows.h"

#include <errno.h>
#include <stdlib.h>

int arrows_init(struct arrows *a)
{
	a->ring = calloc(ARROWS_KEPT, sizeof(*a->ring));
	a->pending = calloc(ARROWS_PENDING, sizeof(*a->pending));
	return a->ring && a->pending ? 0 : -ENOMEM;
}

void arrows_fini(struct arrows *a)
{
	free(a->ring);
	free(a->pending);
}

const struct arrow *arrows_at(const struct arrows *a, uint64_t i)
{
	return i < a->n && i < ARROWS_KEPT ? &a->ring[(a->n - 1 - i) % ARROWS_KEPT] : NULL;
}

static void arrow_put(struct arrows *a, const struct arrow *arrow)
{
	a->ring[a->n++ % ARROWS_KEPT] = *arrow;
}

static struct arrow_pending *pending_of(struct arrows *a, uint32_t source, int32_t pid)
{
	uint32_t hash = ((uint32_t)pid ^ source << 7) * 2654435761u;

	return &a->pending[hash % ARROWS_PENDING];
}

/* Returns the arrow that waits for this task to run, which is then no longer pending, or NULL. */
static const struct arrow_pending *runs(struct arrows *a, uint32_t source, int32_t pid)
{
	struct arrow_pending *p = pending_of(a, source, pid);

	if (!pid || p->pid != pid || p->source != source)
		return NULL;
	p->pid = 0;
	return p;
}

void arrows_guest(struct arrows *a, const struct guest_instant *i)
{
	const struct vs_event *e = &i->event;
	const struct arrow_end here = {SCENE_ROW_GUEST, e->cpu, i->t};
	const struct arrow_pending *p;

	if (i->type == VS_EVENT_SCHED_WAKEUP || i->type == VS_EVENT_SCHED_WAKEUP_NEW) {
		*pending_of(a, i->vm, e->pid) =
			(struct arrow_pending){.source = i->vm, .pid = e->pid, .from = here};
	} else if (i->type == VS_EVENT_SCHED_SWITCH && (p = runs(a, i->vm, e->pid2))) {
		arrow_put(a, &(struct arrow){.kind = SCENE_ARROW_WAKEUP,
					     .vm = i->vm,
					     .from = p->from,
					     .to = here,
					     .pid = e->pid2});
	}
}

void arrows_host(struct arrows *a, const struct host_instant *i)
{
	const struct vs_event *e = &i->event;
	const struct arrow_pending *p;

	if (i->of_vcpu && e->type == VS_EVENT_SCHED_WAKEUP) {
		*pending_of(a, VS_SOURCE_HOST, e->pid) =
			(struct arrow_pending){.source = VS_SOURCE_HOST,
					       .pid = e->pid,
					       .vm = i->vm,
					       .vcpu = i->vcpu,
					       .from = {SCENE_ROW_PCPU, e->cpu, i->t}};
	} else if (e->type == VS_EVENT_SCHED_SWITCH && (p = runs(a, VS_SOURCE_HOST, e->pid2))) {
		arrow_put(a, &(struct arrow){.kind = SCENE_ARROW_KICK,
					     .vm = p->vm,
					     .from = p->from,
					     .to = {SCENE_ROW_VCPU, p->vcpu, i->t},
					     .pid = e->pid2});
	}
}

void arrows_chain(struct arrows *a, const struct chain *c, const struct model *m)
{
	struct arrow arrow = {.kind = SCENE_ARROW_INTERRUPT,
			      .vm = c->vm,
			      .from = {SCENE_ROW_VCPU, c->vcpu, c->begin},
			      .pid = c->raiser,
			      .number = c->vector};
	uint16_t cpu;

	if (!chain_saw(c, CHAIN_HANDLER) || model_guest_cpu_of_vcpu(m, c->vm, c->vcpu, &cpu))
		return;
	arrow.to = (struct arrow_end){SCENE_ROW_GUEST, cpu, c->at[CHAIN_HANDLER]};
	arrow_put(a, &arrow);
}
