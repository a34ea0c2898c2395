// SPDX-License-Identifier: GPL-2.0-only
/* Counts vCPU threads for the kinds that do not show the guest: each span or sample is a stack. */
#include "host-collector/analyze/flame/flame_internal.h"

static bool is_wait(enum vcpu_state state)
{
	return state == VCPU_RUNNABLE || state == VCPU_HALTED || state == VCPU_BLOCKED ||
	       state == VCPU_THROTTLED || state == VCPU_STOPPED;
}

static void oncpu(struct flame *f, struct frames *s, const struct vcpu_span *span)
{
	frames_thread(s, f, span->vm, span->tid);
	frames_vcpu(s, f, span, false);
}

/* Adds the stack at which the vCPU thread waited, or the kind of its wait if there is no stack. */
static void offcpu(struct flame *f, struct frames *s, const struct vcpu_span *span)
{
	const struct stack *stack = model_stack_of(f->model, span->waiter_stack);

	frames_thread(s, f, span->vm, span->tid);
	if (stack && stack->n_frames && span->state != VCPU_RUNNABLE)
		frames_stack(s, stack, false, false, FRAMES_ROOT_FIRST, FRAMES_ALL);
	else
		frames_vcpu(s, f, span, false);
}

static void offwake(struct flame *f, struct frames *s, const struct vcpu_span *span)
{
	offcpu(f, s, span);
	frames_waker(s, f, span);
}

static void wakeup(struct flame *f, struct frames *s, const struct vcpu_span *span)
{
	const struct stack *stack = model_stack_of(f->model, span->waker_stack);

	if (span->state == VCPU_RUNNABLE || span->state == VCPU_THROTTLED)
		return;
	if (span->waker_pid || span->waker_stack)
		frames_thread(s, f, span->vm, span->waker_pid);
	else
		frames_text(s, FOLDED_ANNOTATION, false, "[an interrupt, or unknown]");
	frames_stack(s, stack, false, false, FRAMES_ROOT_FIRST, FRAMES_KERNEL);
	frames_thread_again(s, f, span->tid);
}

static void exits(struct flame *f, struct frames *s, const struct vcpu_span *span)
{
	frames_thread(s, f, span->vm, span->tid);
	frames_add(s, FOLDED_ANNOTATION, false, "%s",
		   exit_name(span->exit.isa, span->exit.reason).text);
	frames_vcpu(s, f, span, true);
}

static bool is_on_pcpu(const struct vcpu_span *span)
{
	return span->state == VCPU_GUEST || span->state == VCPU_KVM || span->state == VCPU_VMM;
}

static bool is_off_pcpu(const struct vcpu_span *span)
{
	return is_wait(span->state);
}

static bool is_off_pcpu_in_exit(const struct vcpu_span *span)
{
	return is_wait(span->state) && span->exit.serial;
}

/* By kind: the spans that it shows, and their frames. */
static const struct {
	bool (*takes)(const struct vcpu_span *span);
	void (*frames)(struct flame *f, struct frames *s, const struct vcpu_span *span);
} kinds[FLAME_KIND_COUNT] = {
	[FLAME_ONCPU] = {is_on_pcpu, oncpu},          [FLAME_OFFCPU] = {is_off_pcpu, offcpu},
	[FLAME_WAKEUP] = {is_off_pcpu, wakeup},       [FLAME_OFFWAKE] = {is_off_pcpu, offwake},
	[FLAME_EXITS] = {is_off_pcpu_in_exit, exits},
};

static bool wants_thread(const struct flame *f, uint32_t vm, uint32_t vcpu, int32_t tid)
{
	return flame_wants_vm(f, vm) &&
	       (f->options.vcpu < 0 || (uint32_t)f->options.vcpu == vcpu) &&
	       flame_wants_task(f, VS_SOURCE_HOST, tid);
}

void flame_vcpu_span(struct flame *f, const struct vcpu_span *span)
{
	struct frames *s = frames_begin(f);

	if (!kinds[f->options.kind].takes || !kinds[f->options.kind].takes(span) ||
	    !wants_thread(f, span->vm, span->vcpu, span->tid) || !flame_wants_state(f, span->state))
		return;
	kinds[f->options.kind].frames(f, s, span);
	if (s->n)
		frames_charge(f, s, narrow_ns(f->options.time, span->begin, span->end));
}

/* Returns true if the vCPU is in the guest by KVM's events. The host's kernel has no stack then. */
static bool in_guest(const struct flame *f, const struct host_instant *i, const struct stack *stack)
{
	struct vcpu_span now;

	return i->of_vcpu && model_data_of(f->model, i->vm).kvm_events &&
	       !(stack->n_frames && stack->frames[0].kernel) &&
	       !model_vcpu_current(f->model, i->vm, i->vcpu, &now) && now.state == VCPU_GUEST;
}

/* A sample of a VM's thread stands for the time since the sample before, and a look for the time
 * since the tick before. */
void flame_host_sample(struct flame *f, const struct host_instant *i)
{
	const struct vs_event *e = &i->event;
	const enum vs_stack_role role =
		f->options.kind == FLAME_LOOKS ? VS_STACK_LOOK : VS_STACK_SAMPLE;
	const struct stack *stack = model_stack_of(f->model, (uint32_t)ev_stack_id(e));
	uint32_t vm = i->vm;
	struct frames *s;
	int err;

	if (!narrow_has_time(f->options.time, i->t) || e->type != VS_EVENT_STACK ||
	    ev_stack_role(e) != role || !stack ||
	    (!i->of_vcpu && model_vm_of_thread(f->model, e->pid, &vm)) ||
	    !wants_thread(f, vm, i->of_vcpu ? i->vcpu : UINT32_MAX, e->pid))
		return;
	s = frames_begin(f);
	frames_thread(s, f, vm, e->pid);
	frames_stack(s, stack, false, false, FRAMES_ROOT_FIRST, FRAMES_ALL);
	if (in_guest(f, i, stack))
		frames_text(s, FOLDED_ANNOTATION, false, "[guest mode]");
	err = folded_add(f->samples, s->items, s->n, ev_stack_wait_ns(e));
	if (err)
		f->error = err;
}

void flame_guest_look(struct flame *f, const struct guest_instant *i)
{
	const struct vs_event *e = &i->event;
	const struct flame_guest_stack stack = {e->pid2, ev_task_stack_kernel(e),
						ev_task_stack_user(e)};
	struct frames *s;
	uint32_t vcpu;
	int err;

	if (e->type != VS_EVENT_TASK_STACK || ev_task_stack_role(e) != VS_STACK_LOOK ||
	    !narrow_has_time(f->options.time, i->t) || !flame_wants_vm(f, i->vm) ||
	    !flame_wants_task(f, i->vm, e->pid))
		return;
	if (f->options.vcpu >= 0 && (model_vcpu_of_guest_cpu(f->model, i->vm, e->cpu, &vcpu) ||
				     vcpu != (uint32_t)f->options.vcpu))
		return;
	s = frames_begin(f);
	frames_task(s, f, i->vm, e->pid, true);
	frames_guest_stack(s, f, i->vm, &stack, "[no stack]");
	err = folded_add(f->samples, s->items, s->n, ev_task_stack_period_ns(e));
	if (err)
		f->error = err;
}

static void exit_charge(struct flame *f, const struct exit_reason *r, enum vcpu_state state,
			const char *where, int64_t ns)
{
	struct flame_vm *vm = flame_vm_get(f, r->vm);
	struct frames *s = frames_begin(f);

	if (!vm || !ns || !flame_wants_state(f, state) ||
	    !wants_thread(f, r->vm, r->vcpu, vm->tids[r->vcpu % VS_CPUS_MAX]))
		return;
	frames_thread(s, f, r->vm, vm->tids[r->vcpu % VS_CPUS_MAX]);
	frames_add(s, FOLDED_ANNOTATION, false, "%s", exit_name(r->isa, r->reason).text);
	frames_add(s, FOLDED_ANNOTATION, false, "[in %s]", where);
	frames_charge(f, s, ns);
}

void flame_exits_charge(struct flame *f)
{
	const struct exit_reason *r;

	for (size_t i = 0; f->exits && (r = exits_reason(f->exits, i)); i++) {
		exit_charge(f, r, VCPU_KVM, "KVM", r->kernel_ns);
		exit_charge(f, r, VCPU_VMM, "VMM", r->vmm_ns);
	}
	if (f->exits)
		exits_analysis.clear(f->exits);
}
