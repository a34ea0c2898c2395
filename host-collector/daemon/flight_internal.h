/* SPDX-License-Identifier: GPL-2.0-only */
/* The data of the flight recorder, for flight.c and flight_read.c only. */
#ifndef DAEMON_FLIGHT_INTERNAL_H
#define DAEMON_FLIGHT_INTERNAL_H

#include "host-collector/daemon/flight.h"
#include "host-collector/decode/turns.h"
#include "host-collector/engine/live.h"

/* The folder that is due next: of the worst stall, or of a trigger if there is no stall. */
struct waiting {
	bool is;    /* a folder is due; the other members are valid */
	bool stall; /* of `incident`; else of `firing` */
	unsigned int tries;
	uint64_t due_ms;
	struct incident incident;
	struct trigger_firing firing;
};

struct flight_vm {
	struct flight *flight;
	struct watched_vm *vm;
	struct frame_tap tap;
	struct flight_ring *ring;
	uint64_t held_ms;        /* when a stall last needed the frames of flight_ring_hold(); 0:
				    nothing is held */
	struct turn_task step;   /* a tick of `live` */
	struct live *live;       /* NULL: no memory; allocated when the streams begin again */
	struct metrics *metrics; /* NULL: not requested, or as `live` */
	bool fresh;              /* a frame came since the last tick of the live model */
	uint64_t ticked_ms;      /* time of that tick */
	bool over;               /* the VM ended; its memory is freed OVER_KEPT_MS later */
	uint64_t over_ms;        /* when it ended */
	struct waiting waiting;
	uint64_t folder_ms; /* when the last one was made; 0: never */
	uint64_t incidents, triggered, folders, suppressed, reported_suppressed;
	struct triggers *triggers; /* of the live model */
	uint64_t log_us;           /* time of the newest line of the guest's log that was checked */
	struct activity *activity; /* of the live model */
	struct activity_row *rows; /* of the last interval; room for ROWS_MAX */
	size_t n_rows;
	uint64_t looked_ms, look_ms; /* when the rows were made, and the length of their interval */
	struct flight_stall last;
	bool stalled;               /* `last` is valid */
	struct records_vm *records; /* its records for the fleet */
	struct pair_watch *pairs;   /* of the live model */
	struct metrics_pair pair_counts[PAIR_WATCH_MAX];
	struct flight_vm *next;
};

struct flight {
	uv_loop_t *loop;
	struct incident_store_options options;
	struct incident_store *store;
	struct records *records;
	struct flight_vm *vms;
	uint64_t host_hz;
	struct metrics_sum past; /* of VMs that ended, so that the host's sums never fall */
	uv_idle_t *serving;      /* active while a folder is due; freed when it is closed */
};

static inline const char *flight_vm_name(const struct flight_vm *v)
{
	return watched_vm_config(v->vm)->name;
}

/* Returns the recorder's part for a VM, or NULL if it has none. */
struct flight_vm *flight_find(const struct flight *f, const struct watched_vm *vm);

#endif
