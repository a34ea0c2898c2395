/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compares conversions with random parameters with a reference in 256-bit integers that shares no
 * code with them: schoolbook multiplication, division by shifting and subtracting, magnitudes with
 * a sign. Conversions in both directions must be equal to it bit for bit, and a conversion there
 * and back must stay within the stated span. The same holds for `clock eval` and for vm_clock,
 * which converts recordings.
 *
 * `--full` or VCPUSCOPE_TEST_FULL=1: 10^7 parameter sets; `--sets N`: N. A failure prints its set.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/eval.h"
#include "host-collector/timeline/vm_clock.h"

/* ---- the reference ---- */

enum { LIMBS = 8 };

struct wide {
	uint32_t limb[LIMBS]; /* least first */
};

static struct wide wide_of(uint64_t v)
{
	return (struct wide){{(uint32_t)v, (uint32_t)(v >> 32)}};
}

static struct wide wide_add(struct wide a, struct wide b)
{
	uint64_t carry = 0;

	for (int i = 0; i < LIMBS; i++) {
		carry += (uint64_t)a.limb[i] + b.limb[i];
		a.limb[i] = (uint32_t)carry;
		carry >>= 32;
	}
	return a;
}

static struct wide wide_times(struct wide a, struct wide b)
{
	struct wide product = {{0}};

	for (int i = 0; i < LIMBS; i++) {
		uint64_t carry = 0;

		for (int j = 0; i + j < LIMBS; j++) {
			carry += (uint64_t)a.limb[i] * b.limb[j] + product.limb[i + j];
			product.limb[i + j] = (uint32_t)carry;
			carry >>= 32;
		}
	}
	return product;
}

static struct wide wide_left(struct wide a, unsigned int bits)
{
	struct wide out = {{0}};

	for (int i = LIMBS - 1; i >= (int)(bits / 32); i--) {
		int from = i - (int)(bits / 32);
		uint64_t both = (uint64_t)a.limb[from] << 32 | (from ? a.limb[from - 1] : 0);

		out.limb[i] = (uint32_t)(both << bits % 32 >> 32);
	}
	return out;
}

static struct wide wide_right(struct wide a, unsigned int bits)
{
	struct wide out = {{0}};

	for (int i = 0; i + (int)(bits / 32) < LIMBS; i++) {
		int from = i + (int)(bits / 32);
		uint64_t both =
			(from + 1 < LIMBS ? (uint64_t)a.limb[from + 1] << 32 : 0) | a.limb[from];

		out.limb[i] = (uint32_t)(both >> bits % 32);
	}
	return out;
}

static int wide_compare(const struct wide *a, const struct wide *b)
{
	for (int i = LIMBS - 1; i >= 0; i--) {
		if (a->limb[i] != b->limb[i])
			return a->limb[i] < b->limb[i] ? -1 : 1;
	}
	return 0;
}

static void wide_subtract(struct wide *a, const struct wide *b)
{
	int64_t borrow = 0;

	for (int i = 0; i < LIMBS; i++) {
		borrow += (int64_t)a->limb[i] - b->limb[i];
		a->limb[i] = (uint32_t)borrow;
		borrow >>= 32;
	}
}

static int wide_top_bit(const struct wide *a)
{
	for (int bit = LIMBS * 32 - 1; bit >= 0; bit--) {
		if (a->limb[bit / 32] >> bit % 32 & 1)
			return bit;
	}
	return -1;
}

/* a / b, rounded down or up. */
static struct wide wide_divide(struct wide a, struct wide b, bool up)
{
	struct wide q = {{0}};
	const struct wide none = {{0}};

	for (int bit = wide_top_bit(&a) - wide_top_bit(&b); bit >= 0; bit--) {
		struct wide part = wide_left(b, (unsigned int)bit);

		if (wide_compare(&a, &part) >= 0) {
			wide_subtract(&a, &part);
			q.limb[bit / 32] |= 1u << bit % 32;
		}
	}
	return up && wide_compare(&a, &none) ? wide_add(q, wide_of(1)) : q;
}

static struct wide wide_shift_divide(struct wide a, unsigned int bits, bool up)
{
	struct wide q = wide_right(a, bits), back = wide_left(q, bits);

	return up && wide_compare(&a, &back) ? wide_add(q, wide_of(1)) : q;
}

static uint64_t wide_low(const struct wide *a)
{
	return (uint64_t)a->limb[1] << 32 | a->limb[0];
}

static bool wide_fits(const struct wide *a, int bits)
{
	return wide_top_bit(a) < bits;
}

/* A signed number as sign and magnitude. */
struct number {
	bool negative;
	struct wide magnitude;
};

static struct number number_of_delta(uint64_t a, uint64_t b)
{
	uint64_t d = a - b;

	return d >> 63 ? (struct number){true, wide_of(0 - d)} : (struct number){false, wide_of(d)};
}

static uint64_t number_low(const struct number *n)
{
	uint64_t low = wide_low(&n->magnitude);

	return n->negative ? 0 - low : low;
}

static bool number_fits_s64(const struct number *n)
{
	const struct wide limit = wide_of(1ull << 63);
	int order = wide_compare(&n->magnitude, &limit);

	return order < 0 || (order == 0 && n->negative);
}

/* floor(n * mul / 2^shift), shift also negative. */
static struct number number_scale(struct number n, uint32_t mul, int shift)
{
	n.magnitude = wide_times(n.magnitude, wide_of(mul));
	n.magnitude = shift < 0 ? wide_left(n.magnitude, (unsigned int)-shift)
				: wide_shift_divide(n.magnitude, (unsigned int)shift, n.negative);
	return n;
}

/* The least d with floor(d * mul / 2^shift) >= n. */
static struct number number_unscale(struct number n, uint32_t mul, unsigned int shift)
{
	n.magnitude = wide_divide(wide_left(n.magnitude, shift), wide_of(mul), !n.negative);
	return n;
}

static struct number number_next(struct number n)
{
	const struct wide one = wide_of(1);

	if (!n.negative) {
		n.magnitude = wide_add(n.magnitude, one);
	} else {
		wide_subtract(&n.magnitude, &one);
		n.negative = wide_top_bit(&n.magnitude) >= 0;
	}
	return n;
}

/* ---- random parameters ---- */

static uint64_t next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

/* All magnitudes alike, not only the large ones. */
static uint64_t any(uint64_t *state)
{
	return next(state) >> next(state) % 64;
}

struct named_ratio {
	const char *name;
	uint32_t guest_khz, host_khz, frac_bits;
};

static const struct named_ratio named_ratios[] = {
	{"Intel 3.0 -> 2.5 GHz", 2500000, 3000000, TSC_FRAC_BITS_VMX},
	{"AMD 2.6 -> 2.5 GHz", 2500000, 2600000, TSC_FRAC_BITS_SVM},
	{"Intel 2.5 -> 3.0 GHz", 3000000, 2500000, TSC_FRAC_BITS_VMX},
	{"AMD 2.5 -> 2.6 GHz", 2600000, 2500000, TSC_FRAC_BITS_SVM},
};

static struct tsc_scaling random_scaling(uint64_t *state)
{
	struct tsc_scaling s = {.offset = next(state)};
	const struct named_ratio *named = &named_ratios[next(state) % 4];

	switch (next(state) % 4) {
	case 0: /* as kvm_set_tsc_khz() works it out */
		s.frac_bits = named->frac_bits;
		s.ratio = (uint64_t)(((unsigned __int128)1 << s.frac_bits) * named->guest_khz /
				     named->host_khz);
		break;
	case 1:
		break;
	case 2:
		s.frac_bits = next(state) % 2 ? TSC_FRAC_BITS_VMX : TSC_FRAC_BITS_SVM;
		s.ratio = (1ull << s.frac_bits) / 4 + next(state) % (4ull << s.frac_bits);
		break;
	default:
		s.frac_bits = 1 + (uint32_t)(next(state) % 63);
		s.ratio = any(state) | 1;
		break;
	}
	return s;
}

static struct pvclock random_pvclock(uint64_t *state, uint64_t near_tsc)
{
	bool wild = next(state) % 4 == 0;

	return (struct pvclock){
		.tsc_timestamp = next(state) % 2 ? near_tsc - any(state) : near_tsc + any(state),
		.system_time = next(state) >> (wild ? 0 : 8),
		.mul = wild ? (uint32_t)any(state) | 1 : (uint32_t)next(state) | 0x80000000u,
		.shift = (int8_t)(wild ? (int)(next(state) % 63) - 31 : (int)(next(state) % 6) - 3),
	};
}

/* ---- the properties ---- */

#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return #condition;                                                         \
	} while (0)

static const char *scaling_check(const struct tsc_scaling *s, uint64_t host)
{
	struct wide scaled = wide_of(host), first, end;
	struct guest_tsc guest = tsc_scaling_to_guest(s, (struct host_tsc){host});
	struct host_tsc got;
	uint64_t span;
	bool found;

	if (s->frac_bits)
		scaled = wide_shift_divide(wide_times(scaled, wide_of(s->ratio)), s->frac_bits,
					   false);
	REQUIRE(guest.ticks == wide_low(&scaled) + s->offset);

	/* The way back, of that value modulo 2^64 */
	scaled = wide_of(wide_low(&scaled));
	first = scaled;
	end = wide_add(scaled, wide_of(1));
	if (s->frac_bits) {
		first = wide_divide(wide_left(first, s->frac_bits), wide_of(s->ratio), true);
		end = wide_divide(wide_left(end, s->frac_bits), wide_of(s->ratio), true);
	}
	found = tsc_scaling_to_host(s, guest, &got, &span);
	REQUIRE(found == wide_fits(&first, 64));
	if (!found)
		return NULL;
	REQUIRE(got.ticks == wide_low(&first));
	if (!wide_fits(&end, 64))
		end = wide_left(wide_of(1), 64);
	wide_subtract(&end, &first);
	REQUIRE(span == (wide_top_bit(&end) < 0 ? 0 : wide_low(&end) - 1));
	if (s->frac_bits && !(s->ratio >> s->frac_bits))
		REQUIRE(got.ticks <= host && host - got.ticks <= span);
	if (!s->frac_bits)
		REQUIRE(got.ticks == host && span == 0);
	return NULL;
}

static const char *pvclock_check(const struct pvclock *p, uint64_t tsc, bool *wrapped)
{
	struct number d = number_of_delta(tsc, p->tsc_timestamp), ns, first, end;
	struct kvmclock_ns got = pvclock_from_tsc(p, (struct guest_tsc){tsc});
	struct guest_tsc back;
	uint64_t span;
	bool found;

	/* first the shift, rounded, then the product, rounded: not one scaling */
	d = number_scale(d, 1, -p->shift);
	ns = number_scale(d, p->mul, 32);
	REQUIRE(got.ns == p->system_time + number_low(&ns));
	*wrapped = !number_fits_s64(&ns);
	if (*wrapped)
		return NULL;

	first = number_unscale(ns, p->mul, 32);
	end = number_unscale(number_next(ns), p->mul, 32);
	if (p->shift < 0) {
		first.magnitude = wide_left(first.magnitude, (unsigned int)-p->shift);
		end.magnitude = wide_left(end.magnitude, (unsigned int)-p->shift);
	} else {
		first = number_unscale(first, 1, 0);
		first.magnitude =
			wide_shift_divide(first.magnitude, (unsigned int)p->shift, !first.negative);
		end.magnitude =
			wide_shift_divide(end.magnitude, (unsigned int)p->shift, !end.negative);
	}
	found = pvclock_to_tsc(p, got, &back, &span);
	REQUIRE(found == (number_fits_s64(&first) && number_fits_s64(&end)));
	if (!found)
		return NULL;
	REQUIRE(back.ticks == p->tsc_timestamp + number_low(&first));
	REQUIRE(span == (number_low(&end) == number_low(&first)
				 ? 0
				 : number_low(&end) - number_low(&first) - 1));
	REQUIRE(tsc - back.ticks <= span);
	return NULL;
}

static const char *eval_check(const struct clock_params *p, uint64_t host)
{
	const struct clock_eval_request ahead = {*p, CLOCK_EVAL_HOST_TSC, CLOCK_EVAL_FIRST, host};
	struct guest_tsc guest = tsc_scaling_to_guest(&p->scaling, (struct host_tsc){host});
	struct kvmclock_ns ns = pvclock_from_tsc(&p->pvclock, guest);
	const struct clock_eval_request back = {*p, CLOCK_EVAL_KVMCLOCK, CLOCK_EVAL_FIRST, ns.ns};
	uint64_t scaled = guest.ticks - p->scaling.offset, span;
	struct clock_eval_result found = {0};
	/* pvclock_check() has established that this is as it should be. */
	bool known = pvclock_to_tsc(&p->pvclock, ns, &guest, &span);
	/* Nor does it have to distinguish the last ticks before 2^64 from the first. */
	bool passes_top = scaled + span < scaled;

	REQUIRE(!clock_eval(&ahead, &found) && found.kvmclock.ns == ns.ns);
	REQUIRE(!clock_eval(&back, &found) == known);
	REQUIRE(!known || passes_top || host - found.host.ticks <= found.span_ticks);
	return NULL;
}

/* A vm_clock that has learned `p` of vCPU 0, and that a round trip at `host` has confirmed. */
static struct vm_clock *engine_new(const struct clock_params *p, uint64_t host)
{
	const struct message_vm_clock tsc = {
		.source = VM_CLOCK_DEBUGFS,
		.tsc = {.known = true,
			.scaling_known = true,
			.frac_bits = p->scaling.frac_bits,
			.offset = p->scaling.offset,
			.ratio = p->scaling.ratio},
	};
	const struct message_vm_clock line = {
		.source = VM_CLOCK_PVCLOCK_UPDATE,
		.pvclock = {.known = true,
			    .tsc_timestamp = p->pvclock.tsc_timestamp,
			    .system_time = p->pvclock.system_time,
			    .mul = p->pvclock.mul,
			    .shift = p->pvclock.shift},
	};
	const uint64_t guest = tsc_scaling_to_guest(&p->scaling, (struct host_tsc){host}).ticks;
	const struct echo_observation o = {{host}, guest, guest, {host}};
	struct vm_clock *c = vm_clock_new();

	if (c && (vm_clock_learn(c, &tsc) || vm_clock_learn(c, &line))) {
		vm_clock_free(c);
		return NULL;
	}
	if (c)
		vm_clock_observe(c, &o);
	return c;
}

/* What recordings are converted with gives the exact values that the checks before this one
 * compared with the reference. */
static const char *engine_check(const struct clock_params *p, uint64_t host)
{
	static const struct vm_clock_window always = {0, UINT64_MAX};
	const struct guest_tsc guest = tsc_scaling_to_guest(&p->scaling, (struct host_tsc){host});
	struct vm_clock *c = engine_new(p, host);
	const char *wrong = NULL;
	struct host_tsc at, want;
	struct kvmclock_ns ns;
	struct guest_tsc back;
	uint64_t span, want_span;
	bool found = tsc_scaling_to_host(&p->scaling, guest, &want, &want_span);

	if (!c)
		wrong = "engine_new()";
	else if ((vm_clock_to_host(c, &always, VM_CLOCK_ANY_VCPU, guest, &at, &span) ==
		  VM_CLOCK_PROVEN) != found)
		wrong = "vm_clock_to_host()";
	else if (found && (at.ticks != want.ticks || span != want_span))
		wrong = "at.ticks == want.ticks && span == want_span";
	else if (!vm_clock_to_guest(c, (struct host_tsc){host}, &back, &span) ||
		 back.ticks != guest.ticks)
		wrong = "vm_clock_to_guest()";
	else if (!vm_clock_kvmclock(c, 0, (struct host_tsc){host}, guest, &ns) ||
		 ns.ns != pvclock_from_tsc(&p->pvclock, guest).ns)
		wrong = "vm_clock_kvmclock()";
	vm_clock_free(c);
	return wrong;
}

static const char *set_check(uint64_t *state)
{
	struct clock_params p = {.scaling = random_scaling(state), .has_pvclock = true};
	uint64_t host = next(state) % 3 ? any(state) : next(state) >> 2, guest;
	bool wrapped, unscaled_wraps;
	const char *wrong = scaling_check(&p.scaling, host);
	unsigned __int128 scaled = host;

	if (wrong)
		return wrong;
	guest = tsc_scaling_to_guest(&p.scaling, (struct host_tsc){host}).ticks;
	p.pvclock = random_pvclock(state, guest);
	wrong = pvclock_check(&p.pvclock, guest, &wrapped);
	if (wrong)
		return wrong;
	if (p.scaling.frac_bits)
		scaled = scaled * p.scaling.ratio >> p.scaling.frac_bits;
	/* A clock that has passed 2^64 reads one value twice. */
	unscaled_wraps = scaled >> 64 != 0;
	if (!wrapped && !unscaled_wraps &&
	    llabs((int64_t)(guest - p.pvclock.tsc_timestamp)) < 1ll << 62) {
		wrong = eval_check(&p, host);
		if (wrong)
			return wrong;
	}
	return engine_check(&p, host);
}

static uint64_t sets_wanted(int argc, char **argv)
{
	const char *full = getenv("VCPUSCOPE_TEST_FULL");

	if (argc == 3 && !strcmp(argv[1], "--sets"))
		return strtoull(argv[2], NULL, 10);
	if ((argc == 2 && !strcmp(argv[1], "--full")) || (full && !strcmp(full, "1")))
		return 10000000;
	return 200000;
}

int main(int argc, char **argv)
{
	uint64_t sets = sets_wanted(argc, argv);

	for (uint64_t i = 0; i < sets; i++) {
		uint64_t state = i * 0x2545f4914f6cdd1du;
		const char *wrong = set_check(&state);

		if (wrong) {
			fprintf(stderr, "set %llu: not so: %s\n", (unsigned long long)i, wrong);
			return 1;
		}
	}
	printf("%llu parameter sets agree with the 256-bit reference\n", (unsigned long long)sets);
	return 0;
}
