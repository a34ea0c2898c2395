/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that a hypervisor's clock parameters are used only where round trips confirm them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/timeline/vm_clock.h"

#define T0     7000000000000ull
#define SECOND 2500000000ull
#define OFFSET (-6999000000000ll)

static void learn(struct vm_clock *c, enum vm_clock_source source, uint32_t vcpu, int64_t offset,
		  uint64_t from_min, uint64_t from_max)
{
	const struct message_vm_clock m = {
		.vm = 1,
		.vcpu = vcpu,
		.source = source,
		.from_min = from_min,
		.from_max = from_max,
		.tsc = {.known = true,
			.scaling_known = source != VM_CLOCK_WRITE_TSC_OFFSET,
			.offset = (uint64_t)offset},
	};

	assert_int_equal(vm_clock_learn(c, &m), 0);
}

/* A round trip of 100 us at `at`, the guest in the middle of it, by the true offset. */
static void observe(struct vm_clock *c, uint64_t at, int64_t offset)
{
	const struct echo_observation o = {
		.sent = {at},
		.guest_received = at + 120000 + (uint64_t)offset,
		.guest_sent = at + 130000 + (uint64_t)offset,
		.received = {at + 250000},
	};

	vm_clock_observe(c, &o);
}

static const struct vm_clock_window always = {0, UINT64_MAX};

static enum vm_clock_trust trust(const struct vm_clock *c, uint64_t host, int64_t offset)
{
	struct host_tsc first;
	uint64_t span;

	return vm_clock_to_host(c, &always, VM_CLOCK_ANY_VCPU,
				(struct guest_tsc){host + (uint64_t)offset}, &first, &span);
}

static bool converts(const struct vm_clock *c, uint64_t host, int64_t offset)
{
	struct host_tsc first;
	struct guest_tsc guest;
	uint64_t span;

	if (vm_clock_to_host(c, &always, VM_CLOCK_ANY_VCPU,
			     (struct guest_tsc){host + (uint64_t)offset}, &first,
			     &span) != VM_CLOCK_PROVEN)
		return false;
	assert_int_equal(first.ticks, host);
	assert_int_equal(span, 0);
	assert_true(vm_clock_to_guest(c, first, &guest, &span));
	assert_int_equal(guest.ticks, host + (uint64_t)offset);
	return true;
}

static struct vm_clock_summary summary_of(const struct vm_clock *c)
{
	struct vm_clock_summary s;

	vm_clock_summarise(c, &s);
	return s;
}

static void exact_once_a_round_trip_confirms(void **state)
{
	struct vm_clock *c = vm_clock_new();

	(void)state;
	learn(c, VM_CLOCK_VCPU, 0, OFFSET, 0, T0);
	learn(c, VM_CLOCK_DEBUGFS, 0, OFFSET, 0, T0 + 10);
	learn(c, VM_CLOCK_VCPU, 1, OFFSET, 0, T0 + 20);
	assert_false(converts(c, T0 + SECOND, OFFSET));
	observe(c, T0 + SECOND, OFFSET);
	assert_true(converts(c, T0 + SECOND, OFFSET));
	assert_true(converts(c, T0 + 500 * SECOND, OFFSET));
	assert_true(converts(c, T0 - SECOND, OFFSET));
	assert_true(summary_of(c).proven);
	assert_int_equal(summary_of(c).epochs, 1);
	vm_clock_free(c);
}

static void a_contradiction_leaves_nothing_proven(void **state)
{
	struct vm_clock *c = vm_clock_new();

	(void)state;
	/* Out by just more than the delay to or from the guest. */
	for (int side = -1; side <= 1; side += 2) {
		struct vm_clock *lied = vm_clock_new();

		learn(lied, VM_CLOCK_VCPU, 0, OFFSET + side * 125000, 0, T0);
		observe(lied, T0 + SECOND, OFFSET);
		assert_int_equal(summary_of(lied).contradicted, 1);
		assert_false(converts(lied, T0 + SECOND, OFFSET + side * 125000));
		vm_clock_free(lied);
	}
	learn(c, VM_CLOCK_VCPU, 0, OFFSET, 0, T0);
	observe(c, T0 + SECOND, OFFSET);
	observe(c, T0 + 2 * SECOND, OFFSET + 1000000);
	observe(c, T0 + 3 * SECOND, OFFSET);
	assert_int_equal(trust(c, T0 + SECOND, OFFSET), VM_CLOCK_CONTESTED);
	assert_true(vm_clock_contested(c, (struct host_tsc){T0 + SECOND}));
	assert_true(summary_of(c).contested);
	assert_false(summary_of(c).proven);
	vm_clock_free(c);
}

static void a_change_begins_an_epoch_and_excuses_what_was_seen_before_the_news(void **state)
{
	const int64_t later = OFFSET + 40000000;
	struct vm_clock *c = vm_clock_new();
	uint64_t change = T0 + 10 * SECOND;
	struct vm_clock_epoch e;

	(void)state;
	for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
		learn(c, VM_CLOCK_VCPU, vcpu, OFFSET, 0, T0 + vcpu);
	observe(c, T0 + SECOND, OFFSET);
	/* The guest steps; its echo is seen before the collector looks. */
	observe(c, change + SECOND / 10, later);
	assert_int_equal(summary_of(c).contradicted, 1);
	for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
		learn(c, VM_CLOCK_WRITE_TSC_OFFSET, vcpu, later, change + vcpu, change + 1000);
	assert_false(summary_of(c).proven); /* asked for, not seen in force */
	for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
		learn(c, VM_CLOCK_VCPU, vcpu, later, change + vcpu, change + 1000);
	observe(c, change + SECOND, later);
	assert_int_equal(summary_of(c).contradicted, 0);
	assert_int_equal(summary_of(c).epochs, 2);
	assert_true(vm_clock_epoch_get(c, 1, &e));
	assert_int_equal(e.from_min, change + 1);
	assert_int_equal(e.from_max, change + 1000);
	assert_true(converts(c, change - SECOND, OFFSET));
	assert_true(converts(c, change + 2000, later));
	/* In the leap: no instant at all. Around the change: which epoch is not known. */
	assert_int_equal(trust(c, change + 5000, OFFSET), VM_CLOCK_SILENT);
	assert_false(converts(c, change + 500, later));
	vm_clock_free(c);
}

static void a_clock_set_back_is_not_guessed(void **state)
{
	const int64_t back = OFFSET - (int64_t)SECOND;
	struct vm_clock *c = vm_clock_new();
	uint64_t change = T0 + 10 * SECOND;

	(void)state;
	learn(c, VM_CLOCK_DEBUGFS, 0, OFFSET, 0, T0);
	observe(c, T0 + SECOND, OFFSET);
	learn(c, VM_CLOCK_DEBUGFS, 0, back, change, change + 10);
	observe(c, change + SECOND, back);
	assert_int_equal(trust(c, change + SECOND / 2, back), VM_CLOCK_SILENT);
	assert_true(converts(c, change - 2 * SECOND, OFFSET));
	assert_true(converts(c, change + 2 * SECOND, back));
	vm_clock_free(c);
}

/* A reset: the TSC reads again what it read in the boot before, which is another time. */
static void a_window_tells_which_boot_is_meant(void **state)
{
	const int64_t back = OFFSET - 10 * (int64_t)SECOND;
	const uint64_t change = T0 + 10 * SECOND, twice = T0 + 2 * SECOND + (uint64_t)OFFSET;
	const struct vm_clock_window first_boot = {0, change}, second_boot = {change, UINT64_MAX};
	struct vm_clock *c = vm_clock_new();
	struct host_tsc at;
	uint64_t span;

	(void)state;
	learn(c, VM_CLOCK_VCPU, 0, OFFSET, 0, T0);
	observe(c, T0 + SECOND, OFFSET);
	learn(c, VM_CLOCK_VCPU, 0, back, change, change + 10);
	observe(c, change + SECOND, back);
	assert_int_equal(vm_clock_to_host(c, &always, VM_CLOCK_ANY_VCPU, (struct guest_tsc){twice},
					  &at, &span),
			 VM_CLOCK_SILENT);
	assert_int_equal(vm_clock_to_host(c, &first_boot, VM_CLOCK_ANY_VCPU,
					  (struct guest_tsc){twice}, &at, &span),
			 VM_CLOCK_PROVEN);
	assert_int_equal(at.ticks, T0 + 2 * SECOND);
	assert_int_equal(vm_clock_to_host(c, &second_boot, VM_CLOCK_ANY_VCPU,
					  (struct guest_tsc){twice}, &at, &span),
			 VM_CLOCK_PROVEN);
	assert_int_equal(at.ticks, change + 2 * SECOND);
	vm_clock_free(c);
}

static void learn_line(struct vm_clock *c, uint32_t vcpu, int64_t offset, uint64_t at, int late_ns)
{
	const struct message_vm_clock m = {
		.vm = 1,
		.vcpu = vcpu,
		.source = VM_CLOCK_PVCLOCK_UPDATE,
		.from_min = at,
		.from_max = at,
		/* 2.5 GHz */
		.pvclock = {.known = true,
			    .tsc_timestamp = at + (uint64_t)offset,
			    .system_time = 1000000000 - (uint64_t)late_ns,
			    .mul = 3435973836,
			    .shift = -1},
	};

	assert_int_equal(vm_clock_learn(c, &m), 0);
}

static void assert_placed(const struct vm_clock *c, uint32_t vcpu, uint64_t guest, uint64_t first,
			  uint64_t span)
{
	struct host_tsc at;
	uint64_t more;

	assert_int_equal(vm_clock_to_host(c, &always, vcpu, (struct guest_tsc){guest}, &at, &more),
			 VM_CLOCK_PROVEN);
	assert_int_equal(at.ticks, first);
	assert_int_equal(more, span);
}

/* Three vCPUs, the second one 1,000 ticks ahead of the first and the third 500 behind it. */
static void each_vcpu_has_its_own_map(void **state)
{
	static const int64_t offset[] = {OFFSET, OFFSET + 1000, OFFSET - 500};
	const uint64_t at = T0 + 2 * SECOND;
	struct vm_clock *c = vm_clock_new();
	struct vm_clock_epoch e;

	(void)state;
	for (uint32_t vcpu = 0; vcpu < 3; vcpu++)
		learn(c, VM_CLOCK_VCPU, vcpu, offset[vcpu], 0, T0 + vcpu);
	observe(c, T0 + SECOND, OFFSET);
	assert_int_equal(summary_of(c).epochs, 1);
	assert_int_equal(summary_of(c).apart, 1500);
	/* How far the kvmclocks are apart is not known yet: no better than the TSCs. */
	assert_placed(c, 0, at + (uint64_t)OFFSET, at - 1000 - 1500, 2 * (1500 + 1500));
	for (uint32_t vcpu = 0; vcpu < 3; vcpu++)
		learn_line(c, vcpu, offset[vcpu], T0 + 100, vcpu == 1 ? 4 : 0);
	/* 4 ns, each rounded to one: 16 ticks. */
	for (uint32_t vcpu = 0; vcpu < 3; vcpu++)
		assert_placed(c, vcpu, at + (uint64_t)offset[vcpu], at - 16, 32);
	/* Of no vCPU, or of one that nobody knows. */
	assert_placed(c, VM_CLOCK_ANY_VCPU, at + (uint64_t)OFFSET, at - 1016, 2 * (1500 + 16));
	assert_placed(c, 7, at + (uint64_t)OFFSET, at - 1016, 2 * (1500 + 16));
	assert_true(vm_clock_epoch_get(c, 0, &e));
	assert_int_equal(e.n_offsets, 3);
	assert_int_equal(e.tsc.offset, offset[1]);
	vm_clock_free(c);
}

/* The line that a write brings about is seen before the snapshot that shows the write in force. */
static void a_line_seen_before_its_tsc_is_compared_once_that_is_known(void **state)
{
	const uint64_t write = T0 + 2 * SECOND, at = T0 + 5 * SECOND;
	const int64_t later = OFFSET + 5000;
	struct vm_clock *c = vm_clock_new();

	(void)state;
	for (uint32_t vcpu = 0; vcpu < 2; vcpu++) {
		learn(c, VM_CLOCK_VCPU, vcpu, OFFSET, 0, T0);
		learn_line(c, vcpu, OFFSET, T0 + 100, 0);
	}
	learn(c, VM_CLOCK_WRITE_TSC_OFFSET, 1, later, write, write);
	learn_line(c, 1, later, T0 + 100, 0); /* the same time as vCPU 0's */
	learn(c, VM_CLOCK_VCPU, 1, later, write, write);
	observe(c, at, OFFSET);
	assert_placed(c, 1, at + (uint64_t)later, at - 6, 12);
	vm_clock_free(c);
}

/* A round trip that no vCPU can have answered is a contradiction, one that any can is none. */
static void any_vcpu_may_answer_a_round_trip(void **state)
{
	struct vm_clock *c = vm_clock_new();

	(void)state;
	learn(c, VM_CLOCK_VCPU, 0, OFFSET, 0, T0);
	learn(c, VM_CLOCK_VCPU, 1, OFFSET + 1000000, 0, T0);
	observe(c, T0 + SECOND, OFFSET);
	observe(c, T0 + SECOND, OFFSET + 1000000);
	assert_true(summary_of(c).proven);
	observe(c, T0 + SECOND, OFFSET - 150000);
	assert_true(summary_of(c).contested);
	vm_clock_free(c);
}

/* One vCPU after another gets the new offset: between the two they are apart. */
static void vcpus_that_change_one_after_another_are_apart_meanwhile(void **state)
{
	const uint64_t first = T0 + 10 * SECOND, second = T0 + 20 * SECOND;
	const int64_t later = OFFSET + 5000;
	struct vm_clock *c = vm_clock_new();

	(void)state;
	for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
		learn(c, VM_CLOCK_VCPU, vcpu, OFFSET, 0, T0);
	learn(c, VM_CLOCK_VCPU, 0, later, first, first + 100);
	learn(c, VM_CLOCK_VCPU, 1, later, second, second + 100);
	assert_int_equal(summary_of(c).epochs, 3);
	observe(c, T0 + SECOND, OFFSET);
	observe(c, first + SECOND, OFFSET);
	observe(c, second + SECOND, later);
	assert_true(converts(c, T0 + SECOND, OFFSET));
	assert_true(converts(c, second + SECOND, later));
	assert_placed(c, VM_CLOCK_ANY_VCPU, first + SECOND + (uint64_t)OFFSET,
		      first + SECOND - 10000, 20000);
	assert_int_equal(vm_clock_apart(c), 5000);
	assert_int_equal(summary_of(c).apart, 0);
	vm_clock_free(c);

	/* A snapshot that shows both at once dates nothing between them. */
	c = vm_clock_new();
	for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
		learn(c, VM_CLOCK_VCPU, vcpu, OFFSET, 0, T0);
	for (uint32_t vcpu = 0; vcpu < 2; vcpu++)
		learn(c, VM_CLOCK_VCPU, vcpu, later, first, first + 100 + vcpu);
	assert_int_equal(summary_of(c).epochs, 2);
	assert_int_equal(vm_clock_apart(c), 0);
	vm_clock_free(c);
}

static void vcpus_or_sources_that_disagree_prove_nothing(void **state)
{
	struct message_vm_clock scaled = {
		.vm = 1,
		.vcpu = 1,
		.source = VM_CLOCK_VCPU,
		.from_max = T0,
		.tsc = {.known = true,
			.scaling_known = true,
			.ratio = 234562480592213,
			.frac_bits = TSC_FRAC_BITS_VMX,
			.offset = (uint64_t)OFFSET},
	};
	struct vm_clock *c = vm_clock_new();

	(void)state;
	learn(c, VM_CLOCK_VCPU, 0, OFFSET, 0, T0);
	assert_int_equal(vm_clock_learn(c, &scaled), 0);
	observe(c, T0 + SECOND, OFFSET);
	assert_false(converts(c, T0 + SECOND, OFFSET));
	vm_clock_free(c);

	c = vm_clock_new();
	learn(c, VM_CLOCK_VCPU, 0, OFFSET, 0, T0);
	learn(c, VM_CLOCK_DEBUGFS, 0, OFFSET + 5, 0, T0 + 1);
	observe(c, T0 + SECOND, OFFSET);
	assert_false(converts(c, T0 + SECOND, OFFSET));
	assert_int_equal(summary_of(c).vcpus_unsettled, 1);
	vm_clock_free(c);
}

static void a_scaled_guest_converts_to_the_tick(void **state)
{
	const struct tsc_scaling scaling = {.ratio = 234562480592213,
					    .frac_bits = TSC_FRAC_BITS_VMX,
					    .offset = (uint64_t)OFFSET};
	const struct message_vm_clock m = {
		.source = VM_CLOCK_DEBUGFS,
		.from_max = T0,
		.tsc = {true, true, scaling.frac_bits, scaling.offset, scaling.ratio},
	};
	const struct host_tsc at = {T0 + SECOND};
	const struct guest_tsc g = tsc_scaling_to_guest(&scaling, at);
	const struct echo_observation o = {{at.ticks - 100}, g.ticks, g.ticks, {at.ticks + 100}};
	struct vm_clock *c = vm_clock_new();
	struct host_tsc first;
	uint64_t span;

	(void)state;
	assert_int_equal(vm_clock_learn(c, &m), 0);
	vm_clock_observe(c, &o);
	assert_int_equal(vm_clock_to_host(c, &always, VM_CLOCK_ANY_VCPU, g, &first, &span),
			 VM_CLOCK_PROVEN);
	assert_true(first.ticks <= at.ticks && at.ticks <= first.ticks + span);
	assert_true(span <= 1);
	vm_clock_free(c);
}

static void line(struct vm_clock *c, enum vm_clock_source source, uint64_t system_time,
		 uint64_t from_min, uint64_t from_max)
{
	const struct message_vm_clock m = {
		.source = source,
		.from_min = from_min,
		.from_max = from_max,
		.pvclock = {true, -1, 3, 3435973837u, 8, T0 + (uint64_t)OFFSET, system_time},
	};

	assert_int_equal(vm_clock_learn(c, &m), 0);
}

static void kvmclock_needs_the_guests_own_page_to_agree(void **state)
{
	struct vm_clock *c = vm_clock_new();
	struct pvclock page = {T0 + (uint64_t)OFFSET, 1000, 3435973837u, -1, 1};
	const struct guest_tsc guest = {page.tsc_timestamp + SECOND};
	struct vm_clock_line shown;
	struct kvmclock_ns ns;

	(void)state;
	learn(c, VM_CLOCK_VCPU, 0, OFFSET, 0, T0);
	observe(c, T0 + SECOND, OFFSET);
	vm_clock_guest_page(c, &page); /* before the host's word */
	assert_false(summary_of(c).kvmclock);
	line(c, VM_CLOCK_VCPU, 1000, 0, T0);
	line(c, VM_CLOCK_GUEST_PAGE, 1000, 0, T0 + 5);
	assert_true(summary_of(c).kvmclock);
	assert_int_equal(summary_of(c).lines, 1);
	assert_true(vm_clock_line_get(c, 0, &shown));
	assert_true(shown.guest_agrees);
	assert_true(vm_clock_kvmclock(c, 0, (struct host_tsc){T0 + SECOND}, guest, &ns));
	assert_int_equal(ns.ns, 1000 + 1000000000);
	/* A new line: each to its own time, and none at the seam. */
	line(c, VM_CLOCK_PVCLOCK_UPDATE, 5000, T0 + 2 * SECOND, T0 + 3 * SECOND);
	assert_true(vm_clock_kvmclock(c, 0, (struct host_tsc){T0 + SECOND}, guest, &ns));
	assert_int_equal(ns.ns, 1000 + 1000000000);
	assert_false(vm_clock_kvmclock(c, 0, (struct host_tsc){T0 + 2 * SECOND + 1}, guest, &ns));
	assert_true(vm_clock_kvmclock(c, 0, (struct host_tsc){T0 + 3 * SECOND}, guest, &ns));
	assert_int_equal(ns.ns, 5000 + 1000000000);
	assert_false(vm_clock_kvmclock(c, 1, (struct host_tsc){T0}, guest, &ns));
	/* One bit of the guest's page differs. */
	page.mul ^= 1;
	vm_clock_guest_page(c, &page);
	assert_int_equal(summary_of(c).pages_differ, 1);
	assert_false(summary_of(c).kvmclock);
	assert_true(summary_of(c).proven);
	vm_clock_free(c);
}

/* Parameters of vCPU 0: its TSC, and its kvmclock line. */
struct params {
	struct tsc_scaling tsc;
	struct pvclock line;
};

static void params_learn(struct vm_clock *c, const struct params *p, uint64_t from_min,
			 uint64_t from_max)
{
	const struct message_vm_clock tsc = {
		.source = VM_CLOCK_DEBUGFS,
		.from_min = from_min,
		.from_max = from_max,
		.tsc = {true, true, p->tsc.frac_bits, p->tsc.offset, p->tsc.ratio},
	};
	const struct message_vm_clock line = {
		.source = VM_CLOCK_PVCLOCK_UPDATE,
		.from_min = from_min,
		.from_max = from_max,
		.pvclock = {.known = true,
			    .tsc_timestamp = p->line.tsc_timestamp,
			    .system_time = p->line.system_time,
			    .mul = p->line.mul,
			    .shift = p->line.shift,
			    .flags = p->line.flags},
	};

	assert_int_equal(vm_clock_learn(c, &tsc), 0);
	assert_int_equal(vm_clock_learn(c, &line), 0);
}

static const struct params plain = {
	.tsc = {.offset = (uint64_t)-1000000000},
	.line = {500000000, 3000000000, 3435973836, -1, PVCLOCK_TSC_STABLE},
};

/* KVM repeats the values every 300 s, and a pause sets a flag. */
static void a_repetition_of_the_same_values_is_no_change(void **state)
{
	struct vm_clock *c = vm_clock_new();
	struct params p = plain;

	(void)state;
	params_learn(c, &p, 0, T0);
	params_learn(c, &p, T0 + 300 * SECOND, T0 + 300 * SECOND + 10);
	p.line.flags |= PVCLOCK_PAUSED;
	params_learn(c, &p, T0 + 310 * SECOND, T0 + 310 * SECOND + 10);
	assert_int_equal(summary_of(c).epochs, 1);
	assert_int_equal(summary_of(c).lines, 1);
	p.line.system_time += 5;
	params_learn(c, &p, T0 + 320 * SECOND, T0 + 320 * SECOND + 10);
	assert_int_equal(summary_of(c).epochs, 1);
	assert_int_equal(summary_of(c).lines, 2);
	p.tsc.offset += 5;
	params_learn(c, &p, T0 + 330 * SECOND, T0 + 330 * SECOND + 10);
	assert_int_equal(summary_of(c).epochs, 2);
	vm_clock_free(c);
}

/* A protected guest's firmware may have set its TSC: neither agreement nor contradiction counts. */
static void parameters_of_a_protected_guest_prove_and_refute_nothing(void **state)
{
	struct vm_clock *c = vm_clock_new();

	(void)state;
	learn(c, VM_CLOCK_VCPU, 0, OFFSET, 0, T0);
	observe(c, T0 + SECOND, OFFSET);
	assert_true(summary_of(c).proven);
	vm_clock_protect(c, VM_PROTECTION_SEV_SNP);
	assert_int_equal(vm_clock_protection(c), VM_PROTECTION_SEV_SNP);
	assert_false(summary_of(c).proven);
	observe(c, T0 + 2 * SECOND, OFFSET + 1000000);
	assert_int_equal(summary_of(c).contradicted, 1);
	assert_false(summary_of(c).contested);
	vm_clock_free(c);
}

static void without_parameters_nothing_is_converted(void **state)
{
	struct vm_clock *c = vm_clock_new();
	struct vm_clock_vcpu vcpu;
	struct kvmclock_ns ns;
	struct guest_tsc guest;
	uint64_t span;

	(void)state;
	observe(c, T0, OFFSET);
	assert_int_equal(trust(c, T0, OFFSET), VM_CLOCK_SILENT);
	assert_false(vm_clock_to_guest(c, (struct host_tsc){T0}, &guest, &span));
	assert_false(vm_clock_vcpu_get(c, 0, &vcpu));
	learn(c, VM_CLOCK_WRITE_TSC_OFFSET, 3, OFFSET, T0, T0);
	assert_true(vm_clock_vcpu_get(c, 0, &vcpu));
	assert_true(vcpu.id == 3 && !vcpu.known); /* requested, not seen in force */
	learn(c, VM_CLOCK_VCPU, 3, OFFSET, T0, T0);
	observe(c, T0 + SECOND, OFFSET);
	assert_true(converts(c, T0 + SECOND, OFFSET));
	assert_true(vm_clock_vcpu_get(c, 0, &vcpu));
	assert_true(vcpu.known && vcpu.tsc.offset == (uint64_t)OFFSET);
	assert_false(vm_clock_vcpu_get(c, 1, &vcpu));
	/* The TSC alone gives no kvmclock. */
	assert_false(vm_clock_kvmclock(c, 3, (struct host_tsc){T0}, (struct guest_tsc){1}, &ns));
	vm_clock_free(c);
}

/* Changes that happen to a VM's clocks, one after another. */
static void change_apply(struct params *p, int step, uint64_t now)
{
	switch (step % 5) {
	case 0: /* KVM_SET_CLOCK, ahead */
		p->line.system_time += 7000000000;
		break;
	case 1: /* a pause under QEMU: kvmclock goes on where it stood 3 s ago */
		p->line.system_time =
			pvclock_from_tsc(&p->line,
					 (struct guest_tsc){now - 3 * SECOND + p->tsc.offset})
				.ns;
		p->line.tsc_timestamp = now + p->tsc.offset;
		break;
	case 2: /* TSC offset written, ahead; kvmclock follows its new timestamp */
		p->tsc.offset += 123456789;
		p->line.tsc_timestamp += 123456789;
		break;
	case 3: /* master clock off: tens of ns */
		p->line.flags = 0;
		p->line.system_time += 40;
		break;
	default: /* migration to a host with TSC scaling */
		p->tsc.ratio = 234562480592213;
		p->tsc.frac_bits = TSC_FRAC_BITS_VMX;
		p->line.tsc_timestamp = tsc_scaling_to_guest(&p->tsc, (struct host_tsc){now}).ticks;
		p->line.system_time += 900000000000;
		break;
	}
}

static void each_epoch_converts_by_its_own_parameters(void **state)
{
	enum { CHANGES = 40, DATED_TICKS = 100 };
	const uint64_t period = 10 * SECOND;
	struct params params[CHANGES] = {plain};
	struct vm_clock *c = vm_clock_new();
	struct kvmclock_ns ns;

	(void)state;
	for (int i = 0; i < CHANGES; i++) {
		uint64_t now = (uint64_t)(i + 1) * period, seen = now + SECOND, guest;
		struct echo_observation o;

		if (i) {
			params[i] = params[i - 1];
			change_apply(&params[i], i - 1, now);
		}
		params_learn(c, &params[i], now, now + DATED_TICKS);
		guest = tsc_scaling_to_guest(&params[i].tsc, (struct host_tsc){seen}).ticks;
		o = (struct echo_observation){{seen}, guest, guest, {seen}};
		vm_clock_observe(c, &o);
	}
	assert_int_equal(summary_of(c).lines, CHANGES);
	for (int i = 0; i < CHANGES; i++) {
		uint64_t begin = (uint64_t)(i + 1) * period;
		/* The scaled TSC reads values again that the unscaled one read. */
		const struct vm_clock_window window = {begin, begin + period};
		const struct tsc_scaling *tsc = &params[i].tsc;

		for (uint64_t at = 0; at < 10; at += 3) {
			struct host_tsc host = {begin + at * SECOND + DATED_TICKS + 1}, back;
			struct guest_tsc guest, want = tsc_scaling_to_guest(tsc, host);
			uint64_t span;

			assert_true(vm_clock_to_guest(c, host, &guest, &span));
			assert_int_equal(guest.ticks, want.ticks);
			assert_true(vm_clock_kvmclock(c, 0, host, guest, &ns));
			assert_int_equal(ns.ns, pvclock_from_tsc(&params[i].line, guest).ns);
			assert_int_equal(vm_clock_to_host(c, &window, VM_CLOCK_ANY_VCPU, guest,
							  &back, &span),
					 VM_CLOCK_PROVEN);
			assert_in_range(host.ticks, back.ticks, back.ticks + span);
		}
		/* While the change comes into force, either line may be read. */
		if (i)
			assert_false(vm_clock_kvmclock(c, 0,
						       (struct host_tsc){begin + DATED_TICKS / 2},
						       (struct guest_tsc){begin}, &ns));
	}
	vm_clock_free(c);
}

static void memory_stays_bounded(void **state)
{
	struct vm_clock *c = vm_clock_new();

	(void)state;
	for (uint64_t i = 0; i < 5000; i++) {
		struct pvclock page = {i, 0, 1, 0, 0};

		learn(c, VM_CLOCK_VCPU, 0, (int64_t)i, T0 + i * 10, T0 + i * 10 + 1);
		line(c, VM_CLOCK_VCPU, i, T0 + i * 10, T0 + i * 10 + 1);
		vm_clock_guest_page(c, &page);
	}
	observe(c, T0 + SECOND, 4999);
	assert_true(converts(c, T0 + SECOND, 4999));
	assert_true(summary_of(c).epochs <= 64);
	assert_true(summary_of(c).lines <= 1024);
	vm_clock_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_once_a_round_trip_confirms),
		cmocka_unit_test(a_contradiction_leaves_nothing_proven),
		cmocka_unit_test(
			a_change_begins_an_epoch_and_excuses_what_was_seen_before_the_news),
		cmocka_unit_test(a_clock_set_back_is_not_guessed),
		cmocka_unit_test(a_window_tells_which_boot_is_meant),
		cmocka_unit_test(each_vcpu_has_its_own_map),
		cmocka_unit_test(a_line_seen_before_its_tsc_is_compared_once_that_is_known),
		cmocka_unit_test(any_vcpu_may_answer_a_round_trip),
		cmocka_unit_test(vcpus_that_change_one_after_another_are_apart_meanwhile),
		cmocka_unit_test(vcpus_or_sources_that_disagree_prove_nothing),
		cmocka_unit_test(a_scaled_guest_converts_to_the_tick),
		cmocka_unit_test(kvmclock_needs_the_guests_own_page_to_agree),
		cmocka_unit_test(a_repetition_of_the_same_values_is_no_change),
		cmocka_unit_test(parameters_of_a_protected_guest_prove_and_refute_nothing),
		cmocka_unit_test(without_parameters_nothing_is_converted),
		cmocka_unit_test(each_epoch_converts_by_its_own_parameters),
		cmocka_unit_test(memory_stays_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
