/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulated guests whose vCPUs have TSCs of their own, as after a restore that writes each vCPU's
 * TSC separately. The guest's CLOCK_MONOTONIC comes from kvmclock (each vCPU's line is a little
 * off the others', and no reading is smaller than one before it on another vCPU) or from the TSCs
 * (a vCPU whose TSC is behind the timekeeper's reads what the timekeeper read last). A stamp is
 * what the guest's sender makes of a reading on one vCPU with samples that it read on others. The
 * true host TSC of each must lie in the interval of vm_clock.h, with the vCPU of the samples given
 * and without. With it, the interval must be no wider than the vCPUs' kvmclocks are apart.
 *
 * `--full` or VCPUSCOPE_TEST_FULL=1: 2 * 10^6 guests; `--guests N [FIRST]`: N. A failure names its
 * guest.
 */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/timeline/vm_clock.h"

enum { VCPUS_MAX = 8, STAMPS = 24, TRIPS = 4 };

#define SECOND 2500000000ull
#define MUL    3435973836u /* with shift -1: 2.5 GHz */
#define SHIFT  (-1)

struct world {
	uint64_t random;
	uint32_t n_vcpus;
	struct tsc_scaling tsc[VCPUS_MAX];
	struct pvclock line[VCPUS_MAX];
	uint64_t behind[VCPUS_MAX]; /* guest ticks behind the first one */
	uint64_t apart, lines_apart_ns;
	uint64_t began; /* host TSC */
	bool lines_known;
};

static uint64_t next(struct world *w)
{
	uint64_t z = (w->random += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t below(struct world *w, uint64_t n)
{
	return n ? next(w) % n : 0;
}

static uint64_t tsc_at(const struct world *w, uint32_t vcpu, uint64_t host)
{
	return tsc_scaling_to_guest(&w->tsc[vcpu], (struct host_tsc){host}).ticks;
}

static void world_make(struct world *w, uint64_t seed)
{
	const bool scaled = (memset(w, 0, sizeof(*w)), w->random = seed, below(w, 4) == 0);
	const uint64_t lead = 0 - below(w, 1000 * SECOND);
	const uint64_t most_ns = 1ull << below(w, 20);
	uint64_t most = 1ull << below(w, 34), anchor;

	w->n_vcpus = 2 + (uint32_t)below(w, VCPUS_MAX - 1);
	w->began = 2000 * SECOND + below(w, 1000 * SECOND);
	w->lines_known = below(w, 8) != 0;
	for (uint32_t v = 0; v < w->n_vcpus; v++) {
		w->behind[v] = below(w, 3) ? below(w, most) : 0;
	}
	if (w->behind[1] == w->behind[0])
		w->behind[1]++;
	/* Some vCPU is ahead, and not always the first. */
	for (uint32_t v = 0; v < w->n_vcpus; v++)
		most = w->behind[v] < most ? w->behind[v] : most;
	anchor = w->began + SECOND / 1000;
	for (uint32_t v = 0; v < w->n_vcpus; v++) {
		const uint64_t off_ns = below(w, most_ns);

		w->behind[v] -= most;
		w->apart = w->behind[v] > w->apart ? w->behind[v] : w->apart;
		w->tsc[v] = (struct tsc_scaling){
			.ratio = scaled ? 234562480592213 : 0,
			.frac_bits = scaled ? TSC_FRAC_BITS_VMX : 0,
			.offset = lead - w->behind[v],
		};
		w->line[v] = (struct pvclock){.tsc_timestamp = tsc_at(w, v, anchor),
					      .system_time = 5000000000 + off_ns,
					      .mul = MUL,
					      .shift = SHIFT};
	}
}

static uint64_t kvmclock_at(const struct world *w, uint32_t vcpu, uint64_t host)
{
	return pvclock_from_tsc(&w->line[vcpu], (struct guest_tsc){tsc_at(w, vcpu, host)}).ns;
}

/* What the host shows of the guest: one vCPU after another. */
static struct vm_clock *clock_learn(struct world *w)
{
	struct vm_clock *c = vm_clock_new();
	uint64_t least = UINT64_MAX, most = 0;
	int err = c ? 0 : -1;

	for (uint32_t v = 0; v < w->n_vcpus && !err; v++) {
		const struct message_vm_clock m = {
			.vcpu = v,
			.source = VM_CLOCK_VCPU,
			.from_max = w->began,
			.tsc = {.known = true,
				.scaling_known = true,
				.frac_bits = w->tsc[v].frac_bits,
				.ratio = w->tsc[v].ratio,
				.offset = w->tsc[v].offset},
		};

		err = vm_clock_learn(c, &m);
	}
	for (uint32_t v = 0; v < w->n_vcpus && w->lines_known && !err; v++) {
		const uint64_t when = w->began + SECOND / 1000, ns = kvmclock_at(w, v, when);
		const struct message_vm_clock m = {
			.vcpu = v,
			.source = VM_CLOCK_PVCLOCK_UPDATE,
			.from_min = when,
			.from_max = when,
			.pvclock = {.known = true,
				    .tsc_timestamp = w->line[v].tsc_timestamp,
				    .system_time = w->line[v].system_time,
				    .mul = MUL,
				    .shift = SHIFT},
		};

		least = ns < least ? ns : least;
		most = ns > most ? ns : most;
		err = vm_clock_learn(c, &m);
	}
	w->lines_apart_ns = most - least;
	for (int i = 0; i < TRIPS && !err; i++) {
		const uint64_t sent = w->began + SECOND + below(w, SECOND);
		const uint64_t there = below(w, SECOND / 1000), back = below(w, SECOND / 1000);
		const struct echo_observation o = {
			.sent = {sent},
			.guest_received = tsc_at(w, (uint32_t)below(w, w->n_vcpus), sent + there),
			.guest_sent = tsc_at(w, (uint32_t)below(w, w->n_vcpus), sent + there),
			.received = {sent + there + back},
		};

		vm_clock_observe(c, &o);
	}
	if (err)
		vm_clock_free(c);
	return err ? NULL : c;
}

/* A stamp of the moment `host`, by a guest on kvmclock; the samples are all of vCPU `by`. */
static uint64_t stamp_by_kvmclock(struct world *w, uint64_t host, uint32_t by)
{
	uint64_t ns = kvmclock_at(w, (uint32_t)below(w, w->n_vcpus), host), span;
	struct guest_tsc tsc = {0};

	/* Another vCPU may have read a later value already. */
	if (below(w, 2)) {
		const uint64_t other = kvmclock_at(w, (uint32_t)below(w, w->n_vcpus), host);

		ns = other > ns ? other : ns;
	}
	pvclock_to_tsc(&w->line[by], (struct kvmclock_ns){ns}, &tsc, &span);
	return tsc.ticks;
}

static uint64_t between(struct world *w, uint64_t from, uint64_t to)
{
	return from + below(w, to - from + 1);
}

/* The same by a guest whose clocks come from the TSCs: what it reads is its own TSC, or the
 * timekeeper's last. So are its samples, which pair that with their own vCPU's. */
static uint64_t stamp_by_tsc(struct world *w, uint64_t host)
{
	const uint32_t reads = (uint32_t)below(w, w->n_vcpus), by = (uint32_t)below(w, w->n_vcpus);
	const uint64_t lead = tsc_at(w, 0, host) + w->behind[0];
	const uint64_t read = between(w, lead - w->behind[reads], lead);
	const uint64_t shown = between(w, lead - w->behind[by], lead);

	return read - (shown - (lead - w->behind[by]));
}

static uint64_t ticks_of(uint64_t ns)
{
	return (uint64_t)ceil((double)ns / ldexp(MUL, SHIFT - 32));
}

/* Whether the interval of `stamp` has `host`, and is as narrow as it must be. */
static const char *interval_check(const struct world *w, const struct vm_clock *c, uint32_t vcpu,
				  uint64_t stamp, uint64_t host)
{
	static const struct vm_clock_window always = {0, UINT64_MAX};
	const uint64_t lines = w->lines_known ? ticks_of(w->lines_apart_ns + 3) : w->apart;
	const double host_per_guest = w->tsc[0].frac_bits ? 0x1p48 / (double)w->tsc[0].ratio : 1;
	uint64_t span, most = vcpu == VM_CLOCK_ANY_VCPU ? 2 * (w->apart + lines) : 2 * lines;
	struct host_tsc first;

	if (!w->lines_known && vcpu != VM_CLOCK_ANY_VCPU)
		most = 2 * (w->apart + lines);
	if (vm_clock_to_host(c, &always, vcpu, (struct guest_tsc){stamp}, &first, &span) !=
	    VM_CLOCK_PROVEN)
		return "not proven";
	if (host < first.ticks || host > first.ticks + span)
		return "the truth is outside";
	if ((double)span > (double)(most + 4) * host_per_guest + 2)
		return "too wide";
	return NULL;
}

static const char *back_check(const struct vm_clock *c, uint64_t stamp, uint64_t host)
{
	struct guest_tsc first;
	uint64_t span;

	if (!vm_clock_to_guest(c, (struct host_tsc){host}, &first, &span))
		return "no guest TSC";
	return stamp - first.ticks <= span ? NULL : "the stamp is outside";
}

static const char *guest_check(uint64_t seed)
{
	struct vm_clock_summary sum;
	const char *wrong = NULL;
	struct vm_clock *c;
	struct world w;

	world_make(&w, seed);
	c = clock_learn(&w);
	if (!c)
		return "out of memory";
	vm_clock_summarise(c, &sum);
	if (sum.apart != w.apart || sum.epochs != 1 || sum.contested)
		wrong = "the epoch";
	for (int i = 0; i < STAMPS && !wrong; i++) {
		const uint64_t host = w.began + 3 * SECOND + below(&w, 10 * SECOND);
		const uint32_t by = (uint32_t)below(&w, w.n_vcpus);
		const bool kvmclock = w.lines_known && i % 2;
		const uint64_t stamp =
			kvmclock ? stamp_by_kvmclock(&w, host, by) : stamp_by_tsc(&w, host);

		if (kvmclock)
			wrong = interval_check(&w, c, by, stamp, host);
		if (!wrong)
			wrong = interval_check(&w, c, VM_CLOCK_ANY_VCPU, stamp, host);
		if (!wrong)
			wrong = back_check(c, stamp, host);
	}
	vm_clock_free(c);
	return wrong;
}

int main(int argc, char **argv)
{
	const char *full = getenv("VCPUSCOPE_TEST_FULL");
	uint64_t n = 20000, first = 0;

	if ((argc == 2 && !strcmp(argv[1], "--full")) || (full && !strcmp(full, "1")))
		n = 2000000;
	if (argc >= 3 && !strcmp(argv[1], "--guests"))
		n = strtoull(argv[2], NULL, 10);
	if (argc == 4)
		first = strtoull(argv[3], NULL, 10);
	for (uint64_t i = first; i < first + n; i++) {
		const char *wrong = guest_check(i * 0x2545f4914f6cdd1du);

		if (wrong) {
			fprintf(stderr, "guest %" PRIu64 ": not so: %s\n", i, wrong);
			return 1;
		}
	}
	printf("%" PRIu64 " guests with vCPUs apart: each interval has the truth\n", n);
	return 0;
}
