// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/guest_stacks.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "bpf/guest_stack.h"
#include "bpf/loader.h"
#include "bpf/online_cpus.h"
#include "bpf/ring.h"

struct guest_stacks {
	struct ring_buffer *ring;
	int known_fd;
	struct bpf_link *links[VS_CPUS_MAX]; /* each with a timer */
	/* During a take. */
	capture_guest_stack_taker take;
	void *context;
	size_t taken, max;
};

int guest_stacks_prepare(struct bpf_object *object, uint32_t hz)
{
	uint64_t *period = loader_variable(object, ".rodata", "sample_period_ns", sizeof(*period));
	struct bpf_program *sample = bpf_object__find_program_by_name(object, "vs_sample");
	struct bpf_map *known = bpf_object__find_map_by_name(object, "known_stacks");
	struct bpf_map *fresh = bpf_object__find_map_by_name(object, "new_stacks");

	if (!period || !sample || !known || !fresh)
		return -EINVAL;
	*period = hz ? 1000000000 / hz : 0;
	bpf_program__set_autoload(sample, hz > 0);
	if (hz)
		return 0;
	bpf_map__set_max_entries(fresh, (__u32)sysconf(_SC_PAGESIZE));
	bpf_map__set_max_entries(known, 1);
	return 0;
}

/* A guest seldom has a PMU; the CPU's own timer always works. */
static int timer_open(int cpu, uint32_t hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000 / hz,
	};
	const long fd = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int on_stack(void *context, void *data, size_t bytes)
{
	struct guest_stacks *g = context;
	const struct vs_guest_stack *s = data;
	const struct capture_guest_stack stack = {
		.tgid = s->tgid,
		.id = s->id,
		.role = (enum vs_stack_role)s->role,
		.n = s->n < VS_GUEST_STACK_FRAMES ? s->n : VS_GUEST_STACK_FRAMES,
		.frames = s->frames,
	};

	if (bytes < sizeof(*s))
		return 0;
	g->take(g->context, &stack);
	return ++g->taken < g->max ? 0 : -E2BIG; /* enough for now */
}

static int timers_attach(struct guest_stacks *g, struct bpf_program *sample, uint32_t hz)
{
	bool online[VS_CPUS_MAX];
	int error = online_cpus_read(online, VS_CPUS_MAX);

	for (int cpu = 0; cpu < VS_CPUS_MAX && error >= 0; cpu++) {
		int fd;

		if (!online[cpu])
			continue;
		fd = timer_open(cpu, hz);
		if (fd < 0)
			return fd;
		g->links[cpu] = bpf_program__attach_perf_event(sample, fd);
		if (!g->links[cpu]) {
			error = -errno;
			close(fd);
		}
	}
	return error < 0 ? error : 0;
}

int guest_stacks_open(struct bpf_object *object, uint32_t hz, struct guest_stacks **out, char *why,
		      size_t why_bytes)
{
	struct bpf_program *sample = bpf_object__find_program_by_name(object, "vs_sample");
	struct guest_stacks *g = calloc(1, sizeof(*g));
	int error = -ENOMEM;

	if (!g)
		goto out;
	g->known_fd = bpf_object__find_map_fd_by_name(object, "known_stacks");
	g->ring = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "new_stacks"), on_stack,
				   g, NULL);
	if (g->ring)
		error = timers_attach(g, sample, hz);
out:
	if (error) {
		snprintf(why, why_bytes, "cannot sample stacks (perf_event_open, cpu-clock): %s",
			 strerror(-error));
		guest_stacks_close(g);
		g = NULL;
	}
	*out = g;
	return error;
}

void guest_stacks_close(struct guest_stacks *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		bpf_link__destroy(g->links[i]);
	ring_buffer__free(g->ring);
	free(g);
}

long guest_stacks_take(struct guest_stacks *g, capture_guest_stack_taker take, void *context,
		       size_t max)
{
	int error;

	if (!max)
		return 0;
	g->take = take;
	g->context = context;
	g->taken = 0;
	g->max = max;
	error = ring_buffer__consume(g->ring);
	return error < 0 && error != -E2BIG ? error : (long)g->taken;
}

void guest_stacks_forget(struct guest_stacks *g)
{
	struct vs_guest_stack_key key;

	while (!bpf_map_get_next_key(g->known_fd, NULL, &key) &&
	       !bpf_map_delete_elem(g->known_fd, &key)) {
	}
}
