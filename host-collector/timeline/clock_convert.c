/* SPDX-License-Identifier: GPL-2.0-only */
/* Converts stream times to host_ns, and host_ns and stream times to the time of a guest's log. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/timeline/clock_book_internal.h"
#include "proto/recording.h"

enum {
	SPANS_PER_SECOND = 8,
	PAUSES_MAX = (int)STANDSTILLS_MAX > (int)VM_CLOCK_PAUSES_MAX ? (int)STANDSTILLS_MAX
								     : (int)VM_CLOCK_PAUSES_MAX,
	BESIDE_SHARE = 8,       /* a pause explains an error of at least this share of it */
	PAUSE_NS_MIN = 1000000, /* shorter pauses are none for the clocks */
};

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

bool clock_is_stated(const struct clock_book *b, const struct guest_clock *g)
{
	return b->imported && g->hello && g->clock == STREAM_CLOCK_HOST_TSC;
}

/* Host TSC at the guest's stream time. */
static bool boot_to_tsc(const struct clock_book *b, const struct guest *vm,
			const struct guest_clock *g, uint32_t vcpu, uint64_t stream_time,
			struct host_tsc *tsc, uint64_t *err_ticks)
{
	if (clock_is_stated(b, g)) {
		tsc->ticks = stream_time;
		*err_ticks = 0;
		return true;
	}
	return guest_clock_to_tsc(g, vm->hypervisor, b->host_hz, vcpu, stream_time, tsc, err_ticks);
}

bool clock_book_knows(const struct clock_book *b, uint32_t source, uint32_t boot)
{
	const struct guest_clock *g;

	if (!b->raw || !b->n_samples)
		return false;
	if (source == VS_SOURCE_HOST)
		return true;
	g = clock_boot_find(clock_guest_find(b, source), boot);
	return g && (clock_is_stated(b, g) || guest_clock_knows(g));
}

bool clock_book_knows_any(const struct clock_book *b, uint32_t source)
{
	const struct guest *g = clock_guest_find(b, source);

	for (uint32_t i = g ? g->first_boot : 0; g && i < g->n_boots; i++) {
		if (clock_book_knows(b, source, i))
			return true;
	}
	return clock_book_knows(b, source, 0);
}

static bool stream_to_ns(const struct clock_book *b, const struct guest *vm,
			 const struct guest_clock *g, uint32_t vcpu, uint64_t stream_time,
			 uint64_t stamp_err, struct host_time *out)
{
	struct host_tsc tsc = {stream_time};
	uint64_t err = 0;

	if (g) {
		if (!boot_to_tsc(b, vm, g, vcpu, stream_time, &tsc, &err))
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
	const struct guest *vm = clock_guest_find(b, source);

	return clock_book_knows(b, source, boot) &&
	       stream_to_ns(b, vm, clock_boot_find(vm, boot), VM_CLOCK_ANY_VCPU, stream_time,
			    stamp_err, out);
}

bool clock_book_host_ns(const struct clock_book *b, uint64_t tsc, struct host_ns *out)
{
	if (!b->raw || !b->n_samples)
		return false;
	*out = host_time_of(b, (struct host_tsc){tsc}, 0).t;
	return in_range(b, out->ns);
}

uint64_t clock_book_apart_ns(const struct clock_book *b, uint32_t source)
{
	const struct guest *vm = clock_guest_find(b, source);
	const struct guest_clock *g = clock_boot_newest(vm);

	if (!g || !g->hz || !guest_clock_is_exact(g, vm->hypervisor))
		return 0;
	return (uint64_t)fmin(ceil((double)vm_clock_apart(vm->hypervisor) * 1e9 / (double)g->hz),
			      (double)HOST_NS_LIMIT);
}

bool clock_book_wall_offset(const struct clock_book *b, struct host_ns t, int64_t *offset_ns)
{
	if (!b->raw || !b->first_sample.tsc || !b->first_sample.realtime_ns)
		return false;
	*offset_ns = (int64_t)(raw_clock_realtime_ns(b->raw, t) - (uint64_t)t.ns);
	return true;
}

bool clock_book_wall_step(const struct clock_book *b, size_t i, struct host_ns *t, int64_t *by_ns)
{
	if (i >= b->n_wall_steps)
		return false;
	*t = b->wall_steps[i].t;
	*by_ns = b->wall_steps[i].by_ns;
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

bool clock_book_map(const struct clock_book *b, uint32_t source, uint32_t boot, uint32_t tsc_cpu,
		    const struct vs_event *events, size_t n, uint64_t stamp_err,
		    struct timeline_event *out)
{
	const struct guest *vm = source == VS_SOURCE_HOST ? NULL : clock_guest_find(b, source);
	const struct guest_clock *g = clock_boot_find(vm, boot);
	uint64_t hz = g ? g->hz : b->host_hz;
	double nominal = hz ? 1e9 / (double)hz : 1; /* ns per tick */
	uint64_t span = hz / SPANS_PER_SECOND;
	uint32_t vcpu = g ? guest_clock_vcpu(g, tsc_cpu) : VM_CLOCK_ANY_VCPU;

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

		if (!stream_to_ns(b, vm, g, vcpu, from, stamp_err, &first))
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
		if (!stream_to_ns(b, vm, g, vcpu, events[end - 1].time, stamp_err, &last))
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

/* Those that the hypervisor's parameters show of this boot. Returns how many. */
static size_t exact_pauses(const struct guest *vm, const struct guest_clock *g,
			   struct vm_clock_pause out[VM_CLOCK_PAUSES_MAX])
{
	size_t n = 0, all = 0;

	/* The lines of one vCPU date a pause in that vCPU's TSC, the stamps may be another's. */
	if (g && guest_clock_is_exact(g, vm->hypervisor) && !vm_clock_apart(vm->hypervisor))
		all = vm_clock_pauses(vm->hypervisor, out);
	for (size_t i = 0; i < all; i++) {
		if (out[i].seen.ticks >= g->window.from && out[i].seen.ticks <= g->window.to)
			out[n++] = out[i];
	}
	return n;
}

/* Whether `t` +- err_ns reaches from begin to end, and is large because of this pause. */
static bool is_beside(const struct clock_book *b, struct host_tsc begin, struct host_tsc end,
		      struct host_ns t, uint64_t err_ns)
{
	int64_t begin_ns = raw_clock_from_tsc(b->raw, begin, 0).t.ns;
	int64_t end_ns = raw_clock_from_tsc(b->raw, end, 0).t.ns;

	return (end_ns - begin_ns) / BESIDE_SHARE <= (int64_t)err_ns &&
	       t.ns + (int64_t)err_ns >= begin_ns && t.ns - (int64_t)err_ns <= end_ns;
}

static bool is_beside_exact_pause(const struct clock_book *b, const struct guest *vm,
				  const struct guest_clock *g, struct host_ns t, uint64_t err_ns)
{
	struct vm_clock_pause all[VM_CLOCK_PAUSES_MAX];
	size_t n = exact_pauses(vm, g, all);

	for (size_t i = 0; i < n; i++) {
		struct host_tsc begin, end;
		uint64_t err;

		if (boot_to_tsc(b, vm, g, VM_CLOCK_ANY_VCPU, all[i].stopped, &begin, &err) &&
		    boot_to_tsc(b, vm, g, VM_CLOCK_ANY_VCPU, all[i].resumed, &end, &err) &&
		    is_beside(b, begin, end, t, err_ns))
			return true;
	}
	return false;
}

bool clock_book_beside_pause(const struct clock_book *b, uint32_t source, struct host_ns t,
			     uint64_t err_ns)
{
	const struct guest *vm = clock_guest_find(b, source);
	size_t n = vm ? standstills_kept(&vm->standstills) : 0;

	if (!vm || err_ns < PAUSE_NS_MIN / BESIDE_SHARE || err_ns > HOST_NS_LIMIT)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (is_beside(b, vm->standstills.spans[i].begin, vm->standstills.spans[i].end, t,
			      err_ns))
			return true;
	}
	for (uint32_t i = vm->first_boot; i < vm->n_boots; i++) {
		if (is_beside_exact_pause(b, vm, clock_boot_find(vm, i), t, err_ns))
			return true;
	}
	return false;
}

bool clock_book_has_pauses(const struct clock_book *b, uint32_t source)
{
	struct vm_clock_pause all[VM_CLOCK_PAUSES_MAX];
	const struct guest *vm = clock_guest_find(b, source);

	if (vm && standstills_kept(&vm->standstills))
		return true;
	for (uint32_t i = vm ? vm->first_boot : 0; vm && i < vm->n_boots; i++) {
		if (exact_pauses(vm, clock_boot_find(vm, i), all))
			return true;
	}
	return false;
}

bool clock_book_pause_between(const struct clock_book *b, uint32_t source, uint32_t boot,
			      uint64_t from, uint64_t until, struct vm_clock_pause *out)
{
	struct vm_clock_pause all[VM_CLOCK_PAUSES_MAX];
	const struct guest *vm = clock_guest_find(b, source);
	size_t n = exact_pauses(vm, clock_boot_find(vm, boot), all), found = 0;

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
		const struct guest_clock *g = clock_boot_find(vm, i);
		struct host_tsc tsc;
		uint64_t err;

		if (!g)
			break;
		if (boot_to_tsc(b, vm, g, VM_CLOCK_ANY_VCPU, stream_time, &tsc, &err) &&
		    tsc.ticks >= g->window.from && tsc.ticks <= g->window.to)
			return g;
	}
	return clock_boot_newest(vm);
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
	const struct guest *vm = clock_guest_find(b, source);
	const struct guest_clock *g = boot_of_stream(b, vm, stream_time);

	return g && boot_dmesg_at(vm, g, stream_time, dmesg_ns, err_ns);
}

bool clock_book_to_tsc(const struct clock_book *b, uint32_t source, uint64_t stream_time,
		       struct host_tsc *tsc, uint64_t *err_ticks)
{
	const struct guest *vm = clock_guest_find(b, source);
	const struct guest_clock *g = boot_of_stream(b, vm, stream_time);

	return g && boot_to_tsc(b, vm, g, VM_CLOCK_ANY_VCPU, stream_time, tsc, err_ticks);
}

bool clock_book_any_to_ns(const struct clock_book *b, uint32_t source, uint64_t stream_time,
			  struct host_time *out)
{
	const struct guest *vm = clock_guest_find(b, source);
	const struct guest_clock *g = boot_of_stream(b, vm, stream_time);

	return g && b->raw && b->n_samples &&
	       stream_to_ns(b, vm, g, VM_CLOCK_ANY_VCPU, stream_time, 0, out);
}

bool clock_book_dmesg_ns(const struct clock_book *b, uint32_t source, struct host_ns t,
			 struct dmesg_time *out)
{
	const struct guest *vm = clock_guest_find(b, source);
	struct host_tsc tsc;

	if (!vm || !b->raw || !b->n_samples)
		return false;
	tsc = raw_clock_to_tsc(b->raw, t);
	/* The oldest boot that had not ended. */
	for (uint32_t boot = vm->first_boot; boot < vm->n_boots; boot++) {
		const struct guest_clock *g = clock_boot_find(vm, boot);
		uint64_t stream, stream_err;

		if (!g || tsc.ticks > g->window.to)
			continue;
		out->boot = boot;
		if (!guest_clock_from_tsc(g, vm->hypervisor, tsc, &stream, &stream_err) ||
		    !boot_dmesg_at(vm, g, stream, &out->ns, &out->err_ns))
			return false;
		if (g->hz)
			out->err_ns +=
				(uint64_t)fmin((double)stream_err * 1e9 / (double)g->hz, 1e18);
		return true;
	}
	return false;
}
