/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/libvirt/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host-collector/libvirt/domains.h"

enum { KEEPALIVE_S = 5, KEEPALIVE_MISSES = 3, DIRECTION_BYTES = 64 * 1024 };

/* Bytes on their way in one direction. */
struct direction {
	char bytes[DIRECTION_BYTES];
	size_t begin, end;
};

struct relay {
	virStreamPtr stream;
	int fd, watch;
	bool over;
	struct direction to_guest, to_host;
};

static bool is_empty(const struct direction *w)
{
	return w->begin == w->end;
}

static void direction_sent(struct direction *w, size_t n)
{
	w->begin += n;
	if (is_empty(w))
		w->begin = w->end = 0;
}

/* Each side is asked for bytes while there is room for them, and for room while there are bytes. */
static void interest_set(const struct relay *r)
{
	virEventUpdateHandle(r->watch,
			     (is_empty(&r->to_guest) ? VIR_EVENT_HANDLE_READABLE : 0) |
				     (is_empty(&r->to_host) ? 0 : VIR_EVENT_HANDLE_WRITABLE));
	virStreamEventUpdateCallback(
		r->stream, (is_empty(&r->to_host) ? VIR_STREAM_EVENT_READABLE : 0) |
				   (is_empty(&r->to_guest) ? 0 : VIR_STREAM_EVENT_WRITABLE));
}

/* Reads from the stream. A result of -2 means that nothing can be read now; it is not the end. */
static void guest_read(struct relay *r)
{
	int n = virStreamRecv(r->stream, r->to_host.bytes, DIRECTION_BYTES);

	if (n > 0)
		r->to_host.end = (size_t)n;
	else if (n != -2)
		r->over = true;
}

static void guest_write(struct relay *r)
{
	struct direction *w = &r->to_guest;
	int n = virStreamSend(r->stream, w->bytes + w->begin, w->end - w->begin);

	if (n > 0)
		direction_sent(w, (size_t)n);
	else if (n != -2)
		r->over = true;
}

static void host_read(struct relay *r)
{
	ssize_t n = read(r->fd, r->to_guest.bytes, DIRECTION_BYTES);

	if (n > 0)
		r->to_guest.end = (size_t)n;
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		r->over = true;
}

static void host_write(struct relay *r)
{
	struct direction *w = &r->to_host;
	ssize_t n = send(r->fd, w->bytes + w->begin, w->end - w->begin, MSG_NOSIGNAL);

	if (n > 0)
		direction_sent(w, (size_t)n);
	else if (errno != EAGAIN && errno != EINTR)
		r->over = true;
}

static void on_stream(virStreamPtr stream, int events, void *context)
{
	struct relay *r = context;

	(void)stream;
	if (events & VIR_STREAM_EVENT_READABLE && is_empty(&r->to_host))
		guest_read(r);
	if (events & VIR_STREAM_EVENT_WRITABLE && !is_empty(&r->to_guest))
		guest_write(r);
	if (events & (VIR_STREAM_EVENT_HANGUP | VIR_STREAM_EVENT_ERROR))
		r->over = true;
	interest_set(r);
}

static void on_host(int watch, int fd, int events, void *context)
{
	struct relay *r = context;

	(void)watch, (void)fd;
	if (events & VIR_EVENT_HANDLE_READABLE && is_empty(&r->to_guest))
		host_read(r);
	if (events & VIR_EVENT_HANDLE_WRITABLE && !is_empty(&r->to_host))
		host_write(r);
	if (events & (VIR_EVENT_HANDLE_HANGUP | VIR_EVENT_HANDLE_ERROR))
		r->over = true;
	interest_set(r);
}

static int channel_open(virConnectPtr connection, const char *uuid, struct relay *r)
{
	virDomainPtr domain = virDomainLookupByUUIDString(connection, uuid);
	int err = domain ? 0 : -1;

	r->stream = domain ? virStreamNew(connection, VIR_STREAM_NONBLOCK) : NULL;
	/* Not by force: who has the channel keeps it. */
	if (!r->stream || virDomainOpenChannel(domain, DOMAIN_PORT_NAME, r->stream, 0))
		err = -1;
	if (domain)
		virDomainFree(domain);
	return err;
}

int relay_run(const char *uri, const char *uuid, int fd, char *why, size_t why_bytes)
{
	struct relay *r = calloc(1, sizeof(*r));
	virConnectPtr connection = NULL;
	const char *text;
	int err = -1;

	if (!r || virEventRegisterDefaultImpl())
		goto out;
	r->fd = fd;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	connection = virConnectOpen(uri);
	if (!connection || channel_open(connection, uuid, r))
		goto out;
	virConnectSetKeepAlive(connection, KEEPALIVE_S, KEEPALIVE_MISSES);
	r->watch = virEventAddHandle(fd, VIR_EVENT_HANDLE_READABLE, on_host, r, NULL);
	if (r->watch < 0 ||
	    virStreamEventAddCallback(r->stream, VIR_STREAM_EVENT_READABLE, on_stream, r, NULL))
		goto out;
	while (!r->over && !virEventRunDefaultImpl())
		;
	err = 0;
out:
	text = virGetLastErrorMessage();
	snprintf(why, why_bytes, "%s", text ? text : "unknown error");
	if (r && r->stream) {
		virStreamAbort(r->stream);
		virStreamFree(r->stream);
	}
	if (connection)
		virConnectClose(connection);
	free(r);
	return err;
}
