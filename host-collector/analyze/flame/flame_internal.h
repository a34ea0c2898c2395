/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Interfaces between the files of the flame graph analysis: flame.c tracks the states of guest
 * tasks, flame_lane.c what the vCPU did at the same time, flame_vcpu.c the vCPU threads;
 * flame_frames.c builds stacks.
 */
#ifndef FLAME_FLAME_INTERNAL_H
#define FLAME_FLAME_INTERNAL_H

#include "host-collector/analyze/flame/flame.h"
#include "host-collector/model/exit_name.h"
#include "host-collector/tables/exits.h"
#include "host-collector/util/lru.h"

enum { FLAME_TASKS_MAX = 8192 };

/* Kernel and user stack of a guest task, by the ids of its TASK_STACK events. */
struct flame_guest_stack {
	int32_t tgid;
	uint32_t kernel, user; /* 0: none */
};

struct flame_task {
	uint32_t vm;
	int32_t pid;
	enum flame_task_state state;
	bool seen, gone;
	uint16_t cpu;         /* guest CPU on which it runs or waits, or did so last */
	struct host_ns since; /* begin of the state */
	int64_t wall_ns, counted_ns, unknown_ns;
	struct flame_guest_stack wait; /* stack where it went to sleep */
};

/* Events of a lane other than spans. */
enum mark_type { MARK_RUN, MARK_WAIT, MARK_WAIT_OVER, MARK_SAMPLE };
struct mark {
	struct host_ns t;
	int32_t pid;
	enum mark_type type;
	bool preempted; /* only for MARK_WAIT */
	struct flame_guest_stack stack;
};

/* A ring that grows up to a limit. */
struct ring {
	uint8_t *items;
	size_t item_bytes;
	uint32_t capacity, head, count;
};

/* Time of the current task since its last sample, by what its vCPU did. */
struct pending {
	struct vcpu_span span;
	bool observed; /* `span` is valid */
	struct guest_span context;
	int64_t ns;
};
enum { PENDING_MAX = 64 };

struct lane_waiter {
	int32_t pid;
	bool preempted;
};

/* A guest CPU and its vCPU, whose events are joined in time order. */
struct lane {
	uint32_t vm, vcpu;
	bool has_vcpu, has_guest;
	struct ring spans, contexts, marks; /* of struct vcpu_span, guest_span, mark */
	bool begun;
	struct host_ns at; /* time up to which the lane is joined */
	struct host_ns spans_until, contexts_until, marked;
	int32_t runner; /* pid of the current task; -1: unknown */
	size_t n_waiters, waiters_capacity;
	struct lane_waiter *waiters;
	bool sampled; /* `sample` belongs to the current run of the task */
	struct flame_guest_stack sample;
	size_t n_pending;
	struct pending pending[PENDING_MAX];
	int32_t tid;
	int64_t wall_ns, counted_ns, unknown_ns; /* time of the vCPU */
};

struct flame_vm {
	uint32_t vm;
	bool has_guest;
	struct host_ns guest_begin;
	struct host_ns lost; /* begin of the newest gap in its events */
	int32_t current[VS_CPUS_MAX];
	struct host_ns last[VS_CPUS_MAX]; /* time of the newest event of each guest CPU */
	int32_t tids[VS_CPUS_MAX];        /* tids of the vCPU threads that were seen */
	struct lane *by_vcpu[VS_CPUS_MAX];
	struct lane *orphans[VS_CPUS_MAX]; /* lanes of guest CPUs whose vCPU is unknown */
};

/* A stack that is being built, root first. */
struct frames {
	size_t n;
	struct folded_frame items[FOLDED_DEPTH_MAX];
	size_t text_used;
	char text[4096]; /* memory of the names that frames_add() formats */
};

/* The frames of a charge, if they are only short texts. Equal keys have equal frames. All bytes are
 * set, and there is no padding. */
enum { CHARGE_COMM_BYTES = 16 };
struct charge_key {
	enum charge { CHARGE_RUNS = 1, CHARGE_WAITS, CHARGE_SLEEPS } what;
	uint32_t vm;
	int32_t pid, runner;
	uint32_t state;           /* enum vcpu_state or enum flame_task_state */
	uint32_t context, number; /* of the guest CPU: enum guest_cpu_state */
	uint32_t exit_isa, exit_reason;
	bool vector, observed, in_exit, preempted;
	char comm[CHARGE_COMM_BYTES], runner_comm[CHARGE_COMM_BYTES];
};

_Static_assert(sizeof(struct charge_key) == 10 * sizeof(uint32_t) + 2 * CHARGE_COMM_BYTES,
	       "keys are compared as bytes");

/* A stack that was charged before. */
struct charge_memo {
	struct charge_key key; /* what 0: none */
	struct kept_stack *stack;
};
enum { FLAME_MEMO_BITS = 8 };

struct flame {
	struct model *model;
	struct flame_options options;
	struct folded *folded;
	/* For FLAME_ONCPU of vCPUs and FLAME_LOOKS; replaces `folded` if it contains stacks. */
	struct folded *samples;
	struct lru index;
	struct flame_task *tasks;
	size_t n_vms;
	struct flame_vm *vms[MODEL_VMS_MAX];
	struct exits *exits; /* for FLAME_EXITS */
	struct flame_coverage coverage;
	bool several_vms, said_vms;
	bool naming; /* roots are being named */
	struct folded *named;
	uint64_t named_total_ns; /* total of the set from which `named` was made */
	struct frames scratch;
	struct charge_memo memos[1 << FLAME_MEMO_BITS]; /* by the hash of the key */
	int error;
};

/* ---- flame_frames.c ---- */

enum frames_order { FRAMES_ROOT_FIRST, FRAMES_LEAF_FIRST };
enum frames_part { FRAMES_USER = 1, FRAMES_KERNEL = 2, FRAMES_ALL = 3 };

/* Empties the stack that is being built and returns it. There is only one. */
struct frames *frames_begin(struct flame *f);
/* Adds a frame. `name` is borrowed until the stack is charged. */
void frames_text(struct frames *s, enum folded_kind kind, bool waker, const char *name);
void frames_add(struct frames *s, enum folded_kind kind, bool waker, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Adds the frames of a stack; none if it is NULL. */
void frames_stack(struct frames *s, const struct stack *stack, bool guest, bool waker,
		  enum frames_order order, enum frames_part part);
/* Adds the VM, if there are several, then the thread. */
void frames_task(struct frames *s, struct flame *f, uint32_t vm, int32_t pid, bool root);
void frames_thread(struct frames *s, struct flame *f, uint32_t vm, int32_t tid);
/* Adds a host thread that is not the root. */
void frames_thread_again(struct frames *s, struct flame *f, int32_t tid);
/* Adds the frames of a guest stack. The agent sends their names after the event that refers to
 * the stack, seconds later on a slow guest. For a stack whose names have not arrived yet, adds a
 * FOLDED_LATER frame, which flame_frames_name() replaces. `otherwise`, unless empty, is the
 * annotation of a stack whose names never arrive, for example because the channel had no room
 * for them. */
void frames_guest_stack(struct frames *s, struct flame *f, uint32_t vm,
			const struct flame_guest_stack *stack, const char *otherwise);
/* Adds what a vCPU did: `running`, or why and where it did not run. NULL: unknown. `where`: adds
 * the host's stacks, too. */
void frames_vcpu(struct frames *s, struct flame *f, const struct vcpu_span *span, bool where);
/* Adds `--`, the waker's stack and the waker; nothing if there is no waker. */
void frames_waker(struct frames *s, struct flame *f, const struct vcpu_span *span);
/* Copies `in` to `out` and fills in the roots' names and the stacks that were unknown when they
 * were charged. Returns 0 or -ENOMEM. */
int flame_frames_name(struct flame *f, struct folded *in, struct folded *out);
void frames_charge(struct flame *f, const struct frames *s, int64_t ns);
/* Building the frames of a charge costs much more than adding it, and most charges repeat one
 * before. So callers first look for the stack of an equal key. */
/* Begins a key: sets the task, and clears all other members. */
void charge_key_init(struct charge_key *key, const struct flame *f, enum charge what, uint32_t vm,
		     int32_t pid);
/* Sets the task that runs on the CPU. */
void charge_key_runner(struct charge_key *key, const struct flame *f, int32_t runner);
/* Charges `ns` to the stack of an equal key. Returns false if it is not known. */
bool flame_charge_again(struct flame *f, const struct charge_key *key, int64_t ns);
/* Notes that frames_charge() has just charged frames with this key. */
void flame_charge_keep(struct flame *f, const struct charge_key *key);

/* ---- flame_lane.c ---- */

/* Return the lane of a guest CPU or vCPU; on ENOMEM return NULL and set f->error. */
struct lane *lane_of_cpu(struct flame *f, struct flame_vm *vm, uint16_t cpu);
struct lane *lane_of_vcpu(struct flame *f, struct flame_vm *vm, uint32_t vcpu);
void lane_free(struct lane *l);
void lane_span(struct flame *f, struct lane *l, const struct vcpu_span *span);
void lane_context(struct flame *f, struct lane *l, const struct guest_span *span);
void lane_mark(struct flame *f, struct lane *l, const struct mark *mark);
void lane_finish(struct flame *f, struct lane *l, struct host_ns end);

/* ---- flame_vcpu.c ---- */

/* Turns a span of a vCPU into stacks of its thread. */
void flame_vcpu_span(struct flame *f, const struct vcpu_span *span);
/* Counts an event of the host if it is a sample, or with FLAME_LOOKS a look; ignores others. */
void flame_host_sample(struct flame *f, const struct host_instant *instant);
/* Counts an event of a guest if it is a look; ignores others. */
void flame_guest_look(struct flame *f, const struct guest_instant *i);
/* Adds the time that VM-exits took in KVM and the VMM since the last call. */
void flame_exits_charge(struct flame *f);

/* ---- flame.c ---- */

struct flame_vm *flame_vm_get(struct flame *f, uint32_t vm); /* NULL on ENOMEM */
struct flame_task *flame_task_find(struct flame *f, uint32_t vm, int32_t pid);
bool flame_wants_vm(const struct flame *f, uint32_t vm);
bool flame_wants_task(const struct flame *f, uint32_t vm, int32_t pid);
bool flame_wants_state(const struct flame *f, unsigned state);
/* Notes that `ns` of a task's time are in a stack or were filtered out. */
void flame_task_counted(struct flame *f, uint32_t vm, int32_t pid, int64_t ns, bool known);

#endif
