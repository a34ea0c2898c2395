/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/control.h"
#include "host-collector/daemon/daemon.h"
#include "host-collector/daemon/streams.h"

#include <errno.h>
#include <json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-collector/link/socket_file.h"
#include "host-collector/util/json_get.h"
#include "host-collector/util/json_string.h"

enum { ANSWERS_WAIT_MAX = 1024 * 1024 }; /* bytes that a client has not read yet */

struct client {
	uv_pipe_t pipe;
	uv_shutdown_t shutdown;
	struct control *control;
	bool streams; /* the client receives a VM's frames, see streams.h */
	size_t len;
	char line[CONTROL_REQUEST_MAX];
	struct client *next;
};

struct control {
	uv_loop_t *loop;
	uv_pipe_t listener;
	struct vm_daemon *daemon;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct client *clients;
	size_t n_clients;
};

struct answer {
	uv_write_t request;
	char *text;
};

static void client_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void client_close(struct client *client)
{
	struct control *c = client->control;

	if (uv_is_closing((uv_handle_t *)&client->pipe))
		return;
	for (struct client **at = &c->clients; *at; at = &(*at)->next) {
		if (*at != client)
			continue;
		*at = client->next;
		c->n_clients--;
		break;
	}
	if (client->streams)
		streams_end(vm_daemon_streams(c->daemon), (uv_stream_t *)&client->pipe);
	uv_close((uv_handle_t *)&client->pipe, client_closed);
}

static void answer_sent(uv_write_t *request, int status)
{
	struct answer *answer = (struct answer *)request;

	if (status < 0) /* later answers could never be sent */
		client_close(request->handle->data);
	free(answer->text);
	free(answer);
}

static void all_sent(uv_shutdown_t *request, int status)
{
	(void)status;
	client_close(request->handle->data);
}

/* The client will send no more requests, but may still read answers. */
static void client_end(struct client *client)
{
	uv_stream_t *stream = (uv_stream_t *)&client->pipe;

	uv_read_stop(stream);
	if (client->streams || uv_shutdown(&client->shutdown, stream, all_sent))
		client_close(client);
}

static void client_answer(struct client *client, struct json_object *reply)
{
	const char *text = json_object_to_json_string_ext(reply, JSON_C_TO_STRING_PLAIN);
	struct answer *answer;
	uv_buf_t buf;

	if (uv_stream_get_write_queue_size((uv_stream_t *)&client->pipe) > ANSWERS_WAIT_MAX) {
		client_close(client); /* it sends requests, but does not read the answers */
		return;
	}
	answer = calloc(1, sizeof(*answer));
	if (!text || !answer || asprintf(&answer->text, "%s\n", text) < 0) {
		free(answer);
		client_close(client);
		return;
	}
	buf = uv_buf_init(answer->text, (unsigned int)strlen(answer->text));
	if (uv_write(&answer->request, (uv_stream_t *)&client->pipe, &buf, 1, answer_sent))
		answer_sent(&answer->request, 0);
}

static void stream_over(void *context)
{
	client_close(context);
}

/* The answer to the request `stream` was sent. Now the frames follow. */
static void stream_begin(struct client *client, struct json_object *request)
{
	struct vm_daemon *d = client->control->daemon;
	struct watched_vm *vm = vm_daemon_find(d, json_get_string(request, "vm"));

	client->streams = vm && !streams_begin(vm_daemon_streams(d), vm,
					       (uv_stream_t *)&client->pipe, stream_over, client);
	if (!client->streams)
		client_close(client);
}

static bool wants_stream(struct json_object *request)
{
	return !strcmp(json_get_string(request, "command"), "stream");
}

static void line_serve(struct client *client, const char *line)
{
	struct json_object *request = json_tokener_parse(line);
	struct json_object *reply = json_object_new_object();
	char why[512] = "";
	int err = -EINVAL;

	if (json_object_is_type(request, json_type_object))
		err = control_command(client->control->daemon, request, reply, why, sizeof(why));
	else
		snprintf(why, sizeof(why), "a request is one JSON object on one line");
	json_object_object_add(reply, "ok", json_object_new_boolean(!err));
	if (err)
		json_object_object_add(reply, "error", json_string_new(why));
	client_answer(client, reply);
	if (!err && wants_stream(request) && !uv_is_closing((uv_handle_t *)&client->pipe))
		stream_begin(client, request);
	json_object_put(reply);
	json_object_put(request);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	struct client *client = handle->data;

	(void)suggested;
	*buf = uv_buf_init(client->line + client->len,
			   (unsigned int)(sizeof(client->line) - client->len));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct client *client = stream->data;
	char *end;

	(void)buf;
	if (n == UV_EOF) {
		client_end(client);
		return;
	}
	if (n < 0) { /* also UV_ENOBUFS: the line is too long */
		client_close(client);
		return;
	}
	if (client->streams) /* it may send no more requests */
		return;
	client->len += (size_t)n;
	while ((end = memchr(client->line, '\n', client->len)) != NULL) {
		size_t used = (size_t)(end - client->line) + 1;

		*end = 0;
		line_serve(client, client->line);
		if (uv_is_closing((uv_handle_t *)stream) || client->streams)
			return;
		client->len -= used;
		memmove(client->line, client->line + used, client->len);
	}
}

static bool peer_may(const uv_pipe_t *pipe)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	uv_os_fd_t fd;

	return !uv_fileno((const uv_handle_t *)pipe, &fd) &&
	       !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) &&
	       (who.uid == 0 || who.uid == geteuid());
}

static void on_connection(uv_stream_t *listener, int status)
{
	struct control *c = listener->data;
	struct client *client;

	if (status)
		return;
	client = calloc(1, sizeof(*client));
	if (!client)
		return;
	client->control = c;
	uv_pipe_init(c->loop, &client->pipe, 0);
	client->pipe.data = client;
	client->next = c->clients;
	c->clients = client;
	c->n_clients++;
	if (uv_accept(listener, (uv_stream_t *)&client->pipe) ||
	    c->n_clients > CONTROL_CLIENTS_MAX || !peer_may(&client->pipe) ||
	    uv_read_start((uv_stream_t *)&client->pipe, on_alloc, on_read))
		client_close(client);
}

/* ---- life ---- */

/* Makes the folder of the default path, because /run is empty after each boot. */
static void folder_make(const char *path)
{
	char folder[sizeof(((struct control *)0)->path)];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (slash && slash != folder) {
		*slash = 0;
		mkdir(folder, 0755);
	}
}

static void listener_closed(uv_handle_t *handle)
{
	free(handle->data);
}

int control_open(uv_loop_t *loop, const char *path, struct vm_daemon *daemon, struct control **out,
		 char *why, size_t why_bytes)
{
	struct control *c = calloc(1, sizeof(*c));
	mode_t mask;
	int err;

	if (!c) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	c->loop = loop;
	c->daemon = daemon;
	snprintf(c->path, sizeof(c->path), "%s", path);
	folder_make(path);
	err = socket_file_clear(path);
	if (err) {
		snprintf(why, why_bytes, "%s: %s", path,
			 err == -EADDRINUSE
				 ? "a daemon is running already; `vcpuscope ctl stop` ends it"
				 : socket_file_error(err));
		free(c);
		return err;
	}
	uv_pipe_init(loop, &c->listener, 0);
	c->listener.data = c;
	mask = umask(0177);
	err = uv_pipe_bind(&c->listener, path);
	umask(mask);
	if (!err)
		err = uv_listen((uv_stream_t *)&c->listener, 16, on_connection);
	if (err) {
		snprintf(why, why_bytes, "%s: %s", path, strerror(-err));
		uv_close((uv_handle_t *)&c->listener, listener_closed);
		return err;
	}
	*out = c;
	return 0;
}

void control_close(struct control *c)
{
	if (!c)
		return;
	while (c->clients)
		client_close(c->clients);
	socket_file_remove(c->path);
	uv_close((uv_handle_t *)&c->listener, listener_closed);
}
