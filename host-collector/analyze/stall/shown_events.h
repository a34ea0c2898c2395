/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the newest events that no analysis reads, for the evidence of incidents. A report shows
 * those that lie in an incident, with the names and values of their fields:
 *   - host events of the types with EVENT_EVIDENCE (proto/events.def), of the vCPU's thread;
 *   - hits of the events that the user chose (proto/user_event.h), of the vCPU's thread and of the
 *     guest CPU that it runs.
 */
#ifndef STALL_SHOWN_EVENTS_H
#define STALL_SHOWN_EVENTS_H

#include "host-collector/analyze/stall/facts.h"

enum {
	SHOWN_EVENTS_KEPT = 4096, /* of one VM */
	SHOWN_HITS_KEPT =
		512 /* of one vCPU, so that a vCPU with many hits leaves room for the others */
};

struct shown_hits {
	uint64_t n; /* number of hits ever put into the ring */
	struct user_hit ring[SHOWN_HITS_KEPT];
};

/* All zero: empty. */
struct shown_events {
	struct shown_event {
		uint32_t vcpu;
		struct host_ns t;
		struct vs_event event;
	} * ring;   /* NULL: none so far */
	uint64_t n; /* number of events ever put into the ring */
	/* Of the hits: NULL before the first. */
	const struct model *model;
	struct user_hits *hits;
	struct shown_hits *of_vcpu[VS_CPUS_MAX];
};

void shown_events_fini(struct shown_events *s);
/* Takes a host event of one of the VM's vCPU threads. Drops the event if out of memory. */
void shown_events_take(struct shown_events *s, const struct host_instant *i);
/* Returns true for the types of events of which a hit consists, and for LOST, which ends a hit. */
static inline bool shown_hits_have(uint16_t type)
{
	return type == VS_EVENT_USER || type == VS_EVENT_USER_MORE ||
	       type == VS_EVENT_USER_LIMITED || type == VS_EVENT_LOST;
}
/* Finds the vCPU that a hit belongs to: for a host event the vCPU of its thread, for a guest event
 * the vCPU that runs its CPU. Returns 0 or -ENOENT; *vm is not set for a guest event. */
int shown_hit_vcpu(const struct model *m, const struct user_hit *hit, uint32_t *vm, uint32_t *vcpu);
/* Takes an event whose type shown_hits_have() accepts. It is an event of the guest of VM `source`,
 * or a host event of one of that VM's vCPU threads. A hit is kept when its last record has arrived.
 * Drops the hit if out of memory. */
void shown_hits_take(struct shown_events *s, const struct model *m, uint32_t source,
		     const struct vs_event *e, struct host_ns t, uint32_t err_ns);
/* Keeps the hits whose last records are missing; call it after the last event. */
void shown_hits_flush(struct shown_events *s);
/* Fills f->events and f->hits with the events of the facts' vCPU in their interval. f->hits borrows
 * the hits until the next one is taken. */
void shown_events_fill(const struct shown_events *s, struct stall_facts *f);

#endif
