/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How flame.c (what each guest task does), flame_lane.c (what its vCPU does meanwhile),
 * flame_vcpu.c (what a vCPU thread does) and flame_frames.c (stacks) work together.
 */
#ifndef FLAME_FLAME_INTERNAL_H
#define FLAME_FLAME_INTERNAL_H

#include "host-collector/tables/exits.h"
#include "host-collector/analyze/flame/flame.h"
#include "host-collector/util/lru.h"

enum { FLAME_TASKS_MAX = 8192 };

/* Two stacks of a guest's task, by the ids of its TASK_STACK events. */
struct flame_guest_stack {
	int32_t tgid;
	uint32_t kernel, user; /* 0 none */
};

struct flame_task {
	uint32_t vm;
	int32_t pid;
	enum flame_task_state state;
	bool seen, gone;
	uint16_t cpu;         /* runs or waits there, or did so last */
	struct host_ns since; /* in this state */
	int64_t wall_ns, counted_ns, unknown_ns;
	struct flame_guest_stack wait; /* where it went to sleep */
};

/* What happens on a lane besides its spans. */
enum mark_type { MARK_RUN, MARK_WAIT, MARK_WAIT_OVER, MARK_SAMPLE };
struct mark {
	struct host_ns t;
	int32_t pid;
	enum mark_type type;
	bool preempted; /* MARK_WAIT */
	struct flame_guest_stack stack;
};

/* Grows up to a limit. */
struct ring {
	uint8_t *items;
	size_t item_bytes;
	uint32_t capacity, head, count;
};

/* What the task that runs has used since the last sample, by what its vCPU did. */
struct pending {
	struct vcpu_span span;
	bool observed; /* `span` is one */
	struct guest_span context;
	int64_t ns;
};
enum { PENDING_MAX = 64 };

struct lane_waiter {
	int32_t pid;
	bool preempted;
};

/* A guest CPU and the vCPU that runs it: the two joined in time order. */
struct lane {
	uint32_t vm, vcpu;
	bool has_vcpu, has_guest;
	struct ring spans, contexts, marks; /* struct vcpu_span, guest_span, mark */
	bool begun;
	struct host_ns at; /* joined up to here */
	struct host_ns spans_until, contexts_until, marked;
	int32_t runner; /* -1 unknown */
	size_t n_waiters, waiters_capacity;
	struct lane_waiter *waiters;
	bool sampled; /* in this stay */
	struct flame_guest_stack sample;
	size_t n_pending;
	struct pending pending[PENDING_MAX];
	int32_t tid;
	int64_t wall_ns, counted_ns, unknown_ns; /* of the vCPU's time */
};

struct flame_vm {
	uint32_t vm;
	bool has_guest;
	struct host_ns guest_begin;
	struct host_ns lost; /* the newest gap in its events begins */
	int32_t current[VS_CPUS_MAX];
	struct host_ns last[VS_CPUS_MAX]; /* the newest event of a guest CPU */
	int32_t tids[VS_CPUS_MAX];        /* of the vCPUs' threads, as far as seen */
	struct lane *by_vcpu[VS_CPUS_MAX];
	struct lane *orphans[VS_CPUS_MAX]; /* guest CPUs whose vCPU is not known */
};

/* A stack under construction, root first. */
struct frames {
	size_t n;
	struct folded_frame items[FOLDED_DEPTH_MAX];
	size_t text_used;
	char text[4096]; /* of the names made here */
};

struct flame {
	struct model *model;
	struct flame_options options;
	struct folded *folded;
	struct folded *samples; /* for FLAME_ONCPU of vCPUs, instead of `folded` if there are any */
	struct lru index;
	struct flame_task *tasks;
	size_t n_vms;
	struct flame_vm *vms[MODEL_VMS_MAX];
	struct exits *exits; /* for FLAME_EXITS */
	struct flame_coverage coverage;
	bool several_vms, said_vms;
	bool naming; /* roots get their names now */
	struct folded *named;
	uint64_t named_total_ns; /* of what it was made from */
	struct frames scratch;
	int error;
};

/* ---- flame_frames.c ---- */

enum frames_order { FRAMES_ROOT_FIRST, FRAMES_LEAF_FIRST };
enum frames_part { FRAMES_USER = 1, FRAMES_KERNEL = 2, FRAMES_ALL = 3 };

/* Empty; there is one, for one use at a time. */
struct frames *frames_begin(struct flame *f);
/* A name that outlives the stack. */
void frames_text(struct frames *s, enum folded_kind kind, bool waker, const char *name);
void frames_add(struct frames *s, enum folded_kind kind, bool waker, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Nothing for NULL. */
void frames_stack(struct frames *s, const struct stack *stack, bool guest, bool waker,
		  enum frames_order order, enum frames_part part);
/* The VM, if there are several, then the thread. */
void frames_task(struct frames *s, struct flame *f, uint32_t vm, int32_t pid, bool root);
void frames_thread(struct frames *s, struct flame *f, uint32_t vm, int32_t tid);
/* A host's thread that is not the root. */
void frames_thread_again(struct frames *s, struct flame *f, int32_t tid);
/* An agent tells a stack after the event that names it, seconds after on a slow guest: what is not
 * told yet is filled in by flame_frames_name(). `otherwise`, if not empty, stands for one that is
 * never told; it may have found no room on its way. */
void frames_guest_stack(struct frames *s, struct flame *f, uint32_t vm,
			const struct flame_guest_stack *stack, const char *otherwise);
/* What a vCPU did: `running`, or why it did not and where. NULL: nobody knows. `where`: with the
 * host's stacks. */
void frames_vcpu(struct frames *s, struct flame *f, const struct vcpu_span *span, bool where);
/* `--`, then the waker's stack, then the waker; nothing if there is none. */
void frames_waker(struct frames *s, struct flame *f, const struct vcpu_span *span);
/* `in` to `out`, with what was not known yet when it was charged: roots' names and stacks. 0,
 * -ENOMEM. */
int flame_frames_name(struct flame *f, struct folded *in, struct folded *out);
void frames_charge(struct flame *f, const struct frames *s, int64_t ns);

/* ---- flame_lane.c ---- */

/* The lane of a guest CPU or of a vCPU; NULL on ENOMEM, which f->error keeps. */
struct lane *lane_of_cpu(struct flame *f, struct flame_vm *vm, uint16_t cpu);
struct lane *lane_of_vcpu(struct flame *f, struct flame_vm *vm, uint32_t vcpu);
void lane_free(struct lane *l);
void lane_span(struct flame *f, struct lane *l, const struct vcpu_span *span);
void lane_context(struct flame *f, struct lane *l, const struct guest_span *span);
void lane_mark(struct flame *f, struct lane *l, const struct mark *mark);
void lane_finish(struct flame *f, struct lane *l, struct host_ns end);

/* ---- flame_vcpu.c ---- */

/* A span of a vCPU, as the model tells it: becomes stacks of its thread. */
void flame_vcpu_span(struct flame *f, const struct vcpu_span *span);
/* Of any event of the host: takes what is a sample. */
void flame_host_sample(struct flame *f, const struct host_instant *instant);
/* What VM-exits cost on a pCPU since it was last called. */
void flame_exits_charge(struct flame *f);

/* ---- flame.c ---- */

struct flame_vm *flame_vm_get(struct flame *f, uint32_t vm); /* NULL on ENOMEM */
struct flame_task *flame_task_find(struct flame *f, uint32_t vm, int32_t pid);
bool flame_wants_vm(const struct flame *f, uint32_t vm);
bool flame_wants_task(const struct flame *f, uint32_t vm, int32_t pid);
bool flame_wants_state(const struct flame *f, unsigned state);
/* Of a task's time, `ns` have gone into a stack, or are left out on purpose. */
void flame_task_counted(struct flame *f, uint32_t vm, int32_t pid, int64_t ns, bool known);

#endif
