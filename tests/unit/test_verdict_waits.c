/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests stalls of a guest that waits for something outside its CPU: another vCPU, a device, or a
 * nested guest; and spins during which another vCPU does not run by coincidence. */
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_tale.h"

#include "host-collector/analyze/stall/verdict.h"
#include "tests/unit/balance.h"

enum { VMX = 1, EXIT_HLT = 12, EXIT_RESUME = 24, EXIT_IO = 30, EXIT_PAUSE = 40, CALL = 0xfb };

static struct tale tale;

static void exits(struct tale *t, int64_t from_us, int64_t to_us, int64_t every_us, uint64_t reason)
{
	for (int64_t at = from_us; at < to_us; at += every_us) {
		ADD(t, KVM(at, 0, EXIT, TID0, reason | (uint64_t)VMX << 32));
		ADD(t, KVM(at + 2, 0, ENTRY, TID0, 0));
	}
}

/* vCPU 1, on pCPU 1, runs guest task 70 and loses its pCPU meanwhile. */
static void peer_away(struct tale *t, int64_t from_us, int64_t to_us)
{
	ADD(t, SWITCH(HOST, 1, 1, 0, TID1, 0));
	ADD(t, SWITCH(VM, 2, 1, 0, 70, 0));
	ADD(t, SWITCH(HOST, from_us, 1, TID1, 500, VS_TASK_RUNNING));
	ADD(t, SWITCH(HOST, to_us, 1, 500, TID1, 1));
	ADD(t, SWITCH(VM, to_us + 500, 1, 70, 0, 1));
}

static void peer_runs(struct tale *t)
{
	ADD(t, SWITCH(HOST, 1, 1, 0, TID1, 0));
	ADD(t, SWITCH(VM, 2, 1, 0, 70, 0));
	for (int64_t at = 100000; at < 800000; at += 50000) {
		ADD(t, SWITCH(VM, at, 1, 70, 71, 0));
		ADD(t, SWITCH(VM, at + 25000, 1, 71, 70, 0));
	}
}

/* Task 50 runs from 200 ms to 710 ms; from 300 ms to 700 ms it waits with interrupts off. */
static void waits(struct tale *t, bool kvm)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	tale_ticks(t, 700100, 710000, 50);
	if (kvm)
		exits(t, 100, 300000, 4000, 1);
	ADD(t, SWITCH(VM, 710000, 0, 50, 42, 1));
}

static void spins_for_a_preempted_owner(struct tale *t)
{
	waits(t, true);
	exits(t, 300000, 700000, 100, EXIT_PAUSE);
	peer_away(t, 290000, 699900);
}

/* As KVM does it: each time until the next exit is twice as long. */
static void spins_with_fewer_and_fewer_exits(struct tale *t)
{
	waits(t, true);
	for (int64_t at = 10; at < 400000; at *= 2)
		exits(t, 300000 + at, 300001 + at, 10, EXIT_PAUSE);
	peer_away(t, 290000, 699900);
}

static void halts_for_a_preempted_owner(struct tale *t)
{
	waits(t, true);
	ADD(t, KVM(300000, 0, EXIT, TID0, EXIT_HLT | (uint64_t)VMX << 32));
	ADD(t, SWITCH(HOST, 300010, 0, TID0, 0, 1));
	peer_away(t, 290000, 699900);
	ADD(t, EVENT(HOST, 699990, 1, KVM_HYPERCALL, TID1, 0, 5, 0));
	ADD(t, WAKEUP(HOST, 700000, 1, TID0, TID1, 0));
	ADD(t, SWITCH(HOST, 700010, 0, 0, TID0, 0));
	ADD(t, KVM(700015, 0, ENTRY, TID0, 0));
}

static void spins_for_an_owner_that_runs(struct tale *t)
{
	waits(t, true);
	exits(t, 300000, 700000, 100, EXIT_PAUSE);
	peer_runs(t);
}

static void spins_beside_a_preempted_vcpu(struct tale *t)
{
	waits(t, true);
	peer_away(t, 250000, 650000);
}

static void stalls_until_another_runs_again(struct tale *t)
{
	waits(t, false);
	peer_away(t, 290000, 699900);
}

static void stalls_beside_a_preempted_vcpu(struct tale *t)
{
	waits(t, false);
	peer_away(t, 250000, 650000);
}

/* KVM's events are there, but no PAUSE exit: the owner is back 5 ms before it lets go. */
static void spins_unseen_for_a_preempted_owner(struct tale *t)
{
	waits(t, true);
	peer_away(t, 310000, 695000);
}

/* The same with interrupts on: the waiter's ticks go on, and a task waits for its CPU. */
static void spins_unseen_with_ticks(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 700000, 50);
	exits(t, 100, 700000, 4000, 1);
	ADD(t, WAKEUP(VM, 300000, 0, 60, 50, 0));
	ADD(t, SWITCH(VM, 700000, 0, 50, 60, 0));
	peer_away(t, 305000, 697000);
}

static void spins_unseen_for_a_traced_owner(struct tale *t)
{
	waits(t, true);
	ADD(t, SWITCH(HOST, 1, 1, 0, TID1, 0));
	ADD(t, SWITCH(VM, 2, 1, 0, 70, 0));
	ADD(t, SWITCH(HOST, 310000, 1, TID1, 0, 8));
	ADD(t, WAKEUP(HOST, 697000, 1, TID1, 901, 1));
	ADD(t, SWITCH(HOST, 697010, 1, 0, TID1, 0));
	ADD(t, SWITCH(VM, 699000, 1, 70, 0, 1));
}

static void call(struct tale *t, int64_t at, uint64_t vector)
{
	ADD(t, EVENT(HOST, at, 0, KVM_ACCEPT_IRQ, TID0, 0, vector | 1ull << 32, 0));
}

static void calls_a_preempted_vcpu(struct tale *t)
{
	waits(t, true);
	call(t, 300000, CALL);
	exits(t, 300010, 700000, 100, EXIT_PAUSE);
	peer_away(t, 290000, 699900);
	ADD(t, EVENT(VM, 699950, 1, VECTOR_ENTRY, 70, 0, VS_VECTOR_CALL_FUNCTION_SINGLE, CALL));
	ADD(t, EVENT(VM, 699952, 1, VECTOR_EXIT, 70, 0, VS_VECTOR_CALL_FUNCTION_SINGLE, CALL));
}

/* Nobody waits for who is only to be rescheduled. */
static void kicks_a_preempted_vcpu(struct tale *t)
{
	spins_beside_a_preempted_vcpu(t);
	call(t, 300000, 0xfd);
}

static void stalls_until_another_answers(struct tale *t)
{
	stalls_until_another_runs_again(t);
	ADD(t, EVENT(VM, 699950, 1, VECTOR_ENTRY, 70, 0, VS_VECTOR_CALL_FUNCTION_SINGLE, CALL));
	ADD(t, EVENT(VM, 699952, 1, VECTOR_EXIT, 70, 0, VS_VECTOR_CALL_FUNCTION_SINGLE, CALL));
}

static void asks(struct tale *t, uint64_t port)
{
	waits(t, true);
	for (int64_t at = 300000; at < 700000; at += 100) {
		ADD(t, KVM(at, 0, EXIT, TID0, EXIT_IO | (uint64_t)VMX << 32));
		ADD(t, EVENT(HOST, at + 2, 0, KVM_PIO, TID0, 0, port | 1ull << 32, 1ull << 32));
		ADD(t, EVENT(HOST, at + 3, 0, KVM_USERSPACE_EXIT, TID0, 0, 2, 0));
		ADD(t, KVM(at + 20, 0, ENTRY, TID0, 0));
	}
	peer_runs(t);
}

static void asks_a_disk(struct tale *t)
{
	asks(t, 0x1f7);
}

static void asks_for_the_time(struct tale *t)
{
	asks(t, 0x608);
}

/* Reads a status and writes a byte each time: the device takes what it is given. */
static void writes_to_a_console(struct tale *t)
{
	asks(t, 0x3fd);
	for (int64_t at = 300050; at < 700000; at += 100)
		ADD(t, EVENT(HOST, at, 0, KVM_PIO, TID0, 0, 0x3f8 | 1ull << 32, 1 | 1ull << 32));
}

static void access_does_not_end(struct tale *t)
{
	waits(t, true);
	ADD(t, KVM(300000, 0, EXIT, TID0, EXIT_IO | (uint64_t)VMX << 32));
	ADD(t, EVENT(HOST, 300003, 0, KVM_USERSPACE_EXIT, TID0, 0, 2, 0));
	ADD(t, KVM(700000, 0, ENTRY, TID0, 0));
	peer_runs(t);
}

static void runs_a_guest(struct tale *t)
{
	waits(t, true);
	exits(t, 299000, 300000, 100, EXIT_RESUME);
	exits(t, 300100, 700000, 10000, 1);
	peer_runs(t);
}

/* It did before, but this stall is its own. */
static void ran_a_guest_before(struct tale *t)
{
	waits(t, true);
	exits(t, 190000, 199000, 100, EXIT_RESUME);
	peer_runs(t);
}

static const struct {
	const char *name;
	void (*emit)(struct tale *t);
	enum verdict verdict;
	enum confidence confidence;
} stories[] = {
	{"spins while the lock's owner is preempted", spins_for_a_preempted_owner,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_DECIDED},
	{"the same, exits further and further apart", spins_with_fewer_and_fewer_exits,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_DECIDED},
	{"halts in a paravirtual lock, its owner is preempted", halts_for_a_preempted_owner,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_DECIDED},
	{"spins, the lock's owner runs", spins_for_an_owner_that_runs, VERDICT_GUEST_SPIN,
	 CONFIDENCE_DECIDED},
	{"no PAUSE exits: spins beside a preempted vCPU", spins_beside_a_preempted_vcpu,
	 VERDICT_GUEST_SPIN, CONFIDENCE_LIKELY},
	{"no PAUSE exits: until another vCPU has been back for 5 ms",
	 spins_unseen_for_a_preempted_owner, VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_LIKELY},
	{"no PAUSE exits: the same, and ticks go on", spins_unseen_with_ticks,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_LIKELY},
	{"no PAUSE exits: the owner's thread was traced", spins_unseen_for_a_traced_owner,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_LIKELY},
	{"no KVM events: waits until another vCPU is back", stalls_until_another_runs_again,
	 VERDICT_LOCK_HOLDER_PREEMPTED, CONFIDENCE_LIKELY},
	{"no KVM events: waits beside a preempted vCPU", stalls_beside_a_preempted_vcpu,
	 VERDICT_GUEST_SPIN, CONFIDENCE_LIKELY},
	{"calls a CPU whose vCPU is preempted", calls_a_preempted_vcpu,
	 VERDICT_IPI_TARGET_PREEMPTED, CONFIDENCE_DECIDED},
	{"kicks a CPU whose vCPU is preempted, and spins", kicks_a_preempted_vcpu,
	 VERDICT_GUEST_SPIN, CONFIDENCE_LIKELY},
	{"no KVM events: waits until another CPU answers", stalls_until_another_answers,
	 VERDICT_IPI_TARGET_PREEMPTED, CONFIDENCE_LIKELY},
	{"asks a disk's status all the time", asks_a_disk, VERDICT_DEVICE_NO_COMPLETION,
	 CONFIDENCE_DECIDED},
	{"asks a clock all the time", asks_for_the_time, VERDICT_GUEST_SPIN, CONFIDENCE_DECIDED},
	{"writes to a console all the time", writes_to_a_console, VERDICT_GUEST_SPIN,
	 CONFIDENCE_DECIDED},
	{"one access to a device takes 400 ms in QEMU", access_does_not_end,
	 VERDICT_DEVICE_NO_COMPLETION, CONFIDENCE_DECIDED},
	{"runs a guest of its own that does not come back", runs_a_guest,
	 VERDICT_NESTED_UNOBSERVABLE, CONFIDENCE_DECIDED},
	{"spins, and ran a guest of its own before", ran_a_guest_before, VERDICT_GUEST_SPIN,
	 CONFIDENCE_DECIDED},
};

/* The incident of CPU 0; the other CPU may have one of its own. */
static const struct incident *incident_of_cpu0(const struct report *r)
{
	const struct incident *found = NULL;

	for (size_t i = 0; i < r->n_incidents; i++) {
		if (r->incidents[i].guest_cpu)
			continue;
		assert_null(found);
		found = &r->incidents[i];
	}
	return found;
}

static void what_a_guest_waits_for_is_told(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(stories); k++) {
		struct report_options options = {.than_ns = 100000000};
		struct model *m = model_new();
		struct report_builder *b = report_builder_new(m, &options);
		const struct incident *i;
		struct report *r;

		script_vm(m, 2, "kvm");
		stories[k].emit(&tale);
		tale_play(&tale, m);
		model_finish(m);
		r = report_builder_finish(b);
		i = incident_of_cpu0(r);
		assert_non_null(i);
		print_message("  %s: %s, %s: %s; denied: %s\n", stories[k].name,
			      verdict_name(i->verdict), confidence_name(i->confidence),
			      because_text(i).text, denied_text(i).text);
		assert_int_equal(i->verdict, stories[k].verdict);
		assert_int_equal(i->confidence, stories[k].confidence);
		/* A doubt about another vCPU names it, and who held its pCPU. */
		if (strstr(stories[k].name, "beside a preempted vCPU")) {
			assert_non_null(strstr(because_text(i).text,
					       "may have waited for CPU 1, whose vCPU"));
			assert_int_equal(i->culprits[i->n_culprits - 1].pid, 500);
		}
		assert_balances(r);
		report_free(r);
		report_builder_free(b);
		model_free(m);
	}
}

/* ---- the guest's clock ---- */

static const struct {
	const char *name;
	int64_t step_ms;
	bool reported, proven;
} steps[] = {
	{"goes on", 0, false, true},
	{"leaps ahead by less than a stall", 60, false, true},
	{"leaps ahead", 5000, true, true},
	{"leaps ahead, by the guest's word", 5000, true, false},
	{"stood still, as in a pause", -190, false, true},
	{"goes back to what had been", -5000, true, true},
};

static void a_clock_that_steps_is_no_stall(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(steps); k++) {
		struct report_options options = {.than_ns = 100000000};
		struct model *m = model_new();
		struct report_builder *b = report_builder_new(m, &options);
		struct guest_clock_reading reading = {.vm = VM, .t = {300000000}};
		struct report *r;

		print_message("  %s\n", steps[k].name);
		script_vm(m, 1, "kvm");
		tale_begin(&tale);
		tale_ticks(&tale, 204000, 300000, 50);
		tale_play(&tale, m);
		assert_int_equal(model_guest_clock(m, &reading), 0);
		tale.n = 0;
		tale_ticks(&tale, 304000, 600000, 50);
		ADD(&tale, SWITCH(VM, 600100, 0, 50, 42, 1));
		tale_play(&tale, m);
		reading.t.ns = 500000000;
		reading.step_ns = steps[k].step_ms * 1000000;
		reading.proven = steps[k].proven;
		assert_int_equal(model_guest_clock(m, &reading), 0);
		model_finish(m);
		r = report_builder_finish(b);
		assert_int_equal(r->n_incidents, steps[k].reported);
		assert_balances(r);
		if (steps[k].reported) {
			print_message("    %s\n", because_text(&r->incidents[0]).text);
			assert_int_equal(r->incidents[0].verdict, VERDICT_CLOCK_JUMP);
			assert_int_equal(r->incidents[0].confidence,
					 steps[k].proven ? CONFIDENCE_DECIDED : CONFIDENCE_LIKELY);
			assert_int_equal(r->incidents[0].begin.ns, 300000000);
			assert_int_equal(r->incidents[0].end.ns, 500000000);
		}
		report_free(r);
		report_builder_free(b);
		model_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_guest_waits_for_is_told),
		cmocka_unit_test(a_clock_that_steps_is_no_stall),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
