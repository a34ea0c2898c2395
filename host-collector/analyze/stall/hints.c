/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>

#include "host-collector/analyze/stall/hints_internal.h"

struct hints *hints_new(void)
{
	return calloc(1, sizeof(struct hints));
}

void hints_free(struct hints *h)
{
	for (size_t i = 0; h && i < h->vcpus_end; i++) {
		if (h->vcpus[i])
			free(h->vcpus[i]->ring);
		free(h->vcpus[i]);
	}
	if (h)
		shown_events_fini(&h->shown);
	free(h);
}

static struct vcpu_hints *vcpu_new(struct hints *h, uint32_t vcpu)
{
	h->vcpus[vcpu] = calloc(1, sizeof(struct vcpu_hints));
	if (h->vcpus[vcpu] && vcpu >= h->vcpus_end)
		h->vcpus_end = vcpu + 1;
	return h->vcpus[vcpu];
}

static inline struct vcpu_hints *vcpu_get(struct hints *h, uint32_t vcpu)
{
	if (vcpu >= VS_CPUS_MAX)
		return NULL;
	return h->vcpus[vcpu] ? h->vcpus[vcpu] : vcpu_new(h, vcpu);
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

struct hint hint_of_run(const struct run *r, enum hint_kind kind)
{
	return (struct hint){.kind = kind,
			     .begin = r->begin,
			     .end = r->last,
			     .what = r->what,
			     .count = r->count};
}

/* Extends the run to `t`. If its last event is more than `gap_ns` ago, ends it and begins a new
 * one. */
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

int64_t hint_spin_gap_ns(const struct run *r)
{
	return 5 * (r->last.ns - r->begin.ns) + 200000;
}

__attribute__((noinline)) static void nested_over(struct vcpu_hints *v, struct host_ns t)
{
	struct hint over = hint_of_run(&v->nested, HINT_NESTED);

	over.end = t;
	hint_keep(v, &over);
	v->in_guest_of_its_own = false;
}

static void nested_end(struct vcpu_hints *v, struct host_ns t)
{
	if (v->in_guest_of_its_own)
		nested_over(v, t);
}

/* Exits have few reasons: mostly this one's sign was found before. */
static inline enum exit_sign sign_of(struct hints *h, uint32_t isa, uint32_t reason)
{
	struct known_sign *known = &h->signs[reason % KNOWN_SIGNS];

	if (known->isa != isa || known->reason != reason)
		*known = (struct known_sign){isa, reason, exit_sign(isa, reason)};
	return known->sign;
}

static void on_exit_event(struct hints *h, const struct model *m, const struct host_instant *i)
{
	enum exit_sign sign = sign_of(h, ev_kvm_exit_isa(&i->event), ev_kvm_exit_reason(&i->event));
	struct vcpu_hints *v = sign ? vcpu_get(h, i->vcpu) : NULL;

	(void)m;
	if (!v)
		return;
	if (sign == EXIT_SPINS) {
		h->spins_exit = true;
		run_extend(v, &v->spin, HINT_SPIN, i->t, hint_spin_gap_ns(&v->spin));
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

/* Returns true if the register is part of a clock. A guest that reads it asks for the time. */
static bool register_is_clock(uint64_t address, bool port)
{
	static const struct {
		bool port;
		uint64_t first, last;
	} clocks[] = {
		{true, 0x40, 0x43},              /* PIT */
		{true, 0x61, 0x61},              /* gate of the PIT, read for calibration */
		{true, 0x70, 0x71},              /* RTC */
		{true, 0x608, 0x60b},            /* ACPI PM timer of QEMU's q35 */
		{true, 0xb008, 0xb00b},          /* and pc */
		{false, 0xfed00000, 0xfed003ff}, /* HPET */
		{false, 0xfee00000, 0xfee00fff}, /* local APIC: count of its timer */
	};

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (clocks[i].port == port && address >= clocks[i].first &&
		    address <= clocks[i].last)
			return true;
	}
	return false;
}

enum { POLL_MIN = 10, POLL_READS_PERCENT = 80 };
static const int64_t poll_gap_ns = 2000000;

bool hint_run_polls(const struct run *r)
{
	return r->count >= POLL_MIN &&
	       r->count * 100ull >= (r->count + r->others) * (uint64_t)POLL_READS_PERCENT;
}

static void device_access(struct hints *h, const struct host_instant *i, uint64_t address,
			  bool port, bool read)
{
	struct vcpu_hints *v = vcpu_get(h, i->vcpu);
	uint64_t what = address | (uint64_t)port << HINT_PORT_BIT;
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

		if (hint_run_polls(r))
			hint_keep(v, &over);
		*r = (struct run){0};
	}
	r->what = what;
	run_extend(v, r, HINT_POLL, i->t, poll_gap_ns);
}

static void on_pio(struct hints *h, const struct model *m, const struct host_instant *i)
{
	(void)m;
	device_access(h, i, ev_kvm_pio_port(&i->event), true, !ev_kvm_pio_write(&i->event));
}

static void on_mmio(struct hints *h, const struct model *m, const struct host_instant *i)
{
	uint32_t kind = ev_kvm_mmio_kind(&i->event);

	(void)m;
	if (kind) /* a read that is answered is reported twice */
		device_access(h, i, ev_kvm_mmio_address(&i->event), false, kind == 1);
}

/* ---- calls to other CPUs ---- */

/* Returns true for the vectors by which Linux has another CPU run a function, which includes TLB
 * flushes (arch/x86, irq_vectors.h). */
static bool vector_calls(uint32_t vector)
{
	return vector == 0xfb || vector == 0xfc;
}

static void on_accept(struct hints *h, const struct model *m, const struct host_instant *i)
{
	uint32_t target;
	struct vcpu_hints *v;

	if (!vector_calls(ev_kvm_apic_accept_irq_vector(&i->event)) ||
	    model_vcpu_of_apic_id(m, i->vm, ev_kvm_apic_accept_irq_apic_id(&i->event), &target) ||
	    target == i->vcpu)
		return;
	v = vcpu_get(h, target);
	for (size_t k = 0; v && k < CALLERS; k++) {
		if (v->calls[k].open && v->calls[k].caller == i->vcpu)
			return; /* it waits for the first call already */
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

__attribute__((noinline)) static void calls_answer(struct hints *h, struct vcpu_hints *v,
						   uint32_t vcpu, struct host_ns t)
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

/* Returns true if KVM was seen to accept calls to this vCPU, and all that it has not answered yet
 * came after `t`. */
static bool calls_came_after(const struct vcpu_hints *v, struct host_ns t)
{
	bool any = false;

	for (size_t k = 0; k < CALLERS; k++) {
		if (v->calls[k].open && v->calls[k].since.ns <= t.ns)
			return false;
		any |= v->calls[k].open;
	}
	return any;
}

void hints_lost(struct hints *h, const struct model *m, const struct host_instant *i)
{
	const int64_t together_ns = 50000000;
	const struct host_ns t = i->t;
	struct loss *newest = h->n_lost ? &h->lost[(h->n_lost - 1) % LOSSES] : NULL;

	if (newest && t.ns - newest->last.ns < together_ns)
		newest->last = t;
	else
		h->lost[h->n_lost++ % LOSSES] = (struct loss){t, t};
	shown_hits_take(&h->shown, m, VS_SOURCE_HOST, &i->event, i->t, i->err_ns);
}

static void on_block_issue(struct hints *h, const struct model *m, const struct host_instant *i)
{
	struct vcpu_hints *v = vcpu_get(h, i->vcpu);

	(void)m;
	if (!v)
		return;
	v->block_issued = i->t;
	v->block_device = (uint32_t)ev_block_rq_issue_device(&i->event);
}

typedef void (*host_handler)(struct hints *h, const struct model *m, const struct host_instant *i);

static const host_handler host_handlers[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_KVM_EXIT] = on_exit_event,
	[VS_EVENT_KVM_PIO] = on_pio,
	[VS_EVENT_KVM_MMIO] = on_mmio,
	[VS_EVENT_KVM_ACCEPT_IRQ] = on_accept,
	[VS_EVENT_KVM_APICV_ACCEPT_IRQ] = on_accept,
	[VS_EVENT_BLOCK_ISSUE] = on_block_issue,
};

struct event_set hints_host_types(void)
{
	struct event_set set = event_set_flagged(EVENT_EVIDENCE);

	for (uint16_t type = 1; type < VS_EVENT_TYPE_LIMIT; type++) {
		const struct event_set one = EVENT_SET(type);

		if (host_handlers[type] || shown_hits_have(type))
			event_set_add(&set, &one);
	}
	return set;
}

void hints_host(struct hints *h, const struct model *m, const struct host_instant *i)
{
	if (i->event.type < VS_EVENT_TYPE_LIMIT && host_handlers[i->event.type])
		host_handlers[i->event.type](h, m, i);
	else if (shown_hits_have(i->event.type))
		shown_hits_take(&h->shown, m, VS_SOURCE_HOST, &i->event, i->t, i->err_ns);
	else
		shown_events_take(&h->shown, i);
}

void hints_finish(struct hints *h)
{
	shown_hits_flush(&h->shown);
}

/* The guest CPU may have begun to handle a call by another. */
static void vector_entry(struct hints *h, struct vcpu_hints *v, const struct guest_instant *i)
{
	if (ev_vector_entry_number(&i->event) != VS_VECTOR_CALL_FUNCTION &&
	    ev_vector_entry_number(&i->event) != VS_VECTOR_CALL_FUNCTION_SINGLE)
		return;
	if (v->since_silence < RETURN_EVENTS && !calls_came_after(v, v->silence_end))
		v->called = v->silence_end;
	calls_answer(h, v, i->vcpu, i->t);
}

void hints_guest(struct hints *h, const struct model *m, const struct guest_instant *i)
{
	struct vcpu_hints *v = vcpu_get(h, i->vcpu);

	if (shown_hits_have(i->event.type))
		shown_hits_take(&h->shown, m, i->vm, &i->event, i->t, i->err_ns);
	if (!v || i->type == VS_EVENT_LOST)
		return;
	if (i->type == VS_EVENT_SCHED_SWITCH)
		nested_end(v, i->t); /* a nested guest has ended before a switch */
	if (i->t.ns - v->guest_last.ns >= 10 * hint_min_ns) {
		v->silence_end = i->t;
		v->since_silence = 0;
	}
	v->guest_last = i->t;
	if (i->type == VS_EVENT_VECTOR_ENTRY)
		vector_entry(h, v, i);
	v->since_silence++;
}

/* ---- the host keeps a vCPU from the guest ---- */

int32_t hint_keeper(const struct vcpu_span *span, enum keeper *how)
{
	*how = KEEPER_HELD_PCPU;
	if (span->state == VCPU_STOPPED && span->signal_pid) {
		*how = KEEPER_STOPPED;
		return span->signal_pid;
	}
	if (span->state == VCPU_STOPPED && span->asker_pid) {
		*how = KEEPER_ASKED;
		return span->asker_pid;
	}
	if (span->state == VCPU_STOPPED && span->task_state & VS_TASK_TRACED) {
		*how = KEEPER_TRACED; /* a traced thread is woken by its tracer only */
		return span->waker_pid;
	}
	if (span->state == VCPU_BLOCKED && span->wait_class == WAIT_VMM_LOCK) {
		*how = KEEPER_BIG_LOCK;
		return span->waker_pid;
	}
	if (span->state == VCPU_BLOCKED && span->wait_class == WAIT_USERFAULT) {
		*how = KEEPER_PAGE;
		return span->waker_pid;
	}
	return span->holder_pid;
}

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
		v->kept.pid = hint_keeper(span, &v->kept.keeper);
	}
}

bool hints_settled(const struct hints *h, const struct model *m, uint32_t vm, struct host_ns t)
{
	for (uint32_t k = 0; k < h->vcpus_end; k++) {
		struct vcpu_span open;
		struct host_ns delivered;

		if (!h->vcpus[k] || model_vcpu_delivered(m, vm, k, &delivered) ||
		    delivered.ns >= t.ns)
			continue;
		if (model_vcpu_current(m, vm, k, &open) || delivered.ns != open.begin.ns)
			return false;
	}
	return true;
}
