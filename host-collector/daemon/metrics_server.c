/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/metrics_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/link/address.h"
#include "host-collector/link/socket_file.h"

enum { CONNECTIONS_MAX = 16, IDLE_MAX_S = 10, CONNECTION_BYTES_MAX = 32 << 10 };

struct metrics_server {
	struct link_address address;
	struct MHD_Daemon *http;
	uv_poll_t poll;
	metrics_page_maker make;
	void *context;
};

static enum MHD_Result answer_send(struct MHD_Connection *c, unsigned code, const char *type,
				   char *text, size_t len, enum MHD_ResponseMemoryMode whose)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(len, text, whose);
	enum MHD_Result result = MHD_NO;

	if (!r) {
		if (whose == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES)
		result = MHD_queue_response(c, code, r);
	MHD_destroy_response(r);
	return result;
}

static enum MHD_Result page_send(const struct metrics_server *s, struct MHD_Connection *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	int err = to ? s->make(s->context, to) : -ENOMEM;

	if (to && fclose(to) && !err)
		err = -ENOMEM;
	if (!err)
		return answer_send(c, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text,
				   len, MHD_RESPMEM_MUST_FREE);
	free(text);
	return MHD_NO; /* closes the connection: a part of a page would be a lie */
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *body_bytes, void **state)
{
	static char elsewhere[] = "the metrics are at /metrics\n";
	static char get_only[] = "GET only\n";

	(void)version, (void)body, (void)body_bytes, (void)state;
	if (strcmp(method, MHD_HTTP_METHOD_GET))
		return answer_send(c, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", get_only,
				   sizeof(get_only) - 1, MHD_RESPMEM_PERSISTENT);
	if (strcmp(url, "/metrics"))
		return answer_send(c, MHD_HTTP_NOT_FOUND, "text/plain", elsewhere,
				   sizeof(elsewhere) - 1, MHD_RESPMEM_PERSISTENT);
	return page_send(context, c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	const struct metrics_server *s = poll->data;

	(void)status, (void)events;
	MHD_run(s->http);
}

void metrics_server_tick(struct metrics_server *s)
{
	if (s)
		MHD_run(s->http);
}

/* From a listening socket, which MHD takes over, on. 0 or -errno. */
static int http_start(struct metrics_server *s, int listener, uv_loop_t *loop)
{
	const union MHD_DaemonInfo *info;

	s->http = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, s,
				   MHD_OPTION_LISTEN_SOCKET, listener, MHD_OPTION_CONNECTION_LIMIT,
				   (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
				   (unsigned)IDLE_MAX_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				   (size_t)CONNECTION_BYTES_MAX, MHD_OPTION_END);
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
	struct metrics_server *s = handle->data;

	link_address_unlink(&s->address);
	MHD_stop_daemon(s->http);
	free(s);
}

int metrics_server_open(uv_loop_t *loop, const char *address, metrics_page_maker make,
			void *context, struct metrics_server **out, char *why, size_t why_bytes)
{
	struct metrics_server *s = calloc(1, sizeof(*s));
	int listener, err = -ENOMEM;

	snprintf(why, why_bytes, "%s: out of memory", address);
	if (!s)
		return err;
	err = link_address_parse(address, &s->address, why, why_bytes);
	if (!err &&
	    (!s->address.listens || s->address.tls || s->address.sockaddr.ss_family == AF_VSOCK)) {
		snprintf(why, why_bytes, "%s: want listen:unix:PATH or listen:tcp:HOST:PORT",
			 address);
		err = -EINVAL;
	}
	if (err) {
		free(s);
		return err;
	}
	s->make = make;
	s->context = context;
	s->poll.data = s;
	listener = link_address_open(&s->address);
	err = listener < 0 ? listener : http_start(s, listener, loop);
	if (err) {
		snprintf(why, why_bytes, "%s: cannot serve metrics there: %s", address,
			 socket_file_error(err));
		if (s->http)
			MHD_stop_daemon(s->http);
		free(s);
		return err;
	}
	uv_poll_start(&s->poll, UV_READABLE, on_poll);
	*out = s;
	return 0;
}

void metrics_server_close(struct metrics_server *s)
{
	if (s)
		uv_close((uv_handle_t *)&s->poll, server_free);
}
