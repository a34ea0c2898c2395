/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the options of a trace.dat (versions 6 and 7 of its format). They describe the trace in the
 * file, and the traces of other machines that were recorded together with it. A host's file lists
 * the vCPU threads of each recorded guest (trace-cmd.dat.v7(5): GUEST). A guest's file has the
 * difference between its clock and the host's (TIME_SHIFT).
 *
 * libtracecmd adds this difference to each time that it reads from the file, and does not report
 * it.
 */
#ifndef IMPORT_DAT_OPTIONS_H
#define IMPORT_DAT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proto/message.h"

/* A guest that was recorded with this host. */
struct dat_guest {
	char name[VS_TEXT_MAX]; /* may be "" */
	uint64_t trace_id;
	size_t n;
	int32_t *tids; /* `n` vCPU threads by the number of the guest's CPU; 0: unknown */
};

/* The offset to add to the times of one CPU from `time` on. Both in units of the trace's clock. */
struct dat_sample {
	uint64_t time;
	int64_t offset;
};

/* How this guest's times become times of its host. */
struct dat_sync {
	bool present;
	uint64_t peer_id;  /* trace id of the host's file */
	bool interpolated; /* between two samples; true for clocks compared by round trips */
	bool scaled;       /* a sample also has a factor other than 1 */
	size_t n_cpus;
	size_t *first;              /* n_cpus + 1 of them: where each CPU's samples begin */
	struct dat_sample *samples; /* of each CPU in order of time, at least one */
};

struct dat_options {
	bool trace_id_known;
	uint64_t trace_id;
	char clock[32];     /* of the trace's stamps; "" if unknown */
	uint32_t n_cpus;    /* 0: unknown */
	bool has_instances; /* holds buffers besides the main one */
	bool tsc_known;     /* the factors that convert ticks of the TSC to ns */
	uint32_t tsc_mult, tsc_shift;
	uint64_t tsc_offset;
	size_t n_guests;
	struct dat_guest *guests;
	struct dat_sync sync;
};

/*
 * Reads the options of the file, which must be seekable. Returns 0, -EBADMSG if they are damaged,
 * -ENOTSUP if the file has another version or its options are compressed, or -ENOMEM.
 * Call dat_options_fini() in each case.
 */
int dat_options_read(struct dat_options *o, FILE *in);
void dat_options_fini(struct dat_options *o);

/*
 * Returns how much the samples of a sync contradict each other: the largest difference between two
 * neighbouring samples of a CPU, or between CPU 0 and another CPU at the same time, in units of
 * the trace's clock. The sync must be present. *compared: whether there were two samples to
 * compare.
 */
uint64_t dat_sync_spread(const struct dat_sync *sync, bool *compared);

#endif
