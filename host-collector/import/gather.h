/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything that was read of one machine, before it becomes a recording: its events, its threads
 * and what could not be used, by name and with examples. Holds 48 bytes of memory per event.
 */
#ifndef IMPORT_GATHER_H
#define IMPORT_GATHER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "host-collector/import/record.h"
#include "proto/event.h"

enum {
	GATHER_NAMES_MAX = 256, /* of events without use; the rest counts as one */
	GATHER_EXAMPLES = 5,
	GATHER_EXAMPLE_BYTES = 200,
	GATHER_CPUS = VS_CPU_COLLECTOR,
};

struct gather_event {
	struct vs_event e; /* time in ns; seq: the order in which they were read */
	bool waking;       /* a sched_waking: asked for, not yet done */
};

/* A thread that was seen. */
struct gather_thread {
	int32_t tid, tgid;
	char comm[IMPORT_COMM_BYTES];
	bool kvm;      /* had KVM events */
	bool kvm_read; /* and at least one was understood */
	bool vcpu_known;
	uint32_t vcpu; /* as KVM's own events number it */
};

struct gather_name {
	char name[IMPORT_NAME_BYTES];
	uint64_t n;
};

struct gather_options {
	uint64_t tick_hz;  /* of stamps without a decimal point; 0: not known */
	bool guest;        /* KVM's events are not this machine's to tell */
	int64_t offset_ns; /* added to every time */
};

struct gather {
	struct gather_options options;
	struct gather_event *events;
	size_t n_events, capacity;
	struct gather_thread *threads; /* hash table of `thread_slots`; tid 0 is an empty slot */
	size_t n_threads, thread_slots;
	struct gather_name names[GATHER_NAMES_MAX + 1]; /* the last one: any other */
	size_t n_names;
	char examples[GATHER_EXAMPLES][GATHER_EXAMPLE_BYTES];
	uint64_t lines, taken, nothing, malformed, unused;
	uint64_t placeless;       /* of malformed: no CPU, or neither thread nor vCPU */
	uint64_t tickless;        /* of malformed: a stamp in ticks of unknown length */
	uint64_t reasons_unknown; /* kvm_exit whose reason no table has */
	uint64_t torn;            /* of malformed: KVM's events; they count as lost */
	const char *architecture; /* that they seem to come from; NULL: not known */
	uint64_t lost_marks, lost;
	uint64_t backwards;           /* times before their predecessor's on the same CPU */
	uint64_t steps_back;          /* of these, by more than a second */
	uint64_t invented;            /* events without a thread: told by the vCPU they name */
	uint64_t silences, silent_ns; /* nothing at all for over a minute: not recorded */
	uint64_t unit;                /* the coarsest stamp's last digit, ns */
	uint16_t n_cpus;              /* one more than the highest CPU seen */
	uint64_t newest[GATHER_CPUS];
	size_t lost_open[GATHER_CPUS]; /* index + 1 of a LOST without an end, 0: none */
	bool started[GATHER_CPUS];
};

/* 0 or -ENOMEM; gather_fini in any case. The struct is large: not for a stack. */
int gather_init(struct gather *g, const struct gather_options *options);
void gather_fini(struct gather *g);
/* A record that was understood. `source` is the line, for an example if it makes no sense. 0 or
 * -ENOMEM. */
int gather_record(struct gather *g, struct import_record *r, const char *source);
/* A KVM event at a known place that was not understood: what its thread did from there on, until
 * the next event, is not known. 0 or -ENOMEM. */
int gather_torn(struct gather *g, struct import_record *r, const char *source);
int gather_lost(struct gather *g, uint16_t cpu, uint64_t n);
void gather_unused(struct gather *g, const char *event);
void gather_malformed(struct gather *g, const char *source);
/* Every line of `in`, until it ends. 0, -ENOMEM or -EIO. */
int gather_text(struct gather *g, FILE *in);
/* No more comes: puts the events in the order of time, makes wake-ups of what asked for them, and
 * marks as lost on every CPU what may have happened in a minute without any event.
 * 0 or -ENOMEM. */
int gather_finish(struct gather *g);
/* NULL if it was not seen. */
const struct gather_thread *gather_thread_find(const struct gather *g, int32_t tid);

/* The thread that stands for a vCPU which nothing but a KVM event names. */
enum { GATHER_INVENTED_TID = 1000000000 };

#endif
