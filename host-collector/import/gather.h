/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collects what was read about one machine, before it becomes a recording: events, threads, and the
 * events that could not be used, by name and with examples. Needs 48 bytes of memory for each
 * event, and more for the values of events for which vcpuscope has no type.
 */
#ifndef IMPORT_GATHER_H
#define IMPORT_GATHER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "host-collector/import/other_events.h"
#include "host-collector/import/record.h"
#include "proto/event_catalog.h"

enum {
	GATHER_NAMES_MAX = 256, /* names of unused events; further ones count as one */
	GATHER_EXAMPLES = 5,
	GATHER_EXAMPLE_BYTES = 200,
	GATHER_CPUS = VS_CPU_COLLECTOR,
};

struct gather_event {
	/* Time in ns; seq: order of reading. A USER event of gather_other() has the place of its
	 * values in arg0 until gather_finish(). */
	struct vs_event e;
	bool waking; /* a sched_waking: the request for a wake-up */
};

/* A thread that occurred in the input. */
struct gather_thread {
	int32_t tid, tgid;
	char comm[IMPORT_COMM_BYTES];
	bool kvm;      /* has KVM events */
	bool kvm_read; /* and at least one was parsed */
	bool vcpu_known;
	uint32_t vcpu; /* vCPU index in KVM's events */
};

struct gather_name {
	char name[IMPORT_NAME_BYTES];
	uint64_t n;
};

struct gather_options {
	uint64_t tick_hz;  /* frequency of stamps without a decimal point; 0: unknown */
	bool guest;        /* the machine is a guest */
	int64_t offset_ns; /* added to each time */
};

struct gather {
	struct gather_options options;
	struct gather_event *events;
	size_t n_events, capacity;
	struct gather_thread *threads; /* hash table of `thread_slots`; tid 0 is an empty slot */
	size_t n_threads, thread_slots;
	struct gather_name names[GATHER_NAMES_MAX + 1]; /* last entry: all further names */
	size_t n_names;
	char examples[GATHER_EXAMPLES][GATHER_EXAMPLE_BYTES];
	uint64_t lines, taken, nothing, malformed, unused;
	uint64_t other; /* part of taken: events for which vcpuscope has no type */
	struct other_events *others;
	uint64_t placeless;       /* part of malformed: no CPU, or neither thread nor vCPU */
	uint64_t tickless;        /* part of malformed: a stamp in ticks of unknown length */
	uint64_t reasons_unknown; /* kvm_exit events with a reason that no table has */
	uint64_t torn;            /* part of malformed: KVM events; they count as lost */
	/* Architecture that the events seem to come from; NULL: unknown. */
	const char *architecture;
	uint64_t lost_marks, lost;
	uint64_t backwards;      /* events older than their predecessor on the same CPU */
	uint64_t steps_back;     /* part of backwards: by more than a second */
	uint64_t states_shifted; /* switches whose task state gather_finish() corrected */
	uint64_t invented;       /* events without a thread, assigned by the vCPU that they name */
	uint64_t silences, silent_ns; /* intervals of over a minute without any event, and their
					 length: not recorded */
	uint64_t unit;                /* unit of the coarsest stamp's last digit, ns */
	uint16_t n_cpus;              /* highest CPU seen, plus one */
	uint64_t newest[GATHER_CPUS];
	size_t lost_open[GATHER_CPUS]; /* index + 1 of a LOST event without an end, 0: none */
	bool started[GATHER_CPUS];
};

/* Initializes `g`. Returns 0 or -ENOMEM; call gather_fini() in both cases. The struct is too
 * large for a stack. */
int gather_init(struct gather *g, const struct gather_options *options);
void gather_fini(struct gather *g);
/* Adds a record that was parsed. `source`: its line, which becomes an example if the record is
 * malformed. Returns 0 or -ENOMEM. */
int gather_record(struct gather *g, struct import_record *r, const char *source);
/* Adds a KVM event of a known thread and CPU whose text could not be parsed. The thread's state
 * is unknown from there to its next event. Returns 0 or -ENOMEM. */
int gather_torn(struct gather *g, struct import_record *r, const char *source);
/* Adds an event for which vcpuscope has no type, or which this machine's side does not have: `r`
 * gives its time, CPU and task. Returns 0 or -ENOMEM. */
int gather_other(struct gather *g, struct import_record *r, const struct other_hit *hit,
		 const char *source);
/* Returns whether an event of this type of `r` is one of this machine's side. */
static inline bool gather_has_type(const struct gather *g, uint16_t type)
{
	return event_type_of(type)->sides & (g->options.guest ? EVENT_GUEST : EVENT_HOST);
}

int gather_lost(struct gather *g, uint16_t cpu, uint64_t n);
void gather_unused(struct gather *g, const char *event);
void gather_malformed(struct gather *g, const char *source);
/* Reads all lines of `in`. Returns 0, -ENOMEM or -EIO. */
int gather_text(struct gather *g, FILE *in);
/* Completes the input: sorts the events by time, gives each event of gather_other() its values, and
 * sets the waker of each sched_wakeup from its sched_waking. Corrects the task states of a kernel
 * that writes them one bit too high. Marks as lost the time of threads without a parsed KVM event
 * and, on all CPUs, intervals of over a minute without any event. Returns 0 or -ENOMEM. */
int gather_finish(struct gather *g);
/* Returns the thread, NULL if it did not occur. */
const struct gather_thread *gather_thread_find(const struct gather *g, int32_t tid);

/* First tid of the threads that are invented for vCPUs which only KVM events name. */
enum { GATHER_INVENTED_TID = 1000000000 };

#endif
