/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/report_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/bill.h"
#include "host-collector/analyze/describe.h"
#include "host-collector/analyze/exits.h"
#include "host-collector/analyze/interrupts.h"
#include "host-collector/analyze/run_delay.h"
#include "host-collector/view/table.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct report_table {
	const struct table_kind *kind;
	struct run_delay *delay;
	struct bill *bill;
	struct interrupts *interrupts;
	struct exits *exits;
};

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static int64_t clip(uint64_t ns)
{
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static void quantiles(struct table *t, const struct histogram *h)
{
	static const double shares[] = {0.5, 0.95, 0.99, 0.999, 1};

	for (size_t i = 0; i < COUNT(shares); i++)
		table_ns(t, clip(histogram_quantile(h, shares[i])));
}

#define QUANTILE_COLUMNS                                                                           \
	{"p50", "p50", TABLE_NS}, {"p95", "p95", TABLE_NS}, {"p99", "p99", TABLE_NS},              \
		{"p99_9", "p99.9", TABLE_NS},                                                      \
	{                                                                                          \
		"max", "max", TABLE_NS                                                             \
	}

/* ---- vcpu ---- */

static const struct table_column vcpu_columns[] = {
	{"vm", "VM", TABLE_TEXT},
	{"vcpu", "vCPU", TABLE_COUNT},
	{"ran", "ran", TABLE_NS},
	{"run_delay", "waited", TABLE_NS},
	{"run_delay_share", "of both", TABLE_PERCENT},
	{"halted", "halted", TABLE_NS},
	{"blocked", "blocked", TABLE_NS},
	{"stopped", "stopped", TABLE_NS},
	{"unknown", "unknown", TABLE_NS},
	{"cause", "waits after", TABLE_TEXT},
	{"waits", "waits", TABLE_COUNT},
	QUANTILE_COLUMNS,
	{"migrations", "migrations", TABLE_COUNT},
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
	table_percent(t, percent(waited, ran + waited));
	table_ns(t, ns[VCPU_HALTED]);
	table_ns(t, ns[VCPU_BLOCKED]);
	table_ns(t, ns[VCPU_STOPPED]);
	table_ns(t, ns[VCPU_UNKNOWN]);
	table_text(t, causes[cause]);
	table_count(t, v->waits[cause].count);
	quantiles(t, &v->waits[cause]);
	table_count(t, v->migrations);
}

static void vcpu_fill(struct report_table *r, const struct model *m, struct table *t)
{
	const struct run_delay_vcpu *v;

	for (size_t i = 0; (v = run_delay_vcpu(r->delay, i)); i++) {
		for (int cause = 0; cause < RUN_DELAY_CAUSES; cause++)
			vcpu_row(t, m, v, cause);
	}
}

/* ---- pcpu ---- */

static const struct table_column pcpu_columns[] = {
	{"pcpu", "pCPU", TABLE_COUNT},
	{"ran", "vCPUs ran", TABLE_NS},
	{"run_delay", "vCPUs waited", TABLE_NS},
	{"run_delay_share", "of both", TABLE_PERCENT},
};

static void pcpu_fill(struct report_table *r, const struct model *m, struct table *t)
{
	const struct run_delay_pcpu *p;

	(void)m;
	for (size_t i = 0; (p = run_delay_pcpu(r->delay, i)); i++) {
		table_row(t);
		table_count(t, p->pcpu);
		table_ns(t, p->run_ns);
		table_ns(t, p->wait_ns);
		table_percent(t, percent(p->wait_ns, p->run_ns + p->wait_ns));
	}
}

/* ---- culprits ---- */

static const struct table_column culprit_columns[] = {
	{"vm", "VM that waited", TABLE_TEXT}, {"pid", "pid", TABLE_COUNT},
	{"held", "held its pCPU", TABLE_NS},  {"waits", "in waits", TABLE_COUNT},
	{"comm", "host task", TABLE_TEXT},
};

static void culprit_fill(struct report_table *r, const struct model *m, struct table *t)
{
	const struct run_delay_holder *h;

	for (size_t i = 0; (h = run_delay_holder(r->delay, i)); i++) {
		table_row(t);
		table_text(t, model_vm_name(m, h->vm));
		table_count(t, (uint64_t)h->pid);
		table_ns(t, h->held_ns);
		table_count(t, h->waits);
		table_text(t, model_task_name(m, VS_SOURCE_HOST, h->pid));
	}
}

/* ---- tasks ---- */

static const struct table_column task_columns[] = {
	{"vm", "VM", TABLE_TEXT},
	{"pid", "pid", TABLE_COUNT},
	{"believed", "believed it ran", TABLE_NS},
	{"ran", "really ran", TABLE_NS},
	{"kept", "was kept", TABLE_NS},
	{"kept_share", "share", TABLE_PERCENT},
	{"run_delay", "vCPU waited", TABLE_NS},
	{"blocked", "blocked", TABLE_NS},
	{"stopped", "stopped", TABLE_NS},
	{"halted", "halted", TABLE_NS},
	{"unknown", "unknown", TABLE_NS},
	{"longest_kept", "at a stretch", TABLE_NS},
	{"stays", "switched to", TABLE_COUNT},
	{"comm", "guest task", TABLE_TEXT},
};

static void task_fill(struct report_table *r, const struct model *m, struct table *t)
{
	const struct bill_task *b;

	for (size_t i = 0; (b = bill_task(r->bill, i)); i++) {
		int64_t believed = bill_believed_ns(b), ran = bill_ran_ns(b);
		int64_t kept = believed - ran - b->state_ns[VCPU_UNKNOWN];

		if (!believed)
			continue;
		table_row(t);
		table_text(t, model_vm_name(m, b->vm));
		table_count(t, (uint64_t)b->pid);
		table_ns(t, believed);
		table_ns(t, ran);
		table_ns(t, kept);
		table_percent(t, percent(kept, believed));
		table_ns(t, b->state_ns[VCPU_RUNNABLE] + b->state_ns[VCPU_THROTTLED]);
		table_ns(t, b->state_ns[VCPU_BLOCKED]);
		table_ns(t, b->state_ns[VCPU_STOPPED]);
		table_ns(t, b->state_ns[VCPU_HALTED]);
		table_ns(t, b->state_ns[VCPU_UNKNOWN]);
		table_ns(t, b->longest_kept_ns);
		table_count(t, b->stays);
		table_text(t, model_task_name(m, b->vm, b->pid));
	}
}

/* ---- irq ---- */

static const struct table_column irq_columns[] = {
	{"vm", "VM", TABLE_TEXT},
	{"kind", "kind", TABLE_TEXT},
	{"number", "number", TABLE_COUNT},
	{"name", "name", TABLE_TEXT},
	{"count", "count", TABLE_COUNT},
	{"total", "total", TABLE_NS},
	QUANTILE_COLUMNS,
	{"torn", "torn", TABLE_COUNT},
};

static void irq_fill(struct report_table *r, const struct model *m, struct table *t)
{
	const struct interrupt_source *s;
	char name[32];

	for (size_t i = 0; (s = interrupts_source(r->interrupts, i)); i++) {
		interrupt_name(s->kind, s->vector, s->number, name, sizeof(name));
		table_row(t);
		table_text(t, model_vm_name(m, s->vm));
		table_text(t, s->kind == GUEST_CPU_SOFTIRQ ? "softirq"
			      : s->vector                  ? "vector"
							   : "irq");
		table_count(t, s->number);
		table_text(t, name);
		table_count(t, s->durations.count);
		table_ns(t, clip(s->durations.sum_ns));
		quantiles(t, &s->durations);
		table_count(t, s->torn);
	}
}

/* ---- exits ---- */

static const struct table_column exit_columns[] = {
	{"vm", "VM", TABLE_TEXT},        {"reason", "reason", TABLE_TEXT},
	{"count", "exits", TABLE_COUNT}, {"kernel", "in KVM", TABLE_NS},
	{"vmm", "in VMM", TABLE_NS},     {"scheduled_out", "scheduled out", TABLE_NS},
	{"slept", "slept", TABLE_NS},    QUANTILE_COLUMNS,
	{"torn", "torn", TABLE_COUNT},
};

static void exit_fill(struct report_table *r, const struct model *m, struct table *t)
{
	const struct exit_reason *e;

	for (size_t i = 0; (e = exits_reason(r->exits, i)); i++) {
		table_row(t);
		table_text(t, model_vm_name(m, e->vm));
		table_text(t, exit_name(e->isa, e->reason).text);
		table_count(t, e->handling.count);
		table_ns(t, e->kernel_ns);
		table_ns(t, e->vmm_ns);
		table_ns(t, e->scheduled_out_ns);
		table_ns(t, e->slept_ns);
		quantiles(t, &e->handling);
		table_count(t, e->torn);
	}
}

/* ---- all ---- */

static const struct table_kind {
	const char *name;
	const struct table_column *columns;
	size_t n_columns;
	size_t sort_by;
	void (*fill)(struct report_table *r, const struct model *m, struct table *t);
} kinds[] = {
	{"vcpu", vcpu_columns, COUNT(vcpu_columns), 3, vcpu_fill},
	{"pcpu", pcpu_columns, COUNT(pcpu_columns), 2, pcpu_fill},
	{"culprits", culprit_columns, COUNT(culprit_columns), 2, culprit_fill},
	{"tasks", task_columns, COUNT(task_columns), 4, task_fill},
	{"irq", irq_columns, COUNT(irq_columns), 5, irq_fill},
	{"exits", exit_columns, COUNT(exit_columns), 2, exit_fill},
};

static const struct table_kind *kind_find(const char *name)
{
	for (size_t i = 0; i < COUNT(kinds); i++) {
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	}
	return NULL;
}

int report_table_known(const char *name)
{
	return kind_find(name) != NULL;
}

struct report_table *report_table_new(struct model *m, const char *name)
{
	struct report_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->kind = kind_find(name);
	t->delay = run_delay_new(m);
	t->bill = bill_new(m);
	t->interrupts = interrupts_new(m);
	t->exits = exits_new(m);
	if (!t->kind || !t->delay || !t->bill || !t->interrupts || !t->exits) {
		report_table_free(t);
		return NULL;
	}
	return t;
}

void report_table_free(struct report_table *t)
{
	if (!t)
		return;
	run_delay_free(t->delay);
	bill_free(t->bill);
	interrupts_free(t->interrupts);
	exits_free(t->exits);
	free(t);
}

int report_table_write(struct report_table *r, const struct model *m, const char *format,
		       uint64_t top, FILE *out)
{
	const struct table_kind *k = r->kind;
	struct table *t = table_new(k->name, k->columns, k->n_columns);
	int err = t ? bill_finish(r->bill) : -ENOMEM;

	if (!err)
		err = run_delay_error(r->delay);
	if (!err)
		err = interrupts_error(r->interrupts);
	if (!err)
		err = exits_error(r->exits);
	if (!err) {
		k->fill(r, m, t);
		table_sort(t, k->sort_by, (size_t)top);
		err = !strcmp(format, "json")  ? table_write_json(t, out)
		      : !strcmp(format, "csv") ? table_write_csv(t, out)
					       : table_write_text(t, out);
	}
	table_free(t);
	return err;
}
