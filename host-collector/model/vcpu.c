/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/vcpu.h"

#include <stdlib.h>
#include <string.h>

#include "host-collector/model/vcpu_internal.h"

void vcpu_init(struct vcpu *v, uint32_t vm, uint32_t vcpu, int32_t tid, struct host_ns t)
{
	memset(v, 0, sizeof(*v));
	v->vm = vm;
	v->vcpu = vcpu;
	v->tid = tid;
	v->why = UNKNOWN_NOT_SEEN;
	v->mode_why = UNKNOWN_NO_ENTRY;
	v->gap_why = UNKNOWN_LOST;
	v->open = (struct vcpu_span){.vm = vm,
				     .vcpu = vcpu,
				     .tid = tid,
				     .state = VCPU_UNKNOWN,
				     .why = v->why,
				     .begin = t,
				     .end = t};
}

void vcpu_fini(struct vcpu *v)
{
	free(v->held);
	v->held = NULL;
}

void vcpu_switch_in(struct vcpu *v, struct host_ns t, uint16_t pcpu, const struct tenure *tenures,
		    const struct vcpu_sink *sink)
{
	bool unseen = vcpu_wakeup_missed(v, t, pcpu, tenures[VCPU_TENURES - 1].pid, sink);

	vcpu_doubt_end(v, t, v->state == THREAD_READY, sink);
	unseen = unseen || v->state == THREAD_UNSURE;
	vcpu_prove(v, t, THREAD_READY, pcpu, sink);
	/* The holder of the pCPU in this time is unknown. */
	for (int i = 0; unseen && v->state == THREAD_READY && i < VCPU_TENURES; i++) {
		if (v->queue.segment_begin.ns < tenures[i].from.ns)
			v->queue.segment_begin = tenures[i].from;
		vcpu_held_by(v, tenures[i].until, tenures[i].pid);
	}
	if (v->state == THREAD_RUNNING)
		vcpu_span_refute(v); /* it left the CPU unseen */
	vcpu_span_close(v, t, sink);
	if (vcpu_off_cpu(v))
		vcpu_episode_end(v, t);
	vcpu_span_begin(v, t, THREAD_RUNNING, vcpu_running_state(v), pcpu);
	vcpu_release(v, t, false, sink);
}

/* A debugger's SIGSTOP takes effect at once, and no SIGCONT need follow it. A SIGSTOP sent to
 * the process takes effect late if the thread is in uninterruptible sleep. */
static bool signal_explains(const struct vcpu_signal *signal, struct host_ns t, uint32_t state)
{
	return signal->number && ((state & VS_TASK_STOPPED) ||
				  ((state & VS_TASK_TRACED) && t.ns - signal->t.ns < 1000000000));
}

void vcpu_switch_out(struct vcpu *v, struct host_ns t, uint16_t pcpu, uint32_t state,
		     const struct vcpu_signal *signal, const struct vcpu_sink *sink)
{
	vcpu_presumption_fails(v);
	/* It leaves the guest before it leaves the CPU. */
	vcpu_doubt_end(v, t, v->state == THREAD_RUNNING && v->mode != MODE_GUEST, sink);
	vcpu_prove(v, t, THREAD_RUNNING, pcpu, sink);
	if (v->state != THREAD_RUNNING)
		vcpu_span_refute(v); /* it came onto the CPU and nobody saw it */
	vcpu_span_close(v, t, sink);
	vcpu_episode_begin(v, t, true);
	v->open_hlt = v->mode == MODE_KVM && v->hlt;
	v->hlt_sleeps += v->open_hlt && state != VS_TASK_RUNNING;
	if (state & (VS_TASK_STOPPED | VS_TASK_TRACED | VS_TASK_FROZEN)) {
		vcpu_span_begin(v, t, THREAD_STOPPED, VCPU_STOPPED, pcpu);
		if (signal && signal_explains(signal, t, state)) {
			v->open.signal_pid = signal->sender;
			v->open.signal_number = signal->number;
		}
	} else if (state & (VS_TASK_EXIT | VS_TASK_DEAD)) {
		v->why = UNKNOWN_ENDED;
		vcpu_span_begin(v, t, THREAD_UNSEEN, VCPU_UNKNOWN, pcpu);
	} else if (state == VS_TASK_RUNNING) {
		vcpu_span_begin(v, t, THREAD_READY, VCPU_RUNNABLE, pcpu);
	} else {
		vcpu_span_begin(v, t, THREAD_SLEEPING, VCPU_BLOCKED, pcpu);
	}
	v->open.task_state = state;
}

/*
 * The first event of a thread that the capture has followed for some time is its wake-up: so it has
 * slept since, in HLT if its guest idled.
 */
static void sleep_reveal(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	struct host_ns from = v->followed, middle;

	if (v->state != THREAD_UNSEEN || v->why != UNKNOWN_NOT_SEEN || !v->is_followed)
		return;
	if (from.ns < v->open.begin.ns)
		from = v->open.begin;
	middle.ns = from.ns + (t.ns - from.ns) / 2;
	if (from.ns >= t.ns || sink->account(sink->context, v, middle) != GUEST_ACCOUNT_IDLE)
		return;
	vcpu_span_close(v, from, sink);
	vcpu_episode_begin(v, from, false);
	vcpu_span_begin(v, from, THREAD_SLEEPING, VCPU_HALTED, v->open.pcpu);
	v->open_hlt = true;
}

void vcpu_woken(struct vcpu *v, struct host_ns t, uint16_t pcpu, int32_t waker,
		const struct vcpu_sink *sink)
{
	vcpu_presumption_fails(v);
	vcpu_doubt_end(v, t, v->state == THREAD_SLEEPING || v->state == THREAD_STOPPED, sink);
	/* A wake-up of a thread that is not asleep only spares it the next sleep. */
	if (v->state == THREAD_RUNNING || v->state == THREAD_READY)
		return;
	sleep_reveal(v, t, sink);
	v->open.waker_pid = waker;
	vcpu_queue_begin(v, t);
	vcpu_span_close(v, t, sink);
	if (v->state == THREAD_UNSEEN || v->state == THREAD_UNSURE)
		vcpu_episode_begin(v, t, false);
	vcpu_span_begin(v, t, THREAD_READY, VCPU_RUNNABLE, pcpu);
}

void vcpu_migrated(struct vcpu *v, uint16_t pcpu)
{
	v->open.pcpu = pcpu;
}

void vcpu_exited(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	vcpu_presumption_fails(v);
	vcpu_doubt_end(v, t, v->state == THREAD_RUNNING, sink);
	vcpu_span_close(v, t, sink);
	v->why = UNKNOWN_ENDED;
	vcpu_span_begin(v, t, THREAD_UNSEEN, VCPU_UNKNOWN, v->open.pcpu);
}

/* An exit leaves the guest; KVM hands over to QEMU; either enters the guest again. */
static bool mode_leads_to(enum vcpu_mode from, enum vcpu_mode to)
{
	return to == MODE_GUEST ? from == MODE_KVM || from == MODE_VMM
				: from == (to == MODE_KVM ? MODE_GUEST : MODE_KVM);
}

/* The exit reasons that mean HLT, by isa. */
static bool exit_is_hlt(const struct vcpu_exit *exit)
{
	static const uint32_t hlt[] = {[1] = 12, [2] = 0x78};

	return exit->isa > 0 && exit->isa < 3 && exit->reason == hlt[exit->isa];
}

void vcpu_kvm(struct vcpu *v, struct host_ns t, uint16_t pcpu, enum vcpu_mode mode,
	      const struct vcpu_exit *exit, const struct vcpu_sink *sink)
{
	vcpu_presumption_fails(v);
	v->kvm_seen = true;
	vcpu_kvm_begins(v, t);
	vcpu_doubt_end(v, t, v->state == THREAD_RUNNING && mode_leads_to(v->mode, mode), sink);
	vcpu_prove(v, t, THREAD_RUNNING, pcpu, sink);
	if (vcpu_off_cpu(v))
		vcpu_span_refute(v); /* it came onto the CPU and nobody saw it */
	v->hlt = mode == MODE_KVM && exit_is_hlt(exit);
	v->hlt_sleeps = 0;
	if (v->state == THREAD_RUNNING && v->mode == mode && v->open.state == vcpu_running_state(v))
		return;
	vcpu_span_close(v, t, sink);
	v->mode_lost = 0;
	v->mode = mode;
	if (mode == MODE_GUEST)
		v->exit = (struct vcpu_exit){0};
	else if (mode == MODE_KVM)
		v->exit = (struct vcpu_exit){++v->n_exits, exit->reason, exit->isa};
	vcpu_span_begin(v, t, THREAD_RUNNING, vcpu_running_state(v), pcpu);
}

bool vcpu_waits(const struct vcpu *v)
{
	return v->state == THREAD_READY || (vcpu_off_cpu(v) && v->waking_known);
}

void vcpu_held_by(struct vcpu *v, struct host_ns t, int32_t pid)
{
	int64_t ns = t.ns - v->queue.segment_begin.ns;
	struct vcpu_holder *least = v->queue.holders;

	if (ns <= 0)
		return;
	v->queue.segment_begin = t;
	v->queue.busy_ns += pid ? ns : 0;
	for (unsigned i = 0; i < v->queue.n_holders; i++) {
		if (v->queue.holders[i].pid == pid) {
			v->queue.holders[i].ns += ns;
			return;
		}
		if (v->queue.holders[i].ns < least->ns)
			least = &v->queue.holders[i];
	}
	if (v->queue.n_holders < VCPU_HOLDERS)
		least = &v->queue.holders[v->queue.n_holders++];
	*least = (struct vcpu_holder){.pid = pid, .ns = ns};
}

void vcpu_finish(struct vcpu *v, struct host_ns t, const struct vcpu_sink *sink)
{
	enum vcpu_state state;

	vcpu_doubt_end(v, t, false, sink);
	state = v->open.state;
	vcpu_span_close(v, t, sink);
	vcpu_span_begin(v, t, v->state, state, v->open.pcpu);
	vcpu_release(v, t, true, sink);
}
