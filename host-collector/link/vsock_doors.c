/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/link/vsock_doors.h"

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
	ACCEPTS_AT_ONCE = 64, /* then the loop's other handles have their turn */
};

struct door {
	struct vsock_doors *doors;
	uint32_t port;
	bool wanted, polls;
	int listener; /* -errno: why it is not open */
	int said;     /* the last error that was */
	uint64_t tried_ms;
	uv_poll_t poll;
};

struct vsock_doors {
	uv_loop_t *loop;
	const struct vsock_carrier *carrier;
	struct vsock_doors_events events;
	size_t n;
	struct door *all[VSOCK_PORTS_MAX];
	struct log_limit lines; /* of guests that are refused */
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

struct vsock_doors *vsock_doors_new(uv_loop_t *loop, const struct vsock_carrier *carrier,
				    const struct vsock_doors_events *events)
{
	struct vsock_doors *doors = calloc(1, sizeof(*doors));

	if (!doors)
		return NULL;
	doors->loop = loop;
	doors->carrier = carrier ? carrier : &vsock;
	doors->events = *events;
	return doors;
}

static void hidden_say(struct vsock_doors *doors)
{
	const uint64_t n = log_limit_hidden(&doors->lines, uv_now(doors->loop));
	char line[96];

	if (!n)
		return;
	snprintf(line, sizeof(line), "vsock: %" PRIu64 " more lines were not shown", n);
	doors->events.say(doors->events.context, line);
}

static void refused_say(struct vsock_doors *doors, uint32_t port, uint32_t cid)
{
	char line[128];

	hidden_say(doors);
	if (!log_limit_admit(&doors->lines, uv_now(doors->loop)))
		return;
	snprintf(line, sizeof(line),
		 "vsock port %u: refused a connection from CID %u: no VM here is for it", port,
		 cid);
	doors->events.say(doors->events.context, line);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct door *door = poll->data;
	struct vsock_doors *doors = door->doors;

	(void)events;
	for (int i = 0; i < ACCEPTS_AT_ONCE && status >= 0; i++) {
		uint32_t cid = 0;
		const int fd = doors->carrier->accept(door->listener, &cid);

		if (fd < 0 && fd != -EACCES && fd != -EINTR && fd != -ECONNABORTED) {
			/* Out of descriptors, say: not again before the next look. */
			if (fd != -EAGAIN)
				door->polls = uv_poll_stop(poll) != 0;
			break;
		}
		if (fd >= 0 && doors->events.take(doors->events.context, door->port, cid, fd))
			continue;
		if (fd >= 0)
			close(fd);
		if (fd >= 0 || fd == -EACCES)
			refused_say(doors, door->port, cid);
	}
}

static void door_freed(uv_handle_t *handle)
{
	free(handle->data);
}

static void door_close(struct door *door)
{
	if (door->listener < 0) {
		free(door);
		return;
	}
	uv_poll_stop(&door->poll);
	close(door->listener);
	uv_close((uv_handle_t *)&door->poll, door_freed);
}

static void door_open(struct vsock_doors *doors, struct door *door)
{
	char line[96];
	int err;

	door->tried_ms = uv_now(doors->loop);
	door->listener = doors->carrier->listen(door->port);
	if (door->listener >= 0) {
		err = uv_poll_init(doors->loop, &door->poll, door->listener);
		door->poll.data = door;
		if (err) {
			close(door->listener);
			door->listener = err;
		}
	}
	if (door->listener >= 0) {
		door->said = 0;
		return;
	}
	if (door->listener != door->said) {
		snprintf(line, sizeof(line), "vsock port %u: %s; trying again", door->port,
			 socket_file_error(door->listener));
		doors->events.say(doors->events.context, line);
	}
	door->said = door->listener;
}

static struct door *door_find(const struct vsock_doors *doors, uint32_t port)
{
	for (size_t i = 0; i < doors->n; i++) {
		if (doors->all[i]->port == port)
			return doors->all[i];
	}
	return NULL;
}

static void door_want(struct vsock_doors *doors, uint32_t port)
{
	struct door *door = door_find(doors, port);

	if (!door && doors->n < VSOCK_PORTS_MAX) {
		door = calloc(1, sizeof(*door));
		if (!door)
			return;
		door->doors = doors;
		door->port = port;
		doors->all[doors->n++] = door;
		door_open(doors, door);
	} else if (door && door->listener < 0 && uv_now(doors->loop) - door->tried_ms >= RETRY_MS) {
		door_open(doors, door);
	}
	if (!door)
		return;
	door->wanted = true;
	if (door->listener >= 0 && !door->polls)
		door->polls = !uv_poll_start(&door->poll, UV_READABLE, on_connection);
}

void vsock_doors_keep(struct vsock_doors *doors, const uint32_t *ports, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < doors->n; i++)
		doors->all[i]->wanted = false;
	for (size_t i = 0; i < n; i++)
		door_want(doors, ports[i]);
	for (size_t i = 0; i < doors->n; i++) {
		if (doors->all[i]->wanted)
			doors->all[kept++] = doors->all[i];
		else
			door_close(doors->all[i]);
	}
	doors->n = kept;
	hidden_say(doors);
}

int vsock_doors_error(const struct vsock_doors *doors, uint32_t port)
{
	const struct door *door = door_find(doors, port);

	return door && door->listener < 0 ? door->listener : 0;
}

void vsock_doors_free(struct vsock_doors *doors)
{
	if (!doors)
		return;
	vsock_doors_keep(doors, NULL, 0);
	free(doors);
}
