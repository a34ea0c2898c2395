/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The read-only page of the daemon: lists the incident folders (incident_store.h) and opens their
 * HTML reports. It serves nothing else.
 *
 * The Host header of a request must name this machine, so that a foreign web page cannot reach the
 * daemon through a name of its own (DNS rebinding). Over TCP a request must also have the token.
 */
#ifndef DAEMON_INCIDENT_PAGE_H
#define DAEMON_INCIDENT_PAGE_H

#include <stddef.h>
#include <uv.h>

#include "host-collector/daemon/config.h"
#include "host-collector/daemon/http_server.h"

enum { PAGE_TOKEN_MIN = 16, PAGE_TOKEN_MAX = 128, PAGE_LISTED_MAX = 200 };

/* The server, and what it needs to decide whether it answers a request. */
struct incident_page {
	const struct daemon_config *config; /* borrowed; a reload may change it */
	char token[PAGE_TOKEN_MAX + 1];     /* "": none is needed */
	struct http_server *server;
};

/* Reads the token and starts the server, if the configuration has a page. Returns 0, or -errno with
 * one line in `why`. Call incident_page_close() in each case. */
int incident_page_open(uv_loop_t *loop, const struct daemon_config *config,
		       struct incident_page *page, char *why, size_t why_bytes);
/* Stops the server. The next turn of the loop frees it. */
void incident_page_close(struct incident_page *page);
/* Call it every 100 ms. */
void incident_page_tick(struct incident_page *page);

/* Answers one request. */
void incident_page_answer(const struct incident_page *page, const struct http_request *request,
			  struct http_answer *answer);

#endif
