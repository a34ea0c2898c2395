/* SPDX-License-Identifier: GPL-2.0-only */
/* User space's use of follow.h: adds and removes followed threads. A removed thread leaves the
 * kernel's hash at once. Its slot is freed at the next drain, after a wait for the programs that
 * may still use it, so that the counts of waiting threads stay exact. */
#include "bpf/backend/capture_host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "bpf/backend/fault_probe.h"
#include "bpf/symbols/kallsyms.h"
#include "bpf/backend/loader.h"
#include "bpf/prog/ring.h"

enum {
	EXIT_THRESHOLD_NS = 1000000,
	BUFFERS_AT_ONCE = 16,
	STACKS_PER_DRAIN = 1024, /* so that a drain ends if stacks come faster than it reads them */
};

struct capture_host {
	struct capture_options options;
	int slots_fd, free_fd, processes_fd, buffers_fd, cells_fd;
	int template_fd; /* of a stack buffer */
	struct vs_followed *followed;
	size_t followed_bytes;
	/* These are variables of the programs. */
	struct vs_bucket *buckets;
	int32_t *waiting;
	const uint64_t *unfollowed, *stacks_dropped, *exits_uncounted;
	struct ring_buffer *stacks;
	struct kallsyms_range plumbing[KALLSYMS_PLUMBING_MAX];
	size_t n_plumbing;
	int *buffer_fds; /* by slot; 0: the slot has no stack buffer */
	struct vs_kept_stack *empty_stack;
	uint32_t *removed; /* slots to clean up at the next drain */
	size_t n_removed;
	const struct capture_sink *sink; /* during a drain */
	unsigned int stacks_left;        /* number of stacks that this drain may still read */
	struct bpf_program *tracepoint_program, *fault_program;
	struct vs_tracepoint *tracepoints; /* a variable of the programs */
	uint8_t *summary;                  /* the same, by VM */
	uint32_t *detail_anywhere;
	uint64_t *wait_threshold_ns;
	bool level_set[VS_VMS_MAX]; /* by VM: its level has been set */
	struct bpf_link *tracepoint_links[VS_TRACEPOINTS_MAX];
	struct fault_probe faults;
};

struct capture_host *capture_host_new(const struct capture_options *options)
{
	struct capture_host *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->options = *options;
	h->template_fd = -1;
	h->buffer_fds = calloc(VS_FOLLOWED_MAX, sizeof(*h->buffer_fds));
	h->empty_stack = calloc(1, sizeof(*h->empty_stack));
	h->removed = calloc(VS_FOLLOWED_MAX, sizeof(*h->removed));
	if (!h->buffer_fds || !h->empty_stack || !h->removed) {
		capture_host_free(h);
		return NULL;
	}
	return h;
}

void capture_host_free(struct capture_host *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < VS_TRACEPOINTS_MAX; i++)
		bpf_link__destroy(h->tracepoint_links[i]);
	fault_probe_detach(&h->faults);
	ring_buffer__free(h->stacks);
	for (size_t slot = 0; h->buffer_fds && slot < VS_FOLLOWED_MAX; slot++) {
		if (h->buffer_fds[slot] > 0)
			close(h->buffer_fds[slot]);
	}
	if (h->followed)
		munmap(h->followed, h->followed_bytes);
	if (h->template_fd >= 0)
		close(h->template_fd);
	free(h->removed);
	free(h->empty_stack);
	free(h->buffer_fds);
	free(h);
}

static int stack_buffer_create(void)
{
	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "vs_stack", sizeof(__u32),
			      sizeof(struct vs_kept_stack), 1, NULL);
}

int capture_host_prepare(struct capture_host *h, struct bpf_object *object)
{
	uint64_t *exit_threshold =
		loader_variable(object, ".rodata", "exit_threshold_ns", sizeof(*exit_threshold));
	bool *with_stacks = loader_variable(object, ".rodata", "with_stacks", sizeof(*with_stacks));
	struct bpf_map *buffers = bpf_object__find_map_by_name(object, "stack_buffers");
	struct bpf_map *stacks = bpf_object__find_map_by_name(object, "stacks");
	struct bpf_map *cgroups = bpf_object__find_map_by_name(object, "watched_cgroups");
	bool *with_cgroups =
		loader_variable(object, ".rodata", "with_cgroups", sizeof(*with_cgroups));

	if (!exit_threshold || !with_stacks || !buffers || !stacks || !cgroups || !with_cgroups)
		return -EINVAL;
	*with_cgroups = !access("/proc/self/cgroup", F_OK);
	if (!*with_cgroups)
		bpf_map__set_type(cgroups, BPF_MAP_TYPE_ARRAY);
	*exit_threshold =
		h->options.exit_threshold_ns ? h->options.exit_threshold_ns : EXIT_THRESHOLD_NS;
	*with_stacks = h->options.stacks;
	if (!h->options.stacks)
		bpf_map__set_max_entries(stacks, (__u32)sysconf(_SC_PAGESIZE));
	if (h->template_fd < 0)
		h->template_fd = stack_buffer_create();
	if (h->template_fd < 0)
		return h->template_fd;
	return bpf_map__set_inner_map_fd(buffers, h->template_fd);
}

static void *global(struct bpf_object *object, void *globals, const char *name, size_t bytes)
{
	const long offset = loader_variable_offset(object, ".bss", name, bytes);

	return offset < 0 ? NULL : (char *)globals + offset;
}

static int stack_arrived(void *context, void *data, size_t bytes)
{
	struct capture_host *h = context;
	const struct vs_stack *s = data;
	struct capture_stack out;
	size_t skip;

	if (bytes < offsetof(struct vs_stack, user) || !h->sink->stack)
		return 0;
	skip = kallsyms_plumbing_frames(h->plumbing, h->n_plumbing, s->kernel, s->n_kernel);
	out = (struct capture_stack){
		.time = s->time,
		.wait_ns = s->wait_ns,
		.tid = s->tid,
		.tgid = s->tgid,
		.explains = s->explains,
		.event = s->event,
		.cpu = s->cpu,
		.role = s->role,
		.sampled = s->sampled,
		.n_kernel = s->n_kernel - skip,
		.kernel = s->kernel + skip,
		.has_user = s->has_user,
		.user.copied_bytes = s->user_bytes,
		.user.copied = s->user,
	};
	memcpy(out.comm, s->comm, sizeof(out.comm));
	memcpy(out.user.regs, s->regs, sizeof(out.user.regs));
	h->sink->stack(h->sink->context, &out);
	return --h->stacks_left ? 0 : -EAGAIN; /* libbpf consumes this one in any case */
}

int capture_host_loaded(struct capture_host *h, struct bpf_object *object, void *globals)
{
	const int followed_fd = bpf_object__find_map_fd_by_name(object, "followed");
	int error = 0;

	h->slots_fd = bpf_object__find_map_fd_by_name(object, "slots");
	h->free_fd = bpf_object__find_map_fd_by_name(object, "free_slots");
	h->processes_fd = bpf_object__find_map_fd_by_name(object, "processes");
	h->cells_fd = bpf_object__find_map_fd_by_name(object, "exit_cells");
	h->exits_uncounted =
		global(object, globals, "exits_uncounted", sizeof(*h->exits_uncounted));
	if (!h->exits_uncounted)
		return -EINVAL;
	h->buffers_fd = bpf_object__find_map_fd_by_name(object, "stack_buffers");
	h->buckets = global(object, globals, "buckets", VS_BUCKETS * sizeof(*h->buckets));
	h->waiting = global(object, globals, "waiting", VS_CPUS_MAX * sizeof(*h->waiting));
	h->unfollowed = global(object, globals, "unfollowed", sizeof(*h->unfollowed));
	h->stacks_dropped = global(object, globals, "stacks_dropped", sizeof(*h->stacks_dropped));
	h->tracepoints = global(object, globals, "tracepoints",
				VS_TRACEPOINTS_MAX * sizeof(*h->tracepoints));
	h->summary = global(object, globals, "summary", VS_VMS_MAX * sizeof(*h->summary));
	h->detail_anywhere =
		global(object, globals, "detail_anywhere", sizeof(*h->detail_anywhere));
	h->wait_threshold_ns =
		global(object, globals, "wait_threshold_ns", sizeof(*h->wait_threshold_ns));
	if (!h->summary || !h->detail_anywhere || !h->wait_threshold_ns)
		return -EINVAL;
	*h->detail_anywhere = 1;
	*h->wait_threshold_ns = h->options.wait_threshold_ns;
	h->tracepoint_program = bpf_object__find_program_by_name(object, "vs_h_tracepoint");
	h->fault_program = bpf_object__find_program_by_name(object, "vs_h_major_fault");
	if (!h->buckets || !h->waiting || !h->unfollowed || !h->stacks_dropped || !h->tracepoints ||
	    !h->tracepoint_program || !h->fault_program)
		return -EINVAL;
	h->followed_bytes = VS_FOLLOWED_MAX * sizeof(*h->followed);
	h->followed =
		mmap(NULL, h->followed_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, followed_fd, 0);
	if (h->followed == MAP_FAILED) {
		h->followed = NULL;
		return -errno;
	}
	for (__u32 slot = 1; slot < VS_FOLLOWED_MAX && !error; slot++)
		error = bpf_map_update_elem(h->free_fd, NULL, &slot, BPF_ANY);
	if (error || !h->options.stacks)
		return error;
	h->n_plumbing = kallsyms_plumbing(h->plumbing);
	h->stacks = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "stacks"),
				     stack_arrived, h, NULL);
	return h->stacks ? 0 : -errno;
}

/* Waits until all programs that began before the call have ended: the kernel does so when a map of
 * maps is updated. Slot 0 is never used. */
static int programs_wait(struct capture_host *h)
{
	const __u32 nobody = 0;

	return bpf_map_update_elem(h->buffers_fd, &nobody, &h->template_fd, BPF_ANY);
}

static void slot_clean(struct capture_host *h, __u32 slot)
{
	struct vs_followed *f = &h->followed[slot];
	const int32_t cpu = __atomic_exchange_n(&f->waiting_cpu, -1, __ATOMIC_RELAXED);

	if (cpu >= 0)
		__atomic_fetch_sub(&h->waiting[cpu & (VS_CPUS_MAX - 1)], 1, __ATOMIC_RELAXED);
	__atomic_store_n(&f->tid, 0, __ATOMIC_RELAXED);
	bpf_map_update_elem(h->free_fd, NULL, &slot, BPF_ANY);
}

int capture_host_drain(struct capture_host *h, const struct capture_sink *sink)
{
	int error = 0;

	if (h->n_removed) {
		error = programs_wait(h);
		if (error)
			return error;
		for (size_t i = 0; i < h->n_removed; i++)
			slot_clean(h, h->removed[i]);
		h->n_removed = 0;
	}
	if (h->stacks) {
		h->sink = sink;
		h->stacks_left = STACKS_PER_DRAIN;
		error = ring_buffer__consume(h->stacks);
		h->sink = NULL;
	}
	return error < 0 && error != -EAGAIN ? error : 0;
}

static void buffers_close(const int *fds, __u32 n)
{
	for (__u32 i = 0; i < n; i++)
		close(fds[i]);
}

/* Makes buffers for `slot` and for the slots that are used next. An update of a map of maps waits
 * for all programs that run (some 10 ms); an update of many entries waits only once (Linux 6.8). */
static int buffers_create(struct capture_host *h, __u32 slot)
{
	__u32 slots[BUFFERS_AT_ONCE], n = 0, done;
	int fds[BUFFERS_AT_ONCE], error = 0;

	for (__u32 next = slot; next && n < BUFFERS_AT_ONCE && !error; next--) {
		if (h->buffer_fds[next] > 0)
			continue;
		fds[n] = stack_buffer_create();
		if (fds[n] < 0)
			error = fds[n];
		else
			slots[n++] = next;
	}
	if (!n)
		return error;
	done = n;
	if (bpf_map_update_batch(h->buffers_fd, slots, fds, &done, NULL)) {
		/* Before Linux 5.15, or without memory, makes only the buffer that is needed now.
		 */
		buffers_close(fds + 1, n - 1);
		n = 1;
		error = bpf_map_update_elem(h->buffers_fd, &slots[0], &fds[0], BPF_ANY);
		if (error) {
			close(fds[0]);
			return error;
		}
	}
	for (__u32 i = 0; i < n; i++)
		h->buffer_fds[slots[i]] = fds[i];
	return 0;
}

/* A slot keeps its buffer, because removing one from the map waits for programs. The slot that was
 * freed last is used first, so there are hardly more buffers than slots were ever in use at once.
 */
static int buffer_ready(struct capture_host *h, __u32 slot)
{
	const struct vs_kept_stack *empty = h->empty_stack;
	const __u32 zero = 0;
	const int fd = h->buffer_fds[slot];

	return fd > 0 ? bpf_map_update_elem(fd, &zero, empty, BPF_ANY) : buffers_create(h, slot);
}

/* Attaches to the tracepoints that exist by now. Their modules may be loaded later than this
 * program. The capture's users learn from the events which tracepoints are not observed. */
static void tracepoints_attach(struct capture_host *h)
{
	const libbpf_print_fn_t print = libbpf_set_print(NULL);
	const int n_cpus = libbpf_num_possible_cpus();
	const struct event_tracepoint *row;
	__u32 types[VS_TRACEPOINTS_MAX] = {0};

	for (size_t i = 0; h->options.tracepoints && (row = tracepoint_row(i)); i++) {
		LIBBPF_OPTS(bpf_tracepoint_opts, options, .bpf_cookie = i);
		struct vs_tracepoint resolved;

		if (h->tracepoint_links[i] ||
		    tracepoint_resolve(row, h->options.tracepoints, &resolved))
			continue;
		types[i] = resolved.type;
		resolved.type = VS_EVENT_NONE;
		h->tracepoints[i] = resolved;
		h->tracepoint_links[i] = bpf_program__attach_tracepoint_opts(
			h->tracepoint_program, row->system, row->name, &options);
	}
	/* The thread may run meanwhile. A VM-entry without its VM-exit would look like a guest that
	 * never stops running. */
	for (size_t i = 0; i < VS_TRACEPOINTS_MAX; i++) {
		if (types[i])
			__atomic_store_n(&h->tracepoints[i].type, types[i], __ATOMIC_RELEASE);
	}
	if (h->options.tracepoints && n_cpus > 0)
		fault_probe_attach(&h->faults, h->fault_program, (size_t)n_cpus);
	libbpf_set_print(print);
}

static uint32_t *bucket_of(const struct capture_host *h, pid_t tid)
{
	return &h->buckets[tid & (VS_BUCKETS - 1)].n;
}

static bool thread_exists(pid_t tid, pid_t tgid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d", tgid, tid);
	return !access(path, F_OK);
}

/* Takes a slot for a thread. Returns -EEXIST if the thread is followed already, in *slot. */
static int slot_take(struct capture_host *h, pid_t tid, pid_t tgid, uint32_t vm, __u32 *slot)
{
	struct vs_followed *f;
	int error;

	if (!bpf_map_lookup_elem(h->slots_fd, &tid, slot))
		return -EEXIST;
	if (bpf_map_lookup_and_delete_elem(h->free_fd, NULL, slot))
		return -ENOSPC;
	f = &h->followed[*slot];
	*f = (struct vs_followed){
		.tid = tid, .tgid = tgid, .vm = vm, .waiting_cpu = -1, .waker = -1};
	__atomic_fetch_add(bucket_of(h, tid), 1, __ATOMIC_RELAXED);
	error = bpf_map_update_elem(h->slots_fd, &tid, slot, BPF_NOEXIST);
	if (!error)
		return 0;
	/* The programs may have begun to follow it meanwhile. */
	__atomic_fetch_sub(bucket_of(h, tid), 1, __ATOMIC_RELAXED);
	slot_clean(h, *slot);
	if (error == -EEXIST && bpf_map_lookup_elem(h->slots_fd, &tid, slot))
		error = -EAGAIN;
	return error;
}

/* Returns -ENOENT if the thread is not followed, or no longer. */
static int thread_remove(struct capture_host *h, pid_t tid)
{
	__u32 slot;
	int error = bpf_map_lookup_elem(h->slots_fd, &tid, &slot);

	if (!error)
		error = bpf_map_delete_elem(h->slots_fd, &tid);
	if (error)
		return error;
	__atomic_fetch_sub(bucket_of(h, tid), 1, __ATOMIC_RELAXED);
	/* Programs that begin later must not find it by its bucket. */
	__atomic_store_n(&h->followed[slot].tid, 0, __ATOMIC_RELAXED);
	h->removed[h->n_removed++] = slot;
	return 0;
}

/* Returns true if user space still follows a thread of this process. Removed threads that wait for
 * their clean-up do not count. */
static bool process_has_threads(const struct capture_host *h, pid_t tgid)
{
	for (__u32 slot = 1; slot < VS_FOLLOWED_MAX; slot++) {
		const struct vs_followed *f = &h->followed[slot];
		__u32 current;

		if (f->tid && f->tgid == tgid && !(f->flags & VS_FOLLOWED_BY_KERNEL) &&
		    !bpf_map_lookup_elem(h->slots_fd, &f->tid, &current) && current == slot)
			return true;
	}
	return false;
}

/* If user space follows no thread of a process any more, stops following its new threads and
 * signals.
 */
static void process_release(struct capture_host *h, pid_t tgid)
{
	if (process_has_threads(h, tgid))
		return;
	bpf_map_delete_elem(h->processes_fd, &tgid);
	programs_wait(h); /* one of the programs may be adding a thread */
	for (__u32 slot = 1; slot < VS_FOLLOWED_MAX; slot++) {
		const pid_t tid = h->followed[slot].tid;

		if (tid && h->followed[slot].tgid == tgid)
			thread_remove(h, tid);
	}
}

int capture_host_add(struct capture_host *h, pid_t tid, pid_t tgid, uint32_t vm, bool is_vcpu)
{
	__u32 slot;
	int error;

	if (tid <= 0 || tgid <= 0)
		return -EINVAL;
	if (is_vcpu)
		tracepoints_attach(h);
	/* First the process: from now on, the programs follow threads that it creates. */
	error = bpf_map_update_elem(h->processes_fd, &tgid, &vm, BPF_ANY);
	if (error)
		return error;
	error = slot_take(h, tid, tgid, vm, &slot);
	if (error && error != -EEXIST) {
		process_release(h, tgid);
		return error;
	}
	h->followed[slot].vm = vm;
	if (is_vcpu && h->options.stacks && !(h->followed[slot].flags & VS_FOLLOWED_VCPU))
		error = buffer_ready(h, slot);
	else
		error = 0;
	if (error)
		goto out;
	__atomic_store_n(&h->followed[slot].flags, is_vcpu ? VS_FOLLOWED_VCPU : 0,
			 __ATOMIC_RELEASE);
	/* It may have ended just before it was followed. Then no program would ever remove it. */
	if (thread_exists(tid, tgid))
		return 0;
	error = -ESRCH;
out:
	thread_remove(h, tid);
	process_release(h, tgid);
	return error;
}

int capture_host_remove(struct capture_host *h, pid_t tid)
{
	pid_t tgid = 0;
	__u32 slot;
	int error;

	if (!bpf_map_lookup_elem(h->slots_fd, &tid, &slot))
		tgid = h->followed[slot].tgid;
	error = thread_remove(h, tid);
	if (tgid)
		process_release(h, tgid);
	return error;
}

int capture_host_level(struct capture_host *h, uint32_t vm, enum capture_level level)
{
	bool detail = false;

	if (vm >= VS_VMS_MAX)
		return -EINVAL;
	h->level_set[vm] = true;
	__atomic_store_n(&h->summary[vm], level == CAPTURE_SUMMARY, __ATOMIC_RELAXED);
	for (size_t i = 0; i < VS_VMS_MAX && !detail; i++)
		detail = h->level_set[i] && !h->summary[i];
	__atomic_store_n(h->detail_anywhere, detail, __ATOMIC_RELAXED);
	return 0;
}

void capture_host_wait_threshold(struct capture_host *h, uint64_t ns)
{
	if (ns < *h->wait_threshold_ns)
		__atomic_store_n(h->wait_threshold_ns, ns, __ATOMIC_RELAXED);
}

static void cell_emit(const struct vs_exit_key *key, const struct vs_exit_cell *from,
		      capture_exit_taker take, void *context)
{
	const struct capture_exit exit = {
		.vm = from->vm,
		.tid = key->tid,
		.isa = (uint32_t)(key->reason >> 32),
		.reason = (uint32_t)key->reason,
		.count = from->count,
		.kernel_ns = from->kernel_ns,
		.vmm_ns = from->vmm_ns,
		.max_ns = from->max_ns,
		.buckets = (const uint64_t *)from->buckets,
	};

	take(context, &exit);
}

int capture_host_exits(struct capture_host *h, capture_exit_taker take, void *context)
{
	struct vs_exit_key key, next;
	struct vs_exit_cell cell;
	bool any = !bpf_map_get_next_key(h->cells_fd, NULL, &key);

	while (any) {
		__u32 slot;

		any = !bpf_map_get_next_key(h->cells_fd, &key, &next);
		if (!bpf_map_lookup_elem(h->cells_fd, &key, &cell)) {
			cell_emit(&key, &cell, take, context);
			if (bpf_map_lookup_elem(h->slots_fd, &key.tid, &slot))
				bpf_map_delete_elem(h->cells_fd, &key);
		}
		key = next;
	}
	return 0;
}

long capture_host_waiting(const struct capture_host *h, size_t cpu)
{
	return __atomic_load_n(&h->waiting[cpu], __ATOMIC_RELAXED);
}

void capture_host_stats(const struct capture_host *h, struct capture_host_stats *out)
{
	*out = (struct capture_host_stats){
		.threads_unfollowed = __atomic_load_n(h->unfollowed, __ATOMIC_RELAXED),
		.stacks_dropped = __atomic_load_n(h->stacks_dropped, __ATOMIC_RELAXED),
		.exits_uncounted = __atomic_load_n(h->exits_uncounted, __ATOMIC_RELAXED),
	};
	for (size_t slot = 1; slot < VS_FOLLOWED_MAX; slot++)
		out->threads += h->followed[slot].tid != 0;
	for (size_t cpu = 0; cpu < VS_CPUS_MAX; cpu++)
		out->threads_waiting += h->waiting[cpu];
	for (size_t i = 0; i < VS_TRACEPOINTS_MAX; i++)
		out->tracepoints += h->tracepoint_links[i] != NULL;
}
