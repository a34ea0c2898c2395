/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flight recorder. It keeps the last seconds of each VM in memory (flight_ring.h), detects
 * stalls live (engine/live.h) and checks other triggers (triggers.h). It saves an incident folder
 * (incident_store.h) when a stall ends, a trigger fires or a user requests a snapshot.
 *
 * A VM gets at most one folder in the configured time. Stalls and triggers in between are counted,
 * and the next folder reports the count. The memory of a VM whose process ended is freed 10 s
 * later.
 */
#ifndef DAEMON_FLIGHT_H
#define DAEMON_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/analyze/event/pair_watch.h"
#include "host-collector/metrics/metrics_page.h"
#include "host-collector/daemon/flight_ring.h"
#include "host-collector/tables/activity.h"
#include "host-collector/daemon/triggers.h"
#include "host-collector/daemon/incident_store.h"
#include "host-collector/daemon/records.h"
#include "host-collector/daemon/watched_vm.h"

struct flight;

/* Allocates the recorder; passes `options` to the store. records: borrowed until flight_close().
 * Returns NULL if there is no memory. */
struct flight *flight_new(uv_loop_t *loop, const struct incident_store_options *options,
			  struct records *records);
/* Stops all recorders. The next turn of the loop frees the handles. NULL is allowed. */
void flight_close(struct flight *f);
/* Starts the recorder of a VM that does not run yet. Does nothing if the VM's configuration
 * disables it. Returns 0 or -ENOMEM. */
int flight_begin(struct flight *f, struct watched_vm *vm);
void flight_end(struct flight *f, struct watched_vm *vm);
/* Call it every 100 ms. */
void flight_tick(struct flight *f);
/* Handles a trigger that another module detected. Does nothing if the VM's configuration disables
 * it. text: one sentence, not escaped. */
void flight_trigger(struct flight *f, struct watched_vm *vm, enum trigger trigger,
		    const char *text);
/* Saves a folder now. Stores the folder's final name in `path`. Returns 0, -ENOENT (no recorder for
 * this VM), -ENODATA (no frame yet) or an error of incident_store_make(). */
int flight_snapshot(struct flight *f, struct watched_vm *vm, char *path, size_t path_bytes);

/* Fills at most `max` parts of the metrics page and returns their number; 0 if the configuration
 * has no metrics. The parts are valid until the loop's next turn. *past: the sums of VMs that are
 * gone, borrowed. */
size_t flight_metrics(const struct flight *f, struct metrics_part *parts, size_t max,
		      const struct metrics_sum **past);
/* Starts a recording with the newest frames of the VM, at most max_bytes of them. The caller adds
 * later frames with flight_places_append() and frees *places in any case. Returns 0, -ENOENT (no
 * recorder for this VM), -ENODATA (no frame yet) or -errno. */
int flight_continue(struct flight *f, const struct watched_vm *vm, size_t max_bytes,
		    struct recording_writer *out, struct flight_places **places);
/* Does the same for a live reader: starts 0.2 s before now, with the older frames that a reader
 * needs (flight_ring.h). */
int flight_join(struct flight *f, const struct watched_vm *vm, const struct frame_taker *out,
		struct flight_places **places);

struct flight_status {
	bool on;
	uint64_t bytes;          /* memory for frames */
	uint64_t early;          /* frames removed before their time because memory was full */
	uint64_t incidents;      /* stalls seen */
	char clock_method[16];   /* how guest times are converted; "": unknown */
	uint64_t clock_error_ns; /* median error of guest times; UINT64_MAX: not trusted */
	uint64_t folders;        /* folders saved */
	uint64_t suppressed;     /* stalls and triggers without a folder of their own */
	uint64_t triggered;      /* triggers that fired, other than stalls */
};
/* A stall that has ended. */
struct flight_stall {
	const char *verdict; /* static */
	char culprit[96];    /* "": none known */
	uint16_t guest_cpu;
	int64_t duration_ns;
	int64_t wall_ns; /* its begin, CLOCK_REALTIME; 0: unknown */
};
/* What the VM's vCPUs did in about the last second; for `top`. */
struct flight_activity {
	const struct activity_row *rows; /* valid until the next tick */
	size_t n_rows;
	double seconds;                  /* time that they cover; 0: unknown */
	size_t ongoing;                  /* stalls in progress */
	const struct flight_stall *last; /* the newest stall; NULL: none so far */
};
/* Sets all to 0 if the VM has no recorder. */
void flight_activity_get(const struct flight *f, const struct watched_vm *vm,
			 struct flight_activity *out);

/* Gets the number of incidents whose reports are not made yet. */
void flight_queue_get(const struct flight *f, struct incident_store_stats *out);

/* Sets all to 0 if the VM has no recorder. */
void flight_status_get(const struct flight *f, const struct watched_vm *vm,
		       struct flight_status *out);

#endif
