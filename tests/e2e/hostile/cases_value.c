/* SPDX-License-Identifier: GPL-2.0-only */
/* Well-formed messages with false numbers, which a decoder cannot refuse, but by which later
 * code divides or multiplies, to which it counts, or which it takes as a time. And a guest that
 * gives any answer to round trips, so that its times are arbitrary. */
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/e2e/hostile/attack.h"

static struct message_hello hello;
static struct message_heartbeat beat;
static struct message_kernel_log log_lines;

static bool hello_send(struct attack *a)
{
	a->payload.len = 0;
	return !message_hello_pack(&hello, &a->payload) && attack_frame(a, FRAME_HELLO);
}

static bool beat_send(struct attack *a)
{
	a->payload.len = 0;
	return !message_heartbeat_pack(&beat, &a->payload) && attack_frame(a, FRAME_HEARTBEAT);
}

/* Events around `time`, then a heartbeat, three times. */
static void life_go_on(struct attack *a, uint64_t time, uint64_t step)
{
	struct vs_event events[50];

	for (uint32_t i = 0; i < 3; i++) {
		events_make(events, 50, 0, time + i * step, i * 50);
		attack_batch(a, events, 50, 0);
		beat.time = time + i * step;
		beat.emitted += 50;
		beat_send(a);
	}
}

/* ---- HELLO ---- */

static void clock_slow(void)
{
	hello.clock_hz = 1;
}
static void clock_fast(void)
{
	hello.clock_hz = UINT64_MAX;
}
static void clock_odd(void)
{
	hello.clock_hz = (1ull << 63) + 1;
}
static void clock_kvm_slow(void)
{
	hello.clock = STREAM_CLOCK_KVMCLOCK_NS;
	hello.clock_hz = 1;
}
static void ticks_many(void)
{
	hello.tick_hz = UINT32_MAX;
}
static void tick_one(void)
{
	hello.tick_hz = 1;
}
static void watchdog_long(void)
{
	hello.watchdog_s = UINT32_MAX;
}
static void suspended_always(void)
{
	hello.suspended_ns = UINT64_MAX;
}
static void dmesg_end(void)
{
	hello.dmesg = (struct message_dmesg_point){true, UINT64_MAX, UINT64_MAX, UINT64_MAX};
}
static void dmesg_before(void)
{
	hello.dmesg = (struct message_dmesg_point){true, 0, UINT64_MAX, 0};
}
static void features_all(void)
{
	hello.features = UINT64_MAX;
	hello.protocol_max = UINT32_MAX;
}
static void cpus_same(void)
{
	hello.n_cpus = VS_CPUS_MAX;
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		hello.cpus[i] = (struct message_cpu){VS_CPUS_MAX - 1, UINT32_MAX};
}
static void cpus_none(void)
{
	hello.n_cpus = 0;
}

/* ---- heartbeats ---- */

static void steal_unit_none(void)
{
	beat.steal = (struct message_steal){.known = true, .clock = true, .n_cpus = 1};
	beat.steal.cpus[0].steal_ns = 1;
}
static void steal_end(void)
{
	beat.steal = (struct message_steal){.known = true,
					    .clock = true,
					    .time = UINT64_MAX,
					    .err = UINT64_MAX,
					    .unit_ns = UINT64_MAX,
					    .n_cpus = 2};
	beat.steal.cpus[0].steal_ns = UINT64_MAX;
	beat.steal.cpus[1] = (struct message_cpu_steal){1, 1ull << 63};
}
static void steal_same(void)
{
	beat.steal = (struct message_steal){
		.known = true, .clock = true, .unit_ns = 1, .n_cpus = VS_CPUS_MAX};
	for (size_t i = 0; i < VS_CPUS_MAX; i++)
		beat.steal.cpus[i] = (struct message_cpu_steal){7, i % 2 ? UINT64_MAX : 0};
}
static void aggregated_end(void)
{
	for (size_t i = 0; i < EVENT_CLASSES; i++)
		beat.aggregated[i] =
			(struct message_aggregated){UINT64_MAX, UINT64_MAX, UINT64_MAX};
}
static void aggregated_lie(void)
{
	for (size_t i = 0; i < EVENT_CLASSES; i++)
		beat.aggregated[i] = (struct message_aggregated){1, 0, UINT64_MAX};
}
static void pvclock_least(void)
{
	beat.pvclock = (struct message_vm_clock_pvclock){
		.known = true, .mul = 1, .shift = -31, .system_time = UINT64_MAX};
}
static void pvclock_most(void)
{
	beat.pvclock = (struct message_vm_clock_pvclock){.known = true,
							 .mul = UINT32_MAX,
							 .shift = 31,
							 .tsc_timestamp = UINT64_MAX,
							 .system_time = UINT64_MAX,
							 .flags = UINT8_MAX};
}
static void sample_end(void)
{
	beat.sample = (struct message_clock_sample){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
						    UINT64_MAX};
}
static void beat_dmesg_end(void)
{
	beat.dmesg = (struct message_dmesg_point){true, 1, UINT64_MAX, UINT64_MAX};
}
static void totals_end(void)
{
	beat.emitted = beat.delivered = beat.dropped_kernel = beat.dropped_user = beat.missed =
		UINT64_MAX;
	beat.cpu_time_ns = beat.rss_bytes = UINT64_MAX;
}

/* ---- lines of a log ---- */

static void log_send(struct attack *a, uint64_t first_us, uint64_t step_us)
{
	log_lines.n_lines = VS_LOG_LINES_MAX;
	for (size_t i = 0; i < VS_LOG_LINES_MAX; i++) {
		log_lines.lines[i].dmesg_us = first_us + i * step_us;
		log_lines.lines[i].level = UINT32_MAX;
		strcpy(log_lines.lines[i].text,
		       "watchdog: BUG: soft lockup - CPU#4294967295 stuck for 4294967295s! [x:-1]");
	}
	a->payload.len = 0;
	if (!message_kernel_log_pack(&log_lines, &a->payload))
		attack_frame(a, FRAME_KERNEL_LOG);
}
static void log_end(struct attack *a)
{
	log_send(a, UINT64_MAX - 3, 1);
}
static void log_back(struct attack *a)
{
	log_send(a, UINT64_MAX / 1000, (uint64_t)-1000000);
}
static void log_zero(struct attack *a)
{
	log_send(a, 0, 0);
}

/* ---- round trips ---- */

typedef void (*answer_fill)(struct attack *a, struct message_echo_reply *reply);

/* Answers whatever round trips are asked for in half a second. */
static void echoes_answer(struct attack *a, answer_fill fill)
{
	struct frame_reader reader;
	uint64_t end = attack_now_ms() + 500;
	uint8_t bytes[4096];

	frame_reader_init(&reader);
	while (attack_now_ms() < end) {
		struct pollfd p = {.fd = a->fd, .events = POLLIN};
		struct frame_view frame;
		ssize_t n;

		poll(&p, 1, 20);
		n = recv(a->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
		if (n > 0)
			frame_reader_push(&reader, bytes, (size_t)n);
		while (frame_reader_next(&reader, &frame)) {
			struct message_echo_request request;
			struct message_echo_reply reply = {0};

			if (frame.header.kind != FRAME_ECHO_REQUEST ||
			    message_echo_request_unpack(frame.bytes + VS_FRAME_HEADER_BYTES,
							frame.header.payload_bytes, &request))
				continue;
			reply.id = request.id;
			fill(a, &reply);
			a->payload.len = 0;
			message_echo_reply_pack(&reply, &a->payload);
			attack_frame(a, FRAME_ECHO_REPLY);
		}
	}
	frame_reader_fini(&reader);
}

static void answer_back(struct attack *a, struct message_echo_reply *reply)
{
	(void)a;
	reply->received = UINT64_MAX;
	reply->sent = 0;
}
static void answer_long(struct attack *a, struct message_echo_reply *reply)
{
	(void)a;
	reply->sent = UINT64_MAX;
}
static void answer_random(struct attack *a, struct message_echo_reply *reply)
{
	reply->received = attack_random(a) << 11;
	reply->sent = reply->received + attack_random(a) % 1000;
}
static void answer_same(struct attack *a, struct message_echo_reply *reply)
{
	(void)a;
	reply->received = reply->sent = 1;
}
static void answer_steps(struct attack *a, struct message_echo_reply *reply)
{
	reply->received = attack_now_ms() * 2000000 + (a->seq % 2 ? 6000000000 : 0);
	reply->sent = reply->received + 1000;
}
static void answer_twice_as_fast(struct attack *a, struct message_echo_reply *reply)
{
	(void)a;
	reply->received = attack_now_ms() * 4000000;
	reply->sent = reply->received + 1;
}

static const struct {
	const char *name;
	void (*set)(void); /* before HELLO and heartbeats are sent */
	void (*send)(struct attack *a);
	answer_fill answer;
} values[] = {
	{"clock of 1 Hz", clock_slow, NULL, NULL},
	{"clock of 2^64-1 Hz", clock_fast, NULL, NULL},
	{"clock of 2^63+1 Hz", clock_odd, NULL, NULL},
	{"kvmclock of 1 Hz", clock_kvm_slow, NULL, NULL},
	{"2^32-1 ticks a second", ticks_many, NULL, NULL},
	{"one tick a second", tick_one, NULL, NULL},
	{"a watchdog of 136 years", watchdog_long, NULL, NULL},
	{"suspended for ever", suspended_always, NULL, NULL},
	{"a log that began at the end of time", dmesg_end, NULL, NULL},
	{"a log that began before time", dmesg_before, NULL, NULL},
	{"every feature, any protocol", features_all, NULL, NULL},
	{"1024 times the same CPU", cpus_same, NULL, NULL},
	{"no CPU", cpus_none, NULL, NULL},
	{"steal in units of nothing", steal_unit_none, NULL, NULL},
	{"steal of 584 years", steal_end, NULL, NULL},
	{"steal of one CPU 1024 times", steal_same, NULL, NULL},
	{"counted handlers beyond 2^64", aggregated_end, NULL, NULL},
	{"a handler longer than all of them", aggregated_lie, NULL, NULL},
	{"pvclock at its least", pvclock_least, NULL, NULL},
	{"pvclock at its most", pvclock_most, NULL, NULL},
	{"a sample at the end of time", sample_end, NULL, NULL},
	{"a log at the end of time", beat_dmesg_end, NULL, NULL},
	{"totals of 2^64-1", totals_end, NULL, NULL},
	{"log lines at the end of time", NULL, log_end, NULL},
	{"log lines that run backwards", NULL, log_back, NULL},
	{"log lines at time 0", NULL, log_zero, NULL},
	{"answers sent before they were asked for", NULL, NULL, answer_back},
	{"answers that took 2^64 ticks", NULL, NULL, answer_long},
	{"answers at random times", NULL, NULL, answer_random},
	{"answers always at the same time", NULL, NULL, answer_same},
	{"a clock that steps there and back", NULL, NULL, answer_steps},
	{"a clock twice as fast as it says", NULL, NULL, answer_twice_as_fast},
	{"1 Hz, and answers at random times", clock_slow, NULL, answer_random},
	{"2^64-1 Hz, and answers at random times", clock_fast, NULL, answer_random},
	{"pvclock at its most, answers that took 2^64 ticks", pvclock_most, NULL, answer_long},
};
enum { N_VALUES = sizeof(values) / sizeof(values[0]) };

static void play_value(struct attack *a, unsigned int variant)
{
	hello_make(&hello);
	memset(&beat, 0, sizeof(beat));
	if (values[variant].set)
		values[variant].set();
	hello_send(a);
	life_go_on(a, 1000000, 1000000000);
	if (values[variant].send)
		values[variant].send(a);
	if (values[variant].answer)
		echoes_answer(a, values[variant].answer);
	life_go_on(a, UINT64_MAX / 2, 1ull << 60);
	attack_sign_of_life(a);
	attack_sleep_ms(20);
}

bool value_case(size_t i, struct attack_case *out)
{
	if (i < N_VALUES)
		*out = (struct attack_case){"value", values[i].name, play_value, (unsigned int)i,
					    EXPECT_ACCEPTED};
	return i < N_VALUES;
}
