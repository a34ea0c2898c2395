/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon's control socket: a Unix socket, mode 0600, that accepts only root and the user that
 * runs the daemon (SO_PEERCRED). A request is one line with a JSON object that has "command". The
 * reply is one line with a JSON object that has "ok" and, if "ok" is false, "error" with one line
 * for the user.
 */
#ifndef DAEMON_CONTROL_H
#define DAEMON_CONTROL_H

#include <stddef.h>
#include <uv.h>

struct json_object;
struct vm_daemon;
struct watched_vm;

struct control;

/* Listens at `path`; replaces a socket file that no process serves. Returns 0, -EADDRINUSE if a
 * daemon already serves the socket, or another -errno, with one line in `why`. */
int control_open(uv_loop_t *loop, const char *path, struct vm_daemon *daemon, struct control **out,
		 char *why, size_t why_bytes);
/* Closes the connections and removes the socket file. The next turn of the loop frees `c`. NULL is
 * allowed. */
void control_close(struct control *c);

enum {
	CONTROL_REQUEST_MAX = 16 * 1024, /* bytes of a request; a longer one ends the connection */
	CONTROL_CLIENTS_MAX = 32,
};

/* Executes one request (commands.c) and fills `reply`. Returns 0, or -errno with one line in
 * `why`. */
int control_command(struct vm_daemon *daemon, struct json_object *request,
		    struct json_object *reply, char *why, size_t why_bytes);

/* Returns what the command `list` shows of a VM. The caller releases it with json_object_put(). */
struct json_object *control_vm_describe(struct vm_daemon *daemon, const struct watched_vm *vm);

/* Client: connects. Returns a descriptor or -errno. */
int control_connect(const char *path);

/* Client: connects, sends the request and reads the line of the reply, and no byte after it. Waits
 * up to 30 s. Returns the descriptor, which the caller closes, and *reply, which the caller
 * releases with json_object_put(); or -errno with one line in `why`. */
int control_dial(const char *path, struct json_object *request, struct json_object **reply,
		 char *why, size_t why_bytes);

/* Client: connects, sends the request, waits up to 30 s for the reply and closes the connection.
 * The caller releases *reply with json_object_put(). Returns 0, or -errno with one line in
 * `why`. */
int control_ask(const char *path, struct json_object *request, struct json_object **reply,
		char *why, size_t why_bytes);

#endif
