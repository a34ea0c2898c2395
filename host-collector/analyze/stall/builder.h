/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Builds a report from a model that is being fed: offline the whole recording's, live one report
 * per incident, through the same code.
 */
#ifndef STALL_BUILDER_H
#define STALL_BUILDER_H

#include "host-collector/analyze/stall/report.h"

enum { REPORT_INCIDENTS_MAX = 4096, REPORT_STACKS_MAX = 2048 };

struct report_options {
	int64_t than_ns;
	bool all; /* healthy stretches too */
	/* So much of a vCPU's time must be observed for the answer that it had no stall. */
	unsigned needed_percent;
	/* The guest's dmesg time at `t`; NULL or false: unknown. */
	bool (*dmesg)(void *context, uint32_t vm, struct host_ns t, struct dmesg_time *out);
	/* Live: called for each incident as soon as it is known, with a report that holds it alone;
	 * borrowed for the call. Incidents are then not kept for report_builder_finish. */
	void (*incident)(void *context, const struct report *report);
	void *context;
	/* Called for each incident as soon as it is known, while the model still holds its time.
	 * May be NULL. */
	void (*noticed)(void *noticed_context, const struct incident *incident);
	void *noticed_context;
};

struct report_builder;

/* Subscribes to the model, which must not be fed after the builder is freed. NULL on ENOMEM. */
struct report_builder *report_builder_new(struct model *m, const struct report_options *options);
void report_builder_free(struct report_builder *b);
/* The interrupts' chains that verdicts go by: per vCPU, late is a quarter of than_ns. Borrowed;
 * they are finished by report_builder_finish, and live as long as the builder. */
struct chains *report_builder_chains(const struct report_builder *b);

/* What the pipeline knows and the model does not; each replaces what was set before for the same VM
 * or source. Names are copied. 0 or -ENOMEM. */
int report_builder_clock(struct report_builder *b, const struct report_clock *clock);
int report_builder_loss(struct report_builder *b, const struct report_loss *loss);
void report_builder_origin(struct report_builder *b, bool simulated, bool imported, bool cut);
/* A line of a VM's kernel log, in this of its boots; what is no soft lockup is ignored. 0 or
 * -ENOMEM. */
int report_builder_log(struct report_builder *b, uint32_t vm, uint32_t boot, uint64_t dmesg_us,
		       const char *text);
/* wall_offset_ns: CLOCK_REALTIME minus the timeline's clock, at the beginning. */
void report_builder_wall(struct report_builder *b, int64_t wall_offset_ns);
/* In order of time. 0 or -ENOMEM. */
int report_builder_wall_step(struct report_builder *b, const struct report_wall_step *step);
int report_builder_reboot(struct report_builder *b, const struct report_reboot *reboot);
/* Forgets the steps and reboots that it was given before. */
void report_builder_notes_clear(struct report_builder *b);

/* The stretches that go on now and have been denied something for the threshold: by the host's own
 * state, so a silent guest is seen. Fills at most `max`; returns how many. */
size_t report_builder_ongoing(struct report_builder *b, struct incident *out, size_t max);

/* After model_finish: the report, the caller's to free with report_free. NULL on ENOMEM. */
struct report *report_builder_finish(struct report_builder *b);

#endif
