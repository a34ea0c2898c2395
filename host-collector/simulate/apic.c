// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/apic.h"

#include <string.h>

#include "host-collector/simulate/vcpu.h"

enum { LEVEL_PIN = 11, IOAPIC = 2, MSI_ADDRESS = 0xfee00, LEVEL = 1 };

/* In the order of their priority, as KVM and the guest take them. */
static const struct route {
	enum guest_vector kind;
	uint8_t vector;
	bool own, level; /* accepted by the vCPU's own thread */
	enum truth_source source;
} routes[] = {
	{GUEST_RESCHEDULE, 0xfd, false, false, TRUTH_SOURCE_IPI},
	{GUEST_CALL, 0xfb, false, false, TRUTH_SOURCE_IPI},
	{GUEST_TIMER, 0xec, true, false, TRUTH_SOURCE_TIMER},
	{GUEST_DEVICE, 0x24, false, false, TRUTH_SOURCE_MSI},
	{GUEST_STORM, 0x23, true, true, TRUTH_SOURCE_GSI},
};

enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

static const struct route *route_of(unsigned kinds)
{
	for (size_t i = 0; i < ROUTES; i++) {
		if (routes[i].kind & kinds)
			return &routes[i];
	}
	return NULL;
}

void apic_init(struct sim_apic *a, struct sim_vcpu *v)
{
	*a = (struct sim_apic){.vcpu = v, .lost_since = -1};
	memset(a->accepts, -1, sizeof(a->accepts));
}

/* On the thread of `v`. */
static void emit(const struct sim_apic *a, struct sim_vcpu *v, struct vs_event e)
{
	if (a->shown)
		vcpu_sim_event(v, e);
}

static int64_t *accepts_of(struct sim_apic *a, enum guest_vector vector)
{
	return a->accepts[__builtin_ctz((unsigned)vector) % APIC_VECTORS_MAX];
}

/* The recording has it. */
static void accept_note(struct sim_apic *a, enum guest_vector vector)
{
	int64_t *accepts = accepts_of(a, vector);

	accepts[1] = a->vcpu->engine->now;
	if (accepts[0] < 0)
		accepts[0] = accepts[1];
}

/* On `t`, of this vCPU's. */
static void accept_emit(struct sim_apic *a, struct host_thread *t, const struct route *route)
{
	struct vs_event e = {.type = VS_EVENT_KVM_ACCEPT_IRQ, .pid = t->tid};
	struct vs_event posted = {.type = VS_EVENT_KVM_APICV_ACCEPT_IRQ, .pid = t->tid};

	if (!a->shown)
		return;
	ev_set_kvm_apic_accept_irq_vector(&e, route->vector);
	ev_set_kvm_apic_accept_irq_apic_id(&e, a->vcpu->index);
	ev_set_kvm_apic_accept_irq_level(&e, route->level ? LEVEL : 0);
	if (sim_host_event(t, e))
		accept_note(a, route->kind);
	ev_set_kvm_apicv_accept_irq_vector(&posted, route->vector);
	ev_set_kvm_apicv_accept_irq_apic_id(&posted, a->vcpu->index);
	ev_set_kvm_apicv_accept_irq_level(&posted, route->level ? LEVEL : 0);
	if (a->posted && sim_host_event(t, posted))
		accept_note(a, route->kind);
}

/* It is in the APIC now: the vCPU is to take it. */
static void pend(struct sim_apic *a, const struct route *route, struct host_thread *by)
{
	struct guest_cpu_sim *g = a->vcpu->guest;
	bool news = !(g->pending & (unsigned)route->kind);

	g->pending |= (unsigned)route->kind;
	if (a->held & (unsigned)route->kind) {
		if (news)
			a->lost_since = a->vcpu->engine->now;
		return;
	}
	if (news || a->lost_since >= 0)
		vcpu_sim_kick(a->vcpu, by);
}

void apic_interrupt(struct sim_apic *a, enum guest_vector vector)
{
	const struct route *route = route_of(vector);

	if (vector == GUEST_TIMER && a->timer_held) {
		a->timer_waits = true;
		vcpu_sim_emit(a->vcpu);
		return;
	}
	if (!route->own && a->worker) {
		a->requested |= (unsigned)vector;
		host_wake(a->worker, NULL);
		return;
	}
	if (route->own && !(a->vcpu->guest->pending & (unsigned)vector))
		a->due |= (unsigned)vector;
	pend(a, route, NULL);
}

static void msi_emit(const struct sim_apic *a, const struct route *route)
{
	struct vs_event e = {.type = VS_EVENT_KVM_MSI, .pid = a->worker->tid};

	ev_set_kvm_msi_set_irq_address(&e, (uint64_t)MSI_ADDRESS << 12 | (uint64_t)a->vcpu->index
										 << 12);
	ev_set_kvm_msi_set_irq_data(&e, route->vector);
	if (a->shown)
		sim_host_event(a->worker, e);
}

void apic_worker(struct sim_apic *a)
{
	const struct route *route = route_of(a->requested);

	a->requested = 0;
	if (!route)
		return;
	msi_emit(a, route);
	accept_emit(a, a->worker, route);
	pend(a, route, a->worker);
}

void apic_call(struct sim_apic *a, enum guest_vector vector, struct sim_vcpu *by)
{
	const struct route *route = route_of(vector);
	struct vs_event ipi = {.type = VS_EVENT_KVM_IPI};
	struct vs_event accept = {.type = VS_EVENT_KVM_ACCEPT_IRQ};

	ev_set_kvm_apic_ipi_icr_low(&ipi, route->vector);
	ev_set_kvm_apic_ipi_destination(&ipi, a->vcpu->index);
	emit(a, by, ipi);
	ev_set_kvm_apic_accept_irq_vector(&accept, route->vector);
	ev_set_kvm_apic_accept_irq_apic_id(&accept, a->vcpu->index);
	if (vector == GUEST_CALL && !a->shown) /* the one that a verdict needs */
		vcpu_sim_event(by, accept);
	accept_emit(a, by->thread, route);
	pend(a, route, by->thread);
}

void apic_enter(struct sim_apic *a)
{
	struct sim_vcpu *v = a->vcpu;
	const struct route *route;
	struct vs_event acknowledge = {.type = VS_EVENT_KVM_ACK_IRQ};
	struct vs_event inject = {.type = VS_EVENT_KVM_INJECT};

	ev_set_kvm_ack_irq_chip(&acknowledge, IOAPIC);
	ev_set_kvm_ack_irq_pin(&acknowledge, LEVEL_PIN);
	for (size_t i = 0; i < ROUTES; i++) {
		if (!(a->due & (unsigned)routes[i].kind))
			continue;
		if (routes[i].level)
			emit(a, v, acknowledge);
		accept_emit(a, v->thread, &routes[i]);
	}
	a->due = 0;
	route = route_of(apic_visible(a, v->guest->pending));
	if (a->posted || !route || !guest_sim_takes(v->guest))
		return;
	a->injected = route->kind;
	ev_set_kvm_inj_virq_vector(&inject, route->vector);
	emit(a, v, inject);
}

static void eoi_emit(const struct sim_apic *a, const struct route *route)
{
	struct vs_event eoi = {.type = VS_EVENT_KVM_EOI}, pv_eoi = {.type = VS_EVENT_KVM_PV_EOI};

	ev_set_kvm_eoi_apic_id(&eoi, a->vcpu->index);
	ev_set_kvm_eoi_vector(&eoi, route->vector);
	ev_set_kvm_pv_eoi_apic_id(&pv_eoi, a->vcpu->index);
	ev_set_kvm_pv_eoi_vector(&pv_eoi, route->vector);
	emit(a, a->vcpu, route->level ? eoi : pv_eoi);
}

void apic_left(struct sim_apic *a)
{
	for (size_t i = 0; i < ROUTES && a->handled; i++) {
		if (a->handled & (unsigned)routes[i].kind)
			eoi_emit(a, &routes[i]);
	}
	a->handled = 0;
}

unsigned apic_visible(const struct sim_apic *a, unsigned pending)
{
	return pending & ~a->held;
}

unsigned apic_deliverable(const struct sim_apic *a, unsigned pending)
{
	const struct route *route = route_of(apic_visible(a, pending) & ~a->due);

	if (!a->posted)
		return a->injected;
	return route ? route->kind : 0;
}

void apic_taken(struct sim_apic *a, enum guest_vector vector, bool recorded)
{
	const struct route *route = route_of(vector);
	struct truth_taken taken = {.vector = route->vector,

				    .handler_recorded = recorded};

	a->injected = 0;
	memcpy(taken.accepts, accepts_of(a, vector), sizeof(taken.accepts));
	memset(accepts_of(a, vector), -1, sizeof(taken.accepts));
	if (vector == GUEST_DEVICE && a->lost_since >= 0) {
		taken.lost_ns = a->vcpu->engine->now - a->lost_since;
		truth_lost(a->vcpu->truth, a->vcpu->index, a->lost_since, route->vector);
		a->lost_since = -1;
	}
	truth_handled(a->vcpu->truth, a->vcpu->index, route->source, taken);
}

void apic_done(struct sim_apic *a, enum guest_vector vector)
{
	if (!a->posted)
		a->handled |= (unsigned)vector;
}

void apic_lose(struct sim_apic *a, bool lose)
{
	a->held = lose ? GUEST_DEVICE : 0;
	apic_interrupt(a, GUEST_DEVICE);
}

void apic_timer_hold(struct sim_apic *a, bool hold)
{
	bool waits = a->timer_waits;

	a->timer_held = hold;
	a->timer_waits = false;
	if (waits)
		apic_interrupt(a, GUEST_TIMER);
}
