/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/overdue.h"

#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/chain/chain.h"

/* Chains are examined from this share of the threshold on, so that a chain that ends within a run
 * interval is known, too. */
enum { LIMIT_SHARE = 4 };

#define LIMIT_LEAST_NS 1000000ll

struct overdue {
	struct model *model;
	struct chains *chains;
	int64_t than_ns;
	overdue_found found;
	void *context;
	bool finishing;
};

static struct facts_lost lost_of(const struct chain_trouble *t)
{
	const struct chain *c = &t->chain;

	return (struct facts_lost){.open = t->open,
				   .vector = c->vector,
				   .source = chain_source_name(c->source),
				   .irq = c->irq,
				   .raiser = c->raiser,
				   .begin = c->begin};
}

/* Returns true if the guest CPU was idle for most of the chain's time. */
static bool halted(const struct chain_trouble *t)
{
	int64_t all = 0;

	for (int p = 0; p < CHAIN_PLACE_COUNT; p++)
		all += t->chain.place_ns[p];
	return t->halted || t->chain.place_ns[CHAIN_PLACE_ASLEEP] > all / 2;
}

/* Returns true if the chain is reported by itself. Otherwise the task's run interval shows that its
 * CPU lacked a tick or a call of another CPU. */
static bool stands_alone(const struct chain_trouble *t)
{
	return halted(t) || t->chain.source == CHAIN_SOURCE_MSI ||
	       t->chain.source == CHAIN_SOURCE_GSI;
}

/* Returns the time in which the vCPU ran the guest while the interrupt was pending. */
static int64_t ran_ns(const struct chain *c)
{
	return c->place_ns[CHAIN_PLACE_INTERRUPTS_OFF] + c->place_ns[CHAIN_PLACE_DELIVERY];
}

static void alone_emit(const struct overdue *o, const struct chain_trouble *t, struct host_ns until)
{
	static const enum vcpu_state states[CHAIN_PLACE_COUNT] = {
		[CHAIN_PLACE_NOT_SCHEDULED] = VCPU_RUNNABLE,
		[CHAIN_PLACE_ASLEEP] = VCPU_HALTED,
		[CHAIN_PLACE_EXIT_HANDLING] = VCPU_KVM,
		[CHAIN_PLACE_INTERRUPTS_OFF] = VCPU_GUEST,
		[CHAIN_PLACE_DELIVERY] = VCPU_GUEST,
		[CHAIN_PLACE_UNKNOWN] = VCPU_UNKNOWN,
	};
	const struct chain *c = &t->chain;
	struct stall_facts *f = calloc(1, sizeof(*f));
	uint16_t cpu = (uint16_t)c->vcpu;

	if (!f)
		return;
	model_guest_cpu_of_vcpu(o->model, c->vm, c->vcpu, &cpu);
	facts_begin(f, c->vm, cpu, c->begin);
	facts_end(f, until);
	f->vcpu = c->vcpu;
	f->vcpu_known = true;
	f->kind = t->kind == CHAIN_LATE || halted(t) ? GUEST_CPU_IDLE : GUEST_CPU_UNKNOWN;
	f->ongoing = t->open;
	f->err_ns = (uint64_t)c->host_err_ns + c->guest_err_ns;
	f->than_ns = o->than_ns;
	for (int p = 0; p < CHAIN_PLACE_COUNT; p++)
		f->state_ns[states[p]] += c->place_ns[p];
	facts_close(f);
	if (t->kind == CHAIN_LATE) {
		f->late = (struct facts_late){.ns = ran_ns(c),
					      .vector = c->vector,
					      .source = chain_source_name(c->source)};
	} else {
		f->lost = lost_of(t);
		f->lost.alone = true;
		f->lost.ns = f->state_ns[VCPU_GUEST] + f->state_ns[VCPU_HALTED];
	}
	o->found(o->context, f);
	free(f);
}

static void on_trouble(void *context, const struct chain_trouble *t)
{
	const struct overdue *o = context;
	struct host_ns until = t->open ? model_now(o->model) : t->until;

	if (t->kind == CHAIN_LATE && ran_ns(&t->chain) >= o->than_ns)
		alone_emit(o, t, until);
	if (t->kind != CHAIN_LOST || t->open != o->finishing || !stands_alone(t) ||
	    until.ns - t->chain.begin.ns < o->than_ns)
		return;
	alone_emit(o, t, until);
}

struct overdue *overdue_new(struct model *m, int64_t than_ns, overdue_found found, void *context)
{
	struct overdue *o = calloc(1, sizeof(*o));
	struct chain_options options = {
		.limit_ns = than_ns / LIMIT_SHARE,
		.uncounted = true,
		.trouble = on_trouble,
		.context = o,
	};

	if (!o)
		return NULL;
	if (options.limit_ns < LIMIT_LEAST_NS)
		options.limit_ns = LIMIT_LEAST_NS;
	o->model = m;
	o->than_ns = than_ns;
	o->found = found;
	o->context = context;
	o->chains = chains_new(m, &options);
	if (!o->chains) {
		free(o);
		return NULL;
	}
	return o;
}

void overdue_free(struct overdue *o)
{
	if (o)
		chains_free(o->chains);
	free(o);
}

struct chains *overdue_chains(const struct overdue *o)
{
	return o->chains;
}

/* Returns how late the tick came that ended the longest gap. 0 if its interrupt was pending before,
 * so that the guest did not take it. */
static int64_t tick_came_late_ns(const struct overdue *o, const struct stall_facts *f)
{
	const struct chain_tick *t;
	int64_t pending;

	if (f->kind == GUEST_CPU_IDLE || !f->tick_interval_ns || f->tick_gap_ns < f->than_ns)
		return 0;
	t = chains_tick_at(o->chains, f->vm, f->vcpu, f->tick_gap_end);
	if (!t)
		return 0;
	pending = t->handled.ns - t->accepted.ns;
	if (pending > f->tick_interval_ns + t->err_ns)
		return 0;
	return f->tick_gap_ns - f->tick_interval_ns;
}

/* Excludes the time in which the vCPU did not run: KVM injects no timer interrupt then, and another
 * verdict covers that time. */
static int64_t tick_late_ns(const struct overdue *o, const struct stall_facts *f)
{
	int64_t late = tick_came_late_ns(o, f), absent = facts_duration(f) - facts_ran(f);

	return late > absent ? late - absent : 0;
}

/* Returns true if KVM's events show the guest's timers, but not what happened to this tick. */
static bool tick_unexplained(const struct overdue *o, const struct stall_facts *f)
{
	struct host_ns begin = {f->tick_gap_end.ns - f->tick_gap_ns};
	const struct chain_trouble *t;

	if (tick_came_late_ns(o, f) || !f->tick_interval_ns || f->tick_gap_ns < f->than_ns ||
	    !chains_see_timers(o->chains, f->vm))
		return false;
	t = chains_trouble_in(o->chains, f->vm, f->vcpu, CHAIN_LATE, true, begin, f->tick_gap_end);
	return !t || t->chain.begin.ns > begin.ns + f->tick_gap_ns / 2;
}

static void lost_fill(const struct overdue *o, struct stall_facts *f)
{
	const struct chain_trouble *t =
		chains_trouble_in(o->chains, f->vm, f->vcpu, CHAIN_LOST, false, f->begin, f->end);
	struct host_ns begin, end;

	if (!t || stands_alone(t))
		return;
	begin = t->chain.begin.ns > f->begin.ns ? t->chain.begin : f->begin;
	end = t->open || t->until.ns > f->end.ns ? f->end : t->until;
	if (end.ns - begin.ns < f->than_ns)
		return;
	f->lost = lost_of(t);
	f->lost.ns = end.ns - begin.ns;
}

void overdue_fill(const struct overdue *o, struct stall_facts *f)
{
	f->lost = (struct facts_lost){0};
	f->tick_late_ns = 0;
	f->tick_unexplained = false;
	if (!f->vcpu_known)
		return;
	f->tick_late_ns = tick_late_ns(o, f);
	f->tick_unexplained = tick_unexplained(o, f);
	lost_fill(o, f);
}

void overdue_finish(struct overdue *o)
{
	o->finishing = true;
	chains_finish(o->chains);
}
