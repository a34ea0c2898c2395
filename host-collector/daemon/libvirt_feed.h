/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attaches libvirt's running domains as VMs of the daemon and detaches them when they end. A
 * separate process, vcpuscope-libvirt (libvirt/main.c), reports the domains. A domain's <metadata>
 * may set keys of the VM's configuration.
 */
#ifndef DAEMON_LIBVIRT_FEED_H
#define DAEMON_LIBVIRT_FEED_H

#include <stdbool.h>
#include <uv.h>

#include "host-collector/daemon/vm_source.h"

struct libvirt_feed;

/* Returns whether vcpuscope-libvirt is installed. */
bool libvirt_feed_possible(void);
/* Starts the process, and starts it again whenever it ends. uri: for example qemu:///system;
 * copied, as is `source`. Returns NULL if there is no memory. */
struct libvirt_feed *libvirt_feed_new(uv_loop_t *loop, const char *uri,
				      const struct vm_source *source);
/* Ends the process. The next turn of the loop frees the feed. NULL is allowed. */
void libvirt_feed_close(struct libvirt_feed *f);
/* Call it every 100 ms. */
void libvirt_feed_tick(struct libvirt_feed *f);
/* Requests all domains again. NULL is allowed. */
void libvirt_feed_rescan(struct libvirt_feed *f);

#endif
