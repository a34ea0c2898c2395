/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon's VMs for others that run: a client of the control socket asks for a VM's frames, and
 * gets them as they come until it goes away (client: cli/feed.h).
 *
 * After the answer's line the connection carries entries: source, length of the frame, and its
 * arrival, in this machine's byte order, then the frame. Source STREAM_TEXT: a JSON object instead,
 * with "status" (as `list` shows the VM, a few times a second), "say" (a line for a person), or
 * "end" (why nothing follows). To a client that does not read frames are not sent; their numbers
 * show it.
 */
#ifndef DAEMON_STREAMS_H
#define DAEMON_STREAMS_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "host-collector/daemon/flight.h"
#include "host-collector/daemon/watched_vm.h"

#define STREAM_TEXT UINT32_MAX

struct stream_entry {
	uint32_t source;
	uint32_t bytes;
	uint64_t arrival_tsc;
};

struct json_object;
struct streams;

struct streams_options {
	struct flight *flight;
	/* What `list` shows of the VM; the caller's to put. */
	struct json_object *(*describe)(void *context, const struct watched_vm *vm);
	void *context;
};

struct streams *streams_new(const struct streams_options *options); /* NULL on ENOMEM */
void streams_free(struct streams *s);
/* Whether there can be one. 0, or -errno with one line in `why`. */
int streams_check(const struct watched_vm *vm, char *why, size_t why_bytes);
/* Sends the VM's frames from now on; `pipe` is the caller's to close when `over` was called, which
 * comes outside of every other call. */
int streams_begin(struct streams *s, struct watched_vm *vm, uv_stream_t *pipe,
		  void (*over)(void *context), void *context);
/* The client is gone: nothing is sent any more. */
void streams_end(struct streams *s, const uv_stream_t *pipe);
/* The VM is about to be closed. */
void streams_leave(struct streams *s, const struct watched_vm *vm);
void streams_say(struct streams *s, const char *vm, const char *line);
/* Call it every 100 ms. */
void streams_tick(struct streams *s);

#endif
