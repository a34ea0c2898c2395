/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/link/vsock_listeners.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "host-collector/link/address.h"
#include "host-collector/link/socket_file.h"
#include "proto/log_limit.h"

enum {
	RETRY_MS = 2000,
	ACCEPTS_AT_ONCE = 64, /* connections accepted before the loop's other handles are served */
};

struct listener {
	struct vsock_listeners *listeners;
	uint32_t port;
	bool wanted, polls;
	int listener; /* a descriptor, or the -errno of the last attempt to listen */
	int said;     /* the last error that was logged */
	uint64_t tried_ms;
	uv_poll_t poll;
};

struct vsock_listeners {
	uv_loop_t *loop;
	const struct vsock_carrier *carrier;
	struct vsock_listeners_events events;
	size_t n;
	struct listener *all[VSOCK_PORTS_MAX];
	struct log_limit lines; /* for guests that are refused */
};

static void address_make(uint32_t port, struct link_address *out)
{
	struct sockaddr_vm *address = (struct sockaddr_vm *)&out->sockaddr;

	*out = (struct link_address){
		.listens = true, .peer_cid = VMADDR_CID_ANY, .sockaddr_len = sizeof(*address)};
	address->svm_family = AF_VSOCK;
	address->svm_cid = VMADDR_CID_ANY;
	address->svm_port = port;
}

static int vsock_listen(uint32_t port)
{
	struct link_address address;

	address_make(port, &address);
	return link_address_open(&address);
}

static int vsock_accept(int listener, uint32_t *cid)
{
	struct link_address any;

	address_make(0, &any);
	return link_address_accept(&any, listener, cid);
}

static const struct vsock_carrier vsock = {vsock_listen, vsock_accept};

struct vsock_listeners *vsock_listeners_new(uv_loop_t *loop, const struct vsock_carrier *carrier,
					    const struct vsock_listeners_events *events)
{
	struct vsock_listeners *listeners = calloc(1, sizeof(*listeners));

	if (!listeners)
		return NULL;
	listeners->loop = loop;
	listeners->carrier = carrier ? carrier : &vsock;
	listeners->events = *events;
	return listeners;
}

static void hidden_say(struct vsock_listeners *listeners)
{
	const uint64_t n = log_limit_hidden(&listeners->lines, uv_now(listeners->loop));
	char line[96];

	if (!n)
		return;
	snprintf(line, sizeof(line), "vsock: %" PRIu64 " more lines were not shown", n);
	listeners->events.say(listeners->events.context, line);
}

static void refused_say(struct vsock_listeners *listeners, uint32_t port, uint32_t cid)
{
	char line[128];

	hidden_say(listeners);
	if (!log_limit_admit(&listeners->lines, uv_now(listeners->loop)))
		return;
	snprintf(line, sizeof(line),
		 "vsock port %u: refused a connection from CID %u: no VM here is for it", port,
		 cid);
	listeners->events.say(listeners->events.context, line);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct listener *listener = poll->data;
	struct vsock_listeners *listeners = listener->listeners;

	(void)events;
	for (int i = 0; i < ACCEPTS_AT_ONCE && status >= 0; i++) {
		uint32_t cid = 0;
		const int fd = listeners->carrier->accept(listener->listener, &cid);

		if (fd < 0 && fd != -EACCES && fd != -EINTR && fd != -ECONNABORTED) {
			/* For example no descriptors: tries again at the next tick. */
			if (fd != -EAGAIN)
				listener->polls = uv_poll_stop(poll) != 0;
			break;
		}
		if (fd >= 0 &&
		    listeners->events.take(listeners->events.context, listener->port, cid, fd))
			continue;
		if (fd >= 0)
			close(fd);
		if (fd >= 0 || fd == -EACCES)
			refused_say(listeners, listener->port, cid);
	}
}

static void listener_freed(uv_handle_t *handle)
{
	free(handle->data);
}

static void listener_close(struct listener *listener)
{
	if (listener->listener < 0) {
		free(listener);
		return;
	}
	uv_poll_stop(&listener->poll);
	close(listener->listener);
	uv_close((uv_handle_t *)&listener->poll, listener_freed);
}

static void listener_open(struct vsock_listeners *listeners, struct listener *listener)
{
	char line[96];
	int err;

	listener->tried_ms = uv_now(listeners->loop);
	listener->listener = listeners->carrier->listen(listener->port);
	if (listener->listener >= 0) {
		err = uv_poll_init(listeners->loop, &listener->poll, listener->listener);
		listener->poll.data = listener;
		if (err) {
			close(listener->listener);
			listener->listener = err;
		}
	}
	if (listener->listener >= 0) {
		listener->said = 0;
		return;
	}
	if (listener->listener != listener->said) {
		snprintf(line, sizeof(line), "vsock port %u: %s; trying again", listener->port,
			 socket_file_error(listener->listener));
		listeners->events.say(listeners->events.context, line);
	}
	listener->said = listener->listener;
}

static struct listener *listener_find(const struct vsock_listeners *listeners, uint32_t port)
{
	for (size_t i = 0; i < listeners->n; i++) {
		if (listeners->all[i]->port == port)
			return listeners->all[i];
	}
	return NULL;
}

static void listener_want(struct vsock_listeners *listeners, uint32_t port)
{
	struct listener *listener = listener_find(listeners, port);

	if (!listener && listeners->n < VSOCK_PORTS_MAX) {
		listener = calloc(1, sizeof(*listener));
		if (!listener)
			return;
		listener->listeners = listeners;
		listener->port = port;
		listeners->all[listeners->n++] = listener;
		listener_open(listeners, listener);
	} else if (listener && listener->listener < 0 &&
		   uv_now(listeners->loop) - listener->tried_ms >= RETRY_MS) {
		listener_open(listeners, listener);
	}
	if (!listener)
		return;
	listener->wanted = true;
	if (listener->listener >= 0 && !listener->polls)
		listener->polls = !uv_poll_start(&listener->poll, UV_READABLE, on_connection);
}

void vsock_listeners_keep(struct vsock_listeners *listeners, const uint32_t *ports, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < listeners->n; i++)
		listeners->all[i]->wanted = false;
	for (size_t i = 0; i < n; i++)
		listener_want(listeners, ports[i]);
	for (size_t i = 0; i < listeners->n; i++) {
		if (listeners->all[i]->wanted)
			listeners->all[kept++] = listeners->all[i];
		else
			listener_close(listeners->all[i]);
	}
	listeners->n = kept;
	hidden_say(listeners);
}

int vsock_listeners_error(const struct vsock_listeners *listeners, uint32_t port)
{
	const struct listener *listener = listener_find(listeners, port);

	return listener && listener->listener < 0 ? listener->listener : 0;
}

void vsock_listeners_free(struct vsock_listeners *listeners)
{
	if (!listeners)
		return;
	vsock_listeners_keep(listeners, NULL, 0);
	free(listeners);
}
