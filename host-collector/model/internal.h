/* SPDX-License-Identifier: GPL-2.0-only */
/* The model's own state, shared by model.c (routing, VMs, time), host.c (host events) and query.c.
 */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "host-collector/model/audience.h"
#include "host-collector/model/vm.h"

enum { THREADS_INDEXED = 16384 };

struct pcpu {
	bool lossy;        /* events are missing since the last one */
	uint64_t lost;     /* how many, while it is lossy */
	uint64_t lost_gap; /* how many since its last switch */
	bool turn_open;    /* events are missing since it was seen who runs here */
	bool current_known;
	int32_t current;         /* by the last switch seen here */
	struct host_ns last;     /* the newest event that fired here */
	struct host_ns switched; /* the newest switch */
	struct host_ns gap_end;  /* of the newest loss that is over */
	struct tenure tenures[VCPU_TENURES];
	struct vcpu *waiters;
};

struct model {
	bool started;
	struct host_ns begin, now;
	struct audiences audiences;
	struct apart *apart; /* NULL: all observers are told at once */
	bool observing_apart;
	size_t n_vms;
	struct vm *vms[MODEL_VMS_MAX];
	struct lru threads; /* tid of a vCPU thread -> by_thread */
	struct vm_vcpu **by_thread;
	struct names names; /* the host's */
	struct cgroups_known cgroups;
	struct origins origins;
	struct crowd_ring *crowd; /* NULL: no crowd yet */
	struct stacks stacks;
	struct host_log host_log;
	unsigned n_lossy;
	uint16_t lossy[VCPU_DOUBTS]; /* which, if they are not more */
	struct host_ns next_release; /* no held span is due before */
	struct pcpu pcpus[VS_CPUS_MAX];
};

/* Calls `statement` for every vCPU `v` of every VM. */
#define EACH_VCPU(m, v, statement)                                                                 \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < (m)->n_vms; i_++) {                                       \
			for (size_t k_ = 0; k_ < (m)->vms[i_]->n_vcpus; k_++) {                    \
				struct vcpu *v = &(m)->vms[i_]->vcpus[k_]->v;                      \
				statement;                                                         \
			}                                                                          \
		}                                                                                  \
	} while (0)

struct vm *vm_find(const struct model *m, uint32_t id); /* NULL if unknown */
struct vcpu_sink vcpu_sink_of(const struct model *m);
/* It last ran what takes a CPU offline: nobody knows what it did at `t`, after its last event. */
bool guest_cpu_may_be_offline(const struct vm *vm, const struct guest_cpu *c, struct host_ns t);
/* The vCPU that this thread runs, or NULL. */
struct vcpu *vcpu_of_thread(const struct model *m, int32_t tid);
/* It no longer waits for its pCPU. */
void waiter_unlink(struct vcpu *v);
/* Whether this event shows a vCPU enter or leave the guest. */
void host_presence(struct model *m, const struct timeline_event *event);
/* At the end of the data: vCPUs that wait for a pCPU waited for whoever still has it. */
void host_finish(struct model *m);
void host_event(struct model *m, struct host_ns t, const struct vs_event *e);

#endif
