/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writes the daemon's records to the outbox (fleet/outbox.h): one for each incident of each VM, and
 * the figures of each VM every `figures_every`. docs/fleet.md has the format.
 *
 * The record of an incident is written at once, and again when more is known: when an incident that
 * was reported while it lasted has ended, and when its recording is saved. Incidents above the
 * configured rate share a record, which is written once a second.
 */
#ifndef DAEMON_RECORDS_H
#define DAEMON_RECORDS_H

#include <uv.h>

#include "host-collector/daemon/config.h"
#include "host-collector/daemon/triggers.h"
#include "host-collector/daemon/watched_vm.h"
#include "host-collector/engine/live.h"
#include "host-collector/fleet/outbox.h"
#include "host-collector/metrics/metrics_text.h"

struct records;
struct records_vm; /* what is kept for one VM */

struct records_options {
	const struct daemon_config *config; /* borrowed; a reload may change it */
	const char *root;                   /* "" for this machine; a folder for tests */
	void (*say)(void *context, const char *vm, const char *line);
	/* Returns a watched VM by its process or, if that is 0, by its name; NULL: none. */
	struct watched_vm *(*vm_find)(void *context, pid_t pid, const char *name);
	void *context;
};

/* Opens the outbox; records_tick() tries again if that fails. If the configuration disables it, the
 * other functions do nothing. Returns NULL if there is no memory. */
struct records *records_new(uv_loop_t *loop, const struct records_options *options);
/* Completes the segments. The loop must run until its work is done. NULL is allowed. */
void records_close(struct records *r);
/* Call it every 100 ms. */
void records_tick(struct records *r);
/* Returns whether figures are wanted, which need `metrics` of each VM. */
bool records_want_figures(const struct records *r);

/* Starts the records of a VM. Returns NULL if there is no memory. */
struct records_vm *records_vm_new(struct records *r, struct watched_vm *vm);
/* Writes the figures up to now and frees the VM. NULL is allowed. */
void records_vm_free(struct records_vm *v);
/* Begins a run of the VM. live: its streams, borrowed until records_vm_end(). metrics: may be
 * NULL. */
void records_vm_begin(struct records_vm *v, const struct live *live, const struct metrics *metrics);
/* Ends the run and writes its last figures. */
void records_vm_end(struct records_vm *v);

/* Report an incident that ended or, if it is `ongoing`, that lasts; a trigger that fired. */
void records_incident(struct records_vm *v, const struct incident *incident);
void records_firing(struct records_vm *v, const struct trigger_firing *firing);
/* Reports that the recording of an incident (or, if that is NULL, of the newest trigger) is saved
 * in this folder, whose name still has the suffix INCIDENT_UNFINISHED. */
void records_saved(struct records_vm *v, const struct incident *incident, const char *folder);

/* Gets what is known of the host, for metrics. The texts are borrowed until the next tick. */
void records_host_get(const struct records *r, struct metrics_host *out);
/* Returns false if there is no outbox. */
bool records_stats(const struct records *r, struct outbox_stats *out);

#endif
