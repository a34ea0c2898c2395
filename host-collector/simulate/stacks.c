// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/codec.h"

#define RUN_IOCTL                                                                                  \
	"kvm_arch_vcpu_ioctl_run", "kvm_vcpu_ioctl", "__x64_sys_ioctl", "do_syscall_64",           \
		"entry_SYSCALL_64_after_hwframe"
#define SYSCALL        "do_syscall_64", "entry_SYSCALL_64_after_hwframe"
#define VCPU_THREAD    "kvm_cpu_exec", "kvm_vcpu_thread_fn", "qemu_thread_start", "start_thread"
#define IOCTL_USER     "ioctl", "kvm_vcpu_ioctl", VCPU_THREAD
#define DEVICE_WRITE   "flatview_write_continue", "flatview_write", "address_space_rw", VCPU_THREAD
#define FAULT_IN_GUEST "kvm_tdp_page_fault", "kvm_mmu_page_fault", "vmx_handle_exit", RUN_IOCTL
#define PIN_PAGE       "get_user_pages_unlocked", "hva_to_pfn", "kvm_faultin_pfn", "direct_page_fault"

const struct sim_stack sim_stack_halt = {{"schedule", "kvm_vcpu_block", "kvm_vcpu_halt", RUN_IOCTL},
					 {IOCTL_USER}};
const struct sim_stack sim_stack_signal_stop = {
	{"schedule", "do_signal_stop", "get_signal", "arch_do_signal_or_restart",
	 "exit_to_user_mode_prepare", "syscall_exit_to_user_mode", SYSCALL},
	{IOCTL_USER}};
const struct sim_stack sim_stack_ptrace_stop = {{"schedule", "ptrace_stop", "do_jobctl_trap",
						 "get_signal", "arch_do_signal_or_restart",
						 "exit_to_user_mode_prepare", SYSCALL},
						{IOCTL_USER}};
const struct sim_stack sim_stack_freezer = {{"schedule", "do_freezer_trap", "get_signal",
					     "arch_do_signal_or_restart",
					     "exit_to_user_mode_prepare", SYSCALL},
					    {IOCTL_USER}};
const struct sim_stack sim_stack_qemu_idle = {
	{"schedule", "futex_wait_queue", "futex_wait", "do_futex", "__x64_sys_futex", SYSCALL},
	{"__futex_abstimed_wait_common", "pthread_cond_wait", "qemu_cond_wait_impl",
	 "qemu_wait_io_event", "kvm_vcpu_thread_fn", "qemu_thread_start", "start_thread"}};
const struct sim_stack sim_stack_big_lock = {
	{"schedule", "futex_wait_queue", "futex_wait", "do_futex", "__x64_sys_futex", SYSCALL},
	{"__lll_lock_wait", "pthread_mutex_lock", "qemu_mutex_lock_impl", "bql_lock_impl",
	 "prepare_mmio_access", DEVICE_WRITE}};
const struct sim_stack sim_stack_pflash_write = {
	{"schedule", "io_schedule", "folio_wait_bit_common", "folio_wait_writeback",
	 "__filemap_fdatawait_range", "file_write_and_wait_range", "ext4_sync_file",
	 "__x64_sys_fdatasync", SYSCALL},
	{"fdatasync", "qemu_fdatasync", "handle_aiocb_flush", "blk_pwrite", "pflash_update",
	 "pflash_write", "memory_region_write_accessor", DEVICE_WRITE}};
const struct sim_stack sim_stack_block_sync = {
	{"schedule", "schedule_hrtimeout_range_clock", "poll_schedule_timeout", "do_sys_poll",
	 "__x64_sys_ppoll", SYSCALL},
	{"ppoll", "qemu_poll_ns", "fdmon_poll_wait", "aio_poll", "bdrv_poll_co", "blk_pwrite",
	 "nvram_write", "memory_region_write_accessor", DEVICE_WRITE}};
const struct sim_stack sim_stack_swap_in = {
	{"schedule", "io_schedule", "folio_wait_bit_common", "__folio_lock_or_retry",
	 "do_swap_page", "handle_mm_fault", "__get_user_pages", PIN_PAGE, FAULT_IN_GUEST},
	{IOCTL_USER}};
const struct sim_stack sim_stack_userfault = {{"schedule", "handle_userfault", "do_anonymous_page",
					       "handle_mm_fault", "__get_user_pages", PIN_PAGE,
					       FAULT_IN_GUEST},
					      {IOCTL_USER}};
const struct sim_stack sim_stack_mmap_lock = {
	{"schedule", "rwsem_down_read_slowpath", "down_read", PIN_PAGE, FAULT_IN_GUEST},
	{IOCTL_USER}};
const struct sim_stack sim_stack_split_lock = {
	{"schedule", "schedule_timeout", "__down_interruptible", "down_interruptible",
	 "split_lock_warn", "handle_guest_split_lock", "handle_exception_nmi", "vmx_handle_exit",
	 RUN_IOCTL},
	{IOCTL_USER}};
const struct sim_stack sim_stack_reclaim = {
	{"schedule", "schedule_timeout", "reclaim_throttle", "shrink_node", "do_try_to_free_pages",
	 "try_to_free_pages", "__alloc_pages_slowpath.constprop.0", "__alloc_pages",
	 "do_anonymous_page", "handle_mm_fault", PIN_PAGE, FAULT_IN_GUEST},
	{IOCTL_USER}};
const struct sim_stack sim_stack_memcg = {
	{"schedule", "io_schedule", "folio_wait_bit_common", "shrink_folio_list", "shrink_lruvec",
	 "shrink_node", "try_to_free_mem_cgroup_pages", "try_charge_memcg", "charge_memcg",
	 "do_anonymous_page", PIN_PAGE, FAULT_IN_GUEST},
	{IOCTL_USER}};

const struct sim_stack sim_stack_unlock = {
	{"try_to_wake_up", "wake_up_q", "futex_wake", "do_futex", "__x64_sys_futex", SYSCALL},
	{"__lll_lock_wake", "pthread_mutex_unlock", "qemu_mutex_unlock_impl", "main_loop_wait",
	 "qemu_main_loop", "main"}};
const struct sim_stack sim_stack_interrupt = {
	{"try_to_wake_up", "autoremove_wake_function", "__wake_up_common", "blk_mq_end_request",
	 "blk_done_softirq", "handle_softirqs", "common_interrupt"},
	{NULL}};
const struct sim_stack sim_stack_uffd_copy = {
	{"try_to_wake_up", "__wake_up_common", "userfaultfd_ioctl", "__x64_sys_ioctl", SYSCALL},
	{"ioctl", "qemu_ufd_copy_ioctl", "postcopy_place_page", "ram_load_postcopy",
	 "postcopy_ram_listen_thread", "qemu_thread_start", "start_thread"}};
const struct sim_stack sim_stack_cont = {{"try_to_wake_up", "signal_wake_up_state",
					  "prepare_signal", "send_signal_locked", "__x64_sys_kill",
					  SYSCALL},
					 {"kill", "main"}};

static void add(struct sim_stacks *s, struct sim_stack_record r)
{
	struct sim_capture *c = s->capture;

	if (!r.stack || s->n_pending == SIM_STACKS_PENDING || engine_chance(c->o.engine, c->o.loss))
		return;
	r.t = c->o.engine->now;
	s->pending[s->n_pending++] = r;
}

void sim_stacks_waiter(struct sim_stacks *s, int32_t tid, const struct sim_stack *stack,
		       int64_t wait_ns)
{
	add(s, (struct sim_stack_record){.wait_ns = wait_ns,
					 .pid = tid,
					 .explains = tid,
					 .role = VS_STACK_WAITER,
					 .stack = stack});
}

void sim_stacks_waker(struct sim_stacks *s, int32_t waker, int32_t woken,
		      const struct sim_stack *stack, int64_t wait_ns)
{
	add(s, (struct sim_stack_record){.wait_ns = wait_ns,
					 .pid = waker,
					 .explains = woken,
					 .role = VS_STACK_WAKER,
					 .stack = stack});
}

struct recorded_stack {
	enum sim_kernel host;
	const struct sim_stack *kind;
	const char *kernel, *user; /* functions, separated by spaces; "?FILE" is not known */
};

static const struct recorded_stack recorded[] = {
#define RECORDED(HOST, KIND, KERNEL, USER) {SIM_KERNEL_##HOST, &sim_stack_##KIND, KERNEL, USER},
#include "host-collector/simulate/recorded_stacks.def"
#undef RECORDED
};

enum { RECORDED_COUNT = sizeof(recorded) / sizeof(recorded[0]) };

/* One of those that this host's kernel shows for this kind; NULL: none was recorded. */
static const struct recorded_stack *recorded_find(struct sim_stacks *s,
						  const struct sim_stack *kind)
{
	const struct recorded_stack *found = NULL;
	int64_t n = 0;

	for (size_t i = 0; i < RECORDED_COUNT; i++) {
		if (recorded[i].host == s->kernel && recorded[i].kind == kind &&
		    engine_between(s->capture->o.engine, 0, n++) == 0)
			found = &recorded[i];
	}
	return found;
}

static void frame_add(struct message_stack *m, const char *symbol, size_t len, bool kernel)
{
	struct message_stack_frame *f;
	bool known = *symbol != '?';
	const char *module = kernel ? "kernel" : "qemu-system-x86_64";

	if (m->n_frames == VS_STACK_FRAMES_MAX)
		return;
	f = &m->frames[m->n_frames++];
	memset(f, 0, sizeof(*f));
	if (known) {
		snprintf(f->symbol, sizeof(f->symbol), "%.*s", (int)len, symbol);
		snprintf(f->module, sizeof(f->module), "%s", module);
	} else {
		snprintf(f->module, sizeof(f->module), "%.*s", (int)len - 1, symbol + 1);
	}
	f->offset = 16 + m->n_frames;
	f->kernel = kernel;
}

static void frames_add(struct message_stack *m, const char *const *symbols, bool kernel)
{
	for (size_t i = 0; i < SIM_STACK_FRAMES && symbols[i]; i++)
		frame_add(m, symbols[i], strlen(symbols[i]), kernel);
}

static void frames_split(struct message_stack *m, const char *symbols, bool kernel)
{
	while (*symbols) {
		size_t len = strcspn(symbols, " ");

		frame_add(m, symbols, len, kernel);
		symbols += len + strspn(symbols + len, " ");
	}
}

static uint32_t identify(struct sim_stacks *s, const struct sim_stack_record *r)
{
	const struct recorded_stack *found;
	size_t id = 0;

	while (id < s->n_known && (s->known[id].stack != r->stack || s->known[id].pid != r->pid))
		id++;
	if (id < s->n_known)
		return (uint32_t)id + 1;
	if (id == SIM_STACKS_KNOWN)
		return 0;
	s->known[s->n_known].stack = r->stack;
	s->known[s->n_known++].pid = r->pid;
	s->message.id = (uint32_t)id + 1;
	s->message.pid = r->pid;
	s->message.n_frames = 0;
	found = recorded_find(s, r->stack);
	if (found) {
		frames_split(&s->message, found->kernel, true);
		frames_split(&s->message, found->user, false);
	} else {
		frames_add(&s->message, r->stack->kernel, true);
		frames_add(&s->message, r->stack->user, false);
	}
	sim_capture_message(s->capture, FRAME_STACK,
			    message_stack_pack(&s->message, &s->capture->payload));
	return s->message.id;
}

static int by_time(const void *a, const void *b)
{
	const struct vs_event *x = a, *y = b;

	return (x->time > y->time) - (x->time < y->time);
}

/* Inside the wait, just before its end, but never before what was promised. */
static uint64_t event_time(const struct sim_capture *c, const struct sim_stack_record *r)
{
	int64_t margin = 20000 + r->wait_ns / 1000;
	uint64_t t = sim_clock_tsc(&c->o.clock, r->t > margin ? r->t - margin : 0);

	return t > c->promised ? t : c->promised;
}

void sim_stacks_flush(struct sim_stacks *s)
{
	struct sim_capture *c = s->capture;
	struct vs_event events[SIM_STACKS_PENDING];
	struct batch b = {.cpu = VS_CPU_COLLECTOR, .events = events};

	for (size_t i = 0; i < s->n_pending; i++) {
		const struct sim_stack_record *r = &s->pending[i];
		struct vs_event *e = &events[b.n_events];
		uint32_t id = identify(s, r);

		if (!id)
			continue;
		b.n_events++;
		*e = (struct vs_event){
			.time = event_time(c, r),
			.cpu = VS_CPU_COLLECTOR,
			.type = VS_EVENT_STACK,
			.pid = r->pid,
			.pid2 = r->explains,
		};
		ev_set_stack_id(e, id);
		ev_set_stack_role(e, r->role);
		ev_set_stack_wait_ns(e, (uint64_t)r->wait_ns);
	}
	s->n_pending = 0;
	if (!b.n_events)
		return;
	qsort(events, b.n_events, sizeof(events[0]), by_time);
	for (size_t i = 0; i < b.n_events; i++)
		events[i].seq = s->seq++;
	s->named += b.n_events;
	b.emitted = s->named;
	b.watermark = batcher_promise(c->batcher);
	sim_capture_message(c, FRAME_BATCH, batch_encode(c->encoder, &b, &c->payload));
}
