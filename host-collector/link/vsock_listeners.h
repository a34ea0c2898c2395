/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Listens on vsock ports that several VMs share. All agents connect to the same port, and a port
 * can be bound only once. The host's kernel reports which guest a connection comes from (its CID),
 * so each connection is passed to the VM of that guest. A connection from another guest is refused;
 * the number of lines about this is limited. Runs on the caller's libuv loop; not thread-safe.
 */
#ifndef LINK_VSOCK_LISTENERS_H
#define LINK_VSOCK_LISTENERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { VSOCK_PORTS_MAX = 64 };

struct vsock_listeners;

struct vsock_listeners_events {
	/* Receives a connection of guest `cid` to `port`. Returns true if the guest has a VM, which
	 * owns `fd` from now on. */
	bool (*take)(void *context, uint32_t port, uint32_t cid, int fd);
	/* Receives a line for the log. */
	void (*say)(void *context, const char *line);
	void *context;
};

/* How to listen; tests replace it. Both functions return a non-blocking descriptor or -errno. */
struct vsock_carrier {
	int (*listen)(uint32_t port);
	int (*accept)(int listener, uint32_t *cid);
};

/* Allocates the object. carrier: borrowed; NULL: vsock. Returns NULL on ENOMEM. */
struct vsock_listeners *vsock_listeners_new(uv_loop_t *loop, const struct vsock_carrier *carrier,
					    const struct vsock_listeners_events *events);
/* Closes all listeners and frees the object. The next turn of the loop frees their handles. NULL is
 * allowed. */
void vsock_listeners_free(struct vsock_listeners *listeners);
/* Listens on exactly these ports, at most VSOCK_PORTS_MAX. Call it about every 100 ms: a port that
 * cannot be bound is tried again every 2 s. */
void vsock_listeners_keep(struct vsock_listeners *listeners, const uint32_t *ports, size_t n);
/* Returns the -errno with which listening on this port failed, or 0 if it is open or not
 * requested. */
int vsock_listeners_error(const struct vsock_listeners *listeners, uint32_t port);

#endif
