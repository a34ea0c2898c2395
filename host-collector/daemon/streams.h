/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Streams a VM's frames to clients of the control socket, as they arrive, until the client
 * disconnects (cli/feed.h is the client).
 *
 * After the line of the reply, the connection carries entries: a struct stream_entry in the host's
 * byte order, then `bytes` bytes. The bytes are a frame of `source`; or, if `source` is
 * STREAM_TEXT, a JSON object with one of these keys: "status" (what `list` shows of the VM, every
 * 200 ms), "say" (a line for the user), "end" (why the stream ends). If a client does not read,
 * frames are dropped; their sequence numbers show the gap.
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
	/* Returns what `list` shows of the VM; the stream releases it with json_object_put(). */
	struct json_object *(*describe)(void *context, const struct watched_vm *vm);
	void *context;
};

struct streams *streams_new(const struct streams_options *options); /* NULL: no memory */
void streams_free(struct streams *s);
/* Checks whether the VM can be streamed. Returns 0, or -errno with one line in `why`. */
int streams_check(const struct watched_vm *vm, char *why, size_t why_bytes);
/* Sends the VM's frames from now on. The caller closes `pipe` after `over` was called;
 * streams_tick() is the only caller of `over`. Returns 0 or -ENOMEM. */
int streams_begin(struct streams *s, struct watched_vm *vm, uv_stream_t *pipe,
		  void (*over)(void *context), void *context);
/* Stops the stream on `pipe`: the client disconnected. */
void streams_end(struct streams *s, const uv_stream_t *pipe);
/* Ends the streams of a VM that is about to be closed. */
void streams_leave(struct streams *s, const struct watched_vm *vm);
void streams_say(struct streams *s, const char *vm, const char *line);
/* Call it every 100 ms. */
void streams_tick(struct streams *s);

#endif
