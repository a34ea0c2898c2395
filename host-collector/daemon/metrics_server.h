/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Serves GET /metrics over HTTP (libmicrohttpd, in the daemon's loop) on a Unix or TCP socket. The
 * cost of clients is bounded: at most 16 connections, each with 32 KiB of memory and 10 s of
 * inactivity.
 */
#ifndef DAEMON_METRICS_SERVER_H
#define DAEMON_METRICS_SERVER_H

#include <stddef.h>
#include <stdio.h>
#include <uv.h>

struct metrics_server;

/* Writes the page. Returns 0 or -errno. */
typedef int (*metrics_page_maker)(void *context, FILE *to);

/* Starts the server. address: listen:unix:PATH or listen:tcp:HOST:PORT. Returns 0, or -errno with
 * one line in `why`. */
int metrics_server_open(uv_loop_t *loop, const char *address, metrics_page_maker make,
			void *context, struct metrics_server **out, char *why, size_t why_bytes);
/* The loop must run once more. NULL is allowed. */
void metrics_server_close(struct metrics_server *s);
/* Closes inactive connections. Call it every 100 ms. NULL is allowed. */
void metrics_server_tick(struct metrics_server *s);

#endif
