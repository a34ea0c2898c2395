/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/tables/page_faults.h"

#include <inttypes.h>
#include <stdlib.h>

#include "host-collector/tables/figures.h"
#include "host-collector/util/lru.h"

enum { RANGES_MAX = 16384, VCPUS_MAX = 4096, PAGE_BITS = 12 };

/* Bits of the error code as KVM shows it on both VMX and SVM (PFERR_* in kvm_host.h). */
#define FAULT_WRITE    (1u << 1)
#define FAULT_RESERVED (1u << 3) /* KVM's mark of a device's registers */
#define FAULT_FETCH    (1u << 4)

/* The row of faults that a vCPU is in. */
struct row {
	uint64_t gfn, error;
	uint64_t length; /* 0: none */
	bool mmio;
	struct host_ns begin, last;
};

struct page_faults {
	struct analysis_base base;
	struct lru index, row_index;
	struct page_faults_range *ranges;
	struct row *rows;
};

static struct page_faults_range *range_get(struct page_faults *f, const struct host_instant *i,
					   uint64_t gpa)
{
	uint64_t number = gpa >> PAGE_FAULTS_RANGE_BITS;
	uint32_t vcpu = f->base.options.per_vcpu ? i->vcpu : 0;
	/* Mixed: an address may need 31 bits and more beside the VM and its vCPU. */
	uint64_t key = ((uint64_t)i->vm << 32 | vcpu) * 0x9e3779b97f4a7c15 ^ number;
	struct page_faults_range *r;
	bool fresh;

	r = &f->ranges[lru_put(&f->index, key, &fresh)];
	if (fresh)
		*r = (struct page_faults_range){
			.vm = i->vm, .vcpu = vcpu, .gpa = number << PAGE_FAULTS_RANGE_BITS};
	return r;
}

static struct row *row_get(struct page_faults *f, const struct host_instant *i)
{
	bool fresh;
	struct row *row = &f->rows[lru_put(&f->row_index, (uint64_t)i->vm << 32 | i->vcpu, &fresh)];

	if (fresh)
		*row = (struct row){.length = 0};
	return row;
}

static void row_count(struct page_faults_range *r, const struct row *row)
{
	int64_t ns = row->last.ns - row->begin.ns;

	r->storms += row->length == PAGE_FAULTS_STORM;
	if (row->length > r->longest_row) {
		r->longest_row = row->length;
		r->longest_gfn = row->gfn;
	}
	if (ns > r->longest_ns)
		r->longest_ns = ns;
}

static void fault_take(struct page_faults *f, const struct host_instant *i)
{
	uint64_t gfn = ev_kvm_page_fault_address(&i->event) >> PAGE_BITS;
	uint64_t error = ev_kvm_page_fault_error_code(&i->event);
	struct page_faults_range *r = range_get(f, i, ev_kvm_page_fault_address(&i->event));
	struct row *row = row_get(f, i);
	bool again = row->length && !row->mmio && row->gfn == gfn && row->error == error &&
		     i->t.ns - row->last.ns <= PAGE_FAULTS_ROW_NS;

	if (!again)
		*row = (struct row){
			.gfn = gfn, .error = error, .mmio = error & FAULT_RESERVED, .begin = i->t};
	row->last = i->t;
	row->length++;
	r->faults++;
	r->retries += again;
	r->writes += (error & FAULT_WRITE) != 0;
	r->fetches += (error & FAULT_FETCH) != 0;
	r->mmio += row->mmio;
	if (!row->mmio)
		row_count(r, row);
}

/* The fault before was one on a device's registers, which KVM learns there and then. */
static void mmio_take(struct page_faults *f, const struct host_instant *i)
{
	const uint64_t gpa = ev_kvm_mmio_address(&i->event);
	struct row *row = row_get(f, i);

	if (!row->length || row->mmio || row->gfn != gpa >> PAGE_BITS)
		return;
	row->mmio = true;
	range_get(f, i, gpa)->mmio++;
}

static void instant_take(void *context, const struct host_instant *i)
{
	if (!i->of_vcpu)
		return;
	if (i->event.type == VS_EVENT_KVM_PAGE_FAULT)
		fault_take(context, i);
	else if (i->event.type == VS_EVENT_KVM_MMIO)
		mmio_take(context, i);
}

static void page_faults_free(void *analysis)
{
	struct page_faults *f = analysis;

	if (!f)
		return;
	lru_fini(&f->index);
	lru_fini(&f->row_index);
	free(f->ranges);
	free(f->rows);
	free(f);
}

static void *page_faults_new(struct model *m, const struct figures_options *options)
{
	struct page_faults *f = analysis_allocate(sizeof(*f), m, options);
	struct model_observer observer = {
		.host_instant = instant_take,
		.host_types = EVENT_SET(VS_EVENT_KVM_PAGE_FAULT, VS_EVENT_KVM_MMIO),
		.context = f};

	if (!f)
		return NULL;
	f->ranges = calloc(RANGES_MAX, sizeof(*f->ranges));
	f->rows = calloc(VCPUS_MAX, sizeof(*f->rows));
	if (!f->ranges || !f->rows || lru_init(&f->index, RANGES_MAX) ||
	    lru_init(&f->row_index, VCPUS_MAX) || model_observe(m, &observer)) {
		page_faults_free(f);
		return NULL;
	}
	return f;
}

static void page_faults_clear(void *analysis)
{
	struct page_faults *f = analysis;

	lru_clear(&f->index);
}

const struct page_faults_range *page_faults_range(const struct page_faults *f, size_t index)
{
	for (uint32_t slot = 0; slot < lru_slots(&f->index); slot++) {
		if (lru_used(&f->index, slot) && !index--)
			return &f->ranges[slot];
	}
	return NULL;
}

/* ---- table faults ---- */

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

static const struct figures_kind tables[] = {
	{"faults", "Where in the guest's memory KVM handled page faults",
	 FIGURES_COLUMNS(fault_columns), "faults", false, FIGURES_PER_VCPU, 0, true, fault_fill},
	{.name = NULL},
};

const struct analysis page_faults_analysis = {
	.name = "page_faults",
	.new = page_faults_new,
	.free = page_faults_free,
	.clear = page_faults_clear,
	.tables = tables,
};
