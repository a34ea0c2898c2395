/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The flight recorder: the last seconds of every VM in memory (flight_ring.h), its stalls watched
 * as they happen (engine/live.h) and other triggers (daemon/triggers.h), and a folder
 * (incident_store.h) when a stall is over, a trigger fires or somebody asks.
 *
 * What is known of a VM that ended is forgotten 10 s later, and its memory given back.
 *
 * One VM has at most one folder in the configured time; what happens between is counted and told
 * with the next one.
 */
#ifndef DAEMON_FLIGHT_H
#define DAEMON_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/metrics/metrics_page.h"
#include "host-collector/daemon/flight_ring.h"
#include "host-collector/tables/activity.h"
#include "host-collector/daemon/triggers.h"
#include "host-collector/daemon/incident_store.h"
#include "host-collector/daemon/watched_vm.h"

struct flight;

/* options: as the store's. NULL on ENOMEM. */
struct flight *flight_new(uv_loop_t *loop, const struct incident_store_options *options);
/* The loop must run once more. NULL is allowed. */
void flight_close(struct flight *f);
/* Listens to the VM, which does not run yet. Nothing if its configuration does not want it. 0 or
 * -ENOMEM. */
int flight_begin(struct flight *f, struct watched_vm *vm);
void flight_end(struct flight *f, struct watched_vm *vm);
/* Call it every 100 ms. */
void flight_tick(struct flight *f);
/* A trigger that is seen elsewhere fired, if the VM's configuration wants it; text: in one plain
 * sentence, not escaped. */
void flight_trigger(struct flight *f, struct watched_vm *vm, enum trigger trigger,
		    const char *text);
/* A folder now, by hand. `path`: its name to be. 0, -ENOENT (no recorder for this VM), -ENODATA (no
 * frame yet), or what incident_store_make says. */
int flight_snapshot(struct flight *f, struct watched_vm *vm, char *path, size_t path_bytes);

/* The VMs' shares of a page of metrics, if the configuration wants any: fills at most `max`,
 * returns how many. Borrowed until the loop goes on. */
size_t flight_metrics(const struct flight *f, struct metrics_part *parts, size_t max);
/* Begins a recording with the VM's last seconds, as much of them as max_bytes holds, to which
 * flight_places_append() adds what follows. 0, -ENOENT (no recorder for this VM), -ENODATA (no
 * frame yet), -errno; *places is the caller's. */
int flight_continue(struct flight *f, const struct watched_vm *vm, size_t max_bytes,
		    struct recording_writer *out, struct flight_places **places);
/* The same for somebody who wants what happens from now on: of the last seconds there is only what
 * it takes to know who is who, and 0.2 s. */
int flight_join(struct flight *f, const struct watched_vm *vm, const struct frame_taker *out,
		struct flight_places **places);

struct flight_status {
	bool on;
	uint64_t bytes;          /* of memory for its frames */
	uint64_t early;          /* frames that went before their time: more memory is needed */
	uint64_t incidents;      /* stalls seen */
	char clock_method[16];   /* of the guest's times; "": not known */
	uint64_t clock_error_ns; /* what half of its events stay below */
	uint64_t folders;        /* made */
	uint64_t suppressed;     /* stalls and triggers without a folder of their own */
	uint64_t triggered;      /* triggers other than stalls */
};
/* What the VM's vCPUs did in the last second; for `top`. */
struct flight_activity {
	const struct activity_row *rows; /* borrowed until the next tick */
	size_t n_rows;
	double seconds; /* that they cover; 0: nothing is known */
	size_t ongoing; /* stalls */
};
/* n_rows 0: it has no recorder. */
void flight_activity_get(const struct flight *f, const struct watched_vm *vm,
			 struct flight_activity *out);

/* Incidents whose reports are still to come. */
void flight_queue_get(const struct flight *f, struct incident_store_stats *out);

/* All zero if it has no recorder. */
void flight_status_get(const struct flight *f, const struct watched_vm *vm,
		       struct flight_status *out);

#endif
