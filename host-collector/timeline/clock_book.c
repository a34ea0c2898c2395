/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/clock_book_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "proto/recording.h"

enum { EARLY_MAX = 256 };  /* facts kept until the rate is known */
enum { BOOT_KEPT_S = 60 }; /* after its last frame, with a short memory */
static const uint64_t ns_per_s = 1000000000;

struct clock_book *clock_book_new(bool short_memory)
{
	struct clock_book *b = calloc(1, sizeof(*b));

	if (b)
		b->short_memory = short_memory;
	return b;
}

void clock_book_free(struct clock_book *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n_guests; i++) {
		vm_clock_free(b->guests[i].hypervisor);
		for (size_t k = 0; k < CLOCK_BOOTS_MAX; k++) {
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

struct guest *clock_guest_find(const struct clock_book *b, uint32_t source)
{
	for (size_t i = 0; i < b->n_guests; i++) {
		if (b->guests[i].source == source)
			return &b->guests[i];
	}
	return NULL;
}

struct guest_clock *clock_boot_find(const struct guest *g, uint32_t boot)
{
	return g && boot < g->n_boots && boot >= g->first_boot ? g->boots[boot % CLOCK_BOOTS_MAX]
							       : NULL;
}

struct guest_clock *clock_boot_newest(const struct guest *g)
{
	return g && g->n_boots ? clock_boot_find(g, g->n_boots - 1) : NULL;
}

static struct guest_clock *clock_boot_oldest(const struct guest *g)
{
	return clock_boot_find(g, g->first_boot);
}

static struct guest *guest_get(struct clock_book *b, uint32_t source)
{
	struct guest *g = clock_guest_find(b, source), *grown;

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

/* *out: the boot, which exists from now on; NULL if it is long forgotten. 0 or -ENOMEM. */
static int boot_get(struct clock_book *b, uint32_t source, uint32_t boot, struct guest_clock **out)
{
	struct guest *g = guest_get(b, source);

	if (!g)
		return -ENOMEM;
	while (g->n_boots <= boot) {
		struct guest_clock *before = clock_boot_newest(g);
		struct guest_clock **slot = &g->boots[g->n_boots % CLOCK_BOOTS_MAX];

		if (*slot) {
			guest_clock_fini(*slot);
			g->first_boot = g->n_boots + 1 - CLOCK_BOOTS_MAX;
		} else {
			*slot = malloc(sizeof(**slot));
		}
		if (!*slot)
			return -ENOMEM;
		guest_clock_init(*slot, b->short_memory);
		if (before) {
			(*slot)->window.from = before->answered;
			if (before->heard)
				before->window.to = before->heard;
		}
		g->n_boots++;
	}
	*out = clock_boot_find(g, boot);
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
	b->raw = raw_clock_new(hz, b->short_memory);
	if (!b->raw)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_early && !err; i++)
		err = host_push(b, &b->early[i]);
	free(b->early);
	b->early = NULL;
	b->n_early = 0;
	for (size_t i = 0; i < b->n_guests && !err; i++) {
		for (size_t k = 0; k < CLOCK_BOOTS_MAX && !err; k++) {
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

/* Forgets boots that were heard last before `limit_tsc`, but not the newest. */
static void boots_forget(struct guest *g, uint64_t limit_tsc)
{
	for (; g->first_boot + 1 < g->n_boots; g->first_boot++) {
		struct guest_clock **slot = &g->boots[g->first_boot % CLOCK_BOOTS_MAX];

		if ((*slot)->heard >= limit_tsc)
			return;
		guest_clock_fini(*slot);
		free(*slot);
		*slot = NULL;
	}
}

void clock_book_heard(struct clock_book *b, uint32_t source, uint32_t boot, uint64_t arrival_tsc)
{
	struct guest *vm = clock_guest_find(b, source);
	struct guest_clock *g = clock_boot_find(vm, boot);

	if (!g || arrival_tsc <= g->heard)
		return;
	g->heard = arrival_tsc;
	if (b->short_memory && b->host_hz && arrival_tsc > BOOT_KEPT_S * b->host_hz)
		boots_forget(vm, arrival_tsc - BOOT_KEPT_S * b->host_hz);
	if (g->window.to != UINT64_MAX)
		g->window.to = arrival_tsc;
}

/* Two samples of the host's clocks differ by more than any slewing makes of the time between. */
enum { WALL_STEP_NS = 5000000, WALL_SLEW_SHARE = 1000 };

static void wall_step_find(struct clock_book *b, const struct message_clock_sample *before,
			   const struct message_clock_sample *now)
{
	int64_t between = (int64_t)(now->raw_ns - before->raw_ns);
	int64_t by = (int64_t)(now->realtime_ns - before->realtime_ns) - between;

	if (!before->realtime_ns || !now->realtime_ns || b->n_wall_steps == CLOCK_WALL_STEPS_MAX ||
	    llabs(by) <= WALL_STEP_NS + between / WALL_SLEW_SHARE)
		return;
	b->wall_steps[b->n_wall_steps++] =
		(struct clock_wall_step){.t = {(int64_t)before->raw_ns + between / 2}, .by_ns = by};
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
	else
		wall_step_find(b, &b->last_sample, m);
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
	const struct guest *vm = clock_guest_find(b, m->vm);
	struct guest_clock *g;
	int err = boot_get(b, m->vm, vm && vm->n_boots ? vm->n_boots - 1 : 0, &g);

	if (err || !g)
		return err;
	vm = clock_guest_find(b, m->vm);
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

int clock_book_protect(struct clock_book *b, uint32_t source, uint32_t protection)
{
	struct vm_clock *c;

	if (protection == VM_PROTECTION_NONE)
		return 0;
	c = hypervisor_get(b, source);
	if (!c)
		return -ENOMEM;
	vm_clock_protect(c, protection);
	return 0;
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
	struct guest *g = clock_guest_find(b, source);
	struct guest_clock *newest;

	if (g)
		standstills_note(&g->standstills, at, stops);
	newest = clock_boot_newest(g);
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

/* Returns the rate from two readings, 0 if they are too close together for a result. */
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
		const struct guest_clock *g = clock_boot_oldest(&b->guests[i]);

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
			const struct guest_clock *g = clock_boot_newest(&b->guests[i]);

			if (g && g->clock == STREAM_CLOCK_GUEST_TSC)
				hz = g->hz;
		}
		if (hz)
			err = host_start(b, hz);
	}
	if (b->raw && !b->n_samples && !err)
		err = host_anchor(b);
	for (size_t i = 0; i < b->n_guests && !err; i++) {
		for (size_t k = 0; k < CLOCK_BOOTS_MAX && !err; k++) {
			if (b->guests[i].boots[k])
				err = guest_clock_settle(b->guests[i].boots[k], b->host_hz);
		}
	}
	return err;
}
