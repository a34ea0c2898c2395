/* SPDX-License-Identifier: GPL-2.0-only */
/* The client's side of the control socket. */
#include <errno.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-collector/daemon/control.h"

int control_connect(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Reads one line byte by byte, because the bytes after it belong to another reader. */
static int line_read(int fd, char *line, size_t bytes)
{
	size_t len = 0;

	for (;;) {
		const ssize_t n = read(fd, line + len, 1);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return !n ? -EPIPE : errno == EAGAIN ? -ETIMEDOUT : -errno;
		if (line[len] == '\n') {
			line[len] = 0;
			return 0;
		}
		if (++len == bytes)
			return -E2BIG;
	}
}

static int unanswered(const char *path, int err, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "%s: no answer: %s", path, strerror(-err));
	return err;
}

/* Sends a request. Returns the connection, or -errno with one line in `why`. */
static int request_send(const char *path, struct json_object *request, char *why, size_t why_bytes)
{
	const char *text = json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN);
	struct timeval patience = {.tv_sec = 30};
	int fd = control_connect(path), err;

	if (fd < 0) {
		snprintf(why, why_bytes, "%s: %s: does `vcpuscope daemon` run?", path,
			 strerror(-fd));
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (dprintf(fd, "%s\n", text) >= 0)
		return fd;
	err = -errno;
	close(fd);
	return unanswered(path, err, why, why_bytes);
}

/* Parses an answer. Returns 0 or -EPROTO. */
static int reply_parse(const char *line, struct json_object **reply)
{
	*reply = json_tokener_parse(line);
	if (json_object_is_type(*reply, json_type_object))
		return 0;
	json_object_put(*reply);
	*reply = NULL;
	return -EPROTO;
}

int control_dial(const char *path, struct json_object *request, struct json_object **reply,
		 char *why, size_t why_bytes)
{
	int fd = request_send(path, request, why, why_bytes), err;
	char line[4096];

	*reply = NULL;
	if (fd < 0)
		return fd;
	err = line_read(fd, line, sizeof(line));
	if (!err)
		err = reply_parse(line, reply);
	if (!err)
		return fd;
	close(fd);
	return unanswered(path, err, why, why_bytes);
}

int control_ask(const char *path, struct json_object *request, struct json_object **reply,
		char *why, size_t why_bytes)
{
	int fd = request_send(path, request, why, why_bytes), err = 0;
	FILE *stream = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t size = 0;

	*reply = NULL;
	if (fd < 0)
		return fd;
	if (!stream) {
		close(fd);
		return unanswered(path, -ENOMEM, why, why_bytes);
	}
	if (getline(&line, &size, stream) < 0)
		err = errno == EAGAIN ? -ETIMEDOUT : -EPIPE;
	if (!err)
		err = reply_parse(line, reply);
	free(line);
	fclose(stream);
	return err ? unanswered(path, err, why, why_bytes) : 0;
}
