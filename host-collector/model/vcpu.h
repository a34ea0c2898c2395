/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Computes the state of one vCPU thread from the events about it: exactly one state at each time.
 * The reason of a wait is known only when it is over, or later when its stack arrives. So a span is
 * built when it ends and waits in a queue until nothing can change it any more. Spans leave the
 * queue in order.
 *
 * Loss: while events of a pCPU are missing, the state of every thread that they could have changed
 * is uncertain. After the gap, the next event about the thread proves its state since the end of
 * the gap: a thread that is switched out was running, one that is switched in was waiting for the
 * CPU.
 */
#ifndef MODEL_VCPU_H
#define MODEL_VCPU_H

#include "host-collector/model/guest_cpu.h"
#include "host-collector/model/model.h"

/* An interval in which one task was on a pCPU without interruption. */
struct tenure {
	int32_t pid;
	struct host_ns from, until;
};

enum { VCPU_TENURES = 4, VCPU_HOLDERS = 64, VCPU_DOUBTS = 8, VCPU_HELD_MAX = 8192 };

enum thread_state {
	THREAD_UNSEEN, /* no event yet, or the thread has ended */
	THREAD_UNSURE, /* events were lost */
	THREAD_RUNNING,
	THREAD_READY,
	THREAD_SLEEPING,
	THREAD_STOPPED,
};

struct vcpu_signal { /* the latest stopping signal to a VM, if no SIGCONT followed */
	int32_t sender;
	uint32_t number;
	struct host_ns t;
};

struct vcpu_held {
	struct vcpu_span span;
	uint32_t episode; /* 0: not a wait */
	bool guessed;     /* a sleep whose state only its stack can prove */
	bool settled;     /* nothing can change it any more */
	/* On a CPU without events of KVM: counts as time in the guest unless such an event arrives
	 * soon. */
	bool assumed;
};

struct vcpu;

/* The callbacks of the state machine. */
struct vcpu_sink {
	void (*span)(void *context, const struct vcpu_span *span);
	/* Returns whether the guest's kernel was idle or busy at `t`. */
	enum guest_account (*account)(void *context, const struct vcpu *v, struct host_ns t);
	/* Returns true if the VMM had paused the VM at `t`; then sets the span's migrates and
	 * asker_pid. */
	bool (*paused)(void *context, const struct vcpu *v, struct host_ns t,
		       struct vcpu_span *span);
	enum wait_class (*wait_class)(void *context, const struct vcpu *v, uint32_t stack);
	/* Several tasks held the pCPU: sets the span's crowd members. */
	void (*crowd)(void *context, const struct vcpu_holder *holders, unsigned n,
		      struct vcpu_span *span);
	void *context;
};

struct vcpu {
	uint32_t vm, vcpu;
	int32_t tid;
	bool kvm_seen; /* the VM has events of KVM */
	bool kvm_own;  /* this thread has events of KVM */
	enum thread_state state;
	enum vcpu_mode { MODE_UNSEEN, MODE_GUEST, MODE_KVM, MODE_VMM } mode;
	enum unknown_reason why, mode_why; /* reasons if the state or the mode is unknown */
	enum unknown_reason gap_why;       /* reason of the newest gap */
	bool is_followed;                  /* the capture follows the thread, since `followed` */
	struct host_ns followed;
	bool is_seen; /* an event of the thread has arrived; `first` is its time */
	struct host_ns first;
	uint64_t mode_lost;  /* events lost since the mode was certain */
	bool hlt;            /* the last KVM exit was HLT */
	uint32_t hlt_sleeps; /* number of sleeps since that exit */
	struct vcpu_exit exit;
	uint64_t n_exits;
	bool was_ready; /* UNSURE: before the gap it waited for a CPU */
	bool sure;      /* UNSURE: the gap ended at sure_since */
	struct host_ns sure_since;
	/* A few events were lost. The thread's next event may show that none of them concerned it.
	 * doubt_over: the gap has ended, at doubt_until. */
	bool doubted, doubt_over;
	struct host_ns doubt_from, doubt_until;
	uint64_t doubt_lost; /* number of lost events on all pCPUs */
	unsigned n_doubts;
	/* The losses of each pCPU. n_doubts > VCPU_DOUBTS: on too many pCPUs to keep. */
	struct vcpu_doubt {
		uint16_t pcpu;
		uint64_t lost;
		struct host_ns from;
		bool own; /* the thread was on this pCPU or waited there */
	} doubts[VCPU_DOUBTS];
	/* READY: it may have run in one of several gaps that are over. The first began at
	 * hole_from. */
	bool holed;
	struct host_ns hole_from;
	bool presumed; /* UNSURE: presumably it has waited for a CPU since presumed_from */
	struct host_ns presumed_from;
	struct vcpu_span open; /* its state is the currently known one */
	bool open_hlt;         /* the wait began in a HLT exit */
	/* An episode is the time off the CPU, from switch-out to switch-in. */
	uint32_t episode;
	struct host_ns episode_begin;
	uint64_t off_lost; /* events lost since its begin */
	bool episode_seen; /* its begin was seen */
	/* Stacks of the current episode that arrived before its end. */
	uint32_t waiter_stack, waker_stack;
	bool waiter_sampled; /* waiter_stack is a sample of many short waits */
	/* Short waits of this VM are sampled. short_class is the class of the newest sample of the
	 * sleeps that a signal could end [0], and of the others [1]. */
	bool shorts_sampled;
	enum wait_class short_class[2];
	/* The capture's measurement proves that the episode lasted until then without interruption.
	 */
	struct host_ns unbroken;
	/* The stack of the waker shows that `waking_pid` woke the thread at `waking`. */
	bool waking_known;
	int32_t waking_pid;
	struct host_ns waking;
	/* The tasks that ran on the pCPU while this thread waited for it, since segment_begin. */
	struct vcpu_queue {
		struct host_ns segment_begin;
		int64_t busy_ns; /* sum of all tasks */
		unsigned n_holders;
		struct vcpu_holder holders[VCPU_HOLDERS];
	} queue;
	/* The length from which sleeps in this VM got their stack; 0: none did. */
	int64_t stack_due_ns;
	/* End of the newest reading of its quota; 0: it has no quota. */
	struct host_ns quota_until;
	int64_t throttled_ns; /* throttled time of the open wait that is known */
	/* The cgroup whose quota caused most of it. */
	uint32_t throttled_by;
	struct vcpu *next_waiter, **waiter_link; /* links in the list of a pCPU's waiters */
	struct vcpu_held *held;                  /* ring of the spans that wait */
	uint32_t held_first, held_count, held_capacity;
};

/* Initializes a vCPU whose state is unknown from `t` on. */
void vcpu_init(struct vcpu *v, uint32_t vm, uint32_t vcpu, int32_t tid, struct host_ns t);
void vcpu_fini(struct vcpu *v);

/* The thread is switched in. `tenures` are the last VCPU_TENURES tasks of this pCPU, newest last.
 */
void vcpu_switch_in(struct vcpu *v, struct host_ns t, uint16_t pcpu, const struct tenure *tenures,
		    const struct vcpu_sink *sink);
/* The thread is switched out. `state` is enum vs_task_state bits, 0: preempted. `signal` may be
 * NULL. */
void vcpu_switch_out(struct vcpu *v, struct host_ns t, uint16_t pcpu, uint32_t state,
		     const struct vcpu_signal *signal, const struct vcpu_sink *sink);
void vcpu_woken(struct vcpu *v, struct host_ns t, uint16_t pcpu, int32_t waker,
		const struct vcpu_sink *sink);
void vcpu_migrated(struct vcpu *v, uint16_t pcpu);
void vcpu_exited(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink);
/* The thread changes its mode. `exit` is the reason and isa, with MODE_KVM. */
void vcpu_kvm(struct vcpu *v, struct host_ns t, uint16_t pcpu, enum vcpu_mode mode,
	      const struct vcpu_exit *exit, const struct vcpu_sink *sink);
/* Returns true if the thread waits for its pCPU: it is ready, or a waker's stack shows that it
 * was woken although the event of its wake-up is missing. */
bool vcpu_waits(const struct vcpu *v);
/* Accounts that `pid` held the pCPU until `t`, since the previous call or since the wait began. */
void vcpu_held_by(struct vcpu *v, struct host_ns t, int32_t pid);
/* Processes a STACK event. `pid` is the task whose stack it is, wait_ns the length of the wait. */
void vcpu_stack(struct vcpu *v, struct host_ns t, int32_t pid, uint32_t stack,
		enum vs_stack_role role, int64_t wait_ns, const struct vcpu_sink *sink);
enum { QUOTA_BUSY_MAX = 64 };
/* The waits for a pCPU that one reading of a quota may explain, of all vCPUs that share the quota.
 * Must be all zero at first. */
struct quota_waits {
	/* Waits that ended. idle_ns: time in which their pCPUs idled. busy_ns: for each of the
	 * longest waits, the time in which other tasks ran on its pCPU, longest first. */
	int64_t idle_ns, busy_ns[QUOTA_BUSY_MAX];
	size_t n_busy;
	/* Waits that continue: time in which their pCPUs idled, and number of waits during which
	 * other tasks ran. */
	int64_t open_idle_ns;
	unsigned n_open;
	/* Set by vcpu_quota_choose(): the waits that ended with a busy_ns of least_ns to most_ns
	 * are throttling; open_ns is left for the waits that continue, open_share_ns for the busy
	 * time of one of them. */
	int64_t least_ns, most_ns, open_ns, open_share_ns;
};

/* Adds the waits of this vCPU to *all. */
void vcpu_quota_waits(const struct vcpu *v, const struct quota_reading *reading,
		      const struct vcpu_sink *sink, struct quota_waits *all);
/* Chooses the waits that an increase of the counter by throttled_ns explains. `all` has the waits
 * of `known` vCPUs out of the `n` that share the quota. */
void vcpu_quota_choose(struct quota_waits *all, int64_t throttled_ns, uint32_t known, uint32_t n);
/* Charges a reading of its quota to its waits. `all` are the waits of all vCPUs that share it. */
void vcpu_quota(struct vcpu *v, const struct quota_reading *reading, const struct quota_waits *all,
		const struct vcpu_sink *sink);
/* Notes that `lost` events of `pcpu` since `from` are missing and may concern this thread. */
void vcpu_unsure(struct vcpu *v, struct host_ns from, uint16_t pcpu, uint64_t lost,
		 const struct vcpu_sink *sink);
/* Notes that another task is on `pcpu` at `t`: the events lost there before and after `t` cannot
 * belong to the same run of the thread. */
void vcpu_turn_over(struct vcpu *v, struct host_ns t, uint16_t pcpu, const struct vcpu_sink *sink);
/* Notes that no events are missing from `t` on. */
void vcpu_sure(struct vcpu *v, struct host_ns t);
/* Releases the held spans that nothing can change any more, or all of them if `all`. */
void vcpu_release(struct vcpu *v, struct host_ns now, bool all, const struct vcpu_sink *sink);
/* Closes the open span. Call vcpu_release() after it. */
void vcpu_finish(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink);
/* Returns a time such that all spans that ended before it have been delivered. */
struct host_ns vcpu_delivered(const struct vcpu *v);
/* Returns the open span as known now, ending at `t`. */
struct vcpu_span vcpu_current(const struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink);

#endif
