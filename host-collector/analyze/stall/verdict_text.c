/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/stall/describe.h"
#include "host-collector/analyze/stall/verdict_parts.h"

/* Returns the longest stop that was not part of a migration. */
static const struct vcpu_span *longest_stop(const struct stall_facts *f)
{
	for (unsigned i = 0; i < f->n_spans; i++) {
		if (f->spans[i].state == VCPU_STOPPED && !f->spans[i].migrates)
			return &f->spans[i];
	}
	return NULL;
}

void because_vm_paused(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		       size_t n)
{
	const struct vcpu_span *s = longest_stop(f);

	if (s && s->signal_pid)
		describe(out, n, "the vCPU thread was stopped for %s by a signal from %s",
			 duration_text(ns).text, task_text(m, VS_SOURCE_HOST, s->signal_pid).text);
	else if (s && (s->wait_class == WAIT_FREEZER || (s->task_state & VS_TASK_FROZEN)))
		describe(out, n, "the vCPU thread was frozen with its cgroup for %s",
			 duration_text(ns).text);
	else if (s && (s->task_state & VS_TASK_TRACED) && s->waker_pid)
		describe(out, n, "the vCPU thread was stopped for %s by its tracer %s",
			 duration_text(ns).text, task_text(m, VS_SOURCE_HOST, s->waker_pid).text);
	else if (s && (s->task_state & (VS_TASK_STOPPED | VS_TASK_TRACED)))
		describe(
			out, n,
			"the vCPU thread was stopped for %s; the recording does not show who stopped it",
			duration_text(ns).text);
	else
		describe(out, n, "the VM was paused by its VMM for %s", duration_text(ns).text);
}

void because_migration(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		       size_t n)
{
	(void)f;
	(void)m;
	describe(out, n, "QEMU paused the VM for %s to complete its migration",
		 duration_text(ns).text);
}

void because_host_lockup(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			 size_t n)
{
	(void)f;
	(void)m;
	describe(
		out, n,
		"the host's watchdog reports that the vCPU's pCPU was stuck in the host's kernel: %s "
		"of the stall",
		duration_text(ns).text);
}

void because_split_lock(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			size_t n)
{
	(void)f;
	(void)m;
	describe(out, n,
		 "the guest locked memory across cache lines, and the host's kernel held its vCPU "
		 "back for %s",
		 duration_text(ns).text);
}

/* The end of a cgroup's path, short enough to leave room for the text after it. The end is the most
 * specific part. */
struct path_text {
	char text[104];
};

static struct path_text path_text(const char *path)
{
	struct path_text t;
	size_t len = strlen(path);

	if (len < sizeof(t.text))
		describe(t.text, sizeof(t.text), "%s", path);
	else
		describe(t.text, sizeof(t.text), "...%s", path + len - sizeof(t.text) + 4);
	return t;
}

/* Writes, for example: "waited 2.5 s for a pCPU, held by 20 tasks in cgroup /batch.slice in turn:
 * 2.4 s". */
static void held_in_turn(const struct stall_facts *f, const struct model *m,
			 const struct culprits_sum *kind, int64_t ns, char *out, size_t n)
{
	struct culprits_sum group;
	const struct cgroup *cgroup = NULL;

	if (kind->n > 1 && kind->ns >= ns / 2) {
		describe(out, n, "%u tasks such as %s in turn: %s", kind->n,
			 task_text(m, VS_SOURCE_HOST, kind->pid).text,
			 duration_text(kind->ns).text);
		return;
	}
	if (culprits_largest(f, m, true, &group) && group.n > 1 && group.ns >= ns / 2)
		cgroup = model_cgroup_of(m, group.cgroup);
	if (cgroup)
		describe(out, n, "%u tasks in cgroup %s in turn: %s", group.n,
			 path_text(cgroup->path).text, duration_text(group.ns).text);
	else
		describe(out, n, "several tasks in turn, longest by %s: %s",
			 holder_text(f, m, kind->pid).text, duration_text(kind->most_ns).text);
}

void because_vcpu_not_scheduled(const struct stall_facts *f, const struct model *m, int64_t ns,
				char *out, size_t n)
{
	struct culprits_sum kind;
	char by[200] = "";

	if (!culprits_largest(f, m, false, &kind))
		by[0] = '\0';
	else if (kind.most_ns < ns / 2)
		held_in_turn(f, m, &kind, ns, by, sizeof(by));
	else
		describe(by, sizeof(by), "%s", holder_text(f, m, kind.pid).text);
	describe(out, n, "the vCPU was ready to run but waited %s for a pCPU%s%s",
		 duration_text(ns).text, *by ? ", held by " : "", by);
	if (f->ongoing && f->data.quota)
		describe(
			out + strlen(out), n - strlen(out),
			"; or its cgroup is out of CPU quota, which the kernel counts only when the "
			"wait ends");
}

static struct duration_text us_text(uint64_t us)
{
	return duration_text(us < INT64_MAX / 1000 ? (int64_t)us * 1000 : INT64_MAX);
}

void because_cgroup_throttled(const struct stall_facts *f, const struct model *m, int64_t ns,
			      char *out, size_t n)
{
	const struct cgroup *c = model_cgroup_of(m, facts_quota(f));

	if (f->quota_ns < f->pcpu_idle_ns)
		describe(out, n,
			 "the vCPU was ready to run for %s but did not run although its pCPU was "
			 "idle, as happens under a CPU quota",
			 duration_text(ns).text);
	else if (!c)
		describe(out, n, "the VM's cgroup was out of CPU quota for %s",
			 duration_text(ns).text);
	else if (!c->quota_us)
		describe(out, n, "the VM's cgroup %s was out of CPU quota for %s",
			 path_text(c->path).text, duration_text(ns).text);
	else
		describe(out, n,
			 "the VM's cgroup %s was out of CPU quota for %s: it gets %s of CPU time "
			 "in every %s",
			 path_text(c->path).text, duration_text(ns).text, us_text(c->quota_us).text,
			 us_text(c->period_us).text);
}

void because_vmm_lock(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
		      size_t n)
{
	struct incident who = {0};

	culprits_lock_holders(f, m, &who);
	if (who.n_culprits)
		describe(out, n, "the vCPU thread waited %s for QEMU's big lock, released by %s",
			 duration_text(ns).text,
			 task_text(m, VS_SOURCE_HOST, who.culprits[0].pid).text);
	else
		describe(out, n, "the vCPU thread waited %s for QEMU's big lock",
			 duration_text(ns).text);
}

void because_storage_backend(const struct stall_facts *f, const struct model *m, int64_t ns,
			     char *out, size_t n)
{
	(void)f;
	(void)m;
	describe(out, n, "the vCPU thread waited %s for a block device in the host",
		 duration_text(ns).text);
}

void because_demand_paging(const struct stall_facts *f, const struct model *m, int64_t ns,
			   char *out, size_t n)
{
	(void)m;
	describe(out, n, "the vCPU thread waited %s for %s", duration_text(ns).text,
		 wait_class_object(f->class_ns[WAIT_USERFAULT] >= f->class_ns[WAIT_PAGE_FAULT]
					   ? WAIT_USERFAULT
					   : WAIT_PAGE_FAULT));
}

void because_mmu_contention(const struct stall_facts *f, const struct model *m, int64_t ns,
			    char *out, size_t n)
{
	(void)f;
	(void)m;
	describe(out, n, "the vCPU thread waited %s for a lock of the VM's memory map",
		 duration_text(ns).text);
}

void because_host_memory(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			 size_t n)
{
	(void)f;
	(void)m;
	describe(out, n, "the vCPU thread had to free host memory for %s", duration_text(ns).text);
}

void because_guest_irq_storm(const struct stall_facts *f, const struct model *m, int64_t ns,
			     char *out, size_t n)
{
	(void)m;
	describe(out, n, "%u interrupts in the guest took %s of %s", f->n_irqs,
		 duration_text(ns).text, duration_text(facts_duration(f)).text);
}

struct peer_text {
	char text[192];
};

/* The vCPU that the host kept from the guest, the task responsible, and what the vCPU's CPU ran. */
static struct peer_text peer_text(const struct stall_facts *f, const struct model *m,
				  const struct facts_peer *peer)
{
	static const char *const phrases[KEEPER_COUNT] = {
#define X(NAME, role, phrase) [KEEPER_##NAME] = phrase,
		KEEPERS(X)
#undef X
	};
	const struct facts_guest_peer *g = &f->guest_peer;
	char by[80] = "", task[64] = "";
	struct peer_text t;
	uint16_t cpu;

	if (peer->pid)
		describe(by, sizeof(by), ": %s %s", task_text(m, VS_SOURCE_HOST, peer->pid).text,
			 phrases[peer->keeper]);
	if (model_guest_cpu_of_vcpu(m, f->vm, peer->vcpu, &cpu)) {
		describe(t.text, sizeof(t.text), "vCPU %u, which did not run (%s%s)", peer->vcpu,
			 vcpu_state_name(peer->state), by);
		return t;
	}
	if (g->known && g->cpu == cpu && g->kind == GUEST_CPU_TASK)
		describe(task, sizeof(task), "%s on ", task_text(m, f->vm, g->pid).text);
	describe(t.text, sizeof(t.text), "%sCPU %u, whose vCPU did not run (%s%s)", task, cpu,
		 vcpu_state_name(peer->state), by);
	return t;
}

/* Describes what the other CPU of the guest does that this one may wait for. */
static struct peer_text guest_peer_text(const struct stall_facts *f, const struct model *m)
{
	const struct facts_guest_peer *p = &f->guest_peer;
	struct peer_text t;
	char name[32];

	if (p->kind == GUEST_CPU_TASK) {
		describe(t.text, sizeof(t.text), "%s, which kept CPU %u%s meanwhile",
			 task_text(m, f->vm, p->pid).text, p->cpu,
			 p->ticks_stopped ? ", interrupts off," : "");
		return t;
	}
	interrupt_name(p->kind, p->vector, p->number, name, sizeof(name));
	describe(t.text, sizeof(t.text), "CPU %u, which was in %s %s meanwhile", p->cpu,
		 p->kind == GUEST_CPU_SOFTIRQ ? "softirq" : "interrupt", name);
	return t;
}

/* Returns true if the host kept the CPU that this one may have waited for from the guest. */
static bool kept_by_host(const struct stall_facts *f, const struct model *m)
{
	uint16_t cpu;

	return spin_may_be_wait(f) && f->waits.peer_kept.known &&
	       !model_guest_cpu_of_vcpu(m, f->vm, f->waits.peer_kept.vcpu, &cpu) &&
	       cpu == f->guest_peer.cpu;
}

/* Describes why the guest kept its CPU, if known: "; it spun in ...". */
static void spin_reason(const struct stall_facts *f, const struct model *m, char *out, size_t n)
{
	const struct facts_sampled *s = &f->sampled;
	char where[96] = "";

	out[0] = 0;
	if (s->spinning)
		describe(where, sizeof(where), "; it %s in %s",
			 s->calls > s->spins ? "waited for another CPU's answer" : "spun",
			 s->function);
	if (f->guest_peer.called)
		describe(out, n, "%s; it had sent a request to %s", where,
			 guest_peer_text(f, m).text);
	else if (f->guest_peer.known && !kept_by_host(f, m))
		describe(out, n, "%s; it %s waited for %s", where,
			 f->guest_peer.unsure ? "may have" : "most likely",
			 guest_peer_text(f, m).text);
	else if (f->debt.ns)
		describe(out, n, "; the guest's kernel charged %s for %s of the previous stall",
			 task_text(m, f->vm, f->debt.pid).text, duration_text(f->debt.ns).text);
	else if (spin_may_be_wait(f) && f->waits.peer_kept.known)
		describe(out, n, "%s; it may have waited for %s", where,
			 peer_text(f, m, &f->waits.peer_kept).text);
	else
		describe(out, n, "%s", where);
}

void because_guest_spin(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			size_t n)
{
	const char *const meanwhile = f->guest_peer.halted_ns > ns / 2
					      ? "while its vCPU halted, as a paravirtual lock does"
					      : "while its vCPU ran";
	char name[32], reason[REPORT_TEXT_MAX];

	spin_reason(f, m, reason, sizeof(reason));
	if (f->kind == GUEST_CPU_TASK) {
		describe(out, n, "%s kept the guest's CPU for %s %s%s",
			 task_text(m, f->vm, f->pid).text, duration_text(ns).text, meanwhile,
			 reason);
		return;
	}
	interrupt_name(f->kind, f->vector, f->number, name, sizeof(name));
	describe(out, n, "the guest stayed in %s %s for %s %s%s",
		 f->kind == GUEST_CPU_SOFTIRQ ? "softirq" : "interrupt", name,
		 duration_text(ns).text, meanwhile, reason);
}

void because_lock_holder_preempted(const struct stall_facts *f, const struct model *m, int64_t ns,
				   char *out, size_t n)
{
	if (f->waits.coincidence)
		describe(out, n, "the guest waited %s for %s; the wait ended when it ran again",
			 duration_text(ns).text, peer_text(f, m, &f->waits.lock_owner).text);
	else
		describe(out, n, "the guest %s for %s, waiting for a lock held by %s",
			 f->waits.lock_halted_ns > ns / 2 ? "halted with a task to run" : "spun",
			 duration_text(ns).text, peer_text(f, m, &f->waits.lock_owner).text);
}

void because_ipi_target_preempted(const struct stall_facts *f, const struct model *m, int64_t ns,
				  char *out, size_t n)
{
	describe(out, n, "the guest waited %s for the answer to an interrupt that it %s to %s",
		 duration_text(ns).text, f->waits.coincidence ? "may have sent" : "sent",
		 peer_text(f, m, &f->waits.call_target).text);
}

void because_device_no_completion(const struct stall_facts *f, const struct model *m, int64_t ns,
				  char *out, size_t n)
{
	(void)m;
	if (f->device_ns * 2 >= ns)
		describe(out, n, "the guest waited %s for QEMU to complete its access to a device",
			 duration_text(ns).text);
	else
		describe(out, n,
			 "the guest read a device %u times (%s 0x%llx) in %s, and its VMM did not "
			 "complete what it waited for",
			 f->waits.polls, f->waits.polled_port ? "port" : "address",
			 (unsigned long long)f->waits.polled, duration_text(ns).text);
}

void because_clock_jump(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			size_t n)
{
	(void)m;
	(void)ns;
	describe(
		out, n,
		"the guest's clock went %s by %s: this is not a stall, but the guest may take it for one",
		f->clock_step_ns > 0 ? "ahead" : "back",
		duration_text(f->clock_step_ns > 0 ? f->clock_step_ns : -f->clock_step_ns).text);
}

void because_nested_unobservable(const struct stall_facts *f, const struct model *m, int64_t ns,
				 char *out, size_t n)
{
	describe(out, n,
		 "%s ran a nested guest for %s: a stall inside it cannot be seen from this "
		 "host",
		 task_text(m, f->vm, f->pid).text, duration_text(ns).text);
}

void because_interrupt_lost(const struct stall_facts *f, const struct model *m, int64_t ns,
			    char *out, size_t n)
{
	const struct facts_lost *l = &f->lost;
	char irq[24] = "";

	if (l->irq >= 0)
		snprintf(irq, sizeof(irq), ", irq %d", l->irq);
	describe(out, n,
		 "KVM accepted an interrupt for the vCPU (%s, vector 0x%02x%s, raised by %s), and "
		 "its handler did not run for %s%s",
		 l->source, l->vector, irq, task_text(m, VS_SOURCE_HOST, l->raiser).text,
		 duration_text(ns).text,
		 f->state_ns[VCPU_HALTED] > ns / 2 ? ", although the vCPU halted"
						   : ", although the guest went on");
}

void because_timer_late(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			size_t n)
{
	(void)f;
	(void)m;
	describe(out, n,
		 "the host delivered the guest's timer interrupt %s late: none was pending before",
		 duration_text(ns).text);
}
