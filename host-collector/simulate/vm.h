/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulates one VM of a run: its vCPUs and guest CPUs, its agent, the channel between the agent and
 * the recorder, and what the collector reads of the VM.
 */
#ifndef SIMULATE_VM_H
#define SIMULATE_VM_H

#include "host-collector/simulate/world.h"

struct vm_parcel {
	struct vm_parcel *next;
	size_t len;
	uint8_t frame[];
};

struct sim_vm {
	struct world *world;
	struct engine *engine;
	uint32_t id, n_vcpus;
	char name[24];
	int32_t pid;
	uint32_t target; /* the vCPU that the faults affect, or that has the most load */
	struct sim_clock guest_clock;
	struct sim_capture guest_capture;
	struct truth truth;
	struct host_thread *qemu, *vhost;
	struct sim_vcpu *vcpus; /* n_vcpus */
	struct guest_cpu_sim *guests;
	struct guest_task *agent;
	bool wait_halts; /* the section that waits for a lock halts (waits.h) */
	/* see life.h */
	bool agent_gone;
	unsigned boots; /* boots of the guest after the first */
	struct guest_task stopper;
	uint64_t echo_lie_ticks, stamp_lie_ticks;

	/* The channel: frames that left the guest and have not arrived yet. */
	struct vm_parcel *parcels, **parcels_end;
	int64_t last_arrival;
	/* Until then QEMU's main thread does not serve the channel. */
	int64_t channel_blocked_until;
	bool echo_waits;
	int64_t echo_sent;
	unsigned heartbeats;

	struct { /* CPU quota of the VM's cgroup */
		bool set;
		int64_t read, used_up; /* times */
		int64_t throttled_ns, reported_ns;
	} quota;
};

/* Initializes VM number `index` of the world. Returns 0 or -ENOMEM; call sim_vm_fini() in both
 * cases. */
int sim_vm_init(struct sim_vm *vm, struct world *w, uint32_t index, uint32_t n_vcpus);
void sim_vm_fini(struct sim_vm *vm);
/* Draws the guest's clock; the host's clock is known. */
void sim_vm_clock_draw(struct sim_vm *vm);
/* Opens the guest's capture. Returns 0 or -ENOMEM. */
int sim_vm_capture_init(struct sim_vm *vm);
/* Adds the threads of QEMU and of its devices to the host. */
void sim_vm_threads_init(struct sim_vm *vm);
/* Adds the vCPUs, the guest and its load, and starts them. */
void sim_vm_guest_init(struct sim_vm *vm);
/* Starts the clock samples between the host and the guest. */
void sim_vm_echo_start(struct sim_vm *vm);
/* Sends the last frames of the guest and delivers all that are on their way. */
void sim_vm_close(struct sim_vm *vm);
/* Frees what an action that is still planned owns. */
void sim_vm_action_fini(const struct engine_entry *planned);

/* Writes what the collector reads of the VM: its threads; the counters of its cgroup, if it has a
 * quota; the hypervisor's parameters of the guest's clock; what it learns from QEMU. */
void sim_vm_info_emit(struct sim_vm *vm);
void sim_vm_quota_emit(struct sim_vm *vm);
void sim_vm_clock_emit(struct sim_vm *vm);
void sim_vm_note(struct sim_vm *vm, enum note_kind kind, const char *text);

#endif
