/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Places guest events at times when the vCPU was in the guest. A guest's kernel records events only
 * while its vCPU is in the guest, but the error of the clocks puts some stamps just outside. Each
 * such event is moved to the nearest time at which the vCPU was in the guest. This keeps the order
 * of the events and does not move an event that was inside. An event outside waits until it is
 * known when the vCPU enters the guest again.
 *
 * Where host events were lost, the vCPU may have run unobserved. A guest event there that no clock
 * error explains stays where it is, and proves that the vCPU ran.
 */
#ifndef EXPORT_PLACEMENT_H
#define EXPORT_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"

enum placement_state {
	PLACEMENT_UNSEEN,  /* no event of its thread was seen yet */
	PLACEMENT_UNSURE,  /* the host events that would decide it were lost */
	PLACEMENT_AWAY,    /* not in the guest */
	PLACEMENT_PRESENT, /* in the guest */
};

/* What the time of a placed event is based on. */
enum placement_ground {
	PLACEMENT_KNOWN,   /* host events: the vCPU was in the guest at that time */
	PLACEMENT_RUNNING, /* its thread was on a pCPU; whether in the guest is unknown */
	PLACEMENT_ALONE,   /* only the guest event itself */
};

enum { PLACEMENT_WAITING_MAX = 65536 };

struct placement_event {
	uint64_t t; /* time as stamped, CLOCK_BOOTTIME ns */
	int64_t host_ns;
	uint32_t err_ns;
	struct vs_event event;
};

struct placement_counts {
	uint64_t events;
	uint64_t moved;
	uint64_t beyond; /* of these, moved by more than the clocks' error */
	uint64_t worst_ns;
	uint64_t uncovered; /* outside the time that the host captured: left out */
};

struct placement {
	enum placement_state state;
	bool left_known;
	uint64_t left;    /* last time in the guest; valid if left_known */
	uint64_t entered; /* if PRESENT: begin of the time in the guest */
	uint64_t last; /* time at which the last event was placed; later ones are not placed before
			  it */
	uint64_t host_begin;
	/* Newest interval in which it may have run unobserved. Both UINT64_MAX: none.
	 * doubt_until UINT64_MAX: not ended. */
	uint64_t doubt_from, doubt_until;
	uint32_t err_ns; /* bound of the host event that changed the state */
	struct placement_counts *counts;
	size_t first, n, capacity;
	struct placement_event *waiting; /* ring */
	/* Receives the placed events in order. Returns the time at which it put the event, which
	 * may be later than `t`. */
	uint64_t (*put)(void *context, const struct placement_event *e, uint64_t t,
			enum placement_ground ground);
	void *context;
};

/* Initializes a placement. host_begin: begin of the host's capture, ns in the clock of the
 * events. `counts` is borrowed. */
void placement_init(struct placement *p, uint64_t host_begin, struct placement_counts *counts);
void placement_fini(struct placement *p);
/* Adds a guest event. on_cpu: the vCPU thread is on a pCPU. Returns 0 or -ENOMEM. */
int placement_add(struct placement *p, const struct placement_event *e, bool on_cpu);
/* The vCPU is in the guest from `first` on. */
void placement_enter(struct placement *p, uint64_t first, uint32_t err_ns);
/* The vCPU has not been in the guest since `last`. Its thread was on a pCPU until now. */
void placement_leave(struct placement *p, uint64_t last, uint32_t err_ns);
/* The vCPU may run unobserved from `from` on. on_cpu: its thread is on a pCPU then. */
void placement_doubt(struct placement *p, uint64_t from, bool on_cpu);
/* The vCPU thread was not on a pCPU just before `t`. */
void placement_away(struct placement *p, uint64_t t);
/* The host's events end at host_end. Places or drops the events that wait. */
void placement_finish(struct placement *p, uint64_t host_end, bool host_seen);

#endif
