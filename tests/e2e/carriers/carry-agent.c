/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An agent without a capture, for any carrier. Channel, session, queue and the order of sending are
 * those of the real agent. It sends the guest's frames of a recording, or generated events, which
 * it counts, until SIGTERM. When the kernel has taken all bytes, it prints
 *
 *	{"frames": N, "emitted": N, "dropped": N, "sessions": N, "left": 0}
 *
 * and keeps the connection open until SIGTERM, so that the bytes in flight arrive.
 *
 *   carry-agent ADDRESS replay RUN.vcs [PSK]
 *   carry-agent ADDRESS load EVENTS_PER_S [PSK]
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "clock/sample.h"
#include "guest-agent/outbox.h"
#include "proto/recording.h"
#include "tests/e2e/daemon/sim_load.h"

enum {
	TICK_MS = 20,
	HEARTBEAT_TICKS = 5,
	QUEUE_BYTES = 2 * 1024 * 1024,
	AHEAD_BYTES = 512 * 1024, /* of the recording, in the queue */
	LAST_WORD_TICKS = 3000,   /* then what is left is left */
};

struct carry {
	uv_timer_t timer;
	uv_signal_t end;
	struct channel *channel;
	struct session *session;
	struct send_queue *queue;
	struct frame_writer *writer;
	struct outbox outbox;
	struct message_hello hello;
	struct recording_reader *file; /* NULL: load */
	struct frame_unpacker *unpacker;
	struct byte_buffer frame;
	struct sim_load load;
	uint64_t frames, ticks, ended;
	bool reported, over; /* the result; to close */
};

static void on_dropped(void *context, const struct send_item *item)
{
	struct carry *c = context;

	sim_load_dropped(&c->load, item);
}

static int on_hello(void *context, uint64_t now_ms, struct byte_buffer *out)
{
	struct carry *c = context;

	return session_hello(c->session, &c->hello, now_ms, out);
}

/* What a session makes itself is not sent from a recording. */
static bool is_replayed(uint8_t kind)
{
	return kind == FRAME_BATCH || kind == FRAME_HEARTBEAT || kind == FRAME_CLOCK_SAMPLE ||
	       kind == FRAME_KERNEL_LOG || kind == FRAME_GUEST_STACK;
}

/* The next entry of the guest: 1, 0 at the end, -1. */
static int file_next(struct carry *c, struct recording_entry *entry, const uint8_t **payload,
		     size_t *len)
{
	int got;

	while ((got = recording_reader_next(c->file, entry)) > 0 &&
	       entry->source == VS_SOURCE_HOST) {
	}
	return got > 0 && frame_unpack(c->unpacker, &entry->frame, payload, len) ? -1 : got;
}

static size_t waiting_bytes(const struct carry *c)
{
	struct send_queue_stats stats;

	send_queue_stats_get(c->queue, &stats);
	return stats.waiting_bytes;
}

/* All in one class: the queue keeps its order. */
static void file_queue(struct carry *c)
{
	struct recording_entry entry;
	const uint8_t *payload;
	size_t len;
	int got = 1;

	while (!c->ended && waiting_bytes(c) < AHEAD_BYTES &&
	       (got = file_next(c, &entry, &payload, &len)) > 0) {
		if (!is_replayed(entry.frame.header.kind))
			continue;
		c->frame.len = 0;
		if (frame_write(c->writer, entry.frame.header.kind, payload, len, &c->frame)) {
			got = -1;
			break;
		}
		send_queue_push(c->queue, &(struct send_item){.class = SEND_BULK}, c->frame.data,
				c->frame.len);
		c->frames++;
	}
	if (got < 0)
		fprintf(stderr, "carry-agent: the recording is damaged, or memory is short\n");
	if (got <= 0)
		c->ended = c->ticks;
}

static void pump(struct carry *c)
{
	outbox_pump(&c->outbox, c->channel, uv_now(c->timer.loop));
}

static void on_up(void *context)
{
	struct carry *c = context;

	session_begin(c->session);
	pump(c);
}

static void on_down(void *context)
{
	struct carry *c = context;

	session_end(c->session);
	outbox_cut(&c->outbox);
}

static void on_received(void *context, const uint8_t *data, size_t len)
{
	struct carry *c = context;

	session_receive(c->session, data, len, clock_tsc_read());
	pump(c);
}

static void on_writable(void *context)
{
	pump(context);
}

static void result_print(const struct carry *c)
{
	const struct sim_cpu sum = sim_load_sum(&c->load);

	printf("{\"frames\": %" PRIu64 ", \"emitted\": %" PRIu64 ", \"dropped\": %" PRIu64
	       ", \"sessions\": %" PRIu64 ", \"left\": %d}\n",
	       c->frames, sum.emitted, sum.dropped, session_number(c->session),
	       outbox_waits(&c->outbox));
	fflush(stdout);
}

static void on_tick(uv_timer_t *timer)
{
	struct carry *c = timer->data;

	c->ticks++;
	if (!c->ended && c->file)
		file_queue(c);
	else if (!c->ended)
		sim_load_make(&c->load, uv_now(timer->loop), clock_tsc_read());
	if (!c->ended && !c->file && c->ticks % HEARTBEAT_TICKS == 0)
		sim_load_heartbeat(&c->load, clock_tsc_read());
	pump(c);
	if (c->ended && !c->reported &&
	    (!outbox_waits(&c->outbox) || c->ticks - c->ended > LAST_WORD_TICKS)) {
		c->reported = true;
		result_print(c);
	}
	if (!c->load.error && (!c->reported || !c->over))
		return;
	channel_close(c->channel);
	uv_close((uv_handle_t *)&c->timer, NULL);
	uv_close((uv_handle_t *)&c->end, NULL);
}

static void on_end(uv_signal_t *end, int number)
{
	struct carry *c = end->data;

	(void)number;
	c->over = c->reported;
	if (c->ended || c->file)
		return;
	sim_load_make(&c->load, uv_now(end->loop), clock_tsc_read());
	sim_load_end(&c->load, clock_tsc_read());
	c->ended = c->ticks;
}

static int file_open(struct carry *c, const char *path)
{
	struct recording_entry entry;
	const uint8_t *payload;
	size_t len;
	int err = recording_reader_open(path, &c->file);

	c->unpacker = frame_unpacker_new();
	while (!err && file_next(c, &entry, &payload, &len) > 0) {
		if (entry.frame.header.kind != FRAME_HELLO)
			continue;
		err = message_hello_unpack(payload, len, &c->hello);
		c->hello.features = 0;
		break;
	}
	if (err || !c->hello.protocol_max)
		fprintf(stderr, "carry-agent: %s: no guest greets in it\n", path);
	return err || !c->hello.protocol_max ? -1 : 0;
}

static void say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "carry-agent: %s\n", line);
}

int main(int argc, char **argv)
{
	static struct carry c;
	static struct channel_address address;
	struct session_options options = {.seed = (uint64_t)getpid() << 32, .say = say};
	const struct outbox_events outbox = {on_hello, on_dropped, &c};
	const struct channel_events events = {on_up, on_down, on_received, on_writable, &c};
	uv_loop_t *loop = uv_default_loop();
	char why[256];

	if (argc < 4 || argc > 5 || (strcmp(argv[2], "replay") && strcmp(argv[2], "load"))) {
		fprintf(stderr, "usage: carry-agent ADDRESS replay RUN.vcs|load EVENTS_PER_S "
				"[PSK]\n");
		return 2;
	}
	if (channel_address_parse(argv[1], &address, why, sizeof(why))) {
		fprintf(stderr, "carry-agent: %s\n", why);
		return 2;
	}
	address.psk_path = argc > 4 ? argv[4] : NULL;
	c.writer = options.writer = frame_writer_new(0);
	c.session = session_new(&options);
	c.queue = send_queue_new(QUEUE_BYTES, 64 * 1024, on_dropped, &c);
	outbox_init(&c.outbox, c.session, c.queue, &outbox);
	if (!strcmp(argv[2], "replay") ? file_open(&c, argv[3]) : sim_load_hello(&c.hello))
		return 1;
	sim_load_init(&c.load, c.writer, c.queue, strtoull(argv[3], NULL, 10), uv_now(loop));
	uv_timer_init(loop, &c.timer);
	uv_signal_init(loop, &c.end);
	c.timer.data = c.end.data = &c;
	uv_timer_start(&c.timer, on_tick, TICK_MS, TICK_MS);
	uv_signal_start(&c.end, on_end, SIGTERM);
	signal(SIGPIPE, SIG_IGN);
	if (channel_open(loop, &address, &events, &c.channel))
		return 1;
	uv_run(loop, UV_RUN_DEFAULT);
	if (c.load.error)
		fprintf(stderr, "carry-agent: %s\n", strerror(-c.load.error));
	return c.load.error || outbox_waits(&c.outbox);
}
