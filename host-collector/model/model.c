/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Routes the timeline's events to the state machines that they concern. Host events (host.c) go to
 * the vCPU threads (vcpu.c) by thread id, and to the accounting of each pCPU's holders. Guest
 * events go to the guest CPUs (guest_cpu.c). One event concerns only a few state machines, except
 * for a loss, which concerns all.
 */
#include "host-collector/model/model.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/worker.h"
#include "host-collector/model/internal.h"

/* ---- callbacks of the state machines ---- */

static void on_vcpu_span(void *context, const struct vcpu_span *span)
{
	struct model *m = context;

	EMIT(&m->audiences, vcpu_span, span);
}

static void on_guest_span(void *context, const struct guest_span *span)
{
	struct model *m = context;

	EMIT(&m->audiences, guest_span, span);
}

static void on_guest_interrupt(void *context, const struct guest_interrupt *interrupt)
{
	struct model *m = context;

	EMIT(&m->audiences, guest_interrupt, interrupt);
}

static enum guest_account account_of(void *context, const struct vcpu *v, struct host_ns t)
{
	const struct vm_vcpu *vv = (const struct vm_vcpu *)v;
	const struct guest_cpu *c = vv->guest_cpu < 0 ? NULL : vv->vm->cpus[vv->guest_cpu];
	struct model *m = context;

	if (m->leaves_guests)
		__atomic_store_n(&m->guests_missed, true, __ATOMIC_RELAXED);
	if (!c || guest_cpu_may_be_offline(vv->vm, c, t))
		return GUEST_ACCOUNT_UNKNOWN;
	return guest_cpu_account(c, t, m->now);
}

static bool paused_at(void *context, const struct vcpu *v, struct host_ns t, struct vcpu_span *span)
{
	const struct vm *vm = ((const struct vm_vcpu *)v)->vm;
	bool paused = t.ns >= vm->pause_begin.ns && (vm->paused || t.ns < vm->pause_end.ns);

	(void)context;
	span->migrates = paused && vm->pause_migrates;
	span->asker_pid = paused && !vm->pause_migrates ? vm->pause_asker : 0;
	return paused;
}

static enum wait_class class_of(void *context, const struct vcpu *v, uint32_t id)
{
	struct model *m = context;

	return stacks_wait_class(&m->stacks, id, ((const struct vm_vcpu *)v)->vm->kvm);
}

/* Keeps the holders of a wait that is over. Without memory for them, the longest is known. */
static void on_crowd(void *context, const struct vcpu_holder *holders, unsigned n,
		     struct vcpu_span *span)
{
	struct model *m = context;

	if (!m->crowd)
		m->crowd = calloc(1, sizeof(*m->crowd));
	if (!m->crowd)
		return;
	span->crowd = m->crowd;
	span->crowd_first = m->crowd->n;
	for (unsigned i = 0; i < n; i++) {
		if (holders[i].pid)
			crowd_add(m->crowd, &holders[i]);
	}
	span->n_crowd = (uint32_t)(m->crowd->n - span->crowd_first);
}

static void sinks_init(struct model *m)
{
	m->vcpu_sink = (struct vcpu_sink){.span = on_vcpu_span,
					  .account = account_of,
					  .paused = paused_at,
					  .wait_class = class_of,
					  .crowd = on_crowd,
					  .context = m};
	m->guest_cpu_sink = (struct guest_cpu_sink){on_guest_span, on_guest_interrupt, m};
}

/* ---- the whole ---- */

struct model *model_new(void)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	sinks_init(m);
	m->by_thread = calloc(THREADS_INDEXED, sizeof(struct vm_vcpu *));
	m->user_events = user_events_new();
	if (!m->by_thread || !m->user_events || lru_init(&m->threads, THREADS_INDEXED) ||
	    names_init(&m->names) || stacks_init(&m->stacks)) {
		model_free(m);
		return NULL;
	}
	return m;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	worker_free(m->worker);
	while (m->windows) {
		struct window *next = m->windows->next;

		window_free(m->windows);
		m->windows = next;
	}
	for (size_t i = 0; i < m->n_vms; i++)
		vm_free(m->vms[i]);
	user_events_free(m->user_events);
	lru_fini(&m->threads);
	names_fini(&m->names);
	cgroups_known_fini(&m->cgroups);
	origins_fini(&m->origins);
	free(m->crowd);
	stacks_fini(&m->stacks);
	free(m->by_thread);
	audiences_fini(&m->audiences);
	free(m);
}

/* If this is unknown, returns true. */
static bool has_second_cpu(void)
{
	cpu_set_t allowed;

	return sched_getaffinity(0, sizeof(allowed), &allowed) || CPU_COUNT(&allowed) > 1;
}

int model_observe_on_worker(struct model *m, bool worker)
{
	int err = 0;

	if (worker && !m->worker && has_second_cpu())
		err = worker_new(&m->worker);
	m->observing_on_worker = worker && m->worker;
	return err;
}

int model_observe_within(struct model *m, struct host_ns from, struct host_ns until,
			 void (*opened)(void *opener), void *opener)
{
	struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->time = NARROW_NOTHING;
	w->time.cut = true;
	w->time.from = from;
	w->time.until = until;
	w->opened = opened;
	w->opener = opener;
	w->next = m->windows;
	m->window = m->windows = w;
	return 0;
}

void model_observe_always(struct model *m)
{
	m->window = NULL;
}

int model_observe(struct model *m, const struct model_observer *observer)
{
	struct model_observer from, through;
	int err;

	if (m->window) {
		err = window_observe(m->window, observer, &through);
		if (err)
			return err;
		observer = &through;
	}
	if (!m->observing_on_worker)
		return audiences_add(&m->audiences, observer);
	err = worker_observe(m->worker, observer, &from);
	return err ? err : audiences_add(&m->audiences, &from);
}

void model_worker_await(struct model *m)
{
	if (m->worker)
		worker_await(m->worker);
}

/* The VMs and their threads may change only between these two: the worker must not read them
 * meanwhile. */
static void changes_begin(struct model *m)
{
	if (m->worker)
		worker_pause(m->worker);
}

static void changes_end(struct model *m)
{
	m->n_joins++;
	if (m->worker)
		worker_resume(m->worker);
}

/* ---- VMs ---- */

/* From now on nothing is known of it; if it has been taken offline, since its last event. */
static void guest_cpu_end(struct model *m, struct vm *vm, uint16_t cpu)
{
	const struct guest_instant end = {
		.vm = vm->id,
		.cpu = cpu,
		.has_vcpu = vm->vcpu_of_cpu[cpu] >= 0,
		.vcpu = vm->number_of_cpu[cpu],
		.t = m->now,
		.type = VS_EVENT_LOST,
		.event = {.cpu = cpu, .type = VS_EVENT_LOST},
	};
	const bool offline = model_guest_cpu_offline(m, vm->id, cpu);
	const struct guest_cpu_sink *sink = &m->guest_cpu_sink;

	if (!vm->cpus[cpu])
		return;
	EMIT(&m->audiences, guest_instant, &end);
	if (offline)
		guest_cpu_forget(vm->cpus[cpu], sink);
	else
		guest_cpu_event(vm->cpus[cpu], m->now, &end.event, sink);
}

static void vcpu_retire(struct model *m, struct vm *vm, size_t position)
{
	struct vcpu *v = &vm->vcpus[position]->v;
	const int cpu = vm->vcpus[position]->guest_cpu;
	const struct vcpu_sink *sink = &m->vcpu_sink;
	uint32_t slot = lru_find(&m->threads, (uint32_t)v->tid);

	vcpu_finish(v, m->now, sink);
	if (cpu >= 0)
		guest_cpu_end(m, vm, (uint16_t)cpu);
	waiter_unlink(v);
	if (m->by_bit[(uint32_t)v->tid % THREAD_BITS] == vm->vcpus[position])
		m->by_bit[(uint32_t)v->tid % THREAD_BITS] = NULL;
	if (slot != LRU_NONE && &m->by_thread[slot]->v == v)
		lru_remove(&m->threads, slot);
	vm_vcpu_remove(vm, position);
	m->n_joins++;
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
		m->thread_bits[thread_word(thread->tid)] |= thread_bit(thread->tid);
		m->by_bit[(uint32_t)thread->tid % THREAD_BITS] = vv;
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

static int vm_set(struct model *m, const struct message_vm_info *info)
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
		m->host_seen = false;
	}
	memcpy(vm->name, info->name, sizeof(vm->name));
	vm->name[sizeof(vm->name) - 1] = 0;
	vm->tgid = info->qemu_pid;
	vm->kvm = strcmp(info->accelerator, "kvm") == 0;
	vm->data.is_protected |= info->protection != VM_PROTECTION_NONE;
	for (size_t i = vm->n_vcpus; i-- > 0;) {
		const struct message_vm_thread *thread = thread_of(info, vm->vcpus[i]->v.vcpu);

		if (!thread || thread->tid != vm->vcpus[i]->v.tid)
			vcpu_retire(m, vm, i);
	}
	for (size_t i = 0; i < info->n_threads && !err; i++) {
		names_set(&m->names, 0, info->threads[i].tid, info->qemu_pid,
			  info->threads[i].comm);
		if (info->threads[i].is_vcpu)
			err = vcpu_announce(m, vm, &info->threads[i]);
	}
	vm_join(vm);
	return err;
}

int model_vm(struct model *m, const struct message_vm_info *info)
{
	int err;

	changes_begin(m);
	err = vm_set(m, info);
	changes_end(m);
	return err;
}

int model_vm_followed(struct model *m, uint32_t vm_id, struct host_ns t)
{
	struct vm *vm = vm_find(m, vm_id);

	if (!vm)
		return -ENOENT;
	for (size_t i = 0; i < vm->n_vcpus; i++) {
		struct vcpu *v = &vm->vcpus[i]->v;

		if (!v->is_followed)
			v->followed = t;
		v->is_followed = true;
	}
	m->n_joins++;
	return 0;
}

int model_guest_cpus(struct model *m, uint32_t vm_id, const struct message_cpu *cpus, size_t n)
{
	struct vm *vm = vm_find(m, vm_id);
	int err = -ENOENT;

	changes_begin(m);
	if (vm)
		err = vm_guest_cpus(vm, cpus, n);
	changes_end(m);
	return err;
}

int model_guest_tick(struct model *m, uint32_t vm_id, uint32_t hz)
{
	struct vm *vm = vm_find(m, vm_id);

	if (!vm)
		return -ENOENT;
	vm->tick_hz = hz;
	return 0;
}

int model_guest_watchdog(struct model *m, uint32_t vm_id, uint32_t seconds)
{
	struct vm *vm = vm_find(m, vm_id);

	if (!vm)
		return -ENOENT;
	vm->watchdog_s = seconds;
	return 0;
}

int model_guest_boot(struct model *m, uint32_t vm_id, uint32_t boot)
{
	struct vm *vm = vm_find(m, vm_id);

	if (!vm)
		return -ENOENT;
	vm->next_boot = boot;
	return 0;
}

/* A command to stop may first wait for the guest's disks. */
#define ASKED_MAX_NS 1000000000ll

int model_vm_paused(struct model *m, uint32_t vm_id, struct host_ns t, bool paused)
{
	struct vm *vm = vm_find(m, vm_id);

	if (!vm)
		return -ENOENT;
	if (paused && !vm->paused) {
		vm->pause_begin = t;
		vm->pause_migrates = vm->migrates;
		vm->pause_asker =
			t.ns - vm->monitor_woken.ns <= ASKED_MAX_NS ? vm->monitor_waker : 0;
	} else if (!paused && vm->paused) {
		vm->pause_end = t;
	}
	vm->paused = paused;
	return 0;
}

int model_vm_migrates(struct model *m, uint32_t vm_id, bool migrates)
{
	struct vm *vm = vm_find(m, vm_id);

	if (!vm)
		return -ENOENT;
	vm->migrates = migrates;
	return 0;
}

void model_notes_lost(struct model *m)
{
	m->notes_lost = true;
}

int model_guest_steal(struct model *m, const struct guest_steal *steal)
{
	if (steal->cpu >= VS_CPUS_MAX)
		return -EINVAL;
	if (!vm_find(m, steal->vm))
		return -ENOENT;
	EMIT(&m->audiences, guest_steal, steal);
	return 0;
}

int model_guest_clock(struct model *m, const struct guest_clock_reading *reading)
{
	if (!vm_find(m, reading->vm))
		return -ENOENT;
	EMIT(&m->audiences, guest_clock, reading);
	return 0;
}

int model_handlers_counted(struct model *m, uint32_t vm)
{
	struct vm *known = vm_find(m, vm);

	if (!known)
		return -ENOENT;
	known->data.handlers_counted = true;
	return 0;
}

void model_exits_counted(struct model *m, const struct message_exit_summary *counted)
{
	struct vm *vm = vm_find(m, counted->vm);

	if (vm)
		vm->data.exits_counted = true;
	EMIT(&m->audiences, exits_counted, counted);
}

/* The waits of all vCPUs of a group, before the first of them is charged. */
static const struct quota_waits *quota_waits_of(struct vm *vm, const struct quota_reading *reading,
						const struct vcpu_sink *sink)
{
	if (vm->quota_until.ns == reading->until.ns && vm->quota_cgroup == reading->cgroup &&
	    reading->n_vcpus > 1)
		return &vm->quota_waits;
	vm->quota_until = reading->until;
	vm->quota_cgroup = reading->cgroup;
	vm->quota_waits = (struct quota_waits){0};
	for (size_t i = 0; i < vm->n_vcpus; i++) {
		const struct vcpu *v = &vm->vcpus[i]->v;

		if (reading->n_vcpus > 1 || vm->vcpus[i] == vm_vcpu_find(vm, reading->vcpu))
			vcpu_quota_waits(v, reading, sink, &vm->quota_waits);
	}
	vcpu_quota_choose(&vm->quota_waits, reading->throttled_ns, (uint32_t)vm->n_vcpus,
			  reading->n_vcpus);
	return &vm->quota_waits;
}

int model_quota(struct model *m, const struct quota_reading *reading)
{
	struct vm *vm = vm_find(m, reading->vm);
	struct vm_vcpu *vv = vm ? vm_vcpu_find(vm, reading->vcpu) : NULL;
	const struct vcpu_sink *sink = &m->vcpu_sink;

	if (!vv)
		return -ENOENT;
	vm->data.quota = true;
	vcpu_quota(&vv->v, reading, quota_waits_of(vm, reading, sink), sink);
	return 0;
}

int model_cgroup(struct model *m, const char *path, uint64_t quota_us, uint64_t period_us,
		 uint32_t *number)
{
	return cgroups_known_put(&m->cgroups, path, quota_us, period_us, number);
}

int model_task_origin_set(struct model *m, const struct task_origin *origin)
{
	return origins_set(&m->origins, origin);
}

void model_host_log(struct model *m, struct host_ns t, const char *text)
{
	host_log_add(&m->host_log, t, text);
}

int model_stack(struct model *m, const struct message_stack *stack)
{
	return stacks_put(&m->stacks, stack->id, stack);
}

int model_guest_stack(struct model *m, uint32_t vm_id, const struct message_stack *stack)
{
	struct vm *vm = vm_find(m, vm_id);

	if (!vm)
		return -ENOENT;
	if (!vm->stacks) {
		vm->stacks = calloc(1, sizeof(*vm->stacks));
		if (!vm->stacks || stacks_init(vm->stacks)) {
			free(vm->stacks);
			vm->stacks = NULL;
			return -ENOMEM;
		}
	}
	vm->data.guest_stacks = true;
	return stacks_put(vm->stacks, guest_stack_key(stack->pid, stack->id), stack);
}

/* ---- guest events ---- */

/* The first event of a guest's CPU. 0 or -ENOMEM. */
static int guest_cpu_new(struct model *m, struct vm *vm, uint16_t cpu)
{
	int err;

	vm->cpus[cpu] = malloc(sizeof(struct guest_cpu));
	if (!vm->cpus[cpu])
		return -ENOMEM;
	guest_cpu_init(vm->cpus[cpu], vm->id, cpu, m->now);
	changes_begin(m);
	err = vm_guest_cpu_add(vm, cpu);
	changes_end(m);
	return err;
}

static inline int guest_event(struct model *m, struct vm *vm, const struct timeline_event *event)
{
	const struct vs_event *e = &event->event;
	const struct guest_cpu_sink *sink = &m->guest_cpu_sink;
	uint64_t target = e->cpu; /* the CPU that it concerns */
	struct guest_instant instant;
	struct guest_cpu *cpu;
	bool has_vcpu;

	if (vm->next_boot != vm->boot && e->type != VS_EVENT_LOST)
		vm->boot = vm->next_boot;
	if (!vm->cpus[e->cpu] && guest_cpu_new(m, vm, e->cpu))
		return -ENOMEM;
	cpu = vm->cpus[e->cpu];
	vm->data.guest_events = true;
	has_vcpu = vm->vcpu_of_cpu[e->cpu] >= 0;
	if (has_vcpu) {
		struct vm_vcpu *vv = vm->vcpus[vm->vcpu_of_cpu[e->cpu]];

		if (event_type_is(e->type, EVENT_IN_GUEST) && vv->join_certain)
			presence_event(&vv->presence, event->t, event->err_ns, &vm->presence);
	}
	switch (e->type) {
	case VS_EVENT_TASK_NAME:
	case VS_EVENT_TASK_EXIT:
		names_event(&vm->names, vm->boot, e);
		break;
	case VS_EVENT_SCHED_WAKEUP:
	case VS_EVENT_SCHED_WAKEUP_NEW:
		target = ev_sched_wakeup_cpu(e);
		break;
	case VS_EVENT_SCHED_MIGRATE:
		target = ev_sched_migrate_task_to(e);
		break;
	default:
		break;
	}
	if (target >= VS_CPUS_MAX)
		return -EINVAL;
	instant = (struct guest_instant){
		.vm = vm->id,
		.boot = vm->boot,
		.cpu = (uint16_t)target,
		.has_vcpu = has_vcpu,
		.vcpu = has_vcpu ? vm->number_of_cpu[e->cpu] : 0,
		.t = m->now,
		.err_ns = event->err_ns,
		.type = (enum vs_event_type)e->type,
		.event = *e,
	};
	EMIT(&m->audiences, guest_instant, &instant);
	if (e->type != VS_EVENT_LOST)
		guest_cpu_error(cpu, m->now, event->err_ns);
	cpu->boot = vm->boot;
	guest_cpu_event(cpu, m->now, e, sink);
	return 0;
}

/* ---- what the model needs ---- */

struct event_set model_lasting_types(void)
{
	return EVENT_SET(VS_EVENT_LOST, VS_EVENT_TASK_NAME, VS_EVENT_TASK_EXIT);
}

/* Returns true if the observer stands for those on the worker thread. */
static bool is_worker(const struct model *m, const struct model_observer *o)
{
	return m->worker && o->context == m->worker;
}

struct model_needs model_needs(const struct model *m)
{
	static const struct event_set all = {0};
	struct model_needs needs = {
		.host_types = m->n_windows_needed ? model_lasting_types() : host_types(),
		.guest_types = model_lasting_types(),
		.n_windows = m->n_windows_needed,
		.windows = m->windows_needed,
	};

	if (!m->leaves_guests && !m->n_windows_needed)
		event_set_add(&needs.guest_types, &all);
	for (size_t i = 0; i < m->audiences.host_instant.n; i++) {
		const struct model_observer *o = &m->audiences.host_instant.observers[i];

		event_set_add(&needs.host_types,
			      is_worker(m, o) ? worker_host_types(m->worker) : &o->host_types);
	}
	for (size_t i = 0; i < m->audiences.guest_instant.n; i++) {
		const struct model_observer *o = &m->audiences.guest_instant.observers[i];

		event_set_add(&needs.guest_types,
			      is_worker(m, o) ? worker_guest_types(m->worker) : &o->guest_types);
	}
	return needs;
}

void model_need_instants(struct model *m, const struct model_window *windows, size_t n)
{
	m->windows_needed = windows;
	m->n_windows_needed = n;
}

void model_leave_guests(struct model *m)
{
	m->leaves_guests = true;
}

bool model_guests_missed(const struct model *m)
{
	return __atomic_load_n(&m->guests_missed, __ATOMIC_RELAXED);
}

/* ---- time ---- */

/* The rare steps are not inlined into the loop over the events, which would pay for their
 * registers.
 */
__attribute__((noinline)) static void release(struct model *m)
{
	const struct vcpu_sink *sink = &m->vcpu_sink;

	EACH_VCPU(m, v, vcpu_release(v, m->now, false, sink));
	m->next_release.ns = m->now.ns + MODEL_HOLD_NS / 8;
}

__attribute__((noinline)) static void start(struct model *m, struct host_ns t)
{
	m->started = true;
	m->begin = m->now = t;
	m->next_release = t;
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		m->pcpus[i].last = t;
	EACH_VCPU(m, v, v->open.begin = v->open.end = t);
}

__attribute__((noinline)) static void host_seen(struct model *m)
{
	m->host_seen = true;
	for (size_t i = 0; i < m->n_vms; i++)
		m->vms[i]->data.host_events = true;
}

/* Inlined into the loop over the events: as a function it would save and restore registers for each
 * event. */
__attribute__((always_inline)) static inline int event_take(struct model *m,
							    const struct timeline_event *event)
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
	if (!m->host_seen)
		host_seen(m);
	host_event(m, event);
	return 0;
}

int model_push(struct model *m, const struct timeline_event *events, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n; i++) {
		const int its = event_take(m, &events[i]);

		if (its && err != -ENOMEM)
			err = its;
	}
	return err;
}

void model_advance(struct model *m, struct host_ns now)
{
	if (!m->started)
		return;
	if (now.ns > m->now.ns)
		m->now = now;
	release(m);
	EMIT(&m->audiences, advance, m->now);
}

static void finish(struct model *m)
{
	const struct vcpu_sink *sink = &m->vcpu_sink;
	const struct guest_cpu_sink *guest_sink = &m->guest_cpu_sink;

	host_finish(m);
	EACH_VCPU(m, v, vcpu_finish(v, m->now, sink));
	for (size_t i = 0; i < m->n_vms; i++) {
		for (size_t k = 0; k < VS_CPUS_MAX; k++) {
			if (!m->vms[i]->cpus[k])
				continue;
			if (model_guest_cpu_offline(m, m->vms[i]->id, (uint16_t)k))
				guest_cpu_end(m, m->vms[i], (uint16_t)k);
			guest_cpu_finish(m->vms[i]->cpus[k], m->now, guest_sink);
		}
	}
	EMIT(&m->audiences, advance, m->now);
}

void model_finish(struct model *m)
{
	if (m->started)
		finish(m);
	if (m->worker)
		worker_pause(m->worker);
}
