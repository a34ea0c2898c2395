/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An agent with a simulated kernel. The session and the queue are those of the real agent. It
 * counts its events. When standard input ends, it generates no more events, sends the waiting ones,
 * and prints
 *
 *	{"emitted": N, "dropped": N, "sessions": N}
 *
 * A report about it must have the same numbers. `dropped` counts the events that its queue dropped,
 * and those of a frame that was cut. The file TALLY has the counts of an agent that was killed
 * (sim_load_tally()). At SIGUSR1 its clock steps three seconds forward, or back again. At SIGUSR2
 * the connection ends within a frame. At low rates it drains as rarely as a real agent.
 *
 *   sim-agent SOCKET EVENTS_PER_S [TALLY]
 *   sim-agent --many N PREFIX EVENTS_PER_S    N such agents in one process, with the sockets
 *                                             PREFIX0, PREFIX1 and so on, each with its own
 *                                             times of draining; prints one line for each
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
#include "tests/e2e/daemon/sim_load.h"

enum {
	DRAIN_MS = 20,
	DRAIN_SELDOM_MS = 100,
	SELDOM_EVENTS_PER_S = 2000, /* up to this rate */
	MANY_MAX = 1024,
	HEARTBEAT_MS = 100,
	QUEUE_BYTES = 1024 * 1024,
	LAST_WORD_MS = 20000, /* for what waits at the end */
};

struct sim {
	struct sockaddr_un address;
	int fd; /* -1: down */
	struct session *session;
	struct send_queue *queue;
	struct frame_writer *writer;
	struct message_hello hello;
	struct sim_load load;
	struct byte_buffer wire;
	size_t written;        /* of wire */
	uint64_t wire_session; /* when it was stamped */
	bool wire_queued;
	struct send_item wire_item;
	uint64_t step_ticks; /* of its clock, one way or the other */
	uint64_t drain_every_ms, drain_ms, heartbeat_ms;
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

	sim_load_dropped(&s->load, item);
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
	if (session_hello_waits(s->session))
		return false;
	if (session_echo_due(s->session, now_ms()))
		return !session_echo(s->session, now_ms(), sim_tsc(s), &s->wire);
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

/* One turn. ends: standard input has ended; first: in this turn. */
static void turn(struct sim *s, bool readable, bool ends, bool first)
{
	const uint64_t now = now_ms();

	if (first) {
		sim_load_make(&s->load, now, sim_tsc(s));
		sim_load_end(&s->load, sim_tsc(s));
	}
	if (s->fd < 0)
		dial(s);
	else if (readable)
		receive(s);
	if (!ends && now - s->drain_ms >= s->drain_every_ms) {
		s->drain_ms = now;
		sim_load_make(&s->load, now, sim_tsc(s));
	}
	if (!ends && now - s->heartbeat_ms >= HEARTBEAT_MS) {
		s->heartbeat_ms = now;
		if (session_state(s->session) == SESSION_OPEN)
			sim_load_heartbeat(&s->load, sim_tsc(s));
	}
	pump(s);
}

static void run(struct sim *sims, size_t n)
{
	static struct pollfd polled[MANY_MAX + 1];
	uint64_t end_ms = 0;
	bool goes_on = true;

	while (goes_on && (!end_ms || now_ms() < end_ms)) {
		bool first;

		for (size_t i = 0; i < n; i++)
			polled[i] = (struct pollfd){.fd = sims[i].fd, .events = POLLIN};
		polled[n] = (struct pollfd){.fd = end_ms ? -1 : 0, .events = POLLIN};
		poll(polled, n + 1, n > 1 ? DRAIN_MS / 2 : (int)sims[0].drain_every_ms / 2);
		first = polled[n].revents && !end_ms;
		if (first)
			end_ms = now_ms() + LAST_WORD_MS;
		goes_on = !end_ms;
		for (size_t i = 0; i < n; i++) {
			turn(&sims[i], polled[i].revents != 0, end_ms != 0, first);
			goes_on |= !sims[i].load.error && waits(&sims[i]);
		}
	}
}

static void say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "sim-agent: %s\n", line);
}

/* number: among those of this process. */
static int sim_begin(struct sim *s, const char *path, const char *rate, uint64_t number)
{
	const uint64_t per_s = strtoull(rate, NULL, 10);
	struct session_options options = {.seed = ((uint64_t)getpid() << 32) + (number << 20),
					  .say = say};

	s->fd = -1;
	s->address.sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(s->address.sun_path))
		return -ENAMETOOLONG;
	memcpy(s->address.sun_path, path, strlen(path));
	s->writer = options.writer = frame_writer_new(0);
	s->session = session_new(&options);
	s->queue = send_queue_new(QUEUE_BYTES, 64 * 1024, on_dropped, s);
	if (!s->writer || !s->session || !s->queue || sim_load_hello(&s->hello))
		return -ENOMEM;
	s->drain_every_ms = per_s <= SELDOM_EVENTS_PER_S ? DRAIN_SELDOM_MS : DRAIN_MS;
	s->drain_ms = s->heartbeat_ms = now_ms();
	s->step_ticks = 3 * s->hello.clock_hz;
	sim_load_init(&s->load, s->writer, s->queue, per_s, now_ms());
	return s->load.error;
}

static int sim_end(const struct sim *s)
{
	const struct sim_cpu sum = sim_load_sum(&s->load);

	printf("{\"emitted\": %llu, \"dropped\": %llu, \"sessions\": %llu, \"left\": %d}\n",
	       (unsigned long long)sum.emitted, (unsigned long long)sum.dropped,
	       (unsigned long long)session_number(s->session), waits(s));
	if (s->load.error)
		fprintf(stderr, "sim-agent: %s\n", strerror(-s->load.error));
	return s->load.error;
}

static int usage(void)
{
	fprintf(stderr, "usage: sim-agent SOCKET EVENTS_PER_S [TALLY]\n"
			"       sim-agent --many N PREFIX EVENTS_PER_S\n");
	return 2;
}

int main(int argc, char **argv)
{
	const bool many = argc == 5 && !strcmp(argv[1], "--many");
	const size_t n = many ? strtoul(argv[2], NULL, 10) : 1;
	struct sim *sims;
	int err = 0;

	if (!many && (argc < 3 || argc > 4))
		return usage();
	sims = n && n <= MANY_MAX ? calloc(n, sizeof(*sims)) : NULL;
	if (!sims)
		return usage();
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	for (size_t i = 0; i < n && !err; i++) {
		char path[256];

		if (many)
			snprintf(path, sizeof(path), "%s%zu", argv[3], i);
		else
			snprintf(path, sizeof(path), "%s", argv[1]);
		err = sim_begin(&sims[i], path, argv[many ? 4 : 2], i);
		if (many) {
			sims[i].drain_every_ms = DRAIN_SELDOM_MS;
			sims[i].drain_ms -= i % DRAIN_SELDOM_MS;
			sims[i].heartbeat_ms -= i % HEARTBEAT_MS;
		}
	}
	if (!err && !many && argc > 3)
		err = sim_load_tally(&sims[0].load, argv[3]);
	if (err)
		return 1;
	run(sims, n);
	for (size_t i = 0; i < n; i++) {
		if (sims[i].fd >= 0)
			usleep(many ? 1000 : 300000); /* what is on its way arrives */
	}
	for (size_t i = 0; i < n; i++) {
		if (sims[i].fd >= 0)
			close(sims[i].fd);
		err |= sim_end(&sims[i]);
	}
	return err ? 1 : 0;
}
