/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables of VM-exits: exits, faults. */
#include <inttypes.h>

#include "host-collector/model/exit_name.h"
#include "host-collector/tables/exits.h"
#include "host-collector/tables/page_faults.h"
#include "host-collector/tables/figures.h"

/* ---- exits ---- */

static void *exit_open(struct model *m, const struct figures_options *options)
{
	return exits_new(m, options);
}

static void exit_close(void *analysis)
{
	exits_free(analysis);
}

static void exit_clear(void *analysis)
{
	exits_clear(analysis);
}

static const struct figures_column exit_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},           {FIGURES_PER_VCPU, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"reason", "reason", TABLE_TEXT}},   {0, {"meaning", "that is", TABLE_TEXT}},
	{0, {"count", "exits", TABLE_COUNT}},    {0, {"total", "handled for", TABLE_NS}},
	{0, {"share", "of all", TABLE_PERCENT}}, {0, {"kernel", "in KVM", TABLE_NS}},
	{0, {"vmm", "in VMM", TABLE_NS}},        {0, {"scheduled_out", "scheduled out", TABLE_NS}},
	{0, {"slept", "slept", TABLE_NS}},       {0, {"min", "min", TABLE_NS}},
	{0, {"avg", "avg", TABLE_NS}},           FIGURES_QUANTILES,
	{0, {"torn", "torn", TABLE_COUNT}},
};

static void exit_row(void *analysis, const struct exit_reason *e, const struct figures_view *view,
		     struct table *t)
{
	const struct histogram *h = &e->handling;
	struct exit_name name = exit_name(e->isa, e->reason);
	int64_t total = e->kernel_ns + e->vmm_ns;

	table_row(t);
	table_text(t, model_vm_name(view->model, e->vm));
	if (view->per == FIGURES_PER_VCPU)
		table_count(t, e->vcpu);
	table_text(t, name.text);
	table_text(t, name.meaning);
	table_count(t, h->count);
	table_ns(t, total);
	table_percent(t, figures_percent(total, exits_handling_ns(analysis, e->vm, e->vcpu)));
	table_ns(t, e->kernel_ns);
	table_ns(t, e->vmm_ns);
	table_ns(t, e->scheduled_out_ns);
	table_ns(t, e->slept_ns);
	table_ns(t, figures_clip(h->min_ns));
	table_ns(t, h->count ? total / figures_clip(h->count) : 0);
	figures_quantiles(t, h);
	table_count(t, e->torn);
}

static int exit_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct exit_reason *e;

	for (size_t i = 0; (e = exits_reason(analysis, i)); i++)
		exit_row(analysis, e, view, t);
	return exits_error(analysis);
}

/* ---- faults ---- */

static void *fault_open(struct model *m, const struct figures_options *options)
{
	return page_faults_new(m, options);
}

static void fault_close(void *analysis)
{
	page_faults_free(analysis);
}

static void fault_clear(void *analysis)
{
	page_faults_clear(analysis);
}

static const struct figures_column fault_columns[] = {
	{0, {"vm", "VM", TABLE_TEXT}},
	{FIGURES_PER_VCPU, {"vcpu", "vCPU", TABLE_COUNT}},
	{0, {"range", "2 MiB at", TABLE_TEXT}},
	{0, {"faults", "faults", TABLE_COUNT}},
	{0, {"writes", "writes", TABLE_COUNT}},
	{0, {"fetches", "fetches", TABLE_COUNT}},
	{0, {"mmio", "of devices", TABLE_COUNT}},
	{0, {"retries", "retries", TABLE_COUNT}},
	{0, {"storms", "storms", TABLE_COUNT}},
	{0, {"longest_row", "most in a row", TABLE_COUNT}},
	{0, {"longest_page", "on page", TABLE_TEXT}},
	{0, {"longest", "longest row", TABLE_NS}},
};

static void address(struct table *t, uint64_t gpa)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%" PRIx64, gpa);
	table_text(t, text);
}

static int fault_fill(void *analysis, const struct figures_view *view, struct table *t)
{
	const struct page_faults_range *r;

	for (size_t i = 0; (r = page_faults_range(analysis, i)); i++) {
		if (r->longest_ns < view->than_ns)
			continue;
		table_row(t);
		table_text(t, model_vm_name(view->model, r->vm));
		if (view->per == FIGURES_PER_VCPU)
			table_count(t, r->vcpu);
		address(t, r->gpa);
		table_count(t, r->faults);
		table_count(t, r->writes);
		table_count(t, r->fetches);
		table_count(t, r->mmio);
		table_count(t, r->retries);
		table_count(t, r->storms);
		table_count(t, r->longest_row);
		if (r->longest_row)
			address(t, r->longest_gfn << 12);
		else
			table_none(t);
		table_ns(t, r->longest_ns);
	}
	return 0;
}

const struct figures_kind figures_exits[] = {
	{"exits", "Why vCPUs left the guest, and where the time went",
	 FIGURES_COLUMNS(exit_columns), "total", false, FIGURES_PER_VCPU, 0, true, exit_open,
	 exit_close, exit_clear, NULL, exit_fill},
	{"faults", "Where in the guest's memory KVM handled page faults",
	 FIGURES_COLUMNS(fault_columns), "faults", false, FIGURES_PER_VCPU, 0, true, fault_open,
	 fault_close, fault_clear, NULL, fault_fill},
	{.name = NULL},
};
