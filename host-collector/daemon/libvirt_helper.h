/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs vcpuscope-libvirt for one domain, in a process of its own because libvirt may block: to
 * connect the domain's agent through libvirt (`relay`), or to add the agent's channel to the
 * running domain (`plug`).
 */
#ifndef DAEMON_LIBVIRT_HELPER_H
#define DAEMON_LIBVIRT_HELPER_H

#include <stdbool.h>

#include <uv.h>

#include "host-collector/daemon/vm_source.h"

struct libvirt_helper;

/* Allocates a relay, for a channel whose socket the daemon cannot reach. When the VM runs, it
 * starts `vcpuscope-libvirt relay` with one end of a socket pair and passes the other end to the
 * VM. When that process ends, it does so again: after 2 s at first; the delay doubles up to 60 s.
 *
 * vm: the VM's name in the daemon; its channel is `daemon:`. uuid: the domain's. Copies the
 * strings; borrows `source`. Returns NULL if there is no memory. */
struct libvirt_helper *libvirt_relay_new(uv_loop_t *loop, const struct vm_source *source,
					 const char *uri, const char *uuid, const char *vm);
/* Allocates a plug: gives the running domain a channel that connects to the daemon's socket
 * `agents`. Tries again, with the same delays, while libvirt is busy or does not run. The process
 * is killed after 60 s. Arguments as for libvirt_relay_new(); n_running: the number of plugs that
 * run, shared by all of the caller's plugs, of which at most 4 run at the same time. */
struct libvirt_helper *libvirt_plug_new(uv_loop_t *loop, const struct vm_source *source,
					const char *uri, const char *uuid, const char *vm,
					const char *agents, size_t *n_running);
/* Ends the attempts of a plug, because the domain has the channel. NULL is allowed. */
void libvirt_plug_over(struct libvirt_helper *h);
/* Kills the process. The loop must run until it is reaped. NULL is allowed. */
void libvirt_helper_close(struct libvirt_helper *h);
/* Starts the process when it is time. Call it every 100 ms. NULL is allowed. */
void libvirt_helper_tick(struct libvirt_helper *h);

#endif
