/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The perf backend, for kernels without BPF or BTF. Tracepoints are perf events, with one ring for
 * each online CPU (perf_ring.h). Their records are converted to the events that the BPF programs
 * write (perf_tracepoint.h). User space does what the BPF programs do in the kernel: the names of
 * tasks come from /proc and from perf's own records. capture_perf_host.c has the part of a host
 * capture.
 *
 * Records wait for LAG_NS before they are delivered (perf_queue.h). A record that arrives later,
 * because a hypervisor took the CPU away inside perf, counts as lost.
 *
 * Cost: about 0.9 us per event in the kernel, 100 ns in user space.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/perf/capture_perf.h"
#include "bpf/perf/perf_chosen.h"
#include "bpf/capture/online_cpus.h"
#include "bpf/prog/follow.h"
#include "bpf/prog/ring.h"
#include "bpf/capture/task_scan.h"
#include "clock/sample.h"

enum {
	GUEST_RING_BYTES = 4 << 20,
	/* A host capture receives all switches: up to a million per second of one CPU between two
	 * drains. Filtered events get the same room again. */
	HOST_CPU_RING_BYTES = 4 << 20,
	HOST_RINGS_BYTES_MAX = 64 << 20,
	HOST_CPU_RING_BYTES_MIN = 512 << 10,
	WAIT_THRESHOLD_NS = 20000000,
	RING_PAGES_MAX = 4096,
	LAG_NS = 2000000,
	ADVANCE_NS = 100000, /* greatest age of the counters */
	ONLINE_NS =
		100000000, /* interval of the search for CPUs that came online or went offline */
	READY_MAX =
		1 << 18, /* events of one CPU that wait for a drain; the rest stays in the ring */
	NAMES_PER_ADVANCE = 256, /* few, so that rings do not fill up while names are read */
	RUNNING_UNKNOWN = -1,
};

static struct capture_perf *perf_of(struct capture *c)
{
	return (struct capture_perf *)c;
}

static const struct capture_perf *perf_of_const(const struct capture *c)
{
	return (const struct capture_perf *)c;
}

static void name_fill(struct vs_event *event, const char comm[16])
{
	ev_set_task_comm(event, comm);
}

/*
 * perf silently omits events while it is busy in the same task. There are kernels on which it is
 * always busy in the idle task (seen on 6.18). So it is a loss if a task leaves the CPU that was
 * not the last one that came.
 */
static void switch_check(struct perf_cpu_state *cpu, const struct vs_event *event)
{
	if (event->type != VS_EVENT_SCHED_SWITCH)
		return;
	if (cpu->running != RUNNING_UNKNOWN && cpu->running != event->pid)
		perf_queue_lose(&cpu->queue, 1);
	cpu->running = event->pid2;
}

struct perf_tracepoint *capture_perf_tracepoint_of(struct capture_perf *c,
						   const struct perf_record *record)
{
	uint16_t id;

	if (record->raw_bytes < sizeof(id))
		return NULL;
	memcpy(&id, record->raw, sizeof(id));
	return c->by_id[id] ? &c->tracepoints[c->by_id[id] - 1] : NULL;
}

static void on_record(void *context, const struct perf_record *record)
{
	struct capture_perf *c = context;
	struct perf_queue *q = &c->reading->queue;
	struct vs_event event = {.time = record->time, .type = VS_EVENT_TASK_NAME};
	struct perf_tracepoint *t;

	if (record->lost) {
		c->reading->running = RUNNING_UNKNOWN;
		perf_queue_lose(q, record->lost);
		return;
	}
	if (record->comm) {
		event.pid = record->tid;
		event.pid2 = record->tgid;
		name_fill(&event, record->comm);
	} else if (record->switched_in) {
		event.type = PERF_SWITCHED_IN;
		event.pid = record->previous;
		event.pid2 = record->tid;
	} else {
		t = capture_perf_tracepoint_of(c, record);
		if (!t || !perf_tracepoint_decode(t, record, &event)) {
			perf_queue_lose(q, 1);
			return;
		}
	}
	event.cpu = (uint16_t)(c->reading - c->cpus);
	if (!c->host)
		switch_check(c->reading, &event);
	if (event.time > c->cutoff)
		perf_queue_push(q, &event);
	else if (!c->host || perf_host_late(c, &event))
		perf_queue_lose(q, 1);
}

static void queues_make_ready(struct capture_perf *c, uint64_t cutoff)
{
	for (size_t i = 0; i < c->n_cpus; i++) {
		struct perf_queue *q = &c->cpus[i].queue;
		const struct vs_event *event;
		size_t n = 0;

		while ((event = perf_queue_oldest(q, n, cutoff))) {
			perf_queue_emit(q, event, event->seq);
			n++;
		}
		perf_queue_drop_waiting(q, n);
	}
}

void capture_perf_read(struct capture_perf *c)
{
	for (size_t i = 0; i < c->n_cpus; i++) {
		c->reading = &c->cpus[i];
		if (c->reading->ring)
			perf_ring_read(c->reading->ring, 2 * c->reading->ring_records, on_record,
				       c);
	}
	if (c->host)
		perf_host_read(c);
}

/* Moves events to the ready ones if they are so old that no older ones can follow. */
static void advance(struct capture_perf *c)
{
	const uint64_t now = clock_monotonic_ns(), cutoff = now - LAG_NS;

	for (size_t i = 0; i < c->n_cpus; i++) {
		if (c->cpus[i].queue.ready.n >= READY_MAX)
			return;
	}
	capture_perf_read(c);
	if (c->host)
		perf_host_replay(c, cutoff);
	else
		queues_make_ready(c, cutoff);
	c->cutoff = cutoff;
	c->advanced = now;
}

static int cpu_open(struct capture_perf *c, size_t cpu, char *why, size_t why_bytes)
{
	enum { RECORD_BYTES_MIN = 24 };
	struct perf_ring_event events[PERF_TRACEPOINTS_MAX] = {0};
	const struct perf_ring_options options = {.cpu = (int)cpu,
						  .events = events,
						  .n_events = c->n_base,
						  .names = true,
						  .switches = c->options.kind == CAPTURE_HOST,
						  .page_count = c->ring_pages};

	for (size_t i = 0; i < c->n_base; i++)
		events[i].id = c->tracepoints[i].id;
	c->cpus[cpu].running = RUNNING_UNKNOWN;
	c->cpus[cpu].ring_records =
		c->ring_pages * (size_t)sysconf(_SC_PAGESIZE) / RECORD_BYTES_MIN;
	return perf_ring_open(&options, &c->cpus[cpu].ring, why, why_bytes);
}

/* Follows CPUs that go offline or come online. Events of a new CPU before this call are lost, and
 * their number is unknown. */
static void cpus_follow(struct capture_perf *c)
{
	const uint64_t now = clock_monotonic_ns();
	bool online[VS_CPUS_MAX];
	char why[256];

	if (now - c->online_read < ONLINE_NS || online_cpus_read(online, c->n_cpus) < 0)
		return;
	c->online_read = now;
	for (size_t i = 0; i < c->n_cpus; i++) {
		if (!online[i] && c->cpus[i].ring) {
			c->reading = &c->cpus[i];
			perf_ring_read(c->reading->ring, c->reading->ring_records, on_record, c);
			perf_ring_close(c->reading->ring);
			c->reading->ring = NULL;
			if (c->host)
				perf_host_cpu_close(c, i);
		} else if (online[i] && !c->cpus[i].ring) {
			perf_queue_lose(&c->cpus[i].queue, 1);
			cpu_open(c, i, why, sizeof(why)); /* it may be offline again */
			if (c->host)
				perf_host_cpu_open(c, i);
		}
	}
}

static int tracepoints_resolve(struct capture_perf *c, char *why, size_t why_bytes)
{
	const enum tracepoint_users user = c->options.kind == CAPTURE_HOST ? BY_HOST : BY_GUEST;
	struct perf_tracepoint_source source;
	size_t used = 0;

	c->tep = tep_alloc();
	if (!c->tep)
		return -ENOMEM;
	for (size_t i = 0; perf_tracepoint_source(user, i, &source); i++) {
		struct perf_tracepoint *t = &c->tracepoints[c->n_tracepoints];
		const int error = perf_tracepoint_resolve(c->tep, &source, t);

		if (!error && t->id < PERF_TRACEPOINT_IDS) {
			c->by_id[t->id] = (uint8_t)++c->n_tracepoints;
			c->n_base += !source.special.by_thread;
			c->n_sources = c->n_tracepoints;
			continue;
		}
		if (error == -ENOMEM)
			return error;
		if (error == -EACCES) {
			snprintf(why, why_bytes,
				 "tracefs may not be read: run as root (CAP_SYS_ADMIN)");
			return -EPERM;
		}
		if (i == 0) {
			snprintf(why, why_bytes,
				 "perf needs the tracepoint %s:%s under /sys/kernel/tracing: is "
				 "tracefs mounted? mount -t tracefs nodev /sys/kernel/tracing",
				 source.row->system, source.row->name);
			return error ? error : -EPROTO;
		}
		used += (size_t)snprintf(c->left_out + used, sizeof(c->left_out) - used, "%s%s",
					 used ? ", " : "", source.row->name);
		if (used >= sizeof(c->left_out))
			used = sizeof(c->left_out) - 1;
	}
	return 0;
}

size_t capture_perf_ring_pages(size_t bytes, size_t n_rings)
{
	const size_t wanted = bytes / n_rings / (size_t)sysconf(_SC_PAGESIZE);
	size_t pages = 1;

	while (pages * 2 <= wanted && pages < RING_PAGES_MAX)
		pages *= 2;
	return pages;
}

static size_t host_ring_bytes(size_t n_rings)
{
	const size_t wanted = n_rings * HOST_CPU_RING_BYTES;

	if (wanted <= HOST_RINGS_BYTES_MAX)
		return wanted;
	return n_rings * HOST_CPU_RING_BYTES_MIN < HOST_RINGS_BYTES_MAX
		       ? (size_t)HOST_RINGS_BYTES_MAX
		       : n_rings * HOST_CPU_RING_BYTES_MIN;
}

static int rings_open(struct capture_perf *c, char *why, size_t why_bytes)
{
	size_t bytes = c->options.ring_bytes;
	bool online[VS_CPUS_MAX];
	const int possible = possible_cpus_read(why, why_bytes);
	int error;

	if (possible < 0)
		return possible;
	c->n_cpus = (size_t)possible;
	c->first_cpu = c->n_cpus;
	error = online_cpus_read(online, c->n_cpus);
	if (error < 0) {
		snprintf(why, why_bytes, "cannot read /sys/devices/system/cpu/online: %s",
			 strerror(-error));
		return error;
	}
	if (!bytes)
		bytes = c->options.kind == CAPTURE_HOST ? host_ring_bytes((size_t)error)
							: (size_t)GUEST_RING_BYTES;
	c->ring_pages = capture_perf_ring_pages(bytes, (size_t)error);
	c->cpus = calloc(c->n_cpus, sizeof(*c->cpus));
	error = c->cpus ? 0 : -ENOMEM;
	c->cutoff = clock_monotonic_ns();
	for (size_t i = 0; i < c->n_cpus && !error; i++) {
		if (!online[i])
			continue;
		error = cpu_open(c, i, why, why_bytes);
		if (c->first_cpu == c->n_cpus)
			c->first_cpu = i;
	}
	return error;
}

static void capture_perf_close(struct capture *base)
{
	struct capture_perf *c = perf_of(base);

	if (!c)
		return;
	perf_host_close(c);
	for (size_t i = 0; c->cpus && i < c->n_cpus; i++) {
		perf_ring_close(c->cpus[i].ring);
		perf_queue_fini(&c->cpus[i].queue);
	}
	free(c->cpus);
	tep_free(c->tep);
	free(c);
}

static int capture_perf_open(const struct capture_options *options, struct capture **out, char *why,
			     size_t why_bytes)
{
	const bool is_host = options->kind == CAPTURE_HOST;
	struct capture_perf *c;
	int error;

	snprintf(why, why_bytes, "out of memory");
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->options = *options;
	if (!options->wait_threshold_ns)
		c->options.wait_threshold_ns = WAIT_THRESHOLD_NS;
	error = tracepoints_resolve(c, why, why_bytes);
	if (!error)
		error = rings_open(c, why, why_bytes);
	if (!error && is_host)
		error = perf_host_open(c, why, why_bytes);
	if (error) {
		capture_perf_close(&c->base);
		return error;
	}
	c->names_wanted = !is_host;
	*out = &c->base;
	return 0;
}

static void on_task(void *context, pid_t tid, pid_t tgid, const char comm[16])
{
	struct capture_perf *c = context;
	struct vs_event event = {
		.time = c->cutoff,
		.cpu = (uint16_t)c->first_cpu,
		.type = VS_EVENT_TASK_NAME,
		.pid = tid,
		.pid2 = tgid,
	};

	name_fill(&event, comm);
	perf_queue_emit(&c->cpus[c->first_cpu].queue, &event, 0);
	if (++c->names % NAMES_PER_ADVANCE == 0)
		advance(c);
}

static long ready_deliver(struct capture_perf *c, const struct capture_sink *sink)
{
	long total = 0;

	for (size_t i = 0; i < c->n_cpus; i++) {
		struct event_array *ready = &c->cpus[i].queue.ready;

		if (ready->n)
			sink->events(sink->context, (uint16_t)i, ready->events, ready->n);
		total += (long)ready->n;
		ready->n = 0;
	}
	return total;
}

static long capture_perf_drain(struct capture *base, const struct capture_sink *sink)
{
	struct capture_perf *c = perf_of(base);
	long total = ready_deliver(c, sink);
	int error = 0;

	cpus_follow(c);
	advance(c);
	if (c->names_wanted) {
		error = task_scan(on_task, c);
		c->names_wanted = false;
	}
	total += ready_deliver(c, sink);
	if (c->host)
		perf_host_drain(c, sink);
	return error ? error : total;
}

static int capture_perf_name_tasks(struct capture *base)
{
	if (perf_of(base)->host)
		return -ENOTSUP;
	perf_of(base)->names_wanted = true;
	return 0;
}

static size_t capture_perf_n_cpus(const struct capture *base)
{
	return perf_of_const(base)->n_cpus;
}

static int capture_perf_cpu_stats(const struct capture *base, size_t cpu,
				  struct capture_cpu_stats *out)
{
	/* To count what the rings hold, moves it out of them. The caller sees no difference. */
	struct capture_perf *c = perf_of((struct capture *)(uintptr_t)base);

	if (cpu >= c->n_cpus)
		return -ENOENT;
	if (clock_monotonic_ns() - c->advanced > ADVANCE_NS)
		advance(c);
	out->emitted = c->cpus[cpu].queue.emitted + c->cpus[cpu].lost;
	out->dropped = c->cpus[cpu].queue.dropped + c->cpus[cpu].lost;
	return 0;
}

static const char *capture_perf_left_out(const struct capture *base)
{
	return perf_of_const(base)->left_out;
}

static int capture_perf_add_thread(struct capture *base, pid_t tid, pid_t tgid, uint32_t vm,
				   bool is_vcpu)
{
	struct capture_perf *c = perf_of(base);

	return c->host ? perf_host_add(c, tid, tgid, vm, is_vcpu) : -ENOTSUP;
}

static int capture_perf_remove_thread(struct capture *base, pid_t tid)
{
	struct capture_perf *c = perf_of(base);

	return c->host ? perf_host_remove(c, tid) : -ENOTSUP;
}

/* Nothing is counted in the kernel. */
static int capture_perf_exits(struct capture *base, capture_exit_taker take, void *context)
{
	(void)take;
	(void)context;
	return perf_of(base)->host ? 0 : -ENOTSUP;
}

static int capture_perf_wait_threshold(struct capture *base, uint64_t ns)
{
	return perf_host_wait_threshold((struct capture_perf *)base, ns);
}

static int capture_perf_level_set(struct capture *base, uint32_t vm, enum capture_level level)
{
	if (!perf_of(base)->host)
		return -ENOTSUP;
	if (vm >= VS_VMS_MAX)
		return -EINVAL;
	return level == CAPTURE_DETAIL ? 0 : -EOPNOTSUPP;
}

/* ---- chosen events ---- */

static int capture_perf_event_add(struct capture *base, const struct capture_event *event,
				  uint64_t vms, uint32_t *id)
{
	struct capture_perf *c = perf_of(base);

	return c->host ? perf_chosen_add(perf_host_chosen(c), event, vms, id) : -ENOTSUP;
}

static void capture_perf_event_vms(struct capture *base, uint32_t id, uint64_t vms)
{
	struct capture_perf *c = perf_of(base);

	if (c->host)
		perf_chosen_vms(perf_host_chosen(c), id, vms);
}

static int capture_perf_event_state(struct capture *base, uint32_t id, uint64_t now_ms,
				    struct capture_event_state *out)
{
	struct capture_perf *c = perf_of(base);

	return c->host ? perf_chosen_state(perf_host_chosen(c), id, now_ms, out) : -ENOENT;
}

static void capture_perf_events_limit(struct capture *base, uint32_t rate)
{
	struct capture_perf *c = perf_of(base);

	if (c->host)
		perf_chosen_limit(perf_host_chosen(c), rate);
}

static void capture_perf_event_stop(struct capture *base, uint32_t id)
{
	struct capture_perf *c = perf_of(base);

	if (c->host)
		perf_chosen_stop(perf_host_chosen(c), id);
}

static void capture_perf_host_stats(const struct capture *base, struct capture_host_stats *out)
{
	struct capture_perf *c = perf_of((struct capture *)(uintptr_t)base);

	*out = (struct capture_host_stats){0};
	if (!c->host)
		return;
	if (clock_monotonic_ns() - c->advanced > ADVANCE_NS)
		advance(c);
	perf_host_stats(c, out);
}

static uint64_t capture_perf_missed(const struct capture *base)
{
	const struct capture_perf *c = perf_of((struct capture *)(uintptr_t)base);

	return c->host ? perf_host_missed(c) : 0;
}

static int capture_perf_cost(const struct capture *base, uint64_t *run_time_ns, uint64_t *run_count)
{
	(void)base;
	*run_time_ns = 0;
	*run_count = 0;
	return -ENOTSUP;
}

static long capture_perf_waiting(const struct capture *base, size_t cpu)
{
	const struct capture_perf *c = perf_of_const(base);

	return c->host ? perf_host_waiting(c, cpu) : 0;
}

const struct capture_backend capture_backend_perf = {
	.name = "perf",
	.open = capture_perf_open,
	.close = capture_perf_close,
	.drain = capture_perf_drain,
	.name_tasks = capture_perf_name_tasks,
	.n_cpus = capture_perf_n_cpus,
	.cpu_stats = capture_perf_cpu_stats,
	.left_out = capture_perf_left_out,
	.add_thread = capture_perf_add_thread,
	.remove_thread = capture_perf_remove_thread,
	.wait_threshold = capture_perf_wait_threshold,
	.exits = capture_perf_exits,
	.level_set = capture_perf_level_set,
	.event_add = capture_perf_event_add,
	.event_vms = capture_perf_event_vms,
	.event_state = capture_perf_event_state,
	.events_limit = capture_perf_events_limit,
	.event_stop = capture_perf_event_stop,
	.host_stats = capture_perf_host_stats,
	.missed = capture_perf_missed,
	.cost = capture_perf_cost,
	.waiting = capture_perf_waiting,
	.lag_ns = LAG_NS,
};
