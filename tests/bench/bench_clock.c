/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Conversions per second of CPU time, best of some rounds: the piecewise map (16 epochs, instants
 * in the newest epoch as live conversion has them, and all over), and the three steps that an event
 * of a recording goes through: capture stamp to TSC, guest to host by echo, TSC to RAW ns.
 *
 * Exit code 1 if the map from host TSC to kvmclock makes fewer than 50 M/s.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "clock/echo.h"
#include "clock/map.h"
#include "clock/raw.h"
#include "clock/sample.h"

enum { INSTANTS = 1 << 14, REPEATS = 64, ROUNDS = 7, EPOCHS = 16 };

#define MAP_LIMIT_PER_S 50e6

static const uint64_t hz = 2500000000u;

struct bench {
	struct clock_map *map, *scaled;
	struct echo_sync *echo;
	struct raw_clock *raw;
	struct capture_clock capture;
	uint64_t recent[INSTANTS], all[INSTANTS], guest[INSTANTS], kvmclock[INSTANTS];
	uint64_t scaled_guest[INSTANTS], stamps[INSTANTS];
};

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (*state >> 20) % limit;
}

static void bench_setup(struct bench *b)
{
	const struct echo_options options = {.host_hz = hz, .stream_hz = hz};
	struct clock_params p = {
		.scaling = {.offset = 1000},
		.has_pvclock = true,
		.pvclock = {500, 77, 3435973836, -1, PVCLOCK_TSC_STABLE},
	};
	struct clock_params scaled = {.scaling = {234562480592213, TSC_FRAC_BITS_VMX, 5}};
	uint64_t seed = 1, last = (EPOCHS - 1) * 300 * hz;
	struct clock_sample sample;

	b->map = clock_map_new();
	b->scaled = clock_map_new();
	b->echo = echo_sync_new(&options);
	b->raw = raw_clock_new(hz);
	for (uint64_t e = 0; e < EPOCHS; e++) {
		clock_map_push(b->map, (struct host_tsc){e * 300 * hz}, &p);
		clock_map_push(b->scaled, (struct host_tsc){e * 300 * hz}, &scaled);
		p.pvclock.system_time += 1000000;
		scaled.scaling.offset += 100000;
	}
	for (uint64_t s = 0; s < 300; s++) {
		uint64_t host = last + s * hz;
		struct echo_observation o = {{host}, host + 300000, host + 310000, {host + 650000}};

		sample = (struct clock_sample){.tsc = host,
					       .tsc_width = 200,
					       .monotonic_ns = host / 5 * 2,
					       .raw_ns = host / 5 * 2};
		echo_sync_add(b->echo, &o);
		raw_clock_push(b->raw, &sample);
		if (s >= 298) {
			sample.tsc = last + 298 * hz + (s - 298) * hz / 20;
			sample.monotonic_ns = sample.raw_ns = sample.tsc / 5 * 2;
			capture_clock_push(&b->capture, &sample);
		}
	}
	for (size_t i = 0; i < INSTANTS; i++) {
		struct guest_tsc guest;
		struct kvmclock_ns ns;

		b->recent[i] = last + 298 * hz + random_below(&seed, hz);
		b->all[i] = random_below(&seed, EPOCHS * 300 * hz);
		clock_map_guest_tsc(b->map, (struct host_tsc){b->all[i]}, &guest);
		b->guest[i] = guest.ticks;
		clock_map_kvmclock(b->map, (struct host_tsc){b->all[i]}, &ns);
		b->kvmclock[i] = ns.ns;
		clock_map_guest_tsc(b->scaled, (struct host_tsc){b->all[i]}, &guest);
		b->scaled_guest[i] = guest.ticks;
		b->stamps[i] = (last + 298 * hz) / 5 * 2 + random_below(&seed, 50000000);
	}
}

/* Each returns a sum, so that no conversion is left out by the compiler. */
typedef uint64_t (*bench_run)(const struct bench *b);

#define RUN(name, declare, convert, value)                                                         \
	static uint64_t name(const struct bench *b)                                                \
	{                                                                                          \
		uint64_t sum = 0, err = 0;                                                         \
		declare;                                                                           \
		for (size_t i = 0; i < INSTANTS; i++) {                                            \
			convert;                                                                   \
			sum += (value) + err;                                                      \
		}                                                                                  \
		return sum;                                                                        \
	}

RUN(host_to_kvmclock_recent, struct kvmclock_ns ns = {0},
    clock_map_kvmclock(b->map, (struct host_tsc){b->recent[i]}, &ns), ns.ns)
RUN(host_to_kvmclock_all, struct kvmclock_ns ns = {0},
    clock_map_kvmclock(b->map, (struct host_tsc){b->all[i]}, &ns), ns.ns)
RUN(guest_tsc_to_host, struct host_tsc h = {0},
    clock_map_from_guest_tsc(b->map, (struct guest_tsc){b->guest[i]}, &h, &err), h.ticks)
RUN(scaled_guest_tsc_to_host, struct host_tsc h = {0},
    clock_map_from_guest_tsc(b->scaled, (struct guest_tsc){b->scaled_guest[i]}, &h, &err), h.ticks)
RUN(kvmclock_to_host, struct host_tsc h = {0},
    clock_map_from_kvmclock(b->map, (struct kvmclock_ns){b->kvmclock[i]}, &h, &err), h.ticks)
RUN(capture_to_tsc, uint64_t tsc, tsc = capture_clock_to_tsc(&b->capture, b->stamps[i], &err), tsc)
RUN(echo_to_host, struct host_tsc h = {0}, echo_sync_to_host(b->echo, b->recent[i], &h, &err),
    h.ticks)
RUN(tsc_to_raw, struct host_time t,
    t = raw_clock_from_tsc(b->raw, (struct host_tsc){b->recent[i]}, 100),
    (uint64_t)t.t.ns + t.err_ns)

static const struct {
	const char *name;
	bench_run run;
	double limit_per_s; /* 0: none stated */
} benches[] = {
	{"map: host TSC to kvmclock, newest epoch", host_to_kvmclock_recent, MAP_LIMIT_PER_S},
	{"map: host TSC to kvmclock, 16 epochs", host_to_kvmclock_all, 0},
	{"map: guest TSC to host TSC, 16 epochs", guest_tsc_to_host, 0},
	{"map: scaled guest TSC to host TSC, 16 epochs", scaled_guest_tsc_to_host, 0},
	{"map: kvmclock to host TSC, 16 epochs", kvmclock_to_host, 0},
	{"capture stamp to TSC", capture_to_tsc, 0},
	{"echo: guest TSC to host TSC", echo_to_host, 0},
	{"raw: host TSC to CLOCK_MONOTONIC_RAW", tsc_to_raw, 0},
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
		double best = 1e9, per_s;

		for (int round = 0; round < ROUNDS; round++) {
			double begin = cpu_s(), took;

			for (int n = 0; n < REPEATS; n++)
				sum += benches[i].run(b);
			took = cpu_s() - begin;
			if (took < best)
				best = took;
		}
		per_s = (double)INSTANTS * REPEATS / best;
		printf("%-46s %7.1f M/s  %6.2f ns\n", benches[i].name, per_s / 1e6, 1e9 / per_s);
		if (per_s < benches[i].limit_per_s) {
			printf("  below the %.0f M/s stated for it\n",
			       benches[i].limit_per_s / 1e6);
			slow = 1;
		}
	}
	clock_map_free(b->map);
	clock_map_free(b->scaled);
	echo_sync_free(b->echo);
	raw_clock_free(b->raw);
	free(b);
	return slow;
}
