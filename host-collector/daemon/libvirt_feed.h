/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libvirt's running domains, as VMs of the daemon: what vcpuscope-libvirt (libvirt/main.c), a
 * process of its own, tells of them. They are attached when they start and detached when they are
 * gone; their <metadata> may set what the configuration would.
 */
#ifndef DAEMON_LIBVIRT_FEED_H
#define DAEMON_LIBVIRT_FEED_H

#include <stdbool.h>
#include <uv.h>

struct libvirt_feed;
struct vm_daemon;

struct libvirt_feed_options {
	const char *uri; /* such as qemu:///system; borrowed until libvirt_feed_new returns */
	struct vm_daemon *daemon;
	/* vm: "" for libvirt itself. */
	void (*say)(void *context, const char *vm, const char *line);
	void *context;
};

/* Is vcpuscope-libvirt installed? */
bool libvirt_feed_possible(void);
/* Starts it, and again when it ends. NULL on ENOMEM. */
struct libvirt_feed *libvirt_feed_new(uv_loop_t *loop, const struct libvirt_feed_options *options);
/* The loop must run once more. NULL is allowed. */
void libvirt_feed_close(struct libvirt_feed *f);
/* Call it every 100 ms. */
void libvirt_feed_tick(struct libvirt_feed *f);
/* Asks for all domains again: somebody knows that something changed. NULL is allowed. */
void libvirt_feed_rescan(struct libvirt_feed *f);

#endif
