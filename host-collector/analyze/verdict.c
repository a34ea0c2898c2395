/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/analyze/verdict.h"

#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/describe.h"
#include "host-collector/analyze/detectors.h"

/* ---- culprits ---- */

static void culprit_add(struct incident *out, const struct model *m, uint32_t source, int32_t pid,
			const char *role, int64_t ns)
{
	struct report_culprit c = {.host = source == VS_SOURCE_HOST, .pid = pid, .share_ns = ns};
	size_t at;

	for (size_t i = 0; i < out->n_culprits; i++) {
		struct report_culprit *same = &out->culprits[i];

		if (same->host == c.host && same->pid == pid && strcmp(same->role, role) == 0) {
			c.share_ns += same->share_ns;
			memmove(same, same + 1, (--out->n_culprits - i) * sizeof(*same));
			break;
		}
	}
	describe(c.comm, sizeof(c.comm), "%s", model_task_name(m, source, pid));
	describe(c.role, sizeof(c.role), "%s", role);
	if (out->n_culprits == REPORT_CULPRITS_MAX) {
		if (out->culprits[REPORT_CULPRITS_MAX - 1].share_ns >= c.share_ns)
			return;
		out->n_culprits--;
	}
	for (at = out->n_culprits++; at > 0 && out->culprits[at - 1].share_ns < c.share_ns; at--)
		out->culprits[at] = out->culprits[at - 1];
	out->culprits[at] = c;
}

static int64_t span_ns(const struct vcpu_span *s)
{
	return s->end.ns - s->begin.ns;
}

static void senders(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	for (unsigned i = 0; i < f->n_spans; i++) {
		const struct vcpu_span *s = &f->spans[i];

		if (s->state == VCPU_STOPPED && s->signal_pid)
			culprit_add(out, m, VS_SOURCE_HOST, s->signal_pid, "sent the stop signal",
				    span_ns(s));
	}
}

static void holders(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	for (unsigned i = 0; i < f->n_holders; i++)
		culprit_add(out, m, VS_SOURCE_HOST, f->holders[i].pid, "held the pCPU",
			    f->holders[i].ns);
}

static void wakers_of(const struct stall_facts *f, const struct model *m, enum wait_class class,
		      const char *role, struct incident *out)
{
	for (unsigned i = 0; i < f->n_spans; i++) {
		const struct vcpu_span *s = &f->spans[i];

		if (s->state == VCPU_BLOCKED && s->wait_class == class && s->waker_pid)
			culprit_add(out, m, VS_SOURCE_HOST, s->waker_pid, role, span_ns(s));
	}
}

static void lock_holders(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	/* Who wakes a waiter of a lock has just released it. */
	wakers_of(f, m, WAIT_VMM_LOCK, "held QEMU's big lock", out);
}

static void page_providers(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	wakers_of(f, m, WAIT_USERFAULT, "provided the page", out);
}

static void peer_holder(const struct facts_peer *peer, const struct model *m, int64_t ns,
			struct incident *out)
{
	if (peer->pid)
		culprit_add(out, m, VS_SOURCE_HOST, peer->pid, "held the other vCPU's pCPU", ns);
}

static void lock_owner_holder(const struct stall_facts *f, const struct model *m,
			      struct incident *out)
{
	peer_holder(&f->waits.lock_owner, m, f->waits.lock_ns, out);
}

static void call_target_holder(const struct stall_facts *f, const struct model *m,
			       struct incident *out)
{
	peer_holder(&f->waits.call_target, m, f->waits.call_ns, out);
}

static void guest_task(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	culprit_add(out, m, f->vm, f->pid,
		    f->kind == GUEST_CPU_TASK ? "kept the CPU" : "was interrupted",
		    facts_denied_by_guest(f));
}

/* ---- what each cause accounts for ---- */

static int64_t stopped_ns(const struct stall_facts *f)
{
	return f->state_ns[VCPU_STOPPED] - f->migration_ns;
}

static int64_t migration_ns(const struct stall_facts *f)
{
	return f->migration_ns;
}

static int64_t lockup_ns(const struct stall_facts *f)
{
	return f->lockup_ns;
}

static int64_t split_lock_ns(const struct stall_facts *f)
{
	return f->split_lock_ns;
}

static int64_t not_scheduled_ns(const struct stall_facts *f)
{
	return f->pcpu_busy_ns;
}

static int64_t quota_ns(const struct stall_facts *f)
{
	return f->state_ns[VCPU_THROTTLED] + f->pcpu_idle_ns;
}

static int64_t vmm_lock_ns(const struct stall_facts *f)
{
	return f->class_ns[WAIT_VMM_LOCK];
}

static int64_t block_io_ns(const struct stall_facts *f)
{
	return f->class_ns[WAIT_BLOCK_IO];
}

static int64_t paging_ns(const struct stall_facts *f)
{
	return f->class_ns[WAIT_USERFAULT] + f->class_ns[WAIT_PAGE_FAULT];
}

static int64_t mmu_ns(const struct stall_facts *f)
{
	return f->class_ns[WAIT_MMU_LOCK];
}

static int64_t reclaim_ns(const struct stall_facts *f)
{
	return f->class_ns[WAIT_RECLAIM];
}

/* It takes well over half of a CPU's time to make tasks wait for it. */
enum { STORM_SHARE_PERCENT = 60 };

static int64_t storm_ns(const struct stall_facts *f)
{
	if (!facts_storm(f, STORM_SHARE_PERCENT))
		return 0;
	return facts_denied_by_guest(f) < f->irq_ns ? facts_denied_by_guest(f) : f->irq_ns;
}

/* Whatever the vCPU did meanwhile, the guest takes the step for time in which nothing happened. */
static int64_t clock_step_ns(const struct stall_facts *f)
{
	return f->clock_step_ns ? facts_duration(f) : 0;
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t lock_ns(const struct stall_facts *f)
{
	return least(f->waits.lock_ns, facts_denied_by_guest(f));
}

static int64_t call_ns(const struct stall_facts *f)
{
	return least(f->waits.call_ns, facts_denied_by_guest(f) - lock_ns(f));
}

/* What the guest denied itself, less what storms and other vCPUs explain. */
static int64_t alone_ns(const struct stall_facts *f)
{
	int64_t ns = facts_denied_by_guest(f) - storm_ns(f) - lock_ns(f) - call_ns(f) -
		     f->tick_late_ns - f->lost.ns;

	return ns > 0 ? ns : 0;
}

static int64_t late_tick_ns(const struct stall_facts *f)
{
	return least(f->tick_late_ns, facts_denied_by_guest(f));
}

static int64_t lost_ns(const struct stall_facts *f)
{
	return least(f->lost.ns, facts_denied_by_guest(f) - late_tick_ns(f));
}

static int64_t nested_ns(const struct stall_facts *f)
{
	return least(f->waits.nested_ns, alone_ns(f));
}

/* While the guest reads a register again and again, most of the time goes to its exits. */
static int64_t polled_ns(const struct stall_facts *f)
{
	int64_t exits = f->state_ns[VCPU_KVM] + f->state_ns[VCPU_VMM] - f->device_ns;

	return least(f->waits.poll_ns, (exits > 0 ? exits : 0) + alone_ns(f) - nested_ns(f));
}

static int64_t device_ns(const struct stall_facts *f)
{
	return f->device_ns + polled_ns(f);
}

static int64_t spin_ns(const struct stall_facts *f)
{
	int64_t ns = alone_ns(f) - nested_ns(f);

	/* Of a device that is asked all the time no part is a spin of its own. */
	return ns - least(ns, f->waits.poll_ns);
}

/* ---- what speaks against a cause ---- */

/* The guest's own ticks fill time in which, by the host's account, the guest did not run. */
static bool guest_was_alive(const struct stall_facts *f)
{
	int64_t out = facts_denied_by_host(f);

	return f->tick_interval_ns &&
	       f->ticks * f->tick_interval_ns >
		       facts_duration(f) - out + out / 4 + 2 * f->tick_interval_ns;
}

/* Nobody seen on the pCPU while the thread waited for it. */
static bool holder_unseen(const struct stall_facts *f)
{
	int64_t seen = 0;

	for (unsigned i = 0; i < f->n_holders; i++)
		seen += f->holders[i].ns;
	return seen < not_scheduled_ns(f) / 2 || guest_was_alive(f);
}

/* The thread was warned of once; no stack shows that it slept for that. */
static bool split_lock_unseen(const struct stall_facts *f)
{
	return f->class_ns[WAIT_SPLIT_LOCK] < f->split_lock_ns / 2 || guest_was_alive(f);
}

/* Only what the quota left idle was seen, not the throttling itself. */
static bool quota_unseen(const struct stall_facts *f)
{
	return f->state_ns[VCPU_THROTTLED] < f->pcpu_idle_ns || guest_was_alive(f);
}

/* Neither KVM's events nor the guest's own ticks show that guest code ran. */
static bool guest_unproven(const struct stall_facts *f)
{
	return !f->data.kvm_events &&
	       !(f->tick_interval_ns && f->ticks * f->tick_interval_ns > facts_duration(f) / 2);
}

/* Without some of KVM's events a wait for another vCPU looks like a spin, and so does a tick that
 * the host's timer brought late. */
static bool spin_unproven(const struct stall_facts *f)
{
	return guest_unproven(f) || f->tick_unexplained ||
	       ((!f->data.kvm_events || f->waits.lossy) && f->waits.peer_kept_ns > spin_ns(f) / 2);
}

/* Nothing but the end of the wait joins it to the other vCPU. */
static bool peer_unproven(const struct stall_facts *f)
{
	return f->waits.coincidence;
}

/* A guest may stop the tick of a CPU that has one task to run. */
static bool tick_unwanted(const struct stall_facts *f)
{
	return f->waiter_ns < f->than_ns;
}

/* Or the interrupt for whose answer the guest waits may be among what is missing. */
static bool owner_unproven(const struct stall_facts *f)
{
	return peer_unproven(f) || f->waits.lossy;
}

/* ---- sentences ---- */

/* The longest stop that no migration made. */
static const struct vcpu_span *longest_stop(const struct stall_facts *f)
{
	for (unsigned i = 0; i < f->n_spans; i++) {
		if (f->spans[i].state == VCPU_STOPPED && !f->spans[i].migrates)
			return &f->spans[i];
	}
	return NULL;
}

static void because_stopped(const struct stall_facts *f, const struct model *m, int64_t ns,
			    char *out, size_t n)
{
	const struct vcpu_span *s = longest_stop(f);

	if (s && s->signal_pid)
		describe(out, n, "the vCPU thread was stopped for %s by a signal from %s",
			 duration_text(ns).text, task_text(m, VS_SOURCE_HOST, s->signal_pid).text);
	else if (s && (s->wait_class == WAIT_FREEZER || (s->task_state & VS_TASK_FROZEN)))
		describe(out, n, "the vCPU thread was frozen with its cgroup for %s",
			 duration_text(ns).text);
	else if (s && (s->task_state & (VS_TASK_STOPPED | VS_TASK_TRACED)))
		describe(out, n, "the vCPU thread was stopped for %s, by whom was not seen",
			 duration_text(ns).text);
	else
		describe(out, n, "the VM was paused by its VMM for %s", duration_text(ns).text);
}

static void because_migration(const struct stall_facts *f, const struct model *m, int64_t ns,
			      char *out, size_t n)
{
	(void)f;
	(void)m;
	describe(out, n, "QEMU paused the VM for %s to complete its migration",
		 duration_text(ns).text);
}

static void because_lockup(const struct stall_facts *f, const struct model *m, int64_t ns,
			   char *out, size_t n)
{
	(void)f;
	(void)m;
	describe(out, n,
		 "the vCPU's pCPU stood still in the host's kernel, says its watchdog: %s of it",
		 duration_text(ns).text);
}

static void because_split_lock(const struct stall_facts *f, const struct model *m, int64_t ns,
			       char *out, size_t n)
{
	(void)f;
	(void)m;
	describe(out, n,
		 "the guest locked memory across cache lines, and the host's kernel held its vCPU "
		 "back for %s",
		 duration_text(ns).text);
}

static void because_not_scheduled(const struct stall_facts *f, const struct model *m, int64_t ns,
				  char *out, size_t n)
{
	const struct facts_holder *most = NULL;

	for (unsigned i = 0; i < f->n_holders; i++) {
		if (!most || f->holders[i].ns > most->ns)
			most = &f->holders[i];
	}
	if (most)
		describe(out, n, "the vCPU was ready to run but waited %s for a pCPU, held by %s",
			 duration_text(ns).text, task_text(m, VS_SOURCE_HOST, most->pid).text);
	else
		describe(out, n, "the vCPU was ready to run but waited %s for a pCPU",
			 duration_text(ns).text);
}

static void because_quota(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			  size_t n)
{
	(void)m;
	describe(
		out, n,
		f->state_ns[VCPU_THROTTLED] >= f->pcpu_idle_ns
			? "the VM's cgroup was out of CPU quota for %s"
			: "the vCPU was ready to run for %s but did not, although its pCPU was idle: "
			  "a CPU quota does that",
		duration_text(ns).text);
}

static void because_lock(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			 size_t n)
{
	struct incident who = {0};

	lock_holders(f, m, &who);
	if (who.n_culprits)
		describe(out, n, "the vCPU thread waited %s for QEMU's big lock, released by %s",
			 duration_text(ns).text,
			 task_text(m, VS_SOURCE_HOST, who.culprits[0].pid).text);
	else
		describe(out, n, "the vCPU thread waited %s for QEMU's big lock",
			 duration_text(ns).text);
}

static void because_block_io(const struct stall_facts *f, const struct model *m, int64_t ns,
			     char *out, size_t n)
{
	(void)f;
	(void)m;
	describe(out, n, "the vCPU thread waited %s for a block device in the host",
		 duration_text(ns).text);
}

static void because_paging(const struct stall_facts *f, const struct model *m, int64_t ns,
			   char *out, size_t n)
{
	(void)m;
	describe(out, n, "the vCPU thread waited %s for %s", duration_text(ns).text,
		 wait_class_object(f->class_ns[WAIT_USERFAULT] >= f->class_ns[WAIT_PAGE_FAULT]
					   ? WAIT_USERFAULT
					   : WAIT_PAGE_FAULT));
}

static void because_mmu(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			size_t n)
{
	(void)f;
	(void)m;
	describe(out, n, "the vCPU thread waited %s for a lock of the VM's memory map",
		 duration_text(ns).text);
}

static void because_reclaim(const struct stall_facts *f, const struct model *m, int64_t ns,
			    char *out, size_t n)
{
	(void)f;
	(void)m;
	describe(out, n, "the vCPU thread had to free host memory for %s", duration_text(ns).text);
}

static void because_storm(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			  size_t n)
{
	(void)m;
	describe(out, n, "%u interrupts in the guest took %s of %s", f->n_irqs,
		 duration_text(ns).text, duration_text(facts_duration(f)).text);
}

static void because_spin(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			 size_t n)
{
	char name[32];

	if (f->kind == GUEST_CPU_TASK) {
		describe(out, n, "%s kept the guest's CPU for %s while its vCPU ran",
			 task_text(m, f->vm, f->pid).text, duration_text(ns).text);
		return;
	}
	interrupt_name(f->kind, f->vector, f->number, name, sizeof(name));
	describe(out, n, "the guest stayed in %s %s for %s while its vCPU ran",
		 f->kind == GUEST_CPU_SOFTIRQ ? "softirq" : "interrupt", name,
		 duration_text(ns).text);
}

struct peer_text {
	char text[96];
};

static struct peer_text peer_text(const struct stall_facts *f, const struct model *m,
				  const struct facts_peer *peer)
{
	struct peer_text t;
	uint16_t cpu;

	if (model_guest_cpu_of_vcpu(m, f->vm, peer->vcpu, &cpu))
		describe(t.text, sizeof(t.text), "vCPU %u, which did not run (%s)", peer->vcpu,
			 vcpu_state_name(peer->state));
	else
		describe(t.text, sizeof(t.text), "CPU %u, whose vCPU did not run (%s)", cpu,
			 vcpu_state_name(peer->state));
	return t;
}

static void because_lock_owner(const struct stall_facts *f, const struct model *m, int64_t ns,
			       char *out, size_t n)
{
	if (f->waits.coincidence)
		describe(out, n, "the guest waited %s until it was the turn again of %s",
			 duration_text(ns).text, peer_text(f, m, &f->waits.lock_owner).text);
	else
		describe(out, n, "the guest %s for %s for what was held by %s",
			 f->waits.lock_halted_ns > ns / 2 ? "halted with a task to run" : "spun",
			 duration_text(ns).text, peer_text(f, m, &f->waits.lock_owner).text);
}

static void because_call(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			 size_t n)
{
	describe(out, n, "the guest waited %s for the answer to an interrupt that it %s to %s",
		 duration_text(ns).text, f->waits.coincidence ? "may have sent" : "sent",
		 peer_text(f, m, &f->waits.call_target).text);
}

static void because_device(const struct stall_facts *f, const struct model *m, int64_t ns,
			   char *out, size_t n)
{
	(void)m;
	if (f->device_ns * 2 >= ns)
		describe(out, n, "QEMU left the guest waiting %s for its access to a device",
			 duration_text(ns).text);
	else
		describe(out, n,
			 "the guest asked a device %u times (%s 0x%llx) in %s, and its VMM did not "
			 "complete what it waited for",
			 f->waits.polls, f->waits.polled_port ? "port" : "address",
			 (unsigned long long)f->waits.polled, duration_text(ns).text);
}

static void because_clock_step(const struct stall_facts *f, const struct model *m, int64_t ns,
			       char *out, size_t n)
{
	(void)m;
	(void)ns;
	describe(out, n,
		 "the guest's clock went %s by %s: no stall, though the guest may take it for one",
		 f->clock_step_ns > 0 ? "ahead" : "back",
		 duration_text(f->clock_step_ns > 0 ? f->clock_step_ns : -f->clock_step_ns).text);
}

static void because_nested(const struct stall_facts *f, const struct model *m, int64_t ns,
			   char *out, size_t n)
{
	describe(out, n,
		 "%s ran a guest of its own for %s: what stalled in there cannot be seen from this "
		 "host",
		 task_text(m, f->vm, f->pid).text, duration_text(ns).text);
}

static void because_lost(const struct stall_facts *f, const struct model *m, int64_t ns, char *out,
			 size_t n)
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

static void because_late_tick(const struct stall_facts *f, const struct model *m, int64_t ns,
			      char *out, size_t n)
{
	(void)f;
	(void)m;
	describe(
		out, n,
		"the host brought the guest's timer interrupt %s late: none was pending until then",
		duration_text(ns).text);
}

/* ---- the table ---- */

#define NEEDS(NAME) (1u << MISSING_##NAME)

const struct verdict_rule verdict_rules[] = {
	{VERDICT_CLOCK_JUMP,
	 "between two readings of the guest's clock it went ahead of the host's, or back",
	 "the clocks' error is as large", NEEDS(GUEST_EVENTS), clock_step_ns, NULL,
	 because_clock_step, NULL},
	{VERDICT_VM_PAUSED, "the vCPU thread is stopped: a signal, a debugger, the freezer, QMP",
	 "the guest's timer ticks went on meanwhile", NEEDS(HOST_EVENTS), stopped_ns,
	 guest_was_alive, because_stopped, senders},
	{VERDICT_MIGRATION, "QEMU paused the VM while it migrated it",
	 "the guest's timer ticks went on meanwhile", NEEDS(HOST_EVENTS), migration_ns,
	 guest_was_alive, because_migration, NULL},
	{VERDICT_HOST_LOCKUP, "the host's watchdog says that the vCPU's pCPU stands still",
	 "the guest's ticks went on", NEEDS(HOST_EVENTS), lockup_ns, guest_was_alive,
	 because_lockup, NULL}, /* who had the pCPU is told with the next rule but one */
	{VERDICT_SPLIT_LOCK,
	 "the vCPU thread sleeps where the host's kernel slows down split locks",
	 "no stack shows it", NEEDS(HOST_EVENTS), split_lock_ns, split_lock_unseen,
	 because_split_lock, NULL},
	{VERDICT_VCPU_NOT_SCHEDULED,
	 "the vCPU thread is ready to run and another task runs instead",
	 "no other task was seen on the pCPU; the guest's ticks went on", NEEDS(HOST_EVENTS),
	 not_scheduled_ns, holder_unseen, because_not_scheduled, holders},
	{VERDICT_CGROUP_THROTTLED, "the vCPU thread is ready to run, not run, and its pCPU idles",
	 "the throttling itself was not seen", NEEDS(HOST_EVENTS), quota_ns, quota_unseen,
	 because_quota, NULL},
	{VERDICT_VMM_LOCK, "the vCPU thread sleeps where QEMU takes its big lock",
	 "the guest's ticks went on", NEEDS(HOST_EVENTS), vmm_lock_ns, guest_was_alive,
	 because_lock, lock_holders},
	{VERDICT_STORAGE_BACKEND, "the vCPU thread sleeps in block I/O",
	 "the guest's ticks went on", NEEDS(HOST_EVENTS), block_io_ns, guest_was_alive,
	 because_block_io, NULL},
	{VERDICT_DEMAND_PAGING, "the vCPU thread sleeps in a page fault or userfault",
	 "the guest's ticks went on", NEEDS(HOST_EVENTS), paging_ns, guest_was_alive,
	 because_paging, page_providers},
	{VERDICT_MMU_CONTENTION, "the vCPU thread sleeps on a lock of the memory map",
	 "the guest's ticks went on", NEEDS(HOST_EVENTS), mmu_ns, guest_was_alive, because_mmu,
	 NULL},
	{VERDICT_HOST_MEMORY, "the vCPU thread sleeps in reclaim or compaction",
	 "the guest's ticks went on", NEEDS(HOST_EVENTS), reclaim_ns, guest_was_alive,
	 because_reclaim, NULL},
	{VERDICT_LOCK_HOLDER_PREEMPTED,
	 "the guest spins (PAUSE exits) or halts with a task to run, while another of its vCPUs is "
	 "kept from the guest",
	 "only the end of the wait joins it to that vCPU; events are missing",
	 NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS) | NEEDS(KVM_EVENTS), lock_ns, owner_unproven,
	 because_lock_owner, lock_owner_holder},
	{VERDICT_IPI_TARGET_PREEMPTED,
	 "the guest has called another of its CPUs by an interrupt, which its vCPU, kept from the "
	 "guest, does not take",
	 "only the end of the wait joins it to that vCPU",
	 NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS) | NEEDS(KVM_EVENTS), call_ns, peer_unproven,
	 because_call, call_target_holder},
	{VERDICT_DEVICE_NO_COMPLETION,
	 "QEMU does not end an access to a device, or the guest reads one register of it again and "
	 "again, and hardly writes",
	 "the guest's ticks went on", NEEDS(HOST_EVENTS) | NEEDS(KVM_EVENTS), device_ns,
	 guest_was_alive, because_device, NULL},
	{VERDICT_NESTED_UNOBSERVABLE,
	 "the guest entered a guest of its own and neither came back nor switched tasks",
	 "neither KVM's events nor ticks show that the guest ran",
	 NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS) | NEEDS(KVM_EVENTS), nested_ns, guest_unproven,
	 because_nested, NULL},
	{VERDICT_INTERRUPT_LOST,
	 "KVM accepted an interrupt and no handler ran, though the vCPU halted or the guest went on",
	 "", NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS) | NEEDS(KVM_EVENTS), lost_ns, NULL,
	 because_lost, NULL},
	{VERDICT_TIMER_LATE,
	 "ticks stop though the vCPU runs the guest, and no timer interrupt is pending until one comes",
	 "nobody waited for the CPU: the guest may have stopped its tick",
	 NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS) | NEEDS(KVM_EVENTS), late_tick_ns, tick_unwanted,
	 because_late_tick, NULL},
	{VERDICT_GUEST_IRQ_STORM, "short interrupts take most of the stretch, thousands a second",
	 "neither KVM's events nor ticks show that the guest ran",
	 NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS), storm_ns, guest_unproven, because_storm,
	 guest_task},
	{VERDICT_GUEST_SPIN, "something was denied while the vCPU ran the guest",
	 "neither KVM's events nor ticks show that the guest ran; without all of KVM's events, another vCPU "
	 "of the VM did not run meanwhile",
	 NEEDS(HOST_EVENTS) | NEEDS(GUEST_EVENTS), spin_ns, spin_unproven, because_spin,
	 guest_task},
};

const size_t verdict_rules_count = sizeof(verdict_rules) / sizeof(*verdict_rules);

/* ---- the judge ---- */

/* Shares of the denied time, in percent: what decides, what makes likely, what is worth a mention
 * as runner-up. docs/verdicts.md gives the reasons. */
enum { DECIDES = 80, LIKELY = 50, MENTIONED = 10 };

static uint32_t missing_of(const struct stall_facts *f)
{
	uint32_t missing = 0;

	if (!f->data.kvm_events)
		missing |= NEEDS(KVM_EVENTS);
	if (!f->data.guest_events)
		missing |= NEEDS(GUEST_EVENTS);
	if (!f->data.host_events)
		missing |= NEEDS(HOST_EVENTS);
	else if (f->state_ns[VCPU_UNKNOWN] > 0)
		missing |= NEEDS(LOST_EVENTS);
	if (f->class_ns[WAIT_NONE] >= f->than_ns / 4)
		missing |= NEEDS(STACKS);
	/* The edges are known no better than the thing itself. */
	if (f->data.guest_events && f->err_ns > (uint64_t)f->than_ns / 2)
		missing |= NEEDS(CLOCK_MAP);
	return missing;
}

/* Everything denied, whoever is to blame, what nobody can tell included. */
static int64_t denied_ns(const struct stall_facts *f)
{
	int64_t evidently_ran = facts_ran(f) - f->state_ns[VCPU_GUEST];

	return facts_denied_by_host(f) + facts_denied_by_guest(f) + f->state_ns[VCPU_UNKNOWN] -
	       evidently_ran;
}

static void judge(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	const struct verdict_rule *best = NULL, *second = NULL;
	int64_t best_ns = 0, second_ns = 0, all = denied_ns(f);
	bool shared; /* two causes, neither half of it, leave nothing open together */

	for (size_t i = 0; i < verdict_rules_count; i++) {
		int64_t ns = verdict_rules[i].accounts_for(f);

		if (ns <= 0 || ns * 100 < all * MENTIONED)
			continue;
		if (verdict_rules[i].culprits)
			verdict_rules[i].culprits(f, m, out);
		if (ns > best_ns) {
			second = best;
			second_ns = best_ns;
			best = &verdict_rules[i];
			best_ns = ns;
		} else if (ns > second_ns) {
			second = &verdict_rules[i];
			second_ns = ns;
		}
	}
	out->verdict = VERDICT_UNDETERMINED;
	out->confidence = CONFIDENCE_UNDETERMINED;
	if (!best) {
		describe(out->because, sizeof(out->because),
			 "what was seen explains none of the %s that were denied",
			 duration_text(all).text);
		return;
	}
	shared = second && (best_ns + second_ns) * 100 >= all * DECIDES;
	if (best_ns * 100 < all * LIKELY && !shared) {
		out->runner_up = best->verdict;
		describe(out->because, sizeof(out->because),
			 "no cause explains half of the %s that were denied; %s explains %s",
			 duration_text(all).text, verdict_name(best->verdict),
			 duration_text(best_ns).text);
		return;
	}
	out->verdict = best->verdict;
	out->runner_up = second ? second->verdict : VERDICT_UNDETERMINED;
	out->confidence = best_ns * 100 >= all * DECIDES && !(best->needs & out->missing) &&
					  !(out->missing & NEEDS(CLOCK_MAP)) &&
					  !(best->contradicted && best->contradicted(f))
				  ? CONFIDENCE_DECIDED
				  : CONFIDENCE_LIKELY;
	best->because(f, m, best_ns, out->because, sizeof(out->because));
}

static void lost_interrupt(const struct stall_facts *f, const struct model *m,
			   struct report_lost_interrupt *out)
{
	const struct facts_lost *l = &f->lost;

	if (l->ns <= 0)
		return;
	*out = (struct report_lost_interrupt){.known = true,
					      .source = l->source,
					      .vector = l->vector,
					      .irq = l->irq,
					      .begin = l->begin,
					      .pending_ns = l->ns,
					      .handled = !l->open,
					      .raiser_pid = l->raiser};
	describe(out->raiser_comm, sizeof(out->raiser_comm), "%s",
		 model_task_name(m, VS_SOURCE_HOST, l->raiser));
}

void verdict_judge(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	memset(out, 0, sizeof(*out));
	out->vm = f->vm;
	out->guest_cpu = f->cpu;
	out->vcpu = f->vcpu_known ? f->vcpu : f->cpu;
	out->healthy = !f->denied;
	out->kind = f->kind;
	out->task_pid = f->pid;
	describe(out->task_comm, sizeof(out->task_comm), "%s",
		 f->kind == GUEST_CPU_IDLE ? "idle" : model_task_name(m, f->vm, f->pid));
	out->number = f->number;
	out->vector = f->vector;
	out->begin = f->begin;
	out->end = f->end;
	out->err_ns = f->err_ns;
	out->ongoing = f->ongoing;
	memcpy(out->breakdown_ns, f->state_ns, sizeof(out->breakdown_ns));
	out->missing = missing_of(f);
	describe_denied(f, m, out->denied, sizeof(out->denied));
	describe_evidence(f, m, out);
	lost_interrupt(f, m, &out->lost_interrupt);
	if (!out->healthy)
		judge(f, m, out);
	detectors_fill(f, m, out);
}
