/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Definitions that the files of a vCPU thread's state machine share (vcpu.h): vcpu.c processes
 * events, vcpu_span.c closes and queues spans, vcpu_loss.c determines what is known after a loss,
 * vcpu_stack.c and vcpu_quota.c explain waits after their end.
 */
#ifndef MODEL_VCPU_INTERNAL_H
#define MODEL_VCPU_INTERNAL_H

#include "host-collector/model/vcpu.h"

/* Shorter waits for a pCPU are not held for a reading of the quota. */
#define QUOTA_WAIT_NS 1000000ll

/* ---- vcpu_span.c ---- */

/* Returns true if the thread is ready, sleeping or stopped. */
bool vcpu_off_cpu(const struct vcpu *v);
/* Returns the vCPU's state while the thread is on a CPU. */
enum vcpu_state vcpu_running_state(const struct vcpu *v);
/* Returns true if this class alone determines the state of a wait. */
bool vcpu_wait_decides(enum wait_class class);
/* Returns what the thread waited for, according to the stacks of its wait (id 0: unknown). The
 * stack where it slept decides, with one exception: a thread that waits for a lock when it is
 * frozen stays asleep there (since Linux 6.1), also after the lock is free, until the freezer wakes
 * it. */
enum wait_class vcpu_episode_class(const struct vcpu *v, uint32_t waiter_stack,
				   uint32_t waker_stack, const struct vcpu_sink *sink);
/* Sets the class of a wait, and the state that follows from it, or `otherwise` if the class does
 * not determine the state. */
void vcpu_span_explain(struct vcpu_span *span, enum vcpu_state otherwise, enum wait_class class);
int64_t vcpu_span_length(const struct vcpu_span *span);
/* Adds `ns` of throttling by the quota of `cgroup` to a wait for a pCPU. If at least half of the
 * wait was throttling, its state becomes THROTTLED. */
void vcpu_quota_charge(struct vcpu_span *span, int64_t ns, uint32_t cgroup);
/* Returns true if a later reading of the quota may show that this wait was throttling. */
bool vcpu_quota_awaited(const struct vcpu *v, const struct vcpu_span *span);
/* Returns true if a later sample may explain this short sleep. */
bool vcpu_short_awaited(const struct vcpu *v, const struct vcpu_held *h);
/* Sets *span to the open span as if it ended at `t`. */
void vcpu_span_closed(const struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink,
		      struct vcpu_span *span);
/* Ends the open span at `t` and queues it. The caller must then call vcpu_span_begin(). */
void vcpu_span_close(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink);
void vcpu_span_begin(struct vcpu *v, struct host_ns t, enum thread_state thread,
		     enum vcpu_state state, uint16_t pcpu);
/* Begins a wait for a pCPU with the given state. */
void vcpu_wait_begin(struct vcpu *v, struct host_ns t, enum vcpu_state state, uint16_t pcpu);
/* Clears the list of the pCPU's holders, which begins at `t`. */
void vcpu_queue_begin(struct vcpu *v, struct host_ns t);
/* Begins an episode, the time off the CPU. `seen`: its begin was seen. */
void vcpu_episode_begin(struct vcpu *v, struct host_ns t, bool seen);
void vcpu_episode_end(struct vcpu *v, struct host_ns t);
/* Returns the i-th held span, oldest first. */
struct vcpu_held *vcpu_held_at(const struct vcpu *v, uint32_t i);

/* Makes the open span unknown, because a lost event shows that its state was wrong. */
void vcpu_span_refute(struct vcpu *v);

/* Notes the thread's first event of KVM. Spans in which the thread was assumed to be in the guest
 * become unknown, unless the thread was followed for MODEL_HOLD_NS without such an event: then
 * KVM's events began later. */
void vcpu_kvm_begins(struct vcpu *v, struct host_ns t);

/* ---- vcpu_loss.c ---- */

/* Makes the thread's state unknown from `from` on. */
void vcpu_lose(struct vcpu *v, struct host_ns from, const struct vcpu_sink *sink);
/* Revokes the presumption that the thread waited for a CPU during a gap, because its next event
 * shows that it did not. */
void vcpu_presumption_fails(struct vcpu *v);
/* Proves that a thread whose state was unknown was in state `thread` since the end of the gap. */
void vcpu_prove(struct vcpu *v, struct host_ns t, enum thread_state thread, uint16_t pcpu,
		const struct vcpu_sink *sink);
/* Ends the doubt with the thread's next event. as_before: the event shows the state that it had
 * before the gap. */
void vcpu_doubt_end(struct vcpu *v, struct host_ns t, bool as_before, const struct vcpu_sink *sink);
/* Handles a thread that runs although it slept, so its wake-up was lost. Determines the time of the
 * wake-up if that is possible. `from` is the task that had the CPU before. Returns true if the
 * wake-up was lost. */
bool vcpu_wakeup_missed(struct vcpu *v, struct host_ns t, uint16_t pcpu, int32_t from,
			const struct vcpu_sink *sink);

#endif
