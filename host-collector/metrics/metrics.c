/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/metrics/metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/exit_name.h"
#include "host-collector/tables/exits.h"

struct stalls { /* of one VM */
	uint32_t vm;
	uint64_t n[VERDICT_COUNT];
	int64_t ns[VERDICT_COUNT];
};

struct metrics {
	const struct model *model;
	struct analyses analyses;
	struct run_delay *delay; /* these two belong to `analyses` */
	struct exits *exits;
	struct chains *chains;
	struct stalls stalls[MODEL_VMS_MAX];
	size_t n_stalls;
};

struct metrics *metrics_new(struct model *m, struct chains *joined)
{
	const struct chain_options chains = {.merge_vcpus = true};
	struct metrics *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->model = m;
	x->delay = analyses_start(&x->analyses, &run_delay_analysis, m, NULL);
	x->exits = analyses_start(&x->analyses, &exits_analysis, m, NULL);
	x->chains = joined ? chains_share(joined, &chains) : chains_new(m, &chains);
	if (x->delay && x->exits && x->chains)
		return x;
	metrics_free(x);
	return NULL;
}

void metrics_free(struct metrics *x)
{
	if (!x)
		return;
	analyses_fini(&x->analyses);
	chains_free(x->chains);
	free(x);
}

void metrics_finish(struct metrics *x)
{
	analyses_finish(&x->analyses);
	chains_finish(x->chains);
}

void metrics_incident(struct metrics *x, const struct incident *incident)
{
	size_t i = 0;

	if (incident->healthy)
		return;
	while (i < x->n_stalls && x->stalls[i].vm != incident->vm)
		i++;
	if (i == MODEL_VMS_MAX)
		return;
	if (i == x->n_stalls)
		x->stalls[x->n_stalls++] = (struct stalls){.vm = incident->vm};
	x->stalls[i].n[incident->verdict]++;
	x->stalls[i].ns[incident->verdict] += incident->end.ns - incident->begin.ns;
}

static int delays_sum(const struct metrics *x, struct metrics_vm *out)
{
	const struct run_delay_vcpu *v;
	int err = 0;

	for (size_t i = 0; !err && (v = run_delay_vcpu(x->delay, i)); i++) {
		if (v->vm != out->vm)
			continue;
		for (int s = 0; s < VCPU_STATE_COUNT; s++)
			out->state_ns[s] += v->state_ns[s];
		for (int c = 0; c < RUN_DELAY_CAUSES && !err; c++)
			err = histogram_merge(&out->delays[c], &v->waits[c]);
	}
	return err;
}

static struct metrics_reason *reason_get(struct metrics_vm *vm, const char *name)
{
	struct metrics_reason *r = &vm->reasons[vm->n_reasons];

	for (size_t i = 0; i < vm->n_reasons; i++) {
		if (!strcmp(vm->reasons[i].name, name))
			return &vm->reasons[i];
	}
	if (vm->n_reasons > METRICS_REASONS)
		return &vm->reasons[METRICS_REASONS];
	snprintf(r->name, sizeof(r->name), "%s", vm->n_reasons == METRICS_REASONS ? "other" : name);
	vm->n_reasons++;
	return r;
}

static int exits_sum(const struct metrics *x, struct metrics_vm *out)
{
	const struct exit_reason *r;
	int err = 0;

	for (size_t i = 0; !err && (r = exits_reason(x->exits, i)); i++) {
		struct metrics_reason *to;

		if (r->vm != out->vm)
			continue;
		to = reason_get(out, exit_name(r->isa, r->reason).text);
		to->exits += r->handling.count;
		to->handling_ns += r->kernel_ns + r->vmm_ns;
		err = histogram_merge(&out->exits, &r->handling);
	}
	return err;
}

static int interrupts_sum(const struct metrics *x, struct metrics_vm *out)
{
	const struct chain_group *g;
	int err = 0;

	for (size_t i = 0; !err && (g = chains_group(x->chains, i)); i++) {
		if (g->vm != out->vm)
			continue;
		out->interrupts_late += g->late;
		out->interrupts_lost += g->lost;
		err = histogram_merge(&out->interrupts[g->source], &g->stages[CHAIN_STAGE_LATENCY]);
		for (int stage = 0; stage < CHAIN_STAGE_COUNT && !err; stage++)
			err = histogram_merge(&out->stages[stage], &g->stages[stage]);
	}
	return err;
}

int metrics_vm_add(struct metrics_vm *to, const struct metrics_vm *from)
{
	int err = 0;

	to->vcpus += from->vcpus;
	to->interrupts_late += from->interrupts_late;
	to->interrupts_lost += from->interrupts_lost;
	for (int s = 0; s < VCPU_STATE_COUNT; s++)
		to->state_ns[s] += from->state_ns[s];
	for (int v = 0; v < VERDICT_COUNT; v++) {
		to->incidents[v] += from->incidents[v];
		to->incident_ns[v] += from->incident_ns[v];
	}
	for (size_t i = 0; i < from->n_reasons; i++) {
		struct metrics_reason *r = reason_get(to, from->reasons[i].name);

		r->exits += from->reasons[i].exits;
		r->handling_ns += from->reasons[i].handling_ns;
	}
	for (int c = 0; c < RUN_DELAY_CAUSES && !err; c++)
		err = histogram_merge(&to->delays[c], &from->delays[c]);
	if (!err)
		err = histogram_merge(&to->exits, &from->exits);
	for (int s = 0; s < CHAIN_SOURCE_COUNT && !err; s++)
		err = histogram_merge(&to->interrupts[s], &from->interrupts[s]);
	for (int s = 0; s < CHAIN_STAGE_COUNT && !err; s++)
		err = histogram_merge(&to->stages[s], &from->stages[s]);
	return err;
}

int metrics_vm_get(const struct metrics *x, size_t index, struct metrics_vm *out)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n = model_vms(x->model, vms, MODEL_VMS_MAX);
	int err;

	*out = (struct metrics_vm){0};
	if (index >= n)
		return -ENOENT;
	out->vm = vms[index];
	out->name = model_vm_name(x->model, out->vm);
	out->vcpus = (uint32_t)model_vcpus(x->model, out->vm, NULL, 0);
	err = analyses_error(&x->analyses);
	if (!err)
		err = chains_error(x->chains);
	if (!err)
		err = delays_sum(x, out);
	if (!err)
		err = exits_sum(x, out);
	if (!err)
		err = interrupts_sum(x, out);
	for (size_t i = 0; i < x->n_stalls; i++) {
		if (x->stalls[i].vm != out->vm)
			continue;
		memcpy(out->incidents, x->stalls[i].n, sizeof(out->incidents));
		memcpy(out->incident_ns, x->stalls[i].ns, sizeof(out->incident_ns));
	}
	return err;
}

void metrics_vm_fini(struct metrics_vm *vm)
{
	for (int c = 0; c < RUN_DELAY_CAUSES; c++)
		histogram_fini(&vm->delays[c]);
	histogram_fini(&vm->exits);
	for (int s = 0; s < CHAIN_SOURCE_COUNT; s++)
		histogram_fini(&vm->interrupts[s]);
	for (int s = 0; s < CHAIN_STAGE_COUNT; s++)
		histogram_fini(&vm->stages[s]);
}
