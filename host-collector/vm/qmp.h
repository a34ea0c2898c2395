/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small QMP client: JSON lines over QEMU's monitor socket. Questions are asked one at a time and
 * wait for their answer up to a time limit; events that arrive in between are kept, and later ones
 * are picked up by qmp_events() whenever the descriptor is readable. Who asks waits, so a QEMU that
 * answers slowly is given twice the limit for all questions together; what comes after that is not
 * asked.
 */
#ifndef VM_QMP_H
#define VM_QMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct json_object;
struct qmp;

/* Connects, reads the greeting, negotiates. `why` receives one line on error: 0, -errno;
 * -ETIMEDOUT: nobody greets (a monitor serves one client). limit_ms: for each answer. */
int qmp_open(const char *path, int limit_ms, struct qmp **out, char *why, size_t why_bytes);
/* The same over a connected descriptor, which it owns from now on, also on error. */
int qmp_open_fd(int fd, int limit_ms, struct qmp **out, char *why, size_t why_bytes);
void qmp_close(struct qmp *q);

/* Executes `command`; `arguments` may be NULL and is taken over. *result is what "return" holds;
 * json_object_put() it. 0, -ETIMEDOUT, -EPIPE (closed), -EREMOTEIO (QEMU said no), -EBADMSG. */
int qmp_execute(struct qmp *q, const char *command, struct json_object *arguments,
		struct json_object **result);

/* The process that made the socket listen, as the kernel says (SO_PEERCRED). -ESRCH: it is in no
 * PID namespace that we see; -errno. */
pid_t qmp_peer(const struct qmp *q);
/* To poll for reading; stays the connection's. */
int qmp_fd(const struct qmp *q);
/* An event's name ("STOP"), when QEMU sent it (CLOCK_REALTIME, 0 unknown), and its data, NULL if it
 * has none; borrowed. */
typedef void (*qmp_event)(void *context, const char *name, uint64_t realtime_ns,
			  struct json_object *data);
/* Reads what is there, up to a bound, and calls `event` for each event: call it again while the
 * descriptor is readable. 0, or -EPIPE once QEMU has closed the
 * connection. Never blocks. */
int qmp_events(struct qmp *q, qmp_event event, void *context);

#endif
