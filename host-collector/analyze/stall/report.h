/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the analyses found, as data: the views draw it, the JSON schema (docs/report-json.md,
 * vcpuscope.report/1) mirrors it field by field. All strings are as the guest or host chose them;
 * views escape.
 */
#ifndef STALL_REPORT_H
#define STALL_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"
#include "host-collector/model/model.h"

/* X(NAME, "name"): the whole set of the design; a rule exists where analyze/stall/verdict.c has a row. */
#define VERDICTS(X)                                                                                \
	X(UNDETERMINED, "undetermined")                                                            \
	X(VCPU_NOT_SCHEDULED, "vcpu_not_scheduled")                                                \
	X(LOCK_HOLDER_PREEMPTED, "lock_holder_preempted")                                          \
	X(IPI_TARGET_PREEMPTED, "ipi_target_preempted")                                            \
	X(CGROUP_THROTTLED, "cgroup_throttled")                                                    \
	X(VMM_LOCK, "vmm_lock")                                                                    \
	X(STORAGE_BACKEND, "storage_backend")                                                      \
	X(MMU_CONTENTION, "mmu_contention")                                                        \
	X(DEMAND_PAGING, "demand_paging")                                                          \
	X(MIGRATION, "migration")                                                                  \
	X(VM_PAUSED, "vm_paused")                                                                  \
	X(CLOCK_JUMP, "clock_jump")                                                                \
	X(SPLIT_LOCK, "split_lock")                                                                \
	X(INTERRUPT_LOST, "interrupt_lost")                                                        \
	X(TIMER_LATE, "timer_late")                                                                \
	X(DEVICE_NO_COMPLETION, "device_no_completion")                                            \
	X(HOST_MEMORY, "host_memory")                                                              \
	X(HOST_LOCKUP, "host_lockup")                                                              \
	X(NESTED_UNOBSERVABLE, "nested_unobservable")                                              \
	X(GUEST_IRQ_STORM, "guest_irq_storm")                                                      \
	X(GUEST_SPIN, "guest_spin")

enum verdict {
#define X(NAME, ...) VERDICT_##NAME,
	VERDICTS(X)
#undef X
		VERDICT_COUNT
};

enum confidence { CONFIDENCE_UNDETERMINED, CONFIDENCE_LIKELY, CONFIDENCE_DECIDED };

/* As in the JSON and in docs/verdicts.md; static. */
const char *verdict_name(enum verdict v);
const char *confidence_name(enum confidence c);

enum {
	REPORT_TEXT_MAX = 256,
	REPORT_CULPRITS_MAX = 8,
	REPORT_EVIDENCE_MAX = 16,
	REPORT_CAUSES_MAX = 6,
	REPORT_GROUPS_MAX = 4
};

/* Who is to blame, on which side: a host task, a guest task, an interrupt. */
struct report_culprit {
	bool host;
	int32_t pid;
	char comm[16];
	char role[32]; /* "held the pCPU", "sent SIGSTOP", "spun", ... */
	int64_t share_ns;
	char what[192];   /* "VM web2, vCPU 0", "7 tasks of such names", "all other tasks"; or "" */
	unsigned n_tasks; /* of such names, with this one; 0: all others */
	/* It is a thread of a VMM. */
	char vm[128]; /* "": it is none, or of one that nobody knows */
	bool vcpu_known;
	uint32_t vcpu;
	bool claimed; /* the VM's name is what a process of user `uid` says of itself */
	uint32_t uid;
	char cgroup[256]; /* of all these tasks; "": not known, or not one */
	enum verdict cause; /* of which of the incident's causes */
};

/* What the tasks of one cgroup of the host had of a pCPU that a vCPU wanted. */
struct report_group {
	char cgroup[256];
	unsigned n_tasks;
	int64_t share_ns;
};

struct report_evidence {
	struct host_ns t;
	int64_t duration_ns;
	char text[REPORT_TEXT_MAX];
	uint32_t waiter_stack, waker_stack; /* ids into report.stacks, 0 none */
};

/* An interrupt that KVM accepted and whose handler did not run meanwhile. */
struct report_lost_interrupt {
	bool known;
	const char *source; /* "msi", "gsi", "ipi", "timer", "unknown" */
	uint8_t vector;
	int32_t irq; /* the guest's number, -1: not known */
	struct host_ns begin;
	int64_t pending_ns; /* of the incident */
	bool handled;       /* since */
	int32_t raiser_pid; /* host thread */
	char raiser_comm[16];
};

/* X(NAME, "name", "what it looks at") */
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
/* As in the JSON; static. */
const char *detector_name(enum detector d);

enum detector_sight { SIGHT_BLIND, SIGHT_NO, SIGHT_YES };

struct report_detector {
	enum detector_sight sight; /* blind: it could not have seen anything */
	char why[128];
};

struct incident {
	uint32_t vm;
	uint16_t guest_cpu;
	uint32_t vcpu;
	bool healthy;              /* listed by --all only: long, but nothing was denied */
	enum guest_cpu_state kind; /* UNKNOWN: the guest's own account is missing */
	int32_t task_pid;
	char task_comm[16];
	uint32_t number; /* of the interrupt or softirq */
	bool vector;
	struct host_ns begin, end;
	uint64_t err_ns; /* clock error of the edges that the guest stamped */
	bool ongoing;
	bool dmesg_known;
	uint64_t begin_dmesg_ns, end_dmesg_ns, dmesg_err_ns;
	uint32_t boot;                   /* of the guest's kernel, if dmesg_known; 0 the first */
	enum verdict verdict, runner_up; /* runner_up UNDETERMINED: none */
	enum confidence confidence;
	/* What accounts for at least a tenth of what was denied, the largest first; the verdict, if
	 * any, is the first. */
	size_t n_causes;
	struct report_cause {
		enum verdict verdict;
		int64_t ns;
	} causes[REPORT_CAUSES_MAX];
	/* Of a task that waits here the guest's kernel had charged so much to it in the stall of
	 * this CPU that began then; 0: none. */
	/* It is so many waits, each shorter than the threshold, of the vCPU thread; 0: it is not. */
	unsigned short_waits;
	int64_t aftershock_ns;
	struct host_ns aftershock_of;
	char because[REPORT_TEXT_MAX];          /* the verdict in one plain sentence */
	char denied[REPORT_TEXT_MAX];           /* what was denied to whom, for how long */
	int64_t breakdown_ns[VCPU_STATE_COUNT]; /* sums to end - begin exactly... */
	bool inconsistent;        /* ...or not: a bug of vcpuscope, so there is no verdict */
	struct report_quota {     /* that took the most: of the cgroup */
		char cgroup[256]; /* "": none is known */
		uint64_t quota_us, period_us; /* CPU time in every period; 0: not known */
	} quota;
	size_t n_culprits;
	struct report_culprit culprits[REPORT_CULPRITS_MAX];
	size_t n_groups; /* of those who held the pCPU, the largest share first */
	struct report_group groups[REPORT_GROUPS_MAX];
	size_t n_evidence;
	struct report_evidence evidence[REPORT_EVIDENCE_MAX];
	uint32_t missing; /* bit per enum missing_data */
	struct report_detector detectors[DETECTOR_COUNT];
	struct report_lost_interrupt lost_interrupt;
};

/* X(NAME, "name", "what would be known with it, and how to get it") */
#define MISSING_DATA(X)                                                                            \
	X(KVM_EVENTS, "kvm_events", "time in KVM and QEMU counts as guest")                        \
	X(GUEST_EVENTS, "guest_events", "no agent stream: which guest task, and was it denied")    \
	X(HOST_EVENTS, "host_events", "no host capture: what the vCPU thread did")                 \
	X(LOST_EVENTS, "lost_events", "events inside the window were lost")                        \
	X(CLOCK_MAP, "clock_map",                                                                  \
	  "the guest's times are not known well enough against the host's")                        \
	X(STACKS, "stacks", "where the thread slept")                                              \
	X(HANDLERS, "handlers",                                                                    \
	  "short handlers were only counted (level summary): interrupts may have taken the time")

enum missing_data {
#define X(NAME, ...) MISSING_##NAME,
	MISSING_DATA(X)
#undef X
		MISSING_COUNT
};
/* As in the JSON; in words for people. Static. */
const char *missing_data_name(enum missing_data m);
const char *missing_data_meaning(enum missing_data m);

struct report_clock {
	uint32_t vm;
	const char *vm_name;
	char method[16]; /* "pvclock", "tsc", "echo", "stated", "none", "untrusted" */
	uint64_t error_ns;
	/* Events that may lie on either side of a pause of the VM: how many, and their largest
	 * error. error_ns leaves them out. */
	uint64_t beside_pauses, beside_pauses_error_ns;
	uint64_t causality_pairs, causality_violations;
	uint32_t epochs;
	uint64_t disagreements;   /* round trips that contradict the hypervisor's parameters... */
	int64_t contradiction_ns; /* by how much at last; 0: not known */
	/* Nothing is proven of this guest's times: its side and the host's are not joined. */
	bool untrusted;
};

/* Events lost somewhere between two instants, and by whom. */
struct report_loss_span {
	struct host_ns begin, end;
	uint64_t dropped_kernel, dropped_user, lost_channel;
};
enum { REPORT_LOSS_SPANS_MAX = 64 };

struct report_loss {
	uint32_t source; /* 0: the host's capture */
	const char *name;
	/* emitted = delivered + dropped_kernel + dropped_user + lost_channel */
	uint64_t emitted, delivered, dropped_kernel, dropped_user, lost_channel;
	uint64_t overdelivered; /* more than that came: the sender contradicts itself */
	uint64_t missed;        /* by the kernel, without a number: in no other total */
	uint64_t unplaced;      /* of those delivered: when they were is not known */
	/* Of a newer peer's types and kinds that this version does not know; dropped, not lost. */
	uint64_t unknown_events, unknown_frames;
	/* By enum event_class: handlers that became no events by design. Not lost. */
	struct message_untold untold[EVENT_CLASSES];
	uint64_t lost_frames, nonsense_frames, damaged_bytes, late;
	size_t n_spans;
	struct report_loss_span spans[REPORT_LOSS_SPANS_MAX]; /* by begin; they sum to the losses */
	/* What a guest was asked for and has in force, in its words; "": it was not asked. */
	char config[256];
};

/* Does the guest's watchdog blame whom the verdict blames? */
enum watchdog_opinion {
	WATCHDOG_UNPROVEN, /* nothing is decided */
	WATCHDOG_RIGHT,
	WATCHDOG_WRONG, /* the task that it names is innocent */
};

/* One soft lockup line of a guest's log; see watchdog.h. */
struct report_watchdog {
	uint32_t vm;
	uint16_t cpu;
	uint32_t stuck_s; /* as the guest says */
	int32_t pid;      /* whom it blames */
	char comm[16];
	uint32_t boot;
	uint64_t dmesg_us; /* of the line */
	int incident;      /* index of the incident that it is about, -1 none */
	enum watchdog_opinion opinion;
};

/* X(NAME, "name") What a report says of a vCPU. */
#define ANSWERS(X)                                                                                 \
	X(NO_STALL, "no_stall")                                                                    \
	X(NO_STALL_BY_HOST, "no_stall_by_host") /* its guest was not recorded */                   \
	X(STALLS, "stalls")                                                                        \
	X(CANNOT_TELL, "cannot_tell") /* none was found, and too little was observed */

enum report_answer {
#define X(NAME, ...) ANSWER_##NAME,
	ANSWERS(X)
#undef X
		ANSWER_COUNT
};
/* As in the JSON; static. */
const char *answer_name(enum report_answer a);

enum { REPORT_GAPS_MAX = 64 };

/* A stretch of at least the threshold in which a vCPU was not observed, by the host or by its own
 * kernel: it may hide a stall. */
struct report_gap {
	uint32_t vm, vcpu;
	bool host; /* side */
	struct host_ns begin, end;
	enum unknown_reason why;
};

/* How much of a vCPU's time was observed, by the host and by its own kernel. */
struct report_coverage {
	int64_t span_ns;           /* of its time since its capture began... */
	int64_t observed_ns;       /* its state on the host was known for so long */
	bool guest;                /* its guest was recorded... */
	int64_t guest_observed_ns; /* and for so long it was known what it did */
	int64_t unknown_ns[UNKNOWN_REASON_COUNT], guest_unknown_ns[UNKNOWN_REASON_COUNT];
	bool enough; /* was observed of both sides to say that there was no stall */
	enum report_answer answer;
};

/* How one vCPU spent the recording; one that is unplugged and plugged again has two of these. */
struct report_vcpu {
	uint32_t vm, vcpu;
	struct host_ns begin, end;           /* its first and last instant */
	int64_t states_ns[VCPU_STATE_COUNT]; /* sums to end - begin exactly */
	struct report_coverage coverage;
};

/* The host's CLOCK_REALTIME was set: from then on it is ahead by so much more. */
struct report_wall_step {
	struct host_ns t; /* to within half of the time between two samples of the host's clocks */
	int64_t by_ns;
};

/* A guest's kernel booted again. */
struct report_reboot {
	uint32_t vm;
	struct host_ns after; /* the last word of the kernel before */
	struct host_ns until; /* the first of this one's agent */
	bool reset_known;
	struct host_ns reset;      /* by QEMU's word */
	char why[REPORT_TEXT_MAX]; /* what QEMU and the guest's log say of it; "": nothing */
};

struct report {
	bool simulated;
	bool imported; /* from another tracer's recording */
	bool cut;      /* the recording ends in the middle */
	struct host_ns begin, end;
	bool wall_known;
	int64_t wall_offset_ns; /* CLOCK_REALTIME minus the timeline's clock, at the beginning */
	size_t n_wall_steps;
	struct report_wall_step *wall_steps; /* in order of t */
	size_t n_reboots;
	struct report_reboot *reboots; /* by VM, in order */
	int64_t threshold_ns;
	size_t n_clocks;
	struct report_clock *clocks; /* one per VM */
	size_t n_losses;
	struct report_loss *losses;
	size_t n_incidents;
	struct incident *incidents; /* in order of begin */
	uint64_t dropped_incidents; /* beyond what a report holds */
	size_t n_watchdogs;
	struct report_watchdog *watchdogs;
	size_t n_vcpus;
	struct report_vcpu *vcpus;
	unsigned needed_percent; /* so much of a vCPU's time must be observed: coverage.h */
	size_t n_gaps;
	struct report_gap *gaps; /* the longest REPORT_GAPS_MAX, by begin */
	uint64_t dropped_gaps;   /* shorter ones */
	size_t n_stacks;
	struct stack **stacks; /* those that evidence names */
};

/* With its incidents, their texts and stacks. NULL is allowed. */
void report_free(struct report *r);
/* Fills `indices` with those of the `max` longest incidents, healthy ones last, in order of begin.
 * Returns how many. */
size_t report_longest(const struct report *r, size_t max, size_t *indices);

/* NULL if the report does not hold it. */
const struct stack *report_stack_find(const struct report *r, uint32_t id);
/* CLOCK_REALTIME at `t`, as the host's clock showed it then. Meaningless unless wall_known. */
int64_t report_wall_ns(const struct report *r, struct host_ns t);
/* Its VM's name, "" if unknown. */
const char *report_vm_name(const struct report *r, uint32_t vm);

#endif
