/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An agent whose kernel is made up: sim-agent SOCKET EVENTS_PER_S. The session and the queue are
 *the real agent's; its events are counted, so that at the end the truth is known: when standard
 *input ends it stops making events, delivers what waits, and prints
 *
 *	{"emitted": N, "dropped": N, "sessions": N}
 *
 * which is what a report must say of it (dropped: by its queue, or with half a frame). SIGUSR1: its
 * clock steps three seconds ahead, or back again. SIGUSR2: the connection ends within a frame.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "clock/sample.h"
#include "guest-agent/send_queue.h"
#include "guest-agent/session.h"
#include "proto/codec.h"

enum {
	CPUS = 4,
	DRAIN_MS = 20,
	HEARTBEAT_MS = 100,
	QUEUE_BYTES = 1024 * 1024,
	LAST_WORD_MS = 20000, /* for what waits at the end */
};

struct cpu {
	uint32_t seq;
	uint64_t emitted, dropped;
};

struct sim {
	struct sockaddr_un address;
	int fd; /* -1: down */
	struct session *session;
	struct send_queue *queue;
	struct frame_writer *writer;
	struct batch_encoder *encoder;
	struct message_hello hello;
	struct cpu cpus[CPUS];
	struct byte_buffer payload, frame, wire;
	size_t written;        /* of wire */
	uint64_t wire_session; /* when it was stamped */
	bool wire_queued;
	struct send_item wire_item;
	uint64_t step_ticks; /* of its clock, one way or the other */
	uint64_t rate, made, begin_ms, drain_ms, heartbeat_ms;
	struct vs_event events[VS_BATCH_EVENTS_MAX];
};

static volatile sig_atomic_t steps_asked, cuts_asked;

static void on_signal(int number)
{
	if (number == SIGUSR1)
		steps_asked++;
	else
		cuts_asked++;
}

/* The clock of its events and answers. */
static uint64_t sim_tsc(const struct sim *s)
{
	return clock_tsc_read() + (steps_asked % 2 ? s->step_ticks : 0);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void on_dropped(void *context, const struct send_item *item)
{
	struct sim *s = context;

	if (item->class == SEND_BULK)
		s->cpus[item->cpu].dropped += item->events;
}

/* One batch of n events of this CPU, into the queue. */
static void batch_make(struct sim *s, uint16_t c, size_t n)
{
	struct cpu *cpu = &s->cpus[c];
	uint64_t now = sim_tsc(s);
	struct batch b = {.cpu = c, .n_events = n, .events = s->events, .watermark = now};

	for (size_t i = 0; i < n; i++)
		s->events[i] = (struct vs_event){.time = now - (n - i) * 1000,
						 .seq = cpu->seq++,
						 .cpu = c,
						 .type = VS_EVENT_SCHED_SWITCH,
						 .pid = (int32_t)(100 + i % 5),
						 .pid2 = (int32_t)(100 + (i + 1) % 5)};
	cpu->emitted += n;
	b.emitted = cpu->emitted;
	b.dropped_user = cpu->dropped;
	s->payload.len = s->frame.len = 0;
	if (batch_encode(s->encoder, &b, &s->payload) ||
	    frame_write(s->writer, FRAME_BATCH, s->payload.data, s->payload.len, &s->frame))
		abort();
	send_queue_push(s->queue, &(struct send_item){SEND_BULK, c, (uint32_t)n}, s->frame.data,
			s->frame.len);
}

static void heartbeat_make(struct sim *s)
{
	static struct message_heartbeat beat;

	beat.time = sim_tsc(s);
	beat.emitted = beat.dropped_user = 0;
	for (int c = 0; c < CPUS; c++) {
		beat.emitted += s->cpus[c].emitted;
		beat.dropped_user += s->cpus[c].dropped;
	}
	beat.delivered = beat.emitted - beat.dropped_user;
	s->payload.len = s->frame.len = 0;
	if (message_heartbeat_pack(&beat, &s->payload) ||
	    frame_write(s->writer, FRAME_HEARTBEAT, s->payload.data, s->payload.len, &s->frame))
		abort();
	send_queue_push(s->queue, &(struct send_item){.class = SEND_CONTROL}, s->frame.data,
			s->frame.len);
}

static void capture(struct sim *s, uint64_t now)
{
	uint64_t due = (now - s->begin_ms) * s->rate / 1000 - s->made;

	s->drain_ms = now;
	if (due > (uint64_t)CPUS * VS_BATCH_EVENTS_MAX)
		due = (uint64_t)CPUS * VS_BATCH_EVENTS_MAX;
	s->made += due;
	for (uint16_t c = 0; c < CPUS; c++)
		batch_make(s, c, due / CPUS + (c < due % CPUS));
}

/* ---- the channel ---- */

static void down(struct sim *s)
{
	close(s->fd);
	s->fd = -1;
	session_end(s->session);
	if (s->written == s->wire.len || (s->wire_queued && !s->written))
		return;
	if (s->wire_queued)
		on_dropped(s, &s->wire_item);
	s->wire.len = s->written = 0;
}

static void dial(struct sim *s)
{
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (connect(s->fd, (struct sockaddr *)&s->address, sizeof(s->address))) {
		close(s->fd);
		s->fd = -1;
		return;
	}
	session_begin(s->session);
}

/* The next frame. False: nothing to send. */
static bool wire_fill(struct sim *s)
{
	s->wire.len = s->written = 0;
	s->wire_session = 0;
	s->wire_queued = false;
	if (session_hello_due(s->session, now_ms()))
		return !session_hello(s->session, &s->hello, now_ms(), &s->wire);
	if (session_echo_due(s->session))
		return !session_echo(s->session, sim_tsc(s), &s->wire);
	if (session_state(s->session) != SESSION_OPEN)
		return false;
	s->wire_queued = true;
	return send_queue_pop(s->queue, &s->wire_item, &s->wire) == 1;
}

static void pump(struct sim *s)
{
	while (s->fd >= 0) {
		size_t cut = 0;
		ssize_t n;

		if (s->written == s->wire.len && !wire_fill(s))
			return;
		if (!s->written && s->wire_session != session_number(s->session)) {
			session_stamp(s->session, s->wire.data);
			s->wire_session = session_number(s->session);
		}
		if (cuts_asked && s->wire_queued && s->wire.len - s->written > 1)
			cut = (s->wire.len - s->written) / 2;
		n = send(s->fd, s->wire.data + s->written, s->wire.len - s->written - cut,
			 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			down(s);
		if (n <= 0)
			return;
		s->written += (size_t)n;
		if (cut) {
			cuts_asked = 0;
			down(s);
		}
	}
}

static void receive(struct sim *s)
{
	uint8_t bytes[4096];
	ssize_t n;

	while ((n = recv(s->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		session_receive(s->session, bytes, (size_t)n, sim_tsc(s));
	if (!n || errno != EAGAIN)
		down(s);
}

static bool waits(const struct sim *s)
{
	struct send_queue_stats stats;

	send_queue_stats_get(s->queue, &stats);
	return stats.waiting_bytes > 0 || s->written < s->wire.len;
}

static void run(struct sim *s)
{
	uint64_t end_ms = 0;

	s->begin_ms = s->drain_ms = now_ms();
	while (!end_ms || (now_ms() < end_ms && waits(s))) {
		struct pollfd polled[2] = {{.fd = end_ms ? -1 : 0, .events = POLLIN},
					   {.fd = s->fd, .events = POLLIN}};
		uint64_t now;

		poll(polled, 2, DRAIN_MS / 2);
		now = now_ms();
		if (polled[0].revents) {
			capture(s, now);
			for (uint16_t c = 0; c < CPUS; c++) /* the last word on every CPU */
				batch_make(s, c, 1);
			end_ms = now + LAST_WORD_MS;
		}
		if (s->fd < 0)
			dial(s);
		else if (polled[1].revents)
			receive(s);
		if (!end_ms && now - s->drain_ms >= DRAIN_MS)
			capture(s, now);
		if (!end_ms && now - s->heartbeat_ms >= HEARTBEAT_MS) {
			s->heartbeat_ms = now;
			if (session_state(s->session) == SESSION_OPEN)
				heartbeat_make(s);
		}
		pump(s);
	}
}

static void say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "sim-agent: %s\n", line);
}

int main(int argc, char **argv)
{
	static struct sim s = {.fd = -1};
	struct session_options options = {.seed = (uint64_t)getpid() << 32, .say = say};
	uint64_t emitted = 0, dropped = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: sim-agent SOCKET EVENTS_PER_S\n");
		return 2;
	}
	s.address.sun_family = AF_UNIX;
	snprintf(s.address.sun_path, sizeof(s.address.sun_path), "%s", argv[1]);
	s.rate = strtoull(argv[2], NULL, 10);
	s.writer = options.writer = frame_writer_new(0);
	s.encoder = batch_encoder_new();
	s.session = session_new(&options);
	s.queue = send_queue_new(QUEUE_BYTES, 64 * 1024, on_dropped, &s);
	s.hello = (struct message_hello){.protocol_min = VS_PROTOCOL_MIN,
					 .protocol_max = VS_PROTOCOL_MAX,
					 .role = STREAM_ROLE_GUEST,
					 .clock = STREAM_CLOCK_GUEST_TSC,
					 .program_version = "sim",
					 .kernel_release = "none",
					 .n_cpus = CPUS};
	for (uint32_t c = 0; c < CPUS; c++)
		s.hello.cpus[c] = (struct message_cpu){c, c};
	if (clock_tsc_hz(&s.hello.clock_hz))
		return 1;
	s.step_ticks = 3 * s.hello.clock_hz;
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	run(&s);
	if (s.fd >= 0) {
		usleep(300000); /* what is on its way arrives */
		close(s.fd);
	}
	for (int c = 0; c < CPUS; c++) {
		emitted += s.cpus[c].emitted;
		dropped += s.cpus[c].dropped;
	}
	printf("{\"emitted\": %llu, \"dropped\": %llu, \"sessions\": %llu, \"left\": %d}\n",
	       (unsigned long long)emitted, (unsigned long long)dropped,
	       (unsigned long long)session_number(s.session), waits(&s));
	return 0;
}
