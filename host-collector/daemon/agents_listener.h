/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Listens on one Unix socket for the agents' channels of all VMs: the target of libvirt's <channel>
 * with mode='connect'.
 *
 * QEMU connects, and the kernel names QEMU's process (SO_PEERCRED). The connection is passed to the
 * VM of that process if the VM's configured channel is `daemon:`. A connection without such a VM
 * waits up to 10 s for one, then it is closed. At most DAEMON_VMS_MAX connections wait. Beyond
 * that, the daemon closes the oldest connection of the user who has the most.
 */
#ifndef DAEMON_AGENTS_LISTENER_H
#define DAEMON_AGENTS_LISTENER_H

#include <stddef.h>
#include <uv.h>

struct agents_listener;
struct vm_daemon;

/* Creates the socket, mode 0666: QEMU may run as any user. Returns 0, or -errno with one line in
 * `why`. */
int agents_listener_open(uv_loop_t *loop, const char *path, struct vm_daemon *daemon,
			 struct agents_listener **out, char *why, size_t why_bytes);
/* Closes all waiting connections and removes the socket file. The next turn of the loop frees
 * `listener`. NULL is allowed. */
void agents_listener_close(struct agents_listener *listener);
/* Passes waiting connections to their VMs and closes those that waited too long. Call it every 100
 * ms. */
void agents_listener_tick(struct agents_listener *listener);

#endif
