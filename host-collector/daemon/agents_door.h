/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One socket for the channels of all VMs: libvirt's <channel> in mode='connect'. QEMU connects, and
 * the kernel says which process that is (SO_PEERCRED): the connection becomes the link of the VM of
 * that process, whose channel is `daemon:`. One that belongs to no VM yet waits a moment for it.
 */
#ifndef DAEMON_AGENTS_DOOR_H
#define DAEMON_AGENTS_DOOR_H

#include <stddef.h>
#include <uv.h>

struct agents_door;
struct vm_daemon;

/* Listens; any user's QEMU may connect. 0 or -errno with `why`. */
int agents_door_open(uv_loop_t *loop, const char *path, struct vm_daemon *daemon,
		     struct agents_door **out, char *why, size_t why_bytes);
/* Also removes the socket. The loop must run once more. NULL is allowed. */
void agents_door_close(struct agents_door *door);
/* Call it every 100 ms. */
void agents_door_tick(struct agents_door *door);

#endif
