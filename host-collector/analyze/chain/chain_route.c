/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/chain/chain_route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/guest_cpu.h"
#include "host-collector/util/lru.h"

enum {
	VCPUS_MAX = 1024,
	KNOWN_BITS = 11,
	SOURCES = 4,
	HYPERCALL_SEND_IPI = 10,
	DELIVERY_FIXED = 0,
	DELIVERY_LOWEST = 1,
	IRQCHIP_IOAPIC = 2,    /* the pins of this chip have the numbers of GSIs */
	ICR_DELIVERY = 7 << 8, /* 0: fixed */
	ICR_LOGICAL = 1 << 11,
	ICR_SHORTHAND = 3 << 18,
	BROADCAST = 0xff,
};

#define X2APIC_BROADCAST 0xffffffffu

/* An accept follows its source at once, unless the thread is preempted in between. Only vCPU
 * threads also accept without a source (timers), and only after the next VM-entry. If VM-entries
 * are not recorded, a source without an accept is given up after this time. */
#define SOURCE_AGE_NS      100000000ll
#define SOURCE_AGE_VCPU_NS 1000000ll
/* Interval at which pending interrupts are checked. A lost interrupt is found at most this much
 * later. */
#define SWEEP_NS 2500000ll

struct raised {
	enum chain_source source; /* UNKNOWN: empty */
	int32_t pid;
	struct host_ns t;
	int vector; /* -1: unknown */
	bool level; /* its interrupt is level-triggered */
	bool to_known;
	uint32_t to; /* the APIC id of its only destination */
	uint32_t gsi;
	bool accepted; /* an accept followed, or none will follow */
};

struct pcpu_sources {
	struct raised raised[SOURCES];
	unsigned n;
	bool lossy; /* sources may be missing */
	struct host_ns last;
};

struct chain_route {
	struct model *model;
	struct lru index;
	struct chain_vcpu **vcpus;                 /* by slot; reused after an eviction */
	struct chain_vcpu *known[1 << KNOWN_BITS]; /* found last, by lru_place(); NULL: none */
	struct pcpu_sources *pcpus;
	struct chain_listeners listeners;
	int64_t least_limit_ns; /* of theirs */
	bool enters;            /* kvm_entry is recorded */
	struct host_ns next_sweep;
	uint64_t handlers_alone; /* of evicted vCPUs */
};

static void handlers_ask(const struct chain_route *r, struct chain_vcpu *v)
{
	v->handlers_counted = model_data_of(r->model, v->vm).handlers_counted;
}

static struct chain_vcpu *vcpu_search(struct chain_route *r, uint32_t vm, uint32_t vcpu)
{
	bool fresh;
	uint32_t slot = lru_put(&r->index, (uint64_t)vm << 32 | vcpu, &fresh);

	if (!fresh)
		return r->vcpus[slot];
	if (r->vcpus[slot]) {
		r->handlers_alone += r->vcpus[slot]->handlers_alone;
		chain_vcpu_finish(r->vcpus[slot], model_now(r->model));
	} else {
		r->vcpus[slot] =
			aligned_alloc(_Alignof(struct chain_vcpu), sizeof(struct chain_vcpu));
	}
	if (!r->vcpus[slot]) {
		lru_remove(&r->index, slot);
		return NULL;
	}
	chain_vcpu_init(r->vcpus[slot], vm, vcpu, &r->listeners);
	handlers_ask(r, r->vcpus[slot]);
	return r->vcpus[slot];
}

static inline uint32_t known_place(uint32_t vm, uint32_t vcpu)
{
	return lru_place((uint64_t)vm << 32 | vcpu, KNOWN_BITS);
}

/* Returns the vCPU if it was found before and defers no decision, as almost always; else NULL. */
static inline struct chain_vcpu *vcpu_settled(const struct chain_route *r, uint32_t vm,
					      uint32_t vcpu)
{
	struct chain_vcpu *v = r->known[known_place(vm, vcpu)];

	/* Which vCPU was used last matters only when the index is nearly full. */
	return v && v->vm == vm && v->vcpu == vcpu && !v->n_deferred &&
			       r->index.count <= VCPUS_MAX / 2
		       ? v
		       : NULL;
}

/* Finds or adds any vCPU, and advances it to `t`. Returns NULL if memory ran out. Not inlined: the
 * callers would pay for its stack frame. */
__attribute__((noinline)) static struct chain_vcpu *vcpu_advance(struct chain_route *r, uint32_t vm,
								 uint32_t vcpu, struct host_ns t)
{
	struct chain_vcpu *v = vcpu_search(r, vm, vcpu);

	r->known[known_place(vm, vcpu)] = v;
	if (v)
		chain_vcpu_now(v, t);
	return v;
}

static inline struct chain_vcpu *vcpu_at(struct chain_route *r, uint32_t vm, uint32_t vcpu,
					 struct host_ns t)
{
	struct chain_vcpu *v = vcpu_settled(r, vm, vcpu);

	return v ? v : vcpu_advance(r, vm, vcpu, t);
}

static inline struct chain_vcpu *vcpu_of_instant(struct chain_route *r,
						 const struct host_instant *i)
{
	return i->of_vcpu ? vcpu_at(r, i->vm, i->vcpu, i->t) : NULL;
}

/* ---- what raised it ---- */

/* Ends a source after which no accept can follow any more. Reports it if no accept followed. */
static void raised_end(struct chain_route *r, struct raised *s)
{
	uint32_t vm, vcpu = CHAIN_NO_VCPU;

	if (s->source != CHAIN_SOURCE_UNKNOWN && !s->accepted &&
	    !model_vm_of_thread(r->model, s->pid, &vm)) {
		if (s->to_known && model_vcpu_of_apic_id(r->model, vm, s->to, &vcpu))
			vcpu = CHAIN_NO_VCPU;
		for (size_t i = 0; i < r->listeners.n; i++) {
			const struct chain_sink *sink = &r->listeners.of[i].sink;

			sink->ignored(sink->context, vm, vcpu, s->source,
				      s->vector < 0 ? 0 : (uint8_t)s->vector);
		}
	}
	s->source = CHAIN_SOURCE_UNKNOWN;
}

static void raise(struct chain_route *r, const struct host_instant *i, struct raised s)
{
	struct pcpu_sources *p = &r->pcpus[i->event.cpu];
	struct raised *slot = &p->raised[p->n++ % SOURCES];

	raised_end(r, slot);
	*slot = s;
	slot->pid = i->event.pid;
	slot->t = i->t;
}

static struct raised *raised_find(struct chain_route *r, const struct host_instant *i,
				  const struct chain_accept *a, uint32_t apic_id)
{
	struct pcpu_sources *p = &r->pcpus[i->event.cpu];
	int64_t age_ns = i->of_vcpu && !r->enters ? SOURCE_AGE_VCPU_NS : SOURCE_AGE_NS;

	for (unsigned k = 1; k <= SOURCES; k++) {
		struct raised *s = &p->raised[(p->n - k) % SOURCES];

		if (s->source != CHAIN_SOURCE_UNKNOWN && s->pid == i->event.pid &&
		    (s->vector < 0 || s->vector == a->vector) && (!s->level || a->level) &&
		    (!s->to_known || s->to == apic_id) && i->t.ns - s->t.ns <= age_ns)
			return s;
	}
	return NULL;
}

/* Ends all sources of this thread. */
static void raised_over(struct chain_route *r, const struct host_instant *i)
{
	struct pcpu_sources *p = &r->pcpus[i->event.cpu];

	for (unsigned k = 0; k < SOURCES; k++) {
		if (p->raised[k].source != CHAIN_SOURCE_UNKNOWN && p->raised[k].pid == i->event.pid)
			raised_end(r, &p->raised[k]);
	}
}

static void on_msi(struct chain_route *r, const struct host_instant *i)
{
	raise(r, i,
	      (struct raised){.source = CHAIN_SOURCE_MSI,
			      .vector = (int)(ev_kvm_msi_set_irq_data(&i->event) & 0xff)});
}

static void on_set_irq(struct chain_route *r, const struct host_instant *i)
{
	if (ev_kvm_set_irq_level(&i->event))
		raise(r, i,
		      (struct raised){.source = CHAIN_SOURCE_GSI,
				      .vector = -1,
				      .gsi = ev_kvm_set_irq_gsi(&i->event)});
}

/* The IOAPIC receives the EOI of a level-triggered interrupt. If the line is still high, the
 * interrupt comes again. */
static void on_ack(struct chain_route *r, const struct host_instant *i)
{
	if (ev_kvm_ack_irq_chip(&i->event) == IRQCHIP_IOAPIC)
		raise(r, i,
		      (struct raised){.source = CHAIN_SOURCE_GSI,
				      .vector = -1,
				      .level = true,
				      .accepted = true,
				      .gsi = ev_kvm_ack_irq_pin(&i->event)});
}

static void on_ipi(struct chain_route *r, const struct host_instant *i)
{
	uint32_t icr = ev_kvm_apic_ipi_icr_low(&i->event);
	uint32_t to = ev_kvm_apic_ipi_destination(&i->event);
	bool one =
		!(icr & (ICR_LOGICAL | ICR_SHORTHAND)) && to != BROADCAST && to != X2APIC_BROADCAST;

	raise(r, i,
	      (struct raised){.source = CHAIN_SOURCE_IPI,
			      .vector = (int)(icr & 0xff),
			      .to_known = one,
			      .to = to,
			      .accepted = icr & ICR_DELIVERY});
}

static void on_hypercall(struct chain_route *r, const struct host_instant *i)
{
	if (ev_kvm_hypercall_number(&i->event) == HYPERCALL_SEND_IPI)
		raise(r, i,
		      (struct raised){.source = CHAIN_SOURCE_IPI, .vector = -1, .accepted = true});
}

/* ---- whose it is ---- */

struct target {
	uint32_t vm, vcpu;
	bool certain;
};

static bool target_find(const struct chain_route *r, const struct host_instant *i, uint32_t apic_id,
			struct target *out)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n, found = 0;

	out->certain = true;
	if (i->of_vcpu)
		out->vm = i->vm;
	if (i->of_vcpu || !model_vm_of_thread(r->model, i->event.pid, &out->vm))
		return !model_vcpu_of_apic_id(r->model, out->vm, apic_id, &out->vcpu);
	out->certain = false;
	n = model_vms(r->model, vms, MODEL_VMS_MAX);
	for (size_t k = 0; k < n; k++) {
		uint32_t vcpu;

		if (model_vcpu_of_apic_id(r->model, vms[k], apic_id, &vcpu))
			continue;
		out->vm = vms[k];
		out->vcpu = vcpu;
		found++;
	}
	return found == 1;
}

static void accepted(struct chain_route *r, const struct host_instant *i, bool posted)
{
	const struct vs_event *e = &i->event;
	uint32_t delivery = ev_kvm_apic_accept_irq_delivery(e) >> 8;
	const uint32_t apic_id = ev_kvm_apic_accept_irq_apic_id(e);
	struct chain_accept a = {
		.vector = (uint8_t)ev_kvm_apic_accept_irq_vector(e),
		.level = ev_kvm_apic_accept_irq_level(e) != 0,
		.posted = posted,
		.raiser = e->pid,
		.err_ns = i->err_ns,
	};
	struct raised *source;
	struct target target;
	struct chain_vcpu *v;

	if ((delivery != DELIVERY_FIXED && delivery != DELIVERY_LOWEST) ||
	    !target_find(r, i, apic_id, &target))
		return;
	v = vcpu_at(r, target.vm, target.vcpu, i->t);
	if (!v)
		return;
	a.certain = target.certain;
	source = raised_find(r, i, &a, apic_id);
	a.own = i->of_vcpu && i->vm == target.vm && i->vcpu == target.vcpu;
	if (source) {
		source->accepted = true;
		a.source_known = true;
		a.source = source->source;
		a.source_at = source->t;
		a.gsi = source->gsi;
	} else if (a.own && !a.level && !r->pcpus[e->cpu].lossy) {
		a.source = CHAIN_SOURCE_TIMER; /* only timers are accepted without a source */
	}
	chain_vcpu_accept(v, i->t, &a);
}

static void on_accept(struct chain_route *r, const struct host_instant *i)
{
	accepted(r, i, false);
}

static void on_posted(struct chain_route *r, const struct host_instant *i)
{
	accepted(r, i, true);
}

/* ---- the vCPU's own thread ---- */

static void on_inject(struct chain_route *r, const struct host_instant *i)
{
	struct chain_vcpu *v = vcpu_of_instant(r, i);
	const uint32_t vector = ev_kvm_inj_virq_vector(&i->event);

	if (v && !ev_kvm_inj_virq_soft(&i->event) && vector < CHAIN_VECTORS)
		chain_vcpu_inject(v, (struct chain_when){i->t, i->err_ns}, (uint8_t)vector,
				  ev_kvm_inj_virq_again(&i->event) != 0);
}

static void on_entry(struct chain_route *r, const struct host_instant *i)
{
	struct chain_vcpu *v = vcpu_of_instant(r, i);

	if (!v)
		return;
	v->pcpu = i->event.cpu;
	chain_vcpu_entry(v, i->t);
	raised_over(r, i);
	r->enters = true;
	r->pcpus[i->event.cpu].lossy = false;
}

static void on_exit_event(struct chain_route *r, const struct host_instant *i)
{
	struct chain_vcpu *v = vcpu_of_instant(r, i);

	if (!v)
		return;
	v->pcpu = i->event.cpu;
	chain_vcpu_moved(v, i->t, CHAIN_IN_EXIT);
}

static void on_eoi(struct chain_route *r, const struct host_instant *i)
{
	struct chain_vcpu *v = vcpu_of_instant(r, i);

	if (v)
		chain_vcpu_eoi(v, i->t, (int)ev_kvm_eoi_vector(&i->event));
}

static void on_switch(struct chain_route *r, const struct host_instant *i)
{
	const struct vs_event *e = &i->event;
	const uint64_t state = ev_sched_switch_state(e);
	bool waits = !state || state & (VS_TASK_STOPPED | VS_TASK_TRACED | VS_TASK_FROZEN);
	struct chain_vcpu *out = vcpu_of_instant(r, i), *in;
	uint32_t vm, vcpu;

	r->pcpus[e->cpu].lossy = false;
	if (out)
		chain_vcpu_moved(out, i->t, waits ? CHAIN_WAITING : CHAIN_SLEEPING);
	if (model_vcpu_of_thread(r->model, e->pid2, &vm, &vcpu))
		return;
	in = vcpu_at(r, vm, vcpu, i->t);
	if (in)
		chain_vcpu_scheduled(in, i->t, e->cpu);
}

static void on_wakeup(struct chain_route *r, const struct host_instant *i)
{
	struct chain_vcpu *v = vcpu_of_instant(r, i);

	if (v && (v->where == CHAIN_SLEEPING || v->where == CHAIN_NOWHERE))
		chain_vcpu_woken(v, i->t); /* otherwise the thread had not left its pCPU yet */
}

static void on_host_lost(struct chain_route *r, const struct host_instant *i)
{
	struct pcpu_sources *p = &r->pcpus[i->event.cpu];
	struct host_ns from = loss_since(&i->event, i->t, p->last);

	if (i->event.cpu == VS_CPU_COLLECTOR)
		return;
	memset(p->raised, 0, sizeof(p->raised));
	p->lossy = true;
	for (uint32_t slot = 0; slot < lru_slots(&r->index); slot++) {
		if (!lru_used(&r->index, slot))
			continue;
		chain_vcpu_now(r->vcpus[slot], i->t);
		chain_vcpu_host_gap(r->vcpus[slot], from, i->event.cpu);
	}
}

/* Returns true if the guest's newest event shows its CPU idle, or if the CPU's state is unknown. */
static bool guest_idles(const struct chain_route *r, const struct chain_vcpu *v)
{
	struct guest_span span;
	uint16_t cpu;

	return model_guest_cpu_of_vcpu(r->model, v->vm, v->vcpu, &cpu) ||
	       model_guest_current(r->model, v->vm, cpu, &span) || span.state == GUEST_CPU_IDLE ||
	       span.state == GUEST_CPU_UNKNOWN;
}

static void sweep_all(struct chain_route *r, struct host_ns now)
{
	r->next_sweep.ns = now.ns + SWEEP_NS;
	for (uint32_t slot = 0; slot < lru_slots(&r->index); slot++) {
		struct chain_vcpu *v = r->vcpus[slot];

		if (!lru_used(&r->index, slot))
			continue;
		handlers_ask(r, v);
		chain_vcpu_sweep(v, now, !v->n_accepted || guest_idles(r, v));
	}
}

static inline void sweep(struct chain_route *r, struct host_ns now)
{
	if (now.ns >= r->next_sweep.ns)
		sweep_all(r, now);
}

static void span_take(void *context, const struct vcpu_span *span)
{
	struct chain_route *r = context;
	uint32_t slot;

	if (span->state != VCPU_HALTED || span->end.ns - span->begin.ns < r->least_limit_ns)
		return;
	slot = lru_find(&r->index, (uint64_t)span->vm << 32 | span->vcpu);
	if (slot != LRU_NONE)
		chain_vcpu_halted(r->vcpus[slot], span->begin, span->end);
}

typedef void (*host_step)(struct chain_route *r, const struct host_instant *i);

static const host_step host_steps[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_LOST] = on_host_lost,        [VS_EVENT_SCHED_SWITCH] = on_switch,
	[VS_EVENT_SCHED_WAKEUP] = on_wakeup,   [VS_EVENT_KVM_ENTRY] = on_entry,
	[VS_EVENT_KVM_EXIT] = on_exit_event,   [VS_EVENT_KVM_HYPERCALL] = on_hypercall,
	[VS_EVENT_KVM_MSI] = on_msi,           [VS_EVENT_KVM_SET_IRQ] = on_set_irq,
	[VS_EVENT_KVM_IPI] = on_ipi,           [VS_EVENT_KVM_ACK_IRQ] = on_ack,
	[VS_EVENT_KVM_ACCEPT_IRQ] = on_accept, [VS_EVENT_KVM_APICV_ACCEPT_IRQ] = on_posted,
	[VS_EVENT_KVM_INJECT] = on_inject,     [VS_EVENT_KVM_EOI] = on_eoi,
	[VS_EVENT_KVM_PV_EOI] = on_eoi,
};

static void host_take(void *context, const struct host_instant *i)
{
	struct chain_route *r = context;

	sweep(r, i->t);
	if (i->event.type < VS_EVENT_TYPE_LIMIT && host_steps[i->event.type])
		host_steps[i->event.type](r, i);
	r->pcpus[i->event.cpu].last = i->t;
}

/* ---- the guest ---- */

typedef void (*guest_step)(struct chain_vcpu *v, const struct guest_instant *i);

static void on_irq(struct chain_vcpu *v, const struct guest_instant *i)
{
	chain_vcpu_handler(v, (struct chain_when){i->t, i->err_ns}, false,
			   (uint32_t)ev_handler_number(&i->event));
}

static void on_irq_exit(struct chain_vcpu *v, const struct guest_instant *i)
{
	chain_vcpu_handler_exit(v, i->t, false, (uint32_t)ev_handler_number(&i->event));
}

static void on_vector(struct chain_vcpu *v, const struct guest_instant *i)
{
	chain_vcpu_handler(v, (struct chain_when){i->t, i->err_ns}, true,
			   (uint8_t)ev_vector_entry_vector(&i->event));
}

static void on_vector_exit(struct chain_vcpu *v, const struct guest_instant *i)
{
	chain_vcpu_handler_exit(v, i->t, true, (uint8_t)ev_vector_entry_vector(&i->event));
}

static void on_softirq(struct chain_vcpu *v, const struct guest_instant *i)
{
	chain_vcpu_softirq(v, (struct chain_when){i->t, i->err_ns},
			   (uint32_t)ev_handler_number(&i->event));
}

static void on_softirq_exit(struct chain_vcpu *v, const struct guest_instant *i)
{
	chain_vcpu_softirq_exit(v, i->t, (uint32_t)ev_handler_number(&i->event));
}

static void on_guest_switch(struct chain_vcpu *v, const struct guest_instant *i)
{
	chain_vcpu_switch(v, (struct chain_when){i->t, i->err_ns});
}

static void on_guest_lost(struct chain_vcpu *v, const struct guest_instant *i)
{
	chain_vcpu_guest_gap(
		v, (struct chain_when){i->t, i->err_ns}, ev_lost_count(&i->event),
		ev_lost_gap_us(&i->event) > 0 ? (int64_t)ev_lost_gap_us(&i->event) * 1000 : 0);
}

static const guest_step guest_steps[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_LOST] = on_guest_lost,       [VS_EVENT_SCHED_SWITCH] = on_guest_switch,
	[VS_EVENT_IRQ_ENTRY] = on_irq,         [VS_EVENT_IRQ_EXIT] = on_irq_exit,
	[VS_EVENT_SOFTIRQ_ENTRY] = on_softirq, [VS_EVENT_SOFTIRQ_EXIT] = on_softirq_exit,
	[VS_EVENT_VECTOR_ENTRY] = on_vector,   [VS_EVENT_VECTOR_EXIT] = on_vector_exit,
};

/* The general case of guest_take(). Not inlined: the usual case would pay for its stack frame. */
__attribute__((noinline)) static void guest_step_take(struct chain_route *r,
						      const struct guest_instant *i)
{
	struct chain_vcpu *v;

	sweep(r, i->t);
	if (i->type >= VS_EVENT_TYPE_LIMIT || !guest_steps[i->type] || !i->has_vcpu)
		return;
	v = vcpu_at(r, i->vm, i->vcpu, i->t);
	if (v)
		guest_steps[i->type](v, i);
}

static void guest_take(void *context, const struct guest_instant *i)
{
	struct chain_route *r = context;
	struct chain_vcpu *v;

	if (i->t.ns < r->next_sweep.ns) {
		if (i->type >= VS_EVENT_TYPE_LIMIT || !guest_steps[i->type] || !i->has_vcpu)
			return;
		v = vcpu_settled(r, i->vm, i->vcpu);
		if (v) {
			guest_steps[i->type](v, i);
			return;
		}
	}
	guest_step_take(r, i);
}

static void time_take(void *context, struct host_ns now)
{
	sweep(context, now);
}

int chain_route_listen(struct chain_route *r, int64_t limit_ns, const struct chain_sink *sink)
{
	struct chain_listeners *l = &r->listeners;

	if (l->n == CHAIN_LISTENERS_MAX)
		return -ENOSPC;
	if (!l->n || limit_ns < r->least_limit_ns)
		r->least_limit_ns = limit_ns;
	l->of[l->n++] = (struct chain_listener){limit_ns, *sink};
	return 0;
}

struct chain_route *chain_route_new(struct model *m)
{
	struct chain_route *r = calloc(1, sizeof(*r));
	struct model_observer observer = {.host_instant = host_take,
					  .guest_instant = guest_take,
					  .advance = time_take,
					  .vcpu_span = span_take,
					  .context = r};

	if (!r)
		return NULL;
	for (uint16_t type = 1; type < VS_EVENT_TYPE_LIMIT; type++) {
		const struct event_set one = EVENT_SET(type);

		if (host_steps[type])
			event_set_add(&observer.host_types, &one);
	}
	r->model = m;
	r->vcpus = calloc(VCPUS_MAX, sizeof(struct chain_vcpu *));
	r->pcpus = calloc(VS_CPUS_MAX, sizeof(*r->pcpus));
	if (!r->vcpus || !r->pcpus || lru_init(&r->index, VCPUS_MAX) ||
	    model_observe(m, &observer)) {
		chain_route_free(r);
		return NULL;
	}
	return r;
}

void chain_route_free(struct chain_route *r)
{
	if (!r)
		return;
	for (size_t i = 0; r->vcpus && i < VCPUS_MAX; i++)
		free(r->vcpus[i]);
	lru_fini(&r->index);
	free(r->vcpus);
	free(r->pcpus);
	free(r);
}

uint64_t chain_route_handlers_alone(const struct chain_route *r)
{
	uint64_t n = r->handlers_alone;

	for (uint32_t slot = 0; slot < lru_slots(&r->index); slot++)
		n += lru_used(&r->index, slot) ? r->vcpus[slot]->handlers_alone : 0;
	return n;
}

void chain_route_finish(struct chain_route *r)
{
	for (size_t cpu = 0; cpu < VS_CPUS_MAX; cpu++) {
		for (size_t k = 0; k < SOURCES; k++)
			raised_end(r, &r->pcpus[cpu].raised[k]);
	}
	for (uint32_t slot = 0; slot < lru_slots(&r->index); slot++) {
		if (lru_used(&r->index, slot))
			chain_vcpu_finish(r->vcpus[slot], model_now(r->model));
	}
}
