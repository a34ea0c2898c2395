/* SPDX-License-Identifier: GPL-2.0-only */
/* The BPF backend: opens and closes a capture and reads its rings. Every online CPU has a ring
 * (ring.h) that is mapped here and read in place. A CPU that comes online later gets a ring at the
 * next drain after its first event. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/backend/capture_bpf.h"
#include "bpf/backend/capture_request.h"
#include "bpf/backend/looks.h"
#include "bpf/backend/user_probes.h"
#include "bpf/capture/online_cpus.h"
#include "guest_btf.skel.h"
#include "guest_raw.skel.h"
#include "host_btf.skel.h"
#include "host_raw.skel.h"

enum {
	GUEST_RING_BYTES = 4 << 20,
	HOST_RING_BYTES = 8 << 20,
	WAIT_THRESHOLD_NS = 20000000,
	/* An array element may not exceed 4 MiB on 6.1. */
	RING_SLOTS_MAX = 65536,
};

static struct capture_bpf *bpf_of(struct capture *c)
{
	return (struct capture_bpf *)c;
}

static const struct capture_bpf *bpf_of_const(const struct capture *c)
{
	return (const struct capture_bpf *)c;
}

static size_t size_page_align(size_t n)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (n + page - 1) / page * page;
}

static int ring_map_create(const struct capture_bpf *c)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(
		BPF_MAP_TYPE_ARRAY, "vs_ring", sizeof(__u32),
		(__u32)(sizeof(struct vs_ring) + c->ring_slots * sizeof(struct vs_event)), 1,
		&options);
}

static int cpu_add_ring(struct capture_bpf *c, __u32 cpu)
{
	struct capture_cpu *slot = &c->cpus[cpu];
	const int fd = ring_map_create(c);
	void *ring;
	int error;

	if (fd < 0)
		return fd;
	ring = mmap(NULL, c->ring_map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (ring == MAP_FAILED) {
		error = -errno;
		close(fd);
		return error;
	}
	error = bpf_map_update_elem(c->rings_fd, &cpu, &fd, BPF_ANY);
	if (error) {
		munmap(ring, c->ring_map_bytes);
		close(fd);
		return error;
	}
	slot->map_fd = fd;
	slot->ring = ring;
	ring_reader_init(&slot->reader, ring, c->ring_slots);
	return 0;
}

/* Makes rings for all online CPUs that have none. */
static int cpus_add_rings(struct capture_bpf *c)
{
	bool online[VS_CPUS_MAX];
	int error = online_cpus_read(online, c->n_cpus);

	for (size_t i = 0; i < c->n_cpus && error >= 0; i++) {
		if (online[i] && c->cpus[i].map_fd < 0)
			error = cpu_add_ring(c, (__u32)i);
	}
	return error < 0 ? error : 0;
}

static const char *sample_program(const struct capture_bpf *c)
{
	return c->host ? "vs_h_sample" : "vs_sample";
}

/* Called before the load. Sets the size of the rings, which the verifier must know, and a template
 * for their map. */
static int objects_prepare(void *context, struct bpf_object *object)
{
	struct capture_bpf *c = context;
	struct bpf_map *rings = bpf_object__find_map_by_name(object, "rings");
	uint64_t *mask = loader_variable(object, ".rodata", "ring_mask", sizeof(*mask));
	uint64_t *limit = loader_variable(object, ".rodata", "ring_limit", sizeof(*limit));
	int error;

	if (!rings || !mask || !limit)
		return -EINVAL;
	*mask = c->ring_slots - 1;
	*limit = c->ring_slots - VS_RING_SLACK;
	if (c->ring_template_fd < 0)
		c->ring_template_fd = ring_map_create(c);
	if (c->ring_template_fd < 0)
		return c->ring_template_fd;
	error = bpf_map__set_inner_map_fd(rings, c->ring_template_fd);
	if (!error && c->host)
		error = capture_host_prepare(c->host, object);
	else if (!error)
		error = guest_stacks_prepare(object, c->options.sample_hz_max > 0,
					     c->options.sample_except);
	if (!error)
		error = sample_timers_prepare(object, sample_program(c), c->options.sample_hz_max);
	return error;
}

/* Called after the load, before the first program runs. */
static int objects_loaded(void *context, struct bpf_object *object)
{
	struct capture_bpf *c = context;
	const long ringless = loader_variable_offset(object, ".bss", "ringless",
						     VS_CPUS_MAX * sizeof(*c->ringless));
	const long emitting =
		loader_variable_offset(object, ".bss", "emitting", sizeof(*c->emitting));
	struct bpf_map *globals = loader_section(object, ".bss");
	int error;

	if (ringless < 0 || emitting < 0 || !globals)
		return -EINVAL;
	c->globals_bytes = size_page_align(bpf_map__value_size(globals));
	c->globals = mmap(NULL, c->globals_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
			  bpf_map__fd(globals), 0);
	if (c->globals == MAP_FAILED) {
		c->globals = NULL;
		return -errno;
	}
	c->ringless = (uint32_t *)((char *)c->globals + ringless);
	c->emitting = (uint32_t *)((char *)c->globals + emitting);
	c->rings_fd = bpf_object__find_map_fd_by_name(object, "rings");
	error = c->host ? 0 : capture_request_find(c, object);
	if (!error && c->request && c->options.sample_hz)
		c->request->sample_period_ns = 1000000000 / c->options.sample_hz;
	if (!error)
		error = cpus_add_rings(c);
	if (!error && c->host)
		error = capture_host_loaded(c->host, object, c->globals);
	if (!error)
		error = user_probes_new(&c->programs, c->globals, &c->probes);
	if (!error)
		error = looks_new(&c->programs, c->globals, &c->looks);
	return error;
}

/* Returns the number of slots per CPU: a power of two, because the programs use it as a mask. */
static size_t ring_slots_for(size_t bytes, size_t n_rings)
{
	const size_t wanted = bytes / n_rings / sizeof(struct vs_event);
	size_t slots = VS_RING_SLOTS_MIN;

	while (slots * 2 <= wanted && slots < RING_SLOTS_MAX)
		slots *= 2;
	return slots;
}

static int capture_init(struct capture_bpf *c, char *why, size_t why_bytes)
{
	const int possible = possible_cpus_read(why, why_bytes);
	bool online[VS_CPUS_MAX];
	int n_online;

	if (possible < 0)
		return possible;
	c->n_cpus = (size_t)possible;
	n_online = online_cpus_read(online, c->n_cpus);
	if (n_online < 0) {
		snprintf(why, why_bytes, "cannot read /sys/devices/system/cpu/online: %s",
			 strerror(-n_online));
		return n_online;
	}
	c->cpus = calloc(c->n_cpus, sizeof(*c->cpus));
	if (!c->cpus) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n_cpus; i++)
		c->cpus[i].map_fd = -1;
	c->ring_slots = ring_slots_for(c->options.ring_bytes, (size_t)n_online);
	c->ring_map_bytes =
		size_page_align(sizeof(struct vs_ring) + c->ring_slots * sizeof(struct vs_event));
	return 0;
}

static void capture_bpf_close(struct capture *base)
{
	struct capture_bpf *c = bpf_of(base);

	if (!c)
		return;
	if (c->tasks_fd >= 0)
		close(c->tasks_fd);
	bpf_link__destroy(c->tasks_link);
	sample_timers_detach(&c->timers);
	looks_free(c->looks);
	guest_stacks_close(c->guest_stacks);
	user_probes_free(c->probes);
	loader_unload(&c->programs);
	capture_host_free(c->host);
	for (size_t i = 0; c->cpus && i < c->n_cpus; i++) {
		if (c->cpus[i].map_fd < 0)
			continue;
		munmap(c->cpus[i].ring, c->ring_map_bytes);
		close(c->cpus[i].map_fd);
	}
	if (c->globals)
		munmap(c->globals, c->globals_bytes);
	if (c->ring_template_fd >= 0)
		close(c->ring_template_fd);
	free(c->cpus);
	free(c);
}

static long rings_drain(struct capture_bpf *c, const struct capture_sink *sink)
{
	long total = 0;

	for (size_t i = 0; i < c->n_cpus; i++) {
		struct ring_reader *reader = &c->cpus[i].reader;
		struct ring_run runs[2];

		if (c->cpus[i].map_fd < 0)
			continue;
		total += (long)ring_reader_take(reader, c->ringless[i], runs);
		for (int k = 0; k < 2; k++) {
			if (runs[k].n)
				sink->events(sink->context, (uint16_t)i, runs[k].events, runs[k].n);
		}
		ring_reader_release(reader);
	}
	return total;
}

/* Names some more of the tasks that existed before the capture, as many as certainly fit into a
 * ring. The iterator's program emits the names and writes one byte per task, which are counted
 * here. */
static void tasks_step(struct capture_bpf *c)
{
	char bytes[1024];
	const size_t fits = c->ring_slots / 4;
	const ssize_t n = read(c->tasks_fd, bytes, fits < sizeof(bytes) ? fits : sizeof(bytes));

	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	close(c->tasks_fd);
	c->tasks_fd = -1;
}

static int capture_bpf_name_tasks(struct capture *base)
{
	struct capture_bpf *c = bpf_of(base);
	int fd;

	if (!c->tasks_link)
		return -ENOTSUP;
	fd = bpf_iter_create(bpf_link__fd(c->tasks_link));
	if (fd < 0)
		return fd;
	if (c->tasks_fd >= 0)
		close(c->tasks_fd);
	c->tasks_fd = fd;
	return 0;
}

/* A CPU came online: its events were counted as lost so far. */
static int rings_for_new_cpus(struct capture_bpf *c)
{
	uint64_t ringless = 0;

	for (size_t i = 0; i < c->n_cpus; i++)
		ringless += c->ringless[i];
	if (ringless == c->ringless_seen)
		return 0;
	c->ringless_seen = ringless;
	return cpus_add_rings(c);
}

static long capture_bpf_drain(struct capture *base, const struct capture_sink *sink)
{
	struct capture_bpf *c = bpf_of(base);
	int error = rings_for_new_cpus(c);
	long total;

	if (error)
		return error;
	if (c->request)
		capture_request_settle(c);
	total = rings_drain(c, sink);
	while (c->tasks_fd >= 0) {
		tasks_step(c);
		total += rings_drain(c, sink);
	}
	if (c->host)
		error = capture_host_drain(c->host, sink);
	return error ? error : total;
}

static int capture_bpf_add_thread(struct capture *base, pid_t tid, pid_t tgid, uint32_t vm,
				  bool is_vcpu)
{
	struct capture_bpf *c = bpf_of(base);

	return c->host ? capture_host_add(c->host, tid, tgid, vm, is_vcpu) : -ENOTSUP;
}

static int capture_bpf_remove_thread(struct capture *base, pid_t tid)
{
	struct capture_bpf *c = bpf_of(base);

	return c->host ? capture_host_remove(c->host, tid) : -ENOTSUP;
}

static int capture_bpf_event_add(struct capture *base, const struct capture_event *event,
				 uint64_t vms, uint32_t *id)
{
	return user_probes_add(bpf_of(base)->probes, event, vms, id);
}

static void capture_bpf_event_vms(struct capture *base, uint32_t id, uint64_t vms)
{
	user_probes_vms(bpf_of(base)->probes, id, vms);
}

static int capture_bpf_event_state(struct capture *base, uint32_t id, uint64_t now_ms,
				   struct capture_event_state *out)
{
	return user_probes_state(bpf_of(base)->probes, id, now_ms, out);
}

static void capture_bpf_events_limit(struct capture *base, uint32_t rate)
{
	user_probes_limit(bpf_of(base)->probes, rate);
}

static void capture_bpf_event_stop(struct capture *base, uint32_t id)
{
	user_probes_stop(bpf_of(base)->probes, id);
}

static int capture_bpf_event_watch(struct capture *base, const struct capture_watch *watch)
{
	return user_probes_watch(bpf_of(base)->probes, watch);
}

static uint64_t capture_bpf_event_unwatched(const struct capture *base)
{
	return user_probes_unwatched(bpf_of_const(base)->probes);
}

static int capture_bpf_look(struct capture *base, const struct capture_look *look, char *why,
			    size_t why_bytes)
{
	struct capture_bpf *c = bpf_of(base);
	const bool stacks = c->host ? c->options.stacks : c->guest_stacks != NULL;

	/* The maps of the stacks are too small then. */
	return look->period_ns && !stacks ? -ENOTSUP : looks_set(c->looks, look, why, why_bytes);
}

static uint64_t capture_bpf_look_hits(const struct capture *base)
{
	return looks_hits(bpf_of_const(base)->looks);
}

static int capture_bpf_exits(struct capture *base, capture_exit_taker take, void *context)
{
	struct capture_bpf *c = bpf_of(base);

	return c->host ? capture_host_exits(c->host, take, context) : -ENOTSUP;
}

static int capture_bpf_level_set(struct capture *base, uint32_t vm, enum capture_level level)
{
	struct capture_bpf *c = bpf_of(base);

	return c->host ? capture_host_level(c->host, vm, level) : -ENOTSUP;
}

static int capture_bpf_wait_threshold(struct capture *base, uint64_t ns)
{
	struct capture_bpf *c = bpf_of(base);

	if (c->host)
		capture_host_wait_threshold(c->host, ns);
	return c->host ? 0 : -ENOTSUP;
}

static void capture_bpf_host_stats(const struct capture *base, struct capture_host_stats *out)
{
	const struct capture_bpf *c = bpf_of_const(base);

	*out = (struct capture_host_stats){0};
	if (c->host)
		capture_host_stats(c->host, out);
}

static size_t capture_bpf_n_cpus(const struct capture *base)
{
	const struct capture_bpf *c = bpf_of_const(base);

	return c->n_cpus;
}

static size_t capture_bpf_ring_events(const struct capture *base)
{
	return bpf_of_const(base)->ring_slots - VS_RING_SLACK;
}

static int capture_bpf_cpu_stats(const struct capture *base, size_t cpu,
				 struct capture_cpu_stats *out)
{
	const struct capture_bpf *c = bpf_of_const(base);
	const struct vs_ring *ring;

	if (cpu >= c->n_cpus)
		return -ENOENT;
	ring = c->cpus[cpu].ring;
	out->dropped = c->ringless[cpu];
	out->emitted = c->ringless[cpu];
	if (ring) {
		const uint64_t dropped = __atomic_load_n(&ring->dropped, __ATOMIC_RELAXED);

		out->dropped += dropped;
		out->emitted += dropped + __atomic_load_n(&ring->head, __ATOMIC_RELAXED);
	}
	return 0;
}

static const char *capture_bpf_left_out(const struct capture *base)
{
	const struct capture_bpf *c = bpf_of_const(base);

	return c->programs.left_out;
}

static int program_info(const struct bpf_program *program, struct bpf_prog_info *info)
{
	__u32 bytes = sizeof(*info);
	const int fd = bpf_program__fd(program);

	*info = (struct bpf_prog_info){0};
	/* Without a descriptor, the program was left out. */
	return fd < 0 ? 0 : bpf_obj_get_info_by_fd(fd, info, &bytes);
}

static uint64_t capture_bpf_missed(const struct capture *base)
{
	const struct capture_bpf *c = bpf_of_const(base);
	struct bpf_program *program;
	struct bpf_prog_info info;
	uint64_t missed = 0;

	bpf_object__for_each_program(program, c->programs.object)
	{
		if (!program_info(program, &info))
			missed += info.recursion_misses;
	}
	return missed;
}

static int capture_bpf_cost(const struct capture *base, uint64_t *run_time_ns, uint64_t *run_count)
{
	const struct capture_bpf *c = bpf_of_const(base);
	struct bpf_program *program;
	struct bpf_prog_info info;

	*run_time_ns = 0;
	*run_count = 0;
	bpf_object__for_each_program(program, c->programs.object)
	{
		const int error = program_info(program, &info);

		if (error)
			return error;
		*run_time_ns += info.run_time_ns;
		*run_count += info.run_cnt;
	}
	return 0;
}

/* The names of the tasks that exist already come from an iterator, see capture_drain(). */
static int tasks_open(struct capture_bpf *c, char *why, size_t why_bytes)
{
	struct bpf_program *program =
		bpf_object__find_program_by_name(c->programs.object, "vs_tasks");
	int error;

	if (!program)
		return 0;
	c->tasks_link = bpf_program__attach_iter(program, NULL);
	error = c->tasks_link ? capture_bpf_name_tasks(&c->base) : -errno;
	if (!error)
		return 0;
	snprintf(why, why_bytes, "cannot list the existing tasks (BPF task iterator): %s",
		 strerror(-error));
	return error;
}

static int samples_open(struct capture_bpf *c, char *why, size_t why_bytes)
{
	int error = c->host ? 0 : guest_stacks_open(c->programs.object, &c->guest_stacks);

	if (error) {
		snprintf(why, why_bytes, "cannot read stacks: %s", strerror(-error));
		return error;
	}
	if (!c->options.sample_hz)
		return 0;
	return sample_timers_attach(&c->timers, c->programs.object, sample_program(c),
				    1000000000 / c->options.sample_hz, why, why_bytes);
}

static int capture_bpf_open(const struct capture_options *options, struct capture **out, char *why,
			    size_t why_bytes)
{
	static const struct loader_build guest[2] = {{"guest", guest_btf__elf_bytes},
						     {"guest_raw", guest_raw__elf_bytes}};
	static const struct loader_build host[2] = {{"host", host_btf__elf_bytes},
						    {"host_raw", host_raw__elf_bytes}};
	static const char *const later[] = {USER_PROBES_LATER, LOOKS_LATER, NULL};
	const bool is_host = options->kind == CAPTURE_HOST;
	struct loader_request request = {
		.builds = (is_host ? host : guest) + options->raw_tracepoints,
		.n_builds = 2 - options->raw_tracepoints,
		.later = later,
		.prepare = objects_prepare,
		.loaded = objects_loaded,
	};
	struct capture_bpf *c;
	int error;

	*out = NULL;
	snprintf(why, why_bytes, "out of memory");
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	request.context = c;
	c->options = *options;
	c->ring_template_fd = -1;
	c->tasks_fd = -1;
	if (!c->options.ring_bytes)
		c->options.ring_bytes = is_host ? HOST_RING_BYTES : GUEST_RING_BYTES;
	if (!c->options.wait_threshold_ns)
		c->options.wait_threshold_ns = WAIT_THRESHOLD_NS;
	if (is_host || c->options.sample_hz_max < c->options.sample_hz)
		c->options.sample_hz_max = c->options.sample_hz;
	if (is_host) {
		error = -ENOMEM;
		c->host = capture_host_new(&c->options);
		if (!c->host)
			goto out;
	}
	error = capture_init(c, why, why_bytes);
	if (!error)
		error = loader_load(&request, &c->programs, why, why_bytes);
	if (!error)
		__atomic_store_n(c->emitting, 1, __ATOMIC_SEQ_CST);
	if (!error)
		error = tasks_open(c, why, why_bytes);
	if (!error && c->options.sample_hz_max)
		error = samples_open(c, why, why_bytes);
out:
	if (error) {
		capture_bpf_close(&c->base);
		return error;
	}
	why[0] = '\0';
	*out = &c->base;
	return 0;
}

static long capture_bpf_guest_stacks(struct capture *base, capture_guest_stack_taker take,
				     void *context, size_t max)
{
	struct capture_bpf *c = bpf_of(base);

	return c->guest_stacks ? guest_stacks_take(c->guest_stacks, take, context, max) : -ENOTSUP;
}

static void capture_bpf_guest_stacks_forget(struct capture *base)
{
	struct capture_bpf *c = bpf_of(base);

	if (c->guest_stacks)
		guest_stacks_forget(c->guest_stacks);
}

static long capture_bpf_waiting(const struct capture *base, size_t cpu)
{
	const struct capture_bpf *c = bpf_of_const(base);

	return c->host ? capture_host_waiting(c->host, cpu) : 0;
}

const struct capture_backend capture_backend_bpf = {
	.name = "BPF",
	.summarises = true,
	.open = capture_bpf_open,
	.close = capture_bpf_close,
	.drain = capture_bpf_drain,
	.name_tasks = capture_bpf_name_tasks,
	.n_cpus = capture_bpf_n_cpus,
	.ring_events = capture_bpf_ring_events,
	.cpu_stats = capture_bpf_cpu_stats,
	.left_out = capture_bpf_left_out,
	.guest_stacks = capture_bpf_guest_stacks,
	.guest_stacks_forget = capture_bpf_guest_stacks_forget,
	.add_thread = capture_bpf_add_thread,
	.remove_thread = capture_bpf_remove_thread,
	.wait_threshold = capture_bpf_wait_threshold,
	.exits = capture_bpf_exits,
	.level_set = capture_bpf_level_set,
	.event_add = capture_bpf_event_add,
	.event_vms = capture_bpf_event_vms,
	.event_state = capture_bpf_event_state,
	.events_limit = capture_bpf_events_limit,
	.event_stop = capture_bpf_event_stop,
	.event_watch = capture_bpf_event_watch,
	.event_unwatched = capture_bpf_event_unwatched,
	.look = capture_bpf_look,
	.look_hits = capture_bpf_look_hits,
	.host_stats = capture_bpf_host_stats,
	.missed = capture_bpf_missed,
	.cost = capture_bpf_cost,
	.waiting = capture_bpf_waiting,
	.guest_fields = capture_request_fields,
	.guest_set = capture_request_set,
	.guest_stacks_taken = capture_request_stacks,
};
