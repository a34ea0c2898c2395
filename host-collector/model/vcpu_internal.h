/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of one vCPU thread's state machine share (vcpu.h): vcpu.c handles the events,
 * vcpu_span.c closes and queues what they end, vcpu_loss.c says what missing events leave known,
 * vcpu_stack.c and vcpu_quota.c explain waits once they are over.
 */
#ifndef MODEL_VCPU_INTERNAL_H
#define MODEL_VCPU_INTERNAL_H

#include "host-collector/model/vcpu.h"

/* Shorter waits for a pCPU are told at once, throttled or not. */
#define QUOTA_WAIT_NS 1000000ll

/* ---- vcpu_span.c ---- */

/* Ready, sleeping or stopped. */
bool vcpu_off_cpu(const struct vcpu *v);
/* While the thread is on a CPU. */
enum vcpu_state vcpu_running_state(const struct vcpu *v);
/* Does a wait of this class say which state it was? */
bool vcpu_wait_decides(enum wait_class class);
/* Gives a wait its class, and the state that follows; `otherwise` if the class decides nothing. */
void vcpu_span_explain(struct vcpu_span *span, enum vcpu_state otherwise, enum wait_class class);
int64_t vcpu_span_length(const struct vcpu_span *span);
/* `ns` more of a wait for a pCPU was throttling, by the quota of `cgroup`: the whole counts as what
 * most of it was. */
void vcpu_quota_charge(struct vcpu_span *span, int64_t ns, uint32_t cgroup);
/* A reading of the quota that is still to come may show that this wait was throttling. */
bool vcpu_quota_awaited(const struct vcpu *v, const struct vcpu_span *span);
/* A short sleep, of which a sample may still say what it was. */
bool vcpu_short_awaited(const struct vcpu *v, const struct vcpu_held *h);
/* What the open span was, seen from its end. */
struct vcpu_span vcpu_span_closed(const struct vcpu *v, struct host_ns t,
				  const struct vcpu_sink *sink);
/* Ends the open span at `t` and queues it; a vcpu_span_begin() must follow. */
void vcpu_span_close(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink);
void vcpu_span_begin(struct vcpu *v, struct host_ns t, enum thread_state thread,
		     enum vcpu_state state, uint16_t pcpu);
/* Off its CPU, waiting for one, as far as `state` knows. */
void vcpu_wait_begin(struct vcpu *v, struct host_ns t, enum vcpu_state state, uint16_t pcpu);
/* Nobody is counted yet of who holds the pCPU from `t` on. */
void vcpu_queue_begin(struct vcpu *v, struct host_ns t);
/* An episode is the time off the CPU. seen: its begin was. */
void vcpu_episode_begin(struct vcpu *v, struct host_ns t, bool seen);
void vcpu_episode_end(struct vcpu *v, struct host_ns t);
/* The i-th of the spans that wait to be told, the oldest first. */
struct vcpu_held *vcpu_held_at(const struct vcpu *v, uint32_t i);

/* What the open span was taken for cannot be: an event is missing. */
void vcpu_span_refute(struct vcpu *v);

/* The thread's first event of KVM has come: until then it was not known to be in the guest, unless
 * it had been seen for so long that KVM's events began later. */
void vcpu_kvm_begins(struct vcpu *v, struct host_ns t);

/* ---- vcpu_loss.c ---- */

/* From `from` on nothing is known of the thread. */
void vcpu_lose(struct vcpu *v, struct host_ns from, const struct vcpu_sink *sink);
/* The thread was lost while it waited for a CPU, and its next event shows that it no longer did. */
void vcpu_presumption_fails(struct vcpu *v);
/* A lost thread had been `thread` since the gap ended. */
void vcpu_prove(struct vcpu *v, struct host_ns t, enum thread_state thread, uint16_t pcpu,
		const struct vcpu_sink *sink);
/* The thread's next event: does it show the state that it had before the gap? */
void vcpu_doubt_end(struct vcpu *v, struct host_ns t, bool as_before, const struct vcpu_sink *sink);
/* It runs although it slept, so it was woken, which is missing: says when, if that is known.
 * `from`: who had the CPU. Returns whether it was so. */
bool vcpu_wakeup_missed(struct vcpu *v, struct host_ns t, uint16_t pcpu, int32_t from,
			const struct vcpu_sink *sink);

#endif
