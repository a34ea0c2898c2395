/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/tables/halts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/tables/figures.h"
#include "host-collector/util/lru.h"

enum { VCPUS_MAX = 4096 };

struct halts {
	struct analysis_base base;
	struct lru index;
	struct halts_vcpu *vcpus;
};

static struct halts_vcpu *vcpu_get(struct halts *h, uint32_t vm, uint32_t vcpu)
{
	bool fresh;
	uint32_t slot = lru_put(&h->index, (uint64_t)vm << 32 | vcpu, &fresh);
	struct halts_vcpu *v = &h->vcpus[slot];

	if (fresh) {
		histogram_fini(&v->lengths);
		*v = (struct halts_vcpu){.vm = vm, .vcpu = vcpu};
	}
	return v;
}

static int64_t clip(uint64_t ns)
{
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static void woken(struct halts *h, struct halts_vcpu *v, const struct vs_event *e)
{
	int64_t ns = clip(ev_kvm_vcpu_wakeup_halted_ns(e));

	if (ns < h->base.options.than_ns)
		return;
	if (histogram_add(&v->lengths, ev_kvm_vcpu_wakeup_halted_ns(e)))
		h->base.error = -ENOMEM;
	if (!ev_kvm_vcpu_wakeup_slept(e)) {
		v->polled++;
		v->polled_ns += ns;
		return;
	}
	v->slept++;
	v->slept_ns += ns;
	if (v->limit_known)
		v->in_vain_ns += v->limit_ns < ns ? v->limit_ns : ns;
	else
		v->no_limit++;
}

/* The old limit is what held for the halts before. */
static void limit_changed(struct halts_vcpu *v, const struct vs_event *e)
{
	if (!v->limit_known)
		v->in_vain_ns += (int64_t)v->no_limit * (int64_t)ev_kvm_halt_poll_old_ns(e);
	v->limit_known = true;
	v->no_limit = 0;
	v->limit_ns = ev_kvm_halt_poll_new_ns(e);
}

static void instant_take(void *context, const struct host_instant *i)
{
	struct halts *h = context;

	if (!i->of_vcpu)
		return;
	if (i->event.type == VS_EVENT_KVM_WAKEUP)
		woken(h, vcpu_get(h, i->vm, i->vcpu), &i->event);
	else if (i->event.type == VS_EVENT_KVM_HALT_POLL)
		limit_changed(vcpu_get(h, i->vm, i->vcpu), &i->event);
}

static void span_take(void *context, const struct vcpu_span *span)
{
	struct halts_vcpu *v;

	if (span->state != VCPU_GUEST && span->state != VCPU_KVM && span->state != VCPU_VMM)
		return;
	v = vcpu_get(context, span->vm, span->vcpu);
	v->migrations += v->ran && v->ran_on != span->pcpu;
	v->ran = true;
	v->ran_on = span->pcpu;
}

static void halts_free(void *analysis)
{
	struct halts *h = analysis;

	if (!h)
		return;
	for (uint32_t slot = 0; slot < lru_slots(&h->index); slot++)
		histogram_fini(&h->vcpus[slot].lengths);
	lru_fini(&h->index);
	free(h->vcpus);
	free(h);
}

static void *halts_new(struct model *m, const struct figures_options *options)
{
	struct halts *h = analysis_allocate(sizeof(*h), m, options);
	struct model_observer observer = {
		.vcpu_span = span_take,
		.host_types = EVENT_SET(VS_EVENT_KVM_WAKEUP, VS_EVENT_KVM_HALT_POLL),
		.host_instant = instant_take,
		.context = h};

	if (!h)
		return NULL;
	h->vcpus = calloc(VCPUS_MAX, sizeof(*h->vcpus));
	if (!h->vcpus || lru_init(&h->index, VCPUS_MAX) || model_observe(m, &observer)) {
		halts_free(h);
		return NULL;
	}
	return h;
}

static void halts_clear(void *analysis)
{
	struct halts *h = analysis;

	for (uint32_t slot = 0; slot < lru_slots(&h->index); slot++) {
		struct halts_vcpu *v = &h->vcpus[slot];
		struct halts_vcpu kept = {.vm = v->vm,
					  .vcpu = v->vcpu,
					  .limit_known = v->limit_known,
					  .limit_ns = v->limit_ns,
					  .ran = v->ran,
					  .ran_on = v->ran_on};

		histogram_fini(&v->lengths);
		*v = kept;
	}
}

const struct halts_vcpu *halts_vcpu(const struct halts *h, size_t index)
{
	for (uint32_t slot = 0; slot < lru_slots(&h->index); slot++) {
		const struct halts_vcpu *v = &h->vcpus[slot];

		if (lru_used(&h->index, slot) && (v->lengths.count || v->migrations) && !index--)
			return v;
	}
	return NULL;
}

/* ---- table halts ---- */

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
	return 0;
}

static const struct figures_kind tables[] = {
	{"halts", "How long vCPUs halted, and what polling for the next event was worth",
	 FIGURES_COLUMNS(halt_columns), "total", false, FIGURES_PER_VCPU, FIGURES_PER_VCPU, true,
	 halt_fill},
	{.name = NULL},
};

const struct analysis halts_analysis = {
	.name = "halts",
	.new = halts_new,
	.free = halts_free,
	.clear = halts_clear,
	.error = analysis_error,
	.tables = tables,
};
