/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A report: the results of the analyses as data. The views print it. The JSON format
 * (docs/report-json.md, vcpuscope.report/1) has the same fields. Strings are unescaped: guests and
 * host tasks choose their content, so each view must escape them.
 */
#ifndef STALL_REPORT_H
#define STALL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"
#include "host-collector/analyze/stall/finding.h"
#include "host-collector/model/narrow.h"
#include "host-collector/model/thread_vm.h"

/* X(NAME, name): all verdicts. verdict.c has a row for each one that has a rule. */
#define VERDICTS(X)                                                                                \
	X(UNDETERMINED, undetermined)                                                              \
	X(VCPU_NOT_SCHEDULED, vcpu_not_scheduled)                                                  \
	X(LOCK_HOLDER_PREEMPTED, lock_holder_preempted)                                            \
	X(IPI_TARGET_PREEMPTED, ipi_target_preempted)                                              \
	X(CGROUP_THROTTLED, cgroup_throttled)                                                      \
	X(VMM_LOCK, vmm_lock)                                                                      \
	X(STORAGE_BACKEND, storage_backend)                                                        \
	X(MMU_CONTENTION, mmu_contention)                                                          \
	X(DEMAND_PAGING, demand_paging)                                                            \
	X(MIGRATION, migration)                                                                    \
	X(VM_PAUSED, vm_paused)                                                                    \
	X(CLOCK_JUMP, clock_jump)                                                                  \
	X(SPLIT_LOCK, split_lock)                                                                  \
	X(INTERRUPT_LOST, interrupt_lost)                                                          \
	X(TIMER_LATE, timer_late)                                                                  \
	X(DEVICE_NO_COMPLETION, device_no_completion)                                              \
	X(HOST_MEMORY, host_memory)                                                                \
	X(HOST_LOCKUP, host_lockup)                                                                \
	X(NESTED_UNOBSERVABLE, nested_unobservable)                                                \
	X(GUEST_IRQ_STORM, guest_irq_storm)                                                        \
	X(GUEST_SPIN, guest_spin)

enum verdict {
#define X(NAME, ...) VERDICT_##NAME,
	VERDICTS(X)
#undef X
		VERDICT_COUNT
};

enum confidence { CONFIDENCE_UNDETERMINED, CONFIDENCE_LIKELY, CONFIDENCE_DECIDED };

/* Return the name that the JSON and docs/verdicts.md use. Static strings. */
const char *verdict_name(enum verdict v);
const char *confidence_name(enum confidence c);

enum {
	REPORT_TEXT_MAX = 256,
	REPORT_CULPRITS_MAX = 8,
	REPORT_EVIDENCE_MAX = 29,
	REPORT_EVIDENCE_PAIRS = 5, /* of them, the last ones, for pairs that the user named */
	REPORT_CAUSES_MAX = 6,
	REPORT_BECAUSE_MAX = 6,
	REPORT_DENIED_MAX = 2,
	REPORT_GROUPS_MAX = 4
};

/* X(NAME): what a culprit did. view/culprit_text.c has the words. */
#define CULPRIT_ROLES(X)                                                                           \
	X(SENT_STOP_SIGNAL)                                                                        \
	X(WROTE_TO_MONITOR)                                                                        \
	X(TRACED)                                                                                  \
	X(HELD_PCPU)                                                                               \
	X(HELD_BIG_LOCK)                                                                           \
	X(PROVIDED_PAGE)                                                                           \
	X(HELD_PEER_PCPU)                                                                          \
	X(STOPPED_PEER)                                                                            \
	X(TRACED_PEER)                                                                             \
	X(KEPT_CPU)                                                                                \
	X(INTERRUPTED)                                                                             \
	X(KEPT_PEER_CPU)                                                                           \
	X(INTERRUPTED_ON_PEER)

enum culprit_role {
#define X(NAME) CULPRIT_##NAME,
	CULPRIT_ROLES(X)
#undef X
		CULPRIT_ROLE_COUNT
};

/* A culprit: a host task, a group of host tasks, or a guest task. */
struct report_culprit {
	bool host;
	int32_t pid;
	char comm[16];
	enum culprit_role role;
	int64_t share_ns; /* time of the incident that it caused */
	/* CULPRIT_HELD_PCPU: number of tasks with similar names; 0: all other tasks. */
	unsigned n_tasks;
	struct finding_task process; /* CULPRIT_HELD_PCPU: the process of which the task is a
					thread; pid 0: none */
	uint16_t cpu;                /* CULPRIT_KEPT_PEER_CPU, INTERRUPTED_ON_PEER: guest CPU */
	/* The VM whose VMM the task is a thread of; name "": no VMM, or an unknown one. */
	struct thread_vm vm;
	char cgroup[256];   /* of all these tasks; "": unknown or several */
	enum verdict cause; /* the incident's cause to which it contributed */
};

/* The tasks of one host cgroup that held the pCPU while the vCPU waited for it. */
struct report_group {
	char cgroup[256];
	unsigned n_tasks;
	int64_t share_ns;
};

struct report_evidence {
	struct host_ns t;
	int64_t duration_ns;
	struct finding seen;
	uint32_t waiter_stack, waker_stack; /* ids of stacks in report.stacks; 0: none */
};

/* A lost interrupt: KVM accepted it and its handler did not run. */
struct report_lost_interrupt {
	bool known;
	const char *source; /* "msi", "gsi", "ipi", "timer", "unknown" */
	uint8_t vector;
	int32_t irq; /* the guest's irq number; -1: unknown */
	struct host_ns begin;
	int64_t pending_ns; /* time of the incident in which it was pending */
	bool handled;       /* its handler ran later */
	int32_t raiser_pid; /* host thread that ran when it was accepted */
	char raiser_comm[16];
};

/* X(NAME, "name", what the detector examines) */
#define DETECTORS(X)                                                                               \
	X(SCHEDULER, "scheduler", "tasks that wait for the CPU")                                   \
	X(TICKS, "ticks", "the CPU's timer interrupt")                                             \
	X(WATCHDOG, "guest_watchdog", "soft lockup lines in the guest's log")

enum detector {
#define X(NAME, ...) DETECTOR_##NAME,
	DETECTORS(X)
#undef X
		DETECTOR_COUNT
};
/* Returns the name that the JSON uses. Static string. */
const char *detector_name(enum detector d);

/* The result of a detector. BLIND: it lacked the data to find the stall. */
enum detector_sight { SIGHT_BLIND, SIGHT_NO, SIGHT_YES };

struct report_detector {
	enum detector_sight sight;
	struct finding why;
};

struct incident {
	/* Number of the incident, from 1, in order of begin over the whole recording; live: 0. */
	uint32_t ordinal;
	uint32_t vm;
	uint16_t guest_cpu;
	uint32_t vcpu;
	bool pcpu_known;
	uint16_t pcpu;             /* where the vCPU was or waited in its longest denied time */
	bool device_known;         /* it waited for a block device of the host, with this number: */
	uint32_t device;           /* major << 20 | minor */
	bool healthy;              /* long, but nothing was denied; listed by --all only */
	enum guest_cpu_state kind; /* UNKNOWN: no data of the guest */
	int32_t task_pid;
	char task_comm[16];
	uint32_t number; /* of the interrupt or softirq */
	bool vector;
	struct host_ns begin, end;
	uint64_t err_ns;  /* bound on the error of the guest's stamps */
	bool ongoing;     /* had not ended when the report was made */
	bool dmesg_known; /* the next four members are valid */
	uint64_t begin_dmesg_ns, end_dmesg_ns, dmesg_err_ns;
	uint32_t boot;                   /* number of the guest kernel's boot; 0: the first */
	enum verdict verdict, runner_up; /* UNDETERMINED: none */
	enum confidence confidence;
	/* The causes that account for at least a tenth of the denied time, largest first. The first
	 * one is the verdict, if there is a verdict. */
	size_t n_causes;
	struct report_cause {
		enum verdict verdict;
		int64_t ns;
	} causes[REPORT_CAUSES_MAX];
	/* Number of waits of the vCPU thread, if the incident is a storm of short waits; else 0. */
	unsigned short_waits;
	/* The time that the guest's kernel charged to the waiting task during an earlier stall of
	 * this CPU, and the begin of that stall; 0: none. */
	int64_t aftershock_ns;
	struct host_ns aftershock_of;
	/* The reason for the verdict; what was denied to which task, and for how long. Each is one
	 * sentence, whose parts are in order. */
	struct finding because[REPORT_BECAUSE_MAX];
	struct finding denied[REPORT_DENIED_MAX];
	int64_t breakdown_ns[VCPU_STATE_COUNT]; /* time by state; sums exactly to end - begin */
	bool inconsistent;        /* the sum is wrong (a bug of vcpuscope); no verdict */
	struct report_quota {     /* the quota that caused the longest throttled wait */
		char cgroup[256]; /* its cgroup; "": none known */
		uint64_t quota_us, period_us; /* CPU time per period; 0: unknown */
	} quota;
	size_t n_culprits;
	struct report_culprit culprits[REPORT_CULPRITS_MAX];
	size_t n_groups; /* holders of the pCPU by cgroup, largest share first */
	struct report_group groups[REPORT_GROUPS_MAX];
	size_t n_evidence;
	struct report_evidence evidence[REPORT_EVIDENCE_MAX];
	uint32_t missing; /* bit per enum missing_data: data that was not available */
	struct report_detector detectors[DETECTOR_COUNT];
	struct report_lost_interrupt lost_interrupt;
};

/* X(NAME, "name", meaning): data that was not available for an incident */
#define MISSING_DATA(X)                                                                            \
	X(KVM_EVENTS, "kvm_events", "time in KVM and QEMU counts as guest")                        \
	X(GUEST_EVENTS, "guest_events", "no agent stream: which guest task, and was it denied")    \
	X(HOST_EVENTS, "host_events", "no host capture: what the vCPU thread did")                 \
	X(LOST_EVENTS, "lost_events", "events inside the window were lost")                        \
	X(CLOCK_MAP, "clock_map",                                                                  \
	  "the guest's times are not known well enough against the host's")                        \
	X(STACKS, "stacks", "where the thread slept")                                              \
	X(HANDLERS, "handlers",                                                                    \
	  "short handlers were only counted (level summary): interrupts may have taken the time")  \
	X(NOTES, "notes",                                                                          \
	  "frames of the host were lost: what QEMU, its kernel's log or a quota said may be "      \
	  "missing")                                                                               \
	X(CLOCK_PROOF, "clock_proof",                                                              \
	  "the guest is protected from the host, which cannot check the guest's clock")

enum missing_data {
#define X(NAME, ...) MISSING_##NAME,
	MISSING_DATA(X)
#undef X
		MISSING_COUNT
};
/* Return the name that the JSON uses; the meaning as text. Static strings. */
const char *missing_data_name(enum missing_data m);
const char *missing_data_meaning(enum missing_data m);

/* How a guest's times were converted to the host's (docs/clocks.md). */
struct report_clock {
	uint32_t vm;
	const char *vm_name; /* owned by the report */
	char method[16];     /* "pvclock", "tsc", "echo", "stated", "none", "untrusted" */
	uint64_t error_ns;   /* bound on the error of the guest's times */
	/* Number of events that may lie on either side of a pause of the VM, and the largest bound
	 * on their error. error_ns does not include them. */
	uint64_t beside_pauses, beside_pauses_error_ns;
	uint64_t causality_pairs, causality_violations;
	uint32_t epochs;
	uint64_t disagreements;   /* round trips that contradict the hypervisor's parameters */
	int64_t contradiction_ns; /* size of the newest contradiction; 0: unknown */
	/* The guest's times are unproven, so guest side and host side are not joined. */
	bool untrusted;
	/* enum vm_protection. If the guest is protected, round trips convert its times, and
	 * verdicts that join both sides are at most likely. */
	uint32_t protection;
};

/* Events lost between two instants, by the place of the loss. */
struct report_loss_span {
	struct host_ns begin, end;
	uint64_t dropped_kernel, dropped_user, lost_channel;
};
enum { REPORT_LOSS_SPANS_MAX = 64 };

/* The loss of one source (docs/loss.md). */
struct report_loss {
	uint32_t source;  /* number of the VM; 0: the host's capture */
	const char *name; /* owned by the report */
	/* emitted = delivered + dropped_kernel + dropped_user + lost_channel */
	uint64_t emitted, delivered, dropped_kernel, dropped_user, lost_channel;
	uint64_t overdelivered; /* events delivered beyond those that the sender emitted */
	uint64_t missed;        /* not emitted by the kernel's capture; in no other total */
	uint64_t unplaced;      /* of `delivered`: events whose time is unknown */
	/* Events and frames of types that only newer versions know; dropped, not lost. */
	uint64_t unknown_events, unknown_frames;
	/* Handlers that the guest aggregated, by enum event_class. Not lost. */
	struct message_aggregated aggregated[EVENT_CLASSES];
	uint64_t lost_frames, malformed_frames, damaged_bytes, late;
	size_t n_spans;
	/* In order of begin; they sum to the losses. */
	struct report_loss_span spans[REPORT_LOSS_SPANS_MAX];
	/* The settings in force in the guest after a request of the host, as the agent describes
	 * them; "": no request. */
	char config[1024];
};

/* Whether the guest's watchdog blames the same task as the verdict. */
enum watchdog_opinion {
	WATCHDOG_UNPROVEN, /* the incident has no verdict */
	WATCHDOG_RIGHT,
	WATCHDOG_WRONG, /* the task that it names is no culprit */
};

/* A soft lockup line of a guest's log (watchdog.h). */
struct report_watchdog {
	uint32_t vm;
	uint16_t cpu;
	uint32_t stuck_s; /* the duration in the line */
	int32_t pid;      /* the task that it blames, and its name */
	char comm[16];
	uint32_t boot;
	uint64_t dmesg_us; /* dmesg time of the line */
	int incident;      /* index of the incident that it reports; -1: none */
	enum watchdog_opinion opinion;
};

/* X(NAME, "name"): whether a vCPU had stalls. */
#define ANSWERS(X)                                                                                 \
	X(NO_STALL, "no_stall")                                                                    \
	X(NO_STALL_BY_HOST, "no_stall_by_host") /* from the host side only */                      \
	X(STALLS, "stalls")                                                                        \
	X(CANNOT_TELL, "cannot_tell") /* none found, too little observed */

enum report_answer {
#define X(NAME, ...) ANSWER_##NAME,
	ANSWERS(X)
#undef X
		ANSWER_COUNT
};
/* Returns the name that the JSON uses. Static string. */
const char *answer_name(enum report_answer a);

enum { REPORT_GAPS_MAX = 64 };

/* A time of at least the threshold in which a vCPU was not observed on one side. It may hide a
 * stall. */
struct report_gap {
	uint32_t vm, vcpu;
	bool host; /* the side: host or guest */
	struct host_ns begin, end;
	enum unknown_reason why;
};

/* How much of a vCPU's time was observed on the host side and on the guest side. */
struct report_coverage {
	int64_t span_ns;           /* its time since its capture began */
	int64_t observed_ns;       /* of that, its state on the host was known */
	bool guest;                /* its guest was recorded */
	int64_t guest_observed_ns; /* of span_ns, the state of its guest CPU was known */
	/* Time that was not observed on the host side and on the guest side, by reason. */
	int64_t unknown_ns[UNKNOWN_REASON_COUNT], guest_unknown_ns[UNKNOWN_REASON_COUNT];
	bool enough; /* enough was observed on both sides for the answer "no stall" */
	enum report_answer answer;
};

/* How a vCPU spent its time. A vCPU that was unplugged and plugged again has two of these. */
struct report_vcpu {
	uint32_t vm, vcpu;
	struct host_ns begin, end;           /* its first and last instant */
	int64_t states_ns[VCPU_STATE_COUNT]; /* sums exactly to end - begin */
	struct report_coverage coverage;
};

/* A step of the host's CLOCK_REALTIME. */
struct report_wall_step {
	struct host_ns t; /* error: at most half the time between two samples of the clocks */
	int64_t by_ns;    /* positive: the clock was set forward */
};

/* A reboot of a guest. */
struct report_reboot {
	uint32_t vm;
	struct host_ns after; /* the last sign of the previous boot */
	struct host_ns until; /* the first message of the new boot's agent */
	bool reset_known;
	struct host_ns reset;      /* the time of the reset, as QEMU reported it */
	char why[REPORT_TEXT_MAX]; /* the reason that QEMU or the guest's log gives; "": none */
};

struct report {
	bool simulated;
	bool imported; /* from another tracer's recording */
	bool cut;      /* the recording is incomplete at its end */
	struct host_ns begin, end;
	/* The window: only incidents that reach into it are listed, with all their time; vcpus and
	 * coverage are cut to it. */
	bool windowed;
	struct host_ns from, until; /* if windowed */
	char only[192];             /* the rows that are selected, as text; "": all */
	size_t n_unlisted;          /* stalls of the window that `only` leaves out */
	bool wall_known;
	int64_t wall_offset_ns; /* CLOCK_REALTIME minus the timeline's clock, at `begin` */
	size_t n_wall_steps;
	struct report_wall_step *wall_steps; /* in order of t */
	size_t n_reboots;
	struct report_reboot *reboots; /* by VM, in order of time */
	int64_t threshold_ns;
	size_t n_clocks;
	struct report_clock *clocks; /* one per VM */
	size_t n_losses;
	struct report_loss *losses;
	size_t n_incidents;
	struct incident *incidents; /* in order of begin */
	uint64_t dropped_incidents; /* number of those beyond REPORT_INCIDENTS_MAX */
	size_t n_watchdogs;
	struct report_watchdog *watchdogs;
	size_t n_vcpus;
	struct report_vcpu *vcpus;
	unsigned needed_percent; /* share of a vCPU's time that must be observed (coverage.h) */
	size_t n_gaps;
	struct report_gap *gaps; /* the longest REPORT_GAPS_MAX, in order of begin */
	uint64_t dropped_gaps;   /* number of shorter ones */
	size_t n_stacks;
	struct stack **stacks; /* the stacks that evidence refers to */
};

/* Frees the report and all that it owns. `r` may be NULL. */
void report_free(struct report *r);
/* Selects the `max` longest incidents, healthy ones last. Fills `indices` with their indices in
 * ascending order and returns their number. */
size_t report_longest(const struct report *r, size_t max, size_t *indices);

/* Leaves only the incidents and vCPUs that `n` selects by VM, vCPU or task. A task selects the
 * incidents in which it is the stalled task or a culprit. Values stay as they are. */
void report_narrow(struct report *r, const struct narrow *n, const struct model *m);
/* Returns the stack with this id; NULL if the report does not have it. */
const struct stack *report_stack_find(const struct report *r, uint32_t id);
/* Returns the value of the host's CLOCK_REALTIME at `t`, in ns. Valid only if r->wall_known. */
int64_t report_wall_ns(const struct report *r, struct host_ns t);
/* Returns the name of a VM; "" if unknown. */
const char *report_vm_name(const struct report *r, uint32_t vm);

#endif
