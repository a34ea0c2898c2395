// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/backend/guest_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/bpf.h>

#include "bpf/prog/guest_stack.h"
#include "bpf/backend/loader.h"

struct guest_stacks {
	struct ring_buffer *ring;
	int known_fd;
	/* Valid during guest_stacks_take(). */
	capture_guest_stack_taker take;
	void *context;
	size_t taken, max;
};

int guest_stacks_prepare(struct bpf_object *object, bool wanted, pid_t except)
{
	int32_t *excepted = loader_variable(object, ".rodata", "sample_except", sizeof(*excepted));
	struct bpf_map *known = bpf_object__find_map_by_name(object, "known_stacks");
	struct bpf_map *fresh = bpf_object__find_map_by_name(object, "new_stacks");

	if (!known || !fresh || !excepted)
		return -EINVAL;
	*excepted = except;
	if (wanted)
		return 0;
	bpf_map__set_max_entries(fresh, (__u32)sysconf(_SC_PAGESIZE));
	bpf_map__set_max_entries(known, 1);
	return 0;
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

int guest_stacks_open(struct bpf_object *object, struct guest_stacks **out)
{
	struct guest_stacks *g = calloc(1, sizeof(*g));

	*out = g;
	if (!g)
		return -ENOMEM;
	g->known_fd = bpf_object__find_map_fd_by_name(object, "known_stacks");
	g->ring = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "new_stacks"), on_stack,
				   g, NULL);
	return g->ring ? 0 : -errno;
}

void guest_stacks_close(struct guest_stacks *g)
{
	if (!g)
		return;
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
