/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One line or one record of another tracer, understood: what ftrace text and trace.dat have in
 * common. An event that vcpuscope has no use for is understood too, as its name alone.
 */
#ifndef IMPORT_RECORD_H
#define IMPORT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/event.h"

enum { IMPORT_COMM_BYTES = 16, IMPORT_NAME_BYTES = 64 };

/* A thread and the name it had; tid 0 is an idle CPU, whose name says nothing. */
struct import_task {
	bool known;
	int32_t tid;
	int32_t tgid; /* 0: unknown */
	char comm[IMPORT_COMM_BYTES];
};

struct import_record {
	uint64_t time; /* nanoseconds, or ticks if `ticks` */
	bool ticks;    /* the stamp had no decimal point */
	uint64_t unit; /* of the stamp's last digit, in ns */
	bool cpu_known;
	uint16_t cpu;
	struct import_task task;       /* on the CPU */
	char event[IMPORT_NAME_BYTES]; /* without its subsystem */
	struct import_task named[2];   /* tasks that the event names */
	bool vcpu_known;               /* a KVM event that says which vCPU */
	uint32_t vcpu;
	const char *architecture; /* whose KVM prints such text, if not x86; NULL: none known */
	bool reason_unknown;      /* a kvm_exit whose reason no table has */
	/* Of what enum vs_event_type; 0: vcpuscope has no such event. time, seq and cpu are not
	 * filled in; a KVM event's pid is the task's. */
	struct vs_event e;
};

/* Of what was not understood: is it KVM's, and is it known where it belongs? */
static inline bool import_record_is_torn(const struct import_record *r)
{
	const bool kvm = r->e.type == VS_EVENT_KVM_ENTRY || r->e.type == VS_EVENT_KVM_EXIT ||
			 r->e.type == VS_EVENT_KVM_USERSPACE_EXIT;

	return kvm && r->task.known && r->task.tid && r->cpu_known;
}

#endif
