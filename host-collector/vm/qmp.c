/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/qmp.h"
#include "clock/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* query-cpus-fast of 1,024 CPUs is about 250 KiB; a line beyond this is no QMP. */
enum {
	LINE_MAX_BYTES = 4 * 1024 * 1024,
	EVENTS_KEPT = 64,
	READS_AT_ONCE = 4,   /* then others have their turn, whatever else this one sends */
	QUESTIONS_LIMIT = 2, /* times limit_ms: what all questions together may take */
};

struct qmp {
	int fd;
	int limit_ms;
	int64_t patience_ms; /* that may yet be spent on waiting */
	int broken;          /* -errno: nothing more will be answered */
	char *line;          /* from `used` on: bytes read, not yet a whole line */
	size_t used, len, capacity;
	uint64_t next_id;
	size_t n_events; /* seen while waiting for an answer */
	struct json_object *events[EVENTS_KEPT];
	char version[QMP_VERSION_BYTES];
};

/* Reads what is there without waiting. 0, -EAGAIN, -EPIPE, -E2BIG, -ENOMEM. */
static int bytes_read(struct qmp *q)
{
	ssize_t n;

	if (q->used) {
		memmove(q->line, q->line + q->used, q->len - q->used);
		q->len -= q->used;
		q->used = 0;
	}
	if (q->capacity - q->len < 4096) {
		size_t capacity = q->capacity ? q->capacity * 2 : 16384;
		char *line;

		if (capacity > LINE_MAX_BYTES)
			return -E2BIG;
		line = realloc(q->line, capacity);
		if (!line)
			return -ENOMEM;
		q->line = line;
		q->capacity = capacity;
	}
	n = recv(q->fd, q->line + q->len, q->capacity - q->len, MSG_DONTWAIT);
	if (n > 0)
		q->len += (size_t)n;
	else if (!n)
		return -EPIPE;
	else if (errno != EINTR)
		return errno == EWOULDBLOCK ? -EAGAIN : -errno;
	return 0;
}

/* The next whole line as an object: 1; 0 if there is none yet; -EBADMSG. */
static int message_take(struct qmp *q, struct json_object **message)
{
	char *line, *end;

	if (q->used == q->len)
		return 0;
	line = q->line + q->used;
	end = memchr(line, '\n', q->len - q->used);
	if (!end)
		return 0;
	*end = 0;
	*message = json_tokener_parse(line);
	q->used = (size_t)(end - q->line) + 1;
	if (!json_object_is_type(*message, json_type_object)) {
		json_object_put(*message);
		*message = NULL;
		return -EBADMSG;
	}
	return 1;
}

static int message_wait(struct qmp *q, int64_t deadline_ms, struct json_object **message)
{
	for (;;) {
		struct pollfd p = {.fd = q->fd, .events = POLLIN};
		int64_t left = deadline_ms - clock_monotonic_ms();
		int err = message_take(q, message);

		if (err)
			return err < 0 ? err : 0;
		if (left <= 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)left) < 0 && errno != EINTR)
			return -errno;
		err = bytes_read(q);
		if (err && err != -EAGAIN)
			return err;
	}
}

static const char *event_name(struct json_object *message)
{
	struct json_object *name;

	return json_object_object_get_ex(message, "event", &name) ? json_object_get_string(name)
								  : NULL;
}

static void event_keep(struct qmp *q, struct json_object *message)
{
	if (q->n_events < EVENTS_KEPT)
		q->events[q->n_events++] = json_object_get(message);
}

static void event_emit(struct json_object *message, qmp_event event, void *context)
{
	struct json_object *data = NULL, *stamp, *seconds, *microseconds;
	uint64_t realtime_ns = 0;

	json_object_object_get_ex(message, "data", &data);
	if (json_object_object_get_ex(message, "timestamp", &stamp) &&
	    json_object_object_get_ex(stamp, "seconds", &seconds) &&
	    json_object_object_get_ex(stamp, "microseconds", &microseconds))
		realtime_ns = json_object_get_uint64(seconds) * 1000000000 +
			      json_object_get_uint64(microseconds) * 1000;
	event(context, event_name(message), realtime_ns, data);
}

static int line_send(struct qmp *q, struct json_object *request, int64_t deadline_ms)
{
	const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	size_t len = strlen(text), sent = 0;

	while (sent <= len) { /* one past: the newline */
		struct pollfd p = {.fd = q->fd, .events = POLLOUT};
		const char *from = sent < len ? text + sent : "\n";
		ssize_t n =
			send(q->fd, from, sent < len ? len - sent : 1, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			sent += (size_t)n;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if ((int64_t)clock_monotonic_ms() >= deadline_ms)
			return -ETIMEDOUT;
		poll(&p, 1, (int)(deadline_ms - clock_monotonic_ms()));
	}
	return 0;
}

/* The time until which a question may wait now. */
static int64_t deadline_set(const struct qmp *q)
{
	return clock_monotonic_ms() + (q->patience_ms < q->limit_ms ? q->patience_ms : q->limit_ms);
}

static int ask(struct qmp *q, const char *command, struct json_object *arguments, int64_t deadline,
	       struct json_object **result)
{
	struct json_object *request = json_object_new_object();
	uint64_t id = q->next_id++;
	int err;

	json_object_object_add(request, "execute", json_object_new_string(command));
	if (arguments)
		json_object_object_add(request, "arguments", arguments);
	json_object_object_add(request, "id", json_object_new_uint64(id));
	err = line_send(q, request, deadline);
	json_object_put(request);
	while (!err) {
		struct json_object *message = NULL, *field;

		err = message_wait(q, deadline, &message);
		if (err)
			break;
		if (event_name(message)) {
			event_keep(q, message);
			json_object_put(message);
			continue;
		}
		/* An answer to a question that timed out before is not ours. */
		if (!json_object_object_get_ex(message, "id", &field) ||
		    json_object_get_uint64(field) != id) {
			json_object_put(message);
			continue;
		}
		if (json_object_object_get_ex(message, "return", &field)) {
			*result = json_object_get(field);
			json_object_put(message);
			return 0;
		}
		err = json_object_object_get_ex(message, "error", &field) ? -EREMOTEIO : -EBADMSG;
		json_object_put(message);
	}
	return err;
}

int qmp_execute(struct qmp *q, const char *command, struct json_object *arguments,
		struct json_object **result)
{
	int64_t begin = clock_monotonic_ms();
	int err = q->broken;

	if (err)
		json_object_put(arguments);
	else
		err = ask(q, command, arguments, deadline_set(q), result);
	q->patience_ms -= clock_monotonic_ms() - begin;
	if (err && err != -EREMOTEIO && err != -ETIMEDOUT)
		q->broken = err;
	else if (q->patience_ms <= 0)
		q->broken = -ETIMEDOUT;
	return err;
}

static int number_of(struct json_object *o, const char *key)
{
	struct json_object *value;

	return o && json_object_object_get_ex(o, key, &value) ? json_object_get_int(value) : 0;
}

/* {"version": {"qemu": {"micro": 15, "minor": 2, "major": 7}, "package": "Debian .."}} */
static void version_take(struct qmp *q, struct json_object *greeting)
{
	struct json_object *version, *numbers, *package = NULL;
	const char *more = "";

	if (!json_object_object_get_ex(greeting, "version", &version) ||
	    !json_object_object_get_ex(version, "qemu", &numbers))
		return;
	if (json_object_object_get_ex(version, "package", &package) &&
	    json_object_is_type(package, json_type_string))
		more = json_object_get_string(package);
	snprintf(q->version, sizeof(q->version), "QEMU %d.%d.%d%s%.40s%s",
		 number_of(numbers, "major"), number_of(numbers, "minor"),
		 number_of(numbers, "micro"), *more ? " (" : "", more, *more ? ")" : "");
}

const char *qmp_version(const struct qmp *q)
{
	return q->version;
}

int qmp_open_fd(int fd, int limit_ms, struct qmp **out, char *why, size_t why_bytes)
{
	struct json_object *message = NULL, *field;
	struct qmp *q = calloc(1, sizeof(*q));
	int err = -ENOMEM;

	if (!q) {
		close(fd);
		snprintf(why, why_bytes, "QMP: out of memory");
		return err;
	}
	q->fd = fd;
	q->limit_ms = limit_ms;
	q->patience_ms = (int64_t)QUESTIONS_LIMIT * limit_ms;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	err = message_wait(q, clock_monotonic_ms() + limit_ms, &message);
	if (err == -ETIMEDOUT) {
		snprintf(why, why_bytes,
			 "no greeting within %d ms: another client holds this monitor (a QMP "
			 "socket serves one), or QEMU is stopped",
			 limit_ms);
		goto fail;
	}
	if (err) {
		snprintf(why, why_bytes, "no greeting: %s",
			 err == -EPIPE ? "connection closed" : strerror(-err));
		goto fail;
	}
	if (!json_object_object_get_ex(message, "QMP", &field)) {
		err = -EBADMSG;
		snprintf(why, why_bytes, "the peer is not a QMP monitor");
		goto fail;
	}
	version_take(q, field);
	json_object_put(message);
	message = NULL;
	err = qmp_execute(q, "qmp_capabilities", NULL, &message);
	if (err) {
		snprintf(why, why_bytes, "qmp_capabilities: %s", strerror(-err));
		goto fail;
	}
	json_object_put(message);
	*out = q;
	return 0;
fail:
	json_object_put(message);
	qmp_close(q);
	return err;
}

int qmp_open(const char *path, int limit_ms, struct qmp **out, char *why, size_t why_bytes)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval limit = {.tv_sec = limit_ms / 1000, .tv_usec = limit_ms % 1000 * 1000};
	char reason[192] = "";
	int err, fd;

	if (strlen(path) >= sizeof(address.sun_path)) {
		snprintf(why, why_bytes, "%s: path longer than %zu bytes", path,
			 sizeof(address.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* With a full backlog connect() would wait for ever; with this limit it says EAGAIN. */
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		err = errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (err == -ETIMEDOUT)
			snprintf(why, why_bytes,
				 "%s: no connection within %d ms: other clients wait for this "
				 "monitor (a QMP socket serves one)",
				 path, limit_ms);
		else
			snprintf(why, why_bytes, "%s: %s", path, strerror(-err));
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = qmp_open_fd(fd, limit_ms, out, reason, sizeof(reason));
	if (err)
		snprintf(why, why_bytes, "%s: %s", path, reason);
	return err;
}

void qmp_close(struct qmp *q)
{
	if (!q)
		return;
	close(q->fd);
	for (size_t i = 0; i < q->n_events; i++)
		json_object_put(q->events[i]);
	free(q->line);
	free(q);
}

pid_t qmp_peer(const struct qmp *q)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(q->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len))
		return -errno;
	return peer.pid ? peer.pid : -ESRCH;
}

int qmp_fd(const struct qmp *q)
{
	return q->fd;
}

int qmp_events(struct qmp *q, qmp_event event, void *context)
{
	struct json_object *message = NULL;
	int err, got, reads = 0;

	for (size_t i = 0; i < q->n_events; i++) {
		event_emit(q->events[i], event, context);
		json_object_put(q->events[i]);
	}
	q->n_events = 0;
	do {
		err = bytes_read(q);
		while ((got = message_take(q, &message))) {
			if (got < 0)
				continue; /* not JSON: nothing to learn from this line */
			if (event_name(message))
				event_emit(message, event, context);
			json_object_put(message);
		}
	} while (!err && ++reads < READS_AT_ONCE);
	return !err || err == -EAGAIN ? 0 : -EPIPE;
}
