/* SPDX-License-Identifier: GPL-2.0-only */
/* Captures a guest: emits every event of the scheduler, interrupts, softirqs and vectors of this
 * kernel that passes the filter (guest_request.h; at first all) into the ring of its CPU. Only
 * vs_switch is mandatory. The loader omits a program whose tracepoint this kernel does not have. */
#include "bpf/prog/emit.h"
#include "bpf/prog/look.h"
#include "bpf/prog/sample.h"
#include "bpf/prog/user_hit.h"

char LICENSE[] SEC("license") = "GPL";

VS_TRACEPOINT(sched_switch)
int BPF_PROG(vs_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	struct vs_event e = {};
	const __u32 state = switch_state(ctx, preempted, prev);
	const __s32 out = task_shown(prev), in = task_shown(next);

	if (out == VS_TASK_OTHER && in == VS_TASK_OTHER)
		return 0;
	if (request.sample_period_ns && state && !(state & VS_TASK_DEAD))
		stack_emit(ctx, VS_STACK_WAITER, request.sample_period_ns);
	ev_set_sched_switch_out_prio(&e, VS_READ(prev, prio));
	ev_set_sched_switch_in_prio(&e, VS_READ(next, prio));
	emit(VS_EVENT_SCHED_SWITCH, out, in, state, e.arg1);
	return 0;
}

/* Attached to a timer of each CPU if stacks are wanted. */
SEC("perf_event")
int vs_sample(struct bpf_perf_event_data *ctx)
{
	stack_emit(ctx, VS_STACK_SAMPLE, request.sample_period_ns);
	return 0;
}

/* Attached to a timer of each CPU if looks are wanted. */
SEC("perf_event")
int vs_l_look(struct bpf_perf_event_data *ctx)
{
	const __u64 period_ns = look_tick();

	if (period_ns)
		stack_emit(ctx, VS_STACK_LOOK, period_ns);
	return 0;
}

VS_TRACEPOINT(sched_wakeup)
int BPF_PROG(vs_wakeup, struct task_struct *p)
{
	const __s32 task = task_shown(p);

	if (!class_off(EVENT_CLASS_WAKEUPS) && task != VS_TASK_OTHER)
		emit(VS_EVENT_SCHED_WAKEUP, task, current_shown(), task_cpu(p),
		     (__u32)VS_READ(p, prio));
	return 0;
}

VS_TRACEPOINT(sched_wakeup_new)
int BPF_PROG(vs_wakeup_new, struct task_struct *p)
{
	const __s32 task = task_shown(p);

	if (!class_off(EVENT_CLASS_WAKEUPS) && task != VS_TASK_OTHER)
		emit(VS_EVENT_SCHED_WAKEUP_NEW, task, current_shown(), task_cpu(p),
		     (__u32)VS_READ(p, prio));
	return 0;
}

VS_TRACEPOINT(sched_migrate_task)
int BPF_PROG(vs_migrate, struct task_struct *p, int dest_cpu)
{
	const __s32 task = task_shown(p);

	if (!class_off(EVENT_CLASS_WAKEUPS) && task != VS_TASK_OTHER)
		emit(VS_EVENT_SCHED_MIGRATE, task, current_shown(), task_cpu(p), (__u32)dest_cpu);
	return 0;
}

static __always_inline void task_name(struct task_struct *p)
{
	if (task_shown(p) != VS_TASK_OTHER)
		emit_name(VS_READ(p, pid), VS_READ(p, tgid), p->comm);
}

VS_TRACEPOINT(task_newtask)
int BPF_PROG(vs_newtask, struct task_struct *p)
{
	task_name(p);
	return 0;
}

VS_TRACEPOINT(task_rename)
int BPF_PROG(vs_rename, struct task_struct *p, const char *comm)
{
	__u64 name[2] = {};

	bpf_probe_read_kernel_str(name, sizeof(name), comm);
	if (!request.n_patterns || name_wanted(name))
		emit(VS_EVENT_TASK_NAME, VS_READ(p, pid), VS_READ(p, tgid), name[0], name[1]);
	return 0;
}

/* An exec also changes thread ids: the caller takes over the id of its process's leader. */
VS_TRACEPOINT(sched_process_exec)
int BPF_PROG(vs_exec, struct task_struct *p)
{
	task_name(p);
	return 0;
}

VS_TRACEPOINT(sched_process_exit)
int BPF_PROG(vs_exit, struct task_struct *p)
{
	if (task_shown(p) != VS_TASK_OTHER)
		emit(VS_EVENT_TASK_EXIT, VS_READ(p, pid), VS_READ(p, tgid), 0, 0);
	return 0;
}

VS_TRACEPOINT(irq_handler_entry)
int BPF_PROG(vs_irq_entry, int irq)
{
	if (!class_off(EVENT_CLASS_IRQS))
		emit(VS_EVENT_IRQ_ENTRY, current_shown(), 0, (__u32)irq, 0);
	return 0;
}

VS_TRACEPOINT(irq_handler_exit)
int BPF_PROG(vs_irq_exit, int irq, void *action, int returned)
{
	if (!exits_off(EVENT_CLASS_IRQS))
		emit(VS_EVENT_IRQ_EXIT, current_shown(), 0, (__u32)irq, (__u32)returned);
	return 0;
}

VS_TRACEPOINT(softirq_entry)
int BPF_PROG(vs_soft_entry, unsigned int number)
{
	if (!class_off(EVENT_CLASS_SOFTIRQS))
		emit(VS_EVENT_SOFTIRQ_ENTRY, current_shown(), 0, number, 0);
	return 0;
}

VS_TRACEPOINT(softirq_exit)
int BPF_PROG(vs_soft_exit, unsigned int number)
{
	if (!exits_off(EVENT_CLASS_SOFTIRQS))
		emit(VS_EVENT_SOFTIRQ_EXIT, current_shown(), 0, number, 0);
	return 0;
}

#define VECTOR(tracepoint, program, event, is_off, number)                                         \
	VS_TRACEPOINT(tracepoint)                                                                  \
	int BPF_PROG(program, int vector)                                                          \
	{                                                                                          \
		if (!is_off(EVENT_CLASS_VECTORS))                                                  \
			emit(event, current_shown(), 0, number, (__u32)vector);                    \
		return 0;                                                                          \
	}

VECTOR(local_timer_entry, vs_timer_entry, VS_EVENT_VECTOR_ENTRY, class_off, VS_VECTOR_LOCAL_TIMER)
VECTOR(local_timer_exit, vs_timer_exit, VS_EVENT_VECTOR_EXIT, exits_off, VS_VECTOR_LOCAL_TIMER)
VECTOR(reschedule_entry, vs_resch_entry, VS_EVENT_VECTOR_ENTRY, class_off, VS_VECTOR_RESCHEDULE)
VECTOR(reschedule_exit, vs_resch_exit, VS_EVENT_VECTOR_EXIT, exits_off, VS_VECTOR_RESCHEDULE)
VECTOR(call_function_entry, vs_call_entry, VS_EVENT_VECTOR_ENTRY, class_off,
       VS_VECTOR_CALL_FUNCTION)
VECTOR(call_function_exit, vs_call_exit, VS_EVENT_VECTOR_EXIT, exits_off, VS_VECTOR_CALL_FUNCTION)
VECTOR(call_function_single_entry, vs_call1_entry, VS_EVENT_VECTOR_ENTRY, class_off,
       VS_VECTOR_CALL_FUNCTION_SINGLE)
VECTOR(call_function_single_exit, vs_call1_exit, VS_EVENT_VECTOR_EXIT, exits_off,
       VS_VECTOR_CALL_FUNCTION_SINGLE)

/* An event that a host asked for, and that the guest's owner allows. */
static __always_inline void user_hit_here(void *ctx)
{
	const struct vs_user_slot *slot = user_slot_here();
	struct vs_user_state *state;
	__s32 tid;

	if (!slot || !user_hit_is_wanted(ctx))
		return;
	tid = current_shown();
	state = user_state();
	if (state && user_is_within(slot, state, tid))
		user_emit(ctx, slot, tid, 0);
}
VS_USER_PROGRAMS

/*
 * Names the tasks that existed before the capture. The program writes one byte per task, so a read
 * of n bytes names n tasks. The loader reads as many at once as fit into the ring.
 */
SEC("iter/task")
int vs_tasks(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *p = ctx->task;
	char byte = 0;

	if (!p) {
		if (request.n_patterns) /* "(other tasks)" */
			emit(VS_EVENT_TASK_NAME, VS_TASK_OTHER, VS_TASK_OTHER, 0x7420726568746f28,
			     0x29736b7361);
		return 0;
	}
	if (task_shown(p) != VS_TASK_OTHER)
		emit_name(p->pid, p->tgid, p->comm);
	bpf_seq_write(seq, &byte, sizeof(byte));
	return 0;
}
