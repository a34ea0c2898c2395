/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables of what guests ran and what delayed them: tasks, irq, ticks. */
#include "host-collector/tables/bill.h"
#include "host-collector/tables/interrupts.h"
#include "host-collector/tables/ticks.h"
#include "host-collector/tables/figures.h"

/* ---- tasks ---- */

static void *task_open(struct model *m, const struct figures_options *options)
{
	return bill_new(m, options);
}

static void task_close(void *analysis)
{
	bill_free(analysis);
}

static void task_clear(void *analysis)
{
	bill_clear(analysis);
}

static void task_finish(void *analysis)
{
	bill_finish(analysis); /* its error stays for bill_error */
}

static const struct figures_column task_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{FIGURES_PER_VCPU, {"guest_cpu", "guest CPU", TABLE_COUNT}},
	{0, {"pid", "pid", TABLE_COUNT}},
	{0, {"believed", "believed it ran", TABLE_NS}},
	{0, {"ran", "really ran", TABLE_NS}},
	{0, {"kept", "was kept", TABLE_NS}},
	{0, {"kept_share", "share", TABLE_PERCENT}},
	{0, {"run_delay", "vCPU waited", TABLE_NS}},
	{0, {"blocked", "blocked", TABLE_NS}},
	{0, {"stopped", "stopped", TABLE_NS}},
	{0, {"halted", "halted", TABLE_NS}},
	{0, {"unknown", "unknown", TABLE_NS}},
	{0, {"longest_kept", "at a stretch", TABLE_NS}},
	{0, {"stays", "switched to", TABLE_COUNT}},
	{0, {"comm", "guest task", TABLE_TEXT}},
};

static void task_row(const struct bill_task *b, const struct figures_view *view, struct table *t)
{
	int64_t believed = bill_believed_ns(b), ran = bill_ran_ns(b);
	int64_t kept = believed - ran - b->state_ns[VCPU_UNKNOWN];

	table_row(t);
	table_text(t, model_vm_name(view->model, b->vm));
	if (view->per == FIGURES_PER_VCPU)
		table_count(t, b->cpu);
	table_count(t, (uint64_t)b->pid);
	table_ns(t, believed);
	table_ns(t, ran);
	table_ns(t, kept);
	table_percent(t, figures_percent(kept, believed));
	table_ns(t, b->state_ns[VCPU_RUNNABLE] + b->state_ns[VCPU_THROTTLED]);
	table_ns(t, b->state_ns[VCPU_BLOCKED]);
	table_ns(t, b->state_ns[VCPU_STOPPED]);
	table_ns(t, b->state_ns[VCPU_HALTED]);
	table_ns(t, b->state_ns[VCPU_UNKNOWN]);
	table_ns(t, b->longest_kept_ns);
	table_count(t, b->stays);
	table_text(t, model_task_name_in(view->model, b->vm, b->boot, b->pid));
}

static int task_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct bill_task *b;

	for (size_t i = 0; (b = bill_task(analysis, i)); i++) {
		if (bill_believed_ns(b) && b->longest_kept_ns >= view->than_ns)
			task_row(b, view, t);
	}
	return bill_error(analysis);
}

/* ---- irq ---- */

static void *irq_open(struct model *m, const struct figures_options *options)
{
	return interrupts_new(m, options);
}

static void irq_close(void *analysis)
{
	interrupts_free(analysis);
}

static void irq_clear(void *analysis)
{
	interrupts_clear(analysis);
}

static const struct figures_column irq_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{FIGURES_PER_VCPU, {"guest_cpu", "guest CPU", TABLE_COUNT}},
	{0, {"kind", "kind", TABLE_TEXT}},
	{0, {"number", "number", TABLE_COUNT}},
	{0, {"name", "name", TABLE_TEXT}},
	{0, {"count", "count", TABLE_COUNT}},
	{0, {"rate", "a second", TABLE_COUNT}},
	{0, {"total", "total", TABLE_NS}},
	{0, {"share", "of a CPU", TABLE_PERCENT}},
	FIGURES_QUANTILES,
	{0, {"peak_rate", "peak a second", TABLE_COUNT}},
	{0, {"peak_share", "peak of a CPU", TABLE_PERCENT}},
	{0, {"storm", "storms", TABLE_NS}},
	{0, {"torn", "torn", TABLE_COUNT}},
};

static uint64_t rate(uint64_t count, int64_t ns)
{
	return ns > 0 ? (uint64_t)((double)count * 1e9 / (double)ns + 0.5) : 0;
}

static void irq_row(const struct interrupt_source *s, const struct figures_view *view,
		    struct table *t)
{
	char name[32];

	interrupt_name(s->kind, s->vector, s->number, name, sizeof(name));
	table_row(t);
	table_text(t, model_vm_name(view->model, s->vm));
	if (view->per == FIGURES_PER_VCPU)
		table_count(t, s->cpu);
	table_text(t, s->kind == GUEST_CPU_SOFTIRQ ? "softirq" : s->vector ? "vector" : "irq");
	table_count(t, s->number);
	table_text(t, name);
	table_count(t, s->durations.count);
	table_count(t, rate(s->durations.count, view->span_ns));
	table_ns(t, figures_clip(s->durations.sum_ns));
	table_percent(t, figures_percent(figures_clip(s->durations.sum_ns), view->span_ns));
	figures_quantiles(t, &s->durations);
	table_count(t, rate(s->peak_count, INTERRUPTS_WINDOW_NS));
	table_percent(t, figures_percent(s->peak_ns, INTERRUPTS_WINDOW_NS));
	table_ns(t, s->storm_ns);
	table_count(t, s->torn);
}

static int irq_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct interrupt_source *s;
	int err = interrupts_finish(analysis);

	for (size_t i = 0; (s = interrupts_source(analysis, i)); i++)
		irq_row(s, view, t);
	return err;
}

/* ---- ticks ---- */

static void *tick_open(struct model *m, const struct figures_options *options)
{
	return ticks_new(m, options);
}

static void tick_close(void *analysis)
{
	ticks_free(analysis);
}

static void tick_clear(void *analysis)
{
	ticks_clear(analysis);
}

static void tick_finish(void *analysis)
{
	ticks_finish(analysis);
}

static const struct figures_column tick_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{0, {"guest_cpu", "guest CPU", TABLE_COUNT}},
	{0, {"ticks", "ticks", TABLE_COUNT}},
	{0, {"interval", "interval", TABLE_NS}},
	{0, {"late", "late", TABLE_COUNT}},
	{0, {"late_total", "late by", TABLE_NS}},
	{0, {"kept", "by the host", TABLE_NS}},
	{0, {"off", "while it ran", TABLE_COUNT}},
	{0, {"off_total", "in all", TABLE_NS}},
	FIGURES_QUANTILES,
	{0, {"unknown", "unknown", TABLE_COUNT}},
};

static int tick_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct ticks_cpu *c;

	for (size_t i = 0; (c = ticks_cpu(analysis, i)); i++) {
		table_row(t);
		table_text(t, model_vm_name(view->model, c->vm));
		table_count(t, c->cpu);
		table_count(t, c->ticks);
		if (c->interval_ns)
			table_ns(t, c->interval_ns);
		else
			table_none(t);
		table_count(t, c->late.count);
		table_ns(t, figures_clip(c->late.sum_ns));
		table_ns(t, c->kept_ns);
		table_count(t, c->off.count);
		table_ns(t, figures_clip(c->off.sum_ns));
		figures_quantiles(t, &c->off);
		table_count(t, c->unknown);
	}
	return ticks_error(analysis);
}

const struct figures_kind figures_guest[] = {
	{"tasks", "What guest tasks believed they ran, and what they got",
	 FIGURES_COLUMNS(task_columns), "kept", false, FIGURES_PER_TASK | FIGURES_PER_VCPU,
	 FIGURES_PER_TASK, true, task_open, task_close, task_clear, task_finish, task_fill},
	{"irq", "How long interrupts and softirqs took in the guest", FIGURES_COLUMNS(irq_columns),
	 "total", false, FIGURES_PER_VECTOR | FIGURES_PER_VCPU, FIGURES_PER_VECTOR, true, irq_open,
	 irq_close, irq_clear, NULL, irq_fill},
	{"ticks", "Timer ticks that came late to a busy guest CPU", FIGURES_COLUMNS(tick_columns),
	 "off_total", false, FIGURES_PER_VCPU, FIGURES_PER_VCPU, true, tick_open, tick_close,
	 tick_clear, tick_finish, tick_fill},
	{.name = NULL},
};
