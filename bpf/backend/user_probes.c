/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/backend/user_probes.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bpf/backend/loader.h"
#include "bpf/backend/user_program.h"
#include "bpf/capture/event_limits.h"
#define VS_WATCH_ONLY_NUMBERS
#include "bpf/prog/watch.h"

struct user_probe {
	uint32_t id;  /* 0: the slot is free */
	int attached; /* file descriptor, valid if not detached */
	bool detached;
	struct event_flood flood;
	struct capture_event_state state;
};

struct user_probes {
	/* These are variables of the programs. */
	struct vs_user_slot *slots;
	uint32_t *all_per_window;
	/* The same; NULL in a guest. */
	uint32_t *watching, *n_watched_cgroups;
	const uint64_t *unwatched;
	struct bpf_link *newtask, *freed; /* NULL until a thread or process is watched */
	const struct loader_object *programs;
	struct user_program *program; /* NULL until the first event */
	int states_fd, n_cpus;
	struct vs_user_state *cpus; /* room for one slot of all CPUs */
	uint32_t last_id;
	struct user_probe probes[VS_USER_SLOTS_MAX];
};

static void *global(struct bpf_object *object, void *globals, const char *name, size_t bytes)
{
	const long offset = loader_variable_offset(object, ".bss", name, bytes);

	return offset < 0 ? NULL : (char *)globals + offset;
}

int user_probes_new(const struct loader_object *programs, void *globals, struct user_probes **out)
{
	struct bpf_object *object = programs->object;
	struct user_probes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->programs = programs;
	p->states_fd = bpf_object__find_map_fd_by_name(object, "user_states");
	p->n_cpus = libbpf_num_possible_cpus();
	p->slots = global(object, globals, "user_slots", VS_USER_SLOTS_MAX * sizeof(*p->slots));
	p->all_per_window =
		global(object, globals, "user_all_per_window", sizeof(*p->all_per_window));
	p->watching = global(object, globals, "watching", sizeof(*p->watching));
	p->n_watched_cgroups =
		global(object, globals, "n_watched_cgroups", sizeof(*p->n_watched_cgroups));
	p->unwatched = global(object, globals, "unwatched", sizeof(*p->unwatched));
	if (!p->slots || !p->all_per_window || p->states_fd < 0 || p->n_cpus <= 0) {
		free(p);
		return -EINVAL;
	}
	p->cpus = calloc((size_t)p->n_cpus, sizeof(*p->cpus));
	if (!p->cpus) {
		free(p);
		return -ENOMEM;
	}
	*out = p;
	return 0;
}

void user_probes_free(struct user_probes *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < VS_USER_SLOTS_MAX; i++) {
		if (p->probes[i].id && !p->probes[i].detached)
			close(p->probes[i].attached);
	}
	bpf_link__destroy(p->newtask);
	bpf_link__destroy(p->freed);
	user_program_free(p->program);
	free(p->cpus);
	free(p);
}

static int programs_load(struct user_probes *p)
{
	return p->program ? 0 : user_program_new(p->programs, &p->program);
}

void user_probes_limit(struct user_probes *p, uint32_t rate)
{
	__atomic_store_n(p->all_per_window, rate ? event_limit_per_window(rate) : 0,
			 __ATOMIC_RELAXED);
}

/* Clears the counts that an earlier event left in this slot. */
static void states_clear(struct user_probes *p, uint32_t slot)
{
	memset(p->cpus, 0, (size_t)p->n_cpus * sizeof(*p->cpus));
	bpf_map_update_elem(p->states_fd, &slot, p->cpus, BPF_ANY);
}

int user_probes_add(struct user_probes *p, const struct capture_event *event, uint64_t vms,
		    uint32_t *id)
{
	struct vs_user_slot *slot = NULL;
	struct user_probe *probe = NULL;
	size_t i = 0;
	int error = programs_load(p);

	if (error)
		return error;
	while (i < VS_USER_SLOTS_MAX && p->probes[i].id)
		i++;
	if (i == VS_USER_SLOTS_MAX || p->last_id == VS_USER_ID_MAX)
		return -ENOSPC;
	slot = &p->slots[i];
	probe = &p->probes[i];
	states_clear(p, (uint32_t)i);
	*slot = (struct vs_user_slot){.untraced = event->untraced, .vms = vms};
	probe->attached = user_program_attach(p->program, event, (uint32_t)i);
	if (probe->attached < 0)
		return probe->attached;
	*id = probe->id = ++p->last_id;
	__atomic_store_n(&slot->id, probe->id, __ATOMIC_RELEASE);
	return 0;
}

static struct user_probe *probe_of(struct user_probes *p, uint32_t id)
{
	for (size_t i = 0; id && i < VS_USER_SLOTS_MAX; i++) {
		if (p->probes[i].id == id)
			return &p->probes[i];
	}
	return NULL;
}

static void probe_detach(struct user_probes *p, struct user_probe *probe)
{
	__atomic_store_n(&p->slots[probe - p->probes].id, 0, __ATOMIC_RELEASE);
	close(probe->attached);
	probe->detached = true;
}

void user_probes_vms(struct user_probes *p, uint32_t id, uint64_t vms)
{
	struct user_probe *probe = probe_of(p, id);

	if (!probe)
		return;
	__atomic_store_n(&p->slots[probe - p->probes].vms, vms, __ATOMIC_RELAXED);
	if (vms)
		return;
	if (!probe->detached)
		probe_detach(p, probe);
	*probe = (struct user_probe){0}; /* the slot is free */
}

void user_probes_stop(struct user_probes *p, uint32_t id)
{
	const struct timespec moment = {.tv_nsec = 2000000};
	struct user_probe *probe = probe_of(p, id);

	if (!probe || probe->detached)
		return;
	/* From now on it takes hits of no task. Its id stays for hits in progress. */
	__atomic_store_n(&p->slots[probe - p->probes].untraced, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->slots[probe - p->probes].vms, 0, __ATOMIC_RELAXED);
	/* Programs run within an RCU critical section: this waits for those in progress. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		nanosleep(&moment, NULL);
}

/* ---- watched tasks ---- */

static int watch_attach(const struct user_probes *p, const char *name, struct bpf_link **link)
{
	struct bpf_program *program =
		bpf_object__find_program_by_name(user_program_object(p->program), name);
	const libbpf_print_fn_t print = libbpf_set_print(NULL);

	if (!*link && program)
		*link = bpf_program__attach(program);
	libbpf_set_print(print);
	if (!program)
		return -ENOTSUP;
	return *link ? 0 : -errno;
}

/* Puts a thread or process into its map. */
static int task_watch(struct user_probes *p, const char *map, int32_t id)
{
	const int fd = bpf_object__find_map_fd_by_name(p->programs->object, map);
	const uint32_t yes = 1;
	int error = watch_attach(p, "vs_u_newtask", &p->newtask);

	if (!error)
		error = watch_attach(p, "vs_u_free", &p->freed);
	if (!error)
		error = fd < 0 ? -ENOTSUP : bpf_map_update_elem(fd, &id, &yes, BPF_ANY);
	return error == -E2BIG ? -ENOSPC : error;
}

static int cgroup_watch(struct user_probes *p, int dir_fd)
{
	const struct bpf_map *map =
		bpf_object__find_map_by_name(p->programs->object, "watched_cgroups");
	const uint32_t index = *p->n_watched_cgroups;
	int error;

	if (!map || bpf_map__type(map) != BPF_MAP_TYPE_CGROUP_ARRAY)
		return -ENOTSUP;
	if (index == VS_WATCHED_CGROUPS_MAX)
		return -ENOSPC;
	error = bpf_map_update_elem(bpf_map__fd(map), &index, &dir_fd, BPF_ANY);
	if (!error)
		__atomic_store_n(p->n_watched_cgroups, index + 1, __ATOMIC_RELEASE);
	return error;
}

int user_probes_watch(struct user_probes *p, const struct capture_watch *watch)
{
	static const uint32_t bits[] = {[CAPTURE_WATCH_THREAD] = VS_WATCHES_THREADS,
					[CAPTURE_WATCH_PROCESS] = VS_WATCHES_PROCESSES,
					[CAPTURE_WATCH_CGROUP] = VS_WATCHES_CGROUPS};
	int error = p->watching && p->n_watched_cgroups ? programs_load(p) : -ENOTSUP;

	if (error)
		return error;
	if (watch->kind == CAPTURE_WATCH_CGROUP)
		error = cgroup_watch(p, watch->id);
	else if (watch->kind == CAPTURE_WATCH_THREAD)
		error = task_watch(p, "watched_threads", watch->id);
	else
		error = task_watch(p, "watched_processes", watch->id);
	if (!error)
		__atomic_fetch_or(p->watching, bits[watch->kind], __ATOMIC_RELEASE);
	return error;
}

uint64_t user_probes_unwatched(const struct user_probes *p)
{
	return p->unwatched ? __atomic_load_n(p->unwatched, __ATOMIC_RELAXED) : 0;
}

static void state_read(struct user_probes *p, struct user_probe *probe)
{
	const uint32_t slot = (uint32_t)(probe - p->probes);

	if (bpf_map_lookup_elem(p->states_fd, &slot, p->cpus))
		return;
	probe->state.kept = probe->state.limited = 0;
	for (int i = 0; i < p->n_cpus; i++) {
		probe->state.kept += p->cpus[i].kept;
		probe->state.limited += p->cpus[i].limited;
	}
}

int user_probes_state(struct user_probes *p, uint32_t id, uint64_t now_ms,
		      struct capture_event_state *out)
{
	struct user_probe *probe = probe_of(p, id);

	if (!probe)
		return -ENOENT;
	state_read(p, probe);
	if (event_flood_check(&probe->flood, &probe->state, now_ms) && !probe->detached)
		probe_detach(p, probe);
	probe->state.detached = probe->detached;
	*out = probe->state;
	return 0;
}
