// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/scenario.h"

#include <string.h>

#include "host-collector/simulate/vm.h"

static const int64_t ms = 1000000;
enum { WARM_UP_MS = 700, AFTERWARDS_MS = 700 };

#define ROW(KIND, NAME, ABOUT, LOAD, FAULT, LOW, HIGH)                                             \
	{                                                                                          \
		NAME, ABOUT, SCENARIO_##KIND, LOAD_##LOAD,                                         \
		{                                                                                  \
			{                                                                          \
				FAULT_##FAULT, LOW, HIGH, 0, 0                                     \
			}                                                                          \
		}                                                                                  \
	}
#define SINGLE(NAME, ABOUT, LOAD, FAULT, LOW, HIGH) ROW(SINGLE, NAME, ABOUT, LOAD, FAULT, LOW, HIGH)
#define NEAR(NAME, ABOUT, LOAD, FAULT, LOW, HIGH)   ROW(NEAR, NAME, ABOUT, LOAD, FAULT, LOW, HIGH)
#define LONG(NAME, ABOUT, LOAD, FAULT)              ROW(LONG, NAME, ABOUT, LOAD, FAULT, 9000, 30000)
#define MIXTURE(NAME, ABOUT, FIRST, SECOND)         TWO(MIXTURE, NAME, ABOUT, FIRST, SECOND)
#define DOUBLE(NAME, ABOUT, FIRST, SECOND)          TWO(DOUBLE, NAME, ABOUT, FIRST, SECOND)
#define TWO(KIND, NAME, ABOUT, FIRST, SECOND)                                                      \
	{                                                                                          \
		NAME, ABOUT, SCENARIO_##KIND, LOAD_ANY,                                            \
		{                                                                                  \
			{FAULT_##FIRST, 200, 600, 0, 0},                                           \
			{                                                                          \
				FAULT_##SECOND, 200, 600, 0, 0                                     \
			}                                                                          \
		}                                                                                  \
	}

#define TRIPLE(NAME, ABOUT, FIRST, SECOND, THIRD)                                                  \
	{                                                                                          \
		NAME, ABOUT, SCENARIO_TRIPLE, LOAD_ANY,                                            \
		{                                                                                  \
			{FAULT_##FIRST, 150, 400, 0, 0}, {FAULT_##SECOND, 150, 400, 0, 0},         \
			{                                                                          \
				FAULT_##THIRD, 150, 400, 0, 0                                      \
			}                                                                          \
		}                                                                                  \
	}

const struct scenario scenarios[] = {
	SINGLE("vm_paused.signal", "SIGSTOP to QEMU, SIGCONT later", ANY, SIGSTOP, 250, 1500),
	SINGLE("vm_paused.ptrace", "a debugger stops one vCPU thread", ANY, PTRACE, 250, 1500),
	SINGLE("vm_paused.freezer", "the VM's cgroup is frozen", ANY, FREEZER, 250, 1500),
	SINGLE("vm_paused.qmp", "QMP stop, cont later", ANY, QMP_STOP, 250, 1500),
	SINGLE("migration", "the downtime at the end of a migration", ANY, MIGRATION, 250, 1500),
	SINGLE("vcpu_not_scheduled.realtime", "a real-time task takes the pCPU", ANY, REALTIME_HOG,
	       250, 1500),
	SINGLE("vcpu_not_scheduled.crowd", "a crowd of fair tasks on the pCPU", ANY, CROWD, 250,
	       650),
	SINGLE("cgroup_throttled", "the VM's cgroup has no quota left", ANY, QUOTA, 250, 950),
	SINGLE("vmm_lock", "QEMU's main thread keeps the big lock", ANY, BIG_LOCK, 250, 1500),
	SINGLE("storage_backend.pflash", "a device model writes synchronously to a slow disk", ANY,
	       PFLASH, 250, 1500),
	SINGLE("storage_backend.block_layer", "QEMU's block layer waits for a request", ANY,
	       BLOCK_SYNC, 250, 1500),
	SINGLE("demand_paging.swap", "guest memory comes back from swap", ANY, SWAP_IN, 250, 1500),
	SINGLE("demand_paging.userfault", "postcopy brings a page late", ANY, USERFAULT, 250, 1500),
	SINGLE("mmu_contention", "mmap_lock is held by somebody else", ANY, MMAP_LOCK, 250, 1500),
	SINGLE("host_memory.reclaim", "direct reclaim for a guest page", ANY, RECLAIM, 300, 1500),
	SINGLE("host_memory.cgroup", "the VM's memory limit", ANY, MEMCG, 300, 1500),
	SINGLE("split_lock", "the host's kernel holds back who locks across cache lines", ANY,
	       SPLIT_LOCK, 250, 1500),
	SINGLE("guest_spin.irqs_off", "a task spins with interrupts off", ANY, IRQS_OFF, 250, 1500),
	SINGLE("guest_spin.preempt_off", "a task spins with preemption off while another waits",
	       SHARED, PREEMPT_OFF, 250, 1500),
	SINGLE("guest_spin.softirq", "one softirq does not end", ANY, LONG_SOFTIRQ, 250, 1500),
	SINGLE("guest_spin.hardirq", "one interrupt handler does not end", ANY, LONG_HARDIRQ, 250,
	       1500),
	SINGLE("guest_spin.beside_steal", "a spin with interrupts off; another vCPU does not run",
	       ANY, SPIN_BESIDE_STEAL, 250, 1500),
	SINGLE("guest_spin.contended", "two CPUs with interrupts off: one has a lock, one spins",
	       ANY, LOCK_CONTENDED, 250, 1500),
	SINGLE("guest_irq_storm", "a device interrupts without a pause", PAIR, IRQ_STORM, 800,
	       1500),
	SINGLE("interrupt_lost", "a device's interrupt is accepted, and does not come", ANY,
	       LOST_INTERRUPT, 250, 1500),
	SINGLE("timer_late", "the host's timer brings a tick late while a task waits", PAIR,
	       LATE_TIMER, 250, 1500),

	SINGLE("host_lockup", "a pCPU stands still in the host's kernel, says its log", ANY, LOCKUP,
	       250, 1500),
	SINGLE("vcpu_not_scheduled.lockup_elsewhere", "a real-time task; another pCPU stands still",
	       ANY, LOCKUP_ELSEWHERE, 250, 1500),
	SINGLE("clock_jump", "the guest's clocks leap ahead, nothing stalls", ANY, CLOCK_JUMP, 250,
	       1500),
	SINGLE("lock_holder_preempted.spin", "a lock's owner loses its pCPU, others spin", ANY,
	       LOCK_OWNER, 250, 1500),
	SINGLE("lock_holder_preempted.paravirtual",
	       "a lock's owner loses its pCPU, who waits for it halts", ANY, LOCK_PARAVIRTUAL, 250,
	       1500),
	SINGLE("ipi_target_preempted", "a CPU is called whose vCPU has lost its pCPU", ANY, CALL,
	       250, 1500),
	SINGLE("device_no_completion.polled", "a driver polls a device that stays busy", ANY,
	       POLLING, 250, 1500),
	SINGLE("device_no_completion.exit", "QEMU does not end an access to a device", ANY,
	       DEVICE_EXIT, 250, 1500),
	SINGLE("nested_unobservable", "a guest of the guest's does not come back", ANY, NESTED, 250,
	       1500),

	MIXTURE("mixture.storage_then_steal", "slow disk, then a real-time task on the pCPU",
		PFLASH, REALTIME_HOG),
	MIXTURE("mixture.paging_then_quota", "swap-in, then no quota", SWAP_IN, QUOTA),
	MIXTURE("mixture.steal_then_lock", "a real-time task, then QEMU's big lock", REALTIME_HOG,
		BIG_LOCK),
	MIXTURE("mixture.storage_then_pause", "slow disk, and the VM is stopped meanwhile", PFLASH,
		SIGSTOP),
	MIXTURE("mixture.spin_and_steal", "a spin with interrupts off that is preempted", IRQS_OFF,
		REALTIME_HOG),
	MIXTURE("mixture.userfault_then_mmu", "postcopy, then the memory map's lock", USERFAULT,
		MMAP_LOCK),

	{"decoy.idle", "a guest with nothing to do", SCENARIO_DECOY, LOAD_IDLE, {{0}}},
	{"decoy.compute",
	 "one task computes for seconds, alone",
	 SCENARIO_DECOY,
	 LOAD_ALONE,
	 {{0}}},
	{"decoy.busy", "tasks share a guest CPU", SCENARIO_DECOY, LOAD_SHARED, {{0}}},
	{"decoy.server",
	 "short work, many wake-ups, many halts",
	 SCENARIO_DECOY,
	 LOAD_SERVER,
	 {{0}}},
	{"decoy.steady",
	 "the same short requests in every run, to be compared",
	 SCENARIO_DECOY,
	 LOAD_STEADY,
	 {{0}}},
	{"decoy.steal",
	 "steal without a stall: many preemptions, each short",
	 SCENARIO_DECOY,
	 LOAD_ALONE,
	 {{FAULT_SHARE_PCPU, 1, 2, 0, 0}}},
	{"decoy.short_pauses",
	 "the VM is stopped again and again, never for long",
	 SCENARIO_DECOY,
	 LOAD_ANY,
	 {{FAULT_SIGSTOP, 20, 60, 3, 400}}},
	{"decoy.short_io",
	 "a device model writes synchronously to a fast disk",
	 SCENARIO_DECOY,
	 LOAD_ANY,
	 {{FAULT_PFLASH, 2, 8, 12, 90}}},
	{"decoy.irqs",
	 "many interrupts that the guest copes with",
	 SCENARIO_DECOY,
	 LOAD_SHARED,
	 {{FAULT_LIGHT_IRQS, 400, 600, 0, 0}}},
	{"decoy.short_lock_waits",
	 "a lock's owner is preempted again and again, never for long",
	 SCENARIO_DECOY,
	 LOAD_ANY,
	 {{FAULT_LOCK_OWNER, 15, 60, 3, 300}}},
	{"decoy.short_polls",
	 "a driver polls a device, each time below the threshold",
	 SCENARIO_DECOY,
	 LOAD_ANY,
	 {{FAULT_POLLING, 15, 60, 3, 300}}},
	{"decoy.nested",
	 "a guest that runs a guest of its own, and all is well",
	 SCENARIO_DECOY,
	 LOAD_ANY,
	 {{FAULT_NESTED_LIFE, 400, 800, 0, 0}}},
	{"decoy.late_timer",
	 "ticks come late again and again, never by long",
	 SCENARIO_DECOY,
	 LOAD_PAIR,
	 {{FAULT_LATE_TIMER, 20, 60, 3, 300}}},
	{"decoy.late_interrupts",
	 "a device's interrupts come late, never by long",
	 SCENARIO_DECOY,
	 LOAD_ANY,
	 {{FAULT_LOST_INTERRUPT, 20, 60, 3, 300}}},
	{"decoy.short_sections",
	 "preemption is off again and again, never for long",
	 SCENARIO_DECOY,
	 LOAD_SHARED,
	 {{FAULT_PREEMPT_OFF, 15, 60, 3, 300}}},

	DOUBLE("double.lock_then_pause", "QEMU's big lock, and the VM is stopped meanwhile",
	       BIG_LOCK, SIGSTOP),
	DOUBLE("double.steal_then_quota", "a real-time task, then no quota", REALTIME_HOG, QUOTA),
	DOUBLE("double.quota_then_steal", "no quota, then a real-time task", QUOTA, REALTIME_HOG),
	DOUBLE("double.reclaim_then_swap", "direct reclaim, then swap-in", RECLAIM, SWAP_IN),
	DOUBLE("double.userfault_then_pause", "postcopy, and the VM is stopped meanwhile",
	       USERFAULT, QMP_STOP),
	DOUBLE("double.spin_and_pause", "a spin with interrupts off that is stopped", IRQS_OFF,
	       SIGSTOP),
	DOUBLE("double.softirq_and_steal", "a long softirq that is preempted", LONG_SOFTIRQ,
	       REALTIME_HOG),
	TRIPLE("triple.paging_mmu_steal",
	       "swap-in, then the memory map's lock, then a real-time task", SWAP_IN, MMAP_LOCK,
	       REALTIME_HOG),
	TRIPLE("triple.storage_lock_steal",
	       "slow disk, then QEMU's big lock, then a real-time task", PFLASH, BIG_LOCK,
	       REALTIME_HOG),
	TRIPLE("triple.steal_quota_userfault", "a real-time task, no quota, then postcopy",
	       REALTIME_HOG, QUOTA, USERFAULT),
	TRIPLE("triple.memory_lock_quota", "direct reclaim, QEMU's big lock, then no quota",
	       RECLAIM, BIG_LOCK, QUOTA),
	TRIPLE("triple.userfault_storage_pause",
	       "postcopy, then a slow disk, and the VM is stopped meanwhile", USERFAULT, BLOCK_SYNC,
	       SIGSTOP),
	TRIPLE("triple.spin_steal_pause", "a spin with interrupts off, preempted, then stopped",
	       IRQS_OFF, REALTIME_HOG, SIGSTOP),

	NEAR("near.below.pause", "SIGSTOP to QEMU, just below the threshold", ANY, SIGSTOP, 80, 90),
	NEAR("near.above.pause", "SIGSTOP to QEMU, just above the threshold", ANY, SIGSTOP, 106,
	     125),
	NEAR("near.below.steal", "a real-time task, just below the threshold", ANY, REALTIME_HOG,
	     80, 90),
	NEAR("near.above.steal", "a real-time task, just above the threshold", ANY, REALTIME_HOG,
	     106, 125),
	NEAR("near.below.lock", "QEMU's big lock, just below the threshold", ANY, BIG_LOCK, 80, 90),
	NEAR("near.above.lock", "QEMU's big lock, just above the threshold", ANY, BIG_LOCK, 106,
	     125),
	NEAR("near.below.storage", "a slow disk, just below the threshold", ANY, PFLASH, 80, 90),
	NEAR("near.above.storage", "a slow disk, just above the threshold", ANY, PFLASH, 106, 125),
	NEAR("near.below.userfault", "postcopy, just below the threshold", ANY, USERFAULT, 80, 90),
	NEAR("near.above.userfault", "postcopy, just above the threshold", ANY, USERFAULT, 106,
	     125),
	NEAR("near.below.irqs_off", "a spin with interrupts off, just below the threshold", ANY,
	     IRQS_OFF, 80, 90),
	NEAR("near.above.irqs_off", "a spin with interrupts off, just above the threshold", ANY,
	     IRQS_OFF, 106, 125),
	NEAR("near.below.preempt_off", "a spin while a task waits, just below the threshold",
	     SHARED, PREEMPT_OFF, 80, 90),
	NEAR("near.above.preempt_off", "a spin while a task waits, just above the threshold",
	     SHARED, PREEMPT_OFF, 106, 125),
	NEAR("near.below.softirq", "a long softirq, just below the threshold", ANY, LONG_SOFTIRQ,
	     80, 90),
	NEAR("near.above.softirq", "a long softirq, just above the threshold", ANY, LONG_SOFTIRQ,
	     106, 125),

	LONG("long.pause", "SIGSTOP to QEMU, for 9 to 30 s", ANY, SIGSTOP),
	LONG("long.steal", "a real-time task, for 9 to 30 s", ANY, REALTIME_HOG),
	LONG("long.lock", "QEMU's big lock, for 9 to 30 s", ANY, BIG_LOCK),
	LONG("long.storage", "a slow disk, for 9 to 30 s", ANY, BLOCK_SYNC),
	LONG("long.userfault", "postcopy, for 9 to 30 s", ANY, USERFAULT),
	LONG("long.irqs_off", "a spin with interrupts off, for 9 to 30 s", ANY, IRQS_OFF),
	LONG("long.preempt_off", "a spin while a task waits, for 9 to 30 s", SHARED, PREEMPT_OFF),

	{"life.agent_attaches",
	 "the agent attaches while events flow, then a real-time task",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_AGENT_ATTACHES, 300, 600, 0, 0}, {FAULT_REALTIME_HOG, 250, 900, 0, 0}}},
	{"life.agent_attaches_idle",
	 "the agent attaches while events flow, the guest idles",
	 SCENARIO_LIFE,
	 LOAD_IDLE,
	 {{FAULT_AGENT_ATTACHES, 1200, 1500, 0, 0}}},
	{"life.stall_before_agent",
	 "SIGSTOP before the agent attaches, a slow disk after it",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_SIGSTOP, 250, 900, 0, 0},
	  {FAULT_QUIET, 100, 300, 0, 0},
	  {FAULT_AGENT_ATTACHES, 300, 600, 0, 0},
	  {FAULT_PFLASH, 250, 900, 0, 0}}},
	{"life.torn_entries",
	 "the agent attaches, and exits of handlers come late: nothing stalls",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_AGENT_TORN, 50, 300, 0, 0}, {FAULT_QUIET, 500, 900, 0, 0}}},
	{"life.torn_entries_idle",
	 "the same in a guest with nothing to do",
	 SCENARIO_LIFE,
	 LOAD_IDLE,
	 {{FAULT_AGENT_TORN, 50, 300, 0, 0}, {FAULT_QUIET, 1500, 2500, 0, 0}}},
	{"life.agent_restarts",
	 "the agent ends and starts again: nothing stalls",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_AGENT_AWAY, 100, 900, 0, 0}, {FAULT_QUIET, 300, 500, 0, 0}}},
	{"life.agent_restarts_stall",
	 "the agent starts again, then a real-time task",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_AGENT_AWAY, 100, 900, 0, 0},
	  {FAULT_QUIET, 300, 400, 0, 0},
	  {FAULT_REALTIME_HOG, 250, 900, 0, 0}}},
	{"life.agent_away_stall",
	 "SIGSTOP while the agent is away",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_AGENT_AWAY, 1500, 2000, 0, 300},
	  {FAULT_SIGSTOP, 250, 700, 0, 0},
	  {FAULT_QUIET, 1500, 2000, 0, 0}}},
	{"life.agent_gone",
	 "the agent is gone, then SIGSTOP",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_AGENT_GONE, 1, 2, 0, 0},
	  {FAULT_QUIET, 300, 600, 0, 0},
	  {FAULT_SIGSTOP, 250, 900, 0, 0}}},
	{"life.agent_gone_idle",
	 "the agent is gone: nothing stalls",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_AGENT_GONE, 1, 2, 0, 0}, {FAULT_QUIET, 900, 1500, 0, 0}}},
	{"life.reboot",
	 "the guest reboots: nothing stalls",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_REBOOT, 300, 900, 0, 0}, {FAULT_QUIET, 700, 900, 0, 0}}},
	{"life.reboot_stalls",
	 "a spin, a reboot, then a real-time task",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_IRQS_OFF, 250, 600, 0, 0},
	  {FAULT_QUIET, 200, 400, 0, 0},
	  {FAULT_REBOOT, 300, 900, 0, 0},
	  {FAULT_QUIET, 300, 400, 0, 0},
	  {FAULT_REALTIME_HOG, 250, 600, 0, 0}}},
	{"life.cpu_offline",
	 "a CPU goes offline and comes back: nothing stalls",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_CPU_OFFLINE, 500, 3000, 0, 0}, {FAULT_QUIET, 300, 500, 0, 0}}},
	{"life.cpu_offline_stall",
	 "a CPU goes offline and comes back, then SIGSTOP",
	 SCENARIO_LIFE,
	 LOAD_ANY,
	 {{FAULT_CPU_OFFLINE, 500, 3000, 0, 0},
	  {FAULT_QUIET, 300, 500, 0, 0},
	  {FAULT_SIGSTOP, 250, 900, 0, 0}}},
	{"lie.echo",
	 "false replies to all round trips; SIGSTOP, then a spin",
	 SCENARIO_LIE,
	 LOAD_ANY,
	 {{FAULT_ECHO_LIE, 4000, 4000, 0, 200},
	  {FAULT_SIGSTOP, 250, 700, 0, 0},
	  {FAULT_QUIET, 200, 400, 0, 0},
	  {FAULT_IRQS_OFF, 250, 700, 0, 0}}},
	{"lie.echo_some",
	 "false replies for a while; then SIGSTOP and a spin",
	 SCENARIO_LIE,
	 LOAD_ANY,
	 {{FAULT_ECHO_LIE, 60, 400, 0, 0},
	  {FAULT_QUIET, 100, 200, 0, 0},
	  {FAULT_SIGSTOP, 250, 700, 0, 0},
	  {FAULT_QUIET, 200, 400, 0, 0},
	  {FAULT_IRQS_OFF, 250, 700, 0, 0}}},
	{"lie.stamps",
	 "false stamps of all events; SIGSTOP, then a spin",
	 SCENARIO_LIE,
	 LOAD_ANY,
	 {{FAULT_STAMP_LIE, 4000, 4000, 0, 200},
	  {FAULT_SIGSTOP, 250, 700, 0, 0},
	  {FAULT_QUIET, 200, 400, 0, 0},
	  {FAULT_IRQS_OFF, 250, 700, 0, 0}}},
	{"lie.stamps_some",
	 "false stamps for a while; then SIGSTOP and a spin",
	 SCENARIO_LIE,
	 LOAD_ANY,
	 {{FAULT_STAMP_LIE, 60, 400, 0, 0},
	  {FAULT_QUIET, 100, 200, 0, 0},
	  {FAULT_SIGSTOP, 250, 700, 0, 0},
	  {FAULT_QUIET, 200, 400, 0, 0},
	  {FAULT_IRQS_OFF, 250, 700, 0, 0}}},
	{"lie.echo_steal",
	 "false replies; a spin, then a real-time task",
	 SCENARIO_LIE,
	 LOAD_SHARED,
	 {{FAULT_ECHO_LIE, 4000, 4000, 0, 200},
	  {FAULT_PREEMPT_OFF, 250, 700, 0, 0},
	  {FAULT_QUIET, 200, 400, 0, 0},
	  {FAULT_REALTIME_HOG, 250, 700, 0, 0}}},
	{"lie.stamps_steal",
	 "false stamps; a spin, then a real-time task",
	 SCENARIO_LIE,
	 LOAD_SHARED,
	 {{FAULT_STAMP_LIE, 4000, 4000, 0, 200},
	  {FAULT_PREEMPT_OFF, 250, 700, 0, 0},
	  {FAULT_QUIET, 200, 400, 0, 0},
	  {FAULT_REALTIME_HOG, 250, 700, 0, 0}}},
};

const size_t scenarios_count = sizeof(scenarios) / sizeof(scenarios[0]);

const char *scenario_kind_name(enum scenario_kind kind)
{
	static const char *const names[] = {
		[SCENARIO_SINGLE] = "single", [SCENARIO_MIXTURE] = "mixture",
		[SCENARIO_DECOY] = "decoy",   [SCENARIO_DOUBLE] = "double",
		[SCENARIO_TRIPLE] = "triple", [SCENARIO_NEAR] = "near",
		[SCENARIO_LONG] = "long",     [SCENARIO_LIFE] = "life",
		[SCENARIO_LIE] = "lie",
	};

	return names[kind];
}

const struct scenario *scenario_find(const char *name)
{
	for (size_t i = 0; i < scenarios_count; i++) {
		if (strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
	}
	return NULL;
}

bool scenario_needs_kvm(const struct scenario *s)
{
	for (size_t i = 0; i < SCENARIO_FAULTS_MAX && s->faults[i].kind; i++) {
		if (fault_needs_kvm(s->faults[i].kind))
			return true;
	}
	return false;
}

bool scenario_shows_interrupts(const struct scenario *s)
{
	for (size_t i = 0; i < SCENARIO_FAULTS_MAX && s->faults[i].kind; i++) {
		if (fault_needs_interrupts(s->faults[i].kind))
			return true;
	}
	return s->kind == SCENARIO_DECOY && s->load != LOAD_STEADY;
}

bool scenario_needs_second(const struct scenario *s)
{
	for (size_t i = 0; i < SCENARIO_FAULTS_MAX && s->faults[i].kind; i++) {
		if (fault_needs_second(s->faults[i].kind))
			return true;
	}
	return s->load == LOAD_PAIR;
}

bool scenario_agent_late(const struct scenario *s)
{
	for (size_t i = 0; i < SCENARIO_FAULTS_MAX && s->faults[i].kind; i++) {
		if (s->faults[i].kind == FAULT_AGENT_ATTACHES)
			return true;
	}
	return false;
}

bool scenario_shows_clock(const struct scenario *s)
{
	return s->kind == SCENARIO_LIFE || s->kind == SCENARIO_LIE;
}

int64_t scenario_plan(const struct scenario *s, struct world *w)
{
	struct engine *e = &w->engine;
	int64_t t = engine_between(e, WARM_UP_MS * ms, (WARM_UP_MS + 200) * ms), end = t;
	/* Faults that are no stalls have nothing to do with what comes next. */
	bool apart = scenario_shows_clock(s);

	for (size_t i = 0; i < SCENARIO_FAULTS_MAX && s->faults[i].kind; i++) {
		const struct scenario_fault *f = &s->faults[i];
		/* It is there before the one before it is over: the guest gets no turn between. */
		int64_t early = i && !apart ? 1 * ms : 0;

		for (unsigned n = 0; n <= f->again; n++) {
			int64_t ns = engine_between(e, f->low_ms * ms, f->high_ms * ms);

			fault_plan(&w->vms[0], f->kind, t - early, ns + early);
			end = end > t + ns ? end : t + ns;
			t = f->every_ms && (n < f->again || !f->again) ? t + f->every_ms * ms
								       : t + ns;
		}
	}
	return end + AFTERWARDS_MS * ms;
}
