/* SPDX-License-Identifier: GPL-2.0-only */
/* Emits an event into the ring (ring.h) of the CPU that runs the program. For BPF programs. */
#ifndef PROG_EMIT_H
#define PROG_EMIT_H

#include "bpf/arch/stores.h"
#include "bpf/prog/kernel.h"
#include "bpf/prog/ring.h"

/* Map from a CPU to a one-element array that holds the CPU's struct vs_ring. User space fills it,
 * also later when another CPU comes online. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
	__uint(max_entries, VS_CPUS_MAX);
} rings SEC(".maps");

const volatile __u64 ring_mask; /* slots - 1 */
/* While at least this many slots are in use, new events are dropped. */
const volatile __u64 ring_limit;

/* User space sets this after all programs are attached. Until then nothing is emitted: programs are
 * attached one by one, so an event could be captured whose counterpart is not captured yet. */
volatile __u32 emitting;

/* number of lost events, by CPU, while the CPU had no ring */
__u32 ringless[VS_CPUS_MAX];

static __always_inline void emit(__u16 type, __s32 pid, __s32 pid2, __u64 arg0, __u64 arg1)
{
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	struct vs_ring *ring;
	struct vs_event *slot;
	__u64 dropped, position;
	void *array;

	if (!emitting)
		return;
	array = bpf_map_lookup_elem(&rings, &cpu);
	if (!array) {
		__sync_fetch_and_add(&ringless[cpu & (VS_CPUS_MAX - 1)], 1);
		return;
	}
	ring = bpf_map_lookup_elem(array, &zero);
	if (!ring)
		return;
	dropped = ring->dropped;
	if (ring->head - *(volatile __u64 *)&ring->tail >= ring_limit) {
		__sync_fetch_and_add(&ring->dropped, 1);
		return;
	}
	position = __sync_fetch_and_add(&ring->head, 1);
	slot = &ring->slots[position & ring_mask];
	slot->time = bpf_ktime_get_ns();
	slot->seq = (__u32)dropped;
	slot->cpu = (__u16)cpu;
	slot->pid = pid;
	slot->pid2 = pid2;
	slot->arg0 = arg0;
	slot->arg1 = arg1;
	stores_before(ring->head);
	*(volatile __u16 *)&slot->type = type;
}

static __always_inline void emit_name(__s32 tid, __s32 tgid, const char *comm)
{
	__u64 name[2] = {};

	bpf_probe_read_kernel_str(name, sizeof(name), comm);
	emit(VS_EVENT_TASK_NAME, tid, tgid, name[0], name[1]);
}

#endif
