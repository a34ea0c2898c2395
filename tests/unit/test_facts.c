/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that facts_begin_again() leaves no data of the earlier interval. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/analyze/stall/facts.h"

enum { VM = 3, CPU = 1, VCPU = 5, INTERVAL = 4000000 };

static void span_add(struct stall_facts *f, int64_t begin, int64_t end, enum vcpu_state state)
{
	const struct vcpu_span span = {.vm = VM,
				       .vcpu = VCPU,
				       .begin = {begin},
				       .end = {end},
				       .state = state,
				       .wait_class = WAIT_NONE,
				       .holder_pid = 77,
				       .holder_ns = end - begin,
				       .pcpu_busy_ns = end - begin};

	facts_vcpu_span(f, &span);
}

/* What an interval begins with: all but the details, of which the counts are 0. */
static void is_fresh(const struct stall_facts *f, struct host_ns t)
{
	struct stall_facts *fresh = calloc(1, sizeof(*fresh));

	assert_non_null(fresh);
	facts_begin(fresh, VM, CPU, t);
	assert_memory_equal(f, fresh, offsetof(struct stall_facts, spans));
	free(fresh);
}

static void guest_add(struct stall_facts *f, int64_t t)
{
	const struct guest_span handler = {.vm = VM,
					   .cpu = CPU,
					   .state = GUEST_CPU_HARDIRQ,
					   .begin = {t},
					   .end = {t + 1000},
					   .number = 24};

	f->n_seen++;
	f->n_lost++;
	f->pid = 500;
	f->number = 7;
	f->vector = f->ongoing = f->cut = true;
	f->kind = GUEST_CPU_HARDIRQ;
	f->begin_err_ns = 9;
	facts_tick(f, (struct host_ns){t}, INTERVAL);
	facts_guest_span(f, &handler);
	facts_task_sample(f, (struct host_ns){t}, 9, true);
}

/* What the end of a long interval adds. */
static void end_add(struct stall_facts *f, int64_t t)
{
	facts_seal(f, (struct host_ns){t});
	f->err_ns = 70;
	f->than_ns = 500;
	f->tick_interval_ns = INTERVAL;
	f->waiter_pid = 400;
	f->waiter_ns = 600;
	f->n_waiters = 2;
	f->denied = f->hits_cut = f->data.kvm_events = true;
	f->n_hits = f->n_events = f->other_hits = 1;
	f->debt.ns = 8;
}

static void nothing_is_left(void **state)
{
	static const enum vcpu_state states[] = {VCPU_RUNNABLE, VCPU_KVM,     VCPU_BLOCKED,
						 VCPU_HALTED,   VCPU_UNKNOWN, VCPU_GUEST};
	struct stall_facts *f = calloc(1, sizeof(*f));
	int64_t t = 1000;

	(void)state;
	assert_non_null(f);
	facts_begin_again(f, VM, CPU, (struct host_ns){t});
	is_fresh(f, (struct host_ns){t});
	for (int i = 0; i < 64; i++) {
		for (unsigned k = 0; k < sizeof(states) / sizeof(states[0]); k++) {
			guest_add(f, t + 100);
			if (i >> (k % 6) & 1)
				span_add(f, t, t + 50000, states[k]);
			t += 100000;
		}
		if (i % 3)
			end_add(f, t);
		facts_begin_again(f, VM, CPU, (struct host_ns){t});
		is_fresh(f, (struct host_ns){t});
	}
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_is_left)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
