/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One VM of the daemon: follows it while it lives (record/collector.h), waits for it while it does
 * not, and hands every frame of it to whoever listens (taps). Recording is one such listener.
 */
#ifndef DAEMON_WATCHED_VM_H
#define DAEMON_WATCHED_VM_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "host-collector/daemon/config.h"
#include "host-collector/daemon/host_captures.h"
#include "host-collector/record/collector.h"

/* A listener; the caller's memory, linked in while it listens. Any function may be NULL. */
struct frame_tap {
	/* As in collector.h. The first frame of a run (below) is the host's HELLO. */
	void (*frame)(void *context, uint32_t source, uint64_t arrival_tsc, const uint8_t *frame,
		      size_t len);
	/* A run begins: the VM was found; all that is known of it before is over. */
	void (*begin)(void *context);
	/* It ended: the VM is gone, or is detached. */
	void (*end)(void *context, const char *why);
	void *context;
	struct frame_tap *next;
};

enum watched_state {
	WATCHED_WAITING, /* not found; tried again every few seconds if it can come back */
	WATCHED_RUNNING,
	WATCHED_GONE, /* its process ended, and another one has another pid */
};

struct watched_vm;

struct watched_vm_events {
	void (*say)(void *context, const char *vm, const char *line);
	/* Its process is known, and not yet followed. */
	void (*process)(void *context, const struct watched_vm *vm, pid_t pid);
	void *context;
};

/* It waits until it is tried. Copies config; borrows captures, of which its events come. NULL on
 * ENOMEM. */
struct watched_vm *watched_vm_new(uv_loop_t *loop, const struct vm_config *config,
				  struct host_captures *captures,
				  const struct watched_vm_events *events);
/* Ends its run; the listeners hear of it. */
void watched_vm_detach(struct watched_vm *vm);
/* Detaches if need be. The loop must run once more. */
void watched_vm_close(struct watched_vm *vm);
/* Call it every 100 ms. */
void watched_vm_tick(struct watched_vm *vm, uint64_t now_ms);
/* Does it wait, and is it time to try to attach it (again)? */
bool watched_vm_is_due(const struct watched_vm *vm, uint64_t now_ms);
/* Tries. A failed attempt is not an error: it waits on. Blocks for some ms; a monitor (QMP) is
 * asked by another thread. */
void watched_vm_try(struct watched_vm *vm);
/* Is its monitor being asked? */
bool watched_vm_is_sought(const struct watched_vm *vm);
/* Ends the run and begins another, for a listener that wants to hear the beginning. */
void watched_vm_restart(struct watched_vm *vm);

/* As attached; borrowed while the VM is watched. */
const struct vm_config *watched_vm_config(const struct watched_vm *vm);
/* A listener to the VM's frames; borrowed until it is taken away. It hears of a run's beginning
 * only if that is yet to come. */
void watched_vm_tap(struct watched_vm *vm, struct frame_tap *tap);
void watched_vm_untap(struct watched_vm *vm, struct frame_tap *tap);
/* 0 or -errno. */
int watched_vm_level(struct watched_vm *vm, enum capture_level level);

/* The process of its QEMU while it runs, else 0. */
pid_t watched_vm_pid(const struct watched_vm *vm);
/* Of a VM whose channel is `daemon:` or vsock: takes over the connection of its QEMU or guest, in
 * any case. */
void watched_vm_adopt(struct watched_vm *vm, int fd);

struct watched_vm_status {
	enum watched_state state;
	const char *why;   /* it waits or is gone; borrowed */
	uint64_t since_ms; /* uv_now() when this state began */
	uint64_t runs;
	bool shed; /* summary now, for there was too much detail; sheds: so far */
	uint64_t sheds;
	struct collector_status collector; /* while it runs */
};
/* As it is now; counts since it was attached. */
void watched_vm_status_get(const struct watched_vm *vm, struct watched_vm_status *out);

#endif
