/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables of what vCPUs waited for: vcpu, pcpu, culprits, steal, halts. */
#include <stdlib.h>

#include "host-collector/tables/halts.h"
#include "host-collector/tables/run_delay.h"
#include "host-collector/tables/steal.h"
#include "host-collector/tables/figures.h"

static void *delay_open(struct model *m, const struct figures_options *options)
{
	return run_delay_new(m, options);
}

static void delay_close(void *analysis)
{
	run_delay_free(analysis);
}

static void delay_clear(void *analysis)
{
	run_delay_clear(analysis);
}

/* ---- vcpu ---- */

static const struct figures_column vcpu_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{0, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"ran", "ran", TABLE_NS}},
	{0, {"run_delay", "waited", TABLE_NS}},
	{0, {"run_delay_share", "of both", TABLE_PERCENT}},
	{0, {"halted", "halted", TABLE_NS}},
	{0, {"blocked", "blocked", TABLE_NS}},
	{0, {"stopped", "stopped", TABLE_NS}},
	{0, {"unknown", "unknown", TABLE_NS}},
	{0, {"cause", "waits after", TABLE_TEXT}},
	{0, {"waits", "waits", TABLE_COUNT}},
	FIGURES_QUANTILES,
	{0, {"migrations", "migrations", TABLE_COUNT}},
};

static void vcpu_row(struct table *t, const struct model *m, const struct run_delay_vcpu *v,
		     enum run_delay_cause cause)
{
	static const char *const causes[] = {
		[RUN_DELAY_WOKEN] = "wake-up", [RUN_DELAY_PREEMPTED] = "preemption"};
	const int64_t *ns = v->state_ns;
	int64_t ran = ns[VCPU_GUEST] + ns[VCPU_KVM] + ns[VCPU_VMM];
	int64_t waited = ns[VCPU_RUNNABLE] + ns[VCPU_THROTTLED];

	table_row(t);
	table_text(t, model_vm_name(m, v->vm));
	table_count(t, v->vcpu);
	table_ns(t, ran);
	table_ns(t, waited);
	table_percent(t, figures_percent(waited, ran + waited));
	table_ns(t, ns[VCPU_HALTED]);
	table_ns(t, ns[VCPU_BLOCKED]);
	table_ns(t, ns[VCPU_STOPPED]);
	table_ns(t, ns[VCPU_UNKNOWN]);
	table_text(t, causes[cause]);
	table_count(t, v->waits[cause].count);
	figures_quantiles(t, &v->waits[cause]);
	table_count(t, v->migrations);
}

static int vcpu_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct run_delay_vcpu *v;

	for (size_t i = 0; (v = run_delay_vcpu(analysis, i)); i++) {
		for (int cause = 0; v->seen && cause < RUN_DELAY_CAUSES; cause++)
			vcpu_row(t, view->model, v, cause);
	}
	return run_delay_error(analysis);
}

/* ---- pcpu ---- */

static const struct figures_column pcpu_columns[] = {
	{0, {"pcpu", "pCPU", TABLE_COUNT}},
	{FIGURES_PER_VCPU, {"vm", "VM", TABLE_TEXT}},
	{FIGURES_PER_VCPU, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"ran", "vCPUs ran", TABLE_NS}},
	{0, {"run_delay", "vCPUs waited", TABLE_NS}},
	{0, {"run_delay_share", "of both", TABLE_PERCENT}},
};

static int pcpu_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct run_delay_pcpu *p;

	for (size_t i = 0; (p = run_delay_pcpu(analysis, i)); i++) {
		table_row(t);
		table_count(t, p->pcpu);
		if (view->per == FIGURES_PER_VCPU) {
			table_text(t, model_vm_name(view->model, p->vm));
			table_count(t, p->vcpu);
		}
		table_ns(t, p->run_ns);
		table_ns(t, p->wait_ns);
		table_percent(t, figures_percent(p->wait_ns, p->run_ns + p->wait_ns));
	}
	return run_delay_error(analysis);
}

/* ---- culprits ---- */

static const struct figures_column culprit_columns[] = {
	{0, {"vm", "VM that waited", TABLE_TEXT}},
	{FIGURES_PER_VCPU, {"vcpu", "vCPU", TABLE_COUNT}},
	{FIGURES_PER_PCPU, {"pcpu", "pCPU", TABLE_COUNT}},
	{0, {"pid", "pid", TABLE_COUNT}},
	{0, {"held", "held its pCPU", TABLE_NS}},
	{0, {"waits", "in waits", TABLE_COUNT}},
	{0, {"comm", "host task", TABLE_TEXT}},
};

static int culprit_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct run_delay_holder *h;

	for (size_t i = 0; (h = run_delay_holder(analysis, i)); i++) {
		table_row(t);
		table_text(t, model_vm_name(view->model, h->vm));
		if (view->per == FIGURES_PER_VCPU)
			table_count(t, h->vcpu);
		if (view->per == FIGURES_PER_PCPU)
			table_count(t, h->pcpu);
		table_count(t, (uint64_t)h->pid);
		table_ns(t, h->held_ns);
		table_count(t, h->waits);
		table_text(t, h->pid == RUN_DELAY_OTHERS
				      ? "all others, in turn with these"
				      : model_task_name(view->model, VS_SOURCE_HOST, h->pid));
	}
	return run_delay_error(analysis);
}

/* ---- steal ---- */

static void *steal_open(struct model *m, const struct figures_options *options)
{
	(void)options;
	return steal_new(m);
}

static void steal_close(void *analysis)
{
	steal_free(analysis);
}

static void steal_reset(void *analysis)
{
	steal_clear(analysis);
}

static const struct figures_column steal_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{0, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"guest_cpu", "guest CPU", TABLE_COUNT}},
	{0, {"accounted", "guest accounts", TABLE_NS}},
	{0, {"measured", "measured", TABLE_NS}},
	{0, {"difference", "difference", TABLE_NS}},
	{0, {"measured_share", "of the time", TABLE_PERCENT}},
	{0, {"unknown", "unknown", TABLE_NS}},
	{0, {"span", "over", TABLE_NS}},
	{0, {"readings", "readings", TABLE_COUNT}},
	{0, {"unit", "guest's unit", TABLE_NS}},
	{0, {"steal_clock", "steal clock", TABLE_TEXT}},
};

static int steal_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct steal_vcpu *v;

	for (size_t i = 0; (v = steal_vcpu(analysis, i)); i++) {
		int64_t difference = v->accounted_ns - v->measured_ns;

		if (llabs(difference) < view->than_ns)
			continue;
		table_row(t);
		table_text(t, model_vm_name(view->model, v->vm));
		table_count(t, v->vcpu);
		table_count(t, v->guest_cpu);
		if (v->clock)
			table_ns(t, v->accounted_ns);
		else
			table_none(t);
		table_ns(t, v->measured_ns);
		if (v->clock)
			table_ns(t, difference);
		else
			table_none(t);
		table_percent(t, figures_percent(v->measured_ns, v->end.ns - v->begin.ns));
		table_ns(t, v->unknown_ns);
		table_ns(t, v->end.ns - v->begin.ns);
		table_count(t, v->readings);
		table_ns(t, figures_clip(v->unit_ns));
		table_text(t, v->clock ? "yes" : "none");
	}
	return 0;
}

/* ---- halts ---- */

static void *halt_open(struct model *m, const struct figures_options *options)
{
	return halts_new(m, options);
}

static void halt_close(void *analysis)
{
	halts_free(analysis);
}

static void halt_clear(void *analysis)
{
	halts_clear(analysis);
}

static const struct figures_column halt_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{0, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"halts", "halts", TABLE_COUNT}},
	{0, {"total", "halted for", TABLE_NS}},
	{0, {"polled", "polled enough", TABLE_COUNT}},
	{0, {"polled_share", "of halts", TABLE_PERCENT}},
	{0, {"poll", "polled for", TABLE_NS}},
	{0, {"poll_in_vain", "in vain, at most", TABLE_NS}},
	{0, {"poll_limit", "limit now", TABLE_NS}},
	{0, {"slept", "slept", TABLE_COUNT}},
	FIGURES_QUANTILES,
	{0, {"migrations", "migrations", TABLE_COUNT}},
};

static void halt_row(const struct halts_vcpu *v, const struct figures_view *view, struct table *t)
{
	bool vain_known = v->limit_known || !v->slept;

	table_row(t);
	table_text(t, model_vm_name(view->model, v->vm));
	table_count(t, v->vcpu);
	table_count(t, v->lengths.count);
	table_ns(t, v->polled_ns + v->slept_ns);
	table_count(t, v->polled);
	table_percent(t, figures_percent((int64_t)v->polled, (int64_t)v->lengths.count));
	table_ns(t, v->polled_ns);
	if (vain_known)
		table_ns(t, v->in_vain_ns);
	else
		table_none(t);
	if (v->limit_known)
		table_ns(t, v->limit_ns);
	else
		table_none(t);
	table_count(t, v->slept);
	figures_quantiles(t, &v->lengths);
	table_count(t, v->migrations);
}

static int halt_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct halts_vcpu *v;

	for (size_t i = 0; (v = halts_vcpu(analysis, i)); i++)
		halt_row(v, view, t);
	return halts_error(analysis);
}

const struct figures_kind figures_latency[] = {
	{"vcpu", "How long vCPUs ran, waited for a pCPU and slept", FIGURES_COLUMNS(vcpu_columns),
	 "run_delay", false, FIGURES_PER_VCPU, FIGURES_PER_VCPU, true, delay_open, delay_close,
	 delay_clear, NULL, vcpu_fill},
	{"pcpu", "On which pCPU they ran and waited", FIGURES_COLUMNS(pcpu_columns), "run_delay",
	 false, FIGURES_PER_PCPU | FIGURES_PER_VCPU, FIGURES_PER_PCPU, false, delay_open,
	 delay_close, delay_clear, NULL, pcpu_fill},
	{"culprits", "Which host tasks held a pCPU that a vCPU waited for",
	 FIGURES_COLUMNS(culprit_columns), "held", false,
	 FIGURES_PER_TASK | FIGURES_PER_VCPU | FIGURES_PER_PCPU, FIGURES_PER_TASK, true, delay_open,
	 delay_close, delay_clear, NULL, culprit_fill},
	{"steal", "Steal as the guest accounts it, beside the wait that was measured",
	 FIGURES_COLUMNS(steal_columns), "measured", false, FIGURES_PER_VCPU, FIGURES_PER_VCPU,
	 true, steal_open, steal_close, steal_reset, NULL, steal_fill},
	{"halts", "How long vCPUs halted, and what polling for the next event was worth",
	 FIGURES_COLUMNS(halt_columns), "total", false, FIGURES_PER_VCPU, FIGURES_PER_VCPU, true,
	 halt_open, halt_close, halt_clear, NULL, halt_fill},
	{.name = NULL},
};
