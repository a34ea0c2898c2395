/* SPDX-License-Identifier: GPL-2.0-only */
/* The model's state, shared by model.c (routing, VMs, time), host.c (events of the host) and
 * query.c. */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "host-collector/model/audience.h"
#include "host-collector/model/vm.h"
#include "host-collector/model/window.h"

enum { THREADS_INDEXED = 16384, THREAD_BITS = 4096 };

struct pcpu {
	bool lossy;        /* events were lost since the last event here */
	uint64_t lost;     /* number of lost events, while it is lossy */
	uint64_t lost_gap; /* events lost since its last switch */
	/* Events were lost since the current task of this pCPU was last seen. */
	bool turn_open;
	bool current_known;
	int32_t current;         /* the task of the last switch here */
	struct host_ns last;     /* the newest event here */
	struct host_ns switched; /* the newest switch here */
	struct host_ns gap_end;  /* end of the newest loss that is over */
	struct tenure tenures[VCPU_TENURES];
	struct vcpu *waiters;
};

struct model {
	bool started;
	struct host_ns begin, now;
	struct audiences audiences;
	struct vcpu_sink vcpu_sink; /* of the state machines; they lead to the audiences */
	struct guest_cpu_sink guest_cpu_sink;
	struct worker *worker; /* NULL: all observers run on the caller's thread */
	bool observing_on_worker;
	struct window *window;  /* window of the observers that are added now; NULL: they receive
				   everything */
	struct window *windows; /* list of all windows */
	size_t n_vms;
	struct vm *vms[MODEL_VMS_MAX];
	uint64_t n_joins; /* model_joins() */
	bool host_seen;   /* an event of the host has come since the last VM was added */
	bool notes_lost;
	bool leaves_guests;
	size_t n_windows_needed; /* 0: no limit */
	const struct model_window *windows_needed;
	bool guests_missed; /* atomic */
	size_t n_distrusted;
	uint32_t distrusted[MODEL_VMS_MAX]; /* ids of guests (model_guest_distrust) */
	struct lru threads; /* maps the tid of a vCPU thread to a slot of by_thread */
	struct vm_vcpu **by_thread;
	/* Bit tid % THREAD_BITS of each vCPU thread so far. Most events of the host are of other
	 * threads: they need no search. */
	uint64_t thread_bits[THREAD_BITS / 64];
	/* The vCPU whose thread was announced last of those with the same bit; NULL: none, or it is
	 * gone. It saves most searches. */
	struct vm_vcpu *by_bit[THREAD_BITS];
	struct names names; /* names of the host's tasks */
	struct cgroups_known cgroups;
	struct origins origins;
	struct crowd_ring *crowd; /* NULL until the first entry */
	struct stacks stacks;
	struct user_events *user_events;
	struct host_log host_log;
	unsigned n_lossy;
	uint16_t lossy[VCPU_DOUBTS]; /* the lossy pCPUs, if no more than VCPU_DOUBTS */
	struct host_ns next_release; /* no held span is due before this time */
	struct pcpu pcpus[VS_CPUS_MAX];
};

/* The index of this thread's word in model.thread_bits, and its bit there. */
static inline uint32_t thread_word(int32_t tid)
{
	return (uint32_t)tid % THREAD_BITS / 64;
}

static inline uint64_t thread_bit(int32_t tid)
{
	return 1ull << (uint32_t)tid % 64;
}

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

/* Returns NULL if it is unknown. */
static inline struct vm *vm_find(const struct model *m, uint32_t id)
{
	for (size_t i = 0; i < m->n_vms; i++) {
		if (m->vms[i]->id == id)
			return m->vms[i];
	}
	return NULL;
}
/* Returns true if the guest CPU's last task was the one that takes a CPU offline, so its state at
 * `t`, after its last event, is unknown. */
bool guest_cpu_may_be_offline(const struct vm *vm, const struct guest_cpu *c, struct host_ns t);
/* Returns the vCPU that this thread runs, or NULL. */
struct vcpu *vcpu_of_thread(const struct model *m, int32_t tid);
/* Removes a vCPU from the waiters of its pCPU. */
void waiter_unlink(struct vcpu *v);
/* At the end of the data: accounts the time of vCPUs that still wait for a pCPU to its current
 * task. */
void host_finish(struct model *m);
/* Processes an event of the host, at time m->now. */
void host_event(struct model *m, const struct timeline_event *event);
/* Returns the types of the host's events that change what the model knows. */
struct event_set host_types(void);

#endif
