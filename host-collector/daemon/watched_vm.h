/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One VM of the daemon. It follows the VM while the VM's process runs (record/collector.h). While
 * no process runs, it tries to find one. It delivers each frame to its listeners (struct
 * frame_tap), for example the recording. The time from finding the VM to its end is a run.
 */
#ifndef DAEMON_WATCHED_VM_H
#define DAEMON_WATCHED_VM_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "host-collector/daemon/config.h"
#include "host-collector/daemon/host_captures.h"
#include "host-collector/record/collector.h"

/* A listener. The caller owns the memory, which must stay valid while it is registered. Any
 * function may be NULL. */
struct frame_tap {
	/* Delivers a frame, as in collector.h. The first frame of a run is the host's HELLO. */
	void (*frame)(void *context, uint32_t source, uint64_t arrival_tsc,
		      struct frame_item *frame);
	/* Reports that a run starts; state from an earlier run is obsolete. */
	void (*begin)(void *context);
	/* Reports that the run ended: the VM is gone or was detached. */
	void (*end)(void *context, const char *why);
	void *context;
	struct frame_tap *next;
};

enum watched_state {
	/* Not found; tried again every 5 s, or 60 s if its monitor did not answer. */
	WATCHED_WAITING,
	WATCHED_RUNNING,
	WATCHED_GONE, /* its process ended; final, because the VM was given by pid */
};

struct watched_vm;

struct watched_vm_events {
	void (*say)(void *context, const char *vm, const char *line);
	/* Reports the VM's process before the VM is followed. */
	void (*process)(void *context, const struct watched_vm *vm, pid_t pid);
	void *context;
};

/* Allocates a VM in state WATCHED_WAITING. Copies config and events; borrows captures, which
 * deliver the host's events. Returns NULL if there is no memory. */
struct watched_vm *watched_vm_new(uv_loop_t *loop, const struct vm_config *config,
				  struct host_captures *captures,
				  const struct watched_vm_events *events);
/* Ends the run and notifies the listeners. */
void watched_vm_detach(struct watched_vm *vm);
/* Detaches the VM if necessary and frees it. The next turn of the loop frees the handles of its
 * collector. NULL is allowed. */
void watched_vm_close(struct watched_vm *vm);
/* Call it every 100 ms. */
void watched_vm_tick(struct watched_vm *vm, uint64_t now_ms);
/* Returns whether the VM is waiting and the next attempt to attach it is due. */
bool watched_vm_is_due(const struct watched_vm *vm, uint64_t now_ms);
/* Tries to attach the VM; after a failure the VM stays in state WATCHED_WAITING. Blocks for some
 * ms. A worker thread queries the monitor (QMP). */
void watched_vm_try(struct watched_vm *vm);
/* Returns whether a query of the monitor is in progress. */
bool watched_vm_is_sought(const struct watched_vm *vm);
/* Ends the run and starts another, for a listener that needs the first frames of a run. */
void watched_vm_restart(struct watched_vm *vm);

/* Returns the configuration, which is valid while the VM is watched. */
const struct vm_config *watched_vm_config(const struct watched_vm *vm);
/* Registers a listener; borrowed until watched_vm_untap(). If a run is in progress, `begin` is not
 * called for it. */
void watched_vm_tap(struct watched_vm *vm, struct frame_tap *tap);
void watched_vm_untap(struct watched_vm *vm, struct frame_tap *tap);
/* Sets the level of the host capture. Returns 0 or -errno. */
int watched_vm_level(struct watched_vm *vm, enum capture_level level);

/* Returns the VMM's process while the VM runs, else 0. */
pid_t watched_vm_pid(const struct watched_vm *vm);
/* Returns the VMM's version while the VM runs; "": unknown. Borrowed. */
const char *watched_vm_version(const struct watched_vm *vm);
/* Passes the agent's connection `fd` to a VM whose channel is `daemon:` or vsock. Takes over `fd`
 * in any case. */
void watched_vm_adopt(struct watched_vm *vm, int fd);

struct watched_vm_status {
	enum watched_state state;
	const char *why;   /* why it waits or is gone; borrowed */
	uint64_t since_ms; /* uv_now() at the start of this state */
	uint64_t runs;
	bool shed; /* captured at level summary because of detail_rate; sheds: how often */
	uint64_t sheds;
	struct collector_status collector; /* valid while it runs */
};
/* Returns the current status; counts since the VM was attached. */
void watched_vm_status_get(const struct watched_vm *vm, struct watched_vm_status *out);

#endif
