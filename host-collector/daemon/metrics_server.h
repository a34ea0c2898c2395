/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * GET /metrics by HTTP (libmicrohttpd, in the daemon's own loop), on a Unix or TCP socket. What a
 * client may cost is bounded: 16 connections, 10 s and 32 KiB each, no body, no keep-alive beyond.
 */
#ifndef DAEMON_METRICS_SERVER_H
#define DAEMON_METRICS_SERVER_H

#include <stddef.h>
#include <stdio.h>
#include <uv.h>

struct metrics_server;

/* Writes the page. 0 or -errno. */
typedef int (*metrics_page_maker)(void *context, FILE *to);

/* address: listen:unix:PATH or listen:tcp:HOST:PORT. 0, or -errno with one line in `why`. */
int metrics_server_open(uv_loop_t *loop, const char *address, metrics_page_maker make,
			void *context, struct metrics_server **out, char *why, size_t why_bytes);
/* The loop must run once more. NULL is allowed. */
void metrics_server_close(struct metrics_server *s);
/* Call it every 100 ms: connections that say nothing end in time. NULL is allowed. */
void metrics_server_tick(struct metrics_server *s);

#endif
