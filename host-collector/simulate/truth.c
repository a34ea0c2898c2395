// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/truth.h"

#include "host-collector/simulate/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/array.h"

/* The report's default threshold, and the share that makes an incident of many pieces. */
static const int64_t threshold_ns = 100000000;
enum { PIECES_SHARE = 4 };
/* What is this much below the threshold nobody need report, and nobody is wrong to: 2 % for the
 * clocks, and the guest's tick of 4 ms, for which a task waits before a fault begins. */
enum { BORDER_PERCENT = 94 };

static const char *const state_names[] = {
#define X(NAME, name) name,
	SIM_STATES(X)
#undef X
};
static const char *const cause_names[] = {
#define X(NAME, name) name,
	SIM_CAUSES(X)
#undef X
};

static const char *const source_names[] = {
#define X(NAME, name) name,
	TRUTH_SOURCES(X)
#undef X
};

void truth_init(struct truth *t, struct engine *e, uint32_t n_cpus)
{
	memset(t, 0, sizeof(*t));
	t->engine = e;
	t->n_cpus = n_cpus;
}

void truth_fini(struct truth *t)
{
	for (size_t i = 0; i < TRUTH_CPUS_MAX; i++) {
		free(t->cpus[i].phases);
		free(t->cpus[i].periods);
		free(t->cpus[i].interrupts);
		free(t->cpus[i].taken);
		free(t->cpus[i].losses);
	}
}

/* Makes room for one more of the CPU's `rows`. Returns false without memory. */
#define GROW(t, c, rows)                                                                           \
	grown((t), ARRAY_RESERVE(&(c)->rows, (c)->n_##rows, &(c)->rows##_capacity, 64))
static bool grown(struct truth *t, int err)
{
	if (err)
		t->engine->error = err;
	return !err;
}

void truth_phase(struct truth *t, uint32_t cpu, enum sim_state state, enum sim_cause cause,
		 int32_t culprit)
{
	struct truth_cpu *c = &t->cpus[cpu];
	struct truth_phase *last = c->n_phases ? &c->phases[c->n_phases - 1] : NULL;

	if (last && last->state == state && last->cause == cause && last->culprit == culprit)
		return;
	if (GROW(t, c, phases))
		c->phases[c->n_phases++] =
			(struct truth_phase){t->engine->now, state, cause, culprit};
}

void truth_clock_step(struct truth *t)
{
	t->stepped = true;
}

void truth_clock_reading(struct truth *t)
{
	if (t->stepped && t->n_steps < TRUTH_STEPS_MAX)
		t->steps[t->n_steps++] = (struct truth_step){t->reading, t->engine->now};
	t->stepped = false;
	t->reading = t->engine->now;
}

void truth_switch(struct truth *t, uint32_t cpu, int32_t pid, const char *comm)
{
	struct truth_cpu *c = &t->cpus[cpu];

	if (GROW(t, c, periods))
		c->periods[c->n_periods++] = (struct truth_period){t->engine->now, pid, comm};
}

void truth_interrupt(struct truth *t, uint32_t cpu, int64_t begin, const char *kind,
		     uint32_t number)
{
	struct truth_cpu *c = &t->cpus[cpu];

	if (t->engine->now - begin < threshold_ns)
		return;
	if (GROW(t, c, interrupts))
		c->interrupts[c->n_interrupts++] =
			(struct truth_interrupt){begin, t->engine->now, kind, number};
}

void truth_handled(struct truth *t, uint32_t cpu, enum truth_source source,
		   struct truth_taken taken)
{
	struct truth_cpu *c = &t->cpus[cpu];

	t->handled[source]++;
	taken.handler = t->engine->now;
	if (GROW(t, c, taken))
		c->taken[c->n_taken++] = taken;
}

void truth_lost(struct truth *t, uint32_t cpu, int64_t begin, uint8_t vector)
{
	struct truth_cpu *c = &t->cpus[cpu];

	if (GROW(t, c, losses))
		c->losses[c->n_losses++] = (struct truth_loss){begin, t->engine->now, vector};
}

/* ---- incidents ---- */

struct summary {
	int64_t begin, end;
	int64_t states[SIM_STATE_COUNT], causes[SIM_CAUSE_COUNT];
	int64_t denied, longest; /* in all; without a break */
	int32_t culprit;
	int64_t culprit_ns;
};

static bool keeps_out(const struct truth_phase *p)
{
	return p->cause != SIM_CAUSE_NONE || p->state == SIM_STATE_KVM || p->state == SIM_STATE_VMM;
}

/* The phase in which `t` lies, 0 if it is before all of them. */
static size_t phase_at(const struct truth_cpu *c, int64_t t)
{
	size_t low = 0, high = c->n_phases;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->phases[middle].t <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : 0;
}

static void summarise(const struct truth_cpu *c, int64_t now, int64_t begin, int64_t end,
		      struct summary *s)
{
	int64_t chain = 0;

	memset(s, 0, sizeof(*s));
	s->begin = begin;
	s->end = end;
	for (size_t i = phase_at(c, begin); i < c->n_phases && c->phases[i].t < end; i++) {
		const struct truth_phase *p = &c->phases[i];
		int64_t from = p->t > begin ? p->t : begin;
		int64_t to = i + 1 < c->n_phases ? c->phases[i + 1].t : now;

		to = to < end ? to : end;
		if (to <= from)
			continue;
		s->states[p->state] += to - from;
		chain = keeps_out(p) ? chain + to - from : 0;
		if (chain > s->longest)
			s->longest = chain;
		if (p->cause == SIM_CAUSE_NONE)
			continue;
		s->causes[p->cause] += to - from;
		s->denied += to - from;
		if (p->culprit && to - from > s->culprit_ns) {
			s->culprit = p->culprit;
			s->culprit_ns = to - from;
		}
	}
}

static bool is_incident(const struct summary *s, int64_t threshold)
{
	return s->longest >= threshold ||
	       (s->denied >= threshold && s->denied * PIECES_SHARE >= s->end - s->begin);
}

static enum sim_cause largest(const struct summary *s, enum sim_cause but)
{
	enum sim_cause best = SIM_CAUSE_NONE;

	for (int i = SIM_CAUSE_NONE + 1; i < SIM_CAUSE_COUNT; i++) {
		if (i != (int)but && s->causes[i] > s->causes[best])
			best = (enum sim_cause)i;
	}
	return best;
}

struct writer {
	const struct truth_vm *vms;
	size_t n_vms;
	const struct truth *truth; /* of the VM that is being written */
	const char *vm_name;
	const struct truth_header *header;
	FILE *to;
	bool any, borderline; /* writes what is just below the threshold, and nothing else */
};

static bool wanted(const struct writer *w, const struct summary *s)
{
	bool is = is_incident(s, threshold_ns);

	return w->borderline ? !is && is_incident(s, threshold_ns * BORDER_PERCENT / 100) : is;
}

static void names_write(FILE *to, const char *field, const char *const *names, const int64_t *ns,
			int from, int n, bool zeros)
{
	bool any = false;

	fprintf(to, ", \"%s\": {", field);
	for (int i = from; i < n; i++) {
		if (!ns[i] && !zeros)
			continue;
		fprintf(to, "%s\"%s\": %" PRId64, any ? ", " : "", names[i], ns[i]);
		any = true;
	}
	fprintf(to, "}");
}

static void incident_write(struct writer *w, uint32_t cpu, const char *kind,
			   const struct truth_period *task, const struct summary *s)
{
	const struct truth_header *h = w->header;
	enum sim_cause first = largest(s, SIM_CAUSE_NONE), second = largest(s, first);

	fprintf(w->to,
		"%s\n  {\"vm\": \"%s\", \"guest_cpu\": %u, \"vcpu\": %u, \"kind\": \"%s\", "
		"\"task\": {\"pid\": %d, \"comm\": \"%s\"}, \"begin_ns\": %" PRIu64
		", \"end_ns\": %" PRIu64 ", \"duration_ns\": %" PRId64 ", \"verdict\": \"%s\"",
		w->any ? "," : "", w->vm_name, cpu, cpu, kind, task->pid, task->comm,
		h->raw0 + (uint64_t)s->begin, h->raw0 + (uint64_t)s->end, s->end - s->begin,
		cause_names[first]);
	if (second != SIM_CAUSE_NONE)
		fprintf(w->to, ", \"runner_up\": \"%s\"", cause_names[second]);
	names_write(w->to, "causes_ns", cause_names, s->causes, 1, SIM_CAUSE_COUNT, false);
	names_write(w->to, "breakdown_ns", state_names, s->states, 0, SIM_STATE_COUNT, true);
	if (s->culprit)
		fprintf(w->to, ", \"culprits\": [{\"side\": \"%s\", \"pid\": %d}]",
			first == SIM_CAUSE_SPIN || first == SIM_CAUSE_STORM ? "guest" : "host",
			s->culprit);
	fprintf(w->to, "}");
	w->any = true;
}

/* A task's stretch, less the long interrupts in it, which are incidents of their own. */
static void task_write(struct writer *w, uint32_t cpu, const struct truth_period *task, int64_t end)
{
	const struct truth_cpu *c = &w->truth->cpus[cpu];
	int64_t begin = task->t, now = w->truth->engine->now;
	struct summary s;

	for (size_t i = 0; i < c->n_interrupts; i++) {
		const struct truth_interrupt *x = &c->interrupts[i];

		if (x->begin < begin || x->end > end)
			continue;
		summarise(c, now, x->begin, x->end, &s);
		if (!w->borderline)
			incident_write(w, cpu, x->kind, task, &s);
		begin = x->end;
	}
	summarise(c, now, begin, end, &s);
	if (wanted(w, &s))
		incident_write(w, cpu, "task", task, &s);
}

/* What the host did to a CPU that had nothing to run: each unbroken piece by itself. */
static void idle_write(struct writer *w, uint32_t cpu, const struct truth_period *task, int64_t end)
{
	const struct truth_cpu *c = &w->truth->cpus[cpu];
	int64_t now = w->truth->engine->now, begin = INT64_MAX;
	struct summary s;
	size_t first = phase_at(c, task->t);

	while (first && keeps_out(&c->phases[first - 1]))
		first--; /* to where the piece that is under way began */
	for (size_t i = first; i <= c->n_phases; i++) {
		bool last = i == c->n_phases;
		int64_t t = last ? now : c->phases[i].t;

		if (t >= end && begin == INT64_MAX)
			break;
		if (!last && keeps_out(&c->phases[i])) {
			begin = begin < t ? begin : t;
			continue;
		}
		if (begin >= task->t && begin < end) {
			summarise(c, now, begin, t, &s);
			if (wanted(w, &s))
				incident_write(w, cpu, "idle", task, &s);
		}
		begin = INT64_MAX;
	}
}

/* A lost interrupt: the handler was denied it, whatever its vCPU did that the host did not. */
static void loss_write(struct writer *w, uint32_t cpu, const struct truth_loss *loss)
{
	const struct truth_period nobody = {.comm = ""};
	struct summary s;

	summarise(&w->truth->cpus[cpu], w->truth->engine->now, loss->begin, loss->end, &s);
	s.causes[SIM_CAUSE_LOST] = s.states[SIM_STATE_GUEST] + s.states[SIM_STATE_HALTED];
	s.longest = loss->end - loss->begin;
	if (wanted(w, &s))
		incident_write(w, cpu,
			       s.states[SIM_STATE_HALTED] * 2 > s.longest ? "idle" : "unknown",
			       &nobody, &s);
}

/* Writes the steps of the guest's clock, as entries of its first CPU. */
static void steps_write(struct writer *w)
{
	static const struct truth_period none = {.comm = ""};
	const struct truth *t = w->truth;

	for (size_t i = 0; !w->borderline && i < t->n_steps; i++) {
		struct summary s;

		summarise(&t->cpus[0], t->engine->now, t->steps[i].begin, t->steps[i].end, &s);
		memset(s.causes, 0, sizeof(s.causes));
		s.causes[SIM_CAUSE_CLOCK] = s.end - s.begin;
		s.culprit = 0;
		incident_write(w, 0, "unknown", &none, &s);
	}
}

static void vm_write(struct writer *w)
{
	const struct truth *t = w->truth;

	steps_write(w);
	for (uint32_t cpu = 0; cpu < t->n_cpus; cpu++) {
		const struct truth_cpu *c = &t->cpus[cpu];

		for (size_t i = 0; i < c->n_periods; i++) {
			int64_t end = i + 1 < c->n_periods ? c->periods[i + 1].t : t->engine->now;

			if (c->periods[i].pid)
				task_write(w, cpu, &c->periods[i], end);
			else
				idle_write(w, cpu, &c->periods[i], end);
		}
		for (size_t i = 0; i < c->n_losses; i++)
			loss_write(w, cpu, &c->losses[i]);
	}
}

static void incidents_write(struct writer *w)
{
	w->any = false;
	for (size_t i = 0; i < w->n_vms; i++) {
		w->truth = w->vms[i].truth;
		w->vm_name = w->vms[i].name;
		vm_write(w);
	}
}

static uint64_t raw_or_none(const struct truth_header *h, int64_t t)
{
	return t < 0 ? 0 : h->raw0 + (uint64_t)t;
}

/* One row an interrupt: vCPU, vector, when its handler began, the first and the last of its accepts
 * that the recording has (0: none), whether it has its handler's entry, how long it was held back,
 * and the VM. */
static void taken_write(struct writer *w, const struct truth_vm *vm)
{
	const struct truth_header *h = w->header;

	for (uint32_t cpu = 0; cpu < vm->truth->n_cpus; cpu++) {
		for (size_t i = 0; i < vm->truth->cpus[cpu].n_taken; i++) {
			const struct truth_taken *x = &vm->truth->cpus[cpu].taken[i];

			fprintf(w->to,
				"%s\n  [%u, %u, %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %s, %" PRId64
				", \"%s\"]",
				w->any ? "," : "", cpu, x->vector, h->raw0 + (uint64_t)x->handler,
				raw_or_none(h, x->accepts[0]), raw_or_none(h, x->accepts[1]),
				x->handler_recorded ? "true" : "false", x->lost_ns, vm->name);
			w->any = true;
		}
	}
}

/* [job, slot, begin, end or null, its issue was delivered, its end was delivered] */
static void jobs_write(const struct truth_header *h, FILE *to)
{
	fprintf(to, ",\n \"jobs\": [");
	for (size_t i = 0; i < h->jobs->n; i++) {
		const struct sim_job *job = &h->jobs->done[i];

		fprintf(to, "%s\n  [%zu, %" PRIu32 ", %" PRIu64 ", ", i ? "," : "", i, job->slot,
			h->raw0 + (uint64_t)job->begin);
		if (job->end)
			fprintf(to, "%" PRIu64, h->raw0 + (uint64_t)job->end);
		else
			fputs("null", to);
		fprintf(to, ", %s, %s]", job->issue_delivered ? "true" : "false",
			job->done_delivered ? "true" : "false");
	}
	fprintf(to, "\n ]");
}

static void interrupts_write(struct writer *w)
{
	int64_t handled[TRUTH_SOURCE_COUNT] = {0};

	for (size_t i = 0; i < w->n_vms; i++) {
		for (int source = 0; source < TRUTH_SOURCE_COUNT; source++)
			handled[source] += w->vms[i].truth->handled[source];
	}
	names_write(w->to, "interrupts", source_names, handled, 0, TRUTH_SOURCE_COUNT, true);
	fprintf(w->to, ",\n \"interrupts_taken\": [");
	w->any = false;
	for (size_t i = 0; i < w->n_vms; i++)
		taken_write(w, &w->vms[i]);
	fprintf(w->to, "\n ]");
}

int truth_write(const struct truth_vm *vms, size_t n, const struct truth_header *h, FILE *to)
{
	struct writer w = {.vms = vms, .n_vms = n, .header = h, .to = to};

	fprintf(to,
		"{\"schema\": \"vcpuscope.truth/1\", \"simulated\": true, \"scenario\": \"%s\",\n"
		" \"about\": \"%s\", \"seed\": %" PRIu64 ", \"loss\": %g, \"kvm_events\": %s,\n"
		" \"threshold_ns\": %" PRId64 ", \"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64
		",\n \"incidents\": [",
		h->scenario, h->about, h->seed, h->loss, h->kvm_events ? "true" : "false",
		threshold_ns, h->raw0, h->raw0 + (uint64_t)vms[0].truth->engine->now);
	incidents_write(&w);
	fprintf(to, "\n ],\n \"borderline\": [");
	w.borderline = true;
	incidents_write(&w);
	fprintf(to, "\n ]");
	if (h->interrupts)
		interrupts_write(&w);
	if (h->jobs)
		jobs_write(h, to);
	fprintf(to, "\n}\n");
	return ferror(to) ? -EIO : 0;
}
