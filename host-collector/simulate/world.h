/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulates a host, the VMs on it and the recorder. All VMs have a load. Only the first VM has
 * faults.
 */
#ifndef SIMULATE_WORLD_H
#define SIMULATE_WORLD_H

#include "host-collector/simulate/jobs.h"
#include "host-collector/simulate/vcpu.h"
#include "proto/recording.h"

enum {
	WORLD_VCPUS = 2, /* of each VM, unless the options say otherwise */
	WORLD_VMS_MAX = 16,
	WORLD_VCPUS_MAX = 32,
	WORLD_SPARE_CPUS = 2, /* pCPUs besides one for each vCPU */
};

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
	bool kvm_events;  /* true: in every run; false: in about half of the runs */
	bool jobs;        /* events of a user, with known pairs (jobs.h) */
	struct sim_pace pace;
	uint32_t n_vms, n_vcpus; /* VMs, and vCPUs of each; 0: 1 and WORLD_VCPUS */
	/* How the guests are protected. Recordings of protected guests contain the hypervisor's
	 * parameters. With SEV-SNP and TDX, the guest's TSC does not follow these parameters,
	 * because the processor's firmware sets it. */
	enum vm_protection protection;
};

struct sim_vm;

struct world {
	struct engine engine;
	struct world_options options;
	struct sim_pace pace;
	bool kvm_events, posted, interrupts; /* interrupts: also events of interrupts */
	bool shows_clock;                    /* see world_options */
	struct sim_clock host_clock;
	struct sim_capture host_capture;
	struct sim_stacks stacks;
	struct host host;
	struct host_thread *killer, *hog;
	uint32_t n_vms;
	struct sim_vm *vms; /* vm.h; the first one has the faults */
	struct sim_jobs jobs;
	struct recording_writer *recording;
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
/* Writes a frame of a source to the recording. */
void world_entry(struct world *w, uint32_t source, const uint8_t *frame, size_t len);

#endif
