/* SPDX-License-Identifier: GPL-2.0-only */
/* Serves the daemon's metrics over HTTP, and writes them to a file. */
#ifndef DAEMON_METRICS_EXPORT_H
#define DAEMON_METRICS_EXPORT_H

#include <stddef.h>
#include <uv.h>

#include "host-collector/daemon/config.h"
#include "host-collector/daemon/flight.h"
#include "host-collector/daemon/http_server.h"
#include "host-collector/daemon/records.h"

struct metrics_export {
	const struct daemon_config *config; /* borrowed, as the next two; a reload may change it */
	const struct flight *flight;
	const struct records *records;
	void (*say)(void *context, const char *vm, const char *line);
	void *context;
	struct http_server *server;
	uint64_t file_ms; /* when the file was written */
};

/* Starts the server, if the configuration has one. The caller has set the members up to `context`.
 * Returns 0, or -errno with one line in `why`. */
int metrics_export_open(uv_loop_t *loop, struct metrics_export *m, char *why, size_t why_bytes);
/* Stops the server and removes the file. The next turn of the loop frees the server. */
void metrics_export_close(struct metrics_export *m);
/* Call it every 100 ms; now_ms: a monotonic time. */
void metrics_export_tick(struct metrics_export *m, uint64_t now_ms);

#endif
