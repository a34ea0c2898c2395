/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/describe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void describe(char *out, size_t out_bytes, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(out, out_bytes, format, args);
	va_end(args);
}

/* Adds the other waiters. n_waiters counts all. */
static void more_add(unsigned n_waiters, struct finding *out)
{
	if (n_waiters == 2)
		finding_add(out, REPORT_DENIED_MAX,
			    &(struct finding){.kind = FINDING_DENIED_ONE_MORE});
	else if (n_waiters > 2)
		finding_add(out, REPORT_DENIED_MAX,
			    &(struct finding){.kind = FINDING_DENIED_MORE, .n = {n_waiters - 1}});
}

void describe_denied(const struct stall_facts *f, const struct model *m, struct finding *out)
{
	int64_t host = facts_denied_by_host(f);
	struct finding_task task = finding_task(m, f->vm, f->pid);
	struct finding x = {.kind = FINDING_DENIED_TICKS,
			    .ns = {f->tick_gap_ns, f->tick_interval_ns}};

	if (!f->denied)
		x = (struct finding){.kind = FINDING_DENIED_NOTHING};
	else if (f->lost.alone)
		x = (struct finding){.kind = FINDING_DENIED_HANDLER, .n = {f->lost.vector}};
	else if (f->clock_step_ns)
		x = (struct finding){.kind = FINDING_DENIED_CLOCK_SET};
	else if (f->waiter_ns >= f->than_ns)
		x = (struct finding){.kind = FINDING_DENIED_READY_TASK,
				     .task = {finding_task(m, f->vm, f->waiter_pid)},
				     .ns = {f->waiter_ns}};
	else if (f->late.ns)
		x = (struct finding){.kind = FINDING_DENIED_HANDLER, .n = {f->late.vector}};
	else if (facts_is_interrupt(f) && f->pid)
		x = (struct finding){.kind = FINDING_DENIED_INTERRUPTED, .task = {task}};
	else if (f->longest_chain_ns >= f->than_ns && host < f->longest_chain_ns * 5 / 4)
		x = (struct finding){.kind = FINDING_DENIED_BY_HOST, .ns = {f->longest_chain_ns}};
	else if (f->n_pieces)
		x = (struct finding){
			.kind = FINDING_DENIED_IN_PIECES, .ns = {host}, .n = {f->n_pieces}};
	else if (host >= f->than_ns)
		x = (struct finding){.kind = FINDING_DENIED_IN_ALL, .ns = {host}};
	else if (!f->waits.coincidence && f->waits.lock_ns + f->waits.call_ns >= f->than_ns)
		x = (struct finding){.kind = FINDING_DENIED_BY_OTHER_CPU, .task = {task}};
	else if (facts_is_interrupt(f))
		x = (struct finding){.kind = FINDING_DENIED_ALL_ELSE};
	else if (f->tick_gap_ns < f->than_ns)
		x = (struct finding){
			.kind = FINDING_DENIED_BY_INTERRUPTS, .task = {task}, .ns = {f->irq_ns}};
	finding_add(out, REPORT_DENIED_MAX, &x);
	if (x.kind == FINDING_DENIED_READY_TASK)
		more_add(f->n_waiters, out);
}

static struct finding stopped(const struct vcpu_span *s, const struct model *m)
{
	struct finding x = {.kind = FINDING_SEEN_PAUSE};

	if (s->signal_number) {
		x = (struct finding){.kind = FINDING_SEEN_STOP_SIGNAL,
				     .n = {s->signal_number},
				     .task = {finding_task(m, VS_SOURCE_HOST, s->signal_pid)}};
	} else if (s->wait_class == WAIT_FREEZER || (s->task_state & VS_TASK_FROZEN)) {
		x.kind = FINDING_SEEN_FROZEN;
	} else if (s->task_state & VS_TASK_TRACED && s->waker_pid) {
		x.kind = FINDING_SEEN_TRACER;
		x.task[0] = finding_task(m, VS_SOURCE_HOST, s->waker_pid);
	} else if (s->task_state & VS_TASK_TRACED) {
		x.kind = FINDING_SEEN_DEBUGGER;
	} else if (s->task_state & VS_TASK_STOPPED) {
		x.kind = FINDING_SEEN_EARLIER_SIGNAL;
	} else if (s->migrates) {
		x.kind = FINDING_SEEN_MIGRATION;
	}
	return x;
}

static struct finding runnable(const struct vcpu_span *s, const struct model *m)
{
	int64_t ns = s->end.ns - s->begin.ns;
	int64_t busy_ns = s->pcpu_busy_ns < ns ? s->pcpu_busy_ns : ns;
	int64_t holder_ns = s->holder_ns < ns ? s->holder_ns : ns;
	struct finding x = {.kind = FINDING_SEEN_PCPU_WAIT, .n = {s->pcpu}};

	if (s->holder_ns > s->pcpu_idle_ns) {
		x.kind = FINDING_SEEN_PCPU_HELD;
		x.ns[0] = holder_ns;
		x.task[0] = finding_task(m, VS_SOURCE_HOST, s->holder_pid);
		if (s->holder_ns < s->pcpu_busy_ns / 2) {
			x.kind = FINDING_SEEN_PCPU_SHARED;
			x.ns[1] = busy_ns;
		}
	} else if (s->pcpu_idle_ns) {
		x.kind = FINDING_SEEN_PCPU_IDLE;
	}
	return x;
}

static struct finding blocked(const struct vcpu_span *s, const struct model *m)
{
	struct finding x = {.kind = FINDING_SEEN_SLEEP, .n = {s->wait_class}};

	if (s->waker_pid) {
		x.kind = FINDING_SEEN_SLEEP_WOKEN;
		x.task[0] = finding_task(m, VS_SOURCE_HOST, s->waker_pid);
	}
	return x;
}

/* Returns what the span shows; kind NONE if nothing but its state. */
static struct finding span_finding(const struct vcpu_span *s, const struct model *m)
{
	switch (s->state) {
	case VCPU_KVM:
		return (struct finding){.kind = FINDING_SEEN_IN_KVM};
	case VCPU_VMM:
		return (struct finding){.kind = FINDING_SEEN_IN_VMM};
	case VCPU_THROTTLED:
		return (struct finding){.kind = FINDING_SEEN_THROTTLED};
	case VCPU_UNKNOWN:
		return (struct finding){.kind = *unknown_reason_meaning(s->why)
							? FINDING_SEEN_UNKNOWN_WHY
							: FINDING_SEEN_UNKNOWN,
					.n = {s->why}};
	case VCPU_RUNNABLE:
		return runnable(s, m);
	case VCPU_BLOCKED:
		return blocked(s, m);
	case VCPU_STOPPED:
		return stopped(s, m);
	default:
		return (struct finding){.kind = FINDING_NONE};
	}
}

/* The last elements are for the events that the user chose. */
enum {
	EVIDENCE_WITH_HITS = REPORT_EVIDENCE_MAX - REPORT_EVIDENCE_PAIRS,
	EVIDENCE_MAX = EVIDENCE_WITH_HITS - (FACTS_HITS + 1),
};

static struct report_evidence *evidence_add_up_to(struct incident *out, size_t max,
						  struct host_ns t, int64_t duration_ns)
{
	struct report_evidence *e;

	if (out->n_evidence >= max)
		return NULL;
	e = &out->evidence[out->n_evidence++];
	*e = (struct report_evidence){.t = t, .duration_ns = duration_ns};
	return e;
}

static struct report_evidence *evidence_add(struct incident *out, struct host_ns t,
					    int64_t duration_ns)
{
	return evidence_add_up_to(out, EVIDENCE_MAX, t, duration_ns);
}

/* Adds what the samples of the guest's stacks show about the denied time. */
static void sampled(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	const struct facts_sampled *s = &f->sampled;
	struct host_ns from = {facts_denial_end(f).ns - facts_denial_ns(f)};
	struct report_evidence *e =
		s->spinning || s->computing ? evidence_add(out, from, facts_denial_ns(f)) : NULL;
	unsigned waits = s->spins + s->calls;

	if (!e)
		return;
	e->seen.kind = !s->spinning          ? FINDING_SEEN_COMPUTES
		       : s->calls > s->spins ? FINDING_SEEN_CALLS
					     : FINDING_SEEN_SPINS;
	e->seen.n[0] = s->spinning ? waits : s->n - waits;
	e->seen.n[1] = s->n;
	e->seen.n[2] = f->kind == GUEST_CPU_TASK;
	e->seen.task[0] = finding_task(m, f->vm, f->pid);
	describe(e->seen.name, sizeof(e->seen.name), "%s", s->function);
}

/* Adds the events in the vCPU's thread that no analysis reads. */
static void events(const struct stall_facts *f, struct incident *out)
{
	for (unsigned i = 0; i < f->n_events; i++) {
		const struct facts_events *x = &f->events[i];
		struct report_evidence *e = evidence_add(out, x->t, 0);
		char fields[160];

		if (!e)
			return;
		e->seen.kind = x->count > 1 ? FINDING_SEEN_EVENTS : FINDING_SEEN_EVENT;
		e->seen.n[0] = x->count;
		describe(e->seen.name, sizeof(e->seen.name), "%s: %s",
			 event_type_of(x->first.type)->name,
			 event_text(&x->first, fields, sizeof(fields)));
	}
}

/* Appends the fields that fit into out_bytes, then " ..." if some do not. */
static void hit_fields(const struct user_hit *hit, char *out, size_t out_bytes)
{
	static const char more[] = " ...";
	size_t len = 0;

	*out = 0;
	for (size_t i = 0; i < user_event_n_shown(hit->event); i++) {
		char value[VS_USER_TEXT_MAX + 32], field[sizeof(value) + 40];
		const size_t n =
			(size_t)snprintf(field, sizeof(field), " %s=%s", hit->event->fields[i].name,
					 user_hit_text(hit, i, value, sizeof(value)));

		if (len + n + sizeof(more) > out_bytes) {
			if (out_bytes >= len + sizeof(more))
				memcpy(out + len, more, sizeof(more));
			return;
		}
		memcpy(out + len, field, n + 1);
		len += n;
	}
}

/* Copies the name of a hit's event and its fields. Leaves room in a sentence for its number. */
static void hit_copy(const struct user_hit *hit, struct finding *out)
{
	const size_t rest = out->kind == FINDING_SEEN_KEPT_EVENTS ? 48
			    : out->kind == FINDING_SEEN_EVENTS    ? 32
								  : 0;
	char name[128], fields[sizeof(out->name)];

	snprintf(name, sizeof(name), "%s:%s:%s", hit->source == VS_SOURCE_HOST ? "host" : "guest",
		 hit->event->system, hit->event->name);
	hit_fields(hit, fields, sizeof(fields) - strlen(name) - rest);
	describe(out->name, sizeof(out->name), "%s%s", name, fields);
}

/* Adds the events that the user chose. */
static void hits(const struct stall_facts *f, struct incident *out)
{
	struct report_evidence *e;

	for (unsigned i = 0; i < f->n_hits; i++) {
		const struct user_hit *hit = f->hits[i].first;

		e = evidence_add_up_to(out, EVIDENCE_WITH_HITS, (struct host_ns){hit->t_ns}, 0);
		if (!e)
			return;
		e->seen.kind = f->hits_cut            ? FINDING_SEEN_KEPT_EVENTS
			       : f->hits[i].count > 1 ? FINDING_SEEN_EVENTS
						      : FINDING_SEEN_EVENT;
		e->seen.n[0] = f->hits[i].count;
		hit_copy(hit, &e->seen);
	}
	if (!f->other_hits)
		return;
	e = evidence_add_up_to(out, EVIDENCE_WITH_HITS, f->begin, 0);
	if (e)
		e->seen = (struct finding){.kind = f->hits_cut ? FINDING_SEEN_HITS_OR_MORE
							       : FINDING_SEEN_HITS,
					   .n = {f->other_hits}};
}

/* Adds the spans of the vCPU, longest first, as far as they explain something. */
static void spans(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	for (unsigned i = 0; i < f->n_spans; i++) {
		const struct vcpu_span *s = &f->spans[i];
		struct report_evidence *e;

		if (s->end.ns - s->begin.ns < facts_duration(f) / 100)
			break;
		e = evidence_add(out, s->begin, s->end.ns - s->begin.ns);
		if (!e)
			break;
		e->seen = span_finding(s, m);
		if (e->seen.kind) {
			e->waiter_stack = s->waiter_stack;
			e->waker_stack = s->waker_stack;
		}
	}
}

static void host_log(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	const struct host_log_line *line;

	for (size_t i = 0; (line = model_host_log_line(m, i)); i++) {
		struct report_evidence *e;

		if (line->t.ns < f->begin.ns || line->t.ns > f->end.ns)
			continue;
		e = evidence_add(out, line->t, 0);
		if (!e)
			return;
		e->seen.kind = FINDING_SEEN_HOST_LOG;
		describe(e->seen.name, sizeof(e->seen.name), "%s", line->text);
	}
}

static void interrupts(const struct stall_facts *f, struct incident *out)
{
	for (unsigned i = 0; i < f->n_interrupts; i++) {
		const struct facts_interrupt *x = &f->interrupts[i];
		struct report_evidence *e;

		if (x->ns < facts_duration(f) / 10)
			continue;
		e = evidence_add(out, f->begin, x->ns);
		if (!e)
			return;
		e->seen = (struct finding){
			.kind = FINDING_SEEN_INTERRUPTS, .n = {x->count, x->kind}, .ns = {x->ns}};
		interrupt_name(x->kind, x->vector, x->number, e->seen.name, 32);
	}
}

void describe_evidence(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	struct report_evidence *e;

	spans(f, m, out);
	e = f->lost.ns > 0 ? evidence_add(out, f->lost.begin, f->lost.ns) : NULL;
	if (e) {
		e->seen.kind = f->lost.open ? FINDING_SEEN_PENDING_OPEN : FINDING_SEEN_PENDING;
		e->seen.n[0] = f->lost.vector;
		describe(e->seen.name, sizeof(e->seen.name), "%s", f->lost.source);
	}
	e = f->late.ns > 0 ? evidence_add(out, f->begin, facts_duration(f)) : NULL;
	if (e) {
		e->seen = (struct finding){.kind = FINDING_SEEN_PENDING, .n = {f->late.vector}};
		describe(e->seen.name, sizeof(e->seen.name), "%s", f->late.source);
	}
	host_log(f, m, out);
	e = f->waiter_ns >= f->than_ns
		    ? evidence_add(out, (struct host_ns){f->end.ns - f->waiter_ns}, f->waiter_ns)
		    : NULL;
	if (e)
		e->seen = (struct finding){.kind = FINDING_SEEN_WAITER,
					   .n = {f->n_waiters},
					   .task = {finding_task(m, f->vm, f->waiter_pid)}};
	sampled(f, m, out);
	e = f->tick_interval_ns && f->kind != GUEST_CPU_IDLE
		    ? evidence_add(out, f->begin, facts_duration(f))
		    : NULL;
	if (e)
		e->seen = (struct finding){.kind = FINDING_SEEN_TICKS,
					   .n = {f->ticks},
					   .ns = {f->tick_interval_ns, f->tick_gap_ns}};
	interrupts(f, out);
	events(f, out);
	hits(f, out);
}
