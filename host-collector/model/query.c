/* SPDX-License-Identifier: GPL-2.0-only */
/* Answers queries to the model, and names its states. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/internal.h"

#define OFFLINE_AFTER_NS 10000000ll

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

static const char *const reason_names[][2] = {
#define X(NAME, name, meaning) [UNKNOWN_##NAME] = {name, meaning},
	UNKNOWN_REASONS(X)
#undef X
};

const char *unknown_reason_name(enum unknown_reason r)
{
	return reason_names[r][0];
}

const char *unknown_reason_meaning(enum unknown_reason r)
{
	return reason_names[r][1];
}

const char *vcpu_state_name(enum vcpu_state s)
{
	return vcpu_state_names[s];
}

const char *guest_cpu_state_name(enum guest_cpu_state s)
{
	return guest_cpu_state_names[s];
}

void interrupt_name(enum guest_cpu_state kind, bool vector, uint32_t number, char *out,
		    size_t out_bytes)
{
	static const char *const softirqs[] = {"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
					       "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};
	static const char *const vectors[] = {
		[VS_VECTOR_LOCAL_TIMER] = "local_timer",
		[VS_VECTOR_RESCHEDULE] = "reschedule",
		[VS_VECTOR_CALL_FUNCTION] = "call_function",
		[VS_VECTOR_CALL_FUNCTION_SINGLE] = "call_function_single",
	};
	const char *name = NULL;

	if (kind == GUEST_CPU_SOFTIRQ && number < sizeof(softirqs) / sizeof(*softirqs))
		name = softirqs[number];
	else if (vector && number < sizeof(vectors) / sizeof(*vectors))
		name = vectors[number];
	if (name)
		snprintf(out, out_bytes, "%s", name);
	else
		snprintf(out, out_bytes, "%u", number);
}

const struct host_log_line *model_host_log_line(const struct model *m, size_t i)
{
	return host_log_get(&m->host_log, i);
}

int model_vcpu_of_guest_cpu(const struct model *m, uint32_t vm_id, uint16_t cpu, uint32_t *vcpu)
{
	const struct vm *vm = vm_find(m, vm_id);

	if (!vm || cpu >= VS_CPUS_MAX || vm->vcpu_of_cpu[cpu] < 0)
		return -ENOENT;
	*vcpu = vm->number_of_cpu[cpu];
	return 0;
}

int model_guest_cpu_followed(const struct model *m, uint32_t vm_id, uint16_t cpu, uint32_t *vcpu,
			     struct host_ns *since)
{
	const struct vm *vm = vm_find(m, vm_id);
	const struct vcpu *v;

	if (!vm || cpu >= VS_CPUS_MAX || vm->vcpu_of_cpu[cpu] < 0)
		return -ENOENT;
	v = &vm->vcpus[vm->vcpu_of_cpu[cpu]]->v;
	*vcpu = v->vcpu;
	*since = v->is_followed ? v->followed : m->begin;
	return 0;
}

uint64_t model_joins(const struct model *m)
{
	return m->n_joins;
}

int model_vcpu_of_thread(const struct model *m, int32_t tid, uint32_t *vm, uint32_t *vcpu)
{
	const struct vcpu *v = vcpu_of_thread(m, tid);

	if (!v)
		return -ENOENT;
	*vm = v->vm;
	*vcpu = v->vcpu;
	return 0;
}

int model_vm_of_thread(const struct model *m, int32_t tid, uint32_t *vm)
{
	static const char vhost[] = "vhost-"; /* and the VMM's process */
	const char *name = names_get(&m->names, 0, tid);
	int32_t tgid = names_tgid(&m->names, 0, tid);

	if (!strncmp(name, vhost, sizeof(vhost) - 1))
		tgid = (int32_t)strtol(name + sizeof(vhost) - 1, NULL, 10);
	for (size_t i = 0; tgid > 0 && i < m->n_vms; i++) {
		if (m->vms[i]->tgid == tgid) {
			*vm = m->vms[i]->id;
			return 0;
		}
	}
	return -ENOENT;
}

int model_vcpu_of_apic_id(const struct model *m, uint32_t vm_id, uint32_t apic_id, uint32_t *vcpu)
{
	const struct vm *vm = vm_find(m, vm_id);

	for (size_t i = 0; vm && i < vm->n_vcpus; i++) {
		const struct vm_vcpu *vv = vm->vcpus[i];

		if ((vv->apic_id_known ? vv->apic_id : vv->v.vcpu) == apic_id) {
			*vcpu = vv->v.vcpu;
			return 0;
		}
	}
	return -ENOENT;
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
	const struct vcpu_sink *sink = &m->vcpu_sink;
	const struct pcpu *p;

	if (!vv)
		return -ENOENT;
	*out = vcpu_current(&vv->v, m->now, sink);
	p = &m->pcpus[vv->v.open.pcpu];
	if (out->state == VCPU_RUNNABLE && p->current_known &&
	    p->switched.ns >= vv->v.open.begin.ns) {
		/* The task that holds the pCPU now has not been switched out yet. */
		int64_t ns = m->now.ns - vv->v.queue.segment_begin.ns;

		if (p->current)
			out->pcpu_busy_ns += ns;
		else
			out->pcpu_idle_ns += ns;
		if (p->current && ns > out->holder_ns) {
			out->holder_pid = p->current;
			out->holder_ns = ns;
		}
	}
	return 0;
}

/* The task that a kernel runs on a CPU to take it offline: the last that is traced there. */
static bool is_stopper(const struct vm *vm, const struct guest_cpu *c, int32_t pid)
{
	static const char prefix[] = "migration/";
	const char *name = names_get(&vm->names, vm->boot, pid);
	char stopper[24];

	/* This is asked at each sleep of a vCPU, and most tasks have another name. */
	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return false;
	snprintf(stopper, sizeof(stopper), "%s%u", prefix, c->cpu);
	return !strcmp(name, stopper);
}

bool guest_cpu_may_be_offline(const struct vm *vm, const struct guest_cpu *c, struct host_ns t)
{
	return t.ns > c->last.ns && c->task_known && is_stopper(vm, c, c->pid);
}

/*
 * While a kernel stops all its CPUs, each of them switches only to its stopper task. If a CPU has
 * switched to another task since the stopper began, this stopper does not wait for that CPU.
 */
static bool others_go_on(const struct vm *vm, const struct guest_cpu *c)
{
	for (size_t i = 0; i < VS_CPUS_MAX; i++) {
		const struct guest_cpu *other = vm->cpus[i];

		if (other && other != c && !is_stopper(vm, other, other->switched_to) &&
		    other->switched.ns - c->last.ns > OFFLINE_AFTER_NS + c->err_ns + other->err_ns)
			return true;
	}
	return false;
}

bool model_guest_cpu_offline(const struct model *m, uint32_t vm_id, uint16_t cpu)
{
	const struct vm *vm = vm_find(m, vm_id);
	const struct guest_cpu *c = vm && cpu < VS_CPUS_MAX ? vm->cpus[cpu] : NULL;
	const struct vcpu *v;

	if (!c || !guest_cpu_may_be_offline(vm, c, m->now))
		return false;
	if (vm->vcpu_of_cpu[cpu] < 0)
		return vm->n_vcpus > 0;
	/* Its vCPU sleeps, or its thread has ended, or it idles with MWAIT. */
	v = &vm->vcpus[vm->vcpu_of_cpu[cpu]]->v;
	return v->state == THREAD_SLEEPING || v->state == THREAD_UNSEEN || others_go_on(vm, c);
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

int64_t model_tick_interval_ns(const struct model *m, uint32_t vm_id)
{
	const struct vm *vm = vm_find(m, vm_id);

	return vm && vm->tick_hz ? 1000000000 / vm->tick_hz : 0;
}

int64_t model_watchdog_ns(const struct model *m, uint32_t vm_id)
{
	const struct vm *vm = vm_find(m, vm_id);

	return vm ? vm->watchdog_s * 1000000000ll : 0;
}

struct presence_count model_presence(const struct model *m, uint32_t vm_id)
{
	const struct vm *vm = vm_find(m, vm_id);

	return vm ? vm->presence : (struct presence_count){0};
}

void model_guest_distrust(struct model *m, uint32_t vm_id)
{
	if (m->n_distrusted < MODEL_VMS_MAX)
		m->distrusted[m->n_distrusted++] = vm_id;
}

bool model_guest_distrusted(const struct model *m, uint32_t vm_id)
{
	for (size_t i = 0; i < m->n_distrusted; i++) {
		if (m->distrusted[i] == vm_id)
			return true;
	}
	return false;
}

struct model_data model_data_of(const struct model *m, uint32_t vm_id)
{
	const struct vm *vm = vm_find(m, vm_id);
	struct model_data data = vm ? vm->data : (struct model_data){false};

	data.notes_lost = m->notes_lost;
	return data;
}

struct user_events *model_user_events(const struct model *m)
{
	return m->user_events;
}

const struct stack *model_stack_of(const struct model *m, uint32_t id)
{
	return stacks_get(&m->stacks, id);
}

const struct stack *model_guest_stack_of(const struct model *m, uint32_t vm_id, int32_t pid,
					 uint32_t id)
{
	const struct vm *vm = vm_find(m, vm_id);

	return vm && vm->stacks && id ? stacks_get(vm->stacks, guest_stack_key(pid, id)) : NULL;
}

int32_t model_task_process(const struct model *m, uint32_t source, int32_t pid)
{
	const struct vm *vm = source == VS_SOURCE_HOST ? NULL : vm_find(m, source);

	if (source == VS_SOURCE_HOST)
		return names_tgid(&m->names, 0, pid);
	return vm ? names_tgid(&vm->names, vm->boot, pid) : 0;
}

const char *model_task_name(const struct model *m, uint32_t source, int32_t pid)
{
	const struct vm *vm = source == VS_SOURCE_HOST ? NULL : vm_find(m, source);

	if (source == VS_SOURCE_HOST)
		return names_get(&m->names, 0, pid);
	return vm ? names_get(&vm->names, vm->boot, pid) : "";
}

const char *model_task_name_in(const struct model *m, uint32_t vm_id, uint32_t boot, int32_t pid)
{
	const struct vm *vm = vm_find(m, vm_id);

	return vm ? names_get(&vm->names, boot, pid) : "";
}

const struct cgroup *model_cgroup_of(const struct model *m, uint32_t number)
{
	return cgroups_known_get(&m->cgroups, number);
}

const struct task_origin *model_task_origin(const struct model *m, int32_t tid, struct host_ns t)
{
	const struct task_origin *origin = origins_get(&m->origins, tid);
	int32_t tgid = names_tgid(&m->names, 0, tid);

	return origin && origin->began.ns <= t.ns && (!tgid || tgid == origin->tgid) ? origin
										     : NULL;
}

size_t model_names(const struct model *m, uint32_t source, struct model_name *out, size_t max)
{
	const struct vm *vm = source == VS_SOURCE_HOST ? NULL : vm_find(m, source);
	const struct names *n = source == VS_SOURCE_HOST ? &m->names : vm ? &vm->names : NULL;
	size_t found = 0;

	for (uint32_t slot = 0; n && slot < lru_slots(&n->index) && found < max; slot++) {
		if (!lru_used(&n->index, slot) ||
		    lru_key(&n->index, slot) >> 32 != (vm ? vm->boot : 0))
			continue;
		out[found].pid = (int32_t)lru_key(&n->index, slot);
		out[found].tgid = n->tasks[slot].tgid;
		memcpy(out[found++].comm, n->tasks[slot].comm, sizeof(out->comm));
	}
	return found;
}
