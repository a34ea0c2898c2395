/* SPDX-License-Identifier: GPL-2.0-only */
/* Summarises how a guest's clock is converted, and how precisely. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/timeline/clock_book_internal.h"
#include "proto/recording.h"

static uint64_t host_ticks_to_ns(const struct clock_book *b, uint64_t ticks)
{
	return b->host_hz ? (uint64_t)ceil((double)ticks * 1e9 / (double)b->host_hz) : UINT64_MAX;
}

/* The hypervisor's parameters, where proven, are exact: what remains is a tick of scaling, and how
 * far the vCPUs' TSCs are apart, because a stamp need not say whose it is. */
static void exact_summarise(const struct clock_book *b, const struct guest *vm,
			    struct clock_book_summary *out)
{
	struct vm_clock_summary exact;
	uint64_t apart_ns;

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
	apart_ns = exact.apart ? clock_book_apart_ns(b, vm->source) : 0;
	out->err_ns = 1 + apart_ns;
}

/* How far the exact map is from the middle of echo's interval, at stream time `at`. */
static void exact_compare(const struct clock_book *b, const struct guest *vm,
			  const struct guest_clock *g, uint64_t at, struct clock_book_summary *out)
{
	struct host_tsc exact, middle;
	uint64_t span, err;

	if (!b->host_hz ||
	    vm_clock_to_host(vm->hypervisor, &g->window, VM_CLOCK_ANY_VCPU, (struct guest_tsc){at},
			     &exact, &span) == VM_CLOCK_SILENT ||
	    !echo_sync_to_host(g->echo, at, &middle, &err))
		return;
	out->compared = true;
	out->exact_from_echo_ns =
		(int64_t)((double)(int64_t)(exact.ticks + span / 2 - middle.ticks) * 1e9 /
			  (double)b->host_hz);
}

void clock_book_summarise(const struct clock_book *b, uint32_t source,
			  struct clock_book_summary *out)
{
	const struct guest *vm = clock_guest_find(b, source);
	const struct guest_clock *g = clock_boot_newest(vm);
	struct echo_sync_summary echo;

	*out = (struct clock_book_summary){.method = "none", .err_ns = UINT64_MAX};
	if (vm && vm->hypervisor)
		out->protection = vm_clock_protection(vm->hypervisor);
	if (!g)
		return;
	if (clock_is_stated(b, g)) {
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
	exact_summarise(b, vm, out);
	if (out->observations)
		exact_compare(b, vm, g, echo.newest_guest, out);
}

bool clock_book_echo_epoch(const struct clock_book *b, uint32_t source, size_t i,
			   struct echo_epoch *out)
{
	const struct guest *vm = clock_guest_find(b, source);
	uint32_t boot = vm ? vm->first_boot : 0;

	for (; vm && boot < vm->n_boots; boot++) {
		const struct guest_clock *g = clock_boot_find(vm, boot);
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
	const struct guest *g = clock_guest_find(b, source);

	return g ? g->hypervisor : NULL;
}
