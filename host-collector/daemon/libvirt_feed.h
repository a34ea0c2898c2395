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

struct libvirt_feed;
struct vm_daemon;

struct libvirt_feed_options {
	const char *uri; /* for example qemu:///system; borrowed until libvirt_feed_new() returns */
	struct vm_daemon *daemon;
	/* vm: "" if the line concerns libvirt itself. */
	void (*say)(void *context, const char *vm, const char *line);
	void *context;
};

/* Returns whether vcpuscope-libvirt is installed. */
bool libvirt_feed_possible(void);
/* Starts the process, and starts it again whenever it ends. Returns NULL if there is no memory. */
struct libvirt_feed *libvirt_feed_new(uv_loop_t *loop, const struct libvirt_feed_options *options);
/* The loop must run once more. NULL is allowed. */
void libvirt_feed_close(struct libvirt_feed *f);
/* Call it every 100 ms. */
void libvirt_feed_tick(struct libvirt_feed *f);
/* Requests all domains again. NULL is allowed. */
void libvirt_feed_rescan(struct libvirt_feed *f);

#endif
