/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests the conversion of capture stamps with simulated NTP daemons: the rate of CLOCK_MONOTONIC is
 * stepped within 500 ppm, offsets are slewed, the tick parameter changes. Samples declare what
 * adjtimex(2) would return, and read their clocks at any place in brackets of any width. The true
 * TSC of every stamp must be within the bound, and the interval of CLOCK_MONOTONIC_RAW that is
 * converted from the TSC must contain the true time.
 *
 * `--full` or VCPUSCOPE_TEST_FULL=1: 10^6 histories; `--histories N`: N. A failure prints its
 * number.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/raw.h"
#include "clock/sample.h"

enum { SPANS = 12, STAMPS = 8, CHANGES_MAX = 40 };

/* From `at` (true ns since the beginning) on, MONOTONIC runs at 1 + ppb/1e9 of RAW. */
struct change {
	double at, ppb;
	double monotonic; /* at `at` */
	bool steady;
};

struct world {
	uint64_t random;
	double hz; /* of the TSC, true */
	uint64_t tsc0, monotonic0, raw0;
	int n_changes;
	struct change changes[CHANGES_MAX];
};

static uint64_t next(struct world *w)
{
	uint64_t z = (w->random += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static double uniform(struct world *w, double from, double to)
{
	return from + (double)(next(w) >> 11) / 9007199254740992.0 * (to - from);
}

static const struct change *change_at(const struct world *w, double t)
{
	int i = w->n_changes - 1;

	while (i && w->changes[i].at > t)
		i--;
	return &w->changes[i];
}

/* t: RAW nanoseconds since the beginning. */
static uint64_t monotonic_at(const struct world *w, double t)
{
	const struct change *c = change_at(w, t);

	return w->monotonic0 +
	       (uint64_t)(int64_t)floor(c->monotonic + (t - c->at) * (1 + c->ppb / 1e9));
}

static double tsc_at(const struct world *w, double t)
{
	return t * w->hz / 1e9;
}

static void change_add(struct world *w, double at, double ppb, bool steady)
{
	const struct change *last = &w->changes[w->n_changes - 1];
	double reached = last->monotonic + (at - last->at) * (1 + last->ppb / 1e9);

	w->changes[w->n_changes++] = (struct change){at, ppb, reached, steady};
}

/* One excursion of the rate per span at most: what the bound assumes (docs/clocks.md). */
static void changes_draw(struct world *w, const double *times)
{
	int kind = (int)(next(w) % 4);
	double base = uniform(w, -400e3, 400e3), offset_ns = uniform(w, -5e6, 5e6);

	w->n_changes = 1;
	w->changes[0] = (struct change){-1e9, kind == 0 ? 0 : base,
					-1e9 * (1 + (kind ? base : 0) / 1e9), true};
	w->changes[0].monotonic = -1e9;
	for (int i = 1; i < SPANS && kind; i++) {
		double at = uniform(w, times[i - 1], times[i]);
		double to = uniform(w, -500e3, 500e3);

		if (next(w) % 3)
			continue;
		if (kind == 1) { /* the frequency is stepped, maybe to its limits */
			change_add(w, at, next(w) % 2 ? to : to > 0 ? 500e3 : -500e3, true);
		} else if (kind == 2) { /* the PLL slews an offset out, less each time */
			change_add(w, at, base + offset_ns / 4, false);
			offset_ns *= 0.75;
		} else { /* the frequency is stepped for a moment and back */
			const struct change *before = change_at(w, at);
			double back = uniform(w, at, times[i]);

			change_add(w, at, before->ppb + to / 2, before->steady);
			change_add(w, back, w->changes[w->n_changes - 2].ppb, true);
		}
	}
}

/* Reads three clocks in a bracket; the reads are in order and anywhere within. */
static struct clock_sample sample_take(struct world *w, double t, double width_ns)
{
	double a = uniform(w, 0, width_ns), c = uniform(w, a, width_ns);
	const struct change *now = change_at(w, t + width_ns);
	uint64_t begin = w->tsc0 + (uint64_t)(int64_t)floor(tsc_at(w, t));
	uint64_t end = w->tsc0 + (uint64_t)(int64_t)floor(tsc_at(w, t + width_ns));

	return (struct clock_sample){
		.tsc = begin + (end - begin) / 2,
		.tsc_width = end - begin,
		.monotonic_ns = monotonic_at(w, t + a),
		.raw_ns = w->raw0 + (uint64_t)floor(t + c),
		.realtime_ns = 1700000000000000000u,
		.steady = now->steady,
		.rate_ppb = (int32_t)now->ppb,
		.slew_ppb = (uint32_t)fabs(now->ppb) + 1,
	};
}

/* The chord of the span against the exact conversion: the same times, and of all stamps the deepest
 * has the greatest bound. */
static bool chord_agrees(const struct capture_clock *capture, const uint64_t *stamps)
{
	uint64_t depth, deepest_ns = 0, deepest_err = 0, err, most_err = 0;
	struct clock_chord chord;

	if (!clock_chord_init(&chord, capture))
		return capture->jump_ticks > 0;
	for (int k = 0; k < STAMPS; k++) {
		const uint64_t exact = capture_clock_to_tsc(capture, stamps[k], &err);

		if (!clock_chord_has(&chord, stamps[k])) /* a clock of the last bracket */
			continue;
		if (clock_chord_tsc(&chord, stamps[k]) != exact)
			return false;
		most_err = err > most_err ? err : most_err;
		depth = clock_chord_depth(&chord, stamps[k]);
		if (depth >= deepest_ns) {
			deepest_ns = depth;
			deepest_err = err;
		}
	}
	return deepest_err == most_err;
}

static bool history_run(uint64_t number)
{
	struct world w = {.random = number * 0x2545f4914f6cdd1du + 3};
	double times[SPANS + 1], t = 0, span_ns = exp(uniform(&w, log(1e6), log(1e9)));
	double width_ns = exp(uniform(&w, log(30), log(3000)));
	struct capture_clock capture;
	struct raw_clock *raw;
	bool ok = false;

	w.hz = floor(uniform(&w, 1e9, 4e9));
	w.tsc0 = next(&w) >> 1;
	w.monotonic0 = (next(&w) >> 12) + 10000000000u;
	w.raw0 = (next(&w) >> 12) + 10000000000u;
	raw = raw_clock_new((uint64_t)(w.hz * (1 + uniform(&w, -900e-6, 900e-6))), false);
	for (int i = 0; i <= SPANS; i++) {
		times[i] = t;
		t += span_ns * uniform(&w, 0.2, 1) + 4 * width_ns;
	}
	changes_draw(&w, times);
	capture_clock_init(&capture);
	for (int i = 0; i <= SPANS; i++) {
		struct clock_sample s = sample_take(&w, times[i], uniform(&w, 0.3, 1) * width_ns);

		capture_clock_push(&capture, &s);
		if (raw_clock_push(raw, &s)) {
			fprintf(stderr, "sample %d refused\n", i);
			goto out;
		}
		uint64_t stamps[STAMPS];

		for (int k = 0; k < STAMPS && i; k++) {
			double at = uniform(&w, times[i - 1], times[i]);
			uint64_t err, tsc,
				truth = w.tsc0 + (uint64_t)(int64_t)floor(tsc_at(&w, at));
			struct host_time ns;

			stamps[k] = monotonic_at(&w, at);
			tsc = capture_clock_to_tsc(&capture, stamps[k], &err);
			if ((uint64_t)llabs((int64_t)(tsc - truth)) > err) {
				fprintf(stderr,
					"stamp in span %d: off by %" PRId64 ", bound %" PRIu64 "\n",
					i, (int64_t)(tsc - truth), err);
				goto out;
			}
			ns = raw_clock_from_tsc(raw, (struct host_tsc){truth}, 0);
			if ((uint64_t)llabs(ns.t.ns - (int64_t)(w.raw0 + (uint64_t)floor(at))) >
			    ns.err_ns) {
				fprintf(stderr,
					"RAW in span %d: off by %" PRId64 ", bound %" PRIu64 "\n",
					i, ns.t.ns - (int64_t)(w.raw0 + (uint64_t)floor(at)),
					ns.err_ns);
				goto out;
			}
		}
		if (i && !chord_agrees(&capture, stamps)) {
			fprintf(stderr, "the chord of span %d disagrees\n", i);
			goto out;
		}
	}
	ok = true;
out:
	raw_clock_free(raw);
	if (!ok)
		fprintf(stderr, "history %" PRIu64 "\n", number);
	return ok;
}

int main(int argc, char **argv)
{
	const char *full = getenv("VCPUSCOPE_TEST_FULL");
	uint64_t wanted = 20000;

	if ((argc == 2 && !strcmp(argv[1], "--full")) || (full && !strcmp(full, "1")))
		wanted = 1000000;
	if (argc == 3 && !strcmp(argv[1], "--histories"))
		wanted = strtoull(argv[2], NULL, 10);
	for (uint64_t i = 0; i < wanted; i++) {
		if (!history_run(i))
			return 1;
	}
	printf("%" PRIu64 " histories of %d samples: the truth always inside\n", wanted, SPANS + 1);
	return 0;
}
