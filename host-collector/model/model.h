/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model replays the timeline into states: for every vCPU exactly one state at every instant,
 * for every guest CPU what it was doing by its own kernel's account. It knows no clocks beyond
 * host_ns, no files and no verdicts; analyses subscribe to its spans.
 *
 * Invariant: the spans of one vCPU (of one guest CPU) abut; their lengths sum to the time from its
 * first to its last instant exactly.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"
#include "host-collector/model/cgroups.h"
#include "host-collector/model/crowd.h"
#include "host-collector/model/host_log.h"
#include "host-collector/model/origins.h"
#include "host-collector/model/presence.h"
#include "host-collector/model/stacks.h"
#include "host-collector/model/wait_class.h"
#include "host-collector/timeline/timeline.h"
#include "proto/message.h"
#include "proto/recording.h"

/* X(NAME, "name", meaning) The order is the order of columns in every report. */
#define VCPU_STATES(X)                                                                             \
	X(GUEST, "guest", "on a pCPU in guest mode (without KVM events: on a pCPU)")               \
	X(KVM, "kvm", "on a pCPU, the host kernel handles an exit")                                \
	X(VMM, "vmm", "on a pCPU, QEMU handles an exit")                                           \
	X(RUNNABLE, "runnable", "wants a pCPU that another task holds (run delay, steal)")         \
	X(HALTED, "halted", "the guest has nothing to run or waits for an event (HLT)")            \
	X(BLOCKED, "blocked", "the thread sleeps in the host while the guest wants to run")        \
	X(THROTTLED, "throttled", "out of cgroup CPU quota")                                       \
	X(STOPPED, "stopped", "stopped by a signal, a debugger, the freezer or a VM pause")        \
	X(UNKNOWN, "unknown", "events lost or not captured")

enum vcpu_state {
#define X(NAME, ...) VCPU_##NAME,
	VCPU_STATES(X)
#undef X
		VCPU_STATE_COUNT
};

/* X(NAME, "name", meaning) Why a state is UNKNOWN. */
#define UNKNOWN_REASONS(X)                                                                         \
	X(NONE, "", "")                                                                            \
	X(LOST, "lost_events", "events were lost")                                                 \
	X(NOT_CAPTURED, "not_captured", "its capture had not begun")                               \
	X(NOT_SEEN, "not_seen", "no event of it had come yet")                                     \
	X(NO_ENTRY, "no_entry", "neither an entry to the guest nor an exit had come yet")          \
	X(NO_STACK, "no_stack", "it slept, and the stack that says on what is missing")            \
	X(NO_SWITCH, "no_switch", "the CPU was offline, or a switch of tasks was not seen")        \
	X(ENDED, "thread_ended", "its thread had ended")                                           \
	X(NOT_RECORDED, "not_recorded", "nothing was recorded")                                    \
	X(NO_AGENT, "no_agent", "no agent was heard")                                              \
	X(RECORDING_END, "recording_end", "the recording ended before the guest's next word")

enum unknown_reason {
#define X(NAME, ...) UNKNOWN_##NAME,
	UNKNOWN_REASONS(X)
#undef X
		UNKNOWN_REASON_COUNT
};

/* What a guest CPU does by its own kernel's account; the innermost wins. */
#define GUEST_CPU_STATES(X)                                                                        \
	X(IDLE, "idle")                                                                            \
	X(TASK, "task")                                                                            \
	X(HARDIRQ, "hardirq")                                                                      \
	X(SOFTIRQ, "softirq")                                                                      \
	X(UNKNOWN, "unknown")

enum guest_cpu_state {
#define X(NAME, ...) GUEST_CPU_##NAME,
	GUEST_CPU_STATES(X)
#undef X
		GUEST_CPU_STATE_COUNT
};

/* As in reports and their JSON; static. */
const char *vcpu_state_name(enum vcpu_state s);
const char *guest_cpu_state_name(enum guest_cpu_state s);
/* "local_timer", "TIMER", "irq 24": an interrupt's name as /proc/interrupts or /proc/softirqs has
 * it, into the caller's buffer. */
void interrupt_name(enum guest_cpu_state kind, bool vector, uint32_t number, char *out,
		    size_t out_bytes);
const char *unknown_reason_name(enum unknown_reason r);
/* In words for people: "events were lost". */
const char *unknown_reason_meaning(enum unknown_reason r);

/* The VM-exit that a vCPU is in, from kvm_exit to kvm_entry. */
struct vcpu_exit {
	uint64_t serial; /* counts this vCPU's exits; 0: in none, or not known in which */
	uint32_t reason; /* by isa: basic exit reason of VMX, exit code of SVM */
	uint32_t isa;    /* KVM_ISA_VMX (1) or KVM_ISA_SVM (2) */
};

/* Why a span is what it is; which fields mean something depends on the state. */
struct vcpu_span {
	uint32_t vm;
	uint32_t vcpu;
	int32_t tid;
	enum vcpu_state state;
	enum unknown_reason why; /* unknown: NONE in no other state */
	struct host_ns begin, end;
	uint16_t pcpu;        /* where it ran or waits */
	uint32_t task_state;  /* off CPU: enum vs_task_state bits when it left */
	int32_t holder_pid;   /* runnable: who held the pCPU longest meanwhile; else 0 */
	int64_t holder_ns;    /* and for how long */
	uint64_t crowd_first; /* runnable: all holders, if there were several, are these... */
	uint32_t n_crowd;     /* ... so many, in crowd; 0: there was one, or they are not kept */
	const struct crowd_ring *crowd; /* the model's */
	int64_t pcpu_busy_ns;           /* runnable: how long tasks were seen on its pCPU */
	int64_t pcpu_idle_ns; /* runnable: how long its pCPU idled all the same (a quota) */
	int64_t throttled_ns; /* runnable, throttled: how long its quota is known to have cost */
	uint32_t quota;       /* whose quota, by model_cgroup_of(); 0 unknown */
	enum wait_class wait_class; /* off CPU: from the waiter's stack; WAIT_NONE without one */
	int32_t waker_pid;          /* who ended a sleep, 0 unknown */
	uint32_t waiter_stack, waker_stack; /* stack ids, 0 none */
	struct vcpu_exit exit;
	bool migrates;     /* stopped, by its VMM: to complete a migration */
	int32_t asker_pid; /* stopped, by its VMM: who had written to its monitor before, 0 unknown
			    */
	bool faulted; /* blocked: uninterruptibly, inside an exit for a page that is not there */
	/* Too short to be sure to bring a stack: it brought one as a sample, or its class and state
	 * are those of the sample that followed. */
	bool sampled, inferred;
	/* unknown: what it was before and after; what is missing may have led away and back */
	bool presumed;
	enum vcpu_state presumed_state;
	int32_t signal_pid; /* stopped: the sender of the stopping signal, 0 unknown */
	uint32_t signal_number;
};

struct guest_span {
	uint32_t vm;
	uint32_t boot; /* of the guest's kernel, 0 the first: pid is of that boot */
	uint16_t cpu;
	enum guest_cpu_state state;
	enum unknown_reason why; /* unknown: NONE in no other state */
	struct host_ns begin, end;
	int32_t pid;     /* the current task, also under interrupts */
	uint32_t number; /* softirq number, irq number or enum vs_vector */
	bool vector;     /* hardirq: number is an enum vs_vector */
};

/* Instants that analyses need beside the spans. */
struct guest_instant {
	uint32_t vm;
	uint32_t boot; /* as in guest_span */
	uint16_t cpu;  /* the guest CPU concerned (wake-up: the target CPU) */
	struct host_ns t;
	uint32_t err_ns;         /* of t */
	enum vs_event_type type; /* any that a guest's capture emits, LOST included */
	struct vs_event event;
};

/* Any event of the host's stream, as it comes, LOST included. */
struct host_instant {
	struct host_ns t;
	uint32_t err_ns; /* of t */
	struct vs_event event;
	bool of_vcpu; /* event.pid is a vCPU's thread: of this one */
	uint32_t vm, vcpu;
};

/* What a guest's kernel says that it was denied of this CPU since its boot. */
struct guest_steal {
	uint32_t vm;
	uint16_t cpu;
	struct host_ns t; /* of the reading... */
	uint64_t err_ns;  /* and the bound on its error */
	uint64_t steal_ns, unit_ns;
	bool clock; /* its hypervisor tells it; else a zero means nothing */
};

/* One interrupt or softirq from entry to exit, others nested inside it included. */
struct guest_interrupt {
	uint32_t vm;
	uint16_t cpu;
	enum guest_cpu_state kind; /* HARDIRQ or SOFTIRQ */
	uint32_t number;           /* as in guest_span */
	bool vector;
	struct host_ns begin, end;
	int32_t pid;  /* the task it interrupted */
	bool whole;   /* its exit was seen; else a later event proves that it is over... */
	bool goes_on; /* or the data end, and it may go on */
};

/* The guest's kernel read its own clock. */
struct guest_clock_reading {
	uint32_t vm;
	struct host_ns t; /* when */
	int64_t step_ns;  /* by how much it had leapt ahead (or gone back) since the reading before
			   */
	bool proven;      /* when both were is shown by more than the guest's word */
};

#define MODEL_EVENT_BIT(type) (1ull << (type) % VS_EVENT_TYPE_LIMIT)

/*
 * Any callback may be NULL. Spans of one vCPU (of one guest CPU) come in order. A vCPU's span comes
 * when it has ended, and up to MODEL_HOLD_NS later if a stack may still explain it. An instant
 * comes before the model applies it: what it ends is still open.
 */
struct model_observer {
	void (*vcpu_span)(void *context, const struct vcpu_span *span);
	void (*guest_span)(void *context, const struct guest_span *span);
	void (*guest_instant)(void *context, const struct guest_instant *instant);
	void (*guest_interrupt)(void *context, const struct guest_interrupt *interrupt);
	void (*host_instant)(void *context, const struct host_instant *instant);
	/* Of one CPU in order, but ahead of the events before `t`. */
	void (*guest_steal)(void *context, const struct guest_steal *steal);
	/* The same. */
	void (*guest_clock)(void *context, const struct guest_clock_reading *reading);
	/* VM-exits that the capture counted instead of telling: totals since it began. Borrowed. */
	void (*exits_counted)(void *context, const struct message_exit_summary *m);
	void (*advance)(void *context, struct host_ns now); /* model_advance, model_finish (last) */
	void *context;
	/* Which events it wants as instants (MODEL_EVENT_BIT each); 0: all. Others may come, too.
	 */
	uint64_t host_types, guest_types;
};

/* A wait of at least MODEL_STACK_WAIT_NS is kept back this long for its STACK events, which the
 * capture can only send once the wait is over. */
#define MODEL_HOLD_NS       200000000ll
#define MODEL_STACK_WAIT_NS 10000000ll

enum { MODEL_VMS_MAX = 256 };

struct model;

/* NULL on ENOMEM. It is freed with all that it was told; observers hear nothing more. NULL is
 * allowed. */
struct model *model_new(void);
void model_free(struct model *m);
/* Observers are called in the order of addition, spans in order of their end. Copied. */
int model_observe(struct model *m, const struct model_observer *observer);
/*
 * Observers that are added from now on (until `apart` is false again) are told by a thread of their
 * own, in the same order, but later. They share nothing with other observers and ask the model at
 * most for its VMs' vCPUs, guest CPUs and threads; a callback that adds to an error of its own is
 * fine. All has been told when model_finish returns. 0, -ENOMEM, -EAGAIN (no thread to be had).
 */
int model_observe_apart(struct model *m, bool apart);
/* Until they have been told all that the others have: from then on until the model is told more,
 * what they have made of it can be read. In a callback, what the model tells just now may be
 * missing. */
void model_apart_await(struct model *m);
/* The VM's threads, and again whenever they change. 0, -E2BIG (too many VMs), -ENOMEM. */
int model_vm(struct model *m, const struct message_vm_info *info);
/* The host's capture follows all threads of the VM that were told so far, from `t` at the latest.
 * -ENOENT. */
int model_vm_followed(struct model *m, uint32_t vm, struct host_ns t);
/* Guest CPU -> APIC id, from the agent's hello: joins guest CPUs to vCPUs. */
int model_guest_cpus(struct model *m, uint32_t vm, const struct message_cpu *cpus, size_t n);
/* The rate of its kernel's tick (CONFIG_HZ), 0 unknown. -ENOENT. */
int model_guest_tick(struct model *m, uint32_t vm, uint32_t hz);
/* Its kernel calls stalls longer than this soft lockups; 0 not known, or never. -ENOENT. */
int model_guest_watchdog(struct model *m, uint32_t vm, uint32_t seconds);
/* The guest's kernel has booted again: from its next event on its tasks are those of boot `boot`,
 * and none of those before. Its CPUs' last word was a LOST. In time order with the events. -ENOENT.
 */
int model_guest_boot(struct model *m, uint32_t vm, uint32_t boot);
/* What the VMM says of itself (QMP STOP, RESUME), in time order with the events. -ENOENT. */
int model_vm_paused(struct model *m, uint32_t vm, struct host_ns t, bool paused);
/* What the guest's agent says of a CPU. -ENOENT, -EINVAL (a CPU number beyond VS_CPUS_MAX). */
int model_guest_steal(struct model *m, const struct guest_steal *steal);
/* What the guest's agent says of its kernel's clock. -ENOENT. */
int model_guest_clock(struct model *m, const struct guest_clock_reading *reading);
/* It migrates the VM, or no longer does (QMP MIGRATION): what it pauses meanwhile, it pauses to
 * complete that. In time order with the events. -ENOENT. */
int model_vm_migrates(struct model *m, uint32_t vm, bool migrates);
/* From now on its agent may only count short handlers. -ENOENT. */
int model_handlers_counted(struct model *m, uint32_t vm);
/* Passes on what the capture counted. */
void model_exits_counted(struct model *m, const struct message_exit_summary *counted);

/* What a CPU quota did to a vCPU, by two readings of its cgroup's counters. */
struct quota_reading {
	uint32_t vm, vcpu;
	uint32_t n_vcpus; /* that share the cgroup */
	struct host_ns from, until;
	int64_t throttled_ns; /* by how much the counter advanced: over all pCPUs, at its end */
	uint32_t cgroup;      /* whose quota it is, by model_cgroup(); 0 unknown */
};
/* The number of a cgroup of the host's, new or not, and of its CPU quota: quota_us of CPU time in
 * every period_us, 0 if that is not known. *number 0: no more are kept. 0 or -ENOMEM. */
int model_cgroup(struct model *m, const char *path, uint64_t quota_us, uint64_t period_us,
		 uint32_t *number);
/* NULL if there is none of this number. Valid until the next model_cgroup(). */
const struct cgroup *model_cgroup_of(const struct model *m, uint32_t number);
/* Once no event before `until` follows. Tells which of the vCPU's waits for a pCPU were throttling:
 * they are held back until it comes. -ENOENT. */
int model_quota(struct model *m, const struct quota_reading *reading);
/* Where a task of the host comes from. Copied. 0 or -ENOMEM. */
int model_task_origin_set(struct model *m, const struct task_origin *origin);
/* The same, if it is known of the task that had this thread id at `t`; else NULL. Valid until the
 * next model_task_origin_set() or model_push(). */
const struct task_origin *model_task_origin(const struct model *m, int32_t tid, struct host_ns t);
/* A line of the host's kernel log, as soon as it is known. */
void model_host_log(struct model *m, struct host_ns t, const char *text);
/* The i-th newest of them, NULL beyond the last that is kept. */
const struct host_log_line *model_host_log_line(const struct model *m, size_t i);
/* A stack that STACK events will name or have named within MODEL_HOLD_NS. Copied. 0, -EINVAL,
 * -ENOMEM. */
int model_stack(struct model *m, const struct message_stack *stack);
/* A stack that a guest's TASK_STACK events name. Copied; what a VM may keep here is bounded, the
 * oldest goes first. 0, -ENOENT, -EINVAL, -ENOMEM. */
int model_guest_stack(struct model *m, uint32_t vm, const struct message_stack *stack);
/* Events in time order; one that steps back counts as simultaneous with its predecessor. A LOST
 * event makes unknown what its CPU could have shown from the gap's begin (loss_since) to its next.
 * 0, -ENOMEM, -EINVAL (a CPU number beyond VS_CPUS_MAX, a VM never announced by model_vm). */
int model_push(struct model *m, const struct timeline_event *event);
/* Nothing older than `now` follows: long open spans become visible to model_current. */
void model_advance(struct model *m, struct host_ns now);
/* Closes all open spans at the time of the last event. */
void model_finish(struct model *m);

/* The vCPU that runs guest CPU `cpu`: by APIC id if both sides know it, else by rank. -ENOENT. */
int model_vcpu_of_guest_cpu(const struct model *m, uint32_t vm, uint16_t cpu, uint32_t *vcpu);
/* The open span of a vCPU (its end is the time of the last event). -ENOENT. */
int model_vcpu_current(const struct model *m, uint32_t vm, uint32_t vcpu, struct vcpu_span *out);
/* Spans of this vCPU that ended before *until have all been told to the observers. -ENOENT. */
int model_vcpu_delivered(const struct model *m, uint32_t vm, uint32_t vcpu, struct host_ns *until);
/* From when on the host's capture follows the vCPU's thread. -ENOENT: nobody said. */
int model_vcpu_followed(const struct model *m, uint32_t vm, uint32_t vcpu, struct host_ns *since);
/* The vCPU that this host thread runs. -ENOENT. */
int model_vcpu_of_thread(const struct model *m, int32_t tid, uint32_t *vm, uint32_t *vcpu);
/* The VM that this host thread works for: one of its VMM's, or its vhost worker. -ENOENT. */
int model_vm_of_thread(const struct model *m, int32_t tid, uint32_t *vm);
/* The vCPU of this APIC id: as the VMM told, else as it is by default. -ENOENT. */
int model_vcpu_of_apic_id(const struct model *m, uint32_t vm, uint32_t apic_id, uint32_t *vcpu);
/* The guest CPU that a vCPU runs: the inverse of model_vcpu_of_guest_cpu. -ENOENT. */
int model_guest_cpu_of_vcpu(const struct model *m, uint32_t vm, uint32_t vcpu, uint16_t *cpu);
/* Whether this guest CPU has, by all signs, been taken offline: the task that does that was the
 * last on it, and its vCPU sleeps or is gone, or other CPUs go on. */
bool model_guest_cpu_offline(const struct model *m, uint32_t vm, uint16_t cpu);
/* The open span of a guest CPU. -ENOENT. */
int model_guest_current(const struct model *m, uint32_t vm, uint16_t cpu, struct guest_span *out);
/* The time of the first event, and of the last event or advance. */
struct host_ns model_begin(const struct model *m);
struct host_ns model_now(const struct model *m);
/* Fills `vcpus` with the indices of a VM's vCPUs in ascending order; returns how many there are. */
size_t model_vcpus(const struct model *m, uint32_t vm, uint32_t *vcpus, size_t max);
/* Fills `vms` with the numbers of the VMs; returns how many there are. */
size_t model_vms(const struct model *m, uint32_t *vms, size_t max);
/* "" if unknown. */
const char *model_vm_name(const struct model *m, uint32_t vm);
/* The interval of the guest's ticks while a CPU of its is busy; 0 unknown. */
int64_t model_tick_interval_ns(const struct model *m, uint32_t vm);
/* The guest's own threshold for soft lockups; 0 unknown, or never. */
int64_t model_watchdog_ns(const struct model *m, uint32_t vm);
/* What kinds of data this VM has brought so far. */
struct model_data {
	bool host_events, guest_events, kvm_events, stacks;
	bool exits_counted;    /* some VM-exits were counted instead of told */
	bool handlers_counted; /* so were short handlers of its interrupts and softirqs */
	bool quota;            /* its cgroup's CPU quota has been read */
	bool guest_stacks;     /* its agent sends stacks of its tasks */
};
/* Guest events held against when their vCPU was in the guest (presence.h). All 0 if unknown. */
struct presence_count model_presence(const struct model *m, uint32_t vm);
struct model_data model_data_of(const struct model *m, uint32_t vm);
/* NULL if unknown. Valid until the next model_stack. */
const struct stack *model_stack_of(const struct model *m, uint32_t id);
/* The same of a guest's stack; pid 0: of its kernel. Valid until the next model_guest_stack. */
const struct stack *model_guest_stack_of(const struct model *m, uint32_t vm, int32_t pid,
					 uint32_t id);
struct model_name {
	int32_t pid, tgid;
	char comm[16];
};
/* The names of `source`'s tasks that are known now, at most `max`, in no order. */
size_t model_names(const struct model *m, uint32_t source, struct model_name *out, size_t max);
/* comm of a host task (source VS_SOURCE_HOST) or of a VM's guest task in its present boot; "" if
 * unknown. Valid until the next push. */
const char *model_task_name(const struct model *m, uint32_t source, int32_t pid);
/* The same of a guest's task in another boot. */
const char *model_task_name_in(const struct model *m, uint32_t vm, uint32_t boot, int32_t pid);
/* The process of such a task; 0 unknown. */
int32_t model_task_process(const struct model *m, uint32_t source, int32_t pid);

#endif
