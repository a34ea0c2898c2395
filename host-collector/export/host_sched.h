/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who ran on the host's CPUs, as far as the recording tells: it holds the switches that concern a
 * VM's threads, and those on a CPU that a VM's thread waits for. Where a switch finds another task
 * than the one before it brought, what ran in between was not captured, and the row says so. What
 * is certain of a vCPU's thread is kept: it ran as long as something proves it.
 */
#ifndef EXPORT_HOST_SCHED_H
#define EXPORT_HOST_SCHED_H

#include "host-collector/export/sched_row.h"
#include "host-collector/export/tasks.h"

enum { HOST_ROW_PAST = 64 };

struct host_row {
	struct sched_row *row;
	bool any;
	int32_t current;
	bool proven;                 /* current is certain to have run... */
	uint64_t until;              /* ... at least until then */
	struct sched_switch waiting; /* the newest: the next may show that it misleads */
	/* Those before it, ascending: ring. What a guest proves may come later than they. */
	size_t n_past;
	struct host_past {
		uint64_t t;
		int32_t next;
	} past[HOST_ROW_PAST];
};

struct host_sched {
	struct tasks *tasks;
	struct trace_file *file;
	int error;
	struct host_row *rows[VS_CPUS_MAX];
};

/* Frees the rows; nothing is written. */
void host_sched_fini(struct host_sched *h);
/* in_vcpu, out_vcpu: that thread runs a vCPU. */
void host_sched_switch(struct host_sched *h, uint64_t t, const struct vs_event *e, bool out_vcpu,
		       bool in_vcpu);
void host_sched_waking(struct host_sched *h, uint64_t t, const struct vs_event *e);
/* The vCPU thread `tid` ran there at `t`; returns since when it is shown there. */
uint64_t host_sched_proof(struct host_sched *h, uint64_t t, uint16_t cpu, int32_t tid);
/* It ran there at `t`, in the past, and was gone before the next event of that CPU. */
void host_sched_unseen(struct host_sched *h, uint64_t t, uint16_t cpu, int32_t tid);
/* Where it is shown to run now; -1 nowhere. */
int32_t host_sched_where(const struct host_sched *h, int32_t tid);
/* Events of this CPU are missing before the next. */
void host_sched_lost(struct host_sched *h, uint16_t cpu);
void host_sched_finish(struct host_sched *h);

#endif
