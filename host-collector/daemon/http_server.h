/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Serves small answers over HTTP (libmicrohttpd, in the daemon's loop) on a Unix or TCP socket.
 * Only GET and HEAD requests reach the answerer; a body is not read. The cost of clients is
 * bounded: at most 16 connections, each with 32 KiB of memory, 10 s of inactivity, 30 s for a
 * request, and 10 minutes for an answer.
 */
#ifndef DAEMON_HTTP_SERVER_H
#define DAEMON_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>
#include <uv.h>

struct http_server;

/* A client's request; hostile. Texts that the client did not send are "". */
struct http_request {
	const char *path; /* with %XX decoded, without '?' and the query after it */
	const char *host, *authorization;
};

/* The answer; initially an empty one with code 500. */
struct http_answer {
	unsigned code;
	const char *type; /* Content-Type, static */
	char *text;       /* malloc; the server frees it */
	size_t bytes;
	int fd; /* -1, or a regular file that is sent instead of the text; the server closes it */
	const char *policy;       /* Content-Security-Policy, static; NULL: none */
	const char *authenticate; /* WWW-Authenticate, static; NULL: none */
};

typedef void (*http_answerer)(void *context, const struct http_request *request,
			      struct http_answer *answer);

struct http_options {
	const char *what;    /* name of the service, for messages */
	const char *address; /* listen:unix:PATH or listen:tcp:HOST:PORT */
	/* A Unix socket gets mode 0600, and TCP addresses other than loopback are refused. */
	bool is_private;
	http_answerer answer;
	void *context;
};

/* Starts the server. Returns 0, or -errno with one line in `why`. */
int http_server_open(uv_loop_t *loop, const struct http_options *options, struct http_server **out,
		     char *why, size_t why_bytes);
/* Stops the server. The next turn of the loop frees it. NULL is allowed. */
void http_server_close(struct http_server *s);
/* Closes connections that are inactive or late. Call it every 100 ms. NULL is allowed. */
void http_server_tick(struct http_server *s);

/* Sets code and a static text of type text/plain. */
void http_answer_plain(struct http_answer *answer, unsigned code, const char *text);

#endif
