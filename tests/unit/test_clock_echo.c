/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests echo sync: the interval contains the true time and is narrow, and a step begins a new
 * epoch. */
#include <errno.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock/echo.h"
#include "clock/sample.h"

/* Time is the host's TSC at 2 GHz; the guest's clock is a line of it within each epoch. */
static const uint64_t hz = 2000000000u;

/* An echo map's memory is below these, however long its history is. */
enum { LONG_BYTES = 1 << 20, SHORT_BYTES = 48 << 10 };

static size_t heap_bytes(void)
{
	const struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

struct world {
	uint64_t host0, guest0; /* where both were at host0 */
	double ratio;
	uint64_t random;
};

static uint64_t draw(struct world *w, uint64_t below)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (w->random >> 33) % below;
}

static uint64_t guest_at(const struct world *w, uint64_t host)
{
	return w->guest0 + (uint64_t)(int64_t)((long double)(int64_t)(host - w->host0) * w->ratio);
}

/* One round trip: at least 50 us each way, now and then milliseconds. */
static struct echo_observation round_trip(struct world *w, uint64_t host)
{
	uint64_t up = 100000 + draw(w, 60000) + (draw(w, 8) ? 0 : draw(w, 4000000));
	uint64_t down = 130000 + draw(w, 60000) + (draw(w, 8) ? 0 : draw(w, 4000000));
	uint64_t stay = 4000 + draw(w, 20000);

	return (struct echo_observation){{host},
					 guest_at(w, host + up),
					 guest_at(w, host + up + stay),
					 {host + up + stay + down}};
}

static void assert_inside(const struct echo_sync *s, const struct world *w, uint64_t host)
{
	struct host_tsc found;
	uint64_t err, guest;

	assert_true(echo_sync_to_host(s, guest_at(w, host), &found, &err));
	if ((uint64_t)llabs((int64_t)(found.ticks - host)) > err)
		fail_msg("host off by %lld ticks, bound %llu",
			 llabs((long long)(found.ticks - host)), (unsigned long long)err);
	assert_true(echo_sync_to_guest(s, (struct host_tsc){host}, &guest, &err));
	if ((uint64_t)llabs((int64_t)(guest - guest_at(w, host))) > err)
		fail_msg("guest off by %lld ticks, bound %llu",
			 llabs((long long)(guest - guest_at(w, host))), (unsigned long long)err);
}

static uint64_t err_at(const struct echo_sync *s, const struct world *w, uint64_t host)
{
	struct host_tsc found;
	uint64_t err;

	assert_true(echo_sync_to_host(s, guest_at(w, host), &found, &err));
	return err;
}

static const struct line_case {
	const char *name;
	uint64_t host0, guest0, stream_hz;
	double ratio, slope_ppm;
} lines[] = {
	{"same TSC, constant offset", 1ull << 40, 1 << 30, 2000000000u, 1, 0},
	{"TSC near 2^64", 0xffff000000000000u, 5, 2000000000u, 1, 0},
	{"guest told 850 ppm wrong in its first seconds", 1ull << 50, 1 << 30, 2001700000u, 1, 0},
	{"another crystal, +120 ppm", 1ull << 40, 1ull << 50, 2000000000u, 1.00012, 0},
	{"kvmclock nanoseconds", 1ull << 45, 1000, 1000000000u, 0.5 * (1 - 80e-6), 0},
	{"scaled TSC, 2.0 to 1.6 GHz", 1ull << 45, 1ull << 33, 1600000000u, 0.8, 0},
	{"a rate only roughly known", 1ull << 45, 1ull << 33, 1000000000u, 0.503, 10000},
};

static void truth_is_inside_before_within_and_after(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const struct line_case *l = &lines[i];
		const struct echo_options options = {
			.host_hz = hz, .stream_hz = l->stream_hz, .slope_ppm = l->slope_ppm};
		struct world w = {l->host0, l->guest0, l->ratio, i + 1};
		struct echo_sync *s = echo_sync_new(&options);
		struct echo_sync_summary summary;

		for (uint64_t n = 0; n < 600; n++) {
			uint64_t host = w.host0 + hz + n * hz / 10;
			struct echo_observation o = round_trip(&w, host);

			assert_int_equal(echo_sync_add(s, &o), 0);
			assert_inside(s, &w, host);
			assert_inside(s, &w, host + hz / 5);
			assert_inside(s, &w, w.host0 + hz / 2);
		}
		for (uint64_t n = 0; n < 1000; n++)
			assert_inside(s, &w, w.host0 + hz / 4 + n * hz / 14);
		echo_sync_summarise(s, &summary);
		assert_int_equal(summary.epochs, 1);
		assert_int_equal(summary.observations, 600);
		assert_int_equal(summary.contradictions, 0);
		assert_true(summary.ratio_min <= l->ratio && l->ratio <= summary.ratio_max);
		assert_true(summary.ratio_max - summary.ratio_min < 1e-5 * l->ratio);
		assert_in_range(summary.best_round_trip_ticks, 230000, 400000);
		if (err_at(s, &w, w.host0 + 30 * hz) > summary.best_round_trip_ticks * 6 / 10)
			fail_msg("%s: err %llu of round trip %llu", l->name,
				 (unsigned long long)err_at(s, &w, w.host0 + 30 * hz),
				 (unsigned long long)summary.best_round_trip_ticks);
		/* Far away the bound grows. */
		assert_true(err_at(s, &w, w.host0 + 200 * hz) > summary.err_ticks);
		echo_sync_free(s);
	}
}

/* Either the guest is stopped for a while, or its clock jumps. */
static const struct step_case {
	const char *name;
	uint64_t stopped; /* host ticks without guest; its clock goes on where it was */
	int64_t ahead;    /* guest ticks gained at once */
} steps[] = {
	{"stop and cont, 20 ms", 40000000, 0},
	{"stop and cont, 400 ms", 800000000, 0},
	{"stop and cont, an hour", 7200000000000, 0},
	{"set ahead by 50 ms", 0, 100000000},
	{"set ahead by a day", 0, 172800000000000},
	{"set back by ten days", 0, -1728000000000000},
};

static void a_step_starts_an_epoch_and_both_maps_hold(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct step_case *c = &steps[i];
		const struct echo_options options = {.host_hz = hz, .stream_hz = hz};
		struct world before = {1ull << 40, 1ull << 52, 1, i + 7}, after = before;
		struct echo_sync *s = echo_sync_new(&options);
		struct echo_sync_summary summary;
		uint64_t step_at = before.host0 + 20 * hz + hz / 20;
		uint64_t runs_at = step_at + c->stopped;
		int began = 0;

		after.guest0 += (uint64_t)c->ahead - c->stopped;
		for (uint64_t n = 0; n < 400; n++) {
			uint64_t host = before.host0 + n * hz / 10;
			struct echo_observation o;
			int r;

			if (host >= step_at)
				host += c->stopped;
			o = round_trip(host < step_at ? &before : &after, host);
			r = echo_sync_add(s, &o);
			assert_true(r >= 0);
			began += r;
			if (r)
				assert_true(host >= runs_at && host < runs_at + hz / 5);
		}
		assert_int_equal(began, 1);
		echo_sync_summarise(s, &summary);
		assert_int_equal(summary.epochs, 2);
		for (uint64_t n = 0; n < 1000; n++) {
			uint64_t host = before.host0 + n * hz / 25, err;
			struct host_tsc found;

			if (host >= step_at)
				host += c->stopped;
			assert_true(echo_sync_to_host(
				s, guest_at(host < step_at ? &before : &after, host), &found,
				&err));
			if ((uint64_t)llabs((int64_t)(found.ticks - host)) > err)
				fail_msg("%s, at %.2f s: off by %lld ticks, bound %llu", c->name,
					 (double)(host - before.host0) / (double)hz,
					 llabs((long long)(found.ticks - host)),
					 (unsigned long long)err);
		}
		echo_sync_free(s);
	}
}

static void a_reply_that_cannot_be_is_ignored_and_counted(void **state)
{
	const struct echo_options options = {.host_hz = hz, .stream_hz = hz};
	const struct echo_observation impossible[] = {
		{{1000000}, 500, 400, {2000000}},      /* sent before it was received */
		{{2000000}, 500, 600, {1000000}},      /* arrived before it was sent */
		{{1000000}, 500, 90000500, {2000000}}, /* longer in the guest than on the host */
	};
	struct echo_sync *s = echo_sync_new(&options);
	struct echo_sync_summary summary;
	struct host_tsc host;
	uint64_t err;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(echo_sync_add(s, &impossible[i]), -EINVAL);
	assert_false(echo_sync_to_host(s, 500, &host, &err));
	echo_sync_summarise(s, &summary);
	assert_int_equal(summary.epochs, 0);
	assert_int_equal(summary.contradictions, 3);
	echo_sync_free(s);
}

static void an_arrival_tightens_and_a_contradiction_is_refused(void **state)
{
	const struct echo_options options = {.host_hz = hz, .stream_hz = hz};
	struct world w = {1ull << 40, 1ull << 30, 1, 3};
	struct echo_sync *s = echo_sync_new(&options);
	struct echo_sync_summary before, after;
	uint64_t host = w.host0 + 10 * hz;

	(void)state;
	assert_int_equal(echo_sync_not_after(s, 5, (struct host_tsc){5}), -ENOENT);
	for (uint64_t n = 0; n <= 100; n++) {
		struct echo_observation o = round_trip(&w, w.host0 + n * hz / 10);

		assert_int_equal(echo_sync_add(s, &o), 0);
	}
	echo_sync_summarise(s, &before);
	assert_int_equal(echo_sync_not_after(s, guest_at(&w, host), (struct host_tsc){host + 5000}),
			 0);
	echo_sync_summarise(s, &after);
	assert_in_range(before.err_ticks, 125000, 130000);
	assert_in_range(after.err_ticks, 65000, 66000);
	assert_inside(s, &w, host);
	assert_int_equal(
		echo_sync_not_after(s, guest_at(&w, host), (struct host_tsc){host - 300000}),
		-EINVAL);
	assert_inside(s, &w, host);
	echo_sync_summarise(s, &after);
	assert_int_equal(after.contradictions, 1);
	echo_sync_free(s);
}

/* A step too small for round trips, but announced. */
static void an_announced_step_is_an_epoch(void **state)
{
	const struct echo_options options = {.host_hz = hz, .stream_hz = hz};
	struct world w = {1ull << 40, 1ull << 30, 1, 3};
	struct echo_sync *s = echo_sync_new(&options);
	struct echo_sync_summary summary;

	(void)state;
	for (uint64_t n = 0; n < 200; n++) {
		struct echo_observation o = round_trip(&w, w.host0 + n * hz / 10);

		if (n == 100) {
			echo_sync_break_at(s, (struct host_tsc){w.host0 + n * hz / 10 - hz / 20});
			w.guest0 -= 20000;
			o = round_trip(&w, w.host0 + n * hz / 10);
		}
		assert_int_equal(echo_sync_add(s, &o), n == 100);
	}
	for (uint64_t n = 101; n < 200; n++)
		assert_inside(s, &w, w.host0 + n * hz / 10);
	echo_sync_summarise(s, &summary);
	assert_int_equal(summary.epochs, 2);
	echo_sync_free(s);
}

/* QEMU's word when it stopped and resumed the VM tells on which side of the pause a stamp lies. */
static void a_pause_that_is_known_divides_the_stamps_around_it(void **state)
{
	const struct echo_options options = {.host_hz = hz, .stream_hz = hz};
	struct world w = {1ull << 40, 1ull << 30, 1, 7};
	struct echo_sync *s = echo_sync_new(&options);
	const uint64_t ms = hz / 1000, stop = w.host0 + 5050 * ms, resume = stop + 400 * ms;
	struct world later = w;
	struct echo_observation o;

	(void)state;
	later.guest0 -= 400 * ms;
	for (uint64_t n = 0; n <= 50; n++) {
		o = round_trip(&w, w.host0 + n * 100 * ms);
		assert_int_equal(echo_sync_add(s, &o), 0);
	}
	echo_sync_break_at(s, (struct host_tsc){stop + ms});
	echo_sync_break_at(s, (struct host_tsc){resume - ms});
	/* The first answer to a question from before the pause: loose by all of it. */
	o = (struct echo_observation){{stop - 2 * ms},
				      guest_at(&later, resume + 2 * ms),
				      guest_at(&later, resume + 2 * ms) + 9000,
				      {resume + 3 * ms}};
	assert_int_equal(echo_sync_add(s, &o), 1);
	for (uint64_t n = 1; n < 20; n++) {
		o = round_trip(&later, resume + n * 100 * ms);
		assert_int_equal(echo_sync_add(s, &o), 0);
	}
	for (uint64_t at = stop - 40 * ms; at < stop; at += ms / 3)
		assert_inside(s, &w, at);
	for (uint64_t at = resume + ms; at < resume + 90 * ms; at += ms / 3)
		assert_inside(s, &later, at);
	assert_true(err_at(s, &w, stop - 10 * ms) < ms);
	assert_true(err_at(s, &later, resume + 10 * ms) < ms);
	echo_sync_free(s);
}

/* Two crystals that wander by 3 ppm over an hour are one epoch, and their history is thinned. */
static void slow_drift_check(bool short_memory)
{
	const struct echo_options options = {
		.host_hz = hz, .stream_hz = hz, .short_memory = short_memory};
	const size_t before_bytes = heap_bytes();
	struct world w = {1ull << 40, 1ull << 30, 1, 5};
	struct echo_sync *s = echo_sync_new(&options);
	struct echo_sync_summary summary;

	for (uint64_t n = 0; n < 12000; n++) {
		struct echo_observation o;

		/* The rate changes by 0.005 ppm per second, up and down. */
		w.guest0 = guest_at(&w, w.host0 + hz);
		w.host0 += hz;
		w.ratio += (n / 600 % 2 ? -5e-9 : 5e-9);
		o = round_trip(&w, w.host0);
		assert_int_equal(echo_sync_add(s, &o), 0);
		assert_inside(s, &w, w.host0 + hz / 3);
	}
	echo_sync_summarise(s, &summary);
	assert_int_equal(summary.epochs, 1);
	assert_inside(s, &w, w.host0);
	assert_true(heap_bytes() - before_bytes < (short_memory ? SHORT_BYTES : LONG_BYTES));
	echo_sync_free(s);
}

static void slow_drift_is_no_epoch_and_memory_stays_bounded(void **state)
{
	(void)state;
	slow_drift_check(false);
	slow_drift_check(true);
}

/* Another process on this machine: real scheduling, and the truth is known (one TSC). */
static void real_round_trips_hold_the_truth(void **state)
{
	enum { TRIPS = 300, AHEAD = 123456789 };
	struct echo_sync_summary summary;
	struct echo_options options = {0};
	uint64_t stamps[2], now, err;
	struct host_tsc host;
	struct echo_sync *s;
	int fds[2];
	pid_t child;
	char byte = 0;

	(void)state;
	assert_int_equal(clock_tsc_hz(&options.host_hz), 0);
	options.stream_hz = options.host_hz;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(fds[0]);
		while (read(fds[1], &byte, 1) == 1) {
			stamps[0] = clock_tsc_read() + AHEAD;
			stamps[1] = clock_tsc_read() + AHEAD;
			if (write(fds[1], stamps, sizeof(stamps)) != sizeof(stamps))
				break;
		}
		_exit(0);
	}
	close(fds[1]);
	s = echo_sync_new(&options);
	for (int i = 0; i < TRIPS; i++) {
		struct echo_observation o = {.sent = {clock_tsc_read()}};

		assert_int_equal(write(fds[0], &byte, 1), 1);
		assert_int_equal(recv(fds[0], stamps, sizeof(stamps), MSG_WAITALL), sizeof(stamps));
		o.received.ticks = clock_tsc_read();
		o.guest_received = stamps[0];
		o.guest_sent = stamps[1];
		assert_int_equal(echo_sync_add(s, &o), 0);
		now = clock_tsc_read();
		assert_true(echo_sync_to_host(s, now + AHEAD, &host, &err));
		assert_true((uint64_t)llabs((int64_t)(host.ticks - now)) <= err);
	}
	close(fds[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	echo_sync_summarise(s, &summary);
	assert_int_equal(summary.epochs, 1);
	assert_true(summary.err_ticks <= summary.best_round_trip_ticks);
	echo_sync_free(s);
}

/* Stamps come from a guest: any may be anything. */
static void hostile_stamps_check(bool short_memory)
{
	const struct echo_options options = {
		.host_hz = hz, .stream_hz = hz, .short_memory = short_memory};
	const size_t before_bytes = heap_bytes();
	struct world w = {1ull << 40, 1ull << 30, 1, 11};
	struct echo_sync *s = echo_sync_new(&options);
	struct echo_sync_summary summary;
	uint64_t began = 0;

	for (uint64_t n = 0; n < 20000; n++) {
		struct echo_observation o = round_trip(&w, w.host0 + n * hz / 10);
		uint64_t anything = w.random * w.random, guest, err;
		struct host_tsc host;
		int r;

		if (n % 3) {
			o.guest_received = anything >> n % 60;
			o.guest_sent = o.guest_received + (n % 5 ? 100 : anything);
		}
		r = echo_sync_add(s, &o);
		assert_true(r == 0 || r == 1 || r == -EINVAL);
		began += r == 1;
		echo_sync_not_after(s, anything << n % 40, (struct host_tsc){anything});
		echo_sync_not_after(s, anything >> n % 50, o.received);
		echo_sync_to_host(s, anything, &host, &err);
		echo_sync_to_guest(s, (struct host_tsc){anything}, &guest, &err);
	}
	echo_sync_summarise(s, &summary);
	assert_int_equal(summary.epochs, began + 1);
	assert_true(began > 2000); /* more than are kept */
	/* And an honest guest is measured again. */
	for (uint64_t n = 20000; n < 20010; n++) {
		struct echo_observation o = round_trip(&w, w.host0 + n * hz / 10);

		assert_true(echo_sync_add(s, &o) >= 0);
	}
	assert_inside(s, &w, w.host0 + 20009 * (hz / 10));
	assert_true(heap_bytes() - before_bytes < (short_memory ? SHORT_BYTES : LONG_BYTES));
	echo_sync_free(s);
}

static void hostile_stamps_neither_crash_nor_grow(void **state)
{
	(void)state;
	hostile_stamps_check(false);
	hostile_stamps_check(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truth_is_inside_before_within_and_after),
		cmocka_unit_test(a_step_starts_an_epoch_and_both_maps_hold),
		cmocka_unit_test(a_reply_that_cannot_be_is_ignored_and_counted),
		cmocka_unit_test(an_arrival_tightens_and_a_contradiction_is_refused),
		cmocka_unit_test(an_announced_step_is_an_epoch),
		cmocka_unit_test(a_pause_that_is_known_divides_the_stamps_around_it),
		cmocka_unit_test(real_round_trips_hold_the_truth),
		cmocka_unit_test(hostile_stamps_neither_crash_nor_grow),
		cmocka_unit_test(slow_drift_is_no_epoch_and_memory_stays_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
