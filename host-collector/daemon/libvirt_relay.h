/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connects one VM's agent through libvirt, for a channel whose socket the daemon cannot reach. It
 * runs `vcpuscope-libvirt relay` with one end of a socket pair and passes the other end to the VM.
 */
#ifndef DAEMON_LIBVIRT_RELAY_H
#define DAEMON_LIBVIRT_RELAY_H

#include <uv.h>

struct libvirt_relay;
struct vm_daemon;

/* Allocates a relay. vm: the VM's name in the daemon; its channel is `daemon:`. uuid: the domain's.
 * Copies the strings and borrows the daemon. Returns NULL if there is no memory. */
struct libvirt_relay *libvirt_relay_new(uv_loop_t *loop, struct vm_daemon *daemon, const char *uri,
					const char *uuid, const char *vm);
/* Kills the process. The loop must run until it is reaped. NULL is allowed. */
void libvirt_relay_close(struct libvirt_relay *r);
/* Starts the process if the VM runs, and again after it ended: after 2 s at first, the delay
 * doubles up to 60 s. Call it every 100 ms. NULL is allowed. */
void libvirt_relay_tick(struct libvirt_relay *r);

#endif
