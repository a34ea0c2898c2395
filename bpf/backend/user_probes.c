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

enum {
	CHECK_MS = 1000,
	FLOODED_MAX = 10,
};

struct user_probe {
	uint32_t id; /* 0: the slot is free */
	struct bpf_link *link;
	bool detached;
	uint64_t checked_ms;
	struct capture_event_state checked; /* the state at that time */
	unsigned int flooded; /* checks in a row that found more hits above the limit than below */
	struct capture_event_state state;
};

struct user_probes {
	struct vs_user_slot *slots; /* in the programs' globals */
	uint32_t *all_per_window;   /* there, too */
	const struct loader_object *programs;
	struct bpf_object *mine;                                   /* NULL until the first event */
	struct bpf_program *tracepoints[VS_USER_SAME_MAX], *probe; /* of `mine` */
	int states_fd, n_cpus;
	struct vs_user_state *cpus; /* room for one slot of all CPUs */
	uint32_t last_id;
	struct user_probe probes[VS_USER_SLOTS_MAX];
};

int user_probes_new(const struct loader_object *programs, void *globals, struct user_probes **out)
{
	struct bpf_object *object = programs->object;
	const long slots = loader_variable_offset(object, ".bss", "user_slots",
						  VS_USER_SLOTS_MAX * sizeof(struct vs_user_slot));
	const long all =
		loader_variable_offset(object, ".bss", "user_all_per_window", sizeof(uint32_t));
	struct user_probes *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->programs = programs;
	p->states_fd = bpf_object__find_map_fd_by_name(object, "user_states");
	p->n_cpus = libbpf_num_possible_cpus();
	if (slots < 0 || all < 0 || p->states_fd < 0 || p->n_cpus <= 0) {
		free(p);
		return -EINVAL;
	}
	p->slots = (struct vs_user_slot *)(void *)((char *)globals + slots);
	p->all_per_window = (uint32_t *)(void *)((char *)globals + all);
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
	for (size_t i = 0; i < VS_USER_SLOTS_MAX; i++)
		bpf_link__destroy(p->probes[i].link);
	bpf_object__close(p->mine);
	free(p->cpus);
	free(p);
}

static int programs_load(struct user_probes *p)
{
	struct bpf_object *mine;
	int error;

	if (p->mine)
		return 0;
	error = loader_load_later(p->programs, &mine);
	if (error)
		return error;
	p->probe = bpf_object__find_program_by_name(mine, "vs_u_probe");
	for (int i = 0; i < VS_USER_SAME_MAX; i++) {
		char name[32];

		snprintf(name, sizeof(name), "vs_u_tracepoint%d", i);
		p->tracepoints[i] = bpf_object__find_program_by_name(mine, name);
		if (!p->tracepoints[i] || !p->probe) {
			bpf_object__close(mine);
			return -EINVAL;
		}
	}
	p->mine = mine;
	return 0;
}

/* By perf's own kind of event, or by tracefs on older kernels. */
static bool kernel_has_kprobes(void)
{
	return !access("/sys/bus/event_source/devices/kprobe", F_OK) ||
	       !access("/sys/kernel/tracing/kprobe_events", F_OK) ||
	       !access("/sys/kernel/debug/tracing/kprobe_events", F_OK);
}

/* Returns NULL with errno set; EEXIST: the tracepoint has all programs already. */
static struct bpf_link *tracepoint_attach(const struct user_probes *p,
					  const struct capture_event *e, uint64_t slot)
{
	LIBBPF_OPTS(bpf_tracepoint_opts, options, .bpf_cookie = slot);
	struct bpf_link *link = NULL;

	for (size_t i = 0; i < VS_USER_SAME_MAX && !link; i++) {
		link = bpf_program__attach_tracepoint_opts(p->tracepoints[i], e->system, e->name,
							   &options);
		if (!link && errno != EEXIST)
			break;
	}
	return link;
}

/* Returns NULL with errno set. */
static struct bpf_link *attach(const struct user_probes *p, const struct capture_event *e,
			       uint64_t slot)
{
	LIBBPF_OPTS(bpf_kprobe_opts, kprobe, .bpf_cookie = slot,
		    .retprobe = e->kind == USER_KRETPROBE);
	LIBBPF_OPTS(bpf_uprobe_opts, uprobe, .bpf_cookie = slot, .ref_ctr_offset = e->counter,
		    .retprobe = e->kind == USER_URETPROBE);

	switch (e->kind) {
	case USER_TRACEPOINT:
		return tracepoint_attach(p, e, slot);
	case USER_KPROBE:
	case USER_KRETPROBE:
		if (!kernel_has_kprobes()) {
			errno = ENOSYS;
			return NULL;
		}
		return bpf_program__attach_kprobe_opts(p->probe, e->name, &kprobe);
	case USER_UPROBE:
	case USER_URETPROBE:
	case USER_USDT:
		return bpf_program__attach_uprobe_opts(p->probe, -1, e->path, e->offset, &uprobe);
	}
	errno = EINVAL;
	return NULL;
}

static uint32_t per_window(uint32_t rate)
{
	const uint64_t n =
		((uint64_t)(rate ? rate : CAPTURE_EVENT_RATE) << VS_USER_WINDOW_LOG2_NS) /
		1000000000;

	return n ? (uint32_t)n : 1;
}

void user_probes_limit(struct user_probes *p, uint32_t rate)
{
	__atomic_store_n(p->all_per_window, rate ? per_window(rate) : 0, __ATOMIC_RELAXED);
}

/* What an earlier event in this slot left. */
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
	libbpf_print_fn_t print;
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
	*slot = (struct vs_user_slot){
		.untraced = event->untraced,
		.vms = vms,
		.n_values = (uint32_t)event->n_values,
		.first_test = event->n_tests ? event->first_test : VS_USER_KEEP,
		.per_window = per_window(event->rate),
	};
	memcpy(slot->values, event->values, sizeof(slot->values));
	memcpy(slot->tests, event->tests, sizeof(slot->tests));
	print = libbpf_set_print(NULL);
	probe->link = attach(p, event, i);
	error = probe->link ? 0 : -errno;
	libbpf_set_print(print);
	if (error)
		return error;
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
	bpf_link__destroy(probe->link);
	probe->link = NULL;
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
	/* Hits of no task concern it. Its id stays for those in progress. */
	__atomic_store_n(&p->slots[probe - p->probes].untraced, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&p->slots[probe - p->probes].vms, 0, __ATOMIC_RELAXED);
	/* Programs run within an RCU critical section: this waits for those in progress. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		nanosleep(&moment, NULL);
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
	if (now_ms - probe->checked_ms >= CHECK_MS) {
		const struct capture_event_state *then = &probe->checked, *now = &probe->state;

		if (now->limited - then->limited > now->kept - then->kept)
			probe->flooded++;
		else
			probe->flooded = 0;
		probe->checked_ms = now_ms;
		probe->checked = *now;
		if (probe->flooded >= FLOODED_MAX && !probe->detached)
			probe_detach(p, probe);
	}
	probe->state.detached = probe->detached;
	*out = probe->state;
	return 0;
}
