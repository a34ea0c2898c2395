/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes the host's events: changes of vCPU threads, the holders of the pCPUs that they wait
 * for, and what a loss leaves unknown.
 */
#include <signal.h>
#include <string.h>

#include "host-collector/model/internal.h"

enum { LOST_MANY = 1 << 20 }; /* the largest number that matters; also stands for unknown */

struct vcpu *vcpu_of_thread(const struct model *m, int32_t tid)
{
	struct vm_vcpu *likely;
	uint32_t slot;

	if (!(m->thread_bits[thread_word(tid)] & thread_bit(tid)))
		return NULL;
	likely = m->by_bit[(uint32_t)tid % THREAD_BITS];
	if (likely && likely->v.tid == tid)
		return &likely->v;
	slot = lru_find(&m->threads, (uint32_t)tid);
	return slot == LRU_NONE ? NULL : &m->by_thread[slot]->v;
}

void waiter_unlink(struct vcpu *v)
{
	if (!v->waiter_link)
		return;
	*v->waiter_link = v->next_waiter;
	if (v->next_waiter)
		v->next_waiter->waiter_link = v->waiter_link;
	v->waiter_link = NULL;
}

static void waiter_update(struct model *m, struct vcpu *v)
{
	struct pcpu *p = &m->pcpus[v->open.pcpu];

	waiter_unlink(v);
	if (!vcpu_waits(v))
		return;
	v->next_waiter = p->waiters;
	v->waiter_link = &p->waiters;
	if (p->waiters)
		p->waiters->waiter_link = &v->next_waiter;
	p->waiters = v;
}

/* `pid` has run here since the last switch seen; it is what the waiters waited for. If switches may
 * be missing it has since the gap's end at the latest, but one alone cannot have led away and back.
 */
static void pcpu_account(struct pcpu *p, struct host_ns t, int32_t pid)
{
	bool known = p->lost_gap == 0 || (p->lost_gap == 1 && p->current == pid);

	for (struct vcpu *v = p->waiters; v; v = v->next_waiter) {
		if (!known && v->queue.segment_begin.ns < p->gap_end.ns)
			v->queue.segment_begin = p->gap_end;
		vcpu_held_by(v, t, pid);
	}
}

/* Could an event that is missing have moved this thread? A running thread moves only by a switch
 * on its own pCPU; any other may have been woken, or pulled over and run, anywhere. */
static bool exposed(const struct model *m, const struct vcpu *v)
{
	if (m->n_lossy == 0)
		return false;
	return v->state != THREAD_RUNNING || v->doubted || m->pcpus[v->open.pcpu].lossy;
}

/* Its wait may turn out to end at `t`: until then it was for whoever has the pCPU, if that one came
 * there meanwhile: what happens where no vCPU waits is not captured. */
static void holder_account(const struct model *m, struct vcpu *v, struct host_ns t)
{
	const struct pcpu *p = &m->pcpus[v->open.pcpu];

	if (v->waiter_link && p->current_known && !p->lost_gap &&
	    p->switched.ns >= v->open.begin.ns)
		vcpu_held_by(v, t, p->current);
}

void host_finish(struct model *m)
{
	EACH_VCPU(m, v, {
		if (v->state == THREAD_READY)
			holder_account(m, v, m->now);
	});
}

/* Nothing that happened on `cpu` after `from` is known until its next event. */
static void loss_begin(struct model *m, uint16_t cpu, struct host_ns from, uint64_t lost)
{
	struct pcpu *p = &m->pcpus[cpu];
	const struct vcpu_sink *sink = &m->vcpu_sink;
	enum unknown_reason why = lost ? UNKNOWN_LOST : UNKNOWN_NOT_RECORDED;

	if (!lost || lost > LOST_MANY)
		lost = LOST_MANY;
	if (!p->lossy && m->n_lossy++ < VCPU_DOUBTS)
		m->lossy[m->n_lossy - 1] = cpu;
	p->lossy = true;
	p->current_known = false;
	p->lost += lost;
	p->lost_gap += lost;
	p->turn_open = true;
	EACH_VCPU(m, v, {
		if (exposed(m, v)) {
			holder_account(m, v, from);
			v->gap_why = why;
			vcpu_unsure(v, from, cpu, lost, sink);
			waiter_update(m, v);
		}
	});
}

/* After more than the list holds it is rebuilt: rare, and never on a quiet path. */
static void lossy_list_remove(struct model *m, uint16_t cpu)
{
	unsigned n = 0;

	if (m->n_lossy > VCPU_DOUBTS) {
		for (unsigned i = 0; i < VS_CPUS_MAX && n < VCPU_DOUBTS; i++) {
			if (m->pcpus[i].lossy)
				m->lossy[n++] = (uint16_t)i;
		}
		return;
	}
	for (unsigned i = 0; i < m->n_lossy; i++) {
		if (m->lossy[i] != cpu)
			m->lossy[n++] = m->lossy[i];
	}
}

static void loss_end(struct model *m, uint16_t cpu, struct host_ns t)
{
	struct pcpu *p = &m->pcpus[cpu];

	p->lossy = false;
	p->gap_end = t;
	p->lost = 0;
	lossy_list_remove(m, cpu);
	if (--m->n_lossy == 0)
		EACH_VCPU(m, v, vcpu_sure(v, t));
}

/* After a transition of `v` at `t`: updates which thread waits where, and whether that is
 * certain. */
static void vcpu_moved(struct model *m, struct vcpu *v, struct host_ns t)
{
	const struct vcpu_sink *sink = &m->vcpu_sink;

	if (v->state != THREAD_RUNNING && exposed(m, v)) {
		if (m->n_lossy > VCPU_DOUBTS)
			vcpu_unsure(v, t, VS_CPUS_MAX, LOST_MANY, sink);
		for (unsigned i = 0; i < m->n_lossy && i < VCPU_DOUBTS; i++)
			vcpu_unsure(v, t, m->lossy[i], m->pcpus[m->lossy[i]].lost, sink);
	}
	waiter_update(m, v);
}

/* `pid` leaves the pCPU: it came there with the last switch, or in a gap since, but not later. */
static void tenure_add(struct pcpu *p, struct host_ns t, int32_t pid)
{
	struct host_ns from = p->switched;

	if (p->lost_gap && p->gap_end.ns > from.ns)
		from = p->gap_end;
	memmove(p->tenures, p->tenures + 1, (VCPU_TENURES - 1) * sizeof(p->tenures[0]));
	p->tenures[VCPU_TENURES - 1] = (struct tenure){.pid = pid, .from = from, .until = t};
}

static void host_switch(struct model *m, struct host_ns t, const struct vs_event *e,
			struct vcpu *out)
{
	struct pcpu *p = &m->pcpus[e->cpu];
	struct vcpu *in = vcpu_of_thread(m, e->pid2);
	const struct vcpu_sink *sink = &m->vcpu_sink;

	tenure_add(p, t, e->pid);
	pcpu_account(p, t, e->pid);
	p->lost_gap = 0;
	p->current = e->pid2;
	p->current_known = true;
	p->switched = t;
	if (out) {
		const struct vcpu_signal *signal = &((struct vm_vcpu *)out)->vm->signal;

		vcpu_switch_out(out, t, e->cpu, (uint32_t)ev_sched_switch_state(e), signal, sink);
		vcpu_moved(m, out, t);
	}
	if (in) {
		vcpu_switch_in(in, t, e->cpu, p->tenures, sink);
		vcpu_moved(m, in, t);
	}
}

/*
 * QEMU reads its QMP sockets in a thread of its own (monitor/monitor.c), "IO mon_iothread", which
 * sleeps until a command arrives. Its main loop is different: timers wake it too.
 */
static void monitor_woken(struct model *m, struct host_ns t, const struct vs_event *e)
{
	static const char reader[] = "mon_iothread", ours[] = "vcpuscope";
	int32_t tgid;
	if (e->pid2 <= 0 || !strstr(names_get(&m->names, 0, e->pid), reader) ||
	    !strcmp(names_get(&m->names, 0, e->pid2), ours))
		return;
	tgid = names_tgid(&m->names, 0, e->pid);
	for (size_t i = 0; i < m->n_vms && tgid > 0; i++) {
		if (m->vms[i]->tgid != tgid || names_tgid(&m->names, 0, e->pid2) == tgid)
			continue;
		m->vms[i]->monitor_waker = e->pid2;
		m->vms[i]->monitor_woken = t;
	}
}

static void host_wakeup(struct model *m, struct host_ns t, const struct vs_event *e, struct vcpu *v)
{
	const struct vcpu_sink *sink = &m->vcpu_sink;

	if (!v)
		monitor_woken(m, t, e);
	if (!v || ev_sched_wakeup_cpu(e) >= VS_CPUS_MAX)
		return;
	vcpu_woken(v, t, (uint16_t)ev_sched_wakeup_cpu(e), e->pid2, sink);
	vcpu_moved(m, v, t);
}

static void host_migrate(struct model *m, struct host_ns t, const struct vs_event *e,
			 struct vcpu *v)
{
	struct pcpu *p;

	if (!v || ev_sched_migrate_task_to(e) >= VS_CPUS_MAX || v->state == THREAD_RUNNING)
		return;
	p = &m->pcpus[v->open.pcpu];
	if (v->state == THREAD_READY && p->current_known)
		vcpu_held_by(v, t, p->current);
	v->queue.segment_begin = t;
	vcpu_migrated(v, (uint16_t)ev_sched_migrate_task_to(e));
	waiter_update(m, v);
}

static void host_exit(struct model *m, struct host_ns t, const struct vs_event *e, struct vcpu *v)
{
	const struct vcpu_sink *sink = &m->vcpu_sink;

	names_event(&m->names, 0, e);
	if (!v)
		return;
	vcpu_exited(v, t, sink);
	waiter_update(m, v);
}

static void host_name(struct model *m, struct host_ns t, const struct vs_event *e, struct vcpu *of)
{
	(void)of;
	names_event(&m->names, 0, e);
	origins_announced(&m->origins, e->pid, t);
}

static void host_signal(struct model *m, struct host_ns t, const struct vs_event *e,
			struct vcpu *target)
{
	const uint64_t number = ev_signal_number(e);
	bool stops =
		number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;

	if (!stops && number != SIGCONT)
		return;
	for (size_t i = 0; i < m->n_vms; i++) {
		struct vm *vm = m->vms[i];

		if ((uint64_t)(uint32_t)vm->tgid != ev_signal_process(e) &&
		    (!target || ((struct vm_vcpu *)target)->vm != vm))
			continue;
		vm->signal = (struct vcpu_signal){
			.sender = e->pid2, .number = stops ? (uint32_t)number : 0, .t = t};
	}
}

/* A sleep of this length has brought its stack: so do all that are longer. */
static void stack_due(struct vm *vm, int64_t wait_ns)
{
	for (size_t i = 0; wait_ns > 0 && i < vm->n_vcpus; i++) {
		int64_t *due_ns = &vm->vcpus[i]->v.stack_due_ns;

		if (!*due_ns || wait_ns < *due_ns)
			*due_ns = wait_ns;
	}
}

static void shorts_sampled(struct vm *vm)
{
	for (size_t i = 0; i < vm->n_vcpus; i++)
		vm->vcpus[i]->v.shorts_sampled = true;
}

static void host_stack(struct model *m, struct host_ns t, const struct vs_event *e, struct vcpu *of)
{
	const enum vs_stack_role role = (enum vs_stack_role)ev_stack_role(e);
	const int64_t wait_ns = (int64_t)ev_stack_wait_ns(e);
	struct vcpu *v = vcpu_of_thread(m, ev_stack_explains(e));
	const struct vcpu_sink *sink = &m->vcpu_sink;

	(void)of; /* who caused it; it explains a wait of another thread */
	if (!v || role == VS_STACK_SAMPLE || role == VS_STACK_LOOK)
		return;
	((struct vm_vcpu *)v)->vm->data.stacks = true;
	if (role == VS_STACK_WAITER)
		stack_due(((struct vm_vcpu *)v)->vm, wait_ns);
	if (role == VS_STACK_SHORT)
		shorts_sampled(((struct vm_vcpu *)v)->vm);
	vcpu_stack(v, t, e->pid, (uint32_t)ev_stack_id(e), role, wait_ns, sink);
	waiter_update(m, v);
}

static void host_kvm(struct model *m, struct host_ns t, const struct vs_event *e, struct vcpu *v)
{
	static const enum vcpu_mode modes[VS_EVENT_TYPE_LIMIT] = {
		[VS_EVENT_KVM_ENTRY] = MODE_GUEST,
		[VS_EVENT_KVM_EXIT] = MODE_KVM,
		[VS_EVENT_KVM_USERSPACE_EXIT] = MODE_VMM,
	};
	const struct vcpu_exit exit = {.reason = ev_kvm_exit_reason(e), .isa = ev_kvm_exit_isa(e)};
	const struct vcpu_sink *sink = &m->vcpu_sink;
	struct vm *vm;

	if (!v)
		return;
	vm = ((struct vm_vcpu *)v)->vm;
	/* Some builds of KVM emit only this tracepoint. Without VM-entries it has no meaning. */
	if (e->type == VS_EVENT_KVM_USERSPACE_EXIT && !vm->data.kvm_events)
		return;
	for (size_t i = 0; !vm->data.kvm_events && i < vm->n_vcpus; i++)
		vm->vcpus[i]->v.kvm_seen = true;
	vm->data.kvm_events = true;
	/* An event that was emitted late. Nothing was emitted before it, so the vCPU was in the
	 * guest. */
	if (e->type != VS_EVENT_KVM_ENTRY && ev_kvm_exit_ago_us(e) > 0 &&
	    v->state == THREAD_RUNNING && !v->doubted) {
		t.ns -= 1000ll * ev_kvm_exit_ago_us(e);
		if (t.ns < v->open.begin.ns)
			t = v->open.begin;
	}
	vcpu_kvm(v, t, e->cpu, modes[e->type], &exit, sink);
	waiter_update(m, v);
}

/* of: the vCPU of the event's thread, or NULL. */
typedef void (*host_handler)(struct model *m, struct host_ns t, const struct vs_event *e,
			     struct vcpu *of);

static const host_handler host_handlers[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_SCHED_SWITCH] = host_switch,     [VS_EVENT_SCHED_WAKEUP] = host_wakeup,
	[VS_EVENT_SCHED_WAKEUP_NEW] = host_wakeup, [VS_EVENT_SCHED_MIGRATE] = host_migrate,
	[VS_EVENT_TASK_NAME] = host_name,          [VS_EVENT_TASK_EXIT] = host_exit,
	[VS_EVENT_SIGNAL] = host_signal,           [VS_EVENT_STACK] = host_stack,
	[VS_EVENT_KVM_ENTRY] = host_kvm,           [VS_EVENT_KVM_EXIT] = host_kvm,
	[VS_EVENT_KVM_USERSPACE_EXIT] = host_kvm,
};

struct event_set host_types(void)
{
	struct event_set set = EVENT_SET(VS_EVENT_LOST);

	for (uint16_t type = 1; type < VS_EVENT_TYPE_LIMIT; type++) {
		const struct event_set one = EVENT_SET(type);

		if (host_handlers[type])
			event_set_add(&set, &one);
	}
	return set;
}

/* Another task is seen on the CPU: a thread that may have run there unseen no longer does. */
static void turn_close(struct model *m, struct host_ns t, const struct vs_event *e)
{
	const struct vcpu_sink *sink = &m->vcpu_sink;

	m->pcpus[e->cpu].turn_open = false;
	EACH_VCPU(m, v, {
		if (v->tid != e->pid && v->tid != e->pid2)
			vcpu_turn_over(v, t, e->cpu, sink);
	});
}

/* It may come back on any pCPU, also on one whose events are missing just now. */
static void presence_leave(const struct model *m, struct vm_vcpu *vv,
			   const struct timeline_event *event)
{
	unsigned here = m->pcpus[event->event.cpu].lossy; /* until this event */

	presence_left(&vv->presence, event->t, event->err_ns);
	if (m->n_lossy > here)
		presence_lost(&vv->presence);
}

/* Updates the presence of vCPUs if the event shows that one enters or leaves the guest. */
static void presence_update(struct model *m, const struct timeline_event *event, struct vcpu *of)
{
	const struct vs_event *e = &event->event;
	struct vm_vcpu *vv = (struct vm_vcpu *)of;

	switch (e->type) {
	case VS_EVENT_LOST:
		if (e->cpu != VS_CPU_COLLECTOR)
			EACH_VCPU(m, v, presence_lost(&((struct vm_vcpu *)v)->presence));
		break;
	case VS_EVENT_SCHED_SWITCH:
		if (vv && !vv->vm->data.kvm_events)
			presence_leave(m, vv, event);
		vv = (struct vm_vcpu *)vcpu_of_thread(m, e->pid2);
		if (vv && !vv->vm->data.kvm_events)
			presence_back(&vv->presence, event->t, event->err_ns, &vv->vm->presence);
		break;
	case VS_EVENT_KVM_EXIT:
		if (vv)
			presence_leave(m, vv, event);
		break;
	case VS_EVENT_KVM_ENTRY:
		if (vv && vv->vm->data.kvm_events)
			presence_back(&vv->presence, event->t, event->err_ns, &vv->vm->presence);
		else if (vv) /* the first of them: until now the thread's switches spoke */
			presence_lost(&vv->presence);
		break;
	default:
		break;
	}
}

static void instant_emit(struct model *m, const struct timeline_event *event, const struct vcpu *of)
{
	struct host_instant instant = {
		.t = m->now, .err_ns = event->err_ns, .event = event->event, .of_vcpu = of};

	if (of) {
		instant.vm = of->vm;
		instant.vcpu = of->vcpu;
	}
	EMIT(&m->audiences, host_instant, &instant);
}

void host_event(struct model *m, const struct timeline_event *event)
{
	const struct vs_event *e = &event->event;
	const struct host_ns t = m->now;
	struct pcpu *p = &m->pcpus[e->cpu];
	struct vcpu *of = vcpu_of_thread(m, e->pid);

	presence_update(m, event, of);
	instant_emit(m, event, of);
	if (e->type == VS_EVENT_LOST) {
		if (e->cpu != VS_CPU_COLLECTOR) /* which only brings stacks */
			loss_begin(m, e->cpu, loss_since(e, t, p->last), ev_lost_count(e));
		return;
	}
	if (p->lossy)
		loss_end(m, e->cpu, t);
	if (p->turn_open && event_names_host_current(e->type))
		turn_close(m, t, e);
	if (e->type < VS_EVENT_TYPE_LIMIT && host_handlers[e->type])
		host_handlers[e->type](m, t, e, of);
	p->last = t;
}
