/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Captures a host. The programs are attached once, for any number of VMs. They emit an event if it
 * concerns a followed thread (events of classic tracepoints: see enum vs_tracepoint_scope), and a
 * task switch also if a followed thread waits, runnable, for the CPU on which it happens; so the
 * switches show which task holds that CPU. A TASK_NAME event precedes the first event of the
 * scheduler that names a task.
 *
 * Cost of a switch that concerns no followed thread: two loads from a table of counters and one
 * from the CPU's waiter count.
 */
#include "bpf/prog/emit.h"
#include "bpf/prog/exits.h"
#include "bpf/prog/follow.h"
#include "bpf/prog/kept_stack.h"
#include "bpf/prog/look.h"
#include "bpf/prog/tracepoint.h"
#include "bpf/prog/user_hit.h"
#include "bpf/prog/watch.h"

char LICENSE[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VS_FOLLOWED_MAX);
	__type(key, __s32);
	__type(value, __u32);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, VS_FOLLOWED_MAX);
	__type(key, __u32);
	__type(value, struct vs_followed);
} followed SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, VS_FOLLOWED_MAX);
	__uint(key_size, 0);
	__uint(value_size, sizeof(__u32));
} free_slots SEC(".maps");

/* Processes of followed threads: tgid -> VM. Their signals and new threads are of interest. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __s32);
	__type(value, __u32);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __s32);
	__type(value, struct vs_announced);
} announced SEC(".maps");

/* Block requests under way -> who issued them. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct vs_request);
	__type(value, __s32);
} requests SEC(".maps");

/* Slot -> a one-element array with the struct vs_kept_stack of that vCPU thread. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, VS_FOLLOWED_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} stack_buffers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 21);
} stacks SEC(".maps");

const volatile bool with_stacks;
/* 0: no samples. */
const volatile __u64 sample_period_ns;

/* Changed while the programs run. */
volatile __u64 wait_threshold_ns;
/* The window of time in which stacks of short waits were taken last, and how many. */
__u64 short_window;
__u32 short_taken;
/* The same for stacks of hits, by slot; the last one is of all slots together. */
struct {
	__u64 window;
	__u32 taken, reserved;
} hit_windows[VS_USER_SLOTS_MAX + 1];
__u32 hit_stack_last; /* number of the last stack of a hit */
/* Most tasks are dismissed, and most followed threads are found, without a hash lookup. */
struct vs_bucket buckets[VS_BUCKETS];
/* Followed threads that wait, runnable, for each CPU. */
__s32 waiting[VS_CPUS_MAX];
/* New threads of followed processes that found no free slot; stacks that found no room. */
__u64 unfollowed, stacks_dropped;
struct vs_tracepoint tracepoints[VS_TRACEPOINTS_MAX];
/* By VM: 1 if its level is summary. Whether the hits of other tasks are wanted by any VM. */
__u8 summary[VS_VMS_MAX];
__u32 detail_anywhere;

static __always_inline struct vs_followed *followed_of(__s32 tid, __u32 *slot_out)
{
	volatile struct vs_bucket *bucket = &buckets[tid & (VS_BUCKETS - 1)];
	struct vs_followed *f;
	__u32 *slot;

	if (!tid || !bucket->n) /* 0: every CPU's idle task, and a free slot */
		return NULL;
	*slot_out = bucket->slot;
	f = bpf_map_lookup_elem(&followed, slot_out);
	if (f && *(volatile __s32 *)&f->tid == tid)
		return f;
	slot = bpf_map_lookup_elem(&slots, &tid);
	if (!slot)
		return NULL;
	bucket->slot = *slot_out = *slot;
	return bpf_map_lookup_elem(&followed, slot);
}

/* Moves a thread between the counts of waiters; cpu -1: it waits no longer. The atomic exchange
 * gives each increment exactly one decrement, in whatever order programs on several CPUs run. */
static __always_inline void wait_on(struct vs_followed *f, __s32 cpu)
{
	const __s32 before = __sync_lock_test_and_set(&f->waiting_cpu, cpu);

	if (cpu >= 0)
		__sync_fetch_and_add(&waiting[cpu & (VS_CPUS_MAX - 1)], 1);
	if (before >= 0)
		__sync_fetch_and_add(&waiting[before & (VS_CPUS_MAX - 1)], -1);
}

__u64 announcements; /* number of names that were emitted */

static __always_inline void announce_as(__s32 tid, __s32 tgid, const char *comm)
{
	struct vs_announced name = {.tgid = tgid}, *known;

	if (!tid) /* every CPU's idle task */
		return;
	bpf_probe_read_kernel_str(name.comm, sizeof(name.comm), comm);
	known = bpf_map_lookup_elem(&announced, &tid);
	if (known && known->comm[0] == name.comm[0] && known->comm[1] == name.comm[1] &&
	    known->tgid == tgid)
		return;
	bpf_map_update_elem(&announced, &tid, &name, BPF_ANY);
	__sync_fetch_and_add(&announcements, 1);
	emit(VS_EVENT_TASK_NAME, tid, tgid, name.comm[0], name.comm[1]);
}

/* The names that announce() saw last, by tid modulo VS_RECENT_NAMES. */
struct vs_announced recent_names[VS_RECENT_NAMES];

static __always_inline struct vs_announced *recent_name(__s32 tid)
{
	return &recent_names[tid & (VS_RECENT_NAMES - 1)];
}

static __always_inline void announce(struct task_struct *p)
{
	const __s32 tid = VS_READ(p, pid), tgid = VS_READ(p, tgid);
	struct vs_announced *recent = recent_name(tid);
	__u64 name[2];

	task_name_read(name, p);
	if (recent->tid == tid && recent->tgid == tgid && recent->comm[0] == name[0] &&
	    recent->comm[1] == name[1])
		return;
	announce_as(tid, tgid, p->comm);
	*recent = (struct vs_announced){{name[0], name[1]}, tgid, tid};
}

static __always_inline void announce_current(void)
{
	announce(vs_current_task());
}

static __always_inline struct vs_kept_stack *stack_buffer(__u32 slot)
{
	void *array = bpf_map_lookup_elem(&stack_buffers, &slot);
	__u32 zero = 0;

	return array ? bpf_map_lookup_elem(array, &zero) : NULL;
}

/* Keeps the stack of the thread in `slot`, which goes to sleep and is still the current task. */
static __always_inline void stack_keep(void *ctx, __u32 slot, __u64 now, __s32 tid, __s32 tgid)
{
	struct vs_kept_stack *k = stack_buffer(slot);
	struct vs_stack *s;

	if (!k)
		return;
	kept_stack_fill(ctx, k);
	s = &k->stack;
	s->time = now;
	s->tid = tid;
	s->tgid = tgid;
	s->explains = tid;
	s->cpu = (__u16)bpf_get_smp_processor_id();
	s->role = VS_STACK_WAITER;
}

/* Returns true if the host may take the stack of one more short wait in this window. */
static __always_inline bool short_room(__u64 now)
{
	const __u64 window = now >> VS_SHORT_WINDOW_LOG2_NS;

	/* The rest of the ring is reserved for long waits, in case user space reads it late. */
	if (bpf_ringbuf_query(&stacks, 0 /* BPF_RB_AVAIL_DATA */) > VS_SHORT_RING_BYTES)
		return false;
	if (short_window != window) {
		short_window = window;
		short_taken = 0;
	}
	return __sync_fetch_and_add(&short_taken, 1) < VS_SHORT_PER_WINDOW;
}

/* Returns true if the stack of this sleep is sent as a sample of short ones. */
static __always_inline bool short_sampled(struct vs_followed *f, __u64 now, __u64 wait_ns)
{
	return f->halt != VS_HALT_SLEEP && short_wait_due(&f->short_ns, wait_ns) && short_room(now);
}

/* Sends the kept stack of `p`, in `slot`, which runs again after a sleep of wait_ns. */
static __always_inline void stack_send_kept(__u32 slot, struct task_struct *p, __u64 wait_ns,
					    bool sampled)
{
	struct vs_kept_stack *k = stack_buffer(slot);
	struct vs_stack *s = &k->stack;
	__u64 bytes;

	if (!k || s->role != VS_STACK_WAITER)
		return;
	s->wait_ns = wait_ns;
	s->sampled = sampled;
	if (wait_ns < wait_threshold_ns)
		s->role = VS_STACK_SHORT;
	bpf_probe_read_kernel_str(s->comm, sizeof(s->comm), p->comm);
	bytes = s->user_bytes;
	if (bytes > VS_STACK_USER_BYTES)
		bytes = VS_STACK_USER_BYTES;
	bytes += __builtin_offsetof(struct vs_stack, user);
	if (bpf_ringbuf_output(&stacks, s, bytes, BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&stacks_dropped, 1);
	s->role = 0;
}

/* Sends the stack of the current task, which wakes `woken` after a sleep of wait_ns. */
static __always_inline void stack_send_waker(void *ctx, __s32 woken, __u64 now, __u64 wait_ns)
{
	struct task_struct *current = vs_current_task();
	struct vs_stack *s = bpf_ringbuf_reserve(&stacks, sizeof(*s), 0);

	if (!s) {
		__sync_fetch_and_add(&stacks_dropped, 1);
		return;
	}
	stack_fill_kernel(ctx, s);
	stack_fill_user(s, false);
	s->sampled = 0;
	s->event = 0;
	s->time = now;
	s->wait_ns = wait_ns;
	s->tid = VS_READ(current, pid);
	s->tgid = VS_READ(current, tgid);
	s->explains = woken;
	s->cpu = (__u16)bpf_get_smp_processor_id();
	s->role = VS_STACK_WAKER;
	bpf_probe_read_kernel_str(s->comm, sizeof(s->comm), current->comm);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
}

static __always_inline bool is_summary(const struct vs_followed *f)
{
	return summary[f->vm & (VS_VMS_MAX - 1)];
}

/* Frees the slot of a followed thread that has ended, or a slot that was not used. */
static __always_inline void slot_free(struct vs_followed *f, __u32 slot)
{
	f->tid = 0;
	bpf_map_push_elem(&free_slots, &slot, BPF_ANY);
}

static __always_inline void unfollow(struct vs_followed *f, __s32 tid, __u32 slot)
{
	if (bpf_map_delete_elem(&slots, &tid))
		return; /* user space has removed the thread already */
	__sync_fetch_and_add(&buckets[tid & (VS_BUCKETS - 1)].n, -1);
	wait_on(f, -1);
	slot_free(f, slot);
}

VS_TRACEPOINT(sched_switch)
int BPF_PROG(vs_h_switch, bool preempted, struct task_struct *prev, struct task_struct *next)
{
	const __s32 out = VS_READ(prev, pid), in = VS_READ(next, pid);
	const __u32 cpu = bpf_get_smp_processor_id();
	__u32 out_slot = 0, in_slot = 0, state;
	bool concerns;
	struct vs_followed *f_out = followed_of(out, &out_slot);
	struct vs_followed *f_in = followed_of(in, &in_slot);
	struct vs_event e = {};
	__u64 now;

	concerns = f_out;
	/* Prevents the compiler from testing both pointers at once by OR, which the verifier
	 * forbids. */
	asm volatile("" : "+r"(concerns));
	if (!concerns && !f_in && !*(volatile __s32 *)&waiting[cpu & (VS_CPUS_MAX - 1)])
		return 0;
	state = switch_state(ctx, preempted, prev);
	if (f_out && f_out->flags & VS_FOLLOWED_VCPU && is_summary(f_out)) {
		struct vs_exit *x = bpf_map_lookup_elem(&exits, &out_slot);

		if (x)
			exit_emit(x, out, bpf_ktime_get_ns());
	}
	announce(prev);
	announce(next);
	ev_set_sched_switch_out_prio(&e, VS_READ(prev, prio));
	ev_set_sched_switch_in_prio(&e, VS_READ(next, prio));
	emit(VS_EVENT_SCHED_SWITCH, out, in, state, e.arg1);
	now = bpf_ktime_get_ns();
	if (f_out) {
		f_out->off_time = now;
		f_out->off_state = state;
		/* The thread still counts as waiting if the kernel hid the switch to it. */
		if (state == 0 || f_out->waiting_cpu >= 0)
			wait_on(f_out, state ? -1 : (__s32)cpu);
		if (state & VS_TASK_DEAD)
			unfollow(f_out, out, out_slot);
		else if (state && with_stacks && f_out->flags & VS_FOLLOWED_VCPU)
			stack_keep(ctx, out_slot, now, out, f_out->tgid);
		if (state && f_out->halt == VS_HALT_EXIT)
			f_out->halt = VS_HALT_SLEEP;
	}
	if (f_in) {
		const __u64 wait_ns = now - f_in->off_time;

		wait_on(f_in, -1);
		if (with_stacks && f_in->flags & VS_FOLLOWED_VCPU && f_in->off_time &&
		    f_in->off_state) {
			const bool sampled = short_sampled(f_in, now, wait_ns);

			if (sampled || wait_ns >= wait_threshold_ns)
				stack_send_kept(in_slot, next, wait_ns, sampled);
		}
		/* A later waking that finds the thread still on its CPU ends no wait. */
		f_in->off_state = 0;
		if (f_in->halt == VS_HALT_SLEEP)
			f_in->halt = VS_HALT_NONE;
	}
	return 0;
}

/* Sends where the current task is. explains, wait_ns: for the event (proto/event.h). event: id of a
 * chosen event, or 0. Returns false if there is no room. */
static __always_inline bool stack_send_here(void *ctx, __u16 role, __s32 explains, __u64 wait_ns,
					    __u32 event)
{
	const __u64 both = bpf_get_current_pid_tgid();
	struct task_struct *current = bpf_get_current_task_btf();
	struct vs_stack *s = bpf_ringbuf_reserve(&stacks, sizeof(*s), 0);

	if (!s) {
		__sync_fetch_and_add(&stacks_dropped, 1);
		return false;
	}
	s->time = bpf_ktime_get_ns();
	stack_fill_kernel(ctx, s);
	stack_fill_user(s, false);
	s->sampled = 0;
	s->event = event;
	s->wait_ns = wait_ns;
	s->tid = (__s32)both;
	s->explains = explains;
	s->tgid = (__s32)(both >> 32);
	s->cpu = (__u16)bpf_get_smp_processor_id();
	s->role = role;
	bpf_probe_read_kernel_str(s->comm, sizeof(s->comm), current->comm);
	bpf_ringbuf_submit(s, BPF_RB_NO_WAKEUP);
	return true;
}

/* Sends where the current task is, if it is followed. */
static __always_inline void sample_send(void *ctx, __u16 role, bool explains, __u64 period_ns)
{
	const __s32 tid = current_tid();
	__u32 slot = 0;

	if (followed_of(tid, &slot))
		stack_send_here(ctx, role, explains ? tid : 0, period_ns, 0);
}

/* Attached to a timer of each CPU if samples are wanted: where a followed thread is now. */
SEC("perf_event")
int vs_h_sample(struct bpf_perf_event_data *ctx)
{
	sample_send(ctx, VS_STACK_SAMPLE, true, sample_period_ns);
	return 0;
}

/* Attached to a timer of each CPU if looks are wanted. */
SEC("perf_event")
int vs_l_look(struct bpf_perf_event_data *ctx)
{
	const __u64 period_ns = look_tick();

	if (period_ns)
		sample_send(ctx, VS_STACK_LOOK, false, period_ns);
	return 0;
}

/* Runs in the waker's context. sched_wakeup may run on the CPU of the woken task instead. */
VS_TRACEPOINT(sched_waking)
int BPF_PROG(vs_h_waking, struct task_struct *p)
{
	const __s32 tid = VS_READ(p, pid);
	__u32 slot = 0;
	struct vs_followed *f = followed_of(tid, &slot);
	__u64 now, wait_ns;

	if (!f)
		return 0;
	f->waker = current_tid();
	announce_current();
	now = bpf_ktime_get_ns();
	wait_ns = now - f->off_time;
	if (with_stacks && f->flags & VS_FOLLOWED_VCPU && f->off_time && f->off_state &&
	    f->waiting_cpu < 0 && wait_ns >= wait_threshold_ns)
		stack_send_waker(ctx, tid, now, wait_ns);
	return 0;
}

static __always_inline void woken(struct task_struct *p, __u16 type)
{
	const __s32 tid = VS_READ(p, pid);
	const __u32 cpu = task_cpu(p);
	__u32 slot = 0;
	struct vs_followed *f = followed_of(tid, &slot);
	__s32 waker;

	if (!f)
		return;
	waker = f->waker;
	f->waker = -1;
	announce(p);
	if (waker < 0) {
		announce_current();
		waker = current_tid();
	}
	emit(type, tid, waker, cpu, (__u32)VS_READ(p, prio));
	/* Nothing changes if it was woken before it left its CPU, or for the second time. */
	if (!VS_READ(p, on_cpu) && f->waiting_cpu < 0)
		wait_on(f, (__s32)cpu);
}

VS_TRACEPOINT(sched_wakeup)
int BPF_PROG(vs_h_wakeup, struct task_struct *p)
{
	woken(p, VS_EVENT_SCHED_WAKEUP);
	return 0;
}

VS_TRACEPOINT(sched_wakeup_new)
int BPF_PROG(vs_h_wakeup_new, struct task_struct *p)
{
	woken(p, VS_EVENT_SCHED_WAKEUP_NEW);
	return 0;
}

VS_TRACEPOINT(sched_migrate_task)
int BPF_PROG(vs_h_migrate, struct task_struct *p, int dest_cpu)
{
	const __s32 tid = VS_READ(p, pid);
	__u32 slot = 0;
	struct vs_followed *f = followed_of(tid, &slot);

	if (!f)
		return 0;
	announce(p);
	announce_current();
	emit(VS_EVENT_SCHED_MIGRATE, tid, current_tid(), task_cpu(p), (__u32)dest_cpu);
	if (f->waiting_cpu >= 0)
		wait_on(f, dest_cpu);
	return 0;
}

VS_TRACEPOINT(signal_generate)
int BPF_PROG(vs_h_signal, int number, void *info, struct task_struct *p)
{
	const __s32 tgid = VS_READ(p, tgid);

	if (!bpf_map_lookup_elem(&processes, &tgid))
		return 0;
	announce(p);
	announce_current();
	emit(VS_EVENT_SIGNAL, VS_READ(p, pid), current_tid(), (__u32)number, (__u32)tgid);
	return 0;
}

/* A new thread of a followed process is followed, too. */
VS_TRACEPOINT(task_newtask)
int BPF_PROG(vs_h_newtask, struct task_struct *p)
{
	const __s32 tid = VS_READ(p, pid), tgid = VS_READ(p, tgid);
	__u32 *vm = bpf_map_lookup_elem(&processes, &tgid);
	struct vs_followed *f;
	__u32 slot;

	if (!vm)
		return 0;
	if (bpf_map_pop_elem(&free_slots, &slot)) {
		__sync_fetch_and_add(&unfollowed, 1);
		return 0;
	}
	f = bpf_map_lookup_elem(&followed, &slot);
	if (!f)
		return 0;
	f->tgid = tgid;
	f->vm = *vm;
	f->flags = VS_FOLLOWED_BY_KERNEL;
	f->waiting_cpu = -1;
	f->off_state = 0;
	f->off_time = 0;
	f->waker = -1;
	f->halt = VS_HALT_NONE;
	f->short_ns = 0;
	f->tid = tid;
	__sync_fetch_and_add(&buckets[tid & (VS_BUCKETS - 1)].n, 1);
	if (bpf_map_update_elem(&slots, &tid, &slot, BPF_NOEXIST)) {
		__sync_fetch_and_add(&buckets[tid & (VS_BUCKETS - 1)].n, -1);
		__sync_fetch_and_add(&unfollowed, 1);
		slot_free(f, slot);
		return 0;
	}
	announce(p);
	return 0;
}

VS_TRACEPOINT(task_rename)
int BPF_PROG(vs_h_rename, struct task_struct *p, const char *comm)
{
	const __s32 tid = VS_READ(p, pid);
	__u32 slot = 0;

	if (followed_of(tid, &slot)) {
		announce_as(tid, VS_READ(p, tgid), comm);
		recent_name(tid)->tid = 0;
	}
	return 0;
}

/* A thread that exits stays followed until its last switch. */
VS_TRACEPOINT(sched_process_exit)
int BPF_PROG(vs_h_exit, struct task_struct *p)
{
	const __s32 tid = VS_READ(p, pid), tgid = VS_READ(p, tgid);
	__u32 slot = 0;

	if (followed_of(tid, &slot)) {
		announce(p);
		emit(VS_EVENT_TASK_EXIT, tid, tgid, 0, 0);
	}
	/* After the last thread, another process may get this process id. */
	if (bpf_map_lookup_elem(&processes, &tgid) && !VS_READ_VIA(p, signal, live.counter))
		bpf_map_delete_elem(&processes, &tgid);
	return 0;
}

static __always_inline __u64 field_read(const void *ctx, const struct vs_tracepoint_field *f)
{
	__u64 bytes = f->bytes, value = 0, unused;

	/* Prevents the compiler from checking another register than it passes on. */
	asm volatile("" : "+r"(bytes));
	if (!bytes || bytes > sizeof(value))
		return 0;
	unused = 64 - 8 * bytes;
	bpf_probe_read_kernel(&value, bytes, ctx + f->offset);
	if (f->is_signed)
		value = (__u64)((__s64)(value << unused) >> unused);
	return value << f->shift;
}

static __always_inline __u64 fields_read(const void *ctx, const struct vs_tracepoint_field *f)
{
	return field_read(ctx, &f[0]) | field_read(ctx, &f[1]);
}

static __always_inline void tracepoint_hit(void *ctx)
{
	const struct vs_tracepoint *t;
	struct vs_followed *f;
	const __s32 tid = current_tid();
	struct vs_request request;
	struct vs_event e = {};
	__s32 other = 0;
	__u32 slot = 0;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie))
		return; /* before Linux 5.15; nothing is attached with a cookie there */
	t = &tracepoints[bpf_get_attach_cookie(ctx) & (VS_TRACEPOINTS_MAX - 1)];
	if (!*(volatile __u32 *)&t->type)
		return; /* other programs are not attached yet */
	f = followed_of(tid, &slot);
	if (!f && (t->scope == VS_SCOPE_FOLLOWED || t->scope == VS_SCOPE_BEGIN))
		return;
	/* Hits of VS_SCOPE_ANYONE may concern any VM, whatever the level of the VM in whose thread
	 * they happen. */
	if (!t->always && !(f && t->scope != VS_SCOPE_ANYONE ? !is_summary(f)
							     : *(volatile __u32 *)&detail_anywhere))
		return;
	/* Most VM-entries become no event. Then their fields are not read. */
	if (t->type == VS_EVENT_KVM_ENTRY && f && is_summary(f) && exit_end(f->vm, slot, tid))
		return;
	e.arg0 = fields_read(ctx, t->arg0);
	e.arg1 = fields_read(ctx, t->arg1);
	if (f && t->type == VS_EVENT_KVM_EXIT)
		f->halt = exit_is_hlt(&e) ? VS_HALT_EXIT : VS_HALT_NONE;
	if (t->always && f && is_summary(f)) {
		exit_summarise(t->type, slot, tid, &e);
		return;
	}
	request = request_of(&e);
	if (t->scope == VS_SCOPE_BEGIN)
		bpf_map_update_elem(&requests, &request, &tid, BPF_ANY);
	if (t->scope == VS_SCOPE_END) {
		const __s32 *beginner = bpf_map_lookup_elem(&requests, &request);

		if (!beginner)
			return;
		other = *beginner;
		bpf_map_delete_elem(&requests, &request);
	}
	emit((__u16)t->type, tid, other, e.arg0, e.arg1);
}

/* Attached to each tracepoint of a table in userspace, whose index is the cookie. */
SEC("tp")
int vs_h_tracepoint(void *ctx)
{
	tracepoint_hit(ctx);
	return 1; /* 0 would hide the hit from users of perf */
}

/* Returns true if a slot that takes hits of some tasks only takes those of the current task. A slot
 * without VMs takes none. */
static __always_inline bool user_slot_concerns(const struct vs_user_slot *slot, __s32 tid,
					       bool *is_followed)
{
	__u32 followed_slot = 0;
	const struct vs_followed *f = followed_of(tid, &followed_slot);

	*is_followed = f != NULL;
	if (f && slot->vms >> (f->vm & 63) & 1)
		return true;
	return slot->vms && current_is_watched();
}

static __always_inline bool hit_window_take(__u32 i, __u64 window, __u32 most)
{
	if (hit_windows[i].window != window) {
		hit_windows[i].window = window;
		hit_windows[i].taken = 0;
	}
	return __sync_fetch_and_add(&hit_windows[i].taken, 1) < most;
}

/* Returns true if the host may take the stack of one more hit in this window. */
static __always_inline bool hit_room(__u32 slot)
{
	const __u64 window = bpf_ktime_get_ns() >> VS_SHORT_WINDOW_LOG2_NS;

	return bpf_ringbuf_query(&stacks, 0 /* BPF_RB_AVAIL_DATA */) <= VS_HIT_RING_BYTES &&
	       hit_window_take(slot & (VS_USER_SLOTS_MAX - 1), window, VS_HIT_PER_WINDOW) &&
	       hit_window_take(VS_USER_SLOTS_MAX, window, VS_HIT_ALL_PER_WINDOW);
}

/* Takes the stack of the hit that user_emit() emits next. Returns its number, or 0 if none was
 * taken.
 */
static __noinline __u32 hit_stack_take(void *ctx, __u32 slot, __u32 event)
{
	__u32 number;

	if (!with_stacks || !hit_room(slot))
		return 0;
	number = __sync_fetch_and_add(&hit_stack_last, 1) + 1;
	return stack_send_here(ctx, VS_STACK_HIT, 0, number, event) ? number : 0;
}

/* Announces the current task, unless the last hit of the event on this CPU did that and no name was
 * emitted since, which might be a new name of this task. */
static __always_inline void user_announce(struct vs_user_state *s, struct task_struct *current)
{
	const __u64 ids = (__u64)(__u32)VS_READ(current, tgid) << 32 | (__u32)VS_READ(current, pid);
	__u64 name[2];

	task_name_read(name, current);
	if (s->announced_ids == ids && s->announced_comm[0] == name[0] &&
	    s->announced_comm[1] == name[1] &&
	    s->announcements == *(volatile __u64 *)&announcements)
		return;
	announce(current);
	s->announced_ids = ids;
	s->announced_comm[0] = name[0];
	s->announced_comm[1] = name[1];
	s->announcements = *(volatile __u64 *)&announcements;
}

static __always_inline void user_hit_here(void *ctx)
{
	const struct vs_user_slot *slot = user_slot_here();
	struct vs_user_state *state;
	struct task_struct *current;
	bool is_followed = false;
	__u32 stack = 0;
	__s32 tid;

	if (!slot || (!slot->untraced && !user_slot_concerns(slot, current_tid(), &is_followed)))
		return;
	if (!user_hit_is_wanted(ctx))
		return;
	current = vs_current_task();
	tid = VS_READ(current, pid);
	state = user_state();
	if (!state || !user_is_within(slot, state, tid))
		return;
	/* Followed threads have their names from the scheduler's events. */
	if (!is_followed)
		user_announce(state, current);
	if (USER_NUMBER(stack))
		stack = hit_stack_take(ctx, (__u32)USER_NUMBER(slot), slot->id);
	user_emit(ctx, slot, tid, stack);
}
VS_USER_PROGRAMS

/* Attached to every CPU's count of page faults that had to wait for a device. */
SEC("perf_event")
int vs_h_major_fault(struct fault_context *ctx)
{
	const __s32 tid = current_tid();
	__u32 slot = 0;

	if (followed_of(tid, &slot))
		emit(VS_EVENT_MAJOR_FAULT, tid, 0, ctx->address, FAULT_INSTRUCTION(ctx));
	return 0;
}
