/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Turns the timeline's events into states: each vCPU has exactly one state at each time, and each
 * guest CPU has the state that its own kernel's events show. The model uses no clock but host_ns,
 * reads no files and gives no verdicts. Analyses observe its spans.
 *
 * Invariant: consecutive spans of one vCPU (of one guest CPU) touch, so their lengths sum exactly
 * to the time from its first to its last span.
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
#include "proto/event_catalog.h"
#include "proto/message.h"
#include "proto/recording.h"
#include "proto/user_event.h"

/* X(NAME, "name", meaning). Reports list the columns in this order. */
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

/* X(NAME, "name", meaning): why a state is UNKNOWN. */
#define UNKNOWN_REASONS(X)                                                                         \
	X(NONE, "", "")                                                                            \
	X(LOST, "lost_events", "events were lost")                                                 \
	X(NOT_CAPTURED, "not_captured", "its capture had not begun")                               \
	X(NOT_SEEN, "not_seen", "no event had arrived yet")                                        \
	X(NO_ENTRY, "no_entry", "neither an entry to the guest nor an exit had come yet")          \
	X(NO_STACK, "no_stack", "it slept, and the stack that says on what is missing")            \
	X(NO_SWITCH, "no_switch", "the CPU was offline, or a switch of tasks was not seen")        \
	X(ENDED, "thread_ended", "its thread had ended")                                           \
	X(NOT_RECORDED, "not_recorded", "nothing was recorded")                                    \
	X(NO_AGENT, "no_agent", "no agent was heard")                                              \
	X(RECORDING_END, "recording_end", "the recording ended before the guest's next event")

enum unknown_reason {
#define X(NAME, ...) UNKNOWN_##NAME,
	UNKNOWN_REASONS(X)
#undef X
		UNKNOWN_REASON_COUNT
};

/* The state of a guest CPU as its own kernel's events show it; that of the innermost interrupt or
 * softirq. */
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

/* Return the name used in reports and JSON. Static. */
const char *vcpu_state_name(enum vcpu_state s);
const char *guest_cpu_state_name(enum guest_cpu_state s);
/* Writes an interrupt's name, as in /proc/interrupts or /proc/softirqs, to `out`: "local_timer",
 * "TIMER", "irq 24". */
void interrupt_name(enum guest_cpu_state kind, bool vector, uint32_t number, char *out,
		    size_t out_bytes);
const char *unknown_reason_name(enum unknown_reason r);
/* Returns a description for people: "events were lost". Static. */
const char *unknown_reason_meaning(enum unknown_reason r);

/* The VM-exit in which a vCPU is, from kvm_exit to kvm_entry. */
struct vcpu_exit {
	uint64_t serial; /* number of the vCPU's exit; 0: in no exit, or unknown in which */
	uint32_t reason; /* by isa: basic exit reason of VMX, or exit code of SVM */
	uint32_t isa;    /* KVM_ISA_VMX (1) or KVM_ISA_SVM (2) */
};

/* One state of a vCPU and its explanation. Comments name the states in which a member is valid. */
struct vcpu_span {
	uint32_t vm;
	uint32_t vcpu;
	int32_t tid;
	enum vcpu_state state;
	enum unknown_reason why; /* unknown: the reason; otherwise NONE */
	struct host_ns begin, end;
	uint16_t pcpu;       /* where it ran or waited */
	uint32_t task_state; /* off CPU: enum vs_task_state bits at its switch-out */
	int32_t holder_pid;  /* runnable: the task that held the pCPU longest; else 0 */
	int64_t holder_ns;   /* runnable: for how long */
	/* Runnable, if several tasks held the pCPU: they are entries crowd_first to crowd_first +
	 * n_crowd - 1 of `crowd`. */
	uint64_t crowd_first;
	uint32_t n_crowd;               /* 0: there was only one, or they are not kept */
	const struct crowd_ring *crowd; /* owned by the model */
	int64_t pcpu_busy_ns;           /* runnable: time in which tasks were seen on its pCPU */
	int64_t pcpu_idle_ns;           /* runnable: time in which its pCPU idled (throttling) */
	int64_t throttled_ns; /* runnable, throttled: time known to be lost to its quota */
	uint32_t quota; /* number of the cgroup with the quota (model_cgroup_of()); 0: unknown */
	enum wait_class wait_class;         /* off CPU: from its stack; else WAIT_NONE */
	int32_t waker_pid;                  /* who ended a sleep; 0: unknown */
	uint32_t waiter_stack, waker_stack; /* stack ids; 0: none */
	struct vcpu_exit exit;
	bool migrates; /* stopped by its VMM: to complete a migration */
	/* Stopped by its VMM: the task that last wrote to the VMM's monitor before; 0: unknown. */
	int32_t asker_pid;
	/* Blocked: it slept uninterruptibly in an exit for a page that was not mapped. */
	bool faulted;
	/* A wait that is too short to always get a stack: it got one as a sample (sampled), or its
	 * class and state are those of the sample that followed (inferred). */
	bool sampled, inferred;
	/* Unknown: the state before and after the loss was presumed_state, but the lost events may
	 * have led away and back. */
	bool presumed;
	enum vcpu_state presumed_state;
	int32_t signal_pid; /* stopped: who sent the signal; 0: unknown */
	uint32_t signal_number;
};

struct guest_span {
	uint32_t vm;
	uint32_t boot; /* boot of the guest's kernel (0: the first), to which pid belongs */
	uint16_t cpu;
	enum guest_cpu_state state;
	enum unknown_reason why; /* unknown: the reason; otherwise NONE */
	struct host_ns begin, end;
	int32_t pid;     /* current task, also during interrupts */
	uint32_t number; /* softirq number, irq number or enum vs_vector */
	bool vector;     /* hardirq: `number` is an enum vs_vector */
};

/* Single guest events, for analyses that need more than spans. */
struct guest_instant {
	uint32_t vm;
	uint32_t boot; /* as in guest_span */
	uint16_t cpu;  /* the guest CPU; for a wake-up the target CPU */
	bool has_vcpu; /* it is known that `vcpu` runs event.cpu */
	uint32_t vcpu;
	struct host_ns t;
	uint32_t err_ns;         /* bound on the error of t */
	enum vs_event_type type; /* any type that a guest's capture emits, also LOST */
	struct vs_event event;
};

/* An event of the host's stream, of any type, also LOST. */
struct host_instant {
	struct host_ns t;
	uint32_t err_ns; /* bound on the error of t */
	struct vs_event event;
	bool of_vcpu; /* event.pid is the thread of the vCPU below */
	uint32_t vm, vcpu;
};

/* The steal time of a guest CPU since boot, as the guest's kernel reports it. */
struct guest_steal {
	uint32_t vm;
	uint16_t cpu;
	struct host_ns t; /* time of the reading */
	uint64_t err_ns;  /* bound on the error of t */
	uint64_t steal_ns, unit_ns;
	/* The hypervisor reports steal. If not, 0 means unknown. */
	bool clock;
};

/* One interrupt or softirq from entry to exit, including those that are nested inside it. */
struct guest_interrupt {
	uint32_t vm;
	uint16_t cpu;
	enum guest_cpu_state kind; /* HARDIRQ or SOFTIRQ */
	uint32_t number;           /* as in guest_span */
	bool vector;
	struct host_ns begin, end;
	int32_t pid; /* the interrupted task */
	/* Its exit was seen. If not, a later event shows that it has ended, unless goes_on. */
	bool whole;
	bool goes_on; /* the data end before its exit */
};

/* A reading of the guest's kernel clock. */
struct guest_clock_reading {
	uint32_t vm;
	struct host_ns t; /* time of the reading */
	/* How far the clock jumped ahead (or, if negative, back) since the previous reading. */
	int64_t step_ns;
	/* The times of both readings are bounded by more than the guest's own statements, and the
	 * times at which they arrived on the host show the step, too. */
	bool proven;
};

/*
 * Callbacks may be NULL. The spans of one vCPU (of one guest CPU) arrive in order. A vCPU's span
 * arrives after it has ended, up to MODEL_HOLD_NS later if a stack may still explain it. An instant
 * arrives before the model processes the event, so the span that it ends is still open.
 */
struct model_observer {
	void (*vcpu_span)(void *context, const struct vcpu_span *span);
	void (*guest_span)(void *context, const struct guest_span *span);
	void (*guest_instant)(void *context, const struct guest_instant *instant);
	void (*guest_interrupt)(void *context, const struct guest_interrupt *interrupt);
	void (*host_instant)(void *context, const struct host_instant *instant);
	/* In order for one CPU, but possibly before older events. */
	void (*guest_steal)(void *context, const struct guest_steal *steal);
	/* In order, but possibly before older events. */
	void (*guest_clock)(void *context, const struct guest_clock_reading *reading);
	/* VM-exits that the capture counted (aggregated): totals since the capture began.
	 * Borrowed. */
	void (*exits_counted)(void *context, const struct message_exit_summary *m);
	/* Called by model_advance() and, as the last callback, by model_finish(). */
	void (*advance)(void *context, struct host_ns now);
	void *context;
	/* The requested types of host_instant and guest_instant; empty: all. Other types may also
	 * arrive. */
	struct event_set host_types, guest_types;
};

/* The span of a wait of at least MODEL_STACK_WAIT_NS is held for MODEL_HOLD_NS, because its STACK
 * events can be sent only after the wait. */
#define MODEL_HOLD_NS       200000000ll
#define MODEL_STACK_WAIT_NS 10000000ll

enum { MODEL_VMS_MAX = 256 };

struct model;

/* model_new() returns NULL on ENOMEM. model_free() frees everything that the model has copied,
 * makes no callbacks, and accepts NULL. */
struct model *model_new(void);
void model_free(struct model *m);
/* Adds a copy of an observer. Observers are called in the order in which they were added, with
 * spans in the order of their end. Returns 0 or -ENOMEM. */
int model_observe(struct model *m, const struct model_observer *observer);
/*
 * If `worker`, observers that are added from now on run on a worker thread if the process may use
 * two CPUs: in the same order, but later. They must share no data with other observers, and may ask
 * the model only for its VMs' vCPUs, guest CPUs and threads. A callback may record an error in its
 * own data. When model_finish() returns, all callbacks have run. Returns 0, -ENOMEM, or -EAGAIN if
 * no thread can be created.
 */
int model_observe_on_worker(struct model *m, bool worker);
/*
 * Observers that are added from now on, up to model_observe_always(), receive what lies between
 * `from` and `until` (model/window.h). opened(opener), unless NULL, is called before the first of
 * it, on the thread of these observers. Returns 0 or -ENOMEM.
 */
int model_observe_within(struct model *m, struct host_ns from, struct host_ns until,
			 void (*opened)(void *opener), void *opener);
/* Observers that are added from now on receive everything. */
void model_observe_always(struct model *m);
/* Waits until observers on the worker thread have received everything so far. Until the model gets
 * more input, the caller may read their results. Inside a callback, the current event may be
 * missing from them. */
void model_worker_await(struct model *m);
/* Sets the threads of a VM, also when they change. Returns 0, -E2BIG (too many VMs) or -ENOMEM. */
int model_vm(struct model *m, const struct message_vm_info *info);
/* Notes that the host's capture follows all threads of the VM that are known now, from `t` at the
 * latest. Returns 0 or -ENOENT. */
int model_vm_followed(struct model *m, uint32_t vm, struct host_ns t);
/* Sets the APIC ids of the guest's CPUs, from the agent's HELLO. They assign guest CPUs to vCPUs.
 * Returns 0, -ENOENT or -ENOMEM. */
int model_guest_cpus(struct model *m, uint32_t vm, const struct message_cpu *cpus, size_t n);
/* Sets the tick rate of the guest's kernel (CONFIG_HZ); 0: unknown. Returns 0 or -ENOENT. */
int model_guest_tick(struct model *m, uint32_t vm, uint32_t hz);
/* Sets the guest's soft lockup threshold; 0: unknown or disabled. Returns 0 or -ENOENT. */
int model_guest_watchdog(struct model *m, uint32_t vm, uint32_t seconds);
/* Notes that the guest's kernel has booted again. From its next event on, its tasks belong to boot
 * `boot`. Before this call, a LOST event must have ended each of its CPUs. Call it in time order
 * with the events. Returns 0 or -ENOENT. */
int model_guest_boot(struct model *m, uint32_t vm, uint32_t boot);
/* Notes that the VMM paused or resumed the VM (QMP STOP, RESUME). Call it in time order with the
 * events. Returns 0 or -ENOENT. */
int model_vm_paused(struct model *m, uint32_t vm, struct host_ns t, bool paused);
/* Passes on the agent's reading of a CPU's steal time. Returns 0, -ENOENT or -EINVAL (a CPU number
 * beyond VS_CPUS_MAX). */
int model_guest_steal(struct model *m, const struct guest_steal *steal);
/* Passes on the agent's reading of its kernel's clock. Returns 0 or -ENOENT. */
int model_guest_clock(struct model *m, const struct guest_clock_reading *reading);
/* Notes that frames of the host's stream were lost. They are not only events: a migration that QEMU
 * announced, a line of the host's log or a reading of a quota may be among them, and nothing else
 * shows that. */
void model_notes_lost(struct model *m);
/* Notes that the VMM begins or ends a migration of the VM (QMP MIGRATION). A pause during a
 * migration counts as a part of it. Call it in time order with the events. Returns 0 or -ENOENT. */
int model_vm_migrates(struct model *m, uint32_t vm, bool migrates);
/* Notes that the VM's agent may count short handlers instead of sending them, from now on. Returns
 * 0 or -ENOENT. */
int model_handlers_counted(struct model *m, uint32_t vm);
/* Passes on the counts of VM-exits that the capture aggregated. */
void model_exits_counted(struct model *m, const struct message_exit_summary *counted);

/* Two readings of the counters of a vCPU's cgroup, and how long its CPU quota throttled the vCPU
 * between them. */
struct quota_reading {
	uint32_t vm, vcpu;
	uint32_t n_vcpus; /* number of vCPUs that share the cgroup */
	struct host_ns from, until;
	/* Increase of the counter: a sum over all pCPUs, added when a throttling ends. */
	int64_t throttled_ns;
	uint32_t cgroup; /* number of the cgroup with the quota (model_cgroup()); 0: unknown */
};
/* Finds or adds a cgroup of the host with its CPU quota: quota_us of CPU time in each period_us;
 * 0: unknown. Sets *number, to 0 if no more cgroups are kept. Returns 0 or -ENOMEM. */
int model_cgroup(struct model *m, const char *path, uint64_t quota_us, uint64_t period_us,
		 uint32_t *number);
/* Returns the cgroup with this number, or NULL. Valid until the next model_cgroup(). */
const struct cgroup *model_cgroup_of(const struct model *m, uint32_t number);
/* Determines which of the vCPU's waits for a pCPU were throttling. Call it when no event before
 * `until` follows: such waits are held until then. Returns 0 or -ENOENT. */
int model_quota(struct model *m, const struct quota_reading *reading);
/* Sets where a task of the host comes from. Copied. Returns 0 or -ENOMEM. */
int model_task_origin_set(struct model *m, const struct task_origin *origin);
/* Returns where the task comes from that had this thread id at `t`, or NULL. Valid until the next
 * model_task_origin_set() or model_push(). */
const struct task_origin *model_task_origin(const struct model *m, int32_t tid, struct host_ns t);
/* Adds a line of the host's kernel log that was read at `t`. */
void model_host_log(struct model *m, struct host_ns t, const char *text);
/* Returns the i-th newest line, or NULL after the last that is kept. */
const struct host_log_line *model_host_log_line(const struct model *m, size_t i);
/* Adds a copy of a stack. STACK events refer to it, at most MODEL_HOLD_NS before this call or any
 * time after it. Returns 0, -EINVAL or -ENOMEM. */
int model_stack(struct model *m, const struct message_stack *stack);
/* Adds a copy of a stack to which a guest's TASK_STACK events refer. The memory of each VM is
 * bounded: the least recently added stacks are removed. Returns 0, -ENOENT, -EINVAL or -ENOMEM. */
int model_guest_stack(struct model *m, uint32_t vm, const struct message_stack *stack);
/*
 * The events that the model and its observers need. If the model does not get the others, it
 * delivers the same spans and the same requested instants, provided that it gets all events of a
 * CPU around a loss (engine/batches.c).
 */
struct model_needs {
	struct event_set host_types, guest_types;
	/* Outside of these windows only the types of model_lasting_types(); n_windows 0: always. */
	size_t n_windows;
	const struct model_window {
		struct host_ns from, until;
	} * windows;
};
struct model_needs model_needs(const struct model *m);
/* Returns the types whose events stay true: losses, and what names tasks. */
struct event_set model_lasting_types(void);
/*
 * Declares, before the first event, that no observer needs more of the guests than the types that
 * it requests. The state of a vCPU rarely depends on whether its guest idled; model_guests_missed()
 * returns true when it did, and then the spans may be wrong. Another thread may call it.
 */
void model_leave_guests(struct model *m);
bool model_guests_missed(const struct model *m);
/* Declares, before the first event, that the observers need nothing but the instants that they
 * request in these windows, and the names of tasks. The windows are borrowed. */
void model_need_instants(struct model *m, const struct model_window *windows, size_t n);
/* Processes events. They must arrive in time order; an event that is older than the previous one
 * gets its time. A LOST event makes everything unknown that its CPU could have shown from the begin
 * of the gap (loss_since) to the CPU's next event. A malformed event is skipped. Returns 0,
 * -ENOMEM, or -EINVAL if an event was malformed (a CPU number beyond VS_CPUS_MAX, or an unknown
 * VM). */
int model_push(struct model *m, const struct timeline_event *events, size_t n);
/* Declares that no event older than `now` follows, so that model_vcpu_current() shows open spans
 * up to `now`. */
void model_advance(struct model *m, struct host_ns now);
/* Closes all open spans at the time of the last event or advance. */
void model_finish(struct model *m);

/* Finds the vCPU that runs guest CPU `cpu`: by APIC id if both sides know it, else by rank.
 * Returns 0 or -ENOENT. */
int model_vcpu_of_guest_cpu(const struct model *m, uint32_t vm, uint16_t cpu, uint32_t *vcpu);
/* Returns the open span of a vCPU in *out, ending at model_now(). Returns 0 or -ENOENT. */
int model_vcpu_current(const struct model *m, uint32_t vm, uint32_t vcpu, struct vcpu_span *out);
/* Sets *until to a time such that the observers have received all spans of this vCPU that ended
 * before it. Returns 0 or -ENOENT. */
int model_vcpu_delivered(const struct model *m, uint32_t vm, uint32_t vcpu, struct host_ns *until);
/* Does the same as model_vcpu_of_guest_cpu(), and sets *since to the time from which the host's
 * capture follows the vCPU's thread; if that is unknown, to model_begin(). */
int model_guest_cpu_followed(const struct model *m, uint32_t vm, uint16_t cpu, uint32_t *vcpu,
			     struct host_ns *since);
/* Returns a number that changes whenever the answer of model_guest_cpu_followed() for some guest
 * CPU may change. */
uint64_t model_joins(const struct model *m);
/* Finds the vCPU that this host thread runs. Returns 0 or -ENOENT. */
int model_vcpu_of_thread(const struct model *m, int32_t tid, uint32_t *vm, uint32_t *vcpu);
/* Finds the VM that this host thread works for: a thread of its VMM, or its vhost worker. Returns
 * 0 or -ENOENT. */
int model_vm_of_thread(const struct model *m, int32_t tid, uint32_t *vm);
/* Finds the vCPU with this APIC id: as the VMM reported it, else the vCPU's index. Returns 0 or
 * -ENOENT. */
int model_vcpu_of_apic_id(const struct model *m, uint32_t vm, uint32_t apic_id, uint32_t *vcpu);
/* Finds the guest CPU that a vCPU runs. Returns 0 or -ENOENT. */
int model_guest_cpu_of_vcpu(const struct model *m, uint32_t vm, uint32_t vcpu, uint16_t *cpu);
/* Returns true if this guest CPU is probably offline: its last task was the one that takes a CPU
 * offline, and its vCPU sleeps or is gone, or other CPUs continue. */
bool model_guest_cpu_offline(const struct model *m, uint32_t vm, uint16_t cpu);
/* Returns the open span of a guest CPU in *out. Returns 0 or -ENOENT. */
int model_guest_current(const struct model *m, uint32_t vm, uint16_t cpu, struct guest_span *out);
/* Return the time of the first event, and of the last event or advance. */
struct host_ns model_begin(const struct model *m);
struct host_ns model_now(const struct model *m);
/* Fills `vcpus` with at most `max` indices of a VM's vCPUs in ascending order. Returns the number
 * of its vCPUs. */
size_t model_vcpus(const struct model *m, uint32_t vm, uint32_t *vcpus, size_t max);
/* Fills `vms` with at most `max` numbers of VMs. Returns the number of VMs. */
size_t model_vms(const struct model *m, uint32_t *vms, size_t max);
/* Returns the VM's name, or "" if it is unknown. */
const char *model_vm_name(const struct model *m, uint32_t vm);
/* Returns the interval of the guest's ticks on a busy CPU, or 0 if it is unknown. */
int64_t model_tick_interval_ns(const struct model *m, uint32_t vm);
/* Returns the guest's soft lockup threshold, or 0 if it is unknown or disabled. */
int64_t model_watchdog_ns(const struct model *m, uint32_t vm);
/* The kinds of data of a VM that have arrived so far. */
struct model_data {
	bool host_events, guest_events, kvm_events, stacks;
	bool exits_counted;    /* some VM-exits were counted (aggregated) */
	bool handlers_counted; /* some short handlers were counted (aggregated) */
	bool quota;            /* its cgroup's CPU quota was read */
	bool guest_stacks;     /* its agent sends stacks of its tasks */
	bool notes_lost;       /* frames of the host's stream were lost (model_notes_lost) */
	bool is_protected;     /* the guest is protected from the host (proto/vm_protection.h) */
};
/* Returns the result of testing guest events against VM-entries and VM-exits (presence.h). All 0
 * if the VM is unknown. */
struct presence_count model_presence(const struct model *m, uint32_t vm);
/* Declares the times of a guest unproven from the first event on: a first reading of the recording
 * found that they contradict the host. Call it before any event. Ignored beyond
 * MODEL_VMS_MAX guests. */
void model_guest_distrust(struct model *m, uint32_t vm);
/* Returns whether model_guest_distrust() was called for the guest. */
bool model_guest_distrusted(const struct model *m, uint32_t vm);
struct model_data model_data_of(const struct model *m, uint32_t vm);
/* Returns the descriptions of the events that the user chose, of all streams (user_event.h). Valid
 * as long as the model. A description is there before the first event that refers to it. */
struct user_events *model_user_events(const struct model *m);
/* Returns a stack, or NULL if it is unknown. Valid until the next model_stack(). */
const struct stack *model_stack_of(const struct model *m, uint32_t id);
/* Returns a guest's stack, or NULL if it is unknown. pid 0: a stack of its kernel. Valid until the
 * next model_guest_stack(). */
const struct stack *model_guest_stack_of(const struct model *m, uint32_t vm, int32_t pid,
					 uint32_t id);
struct model_name {
	int32_t pid, tgid;
	char comm[16];
};
/* Fills `out` with at most `max` names of the tasks of `source`, in no order. Returns their
 * number. */
size_t model_names(const struct model *m, uint32_t source, struct model_name *out, size_t max);
/* Returns the comm of a host task (source VS_SOURCE_HOST) or of a guest task in the VM's current
 * boot, or "" if it is unknown. Valid until the next push. */
const char *model_task_name(const struct model *m, uint32_t source, int32_t pid);
/* Returns the comm of a guest task in the given boot, or "" if it is unknown. */
const char *model_task_name_in(const struct model *m, uint32_t vm, uint32_t boot, int32_t pid);
/* Returns the process id of a task of `source`, or 0 if it is unknown. */
int32_t model_task_process(const struct model *m, uint32_t source, int32_t pid);

#endif
