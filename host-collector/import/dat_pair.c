// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file does not state the error of its sync. KVM's TSC offset has none; its samples differ only
 * if the offset changed. Round trips have one that the samples show by contradicting each other:
 * all vCPUs of a guest read one clock. The samples can agree by chance, so the bound has a floor.
 */
#include "host-collector/import/dat_pair.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A comparison with known TSC offsets showed errors of up to 163 us. */
static const uint64_t round_trip_error_ns = 200000;
static const uint64_t unknown_error_ns = 1000000, second_ns = 1000000000;

static bool counts_tsc(const struct dat_options *o)
{
	return !strcmp(o->clock, "x86-tsc") || !strcmp(o->clock, "tsc2nsec");
}

static bool tsc_factors_differ(const struct dat_options *a, const struct dat_options *b)
{
	if (a->tsc_known != b->tsc_known)
		return true;
	return a->tsc_known && (a->tsc_mult != b->tsc_mult || a->tsc_shift != b->tsc_shift ||
				a->tsc_offset != b->tsc_offset);
}

/* Units of the clock in ns. Saturates. */
static uint64_t ns_of(const struct dat_options *guest, uint64_t units, uint64_t tick_hz)
{
	unsigned __int128 ns = units;

	if (guest->tsc_known && guest->tsc_mult && guest->tsc_shift < 64)
		ns = (ns * guest->tsc_mult >> guest->tsc_shift) + 1;
	else if (counts_tsc(guest))
		ns = ns * second_ns / tick_hz + 1;
	return ns > INT64_MAX ? INT64_MAX : (uint64_t)ns;
}

static uint64_t error_of(const struct dat_pair *pair, const struct dat_options *guest,
			 uint64_t tick_hz)
{
	bool compared;
	const uint64_t spread = ns_of(guest, dat_sync_spread(&guest->sync, &compared), tick_hz);
	uint64_t floor = unknown_error_ns;

	if (!pair->measured && counts_tsc(guest))
		floor = 0;
	else if (pair->measured && compared)
		floor = round_trip_error_ns;
	return spread > floor ? spread : floor;
}

/* Whether libtracecmd converts the times of this file correctly. */
static const char *sync_fault(const struct dat_options *guest, uint64_t tick_hz)
{
	if (guest->sync.scaled)
		return "the guest's TSC is scaled, and trace-cmd converts such times wrongly";
	if (guest->has_instances)
		return "it holds several buffers, and libtracecmd converts only the main one";
	if (guest->n_cpus > guest->sync.n_cpus)
		return "its sync covers fewer CPUs than it has";
	if (counts_tsc(guest) && !guest->tsc_known && !tick_hz)
		return "its stamps are ticks of the TSC: give their rate with --tsc-hz N";
	return NULL;
}

static int sync_check(struct dat_pair *out, const struct dat_options *host,
		      const struct dat_options *guest, uint64_t tick_hz, char *why,
		      size_t why_bytes)
{
	const char *fault = sync_fault(guest, tick_hz);

	if (fault) {
		snprintf(why, why_bytes, "its sync with the host cannot be used: %s", fault);
		return -EINVAL;
	}
	if (host && host->trace_id_known && host->trace_id != guest->sync.peer_id) {
		snprintf(why, why_bytes,
			 "was recorded with another host trace: its sync is with 0x%" PRIx64
			 ", and the host's file is 0x%" PRIx64,
			 guest->sync.peer_id, host->trace_id);
		return -EINVAL;
	}
	if (host && host->clock[0] && guest->clock[0] && strcmp(host->clock, guest->clock)) {
		snprintf(why, why_bytes,
			 "its stamps are of the clock %s, those of the host's file are of %s",
			 guest->clock, host->clock);
		return -EINVAL;
	}
	if (host && tsc_factors_differ(host, guest)) {
		snprintf(why, why_bytes,
			 "converts ticks of the TSC by other factors than the host's file");
		return -EINVAL;
	}
	out->synced = true;
	out->measured = guest->sync.interpolated;
	out->unchecked = !host || !host->trace_id_known;
	out->err_ns = error_of(out, guest, tick_hz);
	return 0;
}

static bool has_threads(const struct dat_guest *g)
{
	for (size_t i = 0; i < g->n; i++) {
		if (g->tids[i])
			return true;
	}
	return false;
}

static int guest_find(struct dat_pair *out, const struct dat_options *host,
		      const struct dat_options *guest, char *why, size_t why_bytes)
{
	for (size_t i = 0; i < host->n_guests && guest->trace_id_known; i++) {
		if (host->guests[i].trace_id == guest->trace_id)
			out->guest = &host->guests[i];
	}
	if (!out->guest) {
		snprintf(why, why_bytes,
			 "its trace id 0x%" PRIx64 " is none of the %zu guest%s of the host's "
			 "file: give its vCPU threads with --vcpu TID=INDEX",
			 guest->trace_id, host->n_guests, host->n_guests == 1 ? "" : "s");
		return -EINVAL;
	}
	if (!has_threads(out->guest)) {
		snprintf(why, why_bytes,
			 "the host's file does not say which threads its vCPUs are: give them "
			 "with --vcpu TID=INDEX");
		return -EINVAL;
	}
	return 0;
}

int dat_pair_find(struct dat_pair *out, const struct dat_options *host,
		  const struct dat_options *guest, const struct dat_pair_options *options,
		  char *why, size_t why_bytes)
{
	int err = 0;

	memset(out, 0, sizeof(*out));
	if (guest->sync.present)
		err = sync_check(out, host, guest, options->tick_hz, why, why_bytes);
	if (!err && host && host->n_guests && !options->vcpus_stated)
		err = guest_find(out, host, guest, why, why_bytes);
	return err;
}
