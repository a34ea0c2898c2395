/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the schedule of one CPU of one machine as compact ftrace bundles: switches and wake-ups. A
 * reader assumes that the task of the last switch is the one that is switched out. So each change
 * must be written, including inferred ones.
 */
#ifndef EXPORT_SCHED_ROW_H
#define EXPORT_SCHED_ROW_H

#include "host-collector/export/trace_file.h"

enum { SCHED_ROW_EVENTS = 128, SCHED_ROW_NAMES = 64 };

struct sched_switch {
	uint64_t t;
	uint32_t prev_state; /* enum vs_task_state of the task that is switched out */
	int32_t next;
	int32_t next_prio;
	const char *name; /* name of next; copied */
};

struct sched_waking {
	uint64_t t;
	int32_t pid;
	int32_t prio;
	uint32_t target_cpu;
	const char *name; /* name of pid; copied */
};

struct sched_row {
	uint32_t machine;
	uint16_t cpu;
	bool lost;       /* events are missing before the next bundle */
	uint64_t oldest; /* time of the oldest switch */
	/* The last switch before the interval that is written: it shows which task runs at its
	 * begin. */
	bool before_known;
	struct sched_switch before;
	char before_name[TRACE_NAME_BYTES];
	unsigned n_switches, n_wakings, n_names;
	struct sched_row_name {
		int32_t pid;
		char text[TRACE_NAME_BYTES];
	} names[SCHED_ROW_NAMES];
	struct sched_row_switch {
		uint64_t t;
		uint32_t prev_state;
		int32_t next, prio;
		uint32_t name;
	} switches[SCHED_ROW_EVENTS];
	struct sched_row_waking {
		uint64_t t;
		uint32_t target_cpu;
		int32_t pid, prio;
		uint32_t name;
	} wakings[SCHED_ROW_EVENTS];
	struct protobuf explicit; /* wake-ups by a task that is not on this CPU */
};

struct sched_row *sched_row_new(uint32_t machine, uint16_t cpu); /* returns NULL on ENOMEM */
void sched_row_free(struct sched_row *r);
/* Add a switch or a wake-up. Times may be in any order; ascending is cheapest. */
void sched_row_switch(struct sched_row *r, struct trace_file *f, const struct sched_switch *s);
void sched_row_waking(struct sched_row *r, struct trace_file *f, const struct sched_waking *w);
/* Adds a wake-up by `waker`, which was not on this CPU. */
void sched_row_waking_by(struct sched_row *r, struct trace_file *f, const struct sched_waking *w,
			 int32_t waker);
/* Writes what is held back. */
void sched_row_finish(struct sched_row *r, struct trace_file *f);

#endif
