/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Listening vsock ports that several VMs share: all agents dial the same port, and a port can be
 * bound once. The host's kernel says which guest a connection comes from (its CID), so each goes to
 * the VM of that guest. One from a guest that no VM is for is refused, in a limited number of
 * lines.
 */
#ifndef LINK_VSOCK_DOORS_H
#define LINK_VSOCK_DOORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { VSOCK_PORTS_MAX = 64 };

struct vsock_doors;

struct vsock_doors_events {
	/* Guest `cid` has connected to `port`. True: it has a VM, which has taken over `fd`. */
	bool (*take)(void *context, uint32_t port, uint32_t cid, int fd);
	void (*say)(void *context, const char *line);
	void *context;
};

/* How to listen, which tests replace; NULL: vsock. Both: a non-blocking descriptor or -errno. */
struct vsock_carrier {
	int (*listen)(uint32_t port);
	int (*accept)(int listener, uint32_t *cid);
};

/* Borrows carrier. NULL on ENOMEM. */
struct vsock_doors *vsock_doors_new(uv_loop_t *loop, const struct vsock_carrier *carrier,
				    const struct vsock_doors_events *events);
/* The loop must run once more. NULL is allowed. */
void vsock_doors_free(struct vsock_doors *doors);
/* Listens on these ports (VSOCK_PORTS_MAX at most) and no others. Call it every 100 ms or so: a
 * port that cannot be bound is tried again every 2 s. */
void vsock_doors_keep(struct vsock_doors *doors, const uint32_t *ports, size_t n);
/* Why nobody can be heard on this port: -errno; 0: it is open, or nobody asked for it. */
int vsock_doors_error(const struct vsock_doors *doors, uint32_t port);

#endif
