/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Keeps the newest host events of types that no analysis reads (EVENT_EVIDENCE in
 * proto/events.def). A report shows those of a vCPU's thread that lie in an incident, with the
 * names and values of their fields.
 */
#ifndef STALL_SHOWN_EVENTS_H
#define STALL_SHOWN_EVENTS_H

#include "host-collector/analyze/stall/facts.h"

enum { SHOWN_EVENTS_KEPT = 4096 }; /* of one VM */

/* All zero: empty. */
struct shown_events {
	struct shown_event {
		uint32_t vcpu;
		struct host_ns t;
		struct vs_event event;
	} * ring;   /* NULL: none so far */
	uint64_t n; /* number of events ever put into the ring */
};

void shown_events_fini(struct shown_events *s);
/* Takes a host event of one of the VM's vCPU threads. Without memory the event is not kept. */
void shown_events_take(struct shown_events *s, const struct host_instant *i);
/* Fills f->events with the events of the facts' vCPU in their interval. */
void shown_events_fill(const struct shown_events *s, struct stall_facts *f);

#endif
