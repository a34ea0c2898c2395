/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A host, one VM on it, its agent, the channel between them and the recorder: everything that a run
 * of the simulator consists of.
 */
#ifndef SIMULATE_WORLD_H
#define SIMULATE_WORLD_H

#include "host-collector/simulate/vcpu.h"
#include "proto/recording.h"

enum { WORLD_VCPUS = 2, WORLD_VM = 1, QEMU_PID = 4100, FIRST_VCPU_TID = 4110 };

/* What the tasks on the guest CPU that is watched do. A pair computes and has the CPU to itself: no
 * other task, not even the agent's, wakes there. A steady load is many short requests, the same in
 * every run but for chance: what a comparison of runs is made of. */
enum world_load {
	LOAD_ANY,
	LOAD_ALONE,
	LOAD_SHARED,
	LOAD_SERVER,
	LOAD_PAIR,
	LOAD_IDLE,
	LOAD_STEADY
};

struct world_options {
	const char *path; /* of the recording */
	uint64_t seed;
	double loss;
	enum world_load load;
	bool interrupts;  /* KVM's events of them, too, in runs that have its events */
	bool agent_late;  /* the agent attaches later (life.h) */
	bool shows_clock; /* half of the runs have the hypervisor's parameters of the guest's clock
			   */
	bool kvm_events;  /* in every run, else in every other */
	struct sim_pace pace;
};

struct world_parcel {
	struct world_parcel *next;
	size_t len;
	uint8_t frame[];
};

struct world {
	struct engine engine;
	struct world_options options;
	struct sim_pace pace;
	bool kvm_events, posted, interrupts; /* interrupts: their events, too */
	uint32_t target;                     /* the vCPU to which things happen */
	struct sim_clock host_clock, guest_clock;
	struct sim_capture host_capture, guest_capture;
	struct sim_stacks stacks;
	struct truth truth;
	struct host host;
	struct host_thread *qemu, *killer, *hog, *vhost;
	struct sim_vcpu vcpus[WORLD_VCPUS];
	struct guest_cpu_sim guests[WORLD_VCPUS];
	struct guest_task *agent;
	bool wait_halts; /* the section that waits for a lock (waits.h) */
	/* life.h */
	bool agent_gone, shows_clock;
	unsigned boots; /* of the guest, after its first */
	struct guest_task stopper;
	uint64_t echo_lie_ticks, stamp_lie_ticks;
	struct recording_writer *recording;

	/* The channel: what left the guest and has not arrived yet. */
	struct world_parcel *parcels, **parcels_end;
	int64_t last_arrival;
	int64_t channel_blocked_until; /* QEMU's main thread does not serve it */
	bool echo_waits;
	int64_t echo_sent;
	unsigned heartbeats;

	struct { /* of the VM's cgroup */
		bool set;
		int64_t read, used_up; /* when */
		int64_t throttled_ns, told_ns;
	} quota;
};

/* 0 or -errno; world_fini in any case. */
int world_init(struct world *w, const struct world_options *o);
/* Runs until `t`. 0 or -errno. */
int world_run(struct world *w, int64_t t);
/* Last frames, and the end of the recording. 0 or -errno. */
int world_close(struct world *w);
void world_fini(struct world *w);
/* A line of the host's kernel log. */
void world_log(struct world *w, const char *text);
/* The hypervisor's parameters of the guest's clock, as the collector reads them. */
void world_clock_tell(struct world *w);
void world_note(struct world *w, enum note_kind kind, const char *text);

#endif
