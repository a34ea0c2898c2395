// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/outbox.h"

#include <string.h>

#include "clock/sample.h"

enum { PUMP_BYTES = 256 * 1024 }; /* written before the loop may look at what arrived */

void outbox_init(struct outbox *o, struct session *session, struct send_queue *queue,
		 const struct outbox_events *events)
{
	memset(o, 0, sizeof(*o));
	o->session = session;
	o->queue = queue;
	o->events = *events;
}

void outbox_fini(struct outbox *o)
{
	byte_buffer_fini(&o->frame);
}

/* Puts the next frame on the wire. 1, 0 nothing, -errno. */
static int frame_next(struct outbox *o, uint64_t now_ms)
{
	int err;

	o->frame.len = 0;
	o->written = 0;
	o->stamped = 0;
	o->queued = false;
	if (session_hello_due(o->session, now_ms)) {
		err = o->events.hello(o->events.context, now_ms, &o->frame);
		return err ? err : 1;
	}
	if (session_hello_waits(o->session))
		return 0;
	if (session_echo_due(o->session, now_ms)) {
		err = session_echo(o->session, now_ms, clock_tsc_read(), &o->frame);
		return err ? err : 1;
	}
	if (session_state(o->session) != SESSION_OPEN)
		return 0;
	o->queued = true;
	return send_queue_pop(o->queue, &o->item, &o->frame);
}

void outbox_pump(struct outbox *o, struct channel *channel, uint64_t now_ms)
{
	size_t budget = PUMP_BYTES;

	while (channel_is_up(channel)) {
		size_t n;

		if (o->written == o->frame.len && frame_next(o, now_ms) <= 0)
			return;
		if (!o->written && o->stamped != session_number(o->session)) {
			session_stamp(o->session, o->frame.data);
			o->stamped = session_number(o->session);
		}
		n = channel_write(channel, o->frame.data + o->written, o->frame.len - o->written);
		o->written += n;
		if (!n)
			return;
		if (n >= budget) {
			channel_yield(channel);
			return;
		}
		budget -= n;
	}
}

void outbox_cut(struct outbox *o)
{
	if (o->written == o->frame.len || (o->queued && !o->written))
		return;
	if (o->queued)
		o->events.dropped(o->events.context, &o->item);
	o->frame.len = o->written = 0;
}

bool outbox_waits(const struct outbox *o)
{
	struct send_queue_stats stats;

	send_queue_stats_get(o->queue, &stats);
	return stats.waiting_bytes > 0 || o->written < o->frame.len;
}
