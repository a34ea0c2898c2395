/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon's control socket: a Unix socket, mode 0600; the peer must be root or who runs the
 * daemon (SO_PEERCRED). A request is one line, a JSON object with "command"; the answer is one
 * line, an object with "ok" and, if that is false, "error", one line for a person.
 */
#ifndef DAEMON_CONTROL_H
#define DAEMON_CONTROL_H

#include <stddef.h>
#include <uv.h>

struct json_object;
struct vm_daemon;
struct watched_vm;

struct control;

/* Listens. A socket that nobody serves is replaced. 0, -EADDRINUSE (a daemon answers there), -errno
 * with `why`. */
int control_open(uv_loop_t *loop, const char *path, struct vm_daemon *daemon, struct control **out,
		 char *why, size_t why_bytes);
/* Also removes the socket. The loop must run once more. NULL is allowed. */
void control_close(struct control *c);

enum {
	CONTROL_REQUEST_MAX = 16 * 1024, /* bytes of a line; a longer one ends the connection */
	CONTROL_CLIENTS_MAX = 32,
};

/* One request (commands.c). Fills `reply`; 0, or -errno with `why`. */
int control_command(struct vm_daemon *daemon, struct json_object *request,
		    struct json_object *reply, char *why, size_t why_bytes);

/* What `list` shows of a VM; the caller's to put. */
struct json_object *control_vm_describe(struct vm_daemon *daemon, const struct watched_vm *vm);

/* The client's side: a descriptor of a connection, or -errno. */
int control_connect(const char *path);

/* The client's side: connects, sends the request and reads the answer's line, nothing behind it.
 * The descriptor, the caller's to close, and the answer, which it puts; or -errno with `why`. */
int control_dial(const char *path, struct json_object *request, struct json_object **reply,
		 char *why, size_t why_bytes);

/* The client's side, for ctl: sends the request, waits up to 30 s for the answer, which the caller
 * puts (json_object_put). 0, or -errno with `why` (no daemon there). */
int control_ask(const char *path, struct json_object *request, struct json_object **reply,
		char *why, size_t why_bytes);

#endif
