/* SPDX-License-Identifier: GPL-2.0-only */
/* The faults that can be simulated; each is one row of the table in faults.c. */
#ifndef SIMULATE_FAULTS_H
#define SIMULATE_FAULTS_H

#include "host-collector/simulate/vm.h"

enum fault_kind {
	FAULT_NONE,
	FAULT_SIGSTOP,
	FAULT_PTRACE,
	FAULT_FREEZER,
	FAULT_QMP_STOP,
	FAULT_MIGRATION,
	FAULT_REALTIME_HOG,
	FAULT_CROWD,
	FAULT_QUOTA,
	FAULT_BIG_LOCK,
	FAULT_PFLASH,
	FAULT_BLOCK_SYNC,
	FAULT_SWAP_IN,
	FAULT_USERFAULT,
	FAULT_MMAP_LOCK,
	FAULT_RECLAIM,
	FAULT_MEMCG,
	FAULT_SPLIT_LOCK,
	FAULT_IRQS_OFF,
	FAULT_PREEMPT_OFF,
	FAULT_LONG_SOFTIRQ,
	FAULT_LONG_HARDIRQ,
	FAULT_IRQ_STORM,
	FAULT_LIGHT_IRQS,
	FAULT_SHARE_PCPU,
	FAULT_LOCKUP,
	FAULT_LOCKUP_ELSEWHERE,
	FAULT_LOCK_OWNER,
	FAULT_LOCK_PARAVIRTUAL,
	FAULT_LOCK_CONTENDED,
	FAULT_CALL,
	FAULT_POLLING,
	FAULT_DEVICE_EXIT,
	FAULT_NESTED,
	FAULT_NESTED_LIFE,
	FAULT_SPIN_BESIDE_STEAL,
	FAULT_LOST_INTERRUPT,
	FAULT_LATE_TIMER,
	FAULT_CLOCK_JUMP,
	FAULT_QUIET, /* no fault */
	FAULT_AGENT_ATTACHES,
	/* The agent attaches again, and captures exits of handlers later than entries. */
	FAULT_AGENT_TORN,
	FAULT_AGENT_AWAY,
	FAULT_AGENT_GONE,
	FAULT_REBOOT,
	FAULT_CPU_OFFLINE,
	FAULT_ECHO_LIE,
	FAULT_STAMP_LIE,
	FAULT_KIND_COUNT
};

/* Returns whether only KVM's events show the fault. */
bool fault_needs_kvm(enum fault_kind kind);
/* Returns whether only KVM's events of interrupts show the fault. */
bool fault_needs_interrupts(enum fault_kind kind);
/* Returns whether the fault needs a second vCPU of the VM. */
bool fault_needs_second(enum fault_kind kind);
/* Plans a fault of about `ns` at time t, or as soon after it as the target vCPU is in a state in
 * which the fault can occur. */
void fault_plan(struct sim_vm *vm, enum fault_kind kind, int64_t t, int64_t ns);

#endif
