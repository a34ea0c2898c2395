/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small QMP client: JSON lines over QEMU's monitor socket. It sends one command at a time and
 * waits for the answer up to a time limit. Events that arrive meanwhile are kept until
 * qmp_events(), which also reads new ones. All commands together may wait for twice the limit;
 * after that, further commands fail. Not thread-safe.
 */
#ifndef VM_QMP_H
#define VM_QMP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { QMP_VERSION_BYTES = 64 };

struct json_object;
struct qmp;

/* Connects, reads the greeting and negotiates. limit_ms: time limit of each answer. Returns 0, or
 * -errno with one line in `why`; -ETIMEDOUT: no greeting (a monitor serves one client). */
int qmp_open(const char *path, int limit_ms, struct qmp **out, char *why, size_t why_bytes);
/* Does the same over a connected descriptor, which it owns from now on, also on error. */
int qmp_open_fd(int fd, int limit_ms, struct qmp **out, char *why, size_t why_bytes);
void qmp_close(struct qmp *q);

/* Executes `command`. arguments: may be NULL; the call consumes the reference. *result: the value
 * of "return"; the caller releases it with json_object_put(). Returns 0 or -errno: -ETIMEDOUT,
 * -EPIPE (QEMU closed the connection), -EREMOTEIO (QEMU refused), -EBADMSG. */
int qmp_execute(struct qmp *q, const char *command, struct json_object *arguments,
		struct json_object **result);

/* Returns the id of the process that called listen() on the socket (SO_PEERCRED), or -errno;
 * -ESRCH: it is not visible in this PID namespace. */
pid_t qmp_peer(const struct qmp *q);
/* Returns QEMU's version as its greeting states it, for example "QEMU 7.2.15 (Debian
 * 1:7.2+dfsg-7)"; "": the greeting has none. Borrowed, not escaped. */
const char *qmp_version(const struct qmp *q);
/* Returns the descriptor to poll for reading. Borrowed. */
int qmp_fd(const struct qmp *q);
/* Receives an event: its name, for example "STOP"; the time at which QEMU sent it (CLOCK_REALTIME
 * ns, 0 unknown); its data, NULL if it has none. Borrowed for the call. */
typedef void (*qmp_event)(void *context, const char *name, uint64_t realtime_ns,
			  struct json_object *data);
/* Reads the available bytes, up to a limit, and calls `event` for each event. Call it while the
 * descriptor is readable. Never blocks. Returns 0, or -EPIPE if the connection is closed or
 * broken. */
int qmp_events(struct qmp *q, qmp_event event, void *context);

#endif
