/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures how many times the engine that converts recordings converts per second of CPU time
 * (medians of the rounds): batches of a guest's events to the timeline, single stamps, and each
 * step alone. "16 epochs" is a guest whose TSC offset and kvmclock line changed 15 times.
 *
 * Exit code 1: fewer than 50 M events/s in batches.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "clock/echo.h"
#include "clock/raw.h"
#include "clock/sample.h"
#include "host-collector/timeline/clock_book.h"
#include "host-collector/timeline/vm_clock.h"
#include "proto/recording.h"
#include "tests/bench/figure.h"

enum { INSTANTS = 1 << 14, REPEATS = 64, ROUNDS = 7, EPOCHS = 16, EPOCH_S = 20, VM = 1 };

#define BATCH_LIMIT_PER_S 50e6
#define HZ                2500000000ull
#define GUEST_SCALED_HZ   2083333333ull
#define SCALED_RATIO      234562480592213ull /* of VMX: the guest's rate divided by the host's */

/* A guest with known and confirmed clock parameters, and its TSC at random instants. */
struct guest {
	struct clock_book *book;
	const struct vm_clock *clock;
	uint64_t host[INSTANTS], tsc[INSTANTS];
	struct vs_event batch[INSTANTS]; /* in the order of time, within the last second */
};

struct bench {
	struct guest steady, changed, scaled;
	struct echo_sync *echo;
	struct raw_clock *raw;
	struct capture_clock capture;
	uint64_t recent[INSTANTS], stamps[INSTANTS];
	struct timeline_event out[INSTANTS];
};

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 20) % limit;
}

static void parameters_learn(struct clock_book *book, const struct tsc_scaling *tsc, uint64_t epoch,
			     uint64_t from)
{
	const struct message_vm_clock value = {
		.vm = VM,
		.source = VM_CLOCK_DEBUGFS,
		.from_min = from,
		.from_max = from,
		.tsc = {true, true, tsc->frac_bits, tsc->offset, tsc->ratio},
	};
	const struct message_vm_clock line = {
		.vm = VM,
		.source = VM_CLOCK_PVCLOCK_UPDATE,
		.from_min = from,
		.from_max = from,
		.pvclock = {.known = true,
			    .tsc_timestamp = 500,
			    .system_time = 77 + epoch * 1000000,
			    .mul = 3435973836,
			    .shift = -1,
			    .flags = 1},
	};

	clock_book_vm_clock(book, &value);
	clock_book_vm_clock(book, &line);
}

static void guest_setup(struct guest *g, struct tsc_scaling tsc, uint64_t epochs)
{
	static struct message_hello hello;
	const uint64_t seconds = epochs * EPOCH_S, first = HZ;
	struct tsc_scaling in_force[EPOCHS];
	uint64_t seed = 1, end = first + seconds * HZ;

	g->book = clock_book_new(false);
	hello = (struct message_hello){.clock_hz = HZ};
	clock_book_hello(g->book, VS_SOURCE_HOST, 0, &hello);
	hello.clock = STREAM_CLOCK_GUEST_TSC;
	hello.clock_hz = tsc.frac_bits ? GUEST_SCALED_HZ : HZ;
	clock_book_hello(g->book, VM, 0, &hello);
	for (uint64_t s = 0; s <= seconds; s++) {
		uint64_t at = first + s * HZ, e = s / EPOCH_S < epochs ? s / EPOCH_S : epochs - 1;
		const struct message_clock_sample sample = {at, 200, at / 5 * 2, at / 5 * 2, 0};
		struct message_echo_observation o = {.vm = VM, .host_sent = at};

		if (s == e * EPOCH_S) {
			tsc.offset += 100000;
			in_force[e] = tsc;
			parameters_learn(g->book, &tsc, e, at);
		}
		o.guest_received = tsc_scaling_to_guest(&tsc, (struct host_tsc){at + 300000}).ticks;
		o.guest_sent = tsc_scaling_to_guest(&tsc, (struct host_tsc){at + 310000}).ticks;
		o.host_received = at + 650000;
		clock_book_host_sample(g->book, &sample);
		clock_book_echo(g->book, &o);
	}
	g->clock = clock_book_vm(g->book, VM);
	for (size_t i = 0; i < INSTANTS; i++) {
		struct host_tsc at = {end - HZ + i * (HZ / INSTANTS)};

		g->host[i] = first + random_below(&seed, end - first);
		g->tsc[i] = tsc_scaling_to_guest(&in_force[(g->host[i] - first) / (EPOCH_S * HZ)],
						 (struct host_tsc){g->host[i]})
				    .ticks;
		g->batch[i].time = tsc_scaling_to_guest(&tsc, at).ticks;
	}
}

static void bench_setup(struct bench *b)
{
	const struct echo_options options = {.host_hz = HZ, .stream_hz = HZ};
	const struct tsc_scaling plain = {.offset = 1000};
	const struct tsc_scaling scaled = {SCALED_RATIO, TSC_FRAC_BITS_VMX, 5};
	const uint64_t first = 4500 * HZ, last = first + 298 * HZ;
	uint64_t seed = 1;
	struct clock_sample sample;

	guest_setup(&b->steady, plain, 1);
	guest_setup(&b->changed, plain, EPOCHS);
	guest_setup(&b->scaled, scaled, EPOCHS);
	b->echo = echo_sync_new(&options);
	b->raw = raw_clock_new(HZ, false);
	for (uint64_t s = 0; s < 300; s++) {
		uint64_t host = first + s * HZ;
		struct echo_observation o = {{host}, host + 300000, host + 310000, {host + 650000}};

		sample = (struct clock_sample){.tsc = host,
					       .tsc_width = 200,
					       .monotonic_ns = host / 5 * 2,
					       .raw_ns = host / 5 * 2};
		echo_sync_add(b->echo, &o);
		raw_clock_push(b->raw, &sample);
		if (s >= 298) {
			sample.tsc = last + (s - 298) * HZ / 20;
			sample.monotonic_ns = sample.raw_ns = sample.tsc / 5 * 2;
			capture_clock_push(&b->capture, &sample);
		}
	}
	for (size_t i = 0; i < INSTANTS; i++) {
		b->recent[i] = last + random_below(&seed, HZ);
		b->stamps[i] = last / 5 * 2 + random_below(&seed, 50000000);
	}
}

/* Each function returns a sum, so that the compiler cannot omit a conversion. */
typedef uint64_t (*bench_run)(struct bench *b);

static uint64_t batch_sum(struct bench *b, const struct guest *g)
{
	if (!clock_book_map(g->book, VM, 0, 0, g->batch, INSTANTS, 100, b->out))
		abort();
	return (uint64_t)b->out[INSTANTS / 2].t.ns + b->out[INSTANTS - 1].err_ns;
}

static uint64_t batch_steady(struct bench *b)
{
	return batch_sum(b, &b->steady);
}

static uint64_t batch_changed(struct bench *b)
{
	return batch_sum(b, &b->changed);
}

#define RUN(name, declare, convert, value)                                                         \
	static uint64_t name(struct bench *b)                                                      \
	{                                                                                          \
		uint64_t sum = 0, err = 0;                                                         \
		declare;                                                                           \
		for (size_t i = 0; i < INSTANTS; i++) {                                            \
			convert;                                                                   \
			sum += (value) + err;                                                      \
		}                                                                                  \
		return sum;                                                                        \
	}

static const struct vm_clock_window always = {0, UINT64_MAX};

RUN(stamp_steady, struct host_time t = {0},
    clock_book_to_ns(b->steady.book, VM, 0, b->steady.tsc[i], 100, &t), (uint64_t)t.t.ns + t.err_ns)
RUN(to_host_steady, struct host_tsc h = {0},
    vm_clock_to_host(b->steady.clock, &always, VM_CLOCK_ANY_VCPU,
		     (struct guest_tsc){b->steady.tsc[i]}, &h, &err),
    h.ticks)
RUN(to_host_changed, struct host_tsc h = {0},
    vm_clock_to_host(b->changed.clock, &always, VM_CLOCK_ANY_VCPU,
		     (struct guest_tsc){b->changed.tsc[i]}, &h, &err),
    h.ticks)
RUN(to_host_scaled, struct host_tsc h = {0},
    vm_clock_to_host(b->scaled.clock, &always, VM_CLOCK_ANY_VCPU,
		     (struct guest_tsc){b->scaled.tsc[i]}, &h, &err),
    h.ticks)
RUN(kvmclock_changed, struct kvmclock_ns ns = {0},
    vm_clock_kvmclock(b->changed.clock, 0, (struct host_tsc){b->changed.host[i]},
		      (struct guest_tsc){b->changed.tsc[i]}, &ns),
    ns.ns)
RUN(capture_to_tsc, uint64_t tsc, tsc = capture_clock_to_tsc(&b->capture, b->stamps[i], &err), tsc)
RUN(echo_to_host, struct host_tsc h = {0}, echo_sync_to_host(b->echo, b->recent[i], &h, &err),
    h.ticks)
RUN(tsc_to_raw, struct host_time t,
    t = raw_clock_from_tsc(b->raw, (struct host_tsc){b->recent[i]}, 100),
    (uint64_t)t.t.ns + t.err_ns)

static const struct {
	const char *name;
	bench_run run;
	double limit_per_s; /* 0: no goal */
} benches[] = {
	{"clock: a batch of a guest's events to the timeline", batch_steady, BATCH_LIMIT_PER_S},
	{"clock: the same, 16 epochs", batch_changed, 0},
	{"clock: one guest TSC to the timeline", stamp_steady, 0},
	{"clock: exact, guest TSC to host TSC", to_host_steady, 0},
	{"clock: exact, guest TSC to host TSC, 16 epochs", to_host_changed, 0},
	{"clock: exact, scaled guest TSC, 16 epochs", to_host_scaled, 0},
	{"clock: exact, kvmclock, 16 lines", kvmclock_changed, 0},
	{"clock: capture stamp to TSC", capture_to_tsc, 0},
	{"clock: round trips, guest TSC to host TSC", echo_to_host, 0},
	{"clock: host TSC to CLOCK_MONOTONIC_RAW", tsc_to_raw, 0},
};

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
	struct bench *b = calloc(1, sizeof(*b));
	volatile uint64_t sum = 0;
	int slow = 0;

	if (!b)
		return 1;
	bench_setup(b);
	for (size_t i = 0; i < sizeof(benches) / sizeof(benches[0]); i++) {
		const struct figure f = {.name = benches[i].name,
					 .unit = "M/CPU-s",
					 .goal_is = benches[i].limit_per_s > 0 ? FIGURE_AT_LEAST
									       : FIGURE_NO_GOAL,
					 .goal = benches[i].limit_per_s / 1e6};
		double per_s[ROUNDS];

		for (int round = 0; round < ROUNDS; round++) {
			const double begin = cpu_s();

			for (int n = 0; n < REPEATS; n++)
				sum += benches[i].run(b);
			per_s[round] = (double)INSTANTS * REPEATS / (cpu_s() - begin) / 1e6;
		}
		if (!figure_print(&f, per_s, ROUNDS))
			slow = 1;
	}
	clock_book_free(b->steady.book);
	clock_book_free(b->changed.book);
	clock_book_free(b->scaled.book);
	echo_sync_free(b->echo);
	raw_clock_free(b->raw);
	free(b);
	return slow;
}
