/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One parsed line or record of another tracer: what ftrace text and trace.dat have in common. If
 * vcpuscope has no type for the event, its fields are not set here; other_events.h has them.
 */
#ifndef IMPORT_RECORD_H
#define IMPORT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/event.h"

enum { IMPORT_COMM_BYTES = 16, IMPORT_NAME_BYTES = 64 };

/* A thread and its name. tid 0 is the idle task, whose name is ignored. */
struct import_task {
	bool known;
	int32_t tid;
	int32_t tgid; /* process id; 0: unknown */
	char comm[IMPORT_COMM_BYTES];
};

struct import_record {
	uint64_t time; /* nanoseconds, or ticks if `ticks` */
	bool ticks;    /* the stamp had no decimal point */
	uint64_t unit; /* unit of the stamp's last digit, ns */
	bool cpu_known;
	uint16_t cpu;
	struct import_task task;        /* task on the CPU */
	char event[IMPORT_NAME_BYTES];  /* without its subsystem */
	char system[IMPORT_NAME_BYTES]; /* the subsystem; "" if the text does not say it */
	const char *text; /* what follows the event's name in the line that was parsed; or NULL */
	struct import_task named[2]; /* tasks that the event names */
	bool vcpu_known;             /* a KVM event that names its vCPU */
	uint32_t vcpu;
	const char *architecture; /* architecture whose KVM prints such text, if not x86; NULL:
				     unknown */
	bool reason_unknown;      /* a kvm_exit with a reason that no table has */
	/* The event; type 0: vcpuscope has no such event. time, seq and cpu are not set. The pid
	 * of a KVM event is that of the task. */
	struct vs_event e;
};

/* Returns whether a record that could not be parsed is a KVM event of a known thread and CPU. */
static inline bool import_record_is_torn(const struct import_record *r)
{
	const bool kvm = r->e.type == VS_EVENT_KVM_ENTRY || r->e.type == VS_EVENT_KVM_EXIT ||
			 r->e.type == VS_EVENT_KVM_USERSPACE_EXIT;

	return kvm && r->task.known && r->task.tid && r->cpu_known;
}

#endif
