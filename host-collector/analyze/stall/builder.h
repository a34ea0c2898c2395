/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Builds a report while the model is fed. Offline it makes one report of the whole recording, live
 * one report per incident. Both use the same code.
 */
#ifndef STALL_BUILDER_H
#define STALL_BUILDER_H

#include "host-collector/analyze/stall/report.h"

enum { REPORT_INCIDENTS_MAX = 4096, REPORT_STACKS_MAX = 2048 };
/* The threshold of a report, unless --than says otherwise. */
#define STALL_DEFAULT_NS 100000000

struct report_options {
	int64_t than_ns; /* the threshold */
	bool all;        /* also list long run intervals in which nothing was denied */
	/* Judge incidents only: the report has no states of vCPUs and no coverage. Not live. */
	bool incidents_only;
	/* The share of a vCPU's time that must be observed for the answer "no stall". */
	unsigned needed_percent;
	/* The time to report; NULL: all. Borrowed until _new returns. */
	const struct narrow *window;
	/* Converts `t` to the guest's dmesg time; returns false if it is unknown. May be NULL. */
	bool (*dmesg)(void *context, uint32_t vm, struct host_ns t, struct dmesg_time *out);
	/* Live: called for each incident when it is found, with a report of this incident only,
	 * borrowed for the call. Incidents are then not kept for report_builder_finish. May be
	 * NULL. */
	void (*incident)(void *context, const struct report *report);
	/* Live: called before `incident`, to set the data that the model does not have. May be
	 * NULL. */
	void (*prepare)(void *context);
	void *context;
	/* Adds evidence to an incident: live when it is found, before `incident`; else when the
	 * report is finished. May be NULL. */
	void (*evidence)(void *evidence_context, struct incident *incident);
	void *evidence_context;
	/* Called for each incident when it is found, before `incident`. May be NULL. */
	void (*noticed)(void *noticed_context, const struct incident *incident);
	void *noticed_context;
};

struct report_builder;

/* Subscribes to the model. Feed the model no more after report_builder_free. Copies the options.
 * Returns NULL if out of memory. */
struct report_builder *report_builder_new(struct model *m, const struct report_options *options);
void report_builder_free(struct report_builder *b);
/* Returns the interrupt chains that the verdicts use (overdue_chains). Borrowed from the builder.
 * report_builder_finish finishes them. */
struct chains *report_builder_chains(const struct report_builder *b);

/* Set data that the model does not have. A later call replaces the entry of the same VM (clock) or
 * source (loss). Names are copied. Return 0 or -ENOMEM. */
int report_builder_clock(struct report_builder *b, const struct report_clock *clock);
int report_builder_loss(struct report_builder *b, const struct report_loss *loss);
void report_builder_origin(struct report_builder *b, bool simulated, bool imported, bool cut);
/* Adds a line of a VM's kernel log from boot number `boot`. Ignores lines that do not report a soft
 * lockup. Returns 0 or -ENOMEM. */
int report_builder_log(struct report_builder *b, uint32_t vm, uint32_t boot, uint64_t dmesg_us,
		       const char *text);
/* Sets CLOCK_REALTIME minus the timeline's clock at the begin of the recording. */
void report_builder_wall(struct report_builder *b, int64_t wall_offset_ns);
/* Add a step of CLOCK_REALTIME, a reboot of a guest; in order of time. Return 0 or -ENOMEM. */
int report_builder_wall_step(struct report_builder *b, const struct report_wall_step *step);
int report_builder_reboot(struct report_builder *b, const struct report_reboot *reboot);
/* Forgets all clock steps, reboots and log lines. */
void report_builder_notes_clear(struct report_builder *b);

/* Judges the stalls that are in progress (stall_ongoing). Fills at most `max` incidents and never
 * more than 64; returns their number. */
size_t report_builder_ongoing(struct report_builder *b, struct incident *out, size_t max);

/* Completes the report; call it once, after model_finish. The caller frees it with report_free.
 * Returns NULL if out of memory, now or earlier. */
struct report *report_builder_finish(struct report_builder *b);

#endif
