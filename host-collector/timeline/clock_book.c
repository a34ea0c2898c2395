/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/clock_book.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock/raw.h"
#include "host-collector/timeline/printk_clock.h"
#include "host-collector/timeline/standstill.h"
#include "proto/recording.h"

enum {
	EARLY_MAX = 256, /* facts kept until the rate is known; the newest win */
	SPANS_PER_SECOND = 8,
};
static const uint64_t ns_per_s = 1000000000;

struct early_echoes {
	struct echo_observation at[EARLY_MAX];
	uint64_t n; /* ever */
};

/* Where a source without an echo map stands: its message left no later than it arrived. */
struct arrival_line {
	bool known;
	uint64_t first_stream, last_stream;
	uint64_t first_tsc, last_tsc;
	double offset; /* host ticks at stream time first_stream, at most */
};

struct guest {
	uint32_t source;
	bool hello;
	enum stream_clock clock;
	uint64_t hz;
	struct vm_clock *hypervisor; /* NULL: it said nothing */
	struct echo_sync *echo;      /* once hz and the host's rate are known */
	struct early_echoes *early;
	struct arrival_line arrival;
	bool by_arrival; /* settled without an echo */
	struct printk_clock printk;
	uint64_t observations;
	struct standstills standstills;
};

struct clock_book {
	uint64_t host_hz;
	struct raw_clock *raw;
	uint64_t n_samples; /* in raw */
	struct message_clock_sample first_sample, last_sample;
	struct clock_sample *early; /* until host_hz is known */
	size_t n_early;
	struct guest *guests;
	size_t n_guests;
	bool imported;
};

struct clock_book *clock_book_new(void)
{
	return calloc(1, sizeof(struct clock_book));
}

void clock_book_free(struct clock_book *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n_guests; i++) {
		vm_clock_free(b->guests[i].hypervisor);
		echo_sync_free(b->guests[i].echo);
		free(b->guests[i].early);
		printk_clock_clear(&b->guests[i].printk);
	}
	raw_clock_free(b->raw);
	free(b->early);
	free(b->guests);
	free(b);
}

static struct guest *guest_find(const struct clock_book *b, uint32_t source)
{
	for (size_t i = 0; i < b->n_guests; i++) {
		if (b->guests[i].source == source)
			return &b->guests[i];
	}
	return NULL;
}

static struct guest *guest_get(struct clock_book *b, uint32_t source)
{
	struct guest *g = guest_find(b, source), *grown;

	if (g)
		return g;
	grown = realloc(b->guests, (b->n_guests + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	b->guests = grown;
	g = &grown[b->n_guests++];
	*g = (struct guest){.source = source};
	return g;
}

/* Begins the guest's echo map when both rates are known, with what arrived before. */
static int guest_start_echo(struct clock_book *b, struct guest *g)
{
	struct echo_options options = {.host_hz = b->host_hz, .stream_hz = g->hz};
	uint64_t first;

	if (g->echo || !g->hz || !b->host_hz)
		return 0;
	g->echo = echo_sync_new(&options);
	if (!g->echo)
		return -ENOMEM;
	if (!g->early)
		return 0;
	first = g->early->n > EARLY_MAX ? g->early->n - EARLY_MAX : 0;
	for (uint64_t i = first; i < g->early->n; i++) {
		int err = echo_sync_add(g->echo, &g->early->at[i % EARLY_MAX]);

		if (err == -ENOMEM)
			return err;
		g->observations += err >= 0;
	}
	free(g->early);
	g->early = NULL;
	return 0;
}

/* A sample that contradicts itself says nothing. */
static int host_push(struct clock_book *b, const struct clock_sample *sample)
{
	int err = raw_clock_push(b->raw, sample);

	b->n_samples += !err;
	return err == -ENOMEM ? err : 0;
}

static int host_start(struct clock_book *b, uint64_t hz)
{
	int err = 0;

	b->host_hz = hz;
	b->raw = raw_clock_new(hz);
	if (!b->raw)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_early && !err; i++)
		err = host_push(b, &b->early[i]);
	free(b->early);
	b->early = NULL;
	b->n_early = 0;
	for (size_t i = 0; i < b->n_guests && !err; i++)
		err = guest_start_echo(b, &b->guests[i]);
	return err;
}

int clock_book_hello(struct clock_book *b, uint32_t source, const struct message_hello *hello)
{
	struct guest *g;
	int err;

	if (source == VS_SOURCE_HOST)
		return b->raw || !hello->clock_hz ? 0 : host_start(b, hello->clock_hz);
	g = guest_get(b, source);
	if (!g)
		return -ENOMEM;
	/* Another clock or rate (another kernel booted): earlier echoes say nothing about it. */
	if (g->hello && (g->clock != hello->clock || g->hz != hello->clock_hz)) {
		echo_sync_free(g->echo);
		g->echo = NULL;
		printk_clock_clear(&g->printk);
	}
	g->hello = true;
	g->clock = hello->clock;
	g->hz = hello->clock_hz;
	err = guest_start_echo(b, g);
	return err ? err : clock_book_dmesg(b, source, &hello->dmesg);
}

int clock_book_host_sample(struct clock_book *b, const struct message_clock_sample *m)
{
	const struct clock_sample sample = {
		.tsc = m->tsc,
		.tsc_width = m->tsc_width,
		.monotonic_ns = m->monotonic_ns,
		.raw_ns = m->raw_ns,
		.realtime_ns = m->realtime_ns,
	};
	bool first = !b->first_sample.tsc;
	int err = 0;

	/* Clocks that run backwards are no clocks; an empty sample is none. */
	if (!m->tsc ||
	    (!first && (m->tsc <= b->last_sample.tsc || m->raw_ns <= b->last_sample.raw_ns)))
		return 0;
	if (b->raw) {
		err = host_push(b, &sample);
	} else if (b->n_early < EARLY_MAX) {
		if (!b->early)
			b->early = malloc(EARLY_MAX * sizeof(*b->early));
		if (!b->early)
			return -ENOMEM;
		b->early[b->n_early++] = sample;
	}
	if (first)
		b->first_sample = *m;
	b->last_sample = *m;
	return err;
}

int clock_book_echo(struct clock_book *b, const struct message_echo_observation *m)
{
	const struct echo_observation o = {
		.sent = {m->host_sent},
		.guest_received = m->guest_received,
		.guest_sent = m->guest_sent,
		.received = {m->host_received},
	};
	struct guest *g = guest_get(b, m->vm);
	int err;

	if (!g)
		return -ENOMEM;
	if (g->hypervisor)
		vm_clock_observe(g->hypervisor, &o);
	if (!g->echo) {
		if (!g->early)
			g->early = calloc(1, sizeof(*g->early));
		if (!g->early)
			return -ENOMEM;
		g->early->at[g->early->n++ % EARLY_MAX] = o;
		return 0;
	}
	err = echo_sync_add(g->echo, &o);
	if (err == -ENOMEM)
		return err;
	g->observations += err >= 0;
	return 0;
}

/* NULL if out of memory. */
static struct vm_clock *hypervisor_get(struct clock_book *b, uint32_t source)
{
	struct guest *g = guest_get(b, source);

	if (g && !g->hypervisor)
		g->hypervisor = vm_clock_new();
	return g ? g->hypervisor : NULL;
}

int clock_book_vm_clock(struct clock_book *b, const struct message_vm_clock *m)
{
	struct vm_clock *c = hypervisor_get(b, m->vm);

	return c ? vm_clock_learn(c, m) : -ENOMEM;
}

int clock_book_guest_page(struct clock_book *b, uint32_t source,
			  const struct message_vm_clock_pvclock *m)
{
	const struct pvclock page = {m->tsc_timestamp, m->system_time, m->mul, m->shift, m->flags};
	struct vm_clock *c = hypervisor_get(b, source);

	if (!c)
		return -ENOMEM;
	vm_clock_guest_page(c, &page);
	return 0;
}

void clock_book_imported(struct clock_book *b)
{
	b->imported = true;
}

void clock_book_break(struct clock_book *b, uint32_t source, struct host_tsc at, bool stops)
{
	struct guest *g = guest_find(b, source);

	if (g)
		standstills_note(&g->standstills, at, stops);
	if (g && g->echo)
		echo_sync_break_at(g->echo, at);
}

int clock_book_dmesg(struct clock_book *b, uint32_t source, const struct message_dmesg_point *point)
{
	struct guest *g = point->known ? guest_get(b, source) : NULL;

	if (!point->known)
		return 0;
	if (!g)
		return -ENOMEM;
	return printk_clock_add(&g->printk, point);
}

/* Host ticks per tick of the guest's stream clock, nominal. */
static double guest_ratio(const struct clock_book *b, const struct guest *g)
{
	return g->hz && b->host_hz ? (double)b->host_hz / (double)g->hz : 1;
}

int clock_book_arrival(struct clock_book *b, uint32_t source, uint64_t stream_time,
		       uint64_t arrival_tsc)
{
	struct guest *g = guest_get(b, source);
	struct arrival_line *a;
	double offset;

	if (!g)
		return -ENOMEM;
	if (g->echo && g->observations) {
		int err = echo_sync_not_after(g->echo, stream_time, (struct host_tsc){arrival_tsc});

		if (err == -ENOMEM)
			return err;
	}
	a = &g->arrival;
	if (!a->known) {
		*a = (struct arrival_line){.known = true,
					   .first_stream = stream_time,
					   .first_tsc = arrival_tsc,
					   .offset = (double)arrival_tsc};
	}
	a->last_stream = stream_time;
	a->last_tsc = arrival_tsc;
	/* The earliest arrival, for its stamp, is the one that waited least on its way. */
	offset = (double)arrival_tsc -
		 (double)(int64_t)(stream_time - a->first_stream) * guest_ratio(b, g);
	if (offset < a->offset)
		a->offset = offset;
	return 0;
}

/* A rate from two readings, 0 if they are too close together to tell. */
static uint64_t rate_estimate(uint64_t ticks, uint64_t ns)
{
	return ns < ns_per_s / 10 ? 0 : (uint64_t)((double)ticks * 1e9 / (double)ns);
}

static uint64_t guest_rate_estimate(const struct clock_book *b, const struct guest *g)
{
	const struct echo_observation *first, *last;
	uint64_t host_ticks;

	if (!g->early || g->early->n < 2)
		return 0;
	last = &g->early->at[(g->early->n - 1) % EARLY_MAX];
	first = &g->early->at[(g->early->n > EARLY_MAX ? g->early->n : 0) % EARLY_MAX];
	host_ticks = last->received.ticks - first->received.ticks;
	/* A second: what a round trip blurs is then below the slope that the map allows. */
	if (!b->host_hz || host_ticks < b->host_hz)
		return 0;
	return (uint64_t)((double)(last->guest_sent - first->guest_sent) * (double)b->host_hz /
			  (double)host_ticks);
}

/* No sample of the host's clock at all: its first known TSC value becomes one hour, so that what
 * was before has a time too. */
static int host_anchor(struct clock_book *b)
{
	struct clock_sample zero = {.raw_ns = 3600 * ns_per_s};

	for (size_t i = 0; i < b->n_guests; i++) {
		const struct guest *g = &b->guests[i];

		if (g->arrival.known && (!zero.tsc || g->arrival.first_tsc < zero.tsc))
			zero.tsc = g->arrival.first_tsc;
	}
	return zero.tsc ? host_push(b, &zero) : 0;
}

int clock_book_settle(struct clock_book *b)
{
	int err = 0;

	if (!b->raw) {
		uint64_t hz = rate_estimate(b->last_sample.tsc - b->first_sample.tsc,
					    b->last_sample.raw_ns - b->first_sample.raw_ns);

		/* Last resort: a guest's TSC usually runs at the host's rate. */
		for (size_t i = 0; i < b->n_guests && !hz; i++) {
			if (b->guests[i].clock == STREAM_CLOCK_GUEST_TSC)
				hz = b->guests[i].hz;
		}
		if (hz)
			err = host_start(b, hz);
	}
	if (b->raw && !b->n_samples && !err)
		err = host_anchor(b);
	for (size_t i = 0; i < b->n_guests && !err; i++) {
		struct guest *g = &b->guests[i];

		if (!g->hz)
			g->hz = guest_rate_estimate(b, g);
		err = guest_start_echo(b, g);
		g->by_arrival = g->arrival.known && b->raw;
	}
	return err;
}

/* The hypervisor's parameters speak of the guest's TSC. */
static bool exact_is_known(const struct guest *g)
{
	return g->hypervisor && g->clock == STREAM_CLOCK_GUEST_TSC;
}

static bool is_stated(const struct clock_book *b, const struct guest *g)
{
	return b->imported && g->hello && g->clock == STREAM_CLOCK_HOST_TSC;
}

/* Host TSC at the guest's stream time. */
static bool guest_to_tsc(const struct clock_book *b, const struct guest *g, uint64_t stream_time,
			 struct host_tsc *tsc, uint64_t *err_ticks)
{
	const struct arrival_line *a = &g->arrival;
	uint64_t span;
	double at;

	if (is_stated(b, g)) {
		tsc->ticks = stream_time;
		*err_ticks = 0;
		return true;
	}
	if (exact_is_known(g) &&
	    vm_clock_to_host(g->hypervisor, (struct guest_tsc){stream_time}, tsc, &span)) {
		tsc->ticks += span / 2;
		*err_ticks = span - span / 2;
		return true;
	}
	if (g->echo && g->observations && echo_sync_to_host(g->echo, stream_time, tsc, err_ticks))
		return true;
	if (!g->by_arrival)
		return false;
	at = a->offset + (double)(int64_t)(stream_time - a->first_stream) * guest_ratio(b, g);
	if (!(at >= 0 && at < 0x1p63))
		return false;
	tsc->ticks = (uint64_t)at;
	*err_ticks = b->host_hz * 10; /* saturates the event's err_ns: not bounded at all */
	return true;
}

bool clock_book_knows(const struct clock_book *b, uint32_t source)
{
	const struct guest *g;

	if (!b->raw || !b->n_samples)
		return false;
	if (source == VS_SOURCE_HOST)
		return true;
	g = guest_find(b, source);
	return g && (is_stated(b, g) || (g->echo && g->observations) || g->by_arrival);
}

static bool guest_to_ns(const struct clock_book *b, const struct guest *g, uint64_t stream_time,
			uint64_t stamp_err, struct host_time *out)
{
	struct host_tsc tsc = {stream_time};
	uint64_t err = 0;

	if (g) {
		if (!guest_to_tsc(b, g, stream_time, &tsc, &err))
			return false;
		stamp_err = (uint64_t)ceil((double)stamp_err * guest_ratio(b, g));
	}
	err = err + stamp_err < err ? UINT64_MAX : err + stamp_err;
	if (g)
		standstills_evade(&g->standstills, &tsc, &err);
	*out = raw_clock_from_tsc(b->raw, tsc, err);
	return true;
}

bool clock_book_to_ns(const struct clock_book *b, uint32_t source, uint64_t stream_time,
		      uint64_t stamp_err, struct host_time *out)
{
	return clock_book_knows(b, source) &&
	       guest_to_ns(b, source == VS_SOURCE_HOST ? NULL : guest_find(b, source), stream_time,
			   stamp_err, out);
}

bool clock_book_host_ns(const struct clock_book *b, uint64_t tsc, struct host_ns *out)
{
	if (!b->raw || !b->n_samples)
		return false;
	*out = raw_clock_from_tsc(b->raw, (struct host_tsc){tsc}, 0).t;
	return true;
}

bool clock_book_wall_offset(const struct clock_book *b, struct host_ns t, int64_t *offset_ns)
{
	if (!b->raw || !b->first_sample.tsc || !b->first_sample.realtime_ns)
		return false;
	*offset_ns = (int64_t)(raw_clock_realtime_ns(b->raw, t) - (uint64_t)t.ns);
	return true;
}

bool clock_book_monotonic_point(const struct clock_book *b, size_t i, struct host_ns *t,
				struct monotonic_ns *monotonic)
{
	return b->raw && b->n_samples && raw_clock_monotonic_point(b->raw, i, t, monotonic);
}

static uint32_t err_saturate(uint64_t err_ns)
{
	return err_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)err_ns;
}

bool clock_book_map(const struct clock_book *b, uint32_t source, const struct vs_event *events,
		    size_t n, uint64_t stamp_err, struct timeline_event *out)
{
	const struct guest *g = source == VS_SOURCE_HOST ? NULL : guest_find(b, source);
	uint64_t hz = g ? g->hz : b->host_hz;
	double nominal = hz ? 1e9 / (double)hz : 1; /* ns per tick */
	uint64_t span = hz / SPANS_PER_SECOND;

	if (!clock_book_knows(b, source))
		return false;
	/* An exact map may leap anywhere between its epochs, and by little. */
	if (g && g->hypervisor && vm_clock_epochs(g->hypervisor) > 1)
		span = 0;
	if (g && !exact_is_known(g) && g->echo && echo_sync_unsteady(g->echo))
		span = 0;
	for (size_t i = 0; i < n;) {
		uint64_t from = events[i].time;
		size_t end = i + 1;
		struct host_time first, last;
		double ticks, slope, off;
		uint64_t err;

		if (!guest_to_ns(b, g, from, stamp_err, &first))
			return false;
		/* The first that is not in [from, from + span) ends the span, older ones too. */
		while (end < n && events[end].time - from < span)
			end++;
		out[i].t = first.t;
		out[i].err_ns = err_saturate(first.err_ns);
		if (end == i + 1) {
			i = end;
			continue;
		}
		if (!guest_to_ns(b, g, events[end - 1].time, stamp_err, &last))
			return false;
		ticks = (double)(events[end - 1].time - from);
		err = first.err_ns > last.err_ns ? first.err_ns : last.err_ns;
		off = fabs((double)(last.t.ns - first.t.ns) - ticks * nominal);
		if (off > ticks * nominal * 1e-3 + 2) {
			/* Not a line, however wide its ends' bounds: another epoch begins in here,
			 * or a pause lies here. One by one. */
			end = i + 1;
			i = end;
			continue;
		}
		slope = ticks > 0 ? (double)(last.t.ns - first.t.ns) / ticks : nominal;
		for (size_t k = i + 1; k < end; k++) {
			out[k].t.ns = first.t.ns +
				      (int64_t)((double)(events[k].time - from) * slope + 0.5);
			out[k].err_ns = err_saturate(err + 1);
		}
		i = end;
	}
	return true;
}

/* The guest's stream time at host TSC `t`. */
static bool guest_from_tsc(const struct guest *g, struct host_tsc t, uint64_t *stream_time)
{
	struct guest_tsc exact;
	uint64_t err;

	if (exact_is_known(g) && vm_clock_to_guest(g->hypervisor, t, &exact)) {
		*stream_time = exact.ticks;
		return true;
	}
	return g->echo && echo_sync_to_guest(g->echo, t, stream_time, &err);
}

bool clock_book_dmesg_at(const struct clock_book *b, uint32_t source, uint64_t stream_time,
			 uint64_t *dmesg_ns, uint64_t *err_ns)
{
	const struct guest *g = guest_find(b, source);

	return g && printk_clock_at(&g->printk, g->hz, stream_time, dmesg_ns, err_ns);
}

bool clock_book_to_tsc(const struct clock_book *b, uint32_t source, uint64_t stream_time,
		       struct host_tsc *tsc, uint64_t *err_ticks)
{
	const struct guest *g = guest_find(b, source);

	return g && guest_to_tsc(b, g, stream_time, tsc, err_ticks);
}

bool clock_book_dmesg_ns(const struct clock_book *b, uint32_t source, struct host_ns t,
			 uint64_t *dmesg_ns)
{
	const struct guest *g = guest_find(b, source);
	uint64_t stream, err_ns;

	return g && b->raw && b->n_samples &&
	       guest_from_tsc(g, raw_clock_to_tsc(b->raw, t), &stream) &&
	       printk_clock_at(&g->printk, g->hz, stream, dmesg_ns, &err_ns);
}

static uint64_t host_ticks_to_ns(const struct clock_book *b, uint64_t ticks)
{
	return b->host_hz ? (uint64_t)ceil((double)ticks * 1e9 / (double)b->host_hz) : UINT64_MAX;
}

/* The hypervisor's parameters, where proven, are exact: what remains is a tick of scaling. */
static void exact_summarise(const struct guest *g, struct clock_book_summary *out)
{
	struct vm_clock_summary exact;

	vm_clock_summarise(g->hypervisor, &exact);
	out->disagreements = exact.contradicted;
	if (!exact.proven)
		return;
	out->method = exact.kvmclock ? "pvclock" : "tsc";
	out->epochs = exact.epochs;
	out->err_ns = 1;
}

/* How far the exact map is from the middle of echo's interval, at stream time `at`. */
static void exact_compare(const struct clock_book *b, const struct guest *g, uint64_t at,
			  struct clock_book_summary *out)
{
	struct host_tsc exact, middle;
	uint64_t span, err;

	if (!b->host_hz ||
	    !vm_clock_to_host(g->hypervisor, (struct guest_tsc){at}, &exact, &span) ||
	    !echo_sync_to_host(g->echo, at, &middle, &err))
		return;
	out->compared = true;
	out->exact_from_echo_ns =
		(int64_t)((double)(int64_t)(exact.ticks - middle.ticks) * 1e9 / (double)b->host_hz);
}

void clock_book_summarise(const struct clock_book *b, uint32_t source,
			  struct clock_book_summary *out)
{
	const struct guest *g = guest_find(b, source);
	struct echo_sync_summary echo;

	*out = (struct clock_book_summary){.method = "none", .err_ns = UINT64_MAX};
	if (!g)
		return;
	if (is_stated(b, g)) {
		out->method = "stated";
		out->epochs = 1;
		return;
	}
	if (g->echo && g->observations) {
		echo_sync_summarise(g->echo, &echo);
		out->method = "echo";
		out->epochs = echo.epochs;
		out->observations = echo.observations;
		out->echo_epochs = echo.epochs;
		out->err_ns = out->echo_err_ns = host_ticks_to_ns(b, echo.err_ticks);
		out->unsteady = echo.unsteady;
		out->ratio_min = echo.ratio_min;
		out->ratio_max = echo.ratio_max;
		out->best_guest = echo.best_guest;
		out->best_round_trip_ns = host_ticks_to_ns(b, echo.best_round_trip_ticks);
		out->epoch_best_round_trip_ns =
			host_ticks_to_ns(b, echo.epoch_best_round_trip_ticks);
		out->ratio_min = echo.ratio_min;
		out->ratio_max = echo.ratio_max;
	}
	if (!exact_is_known(g))
		return;
	exact_summarise(g, out);
	if (out->observations)
		exact_compare(b, g, echo.newest_guest, out);
}

bool clock_book_echo_epoch(const struct clock_book *b, uint32_t source, size_t i,
			   struct echo_epoch *out)
{
	const struct guest *g = guest_find(b, source);

	return g && g->echo && echo_sync_epoch_get(g->echo, i, out);
}

const struct vm_clock *clock_book_vm(const struct clock_book *b, uint32_t source)
{
	const struct guest *g = guest_find(b, source);

	return g ? g->hypervisor : NULL;
}
