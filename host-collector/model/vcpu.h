/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One vCPU thread: events about it in, exclusive states out. What a wait was is known when it is
 * over, and sometimes later still (its stack), so a span is built when it ends, queued, and leaves
 * the queue in order once nothing can change it any more.
 *
 * Loss: while events of some pCPU are missing, every thread that they could have moved is unsure.
 * After the gap the next event about it proves what it had been since the gap's end: a thread
 * switched out was running, one switched in was waiting for the CPU.
 */
#ifndef MODEL_VCPU_H
#define MODEL_VCPU_H

#include "host-collector/model/guest_cpu.h"
#include "host-collector/model/model.h"

/* A task was on a pCPU all along. */
struct tenure {
	int32_t pid;
	struct host_ns from, until;
};

enum { VCPU_TENURES = 4, VCPU_HOLDERS = 64, VCPU_DOUBTS = 8, VCPU_HELD_MAX = 8192 };

enum thread_state {
	THREAD_UNSEEN, /* no event yet, or it ended */
	THREAD_UNSURE, /* events lost */
	THREAD_RUNNING,
	THREAD_READY,
	THREAD_SLEEPING,
	THREAD_STOPPED,
};

struct vcpu_signal { /* the latest stopping signal of a VM that no SIGCONT revoked */
	int32_t sender;
	uint32_t number;
	struct host_ns t;
};

struct vcpu_held {
	struct vcpu_span span;
	uint32_t episode; /* 0: none, it was no wait */
	bool guessed;     /* a sleep whose state only its stack can prove */
	bool settled;     /* nothing more can change it */
	bool assumed;     /* on a CPU, in the guest unless an event of KVM comes soon */
};

struct vcpu;

/* What the machine asks and tells. */
struct vcpu_sink {
	void (*span)(void *context, const struct vcpu_span *span);
	/* Idle or busy by the guest's account at that time. */
	enum guest_account (*account)(void *context, const struct vcpu *v, struct host_ns t);
	/* Was the VM paused by its VMM at that time? Fills the span's migrates and asker_pid then.
	 */
	bool (*paused)(void *context, const struct vcpu *v, struct host_ns t,
		       struct vcpu_span *span);
	enum wait_class (*wait_class)(void *context, const struct vcpu *v, uint32_t stack);
	/* Several tasks held the pCPU in turn: fills the span's crowd. */
	void (*crowd)(void *context, const struct vcpu_holder *holders, unsigned n,
		      struct vcpu_span *span);
	void *context;
};

struct vcpu {
	uint32_t vm, vcpu;
	int32_t tid;
	bool kvm_seen; /* the VM has KVM events */
	bool kvm_own;  /* this thread has */
	enum thread_state state;
	enum vcpu_mode { MODE_UNSEEN, MODE_GUEST, MODE_KVM, MODE_VMM } mode;
	enum unknown_reason why, mode_why; /* why the state or the mode is unknown, if it is */
	enum unknown_reason gap_why;       /* why events are missing in the newest gap */
	bool is_followed;                  /* by the capture, since... */
	struct host_ns followed;
	bool is_seen; /* an event of the thread has come, the first... */
	struct host_ns first;
	uint64_t mode_lost;  /* events missing since the mode was known for certain */
	bool hlt;            /* the last KVM exit was HLT... */
	uint32_t hlt_sleeps; /* ... and the thread has slept so often since */
	struct vcpu_exit exit;
	uint64_t n_exits;
	bool was_ready; /* UNSURE: until then it had waited for a CPU */
	bool sure;      /* UNSURE: the gap is over, since... */
	struct host_ns sure_since;
	/* Few events are missing, and its next may show that none of them moved it. */
	bool doubted, doubt_over;
	struct host_ns doubt_from, doubt_until;
	uint64_t doubt_lost; /* how many are missing, in all... */
	unsigned n_doubts;
	struct vcpu_doubt { /* ... and on each pCPU, since when; beyond the last: on too many */
		uint16_t pcpu;
		uint64_t lost;
		struct host_ns from;
		bool own; /* the thread has been there */
	} doubts[VCPU_DOUBTS];
	/* READY: it may have had a turn inside gaps that are over, the first of which began then.
	 */
	bool holed;
	struct host_ns hole_from;
	bool presumed; /* UNSURE: presumably it has waited for a CPU since then */
	struct host_ns presumed_from;
	struct vcpu_span open; /* state: as far as known now */
	bool open_hlt;         /* the wait began in a HLT exit */
	/* An episode is the time off the CPU, from switch-out to switch-in. */
	uint32_t episode;
	struct host_ns episode_begin;
	uint64_t off_lost;                  /* events missing since */
	bool episode_seen;                  /* to begin; else it was under way already */
	uint32_t waiter_stack, waker_stack; /* of the current episode, if they come early */
	bool waiter_sampled;                /* it was one of many short waits */
	/* Short waits of this VM are sampled; the class of the newest sample among the sleeps that
	 * a signal could end, and among the others. */
	bool shorts_sampled;
	enum wait_class short_class[2];
	struct host_ns
		unbroken;  /* as the capture measured it, it lasted until then without a turn */
	bool waking_known; /* a waker's stack says by whom and when it was woken */
	int32_t waking_pid;
	struct host_ns waking;
	/* Who ran on the pCPU while this thread waited for it, since segment_begin. */
	struct vcpu_queue {
		struct host_ns segment_begin;
		int64_t busy_ns; /* of all of them */
		unsigned n_holders;
		struct vcpu_holder holders[VCPU_HOLDERS];
	} queue;
	int64_t stack_due_ns; /* sleeps as short as this brought their stack, in this VM; 0: none
				 did */
	struct host_ns quota_until; /* the newest reading of its quota; 0: it has none */
	int64_t throttled_ns;       /* known of the open wait for a pCPU... */
	uint32_t throttled_by;      /* mostly by the quota of this cgroup */
	struct vcpu *next_waiter, **waiter_link; /* among the waiters of a pCPU */
	struct vcpu_held *held;                  /* a ring */
	uint32_t held_first, held_count, held_capacity;
};

/* Its state is unknown from `t` on. */
void vcpu_init(struct vcpu *v, uint32_t vm, uint32_t vcpu, int32_t tid, struct host_ns t);
void vcpu_fini(struct vcpu *v);

/* tenures: VCPU_TENURES of them, of this pCPU, the newest last: who it comes from. */
void vcpu_switch_in(struct vcpu *v, struct host_ns t, uint16_t pcpu, const struct tenure *tenures,
		    const struct vcpu_sink *sink);
/* state: enum vs_task_state bits, 0 preempted. signal: may be NULL. */
void vcpu_switch_out(struct vcpu *v, struct host_ns t, uint16_t pcpu, uint32_t state,
		     const struct vcpu_signal *signal, const struct vcpu_sink *sink);
void vcpu_woken(struct vcpu *v, struct host_ns t, uint16_t pcpu, int32_t waker,
		const struct vcpu_sink *sink);
void vcpu_migrated(struct vcpu *v, uint16_t pcpu);
void vcpu_exited(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink);
/* exit: with MODE_KVM, its reason and isa. */
void vcpu_kvm(struct vcpu *v, struct host_ns t, uint16_t pcpu, enum vcpu_mode mode,
	      const struct vcpu_exit *exit, const struct vcpu_sink *sink);
/* Does it wait for its pCPU, or will it prove to if its wake-up is missing? */
bool vcpu_waits(const struct vcpu *v);
/* `pid` held the pCPU until `t`, since the last such account or since the thread began to wait. */
void vcpu_held_by(struct vcpu *v, struct host_ns t, int32_t pid);
/* A STACK event: `pid` is whose stack it is. */
void vcpu_stack(struct vcpu *v, struct host_ns t, int32_t pid, uint32_t stack,
		enum vs_stack_role role, int64_t wait_ns, const struct vcpu_sink *sink);
/* Waits for a pCPU that a reading of a quota may be about, of all vCPUs that share it. */
struct quota_waits {
	int64_t idle_ns; /* their pCPUs idled meanwhile */
	unsigned n_busy; /* of these waits, others ran on the pCPU for a part */
};

/* Adds this vCPU's. */
void vcpu_quota_waits(const struct vcpu *v, const struct quota_reading *reading,
		      const struct vcpu_sink *sink, struct quota_waits *sum);
/* Its quota was read. */
void vcpu_quota(struct vcpu *v, const struct quota_reading *reading, const struct quota_waits *all,
		const struct vcpu_sink *sink);
/* `lost` events of `pcpu` that could have concerned this thread are missing since `from`. */
void vcpu_unsure(struct vcpu *v, struct host_ns from, uint16_t pcpu, uint64_t lost,
		 const struct vcpu_sink *sink);
/* Another task is on `pcpu`: what is missing there so far can no longer be part of one turn with
 * what may follow. */
void vcpu_turn_over(struct vcpu *v, struct host_ns t, uint16_t pcpu, const struct vcpu_sink *sink);
/* No more events are missing, from `t` on. */
void vcpu_sure(struct vcpu *v, struct host_ns t);
/* Releases held spans that have waited long enough, all of them if `all`. */
void vcpu_release(struct vcpu *v, struct host_ns now, bool all, const struct vcpu_sink *sink);
/* Closes the open span; release follows. */
void vcpu_finish(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink);
/* Every span that ended before this time has been told. */
struct host_ns vcpu_delivered(const struct vcpu *v);
/* The open span as known now, ending at `t`. */
struct vcpu_span vcpu_current(const struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink);

#endif
