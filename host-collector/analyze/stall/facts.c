/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/stall/facts.h"

#include <stddef.h>
#include <string.h>

bool vcpu_state_denies(enum vcpu_state s)
{
	static const bool denies[VCPU_STATE_COUNT] = {
		[VCPU_KVM] = true,     [VCPU_VMM] = true,       [VCPU_RUNNABLE] = true,
		[VCPU_BLOCKED] = true, [VCPU_THROTTLED] = true, [VCPU_STOPPED] = true,
	};

	return denies[s];
}

bool vcpu_span_denies(const struct vcpu_span *span)
{
	return vcpu_state_denies(span->presumed ? span->presumed_state : span->state);
}

/* A run interval begins at every switch of the guest. The compiler joins these stores, which costs
 * less than memset(). Of the details only the counts are cleared, clearing their bytes would cost
 * too much. */
static void begin(struct stall_facts *f, uint32_t vm, uint16_t cpu, struct host_ns t)
{
	f->vm = vm;
	f->vcpu = 0;
	f->cpu = cpu;
	f->vcpu_known = f->any_span = f->sealed = f->ongoing = f->cut = f->vector = false;
	f->kind = (enum guest_cpu_state)0; /* set when it is known */
	f->pid = 0;
	f->number = 0;
	f->ticks = 0;
	f->begin = t;
	f->end.ns = INT64_MAX;
	f->last_tick = t;
	f->begin_err_ns = 0;
	f->tick_gap_ns = 0;
	f->tick_gap_end.ns = 0;
	f->irq_ns = 0;
	f->n_seen = f->n_lost = 0;
	f->n_irqs = 0;
	f->n_samples = f->sample_stride = f->samples_skipped = 0;
	f->n_spans = f->n_holders = f->n_interrupts = f->n_halts = 0;
}

/* Not inlined: most intervals do not need it, and would pay for its registers. */
__attribute__((noinline)) static void begin_cleared(struct stall_facts *f, size_t clear,
						    uint32_t vm, uint16_t cpu, struct host_ns t)
{
	memset(f, 0, clear);
	begin(f, vm, cpu, t);
}

void facts_begin(struct stall_facts *f, uint32_t vm, uint16_t cpu, struct host_ns t)
{
	begin_cleared(f, offsetof(struct stall_facts, spans), vm, cpu, t);
}

void facts_begin_again(struct stall_facts *f, uint32_t vm, uint16_t cpu, struct host_ns t)
{
	if (f->any_span)
		begin_cleared(f, offsetof(struct stall_facts, spans), vm, cpu, t);
	else if (f->sealed)
		begin_cleared(f, offsetof(struct stall_facts, state_ns), vm, cpu, t);
	else
		begin(f, vm, cpu, t);
}

static void holder_add(struct stall_facts *f, int32_t pid, int64_t ns)
{
	struct facts_holder *least = f->holders;

	if (ns <= 0)
		return;
	for (unsigned i = 0; i < f->n_holders; i++) {
		if (f->holders[i].pid == pid) {
			f->holders[i].ns += ns;
			return;
		}
		if (f->holders[i].ns < least->ns)
			least = &f->holders[i];
	}
	if (f->n_holders < FACTS_HOLDERS)
		least = &f->holders[f->n_holders++];
	else if (least->ns >= ns)
		return;
	*least = (struct facts_holder){.pid = pid, .ns = ns};
}

static int64_t length(const struct vcpu_span *span)
{
	return span->end.ns - span->begin.ns;
}

/* Adds the tasks that held the pCPU in this part of `span`. */
static void holders_add(struct stall_facts *f, const struct vcpu_span *span, int64_t part_ns)
{
	double share = (double)part_ns / (double)length(span);

	if (!span->n_crowd || !crowd_at(span->crowd, span->crowd_first)) {
		holder_add(f, span->holder_pid,
			   span->holder_ns < part_ns ? span->holder_ns : part_ns);
		return;
	}
	for (uint32_t i = 0; i < span->n_crowd; i++) {
		const struct vcpu_holder *h = crowd_at(span->crowd, span->crowd_first + i);

		/* If a span is cut, the holders of the rest are unknown: each gets its
		 * proportional share. */
		if (h)
			holder_add(f, h->pid, share < 1 ? (int64_t)((double)h->ns * share) : h->ns);
	}
}

/* Keeps the longest spans, each from `begin` to `end`, longest first. */
static void span_keep(struct stall_facts *f, const struct vcpu_span *span, struct host_ns begin,
		      struct host_ns end)
{
	const int64_t ns = end.ns - begin.ns;
	unsigned at = f->n_spans;

	if (at == FACTS_SPANS && length(&f->spans[at - 1]) >= ns)
		return;
	if (at < FACTS_SPANS)
		f->n_spans++;
	else
		at--;
	for (; at > 0 && length(&f->spans[at - 1]) < ns; at--)
		f->spans[at] = f->spans[at - 1];
	f->spans[at] = *span;
	f->spans[at].begin = begin;
	f->spans[at].end = end;
}

static const int64_t halts_apart_ns = 1000000;

/* Returns true if the halt that begins at `t` continues the halt `last`. KVM wakes a halted vCPU
 * for a timer that the guest does not take because its interrupts are off. For how long that vCPU
 * then waits for a pCPU says nothing about the guest. */
static bool halt_goes_on(const struct stall_facts *f, const struct facts_halt *last,
			 struct host_ns t)
{
	int64_t waited_ns = f->state_ns[VCPU_RUNNABLE] - last->runnable_ns;

	return t.ns - last->until.ns - waited_ns < halts_apart_ns;
}

/* This, halt_bridge() and wait_add() are not inlined into facts_vcpu_span(): most spans need none
 * of them and would pay for their registers. */
__attribute__((noinline)) static void halt_keep(struct stall_facts *f, struct host_ns begin,
						struct host_ns end)
{
	struct facts_halt *last = f->n_halts ? &f->halts[f->n_halts - 1] : NULL;
	unsigned least = 0;

	if (last && halt_goes_on(f, last, begin)) {
		last->end = last->until = end;
		last->runnable_ns = f->state_ns[VCPU_RUNNABLE];
		return;
	}
	for (unsigned i = 1; i < f->n_halts; i++) {
		if (f->halts[i].end.ns - f->halts[i].begin.ns <
		    f->halts[least].end.ns - f->halts[least].begin.ns)
			least = i;
	}
	if (f->n_halts == FACTS_HALTS)
		memmove(&f->halts[least], &f->halts[least + 1],
			(--f->n_halts - least) * sizeof(f->halts[0]));
	f->halts[f->n_halts++] = (struct facts_halt){begin, end, end, f->state_ns[VCPU_RUNNABLE]};
}

/* Joins a halt before `begin` and a halt after `end`, because the state between is unknown and it
 * may be one halt. */
__attribute__((noinline)) static void halt_bridge(struct stall_facts *f, struct host_ns begin,
						  struct host_ns end)
{
	struct facts_halt *last = f->n_halts ? &f->halts[f->n_halts - 1] : NULL;

	if (last && halt_goes_on(f, last, begin)) {
		last->until = end;
		last->runnable_ns = f->state_ns[VCPU_RUNNABLE];
	}
}

/* Returns true for exits by which a guest accesses a device: port I/O, and memory that is not
 * mapped. */
static bool exit_is_device(const struct vcpu_exit *x)
{
	static const struct {
		uint32_t isa, reason;
	} reasons[] = {{1, 30}, {1, 48}, {1, 49}, {2, 0x7b}, {2, 0x400}};

	for (size_t i = 0; x->serial && i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (reasons[i].isa == x->isa && reasons[i].reason == x->reason)
			return true;
	}
	return false;
}

/* A shorter access is the normal work of a device. In a longer one the guest waits. */
static const int64_t device_min_ns = 10000000;

/* ns: the length of the part that counts. */
static bool waits_for_device(const struct vcpu_span *span, int64_t ns)
{
	return (span->state == VCPU_VMM ||
		(span->state == VCPU_BLOCKED && span->wait_class == WAIT_POLL)) &&
	       ns >= device_min_ns && exit_is_device(&span->exit);
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/*
 * Adds a wait for a pCPU, of which `ns` lie in the interval. Time that the quota is known to have
 * taken is throttling; it is taken from the time in which the pCPU was idle first. If the span is
 * clipped, each of these times is at most as long as the part. Of a throttled span, everything is
 * throttling except the time in which others held its pCPU.
 */
__attribute__((noinline)) static void wait_add(struct stall_facts *f, const struct vcpu_span *span,
					       int64_t ns)
{
	int64_t quota = least(span->throttled_ns, ns);
	int64_t busy = least(span->pcpu_busy_ns, ns - quota), idle = span->pcpu_idle_ns - quota;

	if (span->state == VCPU_THROTTLED)
		quota = ns - busy;
	f->quota_ns += quota;
	f->pcpu_busy_ns += busy;
	idle = least(idle, ns - quota - busy);
	f->pcpu_idle_ns += idle > 0 ? idle : 0;
	if (span->state == VCPU_RUNNABLE || busy > 0)
		holders_add(f, span, ns);
}

/* Adds the part of `span` that lies in the interval. */
static void part_add(struct stall_facts *f, const struct vcpu_span *span, struct host_ns begin,
		     struct host_ns end)
{
	const int64_t ns = end.ns - begin.ns;

	f->any_span = true;
	f->vcpu = span->vcpu;
	f->vcpu_known = true;
	f->state_ns[span->state] += ns;
	if (span->presumed)
		f->presumed_ns[span->presumed_state] += ns;
	if (!vcpu_span_denies(span)) {
		f->chain_ns = 0;
		if (span->state == VCPU_UNKNOWN) {
			span_keep(f, span, begin, end);
			halt_bridge(f, begin, end);
		}
		if (span->state == VCPU_HALTED)
			halt_keep(f, begin, end);
		return;
	}
	f->chain_ns = f->chain_end.ns == begin.ns ? f->chain_ns + ns : ns;
	f->chain_end = end;
	if (f->chain_ns > f->longest_chain_ns)
		f->longest_chain_ns = f->chain_ns;
	if (span->state == VCPU_BLOCKED) {
		f->class_ns[span->wait_class] += ns;
		f->inferred_ns[span->wait_class] += span->inferred ? ns : 0;
		f->n_sampled[span->wait_class] += span->sampled;
	}
	if (span->state == VCPU_BLOCKED && span->wait_class == WAIT_NONE && span->faulted)
		f->fault_ns += ns;
	if (waits_for_device(span, ns))
		f->device_ns += ns;
	if (span->state == VCPU_STOPPED && span->migrates)
		f->migration_ns += ns;
	span_keep(f, span, begin, end);
	if (span->state == VCPU_RUNNABLE || span->state == VCPU_THROTTLED)
		wait_add(f, span, ns);
}

void facts_vcpu_span(struct stall_facts *f, const struct vcpu_span *span)
{
	const struct host_ns begin = span->begin.ns < f->begin.ns ? f->begin : span->begin;
	const struct host_ns end = span->end.ns > f->end.ns ? f->end : span->end;

	if (end.ns > begin.ns)
		part_add(f, span, begin, end);
}

void facts_guest_span(struct stall_facts *f, const struct guest_span *span)
{
	int64_t begin = span->begin.ns > f->begin.ns ? span->begin.ns : f->begin.ns;
	int64_t end = span->end.ns < f->end.ns ? span->end.ns : f->end.ns;
	struct facts_interrupt *least = f->interrupts;

	if (end <= begin || (span->state != GUEST_CPU_HARDIRQ && span->state != GUEST_CPU_SOFTIRQ))
		return;
	f->irq_ns += end - begin;
	f->n_irqs++;
	for (unsigned i = 0; i < f->n_interrupts; i++) {
		struct facts_interrupt *x = &f->interrupts[i];

		if (x->kind == span->state && x->number == span->number &&
		    x->vector == span->vector) {
			x->ns += end - begin;
			x->count++;
			return;
		}
		if (x->ns < least->ns)
			least = x;
	}
	if (f->n_interrupts < FACTS_INTERRUPTS)
		least = &f->interrupts[f->n_interrupts++];
	*least = (struct facts_interrupt){.kind = span->state,
					  .number = span->number,
					  .vector = span->vector,
					  .ns = end - begin,
					  .count = 1};
}

void facts_tick(struct stall_facts *f, struct host_ns t, int64_t interval_ns)
{
	int64_t gap = t.ns - f->last_tick.ns;

	if (gap > f->tick_gap_ns) {
		f->tick_gap_ns = gap;
		f->tick_gap_end = t;
	}
	if (gap >= interval_ns / 2)
		f->ticks++;
	f->last_tick = t;
}

/* When there is no room, drops every second sample, and from then on keeps only every second one.
 */
void facts_task_sample(struct stall_facts *f, struct host_ns t, uint32_t kernel, bool user)
{
	if (!f->sample_stride)
		f->sample_stride = 1;
	if (++f->samples_skipped < f->sample_stride)
		return;
	if (f->n_samples == FACTS_SAMPLES) {
		for (unsigned i = 0; i < FACTS_SAMPLES / 2; i++)
			f->samples[i] = f->samples[2 * i + 1];
		f->n_samples /= 2;
		f->sample_stride *= 2;
		return;
	}
	f->samples_skipped = 0;
	f->samples[f->n_samples++] = (struct facts_sample){.t = t, .kernel = kernel, .user = user};
}

void facts_end(struct stall_facts *f, struct host_ns t)
{
	f->end = t;
	if (t.ns - f->last_tick.ns > f->tick_gap_ns) {
		f->tick_gap_ns = t.ns - f->last_tick.ns;
		f->tick_gap_end = t;
	}
}

void facts_seal(struct stall_facts *f, struct host_ns t)
{
	facts_end(f, t);
	f->sealed = true;
}

void facts_close(struct stall_facts *f)
{
	int64_t covered = 0;

	for (int s = 0; s < VCPU_STATE_COUNT; s++)
		covered += f->state_ns[s];
	f->state_ns[VCPU_UNKNOWN] += facts_duration(f) - covered;
}

void facts_unjoin(struct stall_facts *f)
{
	if (f->kind == GUEST_CPU_UNKNOWN)
		return;
	memset(f->state_ns, 0, sizeof(f->state_ns));
	memset(f->class_ns, 0, sizeof(f->class_ns));
	memset(f->inferred_ns, 0, sizeof(f->inferred_ns));
	memset(f->n_sampled, 0, sizeof(f->n_sampled));
	f->fault_ns = 0;
	f->lockup_ns = f->split_lock_ns = f->migration_ns = f->device_ns = 0;
	f->quota_ns = f->pcpu_busy_ns = f->pcpu_idle_ns = f->chain_ns = f->longest_chain_ns = 0;
	f->n_spans = f->n_holders = f->n_halts = 0;
	f->waits = (struct facts_waits){0};
	f->sampled = (struct facts_sampled){0};
	f->guest_peer = (struct facts_guest_peer){0};
	f->lost = (struct facts_lost){0};
	f->late = (struct facts_late){0};
	f->tick_late_ns = 0;
	f->tick_unexplained = false;
	memset(f->presumed_ns, 0, sizeof(f->presumed_ns));
	f->presumed_lockup_ns = 0;
}

/* Assumes that the pCPU was held by others for the same share of the unknown time as of the known.
 */
bool facts_presume(const struct stall_facts *f, struct stall_facts *presumed)
{
	int64_t known = f->pcpu_busy_ns + f->pcpu_idle_ns, waited = f->presumed_ns[VCPU_RUNNABLE];
	double busy = known > 0 ? (double)f->pcpu_busy_ns / (double)known : 0;
	bool any = false;

	*presumed = *f;
	for (int s = 0; s < VCPU_STATE_COUNT; s++) {
		presumed->state_ns[VCPU_UNKNOWN] -= f->presumed_ns[s];
		presumed->state_ns[s] += f->presumed_ns[s];
		any |= f->presumed_ns[s] > 0;
	}
	presumed->lockup_ns += f->presumed_lockup_ns;
	if (known > 0) {
		presumed->pcpu_busy_ns += (int64_t)(busy * (double)waited);
		presumed->pcpu_idle_ns += (int64_t)((1 - busy) * (double)waited);
	}
	return any;
}

/* The host's watchdog writes its line while its CPU is stuck, or at most this long after. */
static const int64_t lockup_late_ns = 1000000000;

static int64_t locked_up_ns(const struct stall_facts *f, const struct host_log_line *line)
{
	int64_t ns = 0, all, presumed;

	if (line->t.ns < f->begin.ns || line->t.ns - f->end.ns > lockup_late_ns)
		return 0;
	for (unsigned i = 0; i < f->n_spans; i++) {
		const struct vcpu_span *s = &f->spans[i];
		enum vcpu_state state = s->presumed ? s->presumed_state : s->state;

		if (s->pcpu == line->cpu && (state == VCPU_RUNNABLE || state == VCPU_KVM))
			ns += length(s);
	}
	/* Only the longest spans are kept. If they cover most of these states, the line counts for
	 * all. */
	presumed = f->presumed_ns[VCPU_RUNNABLE] + f->presumed_ns[VCPU_KVM];
	all = f->state_ns[VCPU_RUNNABLE] + f->state_ns[VCPU_KVM] + presumed;
	return ns * 10 >= all * 9 ? all : ns;
}

void facts_host_log(struct stall_facts *f, const struct model *m)
{
	const struct host_log_line *line;
	bool named = false;
	int64_t all;

	for (size_t i = 0; (line = model_host_log_line(m, i)); i++) {
		if (line->kind == HOST_LOG_LOCKUP && locked_up_ns(f, line) > f->lockup_ns)
			f->lockup_ns = locked_up_ns(f, line);
		/* The kernel writes this line once for each thread, at its first split lock. */
		named |= line->kind == HOST_LOG_SPLIT_LOCK && line->t.ns <= f->end.ns &&
			 f->n_spans && f->spans[0].tid == line->pid;
	}
	all = f->state_ns[VCPU_RUNNABLE] + f->state_ns[VCPU_KVM];
	f->presumed_lockup_ns = f->lockup_ns > all ? f->lockup_ns - all : 0;
	f->lockup_ns -= f->presumed_lockup_ns;
	f->split_lock_ns = f->class_ns[WAIT_SPLIT_LOCK] + (named ? f->class_ns[WAIT_NONE] : 0);
}

int64_t facts_denied_by_host(const struct stall_facts *f)
{
	int64_t ns = 0;

	for (int s = 0; s < VCPU_STATE_COUNT; s++)
		ns += vcpu_state_denies((enum vcpu_state)s) ? f->state_ns[s] : 0;
	return ns;
}

uint32_t facts_quota(const struct stall_facts *f)
{
	/* The spans are sorted, longest first. */
	for (unsigned i = 0; i < f->n_spans; i++) {
		if (f->spans[i].throttled_ns > 0 && f->spans[i].quota)
			return f->spans[i].quota;
	}
	return 0;
}

int64_t facts_denied_in_pieces(const struct stall_facts *f)
{
	int64_t ran = f->state_ns[VCPU_GUEST] + f->state_ns[VCPU_KVM] + f->state_ns[VCPU_VMM];

	/* If no task was seen on the pCPU, there are no shares. */
	return facts_denied_by_host(f) - (f->pcpu_busy_ns < ran ? f->pcpu_busy_ns : ran);
}

int64_t facts_ran(const struct stall_facts *f)
{
	int64_t by_ticks = f->ticks * f->tick_interval_ns - f->state_ns[VCPU_GUEST];
	int64_t unknown = f->state_ns[VCPU_UNKNOWN];

	if (by_ticks < 0)
		by_ticks = 0;
	return f->state_ns[VCPU_GUEST] + (by_ticks < unknown ? by_ticks : unknown);
}

bool facts_is_interrupt(const struct stall_facts *f)
{
	return f->kind == GUEST_CPU_HARDIRQ || f->kind == GUEST_CPU_SOFTIRQ;
}

bool facts_halts_wait(const struct stall_facts *f)
{
	return f->kind == GUEST_CPU_TASK || (facts_is_interrupt(f) && !f->ongoing);
}

bool facts_ticks_stopped(const struct stall_facts *f)
{
	return f->kind != GUEST_CPU_IDLE && f->tick_interval_ns && f->tick_gap_ns >= f->than_ns &&
	       f->tick_gap_ns >= 8 * f->tick_interval_ns;
}

/* To starve a CPU, handlers of usual length must run 2,000 times per second. */
enum { STORM_PER_SECOND = 2000, STORM_STARVES_PERCENT = 90 };

/* If events were lost, the limits are lower, because a handler counts only if both its events are
 * seen. */
bool facts_storm(const struct stall_facts *f, int percent)
{
	uint64_t all = f->n_seen + f->n_lost;
	double seen = all ? (double)f->n_seen / (double)all : 1, whole = seen * seen;
	int64_t ns = facts_duration(f);

	return f->kind == GUEST_CPU_TASK &&
	       (double)f->irq_ns * 100 >= (double)ns * percent * whole &&
	       f->n_irqs >= (double)ns / 1e9 * STORM_PER_SECOND * whole;
}

/* Returns true if the storm leaves almost no time for the interval's own task. */
static bool storm_starves(const struct stall_facts *f)
{
	return f->irq_ns >= f->than_ns && facts_storm(f, STORM_STARVES_PERCENT);
}

/* Returns the time that the guest waited for a lock or an answer of another vCPU. 0 if this is only
 * concluded from the end of the wait. */
static int64_t waited_for_peer_ns(const struct stall_facts *f)
{
	return f->waits.coincidence ? 0 : f->waits.lock_ns + f->waits.call_ns;
}

/* Returns true if the time is a stall: without a break, or in pieces (`ns` in all) that are a
 * large enough share of the run interval. */
static bool felt(const struct stall_facts *f, int64_t ns, int64_t longest_ns)
{
	return longest_ns >= f->than_ns || (ns >= f->than_ns && ns >= facts_duration(f) / 4);
}

/* Returns true if the guest's clock jumped ahead, or back to a time that it had shown before. If it
 * only stood still, this was a pause. */
static bool clock_jumped(const struct stall_facts *f)
{
	return f->clock_step_ns >= f->than_ns ||
	       f->clock_step_ns + facts_duration(f) <= -f->than_ns;
}

bool facts_deny(const struct stall_facts *f)
{
	if (f->clock_step_ns)
		return clock_jumped(f);
	return f->waiter_ns >= f->than_ns || facts_ticks_stopped(f) || facts_is_interrupt(f) ||
	       f->late.ns >= f->than_ns || storm_starves(f) ||
	       felt(f, facts_denied_in_pieces(f), f->longest_chain_ns) ||
	       felt(f, waited_for_peer_ns(f), f->waits.longest_ns) ||
	       /* The task of the interval does not sleep meanwhile, so it is the one that waits. */
	       (f->kind == GUEST_CPU_TASK && f->waits.poll_ns >= f->than_ns);
}

int64_t facts_denied_by_guest(const struct stall_facts *f)
{
	int64_t denied = f->waiter_ns, elsewhere = facts_duration(f) - facts_ran(f), waited;

	if (f->lost.alone) /* a lost interrupt: its handler could have run in these states */
		return f->state_ns[VCPU_GUEST] + f->state_ns[VCPU_HALTED];
	if (f->late.ns)
		return f->late.ns;
	if (facts_ticks_stopped(f) && f->tick_gap_ns > denied)
		denied = f->tick_gap_ns;
	if (facts_is_interrupt(f))
		denied = facts_duration(f);
	else if (storm_starves(f) && f->irq_ns > denied)
		denied = f->irq_ns;
	denied = denied > elsewhere ? denied - elsewhere : 0;
	waited = waited_for_peer_ns(f) - f->waits.lock_halted_ns;
	/* A CPU that halts for a lock does not run, but its guest's kernel made it wait. */
	return (denied > waited ? denied : waited) + f->waits.lock_halted_ns +
	       f->guest_peer.halted_ns;
}

static bool ticks_lacked_longest(const struct stall_facts *f)
{
	return !facts_is_interrupt(f) && facts_ticks_stopped(f) && f->tick_gap_ns > f->waiter_ns;
}

int64_t facts_denial_ns(const struct stall_facts *f)
{
	if (facts_is_interrupt(f) || f->late.ns)
		return facts_duration(f);
	return ticks_lacked_longest(f) ? f->tick_gap_ns : f->waiter_ns;
}

struct host_ns facts_denial_end(const struct stall_facts *f)
{
	return ticks_lacked_longest(f) ? f->tick_gap_end : f->end;
}
