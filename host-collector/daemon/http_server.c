/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/http_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/link/address.h"
#include "host-collector/link/socket_file.h"

enum {
	CONNECTIONS_MAX = 16,
	IDLE_MAX_S = 10,
	REQUEST_MAX_MS = 30000,
	ANSWER_MAX_MS = 600000, /* a large report over a slow network */
	CONNECTION_BYTES_MAX = 32 << 10,
};

/*
 * MHD limits how long a connection is silent, but not how long a request or an answer takes: a
 * client that sends one byte now and then would keep its connection.
 */
struct connection {
	int fd; /* -1: free */
	uint64_t until_ms;
};

struct http_server {
	struct http_options options;
	struct connection connections[CONNECTIONS_MAX];
	struct link_address address;
	struct MHD_Daemon *http;
	uv_poll_t poll;
};

void http_answer_plain(struct http_answer *answer, unsigned code, const char *text)
{
	answer->code = code;
	answer->type = "text/plain; charset=utf-8";
	answer->text = strdup(text);
	answer->bytes = answer->text ? strlen(text) : 0;
}

/* Makes a response, which then owns the answer's text or file. */
static struct MHD_Response *response_new(struct http_answer *a)
{
	struct MHD_Response *r;
	struct stat st;

	if (a->fd >= 0) {
		r = fstat(a->fd, &st) || !S_ISREG(st.st_mode)
			    ? NULL
			    : MHD_create_response_from_fd((uint64_t)st.st_size, a->fd);
		if (!r)
			close(a->fd);
		free(a->text);
		return r;
	}
	r = MHD_create_response_from_buffer(a->bytes, a->text, MHD_RESPMEM_MUST_FREE);
	if (!r)
		free(a->text);
	return r;
}

static bool headers_add(struct MHD_Response *r, const struct http_answer *a)
{
	const struct {
		const char *name, *value;
	} headers[] = {
		{MHD_HTTP_HEADER_CONTENT_TYPE, a->type ? a->type : "text/plain"},
		{"Content-Security-Policy", a->policy},
		{MHD_HTTP_HEADER_WWW_AUTHENTICATE, a->authenticate},
		{"X-Content-Type-Options", "nosniff"},
		{"X-Frame-Options", "DENY"},
		{"Referrer-Policy", "no-referrer"},
		{"Cross-Origin-Resource-Policy", "same-origin"},
		{MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
		if (headers[i].value &&
		    MHD_add_response_header(r, headers[i].name, headers[i].value) != MHD_YES)
			return false;
	}
	return true;
}

static enum MHD_Result answer_send(struct MHD_Connection *c, struct http_answer *a)
{
	struct MHD_Response *r = response_new(a);
	enum MHD_Result result = MHD_NO; /* closes the connection instead of a partial answer */

	if (!r)
		return MHD_NO;
	if (headers_add(r, a))
		result = MHD_queue_response(c, a->code, r);
	MHD_destroy_response(r);
	return result;
}

static const char *header(struct MHD_Connection *c, const char *name)
{
	const char *value = MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);

	return value ? value : "";
}

static struct connection *connection_of(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static void until_set(struct MHD_Connection *c, uint64_t ms)
{
	struct connection *known = connection_of(c);

	if (known)
		known->until_ms = clock_monotonic_ms() + ms;
}

static void on_connection(void *context, struct MHD_Connection *c, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_server *s = context;
	struct connection *known = *state;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (known)
			known->fd = -1;
		*state = NULL;
		return;
	}
	for (size_t i = 0; info && !*state && i < CONNECTIONS_MAX; i++) {
		if (s->connections[i].fd >= 0)
			continue;
		*state = &s->connections[i];
		s->connections[i] = (struct connection){info->connect_fd,
							clock_monotonic_ms() + REQUEST_MAX_MS};
	}
}

static void on_answered(void *context, struct MHD_Connection *c, void **state,
			enum MHD_RequestTerminationCode code)
{
	(void)context, (void)state, (void)code;
	until_set(c, REQUEST_MAX_MS);
}

/* MHD sees the end of the connection, and closes it. */
static void late_shut_down(struct http_server *s)
{
	const uint64_t now_ms = clock_monotonic_ms();

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *known = &s->connections[i];

		if (known->fd >= 0 && now_ms > known->until_ms) {
			shutdown(known->fd, SHUT_RDWR);
			known->until_ms = UINT64_MAX;
		}
	}
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_bytes, void **state)
{
	const struct http_server *s = context;
	const struct http_request request = {
		.path = url,
		.host = header(c, MHD_HTTP_HEADER_HOST),
		.authorization = header(c, MHD_HTTP_HEADER_AUTHORIZATION),
	};
	struct http_answer answer = {.code = MHD_HTTP_INTERNAL_SERVER_ERROR, .fd = -1};

	(void)version, (void)body, (void)body_bytes, (void)state;
	until_set(c, ANSWER_MAX_MS);
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		http_answer_plain(&answer, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n");
	else
		s->options.answer(s->options.context, &request, &answer);
	return answer_send(c, &answer);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	const struct http_server *s = poll->data;

	(void)status, (void)events;
	MHD_run(s->http);
}

void http_server_tick(struct http_server *s)
{
	if (!s)
		return;
	late_shut_down(s);
	MHD_run(s->http);
}

/* Starts MHD on a listening socket, which MHD then owns. Returns 0 or -errno. */
static int http_start(struct http_server *s, int listener, uv_loop_t *loop)
{
	const union MHD_DaemonInfo *info;

	s->http = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, s,
				   MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
				   (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
				   (unsigned)IDLE_MAX_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				   (size_t)CONNECTION_BYTES_MAX, MHD_OPTION_STRICT_FOR_CLIENT, 1,
				   MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
				   MHD_OPTION_NOTIFY_COMPLETED, on_answered, s, MHD_OPTION_END);
	if (!s->http) {
		close(listener);
		return -ENOMEM;
	}
	info = MHD_get_daemon_info(s->http, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info)
		return -EINVAL;
	return uv_poll_init(loop, &s->poll, info->epoll_fd);
}

static void server_free(uv_handle_t *handle)
{
	struct http_server *s = handle->data;

	link_address_unlink(&s->address);
	MHD_stop_daemon(s->http);
	free(s);
}

static int listener_open(const struct http_server *s)
{
	mode_t mask;
	int fd;

	if (!s->options.is_private)
		return link_address_open(&s->address);
	mask = umask(0177);
	fd = link_address_open(&s->address);
	umask(mask);
	return fd;
}

int http_server_open(uv_loop_t *loop, const struct http_options *options, struct http_server **out,
		     char *why, size_t why_bytes)
{
	struct http_server *s = calloc(1, sizeof(*s));
	int listener, err = -ENOMEM;

	snprintf(why, why_bytes, "%s: out of memory", options->address);
	if (!s)
		return err;
	s->options = *options;
	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		s->connections[i].fd = -1;
	err = link_address_parse(options->address, &s->address, why, why_bytes);
	if (!err &&
	    (!s->address.listens || s->address.tls || s->address.sockaddr.ss_family == AF_VSOCK)) {
		snprintf(why, why_bytes, "%s: want listen:unix:PATH or listen:tcp:HOST:PORT",
			 options->address);
		err = -EINVAL;
	}
	if (!err && options->is_private && link_address_is_exposed(&s->address)) {
		snprintf(why, why_bytes,
			 "%s: %s would cross a network unencrypted: write listen:unix:PATH or "
			 "listen:tcp:127.0.0.1:PORT, and let ssh or a proxy with TLS pass it on",
			 options->address, options->what);
		err = -EINVAL;
	}
	if (err) {
		free(s);
		return err;
	}
	s->poll.data = s;
	listener = listener_open(s);
	err = listener < 0 ? listener : http_start(s, listener, loop);
	if (err) {
		snprintf(why, why_bytes, "%s: cannot serve %s there: %s", options->address,
			 options->what, socket_file_error(err));
		if (listener >= 0)
			link_address_unlink(&s->address);
		if (s->http)
			MHD_stop_daemon(s->http);
		free(s);
		return err;
	}
	uv_poll_start(&s->poll, UV_READABLE, on_poll);
	*out = s;
	return 0;
}

void http_server_close(struct http_server *s)
{
	if (s)
		uv_close((uv_handle_t *)&s->poll, server_free);
}
