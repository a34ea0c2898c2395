/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/hints.h"

#include <stdlib.h>

#include "host-collector/analyze/intervals.h"

enum hint_kind {
	HINT_SPIN,   /* PAUSE exits, one after the other */
	HINT_CALL,   /* `what`, another vCPU, owes the answer to an interrupt */
	HINT_POLL,   /* reads of the device register `what` */
	HINT_NESTED, /* it entered a guest of its own, and did not come back before the end */
	HINT_KEPT,   /* the host kept it from the guest; `pid` had its pCPU, if any */
	HINT_UNSEEN, /* nobody knows what it did */
};

struct hint {
	enum hint_kind kind;
	enum vcpu_state state; /* HINT_KEPT: the longest */
	struct host_ns begin, end;
	uint64_t what;
	uint32_t count;
	int32_t pid;
	int64_t longest_ns;
};

enum { LOSSES = 64, HINTS_KEPT = 256, CALLERS = 4, REGISTERS = 4, RETURN_EVENTS = 8 };

/* Shorter pieces explain no stall, and would push out those that do. */
static const int64_t hint_min_ns = 1000000;

struct run { /* under way */
	struct host_ns begin, last;
	uint64_t what;
	uint32_t count, others; /* others: of its kind, but not it, meanwhile */
};

struct vcpu_hints {
	struct run spin, nested, registers[REGISTERS];
	bool in_guest_of_its_own;
	struct { /* unanswered interrupts that call this CPU */
		bool open;
		uint32_t caller;
		struct host_ns since;
	} calls[CALLERS];
	struct hint kept; /* under way if longer than nothing */
	/* The guest CPU's silence that ended last, and when it answered a call just after that. */
	struct host_ns guest_last, silence_end, called;
	unsigned since_silence;
	uint64_t n; /* ever */
	struct hint *ring;
};

struct hints {
	uint64_t n_lost; /* times in which events of the host's were missing, the newest kept */
	struct loss {
		struct host_ns first, last;
	} lost[LOSSES];
	struct vcpu_hints *vcpus[VS_CPUS_MAX];
};

struct hints *hints_new(void)
{
	return calloc(1, sizeof(struct hints));
}

void hints_free(struct hints *h)
{
	for (size_t i = 0; h && i < VS_CPUS_MAX; i++) {
		if (h->vcpus[i])
			free(h->vcpus[i]->ring);
		free(h->vcpus[i]);
	}
	free(h);
}

static struct vcpu_hints *vcpu_get(struct hints *h, uint32_t vcpu)
{
	if (vcpu >= VS_CPUS_MAX)
		return NULL;
	if (!h->vcpus[vcpu])
		h->vcpus[vcpu] = calloc(1, sizeof(struct vcpu_hints));
	return h->vcpus[vcpu];
}

static void hint_keep(struct vcpu_hints *v, const struct hint *hint)
{
	if (hint->end.ns - hint->begin.ns < hint_min_ns)
		return;
	if (!v->ring)
		v->ring = calloc(HINTS_KEPT, sizeof(*v->ring));
	if (v->ring)
		v->ring[v->n++ % HINTS_KEPT] = *hint;
}

/* ---- exits ---- */

enum { ISA_VMX = 1, ISA_SVM = 2 };

/* X86's and Linux's own numbers: SDM volume 3 appendix C, APM volume 2 appendix C. */
static const struct {
	uint32_t isa, reason;
	enum exit_sign { EXIT_NO_SIGN, EXIT_SPINS, EXIT_ENTERS_GUEST, EXIT_SERVES_GUEST } sign;
} exit_signs[] = {
	{ISA_VMX, 40, EXIT_SPINS},        /* PAUSE in a loop */
	{ISA_SVM, 0x77, EXIT_SPINS},      /* PAUSE, its filter */
	{ISA_VMX, 20, EXIT_ENTERS_GUEST}, /* VMLAUNCH */
	{ISA_VMX, 24, EXIT_ENTERS_GUEST}, /* VMRESUME */
	{ISA_SVM, 0x80, EXIT_ENTERS_GUEST}, {ISA_VMX, 19, EXIT_SERVES_GUEST}, /* VMCLEAR */
	{ISA_VMX, 21, EXIT_SERVES_GUEST},                                     /* VMPTRLD */
	{ISA_VMX, 23, EXIT_SERVES_GUEST},                                     /* VMREAD */
	{ISA_VMX, 25, EXIT_SERVES_GUEST},                                     /* VMWRITE */
	{ISA_SVM, 0x82, EXIT_SERVES_GUEST}, {ISA_SVM, 0x83, EXIT_SERVES_GUEST},
	{ISA_SVM, 0x84, EXIT_SERVES_GUEST},
};

static enum exit_sign exit_sign(uint32_t isa, uint32_t reason)
{
	for (size_t i = 0; i < sizeof(exit_signs) / sizeof(exit_signs[0]); i++) {
		if (exit_signs[i].reason == reason && exit_signs[i].isa == isa)
			return exit_signs[i].sign;
	}
	return EXIT_NO_SIGN;
}

static struct hint hint_of_run(const struct run *r, enum hint_kind kind)
{
	return (struct hint){.kind = kind,
			     .begin = r->begin,
			     .end = r->last,
			     .what = r->what,
			     .count = r->count};
}

/* Ends the run if `t` is more than `gap_ns` after its last event, else it goes on until `t`. */
static void run_extend(struct vcpu_hints *v, struct run *r, enum hint_kind kind, struct host_ns t,
		       int64_t gap_ns)
{
	struct hint over = hint_of_run(r, kind);

	if (r->count && t.ns - r->last.ns > gap_ns) {
		hint_keep(v, &over);
		r->count = r->others = 0;
	}
	if (!r->count++)
		r->begin = t;
	r->last = t;
}

/* KVM doubles the time that a spin may take until its next exit, as long as the thread is not
 * scheduled: what follows within that time belongs to it, also if one exit was lost in between. */
static int64_t spin_gap_ns(const struct run *r)
{
	return 5 * (r->last.ns - r->begin.ns) + 200000;
}

static void nested_end(struct vcpu_hints *v, struct host_ns t)
{
	struct hint over = hint_of_run(&v->nested, HINT_NESTED);

	if (!v->in_guest_of_its_own)
		return;
	over.end = t;
	hint_keep(v, &over);
	v->in_guest_of_its_own = false;
}

static void on_exit_event(struct hints *h, const struct model *m, const struct host_instant *i)
{
	enum exit_sign sign = exit_sign((uint32_t)(i->event.arg0 >> 32), (uint32_t)i->event.arg0);
	struct vcpu_hints *v = sign ? vcpu_get(h, i->vcpu) : NULL;

	(void)m;
	if (!v)
		return;
	if (sign == EXIT_SPINS) {
		run_extend(v, &v->spin, HINT_SPIN, i->t, spin_gap_ns(&v->spin));
		return;
	}
	if (sign == EXIT_SERVES_GUEST)
		nested_end(v, i->t);
	if (sign == EXIT_ENTERS_GUEST && !v->in_guest_of_its_own) {
		v->in_guest_of_its_own = true;
		v->nested = (struct run){.begin = i->t, .last = i->t, .count = 1};
	}
}

/* ---- devices ---- */

/* Registers that are clocks: who reads them wants to know the time. */
static bool register_is_clock(uint64_t address, bool port)
{
	static const struct {
		bool port;
		uint64_t first, last;
	} clocks[] = {
		{true, 0x40, 0x43},              /* PIT */
		{true, 0x61, 0x61},              /* its gate, which calibration reads */
		{true, 0x70, 0x71},              /* RTC */
		{true, 0x608, 0x60b},            /* ACPI PM timer of QEMU's q35 */
		{true, 0xb008, 0xb00b},          /* and pc */
		{false, 0xfed00000, 0xfed003ff}, /* HPET */
		{false, 0xfee00000, 0xfee00fff}, /* local APIC: its timer's count */
	};

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (clocks[i].port == port && address >= clocks[i].first &&
		    address <= clocks[i].last)
			return true;
	}
	return false;
}

enum { PORT_MARK = 63, POLL_MIN = 10, POLL_READS_PERCENT = 80 };
static const int64_t poll_gap_ns = 2000000;

static void device_access(struct hints *h, const struct host_instant *i, uint64_t address,
			  bool port, bool read)
{
	struct vcpu_hints *v = vcpu_get(h, i->vcpu);
	uint64_t what = address | (uint64_t)port << PORT_MARK;
	struct run *r;

	if (!v || register_is_clock(address, port))
		return;
	r = v->registers;
	for (size_t k = 0; k < REGISTERS; k++) {
		struct run *x = &v->registers[k];

		x->others += x->count && (!read || x->what != what);
		if (x->count && x->what == what) {
			r = x;
			break;
		}
		if (x->last.ns < r->last.ns)
			r = x;
	}
	if (!read)
		return;
	if (r->count && r->what != what) {
		struct hint over = hint_of_run(r, HINT_POLL);

		if (r->count >= POLL_MIN &&
		    r->count * 100ull >= (r->count + r->others) * (uint64_t)POLL_READS_PERCENT)
			hint_keep(v, &over);
		*r = (struct run){0};
	}
	r->what = what;
	run_extend(v, r, HINT_POLL, i->t, poll_gap_ns);
}

static void on_pio(struct hints *h, const struct model *m, const struct host_instant *i)
{
	(void)m;
	device_access(h, i, (uint32_t)i->event.arg0, true, (uint32_t)i->event.arg1 == 0);
}

static void on_mmio(struct hints *h, const struct model *m, const struct host_instant *i)
{
	uint32_t kind = (uint32_t)i->event.arg1;

	(void)m;
	if (kind) /* a read that is answered comes a second time */
		device_access(h, i, i->event.arg0, false, kind == 1);
}

/* ---- calls to other CPUs ---- */

/* Linux's vectors by which one CPU has another run a function (arch/x86, irq_vectors.h), flushes of
 * its TLB included. */
static bool vector_calls(uint32_t vector)
{
	return vector == 0xfb || vector == 0xfc;
}

static void on_accept(struct hints *h, const struct model *m, const struct host_instant *i)
{
	uint32_t target;
	struct vcpu_hints *v;

	if (!vector_calls((uint32_t)i->event.arg0) ||
	    model_vcpu_of_apic_id(m, i->vm, (uint32_t)(i->event.arg0 >> 32), &target) ||
	    target == i->vcpu)
		return;
	v = vcpu_get(h, target);
	for (size_t k = 0; v && k < CALLERS; k++) {
		if (v->calls[k].open && v->calls[k].caller == i->vcpu)
			return; /* it waits for the first one already */
	}
	for (size_t k = 0; v && k < CALLERS; k++) {
		if (v->calls[k].open)
			continue;
		v->calls[k].open = true;
		v->calls[k].caller = i->vcpu;
		v->calls[k].since = i->t;
		return;
	}
}

static void calls_answer(struct hints *h, struct vcpu_hints *v, uint32_t vcpu, struct host_ns t)
{
	for (size_t k = 0; k < CALLERS; k++) {
		struct vcpu_hints *caller = NULL;

		if (v->calls[k].open)
			caller = vcpu_get(h, v->calls[k].caller);
		if (caller)
			hint_keep(caller, &(struct hint){.kind = HINT_CALL,
							 .begin = v->calls[k].since,
							 .end = t,
							 .what = vcpu});
		v->calls[k].open = false;
	}
}

void hints_lost(struct hints *h, struct host_ns t)
{
	const int64_t together_ns = 50000000;
	struct loss *newest = h->n_lost ? &h->lost[(h->n_lost - 1) % LOSSES] : NULL;

	if (newest && t.ns - newest->last.ns < together_ns)
		newest->last = t;
	else
		h->lost[h->n_lost++ % LOSSES] = (struct loss){t, t};
}

typedef void (*host_handler)(struct hints *h, const struct model *m, const struct host_instant *i);

static const host_handler host_handlers[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_KVM_EXIT] = on_exit_event,
	[VS_EVENT_KVM_PIO] = on_pio,
	[VS_EVENT_KVM_MMIO] = on_mmio,
	[VS_EVENT_KVM_ACCEPT_IRQ] = on_accept,
	[VS_EVENT_KVM_APICV_ACCEPT_IRQ] = on_accept,
};

void hints_host(struct hints *h, const struct model *m, const struct host_instant *i)
{
	if (i->event.type < VS_EVENT_TYPE_LIMIT && host_handlers[i->event.type])
		host_handlers[i->event.type](h, m, i);
}

void hints_guest(struct hints *h, uint32_t vcpu, const struct guest_instant *i)
{
	struct vcpu_hints *v = vcpu_get(h, vcpu);
	bool answers = i->type == VS_EVENT_VECTOR_ENTRY &&
		       (i->event.arg0 == VS_VECTOR_CALL_FUNCTION ||
			i->event.arg0 == VS_VECTOR_CALL_FUNCTION_SINGLE);

	if (!v || i->type == VS_EVENT_LOST)
		return;
	if (i->type == VS_EVENT_SCHED_SWITCH)
		nested_end(v, i->t); /* no switch lies between its entry and the way back */
	if (i->t.ns - v->guest_last.ns >= 10 * hint_min_ns) {
		v->silence_end = i->t;
		v->since_silence = 0;
	}
	v->guest_last = i->t;
	if (answers && v->since_silence < RETURN_EVENTS)
		v->called = v->silence_end;
	v->since_silence++;
	if (answers)
		calls_answer(h, v, vcpu, i->t);
}

/* ---- the host keeps a vCPU from the guest ---- */

void hints_vcpu(struct hints *h, const struct vcpu_span *span)
{
	struct vcpu_hints *v = vcpu_get(h, span->vcpu);
	int64_t ns = span->end.ns - span->begin.ns;

	if (!v)
		return;
	if (v->kept.longest_ns && v->kept.end.ns != span->begin.ns) {
		hint_keep(v, &v->kept);
		v->kept.longest_ns = 0;
	}
	if (span->state == VCPU_UNKNOWN)
		hint_keep(v, &(struct hint){
				     .kind = HINT_UNSEEN, .begin = span->begin, .end = span->end});
	if (!vcpu_state_denies(span->state) || ns <= 0)
		return;
	if (!v->kept.longest_ns)
		v->kept = (struct hint){.kind = HINT_KEPT, .begin = span->begin};
	v->kept.end = span->end;
	if (ns > v->kept.longest_ns) {
		v->kept.longest_ns = ns;
		v->kept.state = span->state;
		v->kept.pid = span->holder_pid;
	}
}

bool hints_settled(const struct hints *h, const struct model *m, uint32_t vm, struct host_ns t)
{
	for (uint32_t k = 0; k < VS_CPUS_MAX; k++) {
		struct vcpu_span open;
		struct host_ns told;

		if (!h->vcpus[k] || model_vcpu_delivered(m, vm, k, &told) || told.ns >= t.ns)
			continue;
		if (model_vcpu_current(m, vm, k, &open) || told.ns != open.begin.ns)
			return false;
	}
	return true;
}

/* ---- what a stretch makes of it ---- */

struct view { /* of one vCPU's hints, for one stretch */
	const struct stall_facts *f;
	struct interval within;
};

static const struct hint *hint_at(const struct vcpu_hints *v, uint64_t i)
{
	return &v->ring[i % HINTS_KEPT];
}

static uint64_t hint_first(const struct vcpu_hints *v)
{
	return v->n > HINTS_KEPT ? v->n - HINTS_KEPT : 0;
}

static void add_hint(struct intervals *s, const struct view *view, const struct hint *hint)
{
	intervals_add(s, hint->begin.ns, hint->end.ns, view->within);
}

/* All hints of this kind (about `what`, unless it is NULL) that lie in the stretch. */
static void collect(const struct view *view, const struct vcpu_hints *v, enum hint_kind kind,
		    const uint64_t *what, struct intervals *out)
{
	for (uint64_t i = hint_first(v); i < v->n; i++) {
		const struct hint *hint = hint_at(v, i);

		if (hint->kind == kind && (!what || hint->what == *what))
			add_hint(out, view, hint);
	}
}

/* The longest time that the host kept this vCPU from the guest within the stretch explains it. */
static void collect_kept(const struct view *view, const struct model *m, const struct vcpu_hints *v,
			 uint32_t vcpu, struct intervals *out, struct hint *longest)
{
	struct hint now = v->kept;
	struct vcpu_span open;
	struct host_ns told;

	*longest = (struct hint){0};
	for (uint64_t i = hint_first(v); i <= v->n; i++) {
		const struct hint *hint = i < v->n ? hint_at(v, i) : &now;
		size_t n = out->n;

		if (hint->kind != HINT_KEPT || (i == v->n && !now.longest_ns))
			continue;
		add_hint(out, view, hint);
		if ((out->n != n || i == v->n) && hint->end.ns > view->within.begin &&
		    hint->begin.ns < view->within.end && hint->longest_ns > longest->longest_ns)
			*longest = *hint;
	}
	if (model_vcpu_delivered(m, view->f->vm, vcpu, &told) ||
	    model_vcpu_current(m, view->f->vm, vcpu, &open) || told.ns != open.begin.ns ||
	    !vcpu_state_denies(open.state) || open.end.ns - open.begin.ns < hint_min_ns)
		return;
	intervals_add(out, open.begin.ns, open.end.ns, view->within);
	if (open.end.ns - open.begin.ns > longest->longest_ns)
		*longest = (struct hint){.kind = HINT_KEPT,
					 .state = open.state,
					 .pid = open.holder_pid,
					 .begin = open.begin,
					 .end = open.end,
					 .longest_ns = open.end.ns - open.begin.ns};
}

/* What nobody knows of this vCPU, or not yet. */
static void collect_unseen(const struct view *view, const struct model *m,
			   const struct vcpu_hints *v, uint32_t vcpu, struct intervals *out)
{
	struct vcpu_span open;
	struct host_ns told;

	collect(view, v, HINT_UNSEEN, NULL, out);
	if (model_vcpu_delivered(m, view->f->vm, vcpu, &told) ||
	    model_vcpu_current(m, view->f->vm, vcpu, &open))
		return;
	if (open.state == VCPU_UNKNOWN || told.ns != open.begin.ns)
		intervals_add(out, told.ns, view->within.end, view->within);
}

/* When the vCPU spun or, with a task to run, halted: that is how paravirtual locks wait. */
static void collect_waits(const struct view *view, const struct vcpu_hints *v,
			  struct intervals *out)
{
	const struct stall_facts *f = view->f;

	if (v) {
		struct hint now = hint_of_run(&v->spin, HINT_SPIN);

		collect(view, v, HINT_SPIN, NULL, out);
		/* Its last exit does not end it. */
		now.end.ns += spin_gap_ns(&v->spin);
		if (v->spin.count > 1)
			add_hint(out, view, &now);
	}
	if (f->kind != GUEST_CPU_TASK)
		return;
	for (unsigned i = 0; i < f->n_halts; i++)
		intervals_add(out, f->halts[i].begin.ns, f->halts[i].end.ns, view->within);
}

static int64_t common_ns(const struct intervals *a, const struct intervals *b)
{
	struct intervals both;

	intervals_common(a, b, &both);
	return intervals_length(&both);
}

static int64_t halted_ns(const struct view *view, const struct intervals *s)
{
	struct intervals halts = {0};

	for (unsigned i = 0; i < view->f->n_halts; i++)
		intervals_add(&halts, view->f->halts[i].begin.ns, view->f->halts[i].end.ns,
			      view->within);
	return common_ns(s, &halts);
}

static struct facts_peer peer_of(uint32_t vcpu, const struct hint *kept)
{
	return (struct facts_peer){
		.vcpu = vcpu, .state = kept->state, .pid = kept->pid, .known = true};
}

/* Calls that this vCPU has sent to `to`, answered or not. */
static void collect_calls(const struct hints *h, const struct view *view, uint32_t vcpu,
			  uint32_t to, struct intervals *out)
{
	const uint64_t what = to;
	const struct vcpu_hints *target = h->vcpus[to];

	if (h->vcpus[vcpu])
		collect(view, h->vcpus[vcpu], HINT_CALL, &what, out);
	for (size_t k = 0; k < CALLERS; k++) {
		if (target->calls[k].open && target->calls[k].caller == vcpu)
			intervals_add(out, target->calls[k].since.ns, view->within.end,
				      view->within);
	}
}

/*
 * Without a sign of what the guest waited for: its wait, in guest mode, ended when another vCPU
 * came back to the guest. Chance does that to one wait in a hundred.
 */
static void coincidence(const struct hints *h, const struct view *view, uint32_t peer,
			const struct intervals *kept, const struct hint *longest,
			struct facts_waits *out)
{
	const struct stall_facts *f = view->f;
	int64_t denied = facts_denied_by_guest(f), slack = hint_min_ns + (int64_t)f->err_ns;
	struct host_ns end = f->waiter_ns >= f->tick_gap_ns ? f->end : f->tick_gap_end;
	int64_t apart = end.ns - longest->end.ns, ns;
	struct intervals wait = {0};

	intervals_add(&wait, end.ns - denied, end.ns, view->within);
	ns = common_ns(&wait, kept);
	if (denied < f->than_ns || f->ongoing || !longest->longest_ns || apart < -slack ||
	    apart > slack || ns < denied / 2 || ns <= out->lock_ns)
		return;
	out->coincidence = true;
	if (h->vcpus[peer]->called.ns - longest->end.ns < slack &&
	    h->vcpus[peer]->called.ns - longest->end.ns > -slack) {
		out->call_ns = ns;
		out->call_target = peer_of(peer, longest);
	} else {
		out->lock_ns = ns;
		out->lock_owner = peer_of(peer, longest);
	}
}

static void longest_note(struct facts_waits *out, const struct intervals *waited)
{
	int64_t ns = intervals_longest(waited);

	out->longest_ns = ns > out->longest_ns ? ns : out->longest_ns;
}

static void fill_peers(const struct hints *h, const struct model *m, const struct view *view,
		       const struct intervals *own_kept, struct facts_waits *out)
{
	uint32_t vcpu = view->f->vcpu;
	struct intervals all = {0}, waits = {0};

	collect_waits(view, h->vcpus[vcpu], &all);
	intervals_without(&all, own_kept, &waits);
	for (uint32_t k = 0; k < VS_CPUS_MAX; k++) {
		struct intervals kept = {0}, calls = {0}, called = {0}, rest, both, unseen;
		struct hint longest;
		int64_t ns;

		if (!h->vcpus[k] || k == vcpu)
			continue;
		collect_kept(view, m, h->vcpus[k], k, &kept, &longest);
		unseen = kept;
		collect_unseen(view, m, h->vcpus[k], k, &unseen);
		ns = intervals_length(&unseen);
		if (ns > out->peer_kept_ns)
			out->peer_kept_ns = ns;
		if (!kept.n)
			continue;
		collect_calls(h, view, vcpu, k, &calls);
		intervals_without(&calls, own_kept, &called);
		intervals_common(&called, &kept, &both);
		ns = intervals_length(&both);
		if (ns > out->call_ns) {
			out->call_ns = ns;
			longest_note(out, &both);
			out->call_target = peer_of(k, &longest);
		}
		intervals_without(&waits, &called, &rest);
		intervals_common(&rest, &kept, &both);
		ns = intervals_length(&both);
		if (ns > out->lock_ns) {
			out->lock_ns = ns;
			longest_note(out, &both);
			out->lock_halted_ns = halted_ns(view, &both);
			out->lock_owner = peer_of(k, &longest);
		}
	}
	if (out->call_ns || out->lock_ns)
		return;
	for (uint32_t k = 0; k < VS_CPUS_MAX; k++) {
		struct intervals kept = {0};
		struct hint longest;

		if (!h->vcpus[k] || k == vcpu)
			continue;
		collect_kept(view, m, h->vcpus[k], k, &kept, &longest);
		if (kept.n)
			coincidence(h, view, k, &kept, &longest, out);
	}
}

static void fill_poll(const struct view *view, const struct vcpu_hints *v,
		      const struct intervals *own_kept, struct facts_waits *out)
{
	for (uint64_t i = hint_first(v); i < v->n + REGISTERS; i++) {
		const struct run *r = i < v->n ? NULL : &v->registers[i - v->n];
		struct hint hint = r ? hint_of_run(r, HINT_POLL) : *hint_at(v, i);
		struct intervals polled = {0}, left;
		int64_t ns;

		if (hint.kind != HINT_POLL || hint.count < POLL_MIN ||
		    (r &&
		     r->count * 100ull < (r->count + r->others) * (uint64_t)POLL_READS_PERCENT))
			continue;
		add_hint(&polled, view, &hint);
		intervals_without(&polled, own_kept, &left);
		ns = intervals_length(&left);
		if (ns <= out->poll_ns)
			continue;
		out->poll_ns = ns;
		out->polled = hint.what & ~(1ull << PORT_MARK);
		out->polled_port = hint.what >> PORT_MARK;
		out->polls = hint.count;
	}
}

static void fill_nested(const struct view *view, const struct vcpu_hints *v,
			const struct intervals *own_kept, struct facts_waits *out)
{
	struct intervals nested = {0}, left;

	collect(view, v, HINT_NESTED, NULL, &nested);
	if (v->in_guest_of_its_own)
		intervals_add(&nested, v->nested.begin.ns, view->within.end, view->within);
	intervals_without(&nested, own_kept, &left);
	out->nested_ns = intervals_length(&left);
}

/* What a wait began with may be missing, too. */
static const int64_t lossy_before_ns = 10000000;

static bool lossy(const struct hints *h, const struct stall_facts *f)
{
	for (uint64_t i = 0; i < h->n_lost && i < LOSSES; i++) {
		if (h->lost[i].last.ns >= f->begin.ns - lossy_before_ns &&
		    h->lost[i].first.ns <= f->end.ns)
			return true;
	}
	return false;
}

void hints_fill(const struct hints *h, const struct model *m, struct stall_facts *f)
{
	const struct view view = {f, {f->begin.ns, f->end.ns}};
	struct facts_waits *w = &f->waits;
	struct intervals own_kept = {0};
	struct hint longest;

	*w = (struct facts_waits){.lossy = lossy(h, f)};
	if (!f->vcpu_known || f->vcpu >= VS_CPUS_MAX)
		return;
	if (h->vcpus[f->vcpu]) {
		collect_kept(&view, m, h->vcpus[f->vcpu], f->vcpu, &own_kept, &longest);
		fill_poll(&view, h->vcpus[f->vcpu], &own_kept, w);
		fill_nested(&view, h->vcpus[f->vcpu], &own_kept, w);
	}
	fill_peers(h, m, &view, &own_kept, w);
}
