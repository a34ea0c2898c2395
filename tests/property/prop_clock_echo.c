/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests echo sync with simulated histories. The guest's clock is the host's TSC, a scaled TSC, a
 * kvmclock or another oscillator with changing rate. Delays are asymmetric and vary, with heavy
 * tails. Round trips are lost. The clock stops and steps, also while a message is in flight. Other
 * messages arrive. The true host time of every event must be inside the interval, and every stop
 * and step must be found. The median of the intervals, divided by the smallest round trip, is
 * printed and bounded.
 *
 * Steps are larger than round trips can hide (echo.h explains why); all other values are
 * unrestricted. `--full` or VCPUSCOPE_TEST_FULL=1: 10^6 histories; `--histories N [FIRST]`: N. A
 * failure prints its history.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/echo.h"

enum { TRIPS_MAX = 80, JUMPS_MAX = 3, PIECES_MAX = 64, EVENTS = 40, HISTOGRAM = 2000 };

#define MEDIAN_LIMIT 0.6

/* ---- the truth ---- */

/* guest(h) = guest0 + rate*(h-host0) + bend*(h-host0)^2/2, for host0 <= h, all in ticks. */
struct piece {
	int64_t host0;
	uint64_t guest0;
	long double rate, bend;
	int epoch;
};

/* The guest's clock stands still from `at` for `stopped`, then gains `ahead`. */
struct jump {
	int64_t at, stopped, ahead;
};

struct world {
	uint64_t random;
	double hz;
	uint64_t origin; /* host TSC at tick 0 of this simulation */
	int n_pieces;
	struct piece pieces[PIECES_MAX];
	int n_jumps;
	struct jump jumps[JUMPS_MAX];
	double up_min, down_min, jitter, tail_chance, tail, delay_max;
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

static double log_uniform(struct world *w, double from, double to)
{
	return exp(uniform(w, log(from), log(to)));
}

static const struct piece *piece_at(const struct world *w, int64_t host)
{
	int i = w->n_pieces - 1;

	while (i && w->pieces[i].host0 > host)
		i--;
	return &w->pieces[i];
}

/* The guest's reading, rounded down as clocks are. */
static uint64_t guest_at(const struct world *w, int64_t host)
{
	const struct piece *p = piece_at(w, host);
	long double u = (long double)(host - p->host0);

	return p->guest0 + (uint64_t)(int64_t)floorl(p->rate * u + p->bend * u * u / 2);
}

/* A message that would take until `host` waits while the guest is stopped. */
static int64_t after_stops(const struct world *w, int64_t from, int64_t host)
{
	for (int i = 0; i < w->n_jumps; i++) {
		const struct jump *j = &w->jumps[i];

		if (host >= j->at && from < j->at + j->stopped)
			host += j->at + j->stopped - (from > j->at ? from : j->at);
	}
	return host;
}

static bool stopped_at(const struct world *w, int64_t host)
{
	for (int i = 0; i < w->n_jumps; i++) {
		if (host >= w->jumps[i].at && host < w->jumps[i].at + w->jumps[i].stopped)
			return true;
	}
	return false;
}

static double delay(struct world *w, double least)
{
	double extra = -log(uniform(w, 1e-9, 1)) * w->jitter * least;

	if (uniform(w, 0, 1) < w->tail_chance)
		extra += uniform(w, 0, w->tail);
	return fmin(least + extra, fmax(least, w->delay_max));
}

struct trip {
	int64_t sent, received, guest_from, guest_until; /* host time of all four */
	struct echo_observation o;
};

static struct trip trip_take(struct world *w, int64_t sent)
{
	struct trip t = {.sent = sent};

	t.guest_from = after_stops(w, sent, sent + (int64_t)delay(w, w->up_min));
	t.guest_until = after_stops(w, t.guest_from,
				    t.guest_from + (int64_t)(uniform(w, 1e-6, 5e-4) * w->hz));
	t.received = t.guest_until + (int64_t)delay(w, w->down_min);
	t.o = (struct echo_observation){{w->origin + (uint64_t)sent},
					guest_at(w, t.guest_from),
					guest_at(w, t.guest_until),
					{w->origin + (uint64_t)t.received}};
	return t;
}

/* ---- one history ---- */

struct score {
	uint64_t histories, events, online, facts, jumps, refused;
	uint64_t histogram[HISTOGRAM + 1]; /* of err / smallest round trip, in 1/1000 */
	uint64_t binned;
};

static bool host_inside(const struct world *w, const struct echo_sync *s, int64_t host,
			const char *where, uint64_t *err)
{
	struct host_tsc found;
	uint64_t truth = w->origin + (uint64_t)host, guest = guest_at(w, host), back, back_err;

	if (!echo_sync_to_host(s, guest, &found, err)) {
		fprintf(stderr, "%s: no answer\n", where);
		return false;
	}
	if ((uint64_t)llabs((int64_t)(found.ticks - truth)) > *err) {
		fprintf(stderr, "%s, at %.6f s: host off by %" PRId64 " ticks, bound %" PRIu64 "\n",
			where, (double)host / w->hz, (int64_t)(found.ticks - truth), *err);
		return false;
	}
	if (!echo_sync_to_guest(s, (struct host_tsc){truth}, &back, &back_err) ||
	    (uint64_t)llabs((int64_t)(back - guest)) > back_err) {
		fprintf(stderr,
			"%s, at %.6f s: guest off by %" PRId64 " ticks, bound %" PRIu64 "\n", where,
			(double)host / w->hz, (int64_t)(back - guest), back_err);
		return false;
	}
	return true;
}

/* Which clock the guest has, and what the collector is told of it. */
static struct echo_options clock_draw(struct world *w, long double *rate, double *wander_ppm)
{
	struct echo_options options = {.host_hz = (uint64_t)w->hz};

	*wander_ppm = 0;
	switch (next(w) % 5) {
	case 0: /* the same TSC */
		options.stream_hz = options.host_hz;
		*rate = 1;
		break;
	case 1: /* the same, but the guest measured its rate badly */
		options.stream_hz = (uint64_t)(w->hz * uniform(w, 1 - 850e-6, 1 + 850e-6));
		*rate = 1;
		break;
	case 2: /* kvmclock */
		options.stream_hz = 1000000000;
		*rate = 1e9L / w->hz * (1 + uniform(w, -190e-6, 190e-6));
		break;
	case 3: /* scaled */
		options.stream_hz = (uint64_t)uniform(w, 1e9, 4e9);
		*rate = (long double)options.stream_hz / w->hz * (1 + uniform(w, -190e-6, 190e-6));
		break;
	default: /* another crystal */
		options.stream_hz = options.host_hz;
		*rate = 1 + uniform(w, -190e-6, 190e-6);
		*wander_ppm = uniform(w, 0, 0.0099);
		break;
	}
	return options;
}

/* The guest's clock over [begin, end) with its jumps, in pieces of changing bend. */
static void pieces_draw(struct world *w, int64_t begin, int64_t end, long double rate,
			double wander_ppm)
{
	uint64_t guest = (next(w) >> 4) | 1ull << 50;
	int64_t at = begin, step = (end - begin) / (PIECES_MAX - 2 - 2 * JUMPS_MAX) + 1;
	double drift = wander_ppm, turn_chance = uniform(w, 0, 0.5);
	int jump = 0;

	w->n_pieces = 0;
	while (at < end) {
		int64_t until = at + step, resume;
		long double u, bend;
		bool jumps = jump < w->n_jumps && w->jumps[jump].at < until;

		/* Drifting one way for long is the worst; so is turning round now and then. */
		if (uniform(w, 0, 1) < turn_chance)
			drift = uniform(w, 0, 1) < 0.5 ? -wander_ppm : wander_ppm;
		bend = rate * drift * 1e-6 / w->hz;
		if (jumps)
			until = w->jumps[jump].at;
		w->pieces[w->n_pieces++] = (struct piece){at, guest, rate, bend, jump};
		u = (long double)(until - at);
		guest += (uint64_t)(int64_t)floorl(rate * u + bend * u * u / 2);
		rate += bend * u;
		resume = until;
		if (jumps) {
			/* While it stands still, nobody reads it. */
			resume = until + w->jumps[jump].stopped;
			guest += (uint64_t)w->jumps[jump].ahead;
			jump++;
		}
		at = resume;
	}
}

/* Jumps lie anywhere between two round trips or within one, but for the ends of the history. */
static void jumps_draw(struct world *w, int64_t *sent, int n, double gap_max, bool *set_back)
{
	int wanted = n >= 8 ? (int)(next(w) % (JUMPS_MAX + 1)) : 0;
	int last = 2;

	*set_back = false;
	w->n_jumps = 0;
	for (int i = 0; i < wanted; i++) {
		int k = last + 1 + (int)(next(w) % 20);
		double size = log_uniform(w, 0.16 * w->hz + 2.5e-3 * gap_max, 1000 * w->hz);
		struct jump *j = &w->jumps[w->n_jumps];

		if (k > n - 4)
			break;
		*j = (struct jump){.at = sent[k] +
					 (int64_t)uniform(w, 0, (double)(sent[k + 1] - sent[k]))};
		switch (next(w) % 5) {
		case 0:
		case 1:
		case 2:
			j->stopped = (int64_t)size;
			break;
		case 3:
			j->ahead = (int64_t)size;
			break;
		default:
			j->ahead = -(int64_t)size;
			*set_back = true;
			break;
		}
		w->n_jumps++;
		/* Time that the stop takes moves all later round trips. */
		for (int m = k + 1; m < n; m++)
			sent[m] += j->stopped;
		last = k + 2;
	}
}

static int true_epoch(const struct world *w, int64_t host)
{
	return piece_at(w, host)->epoch;
}

/* An arrival: the host sees a message after the guest stamped it. */
static bool fact_add(struct world *w, struct echo_sync *s, int64_t from, int64_t until,
		     struct score *score)
{
	int64_t host = (int64_t)uniform(w, (double)from, (double)until);
	int64_t late = (int64_t)log_uniform(w, 1e-6 * w->hz, 1e-3 * w->hz);
	int r;

	if (stopped_at(w, host))
		return true;
	r = echo_sync_not_after(s, guest_at(w, host),
				(struct host_tsc){w->origin + (uint64_t)(host + late)});
	score->facts++;
	return r == 0 || w->n_jumps; /* after an unseen jump it may be refused */
}

static bool history_run(uint64_t number, struct score *score)
{
	struct world w = {.random = number * 0x2545f4914f6cdd1du + 1};
	int n = 10 + (int)(next(&w) % (TRIPS_MAX - 10)), kept = 0;
	int64_t sent[TRIPS_MAX], end, begin, first, last;
	double interval, loss = next(&w) % 2 ? uniform(&w, 0, 0.6) : 0, gap_max = 0, wander_ppm;
	bool ok = false, set_back, facts = next(&w) % 4 == 0;
	struct echo_sync_summary summary;
	struct echo_options options;
	struct trip trips[TRIPS_MAX];
	struct echo_sync *s;
	long double rate;
	uint64_t err;
	int64_t free_at = 0, last_epoch_seen = 0;

	w.hz = floor(uniform(&w, 1e9, 4e9));
	w.origin = next(&w) >> (1 + next(&w) % 12) | 1ull << 50;
	w.up_min = log_uniform(&w, 5e-6, 2e-3) * w.hz;
	w.down_min = log_uniform(&w, 5e-6, 2e-3) * w.hz;
	/* Some channels are so quick that single ticks decide. */
	if (next(&w) % 8 == 0)
		w.up_min = w.down_min = log_uniform(&w, 1e-10, 1e-6) * w.hz;
	w.jitter = log_uniform(&w, 0.02, 2);
	w.tail_chance = next(&w) % 2 ? uniform(&w, 0, 0.3) : 0;
	w.tail = log_uniform(&w, 1e-4, 0.02) * w.hz;
	interval = log_uniform(&w, 0.005, 2) * w.hz;
	/* A round trip ends before the one after the next would begin. */
	w.delay_max = fmin(0.4 * interval, 0.025 * w.hz);
	options = clock_draw(&w, &rate, &wander_ppm);
	if (facts)
		options.slope_ppm = 300;

	/* When round trips begin; some are lost. */
	first = (int64_t)(3 * w.hz);
	for (int i = 0; i < n; i++) {
		int64_t at = first + (int64_t)(interval * (i + uniform(&w, 0, 0.9)));

		if (kept && uniform(&w, 0, 1) < loss)
			continue;
		if (kept)
			gap_max = fmax(gap_max, (double)(at - sent[kept - 1]));
		sent[kept++] = at;
	}
	n = kept;
	jumps_draw(&w, sent, n, gap_max, &set_back);
	last = sent[n - 1];
	begin = 0;
	end = last + (int64_t)(5 * w.hz);
	pieces_draw(&w, begin, end, rate, wander_ppm);

	options.short_memory = uniform(&w, 0, 1) < 0.5;
	s = echo_sync_new(&options);
	for (int i = 0; i < n; i++) {
		struct trip *t = &trips[i];
		int r;

		/* One at a time, and sent by a host that does not stop. */
		*t = trip_take(&w, sent[i] > free_at ? sent[i] : free_at);
		free_at = t->received + 1;
		r = echo_sync_add(s, &t->o);
		if (r == -22 && w.n_jumps) {
			score->refused++; /* a step between its two guest stamps */
			continue;
		}
		if (r < 0) {
			fprintf(stderr, "round trip %d: error %d\n", i, r);
			goto out;
		}
		echo_sync_summarise(s, &summary);
		if (r == 1)
			last_epoch_seen = t->received;
		if ((int)summary.epochs == true_epoch(&w, t->guest_until) + 1) {
			score->online++;
			if (!host_inside(&w, s, t->guest_until, "online", &err))
				goto out;
		}
		if (facts && i && !fact_add(&w, s, trips[i - 1].received, t->received, score)) {
			fprintf(stderr, "a true fact was refused\n");
			goto out;
		}
	}
	echo_sync_summarise(s, &summary);
	score->jumps += (uint64_t)w.n_jumps;
	if ((int)summary.epochs != w.n_jumps + 1) {
		fprintf(stderr, "%zu epochs, %d jumps\n", summary.epochs, w.n_jumps);
		goto out;
	}
	begin = first - (int64_t)(2 * w.hz);
	end = trips[n - 1].received + (int64_t)(2 * w.hz);
	for (int i = 0; i < EVENTS; i++) {
		int64_t host = (int64_t)uniform(&w, (double)begin, (double)end);

		if (stopped_at(&w, host))
			continue;
		/* Where a clock was set back, only what round trips enclose is promised. */
		if (set_back && host < last_epoch_seen)
			continue;
		if (!host_inside(&w, s, host, "afterwards", &err))
			goto out;
		score->events++;
		/* What round trips alone are worth. */
		if (!facts && host > trips[0].received && host < last) {
			uint64_t bin = err * 1000 / (summary.best_round_trip_ticks + 1);

			score->histogram[bin < HISTOGRAM ? bin : HISTOGRAM]++;
			score->binned++;
		}
	}
	ok = true;
out:
	echo_sync_free(s);
	if (!ok)
		fprintf(stderr, "history %" PRIu64 " (%d round trips, %d jumps, every %.4f s)\n",
			number, n, w.n_jumps, interval / w.hz);
	score->histories++;
	return ok;
}

static double quantile(const struct score *score, double q)
{
	uint64_t sum = 0;

	for (int bin = 0; bin <= HISTOGRAM; bin++) {
		sum += score->histogram[bin];
		if ((double)sum >= q * (double)score->binned)
			return (bin + 1) / 1000.0;
	}
	return INFINITY;
}

int main(int argc, char **argv)
{
	const char *full = getenv("VCPUSCOPE_TEST_FULL");
	uint64_t wanted = 3000, first = 0;
	static struct score score;

	if ((argc == 2 && !strcmp(argv[1], "--full")) || (full && !strcmp(full, "1")))
		wanted = 1000000;
	if (argc >= 3 && !strcmp(argv[1], "--histories"))
		wanted = strtoull(argv[2], NULL, 10);
	if (argc >= 4)
		first = strtoull(argv[3], NULL, 10);
	for (uint64_t i = first; i < first + wanted; i++) {
		if (!history_run(i, &score))
			return 1;
	}
	printf("%" PRIu64 " histories, %" PRIu64 " events afterwards and %" PRIu64
	       " online, %" PRIu64 " facts, %" PRIu64 " jumps: the truth always inside\n",
	       score.histories, score.events, score.online, score.facts, score.jumps);
	printf("bound / smallest round trip: p10 %.3f, median %.3f, p90 %.3f\n",
	       quantile(&score, 0.1), quantile(&score, 0.5), quantile(&score, 0.9));
	if (quantile(&score, 0.5) > MEDIAN_LIMIT) {
		fprintf(stderr, "the median is above %.1f\n", MEDIAN_LIMIT);
		return 1;
	}
	return 0;
}
