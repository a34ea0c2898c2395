/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Puts a vCPU's guest events where its guest can have run. A guest's kernel records only while its
 * vCPU is in the guest, but its stamps are off by up to the clocks' error, so that some fall just
 * outside. Each is moved to the nearest instant at which the vCPU was in the guest: that keeps
 * their order, and moves none that was right. An event that falls outside waits until it is known
 * when the vCPU comes back.
 *
 * Where events of the host are lost, the vCPU may have run unseen. Then a guest's event that no
 * error of the clocks explains stays where it is, and proves that it did.
 */
#ifndef EXPORT_PLACEMENT_H
#define EXPORT_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"

enum placement_state {
	PLACEMENT_UNSEEN,  /* nothing of its thread was seen yet */
	PLACEMENT_UNSURE,  /* the host's events that would tell are missing */
	PLACEMENT_AWAY,    /* not in the guest */
	PLACEMENT_PRESENT, /* in the guest */
};

/* What an event's place rests on. */
enum placement_ground {
	PLACEMENT_KNOWN,   /* the host's events: the vCPU was in the guest then */
	PLACEMENT_RUNNING, /* its thread was on a pCPU; whether in the guest is not known */
	PLACEMENT_ALONE,   /* the event alone */
};

enum { PLACEMENT_WAITING_MAX = 65536 };

struct placement_event {
	uint64_t t; /* as stamped */
	int64_t host_ns;
	uint32_t err_ns;
	struct vs_event event;
};

struct placement_counts {
	uint64_t events;
	uint64_t moved;
	uint64_t beyond; /* of these: by more than the clocks' error */
	uint64_t worst_ns;
	uint64_t uncovered; /* before or after what the host captured: left out */
};

struct placement {
	enum placement_state state;
	bool left_known;
	uint64_t left;    /* when it was in the guest last, if it is known */
	uint64_t entered; /* PRESENT: since when */
	uint64_t last;    /* where the last event was put, and none before is */
	uint64_t host_begin;
	/* When it may have run unseen, the last time; UINT64_MAX: never, and still. */
	uint64_t doubt_from, doubt_until;
	uint32_t err_ns; /* of the host's event that changed the state */
	struct placement_counts *counts;
	size_t first, n, capacity;
	struct placement_event *waiting; /* ring */
	/* In order. Returns where it was put, which may be later. */
	uint64_t (*put)(void *context, const struct placement_event *e, uint64_t t,
			enum placement_ground ground);
	void *context;
};

/* host_begin: from when on the host was captured, ns in the time of the events. `counts` is
 * borrowed. */
void placement_init(struct placement *p, uint64_t host_begin, struct placement_counts *counts);
void placement_fini(struct placement *p);
/* on_cpu: its thread is on a pCPU. 0 or -ENOMEM. */
int placement_add(struct placement *p, const struct placement_event *e, bool on_cpu);
/* From `first` on it is in the guest. */
void placement_enter(struct placement *p, uint64_t first, uint32_t err_ns);
/* Its thread was on a pCPU just now, and has not been in the guest since `last`. */
void placement_leave(struct placement *p, uint64_t last, uint32_t err_ns);
/* From `from` on it may run unseen; on_cpu: its thread is on a pCPU then. */
void placement_doubt(struct placement *p, uint64_t from, bool on_cpu);
/* Its thread was on no pCPU just before `t`. */
void placement_away(struct placement *p, uint64_t t);
/* The host's events end. */
void placement_finish(struct placement *p, uint64_t host_end, bool host_seen);

#endif
