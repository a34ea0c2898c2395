/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/describe.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct task_text task_text(const struct model *m, uint32_t source, int32_t pid)
{
	const char *comm = pid == 0 ? "the idle task" : model_task_name(m, source, pid);
	struct task_text t;

	if (pid == 0)
		snprintf(t.text, sizeof(t.text), "%s", comm);
	else if (*comm)
		snprintf(t.text, sizeof(t.text), "%s (%d)", comm, pid);
	else
		snprintf(t.text, sizeof(t.text), "task %d", pid);
	return t;
}

void describe(char *out, size_t out_bytes, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(out, out_bytes, format, args);
	va_end(args);
}

static bool interrupted(const struct stall_facts *f)
{
	return f->kind == GUEST_CPU_HARDIRQ || f->kind == GUEST_CPU_SOFTIRQ;
}

/* Describes the other waiters. n_waiters counts all. */
static struct task_text others_text(unsigned n_waiters)
{
	struct task_text t = {""};

	if (n_waiters == 2)
		describe(t.text, sizeof(t.text), "; so was 1 other task");
	else if (n_waiters > 2)
		describe(t.text, sizeof(t.text), "; so were %u other tasks", n_waiters - 1);
	return t;
}

void describe_denied(const struct stall_facts *f, const struct model *m, char *out,
		     size_t out_bytes)
{
	int64_t host = facts_denied_by_host(f);

	out[0] = 0;
	if (!f->denied) {
		describe(out, out_bytes, "nothing");
	} else if (f->lost.alone) {
		describe(out, out_bytes, "interrupt 0x%02x: its handler did not run",
			 f->lost.vector);
	} else if (f->clock_step_ns) {
		describe(out, out_bytes, "nothing: the guest's clock was set");
	} else if (f->waiter_ns >= f->than_ns) {
		describe(out, out_bytes, "%s was ready to run on this CPU for %s and did not run%s",
			 task_text(m, f->vm, f->waiter_pid).text, duration_text(f->waiter_ns).text,
			 others_text(f->n_waiters).text);
	} else if (interrupted(f) && f->pid) {
		describe(out, out_bytes, "%s was interrupted and did not run",
			 task_text(m, f->vm, f->pid).text);
	} else if (f->longest_chain_ns >= f->than_ns && host < f->longest_chain_ns * 5 / 4) {
		describe(out, out_bytes,
			 "this CPU did not run: the host kept its vCPU from the guest for %s",
			 duration_text(f->longest_chain_ns).text);
	} else if (f->n_pieces) {
		describe(
			out, out_bytes,
			"this CPU did not run: the host kept its vCPU from the guest for %s in all, in %u "
			"short waits",
			duration_text(host).text, f->n_pieces);
	} else if (host >= f->than_ns) {
		describe(
			out, out_bytes,
			"this CPU did not run: the host kept its vCPU from the guest for %s in all",
			duration_text(host).text);
	} else if (!f->waits.coincidence && f->waits.lock_ns + f->waits.call_ns >= f->than_ns) {
		describe(out, out_bytes,
			 "%s waited for another CPU of the guest, which did not run",
			 task_text(m, f->vm, f->pid).text);
	} else if (interrupted(f)) {
		describe(out, out_bytes, "nothing else ran on this CPU");
	} else if (f->tick_gap_ns < f->than_ns) {
		describe(out, out_bytes, "%s: interrupts took %s of its time on the CPU",
			 task_text(m, f->vm, f->pid).text, duration_text(f->irq_ns).text);
	} else {
		describe(out, out_bytes, "timer ticks did not come for %s; one every %s is normal",
			 duration_text(f->tick_gap_ns).text,
			 duration_text(f->tick_interval_ns).text);
	}
}

static const char *signal_name(uint32_t number)
{
	static const char *const names[] = {[SIGSTOP] = "SIGSTOP",
					    [SIGTSTP] = "SIGTSTP",
					    [SIGTTIN] = "SIGTTIN",
					    [SIGTTOU] = "SIGTTOU"};

	return number < sizeof(names) / sizeof(*names) && names[number] ? names[number]
									: "a signal";
}

static void stopped(const struct vcpu_span *s, const struct model *m, char *out, size_t n)
{
	if (s->signal_number)
		describe(out, n, "stopped by %s from %s", signal_name(s->signal_number),
			 task_text(m, VS_SOURCE_HOST, s->signal_pid).text);
	else if (s->wait_class == WAIT_FREEZER || (s->task_state & VS_TASK_FROZEN))
		describe(out, n, "frozen with its cgroup");
	else if (s->task_state & VS_TASK_TRACED && s->waker_pid)
		describe(out, n, "stopped by its tracer %s",
			 task_text(m, VS_SOURCE_HOST, s->waker_pid).text);
	else if (s->task_state & VS_TASK_TRACED)
		describe(out, n, "stopped by a debugger");
	else if (s->task_state & VS_TASK_STOPPED)
		describe(out, n, "stopped by a signal sent before the recording");
	else if (s->migrates)
		describe(out, n, "paused by its VMM to complete its migration");
	else
		describe(out, n, "paused by its VMM");
}

static void runnable(const struct vcpu_span *s, const struct model *m, char *out, size_t n)
{
	int64_t ns = s->end.ns - s->begin.ns;

	if (s->holder_ns > s->pcpu_idle_ns && s->holder_ns < s->pcpu_busy_ns / 2)
		describe(
			out, n,
			"ready to run, but pCPU %u was held by several tasks in turn for %s, longest "
			"by %s: %s",
			s->pcpu, duration_text(s->pcpu_busy_ns < ns ? s->pcpu_busy_ns : ns).text,
			task_text(m, VS_SOURCE_HOST, s->holder_pid).text,
			duration_text(s->holder_ns < ns ? s->holder_ns : ns).text);
	else if (s->holder_ns > s->pcpu_idle_ns)
		describe(out, n, "ready to run, but pCPU %u was held by %s for %s", s->pcpu,
			 task_text(m, VS_SOURCE_HOST, s->holder_pid).text,
			 duration_text(s->holder_ns < ns ? s->holder_ns : ns).text);
	else if (s->pcpu_idle_ns)
		describe(out, n, "ready to run, but not run although pCPU %u was idle", s->pcpu);
	else
		describe(out, n, "ready to run on pCPU %u, but not run", s->pcpu);
}

static void blocked(const struct vcpu_span *s, const struct model *m, char *out, size_t n)
{
	const char *for_what = s->wait_class == WAIT_NONE ? "something (no stack)"
							  : wait_class_object(s->wait_class);

	if (s->waker_pid)
		describe(out, n, "slept in the host, waiting for %s, until %s woke it", for_what,
			 task_text(m, VS_SOURCE_HOST, s->waker_pid).text);
	else
		describe(out, n, "slept in the host, waiting for %s", for_what);
}

static void in_kvm(const struct vcpu_span *s, const struct model *m, char *out, size_t n)
{
	(void)s;
	(void)m;
	describe(out, n, "the host kernel handled an exit");
}

static void in_vmm(const struct vcpu_span *s, const struct model *m, char *out, size_t n)
{
	(void)s;
	(void)m;
	describe(out, n, "the VMM handled an exit");
}

static void throttled(const struct vcpu_span *s, const struct model *m, char *out, size_t n)
{
	(void)s;
	(void)m;
	describe(out, n, "out of its cgroup's CPU quota");
}

static void unknown(const struct vcpu_span *s, const struct model *m, char *out, size_t n)
{
	const char *why = unknown_reason_meaning(s->why);

	(void)m;
	describe(out, n, "unknown%s%s", *why ? ": " : "", why);
}

typedef void (*describe_state)(const struct vcpu_span *s, const struct model *m, char *out,
			       size_t n);

static const describe_state state_texts[VCPU_STATE_COUNT] = {
	[VCPU_KVM] = in_kvm,          [VCPU_VMM] = in_vmm,      [VCPU_RUNNABLE] = runnable,
	[VCPU_BLOCKED] = blocked,     [VCPU_STOPPED] = stopped, [VCPU_UNKNOWN] = unknown,
	[VCPU_THROTTLED] = throttled,
};

/* The last elements are for the events that the user chose. */
enum { EVIDENCE_HITS = FACTS_HITS + 1, EVIDENCE_MAX = REPORT_EVIDENCE_MAX - EVIDENCE_HITS };

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

/* Describes what the samples of the guest's stacks show about the denied time. */
static void sampled(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	const struct facts_sampled *s = &f->sampled;
	struct report_evidence *e = s->spinning || s->computing
					    ? evidence_add(out,
							   (struct host_ns){facts_denial_end(f).ns -
									    facts_denial_ns(f)},
							   facts_denial_ns(f))
					    : NULL;
	char task[64] = "the interrupt";

	if (!e)
		return;
	if (f->kind == GUEST_CPU_TASK)
		describe(task, sizeof(task), "%s", task_text(m, f->vm, f->pid).text);
	if (s->spinning)
		describe(e->text, sizeof(e->text),
			 "in the guest, %s spins in %s: %u of %u stack samples show it %s", task,
			 s->function, s->spins + s->calls, s->n,
			 s->calls > s->spins ? "waiting for other CPUs' answers"
					     : "waiting for a lock");
	else
		describe(
			e->text, sizeof(e->text),
			"in the guest, %s computes: %u of %u stack samples show no wait for a lock, most of "
			"them in %s",
			task, s->n - s->spins - s->calls, s->n,
			*s->function ? s->function : "its program's own code");
}

/* Adds the events in the vCPU's thread that no analysis reads. */
static void events(const struct stall_facts *f, struct incident *out)
{
	for (unsigned i = 0; i < f->n_events; i++) {
		const struct facts_events *x = &f->events[i];
		struct report_evidence *e = evidence_add(out, x->t, 0);
		char fields[160], times[32] = "";

		if (!e)
			return;
		if (x->count > 1)
			snprintf(times, sizeof(times), ", the first of %u", x->count);
		describe(e->text, sizeof(e->text), "%s: %s%s", event_type_of(x->first.type)->name,
			 event_text(&x->first, fields, sizeof(fields)), times);
	}
}

/* Appends the fields that fit into out_bytes, then " ..." if some do not. */
static void hit_fields(const struct user_hit *hit, char *out, size_t out_bytes)
{
	static const char more[] = " ...";
	size_t len = 0;

	*out = 0;
	for (size_t i = 0; i < hit->event->n_fields; i++) {
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

/* Adds the events that the user chose. */
static void hits(const struct stall_facts *f, struct incident *out)
{
	struct report_evidence *e;

	for (unsigned i = 0; i < f->n_hits; i++) {
		const struct user_hit *hit = f->hits[i].first;
		char name[128], fields[REPORT_TEXT_MAX], times[64] = "";

		e = evidence_add_up_to(out, REPORT_EVIDENCE_MAX, (struct host_ns){hit->t_ns}, 0);
		if (!e)
			return;
		if (f->hits_cut)
			describe(times, sizeof(times), ", the oldest that was kept of %u or more",
				 f->hits[i].count);
		else if (f->hits[i].count > 1)
			describe(times, sizeof(times), ", the first of %u", f->hits[i].count);
		snprintf(name, sizeof(name), "%s:%s:%s",
			 hit->source == VS_SOURCE_HOST ? "host" : "guest", hit->event->system,
			 hit->event->name);
		hit_fields(hit, fields, sizeof(fields) - strlen(name) - strlen(times));
		describe(e->text, sizeof(e->text), "%s%s%s", name, fields, times);
	}
	if (!f->other_hits)
		return;
	e = evidence_add_up_to(out, REPORT_EVIDENCE_MAX, f->begin, 0);
	if (e)
		describe(e->text, sizeof(e->text), "%u%s hit%s of other events that were chosen",
			 f->other_hits, f->hits_cut ? " or more" : "",
			 f->other_hits == 1 ? "" : "s");
}

void describe_evidence(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	struct report_evidence *e;

	for (unsigned i = 0; i < f->n_spans; i++) {
		const struct vcpu_span *s = &f->spans[i];

		if (s->end.ns - s->begin.ns < facts_duration(f) / 100)
			break; /* the longest come first; the ones after it explain too little */
		e = evidence_add(out, s->begin, s->end.ns - s->begin.ns);
		if (!e || !state_texts[s->state])
			continue;
		state_texts[s->state](s, m, e->text, sizeof(e->text));
		e->waiter_stack = s->waiter_stack;
		e->waker_stack = s->waker_stack;
	}
	if (f->lost.ns > 0) {
		e = evidence_add(out, f->lost.begin, f->lost.ns);
		if (e)
			describe(e->text, sizeof(e->text), "interrupt 0x%02x (%s) was pending; %s",
				 f->lost.vector, f->lost.source,
				 f->lost.open ? "its handler has not run since"
					      : "then its handler ran");
	}
	for (size_t i = 0; model_host_log_line(m, i); i++) {
		const struct host_log_line *line = model_host_log_line(m, i);

		if (line->t.ns < f->begin.ns || line->t.ns > f->end.ns)
			continue;
		e = evidence_add(out, line->t, 0);
		if (e)
			describe(e->text, sizeof(e->text), "the host's kernel log: %s", line->text);
	}
	if (f->waiter_ns >= f->than_ns) {
		e = evidence_add(out, (struct host_ns){f->end.ns - f->waiter_ns}, f->waiter_ns);
		if (e)
			describe(e->text, sizeof(e->text),
				 "in the guest, %s waited for this CPU; %u task%s waited that long",
				 task_text(m, f->vm, f->waiter_pid).text, f->n_waiters,
				 f->n_waiters == 1 ? "" : "s");
	}
	sampled(f, m, out);
	if (f->tick_interval_ns && f->kind != GUEST_CPU_IDLE) {
		e = evidence_add(out, f->begin, facts_duration(f));
		if (e)
			describe(e->text, sizeof(e->text),
				 "in the guest, %u timer tick%s (one every %s is normal), the "
				 "longest gap %s",
				 f->ticks, f->ticks == 1 ? "" : "s",
				 duration_text(f->tick_interval_ns).text,
				 duration_text(f->tick_gap_ns).text);
	}
	for (unsigned i = 0; i < f->n_interrupts; i++) {
		const struct facts_interrupt *x = &f->interrupts[i];
		char name[32];

		if (x->ns < facts_duration(f) / 10)
			continue;
		interrupt_name(x->kind, x->vector, x->number, name, sizeof(name));
		e = evidence_add(out, f->begin, x->ns);
		if (e)
			describe(e->text, sizeof(e->text),
				 "in the guest, %s %s took %s in %u part%s",
				 x->kind == GUEST_CPU_SOFTIRQ ? "softirq" : "interrupt", name,
				 duration_text(x->ns).text, x->count, x->count == 1 ? "" : "s");
	}
	events(f, out);
	hits(f, out);
}
