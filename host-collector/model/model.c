/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Routes the timeline's events to the state machines they concern: host events to the vCPU threads
 * (vcpu.c) by thread id and to the account of who held which pCPU, guest events to the guest CPUs
 * (guest_cpu.c). One event touches a handful of machines, except for losses, which touch all.
 */
#include "host-collector/model/model.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/vm.h"

enum { THREADS_INDEXED = 16384 };

struct pcpu {
	bool lossy; /* events are missing since the last one */
	bool current_known;
	int32_t current;     /* by the last switch seen here */
	struct host_ns last; /* the newest event that fired here */
	struct vcpu *waiters;
};

struct model {
	bool started;
	struct host_ns begin, now;
	size_t n_observers;
	struct model_observer *observers;
	size_t n_vms;
	struct vm *vms[MODEL_VMS_MAX];
	struct lru threads; /* tid of a vCPU thread -> by_thread */
	struct vm_vcpu **by_thread;
	struct names names; /* the host's */
	struct stacks stacks;
	unsigned n_lossy;
	struct host_ns next_release; /* no held span is due before */
	struct pcpu pcpus[VS_CPUS_MAX];
};

static const char *const vcpu_state_names[] = {
#define X(NAME, name, ...) [VCPU_##NAME] = name,
	VCPU_STATES(X)
#undef X
};

static const char *const guest_cpu_state_names[] = {
#define X(NAME, name) [GUEST_CPU_##NAME] = name,
	GUEST_CPU_STATES(X)
#undef X
};

const char *vcpu_state_name(enum vcpu_state s)
{
	return vcpu_state_names[s];
}

const char *guest_cpu_state_name(enum guest_cpu_state s)
{
	return guest_cpu_state_names[s];
}

struct model *model_new(void)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->by_thread = calloc(THREADS_INDEXED, sizeof(struct vm_vcpu *));
	if (!m->by_thread || lru_init(&m->threads, THREADS_INDEXED) || names_init(&m->names) ||
	    stacks_init(&m->stacks)) {
		model_free(m);
		return NULL;
	}
	return m;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_vms; i++)
		vm_free(m->vms[i]);
	lru_fini(&m->threads);
	names_fini(&m->names);
	stacks_fini(&m->stacks);
	free(m->by_thread);
	free(m->observers);
	free(m);
}

int model_observe(struct model *m, const struct model_observer *observer)
{
	struct model_observer *bigger =
		realloc(m->observers, (m->n_observers + 1) * sizeof(*bigger));

	if (!bigger)
		return -ENOMEM;
	m->observers = bigger;
	m->observers[m->n_observers++] = *observer;
	return 0;
}

/* ---- what the machines tell and ask ---- */

#define TELL(m, callback, ...)                                                                     \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (m)->n_observers; i_++) {                                 \
			if ((m)->observers[i_].callback)                                           \
				(m)->observers[i_].callback((m)->observers[i_].context,            \
							    __VA_ARGS__);                          \
		}                                                                                  \
	} while (0)

static void on_vcpu_span(void *context, const struct vcpu_span *span)
{
	struct model *m = context;

	TELL(m, vcpu_span, span);
}

static void on_guest_span(void *context, const struct guest_span *span)
{
	struct model *m = context;

	TELL(m, guest_span, span);
}

static void on_guest_interrupt(void *context, const struct guest_interrupt *interrupt)
{
	struct model *m = context;

	TELL(m, guest_interrupt, interrupt);
}

static enum guest_account account_of(void *context, const struct vcpu *v, struct host_ns t)
{
	const struct vm_vcpu *vv = (const struct vm_vcpu *)v;
	const struct guest_cpu *c = vv->guest_cpu < 0 ? NULL : vv->vm->cpus[vv->guest_cpu];

	(void)context;
	return c ? guest_cpu_account(c, t) : GUEST_ACCOUNT_UNKNOWN;
}

static bool paused_at(void *context, const struct vcpu *v, struct host_ns t)
{
	const struct vm *vm = ((const struct vm_vcpu *)v)->vm;

	(void)context;
	return t.ns >= vm->pause_begin.ns && (vm->paused || t.ns < vm->pause_end.ns);
}

static enum wait_class class_of(void *context, const struct vcpu *v, uint32_t id)
{
	const struct model *m = context;
	const struct stack *stack = stacks_get(&m->stacks, id);
	const char *symbols[VS_STACK_FRAMES_MAX];

	for (size_t i = 0; stack && i < stack->n_frames; i++)
		symbols[i] = stack->frames[i].symbol;
	return wait_class_of(symbols, stack ? stack->n_frames : 0,
			     ((const struct vm_vcpu *)v)->vm->kvm);
}

static struct vcpu_sink vcpu_sink_of(const struct model *m)
{
	return (struct vcpu_sink){on_vcpu_span, account_of, paused_at, class_of, (void *)m};
}

static struct guest_cpu_sink guest_cpu_sink_of(struct model *m)
{
	return (struct guest_cpu_sink){on_guest_span, on_guest_interrupt, m};
}

/* ---- who waits on which pCPU ---- */

static void waiter_unlink(struct vcpu *v)
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
	if (v->state != THREAD_READY)
		return;
	v->next_waiter = p->waiters;
	v->waiter_link = &p->waiters;
	if (p->waiters)
		p->waiters->waiter_link = &v->next_waiter;
	p->waiters = v;
}

/* `pid` has run here since the last switch seen; it is what the waiters waited for. */
static void pcpu_account(struct pcpu *p, struct host_ns t, int32_t pid)
{
	for (struct vcpu *v = p->waiters; v; v = v->next_waiter)
		vcpu_held_by(v, t, pid);
}

/* ---- VMs ---- */

static struct vm *vm_find(const struct model *m, uint32_t id)
{
	for (size_t i = 0; i < m->n_vms; i++) {
		if (m->vms[i]->id == id)
			return m->vms[i];
	}
	return NULL;
}

static struct vcpu *vcpu_of_thread(const struct model *m, int32_t tid)
{
	uint32_t slot = lru_find(&m->threads, (uint32_t)tid);

	return slot == LRU_NONE ? NULL : &m->by_thread[slot]->v;
}

static void vcpu_retire(struct model *m, struct vm *vm, size_t position)
{
	struct vcpu *v = &vm->vcpus[position]->v;
	struct vcpu_sink sink = vcpu_sink_of(m);
	uint32_t slot = lru_find(&m->threads, (uint32_t)v->tid);

	vcpu_finish(v, m->now, &sink);
	waiter_unlink(v);
	if (slot != LRU_NONE && &m->by_thread[slot]->v == v)
		lru_remove(&m->threads, slot);
	vm_vcpu_remove(vm, position);
}

static int vcpu_announce(struct model *m, struct vm *vm, const struct message_vm_thread *thread)
{
	struct vm_vcpu *vv = vm_vcpu_find(vm, thread->vcpu);
	bool fresh;
	uint32_t slot;

	if (!vv) {
		if (m->threads.count == m->threads.capacity)
			return -E2BIG;
		vv = calloc(1, sizeof(*vv));
		if (!vv)
			return -ENOMEM;
		vcpu_init(&vv->v, vm->id, thread->vcpu, thread->tid, m->now);
		vv->vm = vm;
		vv->v.kvm_seen = vm->data.kvm_events;
		if (vm_vcpu_add(vm, vv)) {
			free(vv);
			return -ENOMEM;
		}
		slot = lru_put(&m->threads, (uint32_t)thread->tid, &fresh);
		m->by_thread[slot] = vv;
	}
	vv->apic_id_known = thread->apic_id_known;
	vv->apic_id = thread->apic_id;
	return 0;
}

/* The thread that runs this vCPU by the new list, or NULL. */
static const struct message_vm_thread *thread_of(const struct message_vm_info *info, uint32_t vcpu)
{
	for (size_t i = 0; i < info->n_threads; i++) {
		if (info->threads[i].is_vcpu && info->threads[i].vcpu == vcpu)
			return &info->threads[i];
	}
	return NULL;
}

int model_vm(struct model *m, const struct message_vm_info *info)
{
	struct vm *vm = vm_find(m, info->vm);
	int err = 0;

	if (!vm) {
		if (m->n_vms == MODEL_VMS_MAX)
			return -E2BIG;
		vm = vm_new(info);
		if (!vm)
			return -ENOMEM;
		m->vms[m->n_vms++] = vm;
	}
	memcpy(vm->name, info->name, sizeof(vm->name));
	vm->name[sizeof(vm->name) - 1] = 0;
	vm->tgid = info->qemu_pid;
	vm->kvm = strcmp(info->accelerator, "kvm") == 0;
	for (size_t i = vm->n_vcpus; i-- > 0;) {
		const struct message_vm_thread *thread = thread_of(info, vm->vcpus[i]->v.vcpu);

		if (!thread || thread->tid != vm->vcpus[i]->v.tid)
			vcpu_retire(m, vm, i);
	}
	for (size_t i = 0; i < info->n_threads && !err; i++) {
		names_set(&m->names, info->threads[i].tid, info->qemu_pid, info->threads[i].comm);
		if (info->threads[i].is_vcpu)
			err = vcpu_announce(m, vm, &info->threads[i]);
	}
	vm_join(vm);
	return err;
}

int model_guest_cpus(struct model *m, uint32_t vm_id, const struct message_cpu *cpus, size_t n)
{
	struct vm *vm = vm_find(m, vm_id);

	return vm ? vm_guest_cpus(vm, cpus, n) : -ENOENT;
}

int model_vm_paused(struct model *m, uint32_t vm_id, struct host_ns t, bool paused)
{
	struct vm *vm = vm_find(m, vm_id);

	if (!vm)
		return -ENOENT;
	if (paused && !vm->paused)
		vm->pause_begin = t;
	else if (!paused && vm->paused)
		vm->pause_end = t;
	vm->paused = paused;
	return 0;
}

int model_stack(struct model *m, const struct message_stack *stack)
{
	return stacks_put(&m->stacks, stack);
}

/* ---- host events ---- */

/* Calls `statement` for every vCPU `v` of every VM. */
#define EACH_VCPU(m, v, statement)                                                                 \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (m)->n_vms; i_++) {                                       \
			for (size_t k_ = 0; k_ < (m)->vms[i_]->n_vcpus; k_++) {                    \
				struct vcpu *v = &(m)->vms[i_]->vcpus[k_]->v;                      \
				statement;                                                         \
			}                                                                          \
		}                                                                                  \
	} while (0)

/* Could an event that is missing have moved this thread? A running thread moves only by a switch
 * on its own pCPU; any other may have been woken, or pulled over and run, anywhere. */
static bool exposed(const struct model *m, const struct vcpu *v)
{
	if (m->n_lossy == 0)
		return false;
	return v->state != THREAD_RUNNING || m->pcpus[v->open.pcpu].lossy;
}

/* Nothing that happened on `cpu` after `from` is known until its next event. */
static void loss_begin(struct model *m, uint16_t cpu, struct host_ns from)
{
	struct pcpu *p = &m->pcpus[cpu];
	struct vcpu_sink sink = vcpu_sink_of(m);

	if (p->lossy)
		return;
	p->lossy = true;
	p->current_known = false;
	m->n_lossy++;
	EACH_VCPU(m, v, {
		if (exposed(m, v)) {
			vcpu_unsure(v, from, &sink);
			waiter_update(m, v);
		}
	});
}

static void loss_end(struct model *m, uint16_t cpu, struct host_ns t)
{
	m->pcpus[cpu].lossy = false;
	if (--m->n_lossy == 0)
		EACH_VCPU(m, v, vcpu_sure(v, t));
}

/* After a transition of `v` at `t`: who waits where, and whether we may believe it. */
static void vcpu_moved(struct model *m, struct vcpu *v, struct host_ns t)
{
	struct vcpu_sink sink = vcpu_sink_of(m);

	if (v->state != THREAD_RUNNING && exposed(m, v))
		vcpu_unsure(v, t, &sink);
	waiter_update(m, v);
}

static void host_switch(struct model *m, struct host_ns t, const struct vs_event *e)
{
	struct pcpu *p = &m->pcpus[e->cpu];
	struct vcpu *out = vcpu_of_thread(m, e->pid), *in = vcpu_of_thread(m, e->pid2);
	struct vcpu_sink sink = vcpu_sink_of(m);

	pcpu_account(p, t, e->pid);
	p->current = e->pid2;
	p->current_known = true;
	if (out) {
		const struct vcpu_signal *signal = &((struct vm_vcpu *)out)->vm->signal;

		vcpu_switch_out(out, t, e->cpu, (uint32_t)e->arg0, signal, &sink);
		vcpu_moved(m, out, t);
	}
	if (in) {
		vcpu_switch_in(in, t, e->cpu, &sink);
		vcpu_moved(m, in, t);
	}
}

static void host_wakeup(struct model *m, struct host_ns t, const struct vs_event *e)
{
	struct vcpu *v = vcpu_of_thread(m, e->pid);
	struct vcpu_sink sink = vcpu_sink_of(m);

	if (!v || e->arg0 >= VS_CPUS_MAX)
		return;
	vcpu_woken(v, t, (uint16_t)e->arg0, e->pid2, &sink);
	vcpu_moved(m, v, t);
}

static void host_migrate(struct model *m, struct host_ns t, const struct vs_event *e)
{
	struct vcpu *v = vcpu_of_thread(m, e->pid);
	struct pcpu *p;

	if (!v || e->arg1 >= VS_CPUS_MAX || v->state == THREAD_RUNNING)
		return;
	p = &m->pcpus[v->open.pcpu];
	if (v->state == THREAD_READY && p->current_known)
		vcpu_held_by(v, t, p->current);
	v->segment_begin = t;
	vcpu_migrated(v, (uint16_t)e->arg1);
	waiter_update(m, v);
}

static void host_exit(struct model *m, struct host_ns t, const struct vs_event *e)
{
	struct vcpu *v = vcpu_of_thread(m, e->pid);
	struct vcpu_sink sink = vcpu_sink_of(m);

	names_event(&m->names, e);
	if (!v)
		return;
	vcpu_exited(v, t, &sink);
	waiter_update(m, v);
}

static void host_name(struct model *m, struct host_ns t, const struct vs_event *e)
{
	(void)t;
	names_event(&m->names, e);
}

static void host_signal(struct model *m, struct host_ns t, const struct vs_event *e)
{
	bool stops = e->arg0 == SIGSTOP || e->arg0 == SIGTSTP || e->arg0 == SIGTTIN ||
		     e->arg0 == SIGTTOU;
	struct vcpu *target = vcpu_of_thread(m, e->pid);

	if (!stops && e->arg0 != SIGCONT)
		return;
	for (size_t i = 0; i < m->n_vms; i++) {
		struct vm *vm = m->vms[i];

		if ((uint64_t)(uint32_t)vm->tgid != e->arg1 &&
		    (!target || ((struct vm_vcpu *)target)->vm != vm))
			continue;
		vm->signal = (struct vcpu_signal){
			.sender = e->pid2, .number = stops ? (uint32_t)e->arg0 : 0, .t = t};
	}
}

static void host_stack(struct model *m, struct host_ns t, const struct vs_event *e)
{
	struct vcpu *v = vcpu_of_thread(m, e->pid2);
	struct vcpu_sink sink = vcpu_sink_of(m);

	if (!v)
		return;
	((struct vm_vcpu *)v)->vm->data.stacks = true;
	vcpu_stack(v, t, (uint32_t)e->arg0, (enum vs_stack_role)(e->arg1 & 0xff),
		   (int64_t)(e->arg1 >> 8), &sink);
}

/* The exit reasons that mean HLT, by isa (the kernel's KVM_ISA_VMX, KVM_ISA_SVM). */
static bool exit_is_hlt(const struct vs_event *e)
{
	static const uint32_t hlt[] = {[1] = 12, [2] = 0x78};
	uint64_t isa = e->arg0 >> 32;

	return e->type == VS_EVENT_KVM_EXIT && isa < 3 && isa > 0 && (uint32_t)e->arg0 == hlt[isa];
}

static void host_kvm(struct model *m, struct host_ns t, const struct vs_event *e)
{
	static const enum vcpu_mode modes[VS_EVENT_TYPE_LIMIT] = {
		[VS_EVENT_KVM_ENTRY] = MODE_GUEST,
		[VS_EVENT_KVM_EXIT] = MODE_KVM,
		[VS_EVENT_KVM_USERSPACE_EXIT] = MODE_VMM,
	};
	struct vcpu *v = vcpu_of_thread(m, e->pid);
	struct vcpu_sink sink = vcpu_sink_of(m);
	struct vm *vm;

	if (!v)
		return;
	vm = ((struct vm_vcpu *)v)->vm;
	for (size_t i = 0; !vm->data.kvm_events && i < vm->n_vcpus; i++)
		vm->vcpus[i]->v.kvm_seen = true;
	vm->data.kvm_events = true;
	vcpu_kvm(v, t, e->cpu, modes[e->type], exit_is_hlt(e), &sink);
	waiter_update(m, v);
}

typedef void (*host_handler)(struct model *m, struct host_ns t, const struct vs_event *e);

static const host_handler host_handlers[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_SCHED_SWITCH] = host_switch,     [VS_EVENT_SCHED_WAKEUP] = host_wakeup,
	[VS_EVENT_SCHED_WAKEUP_NEW] = host_wakeup, [VS_EVENT_SCHED_MIGRATE] = host_migrate,
	[VS_EVENT_TASK_NAME] = host_name,          [VS_EVENT_TASK_EXIT] = host_exit,
	[VS_EVENT_SIGNAL] = host_signal,           [VS_EVENT_STACK] = host_stack,
	[VS_EVENT_KVM_ENTRY] = host_kvm,           [VS_EVENT_KVM_EXIT] = host_kvm,
	[VS_EVENT_KVM_USERSPACE_EXIT] = host_kvm,
};

static void host_event(struct model *m, struct host_ns t, const struct vs_event *e)
{
	struct pcpu *p = &m->pcpus[e->cpu];

	if (e->type == VS_EVENT_LOST) {
		if (e->cpu != VS_CPU_COLLECTOR) /* which only brings stacks */
			loss_begin(m, e->cpu, loss_since(e, t, p->last));
		return;
	}
	if (p->lossy)
		loss_end(m, e->cpu, t);
	if (e->type < VS_EVENT_TYPE_LIMIT && host_handlers[e->type])
		host_handlers[e->type](m, t, e);
	p->last = t;
}

/* ---- guest events ---- */

static int guest_event(struct model *m, struct vm *vm, const struct timeline_event *event)
{
	const struct vs_event *e = &event->event;
	struct guest_instant instant = {
		.vm = vm->id,
		.cpu = e->cpu,
		.t = m->now,
		.err_ns = event->err_ns,
		.type = (enum vs_event_type)e->type,
		.event = *e,
	};
	struct guest_cpu_sink sink = guest_cpu_sink_of(m);

	if (!vm->cpus[e->cpu]) {
		vm->cpus[e->cpu] = malloc(sizeof(struct guest_cpu));
		if (!vm->cpus[e->cpu])
			return -ENOMEM;
		guest_cpu_init(vm->cpus[e->cpu], vm->id, e->cpu, m->now);
	}
	vm->data.guest_events = true;
	if (e->type == VS_EVENT_TASK_NAME || e->type == VS_EVENT_TASK_EXIT)
		names_event(&vm->names, e);
	if (e->type == VS_EVENT_SCHED_WAKEUP || e->type == VS_EVENT_SCHED_WAKEUP_NEW ||
	    e->type == VS_EVENT_SCHED_MIGRATE) {
		uint64_t target = e->type == VS_EVENT_SCHED_MIGRATE ? e->arg1 : e->arg0;

		if (target >= VS_CPUS_MAX)
			return -EINVAL;
		instant.cpu = (uint16_t)target;
	}
	TELL(m, guest_instant, &instant);
	if (e->type != VS_EVENT_LOST)
		vm->cpus[e->cpu]->err_ns = event->err_ns;
	guest_cpu_event(vm->cpus[e->cpu], m->now, e, &sink);
	return 0;
}

/* ---- time ---- */

static void release(struct model *m)
{
	struct vcpu_sink sink = vcpu_sink_of(m);

	EACH_VCPU(m, v, vcpu_release(v, m->now, false, &sink));
	m->next_release.ns = m->now.ns + MODEL_HOLD_NS / 8;
}

static void start(struct model *m, struct host_ns t)
{
	m->started = true;
	m->begin = m->now = t;
	m->next_release = t;
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		m->pcpus[i].last = t;
	EACH_VCPU(m, v, v->open.begin = v->open.end = t);
}

int model_push(struct model *m, const struct timeline_event *event)
{
	struct vm *vm = NULL;

	if (event->event.cpu >= VS_CPUS_MAX)
		return -EINVAL;
	if (event->source != VS_SOURCE_HOST) {
		vm = vm_find(m, event->source);
		if (!vm)
			return -EINVAL;
	}
	if (!m->started)
		start(m, event->t);
	if (event->t.ns > m->now.ns)
		m->now = event->t;
	if (m->now.ns >= m->next_release.ns)
		release(m);
	if (vm)
		return guest_event(m, vm, event);
	for (size_t i = 0; i < m->n_vms; i++)
		m->vms[i]->data.host_events = true;
	host_event(m, m->now, &event->event);
	return 0;
}

void model_advance(struct model *m, struct host_ns now)
{
	if (!m->started)
		return;
	if (now.ns > m->now.ns)
		m->now = now;
	release(m);
	TELL(m, advance, m->now);
}

void model_finish(struct model *m)
{
	struct vcpu_sink sink = vcpu_sink_of(m);
	struct guest_cpu_sink guest_sink = guest_cpu_sink_of(m);

	if (!m->started)
		return;
	EACH_VCPU(m, v, vcpu_finish(v, m->now, &sink));
	for (size_t i = 0; i < m->n_vms; i++) {
		for (size_t k = 0; k < VS_CPUS_MAX; k++) {
			if (m->vms[i]->cpus[k])
				guest_cpu_finish(m->vms[i]->cpus[k], m->now, &guest_sink);
		}
	}
	TELL(m, advance, m->now);
}

/* ---- questions ---- */

int model_vcpu_of_guest_cpu(const struct model *m, uint32_t vm_id, uint16_t cpu, uint32_t *vcpu)
{
	const struct vm *vm = vm_find(m, vm_id);

	if (!vm || cpu >= VS_CPUS_MAX || vm->vcpu_of_cpu[cpu] < 0)
		return -ENOENT;
	*vcpu = vm->vcpus[vm->vcpu_of_cpu[cpu]]->v.vcpu;
	return 0;
}

int model_guest_cpu_of_vcpu(const struct model *m, uint32_t vm_id, uint32_t vcpu, uint16_t *cpu)
{
	const struct vm *vm = vm_find(m, vm_id);
	const struct vm_vcpu *vv = vm ? vm_vcpu_find(vm, vcpu) : NULL;

	if (!vv || vv->guest_cpu < 0)
		return -ENOENT;
	*cpu = (uint16_t)vv->guest_cpu;
	return 0;
}

int model_vcpu_current(const struct model *m, uint32_t vm_id, uint32_t vcpu, struct vcpu_span *out)
{
	const struct vm *vm = vm_find(m, vm_id);
	const struct vm_vcpu *vv = vm ? vm_vcpu_find(vm, vcpu) : NULL;
	struct vcpu_sink sink = vcpu_sink_of(m);

	if (!vv)
		return -ENOENT;
	*out = vcpu_current(&vv->v, m->now, &sink);
	return 0;
}

int model_vcpu_delivered(const struct model *m, uint32_t vm_id, uint32_t vcpu,
			 struct host_ns *until)
{
	const struct vm *vm = vm_find(m, vm_id);
	const struct vm_vcpu *vv = vm ? vm_vcpu_find(vm, vcpu) : NULL;

	if (!vv)
		return -ENOENT;
	*until = vcpu_delivered(&vv->v);
	return 0;
}

int model_guest_current(const struct model *m, uint32_t vm_id, uint16_t cpu, struct guest_span *out)
{
	const struct vm *vm = vm_find(m, vm_id);

	if (!vm || cpu >= VS_CPUS_MAX || !vm->cpus[cpu])
		return -ENOENT;
	*out = vm->cpus[cpu]->open;
	out->end = m->now;
	return 0;
}

struct host_ns model_begin(const struct model *m)
{
	return m->begin;
}

struct host_ns model_now(const struct model *m)
{
	return m->now;
}

size_t model_vcpus(const struct model *m, uint32_t vm_id, uint32_t *vcpus, size_t max)
{
	const struct vm *vm = vm_find(m, vm_id);

	for (size_t i = 0; vm && i < vm->n_vcpus && i < max; i++)
		vcpus[i] = vm->vcpus[i]->v.vcpu;
	return vm ? vm->n_vcpus : 0;
}

size_t model_vms(const struct model *m, uint32_t *vms, size_t max)
{
	for (size_t i = 0; i < m->n_vms && i < max; i++)
		vms[i] = m->vms[i]->id;
	return m->n_vms;
}

const char *model_vm_name(const struct model *m, uint32_t vm_id)
{
	const struct vm *vm = vm_find(m, vm_id);

	return vm ? vm->name : "";
}

struct model_data model_data_of(const struct model *m, uint32_t vm_id)
{
	const struct vm *vm = vm_find(m, vm_id);

	return vm ? vm->data : (struct model_data){false};
}

const struct stack *model_stack_of(const struct model *m, uint32_t id)
{
	return stacks_get(&m->stacks, id);
}

const char *model_task_name(const struct model *m, uint32_t source, int32_t pid)
{
	const struct vm *vm = source == VS_SOURCE_HOST ? NULL : vm_find(m, source);

	if (source == VS_SOURCE_HOST)
		return names_get(&m->names, pid);
	return vm ? names_get(&vm->names, pid) : "";
}
