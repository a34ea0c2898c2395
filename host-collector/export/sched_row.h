/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The schedule of one CPU of one machine, as compact ftrace bundles: who was switched to, and what
 * was woken. A reader takes the task switched to last for the one that is switched out, so every
 * change must be told, guessed ones included.
 */
#ifndef EXPORT_SCHED_ROW_H
#define EXPORT_SCHED_ROW_H

#include "host-collector/export/trace_file.h"

enum { SCHED_ROW_EVENTS = 128, SCHED_ROW_NAMES = 64 };

struct sched_switch {
	uint64_t t;
	uint32_t prev_state; /* enum vs_task_state of whom is switched out */
	int32_t next;
	int32_t next_prio;
	const char *name; /* of next; copied */
};

struct sched_waking {
	uint64_t t;
	int32_t pid;
	int32_t prio;
	uint32_t target_cpu;
	const char *name; /* of pid; copied */
};

struct sched_row {
	uint32_t machine;
	uint16_t cpu;
	bool lost;       /* events are missing before the next bundle's */
	uint64_t oldest; /* switch */
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
	struct protobuf explicit; /* wake-ups by somebody who is not on this CPU */
};

struct sched_row *sched_row_new(uint32_t machine, uint16_t cpu); /* NULL on ENOMEM */
void sched_row_free(struct sched_row *r);
/* Any order of times; in order is cheapest. */
void sched_row_switch(struct sched_row *r, struct trace_file *f, const struct sched_switch *s);
void sched_row_waking(struct sched_row *r, struct trace_file *f, const struct sched_waking *w);
/* The same by `waker`, who was somewhere else. */
void sched_row_waking_by(struct sched_row *r, struct trace_file *f, const struct sched_waking *w,
			 int32_t waker);
/* Writes what is kept back. */
void sched_row_flush(struct sched_row *r, struct trace_file *f);

#endif
