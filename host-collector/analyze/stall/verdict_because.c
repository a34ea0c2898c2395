/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/stall/verdict_parts.h"

static void add(struct finding *out, struct finding f)
{
	finding_add(out, REPORT_BECAUSE_MAX, &f);
}

static struct finding_task host_task(const struct model *m, int32_t pid)
{
	return finding_task(m, VS_SOURCE_HOST, pid);
}

/* Returns the longest stop that was not part of a migration. */
static const struct vcpu_span *longest_stop(const struct stall_facts *f)
{
	for (unsigned i = 0; i < f->n_spans; i++) {
		if (f->spans[i].state == VCPU_STOPPED && !f->spans[i].migrates)
			return &f->spans[i];
	}
	return NULL;
}

void because_vm_paused(const struct stall_facts *f, const struct model *m, int64_t ns,
		       struct finding *out)
{
	const struct vcpu_span *s = longest_stop(f);
	struct finding x = {.kind = FINDING_VM_PAUSED, .ns = {ns}};

	if (s && s->signal_pid) {
		x.kind = FINDING_THREAD_SIGNALLED;
		x.task[0] = host_task(m, s->signal_pid);
	} else if (s && (s->wait_class == WAIT_FREEZER || (s->task_state & VS_TASK_FROZEN))) {
		x.kind = FINDING_THREAD_FROZEN;
	} else if (s && (s->task_state & VS_TASK_TRACED) && s->waker_pid) {
		x.kind = FINDING_THREAD_TRACED;
		x.task[0] = host_task(m, s->waker_pid);
	} else if (s && (s->task_state & (VS_TASK_STOPPED | VS_TASK_TRACED))) {
		x.kind = FINDING_THREAD_STOPPED;
	}
	add(out, x);
}

/* Copies a cgroup's path. Of a long path it keeps the end, which is the most specific part, and
 * leaves room for the text after it. */
static void path_set(struct finding *f, const char *path)
{
	enum { PATH_MAX_BYTES = 104 };
	size_t len = strlen(path);

	if (len < PATH_MAX_BYTES)
		snprintf(f->name, PATH_MAX_BYTES, "%s", path);
	else
		snprintf(f->name, PATH_MAX_BYTES, "...%s", path + len - PATH_MAX_BYTES + 4);
}

/* Sets the task that held the pCPU, and in the name its VM if it is a thread of a VMM. */
static void holder_set(struct finding *x, const struct stall_facts *f, const struct model *m,
		       int32_t pid)
{
	struct thread_vm owner;

	x->task[0] = host_task(m, pid);
	if (model_thread_vm(m, pid, f->end, &owner))
		thread_vm_text(&owner, x->name, 160);
}

static struct finding held_in_turn(const struct stall_facts *f, const struct model *m,
				   const struct culprits_sum *kind, int64_t ns)
{
	struct finding x = {.kind = FINDING_HELD_BY_SEVERAL, .ns = {kind->most_ns}};
	const struct cgroup *cgroup = NULL;
	struct culprits_sum group;

	if (kind->n > 1 && kind->ns >= ns / 2)
		return (struct finding){.kind = FINDING_HELD_BY_KIND,
					.n = {kind->n},
					.task = {host_task(m, kind->pid)},
					.ns = {kind->ns}};
	if (culprits_largest(f, m, true, &group) && group.n > 1 && group.ns >= ns / 2)
		cgroup = model_cgroup_of(m, group.cgroup);
	if (cgroup) {
		x = (struct finding){
			.kind = FINDING_HELD_BY_CGROUP, .n = {group.n}, .ns = {group.ns}};
		path_set(&x, cgroup->path);
	} else {
		holder_set(&x, f, m, kind->pid);
	}
	return x;
}

void because_vcpu_not_scheduled(const struct stall_facts *f, const struct model *m, int64_t ns,
				struct finding *out)
{
	struct finding by = {.kind = FINDING_HELD_BY};
	struct culprits_sum kind;

	add(out, (struct finding){.kind = FINDING_PCPU_WAIT, .ns = {ns}});
	if (culprits_largest(f, m, false, &kind)) {
		if (kind.most_ns < ns / 2)
			by = held_in_turn(f, m, &kind, ns);
		else
			holder_set(&by, f, m, kind.pid);
		add(out, by);
	}
	if (f->ongoing && f->data.quota)
		add(out, (struct finding){.kind = FINDING_OR_QUOTA});
}

static int64_t us_to_ns(uint64_t us)
{
	return us < INT64_MAX / 1000 ? (int64_t)us * 1000 : INT64_MAX;
}

void because_cgroup_throttled(const struct stall_facts *f, const struct model *m, int64_t ns,
			      struct finding *out)
{
	const struct cgroup *c = model_cgroup_of(m, facts_quota(f));
	struct finding x = {.kind = FINDING_QUOTA_USED, .ns = {ns}};

	if (f->quota_ns < f->pcpu_idle_ns) {
		x.kind = FINDING_QUOTA_PCPU_IDLE;
		c = NULL;
	} else if (c) {
		x.kind = FINDING_QUOTA_USED_BY;
		path_set(&x, c->path);
	}
	add(out, x);
	if (c && c->quota_us)
		add(out, (struct finding){.kind = FINDING_QUOTA_RATE,
					  .ns = {us_to_ns(c->quota_us), us_to_ns(c->period_us)}});
}

void because_vmm_lock(const struct stall_facts *f, const struct model *m, int64_t ns,
		      struct finding *out)
{
	struct incident who = {0};

	culprits_lock_holders(f, m, &who);
	add(out, (struct finding){.kind = FINDING_BIG_LOCK, .ns = {ns}});
	if (who.n_culprits)
		add(out, (struct finding){.kind = FINDING_LOCK_RELEASED_BY,
					  .task = {host_task(m, who.culprits[0].pid)}});
}

void because_demand_paging(const struct stall_facts *f, const struct model *m, int64_t ns,
			   struct finding *out)
{
	enum wait_class class = f->class_ns[WAIT_USERFAULT] >= f->class_ns[WAIT_PAGE_FAULT]
					? WAIT_USERFAULT
					: WAIT_PAGE_FAULT;

	(void)m;
	add(out, (struct finding){.kind = FINDING_PAGE_WAIT, .ns = {ns}, .n = {class}});
}

void because_guest_irq_storm(const struct stall_facts *f, const struct model *m, int64_t ns,
			     struct finding *out)
{
	(void)m;
	add(out, (struct finding){.kind = FINDING_IRQ_STORM,
				  .n = {f->n_irqs},
				  .ns = {ns, facts_duration(f)}});
}

/* Adds the vCPU that the host kept from the guest, the task responsible, and what the vCPU's CPU
 * ran. */
static void peer_add(const struct stall_facts *f, const struct model *m,
		     const struct facts_peer *peer, struct finding *out)
{
	const struct facts_guest_peer *g = &f->guest_peer;
	struct finding x = {
		.kind = FINDING_PEER_CPU,
		.n = {peer->vcpu, peer->state, peer->keeper},
		.task = {peer->pid ? host_task(m, peer->pid) : (struct finding_task){0}}};
	uint16_t cpu;

	if (model_guest_cpu_of_vcpu(m, f->vm, peer->vcpu, &cpu)) {
		x.kind = FINDING_PEER_VCPU;
		add(out, x);
		return;
	}
	x.n[0] = cpu;
	if (g->known && g->cpu == cpu && g->kind == GUEST_CPU_TASK) {
		x.kind = FINDING_PEER_TASK_ON_CPU;
		x.task[1] = finding_task(m, f->vm, g->pid);
	}
	add(out, x);
}

/* Adds what the other CPU of the guest did that this one may wait for. */
static void guest_peer_add(const struct stall_facts *f, const struct model *m, struct finding *out)
{
	const struct facts_guest_peer *p = &f->guest_peer;
	struct finding x = {.kind = FINDING_GUEST_PEER_INTERRUPT, .n = {p->cpu, p->kind}};

	if (p->kind == GUEST_CPU_TASK) {
		x.kind = p->ticks_stopped ? FINDING_GUEST_PEER_TASK_IRQS_OFF
					  : FINDING_GUEST_PEER_TASK;
		x.task[0] = finding_task(m, f->vm, p->pid);
	} else {
		interrupt_name(p->kind, p->vector, p->number, x.name, 32);
	}
	add(out, x);
}

/* Returns true if the host kept the CPU that this one may have waited for from the guest. */
static bool kept_by_host(const struct stall_facts *f, const struct model *m)
{
	uint16_t cpu;

	return spin_may_be_wait(f) && f->waits.peer_kept.known &&
	       !model_guest_cpu_of_vcpu(m, f->vm, f->waits.peer_kept.vcpu, &cpu) &&
	       cpu == f->guest_peer.cpu;
}

/* Adds the function in which the guest spun, if samples show it. */
static void spin_place_add(const struct facts_sampled *s, struct finding *out)
{
	struct finding x = {.kind = s->calls > s->spins ? FINDING_ANSWER_AWAITED_IN
							: FINDING_SPUN_IN};

	if (!s->spinning)
		return;
	snprintf(x.name, sizeof(x.name), "%s", s->function);
	add(out, x);
}

/* Adds why the guest kept its CPU, if known. */
static void spin_reason_add(const struct stall_facts *f, const struct model *m, struct finding *out)
{
	bool called = f->guest_peer.called;
	bool known = f->guest_peer.known && !kept_by_host(f, m);

	if (!called && !known && f->debt.ns) {
		add(out, (struct finding){.kind = FINDING_EARLIER_DEBT,
					  .task = {finding_task(m, f->vm, f->debt.pid)},
					  .ns = {f->debt.ns}});
		return;
	}
	spin_place_add(&f->sampled, out);
	if (called || known) {
		add(out, (struct finding){.kind = called                 ? FINDING_REQUEST_SENT_TO
						  : f->guest_peer.unsure ? FINDING_MAY_HAVE_AWAITED
									 : FINDING_LIKELY_AWAITED});
		guest_peer_add(f, m, out);
	} else if (spin_may_be_wait(f) && f->waits.peer_kept.known) {
		add(out, (struct finding){.kind = FINDING_MAY_HAVE_AWAITED});
		peer_add(f, m, &f->waits.peer_kept, out);
	}
}

void because_guest_spin(const struct stall_facts *f, const struct model *m, int64_t ns,
			struct finding *out)
{
	struct finding kept = {.kind = FINDING_INTERRUPT_KEPT_CPU, .ns = {ns}, .n = {0, f->kind}};

	if (f->kind == GUEST_CPU_TASK) {
		kept.kind = FINDING_TASK_KEPT_CPU;
		kept.task[0] = finding_task(m, f->vm, f->pid);
	} else if (f->late.ns) {
		kept.kind = FINDING_IDLE_TOOK_NO_INTERRUPT;
	} else {
		interrupt_name(f->kind, f->vector, f->number, kept.name, 32);
	}
	add(out, kept);
	add(out, (struct finding){.kind = f->guest_peer.halted_ns > ns / 2 ? FINDING_WHILE_HALTED
									   : FINDING_WHILE_RAN});
	spin_reason_add(f, m, out);
}

void because_lock_holder_preempted(const struct stall_facts *f, const struct model *m, int64_t ns,
				   struct finding *out)
{
	add(out, (struct finding){.kind = f->waits.coincidence ? FINDING_LOCK_COINCIDENCE
					  : f->waits.lock_halted_ns > ns / 2 ? FINDING_LOCK_HALTED
									     : FINDING_LOCK_SPUN,
				  .ns = {ns}});
	peer_add(f, m, &f->waits.lock_owner, out);
	if (f->waits.coincidence)
		add(out, (struct finding){.kind = FINDING_WAIT_ENDED_WITH_IT});
}

void because_ipi_target_preempted(const struct stall_facts *f, const struct model *m, int64_t ns,
				  struct finding *out)
{
	add(out, (struct finding){.kind = f->waits.coincidence ? FINDING_IPI_MAYBE_SENT
							       : FINDING_IPI_SENT,
				  .ns = {ns}});
	peer_add(f, m, &f->waits.call_target, out);
}

void because_device_no_completion(const struct stall_facts *f, const struct model *m, int64_t ns,
				  struct finding *out)
{
	(void)m;
	if (f->device_ns * 2 >= ns)
		add(out, (struct finding){.kind = FINDING_DEVICE_ACCESS, .ns = {ns}});
	else
		add(out,
		    (struct finding){.kind = f->waits.polled_port ? FINDING_DEVICE_POLLED_PORT
								  : FINDING_DEVICE_POLLED_ADDRESS,
				     .ns = {ns},
				     .n = {f->waits.polls, f->waits.polled}});
}

void because_clock_jump(const struct stall_facts *f, const struct model *m, int64_t ns,
			struct finding *out)
{
	int64_t step = f->clock_step_ns;

	(void)m;
	(void)ns;
	add(out, (struct finding){.kind = step > 0 ? FINDING_CLOCK_AHEAD : FINDING_CLOCK_BACK,
				  .ns = {step > 0 ? step : -step}});
}

void because_nested_unobservable(const struct stall_facts *f, const struct model *m, int64_t ns,
				 struct finding *out)
{
	add(out, (struct finding){.kind = FINDING_NESTED,
				  .ns = {ns},
				  .task = {finding_task(m, f->vm, f->pid)}});
}

void because_interrupt_lost(const struct stall_facts *f, const struct model *m, int64_t ns,
			    struct finding *out)
{
	const struct facts_lost *l = &f->lost;
	struct finding x = {.kind = FINDING_INTERRUPT_LOST,
			    .ns = {ns},
			    .n = {l->vector, (uint64_t)(int64_t)l->irq},
			    .task = {host_task(m, l->raiser)}};

	snprintf(x.name, sizeof(x.name), "%s", l->source);
	add(out, x);
	add(out, (struct finding){.kind = f->state_ns[VCPU_HALTED] > ns / 2
						  ? FINDING_ALTHOUGH_HALTED
						  : FINDING_ALTHOUGH_GUEST_RAN});
}
