// SPDX-License-Identifier: GPL-2.0-only
/*
 * States: no descriptor (the timer dials) -> descriptor without a peer (the timer probes it) -> up
 * (uv_poll watches it; the timer ends a pause of reading).
 */
#include "guest-agent/channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	READ_BYTES = 16 * 1024,
	READS_PER_WAKEUP = 4, /* a flooding host must not hold the loop */
	/* What a host says is short. Who says more waits: what is not read costs nothing. */
	READ_BYTES_PER_S = 64 * 1024,
	READ_BURST_BYTES = 1024 * 1024,
};

struct channel {
	struct channel_address address;
	struct channel_events events;
	uv_loop_t *loop;
	uv_timer_t timer;
	uv_poll_t
		*poll; /* allocated per descriptor: libuv closes it after the descriptor is gone */
	int fd;
	bool up, want_write, broken;
	bool reads_wait;        /* until the timer fires */
	int64_t read_allowance; /* bytes, at `read_ms` */
	uint64_t read_ms;
	unsigned int retry_ms;
	int error;
	uint8_t bytes[READ_BYTES];
};

static const struct channel_carrier *const carriers[] = {
	&channel_carrier_port,  &channel_carrier_unix, &channel_carrier_tcp,
	&channel_carrier_vsock, &channel_carrier_tls,  &channel_carrier_auto,
};

int channel_address_parse(const char *spec, struct channel_address *out, char *why,
			  size_t why_bytes)
{
	memset(out, 0, sizeof(*out));
	if (strlen(spec) >= sizeof(out->text)) {
		snprintf(why, why_bytes, "address is longer than %zu bytes", sizeof(out->text) - 1);
		return -EINVAL;
	}
	strcpy(out->text, spec);
	for (size_t i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++) {
		size_t n = strlen(carriers[i]->prefix);

		if (strncmp(spec, carriers[i]->prefix, n) != 0)
			continue;
		out->carrier = carriers[i];
		return carriers[i]->parse(spec + n, out, why, why_bytes);
	}
	snprintf(why, why_bytes,
		 "'%s' is no address: use auto, port:NAME, vsock:CID:PORT, tls:ADDRESS:PORT, "
		 "unix:PATH or tcp:ADDRESS:PORT",
		 spec);
	return -EINVAL;
}

static const struct channel_carrier *carrier(const struct channel *c)
{
	return c->address.chosen ? c->address.chosen : c->address.carrier;
}

static void on_timer(uv_timer_t *timer);
static void on_poll(uv_poll_t *poll, int status, int events);

static void retry_later(struct channel *c)
{
	uv_timer_start(&c->timer, on_timer, c->retry_ms, 0);
	c->retry_ms *= 2;
	if (c->retry_ms > carrier(c)->retry_max_ms)
		c->retry_ms = carrier(c)->retry_max_ms;
}

static void poll_watch(struct channel *c)
{
	int err = uv_poll_start(
		c->poll, (c->reads_wait ? 0 : UV_READABLE) | (c->want_write ? UV_WRITABLE : 0),
		on_poll);

	if (err < 0) {
		c->error = err;
		c->broken = true;
		uv_timer_start(&c->timer, on_timer, 0, 0);
	}
}

static void on_poll_closed(uv_handle_t *handle)
{
	free(handle);
}

static void poll_drop(struct channel *c)
{
	if (!c->poll)
		return;
	uv_poll_stop(c->poll);
	uv_close((uv_handle_t *)c->poll, on_poll_closed);
	c->poll = NULL;
}

static void fd_drop(struct channel *c)
{
	poll_drop(c);
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->address.chosen = NULL;
}

static int channel_rise(struct channel *c)
{
	int err;

	c->poll = calloc(1, sizeof(*c->poll));
	if (!c->poll)
		return -ENOMEM;
	err = uv_poll_init(c->loop, c->poll, c->fd);
	if (err < 0) {
		free(c->poll);
		c->poll = NULL;
		return err;
	}
	c->poll->data = c;
	c->up = true;
	c->broken = c->want_write = c->reads_wait = false;
	c->error = 0;
	c->retry_ms = carrier(c)->retry_min_ms;
	poll_watch(c);
	c->events.up(c->events.context);
	return 0;
}

/* peer_only: the device is still there, only nobody at its other end. */
static void channel_fall(struct channel *c, bool peer_only)
{
	c->up = c->broken = c->want_write = c->reads_wait = false;
	if (peer_only && carrier(c)->keep_fd)
		poll_drop(c);
	else
		fd_drop(c);
	retry_later(c);
	c->events.down(c->events.context);
}

static void on_timer(uv_timer_t *timer)
{
	struct channel *c = timer->data;
	int err;

	if (c->broken && c->up) {
		channel_fall(c, c->error != -ENODEV);
		return;
	}
	if (c->up) {
		c->reads_wait = false;
		poll_watch(c);
		return;
	}
	if (c->fd < 0) {
		c->fd = carrier(c)->dial(&c->address);
		if (c->fd < 0) {
			c->error = c->fd;
			c->fd = -1;
			retry_later(c);
			return;
		}
	}
	err = carrier(c)->probe(c->fd);
	if (err > 0)
		err = channel_rise(c);
	else if (err == 0)
		err = -ENOTCONN;
	if (err == -ENOTCONN) {
		retry_later(c);
	} else if (err < 0) {
		c->error = err;
		fd_drop(c);
		retry_later(c);
	}
}

/* `n` bytes were read: may more be? Else the timer says when. */
static void reads_budget(struct channel *c, size_t n)
{
	const uint64_t now_ms = uv_now(c->loop);

	c->read_allowance += (int64_t)((now_ms - c->read_ms) * READ_BYTES_PER_S / 1000);
	if (c->read_allowance > READ_BURST_BYTES || !c->read_ms)
		c->read_allowance = READ_BURST_BYTES;
	c->read_ms = now_ms;
	c->read_allowance -= (int64_t)n;
	if (c->read_allowance >= 0 || c->broken)
		return;
	c->reads_wait = true;
	uv_timer_start(&c->timer, on_timer,
		       (uint64_t)(-c->read_allowance * 1000 / READ_BYTES_PER_S) + 1, 0);
	poll_watch(c);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct channel *c = poll->data;

	if (status < 0) {
		channel_fall(c, true);
		return;
	}
	for (int i = 0; (events & UV_READABLE) && i < READS_PER_WAKEUP; i++) {
		ssize_t n = read(c->fd, c->bytes, sizeof(c->bytes));

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n <= 0) {
			channel_fall(c, n == 0 || errno != ENODEV);
			return;
		}
		c->events.received(c->events.context, c->bytes, (size_t)n);
		if (c->poll != poll) /* closed by the owner */
			return;
		reads_budget(c, (size_t)n);
		if ((size_t)n < sizeof(c->bytes) || c->reads_wait)
			break;
	}
	if (events & UV_WRITABLE) {
		c->want_write = false;
		c->events.writable(c->events.context);
		if (c->poll == poll && !c->want_write)
			poll_watch(c);
	}
}

int channel_open(uv_loop_t *loop, const struct channel_address *address,
		 const struct channel_events *events, struct channel **out)
{
	struct channel *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->address = *address;
	c->events = *events;
	c->loop = loop;
	c->fd = -1;
	c->retry_ms = carrier(c)->retry_min_ms;
	err = uv_timer_init(loop, &c->timer);
	if (err < 0) {
		free(c);
		return err;
	}
	c->timer.data = c;
	uv_timer_start(&c->timer, on_timer, 0, 0);
	*out = c;
	return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void channel_close(struct channel *c)
{
	if (!c)
		return;
	c->up = false;
	fd_drop(c);
	uv_close((uv_handle_t *)&c->timer, on_timer_closed);
}

bool channel_is_up(const struct channel *c)
{
	return c->up && !c->broken;
}

size_t channel_write(struct channel *c, const uint8_t *data, size_t len)
{
	ssize_t n;

	if (!channel_is_up(c))
		return 0;
	n = write(c->fd, data, len);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		c->error = -errno;
		c->broken = true;
		uv_timer_start(&c->timer, on_timer, 0, 0);
		return 0;
	}
	if (n < 0)
		n = 0;
	if ((size_t)n < len)
		channel_yield(c);
	return (size_t)n;
}

void channel_yield(struct channel *c)
{
	if (!channel_is_up(c) || c->want_write)
		return;
	c->want_write = true;
	poll_watch(c);
}

int channel_error(const struct channel *c)
{
	return c->error;
}
