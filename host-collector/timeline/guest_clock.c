/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/timeline/guest_clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { EARLY_MAX = 256 }; /* facts kept until the rate is known; the newest win */

struct guest_early_echoes {
	struct echo_observation at[EARLY_MAX];
	uint64_t n; /* ever */
};

void guest_clock_init(struct guest_clock *g, bool short_memory)
{
	*g = (struct guest_clock){.window = {0, UINT64_MAX}, .short_memory = short_memory};
}

void guest_clock_fini(struct guest_clock *g)
{
	echo_sync_free(g->echo);
	free(g->early);
	free(g->cpus);
	printk_clock_clear(&g->printk);
}

int guest_clock_start(struct guest_clock *g, uint64_t host_hz)
{
	struct echo_options options = {
		.host_hz = host_hz, .stream_hz = g->hz, .short_memory = g->short_memory};
	uint64_t first;

	if (g->echo || !g->hz || !host_hz)
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

/* 0 or -ENOMEM. */
static int cpus_learn(struct guest_clock *g, const struct message_hello *hello)
{
	struct message_cpu *cpus = realloc(g->cpus, (hello->n_cpus + 1) * sizeof(*cpus));

	if (!cpus)
		return -ENOMEM;
	memcpy(cpus, hello->cpus, hello->n_cpus * sizeof(*cpus));
	g->cpus = cpus;
	g->n_cpus = hello->n_cpus;
	return 0;
}

/* On x86 KVM's vcpu_id is the vCPU's APIC id. */
uint32_t guest_clock_vcpu(const struct guest_clock *g, uint32_t tsc_cpu)
{
	for (size_t i = 0; tsc_cpu && i < g->n_cpus; i++) {
		if (g->cpus[i].cpu == tsc_cpu - 1)
			return g->cpus[i].apic_id;
	}
	return VM_CLOCK_ANY_VCPU;
}

/*
 * An agent that starts again in the same boot measures the same clock: its idea of the rate may
 * differ, the clock does not.
 */
int guest_clock_hello(struct guest_clock *g, const struct message_hello *hello, uint64_t host_hz)
{
	int err;

	if (g->hello && g->clock != hello->clock) {
		echo_sync_free(g->echo);
		g->echo = NULL;
		g->hz = 0;
		printk_clock_clear(&g->printk);
	}
	g->hello = true;
	g->clock = hello->clock;
	if (!g->hz)
		g->hz = hello->clock_hz;
	err = cpus_learn(g, hello);
	return err ? err : guest_clock_start(g, host_hz);
}

int guest_clock_echo(struct guest_clock *g, const struct echo_observation *o)
{
	int err;

	if (o->sent.ticks > g->answered)
		g->answered = o->sent.ticks;
	if (!g->echo) {
		if (!g->early)
			g->early = calloc(1, sizeof(*g->early));
		if (!g->early)
			return -ENOMEM;
		g->early->at[g->early->n++ % EARLY_MAX] = *o;
		return 0;
	}
	err = echo_sync_add(g->echo, o);
	if (err == -ENOMEM)
		return err;
	g->observations += err >= 0;
	return 0;
}

double guest_clock_ratio(const struct guest_clock *g, uint64_t host_hz)
{
	return g->hz && host_hz ? (double)host_hz / (double)g->hz : 1;
}

int guest_clock_arrival(struct guest_clock *g, uint64_t stream_time, uint64_t arrival_tsc,
			uint64_t host_hz)
{
	struct arrival_line *a = &g->arrival;
	double offset;

	if (g->echo && g->observations) {
		int err = echo_sync_not_after(g->echo, stream_time, (struct host_tsc){arrival_tsc});

		if (err == -ENOMEM)
			return err;
	}
	if (!a->known)
		*a = (struct arrival_line){.known = true,
					   .first_stream = stream_time,
					   .first_tsc = arrival_tsc,
					   .offset = (double)arrival_tsc};
	/* The earliest arrival, for its stamp, is the one that waited least on its way. */
	offset = (double)arrival_tsc -
		 (double)(int64_t)(stream_time - a->first_stream) * guest_clock_ratio(g, host_hz);
	if (offset < a->offset)
		a->offset = offset;
	return 0;
}

static uint64_t rate_estimate(const struct guest_clock *g, uint64_t host_hz)
{
	const struct echo_observation *first, *last;
	uint64_t host_ticks;

	if (!g->early || g->early->n < 2)
		return 0;
	last = &g->early->at[(g->early->n - 1) % EARLY_MAX];
	first = &g->early->at[(g->early->n > EARLY_MAX ? g->early->n : 0) % EARLY_MAX];
	host_ticks = last->received.ticks - first->received.ticks;
	/* A second: what a round trip blurs is then below the slope that the map allows. */
	if (!host_hz || host_ticks < host_hz)
		return 0;
	return (uint64_t)((double)(last->guest_sent - first->guest_sent) * (double)host_hz /
			  (double)host_ticks);
}

int guest_clock_settle(struct guest_clock *g, uint64_t host_hz)
{
	int err;

	if (!g->hz)
		g->hz = rate_estimate(g, host_hz);
	err = guest_clock_start(g, host_hz);
	g->by_arrival = g->arrival.known && host_hz;
	return err;
}

bool guest_clock_knows(const struct guest_clock *g)
{
	return (g->echo && g->observations) || g->by_arrival;
}

bool guest_clock_is_exact(const struct guest_clock *g, const struct vm_clock *hypervisor)
{
	return hypervisor && g->clock == STREAM_CLOCK_GUEST_TSC &&
	       vm_clock_protection(hypervisor) == VM_PROTECTION_NONE;
}

/* Ten seconds: an event's err_ns saturates below that. */
static uint64_t unbounded(uint64_t host_hz)
{
	return host_hz * 10;
}

static bool by_arrival(const struct guest_clock *g, uint64_t host_hz, uint64_t stream_time,
		       struct host_tsc *tsc, uint64_t *err_ticks)
{
	const struct arrival_line *a = &g->arrival;
	double at = a->offset + (double)(int64_t)(stream_time - a->first_stream) *
					guest_clock_ratio(g, host_hz);

	if (!g->by_arrival || !(at >= 0 && at < 0x1p63))
		return false;
	tsc->ticks = (uint64_t)at;
	*err_ticks = unbounded(host_hz);
	return true;
}

bool guest_clock_to_tsc(const struct guest_clock *g, const struct vm_clock *hypervisor,
			uint64_t host_hz, uint32_t vcpu, uint64_t stream_time, struct host_tsc *tsc,
			uint64_t *err_ticks)
{
	enum vm_clock_trust trust = VM_CLOCK_SILENT;
	uint64_t span;

	if (guest_clock_is_exact(g, hypervisor))
		trust = vm_clock_to_host(hypervisor, &g->window, vcpu,
					 (struct guest_tsc){stream_time}, tsc, &span);
	if (trust != VM_CLOCK_SILENT) {
		tsc->ticks += span / 2;
		*err_ticks = trust == VM_CLOCK_PROVEN ? span - span / 2 : unbounded(host_hz);
		return true;
	}
	if (g->echo && g->observations && echo_sync_to_host(g->echo, stream_time, tsc, err_ticks)) {
		/* Between two epochs of which one is contested, round trips prove no more. */
		if (guest_clock_is_exact(g, hypervisor) && vm_clock_contested(hypervisor, *tsc))
			*err_ticks = unbounded(host_hz);
		return true;
	}
	return by_arrival(g, host_hz, stream_time, tsc, err_ticks);
}

bool guest_clock_from_tsc(const struct guest_clock *g, const struct vm_clock *hypervisor,
			  struct host_tsc t, uint64_t *stream_time, uint64_t *err_ticks)
{
	struct guest_tsc exact;
	uint64_t span;

	if (guest_clock_is_exact(g, hypervisor) &&
	    vm_clock_to_guest(hypervisor, t, &exact, &span)) {
		*stream_time = exact.ticks + span / 2;
		*err_ticks = vm_clock_contested(hypervisor, t) ? unbounded(g->hz) : span - span / 2;
		return true;
	}
	return g->echo && echo_sync_to_guest(g->echo, t, stream_time, err_ticks);
}
