/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/builder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/stall/coverage.h"
#include "host-collector/analyze/stall/stall.h"
#include "host-collector/analyze/stall/state_times.h"
#include "host-collector/analyze/stall/verdict.h"
#include "host-collector/analyze/stall/watchdog.h"
#include "proto/array.h"

enum { ONGOING_MAX = 64 };

struct report_builder {
	struct model *model;
	struct report_options options;
	struct stall_detector *stalls;
	struct state_times *times;
	struct coverage *coverage;
	struct stall_facts *ongoing; /* ONGOING_MAX */
	struct report *report;
	size_t incidents_capacity, watchdogs_capacity;
	struct narrow window; /* only the time */
	int err;              /* -ENOMEM after something could not be kept */
};

static void dmesg_times(const struct report_builder *b, struct incident *incident)
{
	const struct report_options *o = &b->options;

	struct dmesg_time begin, end;

	incident->dmesg_known =
		o->dmesg && o->dmesg(o->context, incident->vm, incident->begin, &begin) &&
		o->dmesg(o->context, incident->vm, incident->end, &end) && begin.boot == end.boot;
	if (!incident->dmesg_known)
		return;
	incident->boot = begin.boot;
	incident->begin_dmesg_ns = begin.ns;
	incident->end_dmesg_ns = end.ns;
	incident->dmesg_err_ns = begin.err_ns > end.err_ns ? begin.err_ns : end.err_ns;
}

/* Keeps a copy of a stack that an evidence names. Without memory the evidence stays without stack.
 */
static void stack_keep(struct report_builder *b, struct report *r, uint32_t id)
{
	const struct stack *stack = model_stack_of(b->model, id);

	if (!stack || report_stack_find(r, id) || r->n_stacks == REPORT_STACKS_MAX)
		return;
	if (!r->stacks)
		r->stacks = calloc(REPORT_STACKS_MAX, sizeof(struct stack *));
	if (r->stacks)
		r->stacks[r->n_stacks] = stack_dup(stack);
	if (r->stacks && r->stacks[r->n_stacks])
		r->n_stacks++;
	else
		b->err = -ENOMEM;
}

static void stacks_keep(struct report_builder *b, struct report *r, const struct incident *i)
{
	for (size_t k = 0; k < i->n_evidence; k++) {
		stack_keep(b, r, i->evidence[k].waiter_stack);
		stack_keep(b, r, i->evidence[k].waker_stack);
	}
}

static void emit_live(struct report_builder *b, struct incident *incident)
{
	struct report one;

	if (b->options.prepare)
		b->options.prepare(b->options.context);
	one = *b->report;
	one.n_incidents = 1;
	one.incidents = incident;
	one.n_watchdogs = 0;
	one.watchdogs = NULL;
	one.n_stacks = 0;
	one.stacks = NULL;
	one.begin = model_begin(b->model);
	one.end = model_now(b->model);
	stacks_keep(b, &one, incident);
	b->options.incident(b->options.context, &one);
	for (size_t i = 0; i < one.n_stacks; i++)
		free(one.stacks[i]);
	free(one.stacks);
}

static void found(void *context, const struct stall_facts *facts)
{
	struct report_builder *b = context;
	struct report *r = b->report;
	struct incident incident;

	verdict_judge(facts, b->model, &incident);
	incident_verify(&incident);
	dmesg_times(b, &incident);
	if (b->options.evidence && b->options.incident)
		b->options.evidence(b->options.evidence_context, &incident);
	if (b->options.noticed)
		b->options.noticed(b->options.noticed_context, &incident);
	if (b->options.incident) {
		if (!incident.healthy)
			coverage_stall(b->coverage, incident.vm, incident.vcpu);
		emit_live(b, &incident);
		return;
	}
	if (r->n_incidents == REPORT_INCIDENTS_MAX) {
		r->dropped_incidents++;
		return;
	}
	if (ARRAY_RESERVE(&r->incidents, r->n_incidents, &b->incidents_capacity, 16)) {
		r->dropped_incidents++;
		b->err = -ENOMEM;
		return;
	}
	r->incidents[r->n_incidents++] = incident;
	stacks_keep(b, r, &incident);
}

struct report_builder *report_builder_new(struct model *m, const struct report_options *options)
{
	struct report_builder *b = calloc(1, sizeof(*b));
	struct stall_options stall = {.than_ns = options->than_ns, .all = options->all};

	if (!b)
		return NULL;
	b->model = m;
	b->options = *options;
	b->report = calloc(1, sizeof(*b->report));
	b->ongoing = calloc(ONGOING_MAX, sizeof(*b->ongoing));
	b->stalls = b->report && b->ongoing ? stall_new(m, &stall, found, b) : NULL;
	if (options->window)
		b->window = *options->window;
	if (b->window.cut && model_observe_within(m, b->window.from, b->window.until, NULL, NULL)) {
		report_builder_free(b);
		return NULL;
	}
	if (b->stalls && !options->incidents_only) {
		b->times = state_times_new(m);
		b->coverage = coverage_new(m, options->than_ns,
					   b->window.cut ? b->window.from : (struct host_ns){0});
	}
	model_observe_always(m);
	if (!b->stalls || (!options->incidents_only && (!b->times || !b->coverage))) {
		report_builder_free(b);
		return NULL;
	}
	b->report->threshold_ns = options->than_ns;
	return b;
}

void report_builder_free(struct report_builder *b)
{
	if (!b)
		return;
	stall_free(b->stalls);
	state_times_free(b->times);
	coverage_free(b->coverage);
	report_free(b->report);
	free(b->ongoing);
	free(b);
}

struct chains *report_builder_chains(const struct report_builder *b)
{
	return stall_chains(b->stalls);
}

int report_builder_clock(struct report_builder *b, const struct report_clock *clock)
{
	struct report *r = b->report;
	char *name = strdup(clock->vm_name ? clock->vm_name : "");
	struct report_clock *all;
	size_t i = 0;

	while (i < r->n_clocks && r->clocks[i].vm != clock->vm)
		i++;
	all = name && i == r->n_clocks ? realloc(r->clocks, (i + 1) * sizeof(*all)) : r->clocks;
	if (!name || !all) {
		free(name);
		return -ENOMEM;
	}
	r->clocks = all;
	if (i == r->n_clocks)
		r->n_clocks++;
	else
		free((char *)all[i].vm_name);
	all[i] = *clock;
	all[i].vm_name = name;
	return 0;
}

int report_builder_loss(struct report_builder *b, const struct report_loss *loss)
{
	struct report *r = b->report;
	char *name = strdup(loss->name ? loss->name : "");
	struct report_loss *all;
	size_t i = 0;

	while (i < r->n_losses && r->losses[i].source != loss->source)
		i++;
	all = name && i == r->n_losses ? realloc(r->losses, (i + 1) * sizeof(*all)) : r->losses;
	if (!name || !all) {
		free(name);
		return -ENOMEM;
	}
	r->losses = all;
	if (i == r->n_losses)
		r->n_losses++;
	else
		free((char *)all[i].name);
	all[i] = *loss;
	all[i].name = name;
	return 0;
}

int report_builder_log(struct report_builder *b, uint32_t vm, uint32_t boot, uint64_t dmesg_us,
		       const char *text)
{
	struct report *r = b->report;
	struct report_watchdog line;

	if (!watchdog_parse(text, &line))
		return 0;
	if (ARRAY_RESERVE(&r->watchdogs, r->n_watchdogs, &b->watchdogs_capacity, 16))
		return -ENOMEM;
	line.vm = vm;
	line.boot = boot;
	line.dmesg_us = dmesg_us;
	r->watchdogs[r->n_watchdogs++] = line;
	return 0;
}

void report_builder_origin(struct report_builder *b, bool simulated, bool imported, bool cut)
{
	b->report->imported = imported;
	b->report->simulated = simulated;
	b->report->cut = cut;
}

void report_builder_wall(struct report_builder *b, int64_t wall_offset_ns)
{
	b->report->wall_known = true;
	b->report->wall_offset_ns = wall_offset_ns;
}

int report_builder_wall_step(struct report_builder *b, const struct report_wall_step *step)
{
	struct report *r = b->report;
	struct report_wall_step *all =
		reallocarray(r->wall_steps, r->n_wall_steps + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	r->wall_steps = all;
	all[r->n_wall_steps++] = *step;
	return 0;
}

int report_builder_reboot(struct report_builder *b, const struct report_reboot *reboot)
{
	struct report *r = b->report;
	struct report_reboot *all = reallocarray(r->reboots, r->n_reboots + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	r->reboots = all;
	all[r->n_reboots++] = *reboot;
	return 0;
}

void report_builder_notes_clear(struct report_builder *b)
{
	b->report->n_wall_steps = b->report->n_reboots = 0;
	b->report->n_watchdogs = 0;
}

size_t report_builder_ongoing(struct report_builder *b, struct incident *out, size_t max)
{
	size_t n = stall_ongoing(b->stalls, b->ongoing, max < ONGOING_MAX ? max : ONGOING_MAX);

	for (size_t i = 0; i < n; i++) {
		verdict_judge(&b->ongoing[i], b->model, &out[i]);
		incident_verify(&out[i]);
		dmesg_times(b, &out[i]);
	}
	return n;
}

/*
 * Removes the incidents before the host's capture began. The agent sends events that it kept from
 * before the recording. They are context if the host was captured; otherwise they are all there is.
 */
static void before_host_remove(struct report_builder *b)
{
	struct report *r = b->report;
	size_t kept = 0;

	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *incident = &r->incidents[i];

		if (incident->missing & 1u << MISSING_HOST_EVENTS &&
		    model_data_of(b->model, incident->vm).host_events)
			continue;
		r->incidents[kept++] = *incident;
	}
	r->n_incidents = kept;
}

static int by_begin(const void *a, const void *b)
{
	const struct incident *x = a, *y = b;

	if (x->begin.ns != y->begin.ns)
		return x->begin.ns < y->begin.ns ? -1 : 1;
	if (x->vm != y->vm)
		return x->vm < y->vm ? -1 : 1;
	return (int)x->guest_cpu - (int)y->guest_cpu;
}

/* Adds a clock entry for every VM of the model, also for those without a clock. */
static int name_vms(struct report_builder *b)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n = model_vms(b->model, vms, MODEL_VMS_MAX);
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		struct report_clock none = {
			.vm = vms[i], .vm_name = model_vm_name(b->model, vms[i]), .method = "none"};
		size_t k = 0;

		while (k < b->report->n_clocks && b->report->clocks[k].vm != vms[i])
			k++;
		if (k == b->report->n_clocks)
			err = report_builder_clock(b, &none);
	}
	return err;
}

/* Removes incidents that were joined to the host's events before the clock turned out to be wrong.
 */
static void unproven_remove(struct report *r, const struct report_clock *c)
{
	for (size_t n = 0; n < r->n_incidents; n++) {
		struct incident *i = &r->incidents[n];

		if (i->vm != c->vm)
			continue;
		i->missing |= 1u << MISSING_CLOCK_MAP;
		if (i->confidence == CONFIDENCE_DECIDED)
			i->confidence = CONFIDENCE_LIKELY;
		if (!i->healthy && (i->kind == GUEST_CPU_TASK || i->kind == GUEST_CPU_HARDIRQ ||
				    i->kind == GUEST_CPU_SOFTIRQ))
			verdict_unjoin(i);
	}
}

static void incidents_number(struct report *r)
{
	if (r->n_incidents)
		qsort(r->incidents, r->n_incidents, sizeof(*r->incidents), by_begin);
	for (size_t i = 0; i < r->n_incidents; i++)
		r->incidents[i].ordinal = (uint32_t)i + 1;
}

/* Removes incidents outside the window. The others are not cut. */
static void outside_remove(struct report *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		if (x->end.ns > r->from.ns && x->begin.ns < r->until.ns)
			r->incidents[kept++] = *x;
	}
	r->n_incidents = kept;
}

/* Removes log lines about stalls that are not in the list. */
static void unjoined_remove(struct report *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n_watchdogs; i++) {
		if (r->watchdogs[i].incident >= 0)
			r->watchdogs[kept++] = r->watchdogs[i];
	}
	r->n_watchdogs = kept;
}

struct report *report_builder_finish(struct report_builder *b)
{
	struct report *r = b->report;

	stall_finish(b->stalls);
	r->begin = model_begin(b->model);
	r->end = model_now(b->model);
	r->windowed = b->window.cut;
	r->from = narrow_begin(&b->window, b->model);
	r->until = narrow_end(&b->window, b->model);
	if (stall_dropped(b->stalls) || name_vms(b) || b->err ||
	    (b->times && state_times_give(b->times, r)))
		return NULL;
	if (!b->options.all)
		before_host_remove(b);
	incidents_number(r);
	if (b->window.cut)
		outside_remove(r);
	for (size_t i = 0; b->options.evidence && i < r->n_incidents; i++)
		b->options.evidence(b->options.evidence_context, &r->incidents[i]);
	if (b->coverage && coverage_give(b->coverage, b->options.needed_percent, r))
		return NULL;
	for (size_t i = 0; i < r->n_clocks; i++) {
		if (r->clocks[i].untrusted)
			unproven_remove(r, &r->clocks[i]);
	}
	watchdog_join(r);
	if (b->window.cut)
		unjoined_remove(r);
	b->report = NULL;
	return r;
}
