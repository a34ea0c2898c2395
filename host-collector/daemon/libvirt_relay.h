/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One VM's channel by way of libvirt: keeps a `vcpuscope-libvirt relay` running, whose other end
 * the VM adopts. For a channel whose socket cannot be reached from here.
 */
#ifndef DAEMON_LIBVIRT_RELAY_H
#define DAEMON_LIBVIRT_RELAY_H

#include <uv.h>

struct libvirt_relay;
struct vm_daemon;

/* vm: its name in the daemon, its channel is `daemon:`. uuid: the domain's. All are copied, but the
 * daemon. NULL on ENOMEM. */
struct libvirt_relay *libvirt_relay_new(uv_loop_t *loop, struct vm_daemon *daemon, const char *uri,
					const char *uuid, const char *vm);
/* The loop must run once more. NULL is allowed. */
void libvirt_relay_close(struct libvirt_relay *r);
/* Call it every 100 ms: starts the process, and again when it has ended, ever less often. NULL is
 * allowed. */
void libvirt_relay_tick(struct libvirt_relay *r);

#endif
