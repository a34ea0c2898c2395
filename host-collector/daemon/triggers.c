/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/triggers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/duration.h"
#include "host-collector/util/lru.h"

enum { VCPUS_MAX = 1024 };

/* The watched conditions: a vCPU stays in these states without a break. */
static const struct {
	uint32_t states; /* bit per enum vcpu_state */
	enum trigger trigger;
	const char *what;
} conditions[] = {
	{1u << VCPU_BLOCKED, TRIGGER_BLOCKED, "slept in the host"},
	{1u << VCPU_RUNNABLE | 1u << VCPU_THROTTLED, TRIGGER_RUNNABLE, "wanted a pCPU"},
};

enum { N_CONDITIONS = sizeof(conditions) / sizeof(conditions[0]) };

struct vcpu_watch {
	uint32_t vm, vcpu;
	struct {
		bool lasts, fired;
		struct host_ns since, until;
		enum wait_class wait; /* of the longest span so far */
		int64_t longest_ns;
	} condition[N_CONDITIONS];
	int64_t steal_ns, steal_span_ns; /* of the current interval */
	bool stolen;                     /* steal was above the limit in the interval before */
};

struct triggers {
	const struct model *model;
	struct triggers_options options;
	uint64_t limits[TRIGGER_COUNT];
	struct lru index;
	struct vcpu_watch *vcpus; /* VCPUS_MAX */
	size_t n_vcpus;           /* slots used so far */
};

static void __attribute__((format(printf, 4, 5)))
fire(struct triggers *t, enum trigger trigger, uint32_t vm, const char *format, ...)
{
	struct trigger_firing firing = {.trigger = trigger, .vm = vm};
	va_list args;

	va_start(args, format);
	vsnprintf(firing.text, sizeof(firing.text), format, args);
	va_end(args);
	t->options.fired(t->options.context, &firing);
}

static struct vcpu_watch *vcpu_get(struct triggers *t, uint32_t vm, uint32_t vcpu)
{
	bool fresh;
	uint32_t slot = lru_put(&t->index, (uint64_t)vm << 32 | vcpu, &fresh);

	if (fresh)
		t->vcpus[slot] = (struct vcpu_watch){.vm = vm, .vcpu = vcpu};
	if (slot >= t->n_vcpus)
		t->n_vcpus = slot + 1;
	return &t->vcpus[slot];
}

/* ---- conditions of a vCPU ---- */

static bool condition_is_long(const struct triggers *t, size_t i, int64_t lasted_ns)
{
	const uint64_t limit = t->limits[conditions[i].trigger];

	return limit && lasted_ns >= (int64_t)limit;
}

static void condition_report(struct triggers *t, struct vcpu_watch *v, size_t i, int64_t lasted_ns,
			     bool goes_on)
{
	const enum wait_class wait = v->condition[i].wait;

	v->condition[i].fired = true;
	fire(t, conditions[i].trigger, v->vm, "vCPU %u %s for %s%s%s%s", v->vcpu,
	     conditions[i].what, duration_text(lasted_ns).text, goes_on ? ", and goes on" : "",
	     wait != WAIT_NONE ? ": waited for " : "",
	     wait != WAIT_NONE ? wait_class_object(wait) : "");
}

static void condition_end(struct triggers *t, struct vcpu_watch *v, size_t i)
{
	const int64_t lasted_ns = v->condition[i].until.ns - v->condition[i].since.ns;

	if (v->condition[i].lasts && !v->condition[i].fired && condition_is_long(t, i, lasted_ns))
		condition_report(t, v, i, lasted_ns, false);
	memset(&v->condition[i], 0, sizeof(v->condition[i]));
}

static void on_vcpu_span(void *context, const struct vcpu_span *span)
{
	struct triggers *t = context;
	struct vcpu_watch *v = vcpu_get(t, span->vm, span->vcpu);

	for (size_t i = 0; i < N_CONDITIONS; i++) {
		if (!(conditions[i].states >> span->state & 1)) {
			condition_end(t, v, i);
			continue;
		}
		if (!v->condition[i].lasts) {
			v->condition[i].lasts = true;
			v->condition[i].since = span->begin;
		}
		v->condition[i].until = span->end;
		if (span->end.ns - span->begin.ns > v->condition[i].longest_ns) {
			v->condition[i].longest_ns = span->end.ns - span->begin.ns;
			v->condition[i].wait = span->wait_class;
		}
	}
}

/* Checks the conditions that continue. */
static void on_advance(void *context, struct host_ns now)
{
	struct triggers *t = context;

	for (size_t k = 0; k < t->n_vcpus; k++) {
		struct vcpu_watch *v = &t->vcpus[k];
		struct vcpu_span open;

		if (model_vcpu_current(t->model, v->vm, v->vcpu, &open) ||
		    now.ns - open.begin.ns < TRIGGER_PATIENCE_NS)
			continue;
		for (size_t i = 0; i < N_CONDITIONS; i++) {
			const int64_t lasts_ns = now.ns - open.begin.ns;

			if (!(conditions[i].states >> open.state & 1) || v->condition[i].fired ||
			    !condition_is_long(t, i, lasts_ns))
				continue;
			v->condition[i].lasts = true;
			v->condition[i].since = open.begin;
			v->condition[i].wait = open.wait_class;
			condition_report(t, v, i, lasts_ns, true);
		}
	}
}

/* ---- conditions of the time since the last check ---- */

static void interrupt_check(struct triggers *t, const struct activity_row *row)
{
	const uint64_t limit = t->limits[TRIGGER_INTERRUPT];

	if (limit && row->latency_known && row->latency_ns >= (int64_t)limit)
		fire(t, TRIGGER_INTERRUPT, row->vm,
		     "an interrupt of vCPU %u took %s to its handler", row->vcpu,
		     duration_text(row->latency_ns).text);
}

static void steal_check(struct triggers *t, const struct activity_row *row, int64_t span_ns)
{
	struct vcpu_watch *v = vcpu_get(t, row->vm, row->vcpu);
	const uint64_t limit = t->limits[TRIGGER_STEAL];
	uint64_t percent;

	v->steal_ns += row->state_ns[VCPU_RUNNABLE];
	v->steal_span_ns += span_ns;
	if (v->steal_span_ns < TRIGGER_STEAL_NS)
		return;
	percent = (uint64_t)(v->steal_ns * 100 / v->steal_span_ns);
	if (limit && percent >= limit && !v->stolen)
		fire(t, TRIGGER_STEAL, row->vm, "vCPU %u wanted a pCPU in %u %% of the last %s",
		     row->vcpu, (unsigned)percent, duration_text(v->steal_span_ns).text);
	v->stolen = percent >= limit;
	v->steal_ns = v->steal_span_ns = 0;
}

void triggers_activity(struct triggers *t, const struct activity_row *activity, size_t n,
		       int64_t span_ns)
{
	for (size_t i = 0; i < n; i++) {
		interrupt_check(t, &activity[i]);
		steal_check(t, &activity[i], span_ns);
	}
}

/* ---- the guest's log ---- */

void triggers_log(struct triggers *t, uint32_t vm, const char *line)
{
	static const char *const signs[][2] = {
		{"BUG: soft lockup - CPU#", ""},
		{"hard LOCKUP", "cpu"},
		{"rcu", "detected stall"},
		{"rcu", "kthread starved for"},
		{"INFO: task ", " blocked for more than "},
	};

	if (!t->limits[TRIGGER_GUEST_WATCHDOG])
		return;
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		const char *first = strstr(line, signs[i][0]);

		if (!first || !strstr(first, signs[i][1]))
			continue;
		fire(t, TRIGGER_GUEST_WATCHDOG, vm, "the guest's log: %.200s", line);
		return;
	}
}

/* ---- life ---- */

struct triggers *triggers_new(struct model *m, const struct triggers_options *options)
{
	struct model_observer observer = {.vcpu_span = on_vcpu_span, .advance = on_advance};
	struct triggers *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->model = m;
	t->options = *options;
	memcpy(t->limits, options->limits, sizeof(t->limits));
	observer.context = t;
	t->vcpus = calloc(VCPUS_MAX, sizeof(*t->vcpus));
	if (!t->vcpus || lru_init(&t->index, VCPUS_MAX) || model_observe(m, &observer)) {
		triggers_free(t);
		return NULL;
	}
	return t;
}

void triggers_free(struct triggers *t)
{
	if (!t)
		return;
	lru_fini(&t->index);
	free(t->vcpus);
	free(t);
}
