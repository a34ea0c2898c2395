/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes which tasks ran on the host's CPUs, as far as the recording shows. It contains the
 * switches to and from a VM's threads, and those on a CPU that such a thread waits for. If a switch
 * does not continue with the task of the switch before it, events between them were not captured.
 * The row is then empty, and a slice of the track "Not captured" says so. If an event proves that a
 * vCPU thread ran, the thread is shown until the last such event.
 */
#ifndef EXPORT_HOST_SCHED_H
#define EXPORT_HOST_SCHED_H

#include "host-collector/export/boottime.h"
#include "host-collector/export/sched_row.h"
#include "host-collector/export/tasks.h"

struct host_row {
	struct sched_row *row;
	uint64_t unseen; /* the track of the times in which nothing is known; 0: none yet */
	bool any;
	int32_t current;
	bool proven; /* `current` certainly ran */
	/* At least until the later of these two. Most proofs need no time of the trace's clock. */
	uint64_t until;
	struct host_ns proof; /* ns INT64_MIN: none */
	/* The newest switch, not written yet: the next event may correct it. */
	struct sched_switch waiting;
};

struct host_sched {
	struct tasks *tasks;
	struct trace_file *file;
	struct boottime *boottime;
	int error;
	uint64_t unseen_group; /* 0: none yet */
	struct host_row *rows[VS_CPUS_MAX];
};

/* Frees the rows. Does not write. */
void host_sched_fini(struct host_sched *h);
/* Adds a switch. out_vcpu, in_vcpu: the thread that is switched out or in is a vCPU thread. */
void host_sched_switch(struct host_sched *h, uint64_t t, const struct vs_event *e, bool out_vcpu,
		       bool in_vcpu);
void host_sched_waking(struct host_sched *h, uint64_t t, const struct vs_event *e);
/* Notes that the vCPU thread `tid` ran there at `at`. */
void host_sched_proof(struct host_sched *h, struct host_ns at, uint16_t cpu, int32_t tid);
/* Notes that events of this CPU are missing before the next one. */
void host_sched_lost(struct host_sched *h, uint16_t cpu);
void host_sched_finish(struct host_sched *h);

#endif
