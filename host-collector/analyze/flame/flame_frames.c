// SPDX-License-Identifier: GPL-2.0-only
/* Builds stacks of frames from samples, tasks and spans. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/flame/flame_internal.h"

struct frames *frames_begin(struct flame *f)
{
	f->scratch.n = f->scratch.text_used = 0;
	return &f->scratch;
}

void frames_text(struct frames *s, enum folded_kind kind, bool waker, const char *name)
{
	if (s->n < FOLDED_DEPTH_MAX)
		s->items[s->n++] = (struct folded_frame){name, kind, waker};
}

void frames_add(struct frames *s, enum folded_kind kind, bool waker, const char *format, ...)
{
	size_t room = sizeof(s->text) - s->text_used;
	char *name = s->text + s->text_used;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(name, room, format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= room)
		return;
	s->text_used += (size_t)len + 1;
	frames_text(s, kind, waker, name);
}

static void code_add(struct frames *s, const struct stack_frame *f, bool guest, bool waker)
{
	enum folded_kind kind = guest       ? f->kernel ? FOLDED_GUEST_KERNEL : FOLDED_GUEST_USER
				: f->kernel ? FOLDED_HOST_KERNEL
					    : FOLDED_HOST_USER;

	if (*f->symbol)
		frames_text(s, kind, waker, f->symbol);
	else if (*f->module == '[') /* [vdso] */
		frames_text(s, kind, waker, f->module);
	else if (*f->module)
		frames_add(s, kind, waker, "[%s]", f->module);
	else
		frames_text(s, kind, waker, "[unknown]");
}

void frames_stack(struct frames *s, const struct stack *stack, bool guest, bool waker,
		  enum frames_order order, enum frames_part part)
{
	for (size_t i = 0; stack && i < stack->n_frames; i++) {
		const struct stack_frame *f =
			&stack->frames[order == FRAMES_LEAF_FIRST ? i : stack->n_frames - 1 - i];

		if (part & (f->kernel ? FRAMES_KERNEL : FRAMES_USER))
			code_add(s, f, guest, waker);
	}
}

/* Adds the frames of a guest stack, root first. Returns false if the stack has none. */
static bool guest_stack_reported(struct frames *s, const struct flame *f, uint32_t vm,
				 const struct flame_guest_stack *stack)
{
	const size_t n = s->n;

	frames_stack(s, model_guest_stack_of(f->model, vm, stack->tgid, stack->user), true, false,
		     FRAMES_ROOT_FIRST, FRAMES_ALL);
	frames_stack(s, model_guest_stack_of(f->model, vm, 0, stack->kernel), true, false,
		     FRAMES_ROOT_FIRST, FRAMES_ALL);
	return s->n > n;
}

void frames_guest_stack(struct frames *s, struct flame *f, uint32_t vm,
			const struct flame_guest_stack *stack, const char *otherwise)
{
	if ((stack->user && !model_guest_stack_of(f->model, vm, stack->tgid, stack->user)) ||
	    (stack->kernel && !model_guest_stack_of(f->model, vm, 0, stack->kernel)))
		frames_add(s, FOLDED_LATER, false, "%u/%d/%u/%u/%s", vm, stack->tgid, stack->user,
			   stack->kernel, otherwise);
	else if (!guest_stack_reported(s, f, vm, stack) && *otherwise)
		frames_text(s, FOLDED_ANNOTATION, false, otherwise);
}

static void later_add(struct frames *s, const struct flame *f, const char *name)
{
	struct flame_guest_stack stack;
	int otherwise = 0;
	uint32_t vm;

	if (sscanf(name, "%u/%d/%u/%u/%n", &vm, &stack.tgid, &stack.user, &stack.kernel,
		   &otherwise) != 4)
		return;
	if (!guest_stack_reported(s, f, vm, &stack) && name[otherwise])
		frames_text(s, FOLDED_ANNOTATION, false, name + otherwise);
}

/* ---- threads ---- */

static void vm_add(struct frames *s, struct flame *f, uint32_t vm)
{
	const char *name = model_vm_name(f->model, vm);
	uint32_t two[2];

	if (!f->said_vms) {
		f->said_vms = true;
		f->several_vms = !f->options.vm && model_vms(f->model, two, 2) > 1;
	}
	if (!f->several_vms)
		return;
	if (*name)
		frames_add(s, FOLDED_TASK, false, "%s", name);
	else
		frames_add(s, FOLDED_TASK, false, "vm%u", vm);
}

static void thread_add(struct frames *s, const struct flame *f, uint32_t source, int32_t pid,
		       bool root, bool waker)
{
	const char *name = pid ? model_task_name(f->model, source, pid) : "swapper";

	if (!*name)
		frames_add(s, FOLDED_TASK, waker, "pid-%d", pid);
	else if (root && f->options.threads)
		frames_add(s, FOLDED_TASK, waker, "%s-%d", name, pid);
	else
		frames_add(s, FOLDED_TASK, waker, "%s", name);
}

/* The name of a guest's task at the root is filled in later (flame_frames_name): a thread has one
 * root even if its name changes, and a name may arrive after the events of its task. */
void frames_task(struct frames *s, struct flame *f, uint32_t vm, int32_t pid, bool root)
{
	if (!root) {
		thread_add(s, f, vm, pid, false, false);
		return;
	}
	vm_add(s, f, vm);
	if (f->options.threads || !*model_task_name(f->model, vm, pid))
		frames_add(s, FOLDED_TASK, true, "%u/%d", vm, pid);
	else
		thread_add(s, f, vm, pid, true, false);
}

int flame_frames_name(struct flame *f, struct folded *in, struct folded *out)
{
	const struct folded_stack *stack;
	int err = 0;

	for (size_t i = 0; !err && (stack = folded_at(in, i)); i++) {
		const size_t root = f->several_vms && stack->n_frames > 1;
		struct frames *s = frames_begin(f);
		uint32_t vm;
		int32_t pid;

		for (size_t k = 0; k < stack->n_frames; k++) {
			const struct folded_frame *frame = stack->frames[k];

			if (frame->kind == FOLDED_LATER)
				later_add(s, f, frame->name);
			else if (s->n < FOLDED_DEPTH_MAX)
				s->items[s->n++] = *frame;
		}
		if (s->items[root].waker && s->items[root].kind == FOLDED_TASK &&
		    sscanf(s->items[root].name, "%u/%d", &vm, &pid) == 2) {
			const size_t n = s->n;

			if (!flame_wants_task(f, vm, pid))
				continue;
			s->n = root;
			thread_add(s, f, vm, pid, true, false);
			s->n = n;
		}
		err = folded_add(out, s->items, s->n, stack->weight_ns);
	}
	return err;
}

void frames_thread(struct frames *s, struct flame *f, uint32_t vm, int32_t tid)
{
	vm_add(s, f, vm);
	thread_add(s, f, VS_SOURCE_HOST, tid, true, false);
}

void frames_thread_again(struct frames *s, struct flame *f, int32_t tid)
{
	thread_add(s, f, VS_SOURCE_HOST, tid, true, false);
}

/* ---- what a vCPU does ---- */

/* Writes the name of a task of the host, and its VM if it is a vCPU of another VM. */
static void holder_name(const struct flame *f, const struct vcpu_span *span, char *out, size_t n)
{
	const char *name = model_task_name(f->model, VS_SOURCE_HOST, span->holder_pid);
	uint32_t vm, vcpu;

	if (!*name)
		snprintf(out, n, "pid %d", span->holder_pid);
	else if (!model_vcpu_of_thread(f->model, span->holder_pid, &vm, &vcpu) && vm != span->vm)
		snprintf(out, n, "%s of VM %s", name, model_vm_name(f->model, vm));
	else
		snprintf(out, n, "%s", name);
}

static void runnable_add(struct frames *s, struct flame *f, const struct vcpu_span *span)
{
	char name[192];

	if (span->holder_pid && span->holder_ns > span->pcpu_idle_ns) {
		holder_name(f, span, name, sizeof(name));
		frames_add(s, FOLDED_ANNOTATION, false, "[vCPU runnable: pCPU held by %s]", name);
	} else if (span->pcpu_idle_ns) {
		frames_text(s, FOLDED_ANNOTATION, false, "[vCPU runnable: pCPU idle]");
	} else {
		frames_text(s, FOLDED_ANNOTATION, false, "[vCPU runnable: pCPU held by unknown]");
	}
}

static void exit_add(struct frames *s, const struct vcpu_span *span)
{
	const char *where = span->state == VCPU_KVM ? "KVM" : "VMM";

	if (span->exit.serial)
		frames_add(s, FOLDED_ANNOTATION, false, "[exit %s in %s]",
			   exit_name(span->exit.isa, span->exit.reason).text, where);
	else
		frames_add(s, FOLDED_ANNOTATION, false, "[exit in %s]", where);
}

static void stopped_add(struct frames *s, struct flame *f, const struct vcpu_span *span)
{
	const char *why = "paused by its VMM";

	if (span->signal_number == SIGSTOP && span->signal_pid > 0) {
		frames_add(s, FOLDED_ANNOTATION, false, "[vCPU stopped: SIGSTOP from %s]",
			   model_task_name(f->model, VS_SOURCE_HOST, span->signal_pid));
		return;
	}
	if (span->wait_class == WAIT_FREEZER || span->task_state & VS_TASK_FROZEN)
		why = "frozen with its cgroup";
	else if (span->task_state & VS_TASK_TRACED)
		why = "by a debugger";
	else if (span->signal_number || span->task_state & VS_TASK_STOPPED)
		why = "by a signal";
	else if (span->migrates)
		why = "to complete its migration";
	frames_add(s, FOLDED_ANNOTATION, false, "[vCPU stopped: %s]", why);
}

static void blocked_add(struct frames *s, const struct vcpu_span *span)
{
	if (span->wait_class == WAIT_NONE)
		frames_text(s, FOLDED_ANNOTATION, false, "[vCPU blocked]");
	else
		frames_add(s, FOLDED_ANNOTATION, false, "[vCPU blocked: %s]",
			   wait_class_name(span->wait_class));
}

void frames_vcpu(struct frames *s, struct flame *f, const struct vcpu_span *span, bool where)
{
	switch (span ? span->state : VCPU_STATE_COUNT) {
	case VCPU_GUEST:
		frames_text(s, FOLDED_ANNOTATION, false, "running");
		break;
	case VCPU_KVM:
	case VCPU_VMM:
		frames_text(s, FOLDED_ANNOTATION, false, "running");
		exit_add(s, span);
		break;
	case VCPU_RUNNABLE:
		runnable_add(s, f, span);
		break;
	case VCPU_HALTED:
		frames_text(s, FOLDED_ANNOTATION, false, "[vCPU halted]");
		break;
	case VCPU_BLOCKED:
		blocked_add(s, span);
		if (!where)
			break;
		frames_stack(s, model_stack_of(f->model, span->waiter_stack), false, false,
			     FRAMES_ROOT_FIRST, FRAMES_ALL);
		frames_waker(s, f, span);
		break;
	case VCPU_THROTTLED:
		frames_text(s, FOLDED_ANNOTATION, false, "[vCPU throttled: no CPU quota left]");
		break;
	case VCPU_STOPPED:
		stopped_add(s, f, span);
		break;
	case VCPU_UNKNOWN:
	case VCPU_STATE_COUNT:
		frames_text(s, FOLDED_ANNOTATION, false, "[vCPU unknown: lost or not captured]");
		break;
	}
}

void frames_waker(struct frames *s, struct flame *f, const struct vcpu_span *span)
{
	if (!span->waker_pid && !span->waker_stack)
		return;
	frames_text(s, FOLDED_SEPARATOR, false, "--");
	frames_stack(s, model_stack_of(f->model, span->waker_stack), false, true, FRAMES_LEAF_FIRST,
		     FRAMES_ALL);
	thread_add(s, f, VS_SOURCE_HOST, span->waker_pid, false, true);
}

void frames_charge(struct flame *f, const struct frames *s, int64_t ns)
{
	int err = ns > 0 ? folded_add(f->folded, s->items, s->n, (uint64_t)ns) : 0;

	if (err)
		f->error = err;
}

/* ---- charges that repeat ---- */

static void comm_copy(char *out, const struct flame *f, uint32_t vm, int32_t pid)
{
	const char *name = model_task_name(f->model, vm, pid);

	memcpy(out, name, strnlen(name, CHARGE_COMM_BYTES));
}

void charge_key_init(struct charge_key *key, const struct flame *f, enum charge what, uint32_t vm,
		     int32_t pid)
{
	memset(key, 0, sizeof(*key));
	key->what = what;
	key->vm = vm;
	key->pid = pid;
	comm_copy(key->comm, f, vm, pid);
}

void charge_key_runner(struct charge_key *key, const struct flame *f, int32_t runner)
{
	key->runner = runner;
	if (runner > 0)
		comm_copy(key->runner_comm, f, key->vm, runner);
}

static struct charge_memo *memo_of(struct flame *f, const struct charge_key *key)
{
	const uint32_t parts[] = {key->what,       (uint32_t)key->pid, (uint32_t)key->runner,
				  key->state,      key->context,       key->number,
				  key->exit_reason};
	uint32_t hash = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		hash = (hash ^ parts[i]) * 2654435761u;
	return &f->memos[hash >> (32 - FLAME_MEMO_BITS)];
}

bool flame_charge_again(struct flame *f, const struct charge_key *key, int64_t ns)
{
	const struct charge_memo *memo = memo_of(f, key);

	if (memcmp(&memo->key, key, sizeof(*key)) != 0)
		return false;
	folded_add_again(f->folded, memo->stack, (uint64_t)ns);
	return true;
}

void flame_charge_keep(struct flame *f, const struct charge_key *key)
{
	struct kept_stack *stack = folded_newest(f->folded);

	/* The frame of a VM has a name that can change. */
	if (stack && !f->several_vms)
		*memo_of(f, key) = (struct charge_memo){*key, stack};
}
