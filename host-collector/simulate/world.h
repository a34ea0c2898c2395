/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulates a host, one VM on it, its agent, the channel between them and the recorder: everything
 * in a run of the simulator.
 */
#ifndef SIMULATE_WORLD_H
#define SIMULATE_WORLD_H

#include "host-collector/simulate/vcpu.h"
#include "proto/recording.h"

enum { WORLD_VCPUS = 2, WORLD_VM = 1, QEMU_PID = 4100, FIRST_VCPU_TID = 4110 };

/* What the tasks on the watched guest CPU do. PAIR: two tasks compute, and no other task, not
 * even the agent, wakes on this CPU. STEADY: many short requests, equal in every run except for
 * random variation, for comparisons of runs. */
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
	const char *path; /* path of the recording */
	uint64_t seed;
	double loss;
	enum world_load load;
	bool interrupts;  /* runs with KVM's events contain those of interrupts, too */
	bool agent_late;  /* the agent attaches later (life.h) */
	bool shows_clock; /* about half of the runs contain the hypervisor's parameters of the
			     guest's clock */
	bool kvm_events;  /* in every run, else in about half of the runs */
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
	bool kvm_events, posted, interrupts; /* interrupts: also events of interrupts */
	uint32_t target;                     /* the vCPU that the faults affect */
	struct sim_clock host_clock, guest_clock;
	struct sim_capture host_capture, guest_capture;
	struct sim_stacks stacks;
	struct truth truth;
	struct host host;
	struct host_thread *qemu, *killer, *hog, *vhost;
	struct sim_vcpu vcpus[WORLD_VCPUS];
	struct guest_cpu_sim guests[WORLD_VCPUS];
	struct guest_task *agent;
	bool wait_halts; /* the section that waits for a lock halts (waits.h) */
	/* see life.h */
	bool agent_gone, shows_clock;
	unsigned boots; /* boots of the guest after the first */
	struct guest_task stopper;
	uint64_t echo_lie_ticks, stamp_lie_ticks;
	struct recording_writer *recording;

	/* The channel: frames that left the guest and have not arrived yet. */
	struct world_parcel *parcels, **parcels_end;
	int64_t last_arrival;
	int64_t channel_blocked_until; /* until then QEMU's main thread does not serve the channel
					*/
	bool echo_waits;
	int64_t echo_sent;
	unsigned heartbeats;

	struct { /* CPU quota of the VM's cgroup */
		bool set;
		int64_t read, used_up; /* times */
		int64_t throttled_ns, reported_ns;
	} quota;
};

/* Returns 0 or -errno; call world_fini() in both cases. */
int world_init(struct world *w, const struct world_options *o);
/* Runs until `t`. Returns 0 or -errno. */
int world_run(struct world *w, int64_t t);
/* Writes the last frames and the end of the recording. Returns 0 or -errno. */
int world_close(struct world *w);
void world_fini(struct world *w);
/* Writes a line of the host's kernel log. */
void world_log(struct world *w, const char *text);
/* Writes the hypervisor's parameters of the guest's clock, as the collector reads them. */
void world_clock_emit(struct world *w);
void world_note(struct world *w, enum note_kind kind, const char *text);

#endif
