/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/clock_book.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "clock/raw.h"
#include "host-collector/timeline/guest_clock.h"
#include "host-collector/timeline/standstill.h"
#include "proto/recording.h"

enum {
	EARLY_MAX = 256, /* facts kept until the rate is known */
	SPANS_PER_SECOND = 8,
	PAUSES_MAX = (int)STANDSTILLS_MAX > (int)VM_CLOCK_PAUSES_MAX ? (int)STANDSTILLS_MAX
								     : (int)VM_CLOCK_PAUSES_MAX,
	BOOTS_MAX = 64, /* that are kept of one guest; the oldest give way */
};
static const uint64_t ns_per_s = 1000000000;

struct guest {
	uint32_t source;
	struct vm_clock *hypervisor; /* NULL: it said nothing */
	struct standstills standstills;
	uint32_t n_boots;                     /* ever; the newest is n_boots - 1 */
	struct guest_clock *boots[BOOTS_MAX]; /* a ring */
};

struct clock_book {
	uint64_t host_hz;
	struct raw_clock *raw;
	uint64_t n_samples; /* in raw */
	bool span_limited;
	int64_t origin_ns; /* of the first sample in raw */
	struct message_clock_sample first_sample, last_sample;
	struct clock_sample *early; /* until host_hz is known */
	size_t n_early;
	struct guest *guests;
	size_t n_guests;
	bool imported, apart; /* apart: of some sample the TSC is not CLOCK_MONOTONIC_RAW */
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
		for (size_t k = 0; k < BOOTS_MAX; k++) {
			if (b->guests[i].boots[k])
				guest_clock_fini(b->guests[i].boots[k]);
			free(b->guests[i].boots[k]);
		}
	}
	raw_clock_free(b->raw);
	free(b->early);
	free(b->guests);
	free(b);
}

void clock_book_limit_span(struct clock_book *b)
{
	b->span_limited = true;
}

bool clock_sample_in_range(const struct message_clock_sample *m)
{
	return m->raw_ns < HOST_NS_LIMIT && m->monotonic_ns < HOST_NS_LIMIT &&
	       m->realtime_ns < REALTIME_NS_LIMIT && m->tsc_width < HOST_NS_LIMIT;
}

static bool in_range(const struct clock_book *b, int64_t ns)
{
	if (ns <= -HOST_NS_LIMIT || ns >= HOST_NS_LIMIT)
		return false;
	return !b->span_limited ||
	       (ns >= b->origin_ns - SPAN_NS_LIMIT && ns <= b->origin_ns + SPAN_NS_LIMIT);
}

/* An importer stamps in nanoseconds, which come back exactly. */
static struct host_time host_time_of(const struct clock_book *b, struct host_tsc tsc,
				     uint64_t err_ticks)
{
	if (b->imported && !b->apart && tsc.ticks < HOST_NS_LIMIT)
		return (struct host_time){{(int64_t)tsc.ticks}, err_ticks};
	return raw_clock_from_tsc(b->raw, tsc, err_ticks);
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

/* NULL if it is not known, or long forgotten. */
static struct guest_clock *boot_find(const struct guest *g, uint32_t boot)
{
	return g && boot < g->n_boots && g->n_boots - boot <= BOOTS_MAX ? g->boots[boot % BOOTS_MAX]
									: NULL;
}

static struct guest_clock *boot_newest(const struct guest *g)
{
	return g && g->n_boots ? boot_find(g, g->n_boots - 1) : NULL;
}

static const struct guest_clock *boot_oldest(const struct guest *g)
{
	return boot_find(g, g->n_boots > BOOTS_MAX ? g->n_boots - BOOTS_MAX : 0);
}

/* *out: the boot, which exists from now on; NULL if it is long forgotten. 0 or -ENOMEM. */
static int boot_get(struct clock_book *b, uint32_t source, uint32_t boot, struct guest_clock **out)
{
	struct guest *g = guest_get(b, source);

	if (!g)
		return -ENOMEM;
	while (g->n_boots <= boot) {
		struct guest_clock *before = boot_newest(g);
		struct guest_clock **slot = &g->boots[g->n_boots % BOOTS_MAX];

		if (*slot)
			guest_clock_fini(*slot);
		else
			*slot = malloc(sizeof(**slot));
		if (!*slot)
			return -ENOMEM;
		guest_clock_init(*slot);
		if (before) {
			(*slot)->window.from = before->answered;
			if (before->heard)
				before->window.to = before->heard;
		}
		g->n_boots++;
	}
	*out = boot_find(g, boot);
	return 0;
}

/* A sample that contradicts itself says nothing. */
static int host_push(struct clock_book *b, const struct clock_sample *sample)
{
	int err = raw_clock_push(b->raw, sample);

	if (!err && !b->n_samples)
		b->origin_ns = (int64_t)sample->raw_ns;
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
	for (size_t i = 0; i < b->n_guests && !err; i++) {
		for (size_t k = 0; k < BOOTS_MAX && !err; k++) {
			if (b->guests[i].boots[k])
				err = guest_clock_start(b->guests[i].boots[k], hz);
		}
	}
	return err;
}

int clock_book_hello(struct clock_book *b, uint32_t source, uint32_t boot,
		     const struct message_hello *hello)
{
	struct guest_clock *g;
	int err;

	if (source == VS_SOURCE_HOST)
		return b->raw || !hello->clock_hz ? 0 : host_start(b, hello->clock_hz);
	err = boot_get(b, source, boot, &g);
	if (err || !g)
		return err;
	err = guest_clock_hello(g, hello, b->host_hz);
	return err ? err : clock_book_dmesg(b, source, boot, &hello->dmesg);
}

void clock_book_heard(struct clock_book *b, uint32_t source, uint32_t boot, uint64_t arrival_tsc)
{
	struct guest *vm = guest_find(b, source);
	struct guest_clock *g = boot_find(vm, boot);

	if (!g || arrival_tsc <= g->heard)
		return;
	g->heard = arrival_tsc;
	if (g->window.to != UINT64_MAX)
		g->window.to = arrival_tsc;
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
	if (!m->tsc || !clock_sample_in_range(m) ||
	    (!first && (m->tsc <= b->last_sample.tsc || m->raw_ns <= b->last_sample.raw_ns)))
		return 0;
	if (!first && b->span_limited &&
	    m->raw_ns - b->first_sample.raw_ns > (uint64_t)SPAN_NS_LIMIT)
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
	b->apart |= m->tsc != m->raw_ns || m->tsc_width;
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
	const struct guest *vm = guest_find(b, m->vm);
	struct guest_clock *g;
	int err = boot_get(b, m->vm, vm && vm->n_boots ? vm->n_boots - 1 : 0, &g);

	if (err || !g)
		return err;
	vm = guest_find(b, m->vm);
	if (vm->hypervisor)
		vm_clock_observe(vm->hypervisor, &o);
	return guest_clock_echo(g, &o);
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
	struct guest_clock *newest;

	if (g)
		standstills_note(&g->standstills, at, stops);
	newest = boot_newest(g);
	if (newest && newest->echo)
		echo_sync_break_at(newest->echo, at);
}

int clock_book_dmesg(struct clock_book *b, uint32_t source, uint32_t boot,
		     const struct message_dmesg_point *point)
{
	struct guest_clock *g = NULL;
	int err = point->known ? boot_get(b, source, boot, &g) : 0;

	if (err || !g)
		return err;
	return printk_clock_add(&g->printk, point);
}

int clock_book_arrival(struct clock_book *b, uint32_t source, uint32_t boot, uint64_t stream_time,
		       uint64_t arrival_tsc)
{
	struct guest_clock *g;
	int err = boot_get(b, source, boot, &g);

	return err || !g ? err : guest_clock_arrival(g, stream_time, arrival_tsc, b->host_hz);
}

/* A rate from two readings, 0 if they are too close together to tell. */
static uint64_t rate_estimate(uint64_t ticks, uint64_t ns)
{
	return ns < ns_per_s / 10 ? 0 : (uint64_t)((double)ticks * 1e9 / (double)ns);
}

/* No sample of the host's clock at all: its first known TSC value becomes one hour, so that what
 * was before has a time too. */
static int host_anchor(struct clock_book *b)
{
	struct clock_sample zero = {.raw_ns = 3600 * ns_per_s};

	for (size_t i = 0; i < b->n_guests; i++) {
		const struct guest_clock *g = boot_oldest(&b->guests[i]);

		if (g && g->arrival.known && (!zero.tsc || g->arrival.first_tsc < zero.tsc))
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
			const struct guest_clock *g = boot_newest(&b->guests[i]);

			if (g && g->clock == STREAM_CLOCK_GUEST_TSC)
				hz = g->hz;
		}
		if (hz)
			err = host_start(b, hz);
	}
	if (b->raw && !b->n_samples && !err)
		err = host_anchor(b);
	for (size_t i = 0; i < b->n_guests && !err; i++) {
		for (size_t k = 0; k < BOOTS_MAX && !err; k++) {
			if (b->guests[i].boots[k])
				err = guest_clock_settle(b->guests[i].boots[k], b->host_hz);
		}
	}
	return err;
}

static bool is_stated(const struct clock_book *b, const struct guest_clock *g)
{
	return b->imported && g->hello && g->clock == STREAM_CLOCK_HOST_TSC;
}

/* Host TSC at the guest's stream time. */
static bool boot_to_tsc(const struct clock_book *b, const struct guest *vm,
			const struct guest_clock *g, uint64_t stream_time, struct host_tsc *tsc,
			uint64_t *err_ticks)
{
	if (is_stated(b, g)) {
		tsc->ticks = stream_time;
		*err_ticks = 0;
		return true;
	}
	return guest_clock_to_tsc(g, vm->hypervisor, b->host_hz, stream_time, tsc, err_ticks);
}

bool clock_book_knows(const struct clock_book *b, uint32_t source, uint32_t boot)
{
	const struct guest_clock *g;

	if (!b->raw || !b->n_samples)
		return false;
	if (source == VS_SOURCE_HOST)
		return true;
	g = boot_find(guest_find(b, source), boot);
	return g && (is_stated(b, g) || guest_clock_knows(g));
}

bool clock_book_knows_any(const struct clock_book *b, uint32_t source)
{
	const struct guest *g = guest_find(b, source);

	for (uint32_t i = 0; g && i < g->n_boots; i++) {
		if (clock_book_knows(b, source, i))
			return true;
	}
	return clock_book_knows(b, source, 0);
}

static bool stream_to_ns(const struct clock_book *b, const struct guest *vm,
			 const struct guest_clock *g, uint64_t stream_time, uint64_t stamp_err,
			 struct host_time *out)
{
	struct host_tsc tsc = {stream_time};
	uint64_t err = 0;

	if (g) {
		if (!boot_to_tsc(b, vm, g, stream_time, &tsc, &err))
			return false;
		stamp_err = (uint64_t)ceil((double)stamp_err * guest_clock_ratio(g, b->host_hz));
	}
	err = err + stamp_err < err ? UINT64_MAX : err + stamp_err;
	if (g)
		standstills_evade(&vm->standstills, &tsc, &err);
	*out = host_time_of(b, tsc, err);
	return in_range(b, out->t.ns);
}

bool clock_book_to_ns(const struct clock_book *b, uint32_t source, uint32_t boot,
		      uint64_t stream_time, uint64_t stamp_err, struct host_time *out)
{
	const struct guest *vm = guest_find(b, source);

	return clock_book_knows(b, source, boot) &&
	       stream_to_ns(b, vm, boot_find(vm, boot), stream_time, stamp_err, out);
}

bool clock_book_host_ns(const struct clock_book *b, uint64_t tsc, struct host_ns *out)
{
	if (!b->raw || !b->n_samples)
		return false;
	*out = host_time_of(b, (struct host_tsc){tsc}, 0).t;
	return in_range(b, out->ns);
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

bool clock_book_map(const struct clock_book *b, uint32_t source, uint32_t boot,
		    const struct vs_event *events, size_t n, uint64_t stamp_err,
		    struct timeline_event *out)
{
	const struct guest *vm = source == VS_SOURCE_HOST ? NULL : guest_find(b, source);
	const struct guest_clock *g = boot_find(vm, boot);
	uint64_t hz = g ? g->hz : b->host_hz;
	double nominal = hz ? 1e9 / (double)hz : 1; /* ns per tick */
	uint64_t span = hz / SPANS_PER_SECOND;

	if (!clock_book_knows(b, source, boot))
		return false;
	/* An exact map may leap anywhere between its epochs, and by little. */
	if (g && vm->hypervisor && vm_clock_epochs(vm->hypervisor) > 1)
		span = 0;
	if (g && !guest_clock_is_exact(g, vm->hypervisor) && g->echo && echo_sync_unsteady(g->echo))
		span = 0;
	for (size_t i = 0; i < n;) {
		uint64_t from = events[i].time;
		size_t end = i + 1;
		struct host_time first, last;
		double ticks, slope, off;
		uint64_t err;

		if (!stream_to_ns(b, vm, g, from, stamp_err, &first))
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
		if (!stream_to_ns(b, vm, g, events[end - 1].time, stamp_err, &last))
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

bool clock_book_beside_pause(const struct clock_book *b, uint32_t source, struct host_ns t,
			     uint64_t err_ns)
{
	const struct guest *vm = guest_find(b, source);
	size_t n = vm && err_ns ? standstills_kept(&vm->standstills) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct standstill *x = &vm->standstills.spans[i];
		int64_t begin, end;

		if ((double)(x->end.ticks - x->begin.ticks) / 8 >
		    (double)err_ns * (double)b->host_hz / 1e9)
			continue;
		begin = raw_clock_from_tsc(b->raw, x->begin, 0).t.ns;
		end = raw_clock_from_tsc(b->raw, x->end, 0).t.ns;
		if (t.ns + (int64_t)err_ns >= begin && t.ns - (int64_t)err_ns <= end)
			return true;
	}
	return false;
}

/* Those that the hypervisor's parameters show of this boot. Returns how many. */
static size_t exact_pauses(const struct guest *vm, const struct guest_clock *g,
			   struct vm_clock_pause out[VM_CLOCK_PAUSES_MAX])
{
	size_t n = 0, all = 0;

	if (g && guest_clock_is_exact(g, vm->hypervisor))
		all = vm_clock_pauses(vm->hypervisor, out);
	for (size_t i = 0; i < all; i++) {
		if (out[i].seen.ticks >= g->window.from && out[i].seen.ticks <= g->window.to)
			out[n++] = out[i];
	}
	return n;
}

bool clock_book_pause_between(const struct clock_book *b, uint32_t source, uint32_t boot,
			      uint64_t from, uint64_t until, struct vm_clock_pause *out)
{
	struct vm_clock_pause all[VM_CLOCK_PAUSES_MAX];
	const struct guest *vm = guest_find(b, source);
	size_t n = exact_pauses(vm, boot_find(vm, boot), all), found = 0;

	for (size_t i = 0; i < n; i++) {
		if (all[i].stopped > until || all[i].resumed < from)
			continue;
		*out = all[i];
		found++;
	}
	return found == 1 && out->stopped >= from && out->resumed <= until;
}

/* Of a stream time whose boot nobody named: the newest in whose window it lies. */
static const struct guest_clock *boot_of_stream(const struct clock_book *b, const struct guest *vm,
						uint64_t stream_time)
{
	for (uint32_t i = vm ? vm->n_boots : 0; i-- > 0;) {
		const struct guest_clock *g = boot_find(vm, i);
		struct host_tsc tsc;
		uint64_t err;

		if (!g)
			break;
		if (boot_to_tsc(b, vm, g, stream_time, &tsc, &err) && tsc.ticks >= g->window.from &&
		    tsc.ticks <= g->window.to)
			return g;
	}
	return boot_newest(vm);
}

/* In stream time; as the hypervisor shows them, else by QEMU's word. Returns how many. */
static size_t pauses_of(const struct guest *vm, const struct guest_clock *g,
			struct printk_pause out[PAUSES_MAX])
{
	struct vm_clock_pause exact[VM_CLOCK_PAUSES_MAX];
	size_t kept = standstills_kept(&vm->standstills), n = exact_pauses(vm, g, exact);
	uint64_t err;

	for (size_t i = 0; i < n; i++)
		out[i] = (struct printk_pause){exact[i].stopped, exact[i].resumed};
	if (n)
		return n;
	for (size_t i = 0; i < kept; i++) {
		const struct standstill *x = &vm->standstills.spans[i];
		struct printk_pause *p = &out[n];

		n += guest_clock_from_tsc(g, vm->hypervisor, x->begin, &p->from, &err) &&
		     guest_clock_from_tsc(g, vm->hypervisor, x->end, &p->until, &err) &&
		     p->until > p->from;
	}
	return n;
}

static bool boot_dmesg_at(const struct guest *vm, const struct guest_clock *g, uint64_t stream_time,
			  uint64_t *dmesg_ns, uint64_t *err_ns)
{
	struct printk_pause pauses[PAUSES_MAX];
	size_t n = pauses_of(vm, g, pauses);

	return printk_clock_at(&g->printk, pauses, n, g->hz, stream_time, dmesg_ns, err_ns);
}

bool clock_book_dmesg_at(const struct clock_book *b, uint32_t source, uint64_t stream_time,
			 uint64_t *dmesg_ns, uint64_t *err_ns)
{
	const struct guest *vm = guest_find(b, source);
	const struct guest_clock *g = boot_of_stream(b, vm, stream_time);

	return g && boot_dmesg_at(vm, g, stream_time, dmesg_ns, err_ns);
}

bool clock_book_to_tsc(const struct clock_book *b, uint32_t source, uint64_t stream_time,
		       struct host_tsc *tsc, uint64_t *err_ticks)
{
	const struct guest *vm = guest_find(b, source);
	const struct guest_clock *g = boot_of_stream(b, vm, stream_time);

	return g && boot_to_tsc(b, vm, g, stream_time, tsc, err_ticks);
}

bool clock_book_any_to_ns(const struct clock_book *b, uint32_t source, uint64_t stream_time,
			  struct host_time *out)
{
	const struct guest *vm = guest_find(b, source);
	const struct guest_clock *g = boot_of_stream(b, vm, stream_time);

	return g && b->raw && b->n_samples && stream_to_ns(b, vm, g, stream_time, 0, out);
}

bool clock_book_dmesg_ns(const struct clock_book *b, uint32_t source, struct host_ns t,
			 struct dmesg_time *out)
{
	const struct guest *vm = guest_find(b, source);
	struct host_tsc tsc;

	if (!vm || !b->raw || !b->n_samples)
		return false;
	tsc = raw_clock_to_tsc(b->raw, t);
	/* The oldest boot that had not ended. */
	for (uint32_t boot = 0; boot < vm->n_boots; boot++) {
		const struct guest_clock *g = boot_find(vm, boot);
		uint64_t stream, stream_err;

		if (!g || tsc.ticks > g->window.to)
			continue;
		out->boot = boot;
		if (!guest_clock_from_tsc(g, vm->hypervisor, tsc, &stream, &stream_err) ||
		    !boot_dmesg_at(vm, g, stream, &out->ns, &out->err_ns))
			return false;
		out->err_ns += g->hz ? (uint64_t)((double)stream_err * 1e9 / (double)g->hz) : 0;
		return true;
	}
	return false;
}

static uint64_t host_ticks_to_ns(const struct clock_book *b, uint64_t ticks)
{
	return b->host_hz ? (uint64_t)ceil((double)ticks * 1e9 / (double)b->host_hz) : UINT64_MAX;
}

/* The hypervisor's parameters, where proven, are exact: what remains is a tick of scaling. */
static void exact_summarise(const struct guest *vm, struct clock_book_summary *out)
{
	struct vm_clock_summary exact;

	vm_clock_summarise(vm->hypervisor, &exact);
	out->disagreements = exact.contradicted;
	out->untrusted = exact.contested;
	if (exact.contested) {
		out->method = "untrusted";
		out->err_ns = UINT64_MAX;
		return;
	}
	if (!exact.proven)
		return;
	out->method = exact.kvmclock ? "pvclock" : "tsc";
	out->epochs = exact.epochs;
	out->err_ns = 1;
}

/* How far the exact map is from the middle of echo's interval, at stream time `at`. */
static void exact_compare(const struct clock_book *b, const struct guest *vm,
			  const struct guest_clock *g, uint64_t at, struct clock_book_summary *out)
{
	struct host_tsc exact, middle;
	uint64_t span, err;

	if (!b->host_hz ||
	    vm_clock_to_host(vm->hypervisor, &g->window, (struct guest_tsc){at}, &exact, &span) ==
		    VM_CLOCK_SILENT ||
	    !echo_sync_to_host(g->echo, at, &middle, &err))
		return;
	out->compared = true;
	out->exact_from_echo_ns =
		(int64_t)((double)(int64_t)(exact.ticks - middle.ticks) * 1e9 / (double)b->host_hz);
}

void clock_book_summarise(const struct clock_book *b, uint32_t source,
			  struct clock_book_summary *out)
{
	const struct guest *vm = guest_find(b, source);
	const struct guest_clock *g = boot_newest(vm);
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
	if (!guest_clock_is_exact(g, vm->hypervisor))
		return;
	exact_summarise(vm, out);
	if (out->observations)
		exact_compare(b, vm, g, echo.newest_guest, out);
}

bool clock_book_echo_epoch(const struct clock_book *b, uint32_t source, size_t i,
			   struct echo_epoch *out)
{
	const struct guest *vm = guest_find(b, source);
	uint32_t boot = vm && vm->n_boots > BOOTS_MAX ? vm->n_boots - BOOTS_MAX : 0;

	for (; vm && boot < vm->n_boots; boot++) {
		const struct guest_clock *g = boot_find(vm, boot);
		size_t n = 0;

		if (!g || !g->echo)
			continue;
		if (echo_sync_epoch_get(g->echo, i, out))
			return true;
		while (echo_sync_epoch_get(g->echo, n, out))
			n++;
		i -= n;
	}
	return false;
}

const struct vm_clock *clock_book_vm(const struct clock_book *b, uint32_t source)
{
	const struct guest *g = guest_find(b, source);

	return g ? g->hypervisor : NULL;
}
