/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests guest CPUs that are taken offline, come back, or lose their vCPU: none of this is a
 * stall or hides one. */
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_tale.h"

#include "host-collector/analyze/stall/verdict.h"
#include "tests/unit/balance.h"

enum { SVM = 2, HLT = 0x78, STOPPER = 21, CPUHP = 22 };

static struct tale tale;

/* `halts_kvm`: as KVM's events show it, else as the scheduler's alone do. */
static void goes_offline(struct tale *t, bool halts_kvm)
{
	struct timeline_event name = NAME(VM, 250000, STOPPER, STOPPER, script_comm("migratio"));

	name.event.arg1 = script_comm("n/0");
	tale_begin(t);
	tale_add(t, name);
	tale_ticks(t, 204000, 300000, 50);
	ADD(t, SWITCH(VM, 300000, 0, 50, STOPPER, 1));
	if (halts_kvm) {
		ADD(t, KVM(100, 0, ENTRY, TID0, 0));
		ADD(t, KVM(300500, 0, EXIT, TID0, HLT | (uint64_t)SVM << 32));
	}
	ADD(t, SWITCH(HOST, 300510, 0, TID0, 0, 1));
}

/* The kernel traces nothing of a CPU before it is online again: its first event is not a switch. */
static void comes_back(struct tale *t, int64_t at_us)
{
	ADD(t, WAKEUP(HOST, at_us - 20, 1, TID0, 77, 0));
	ADD(t, SWITCH(HOST, at_us - 10, 0, 0, TID0, 0));
	ADD(t, IRQ(at_us, 0, VECTOR_ENTRY, 0, VS_VECTOR_LOCAL_TIMER));
	ADD(t, IRQ(at_us + 5, 0, VECTOR_EXIT, 0, VS_VECTOR_LOCAL_TIMER));
	ADD(t, SWITCH(VM, at_us + 100, 0, 0, CPUHP, 0));
	ADD(t, SWITCH(VM, at_us + 200, 0, CPUHP, 50, 1));
	tale_ticks(t, at_us + 4000, at_us + 60000, 50);
	ADD(t, SWITCH(VM, at_us + 60000, 0, 50, 0, 1));
}

static void offline_and_online(struct tale *t)
{
	goes_offline(t, true);
	ADD(t, KVM(2299995, 0, ENTRY, TID0, 0));
	comes_back(t, 2300000);
}

static void offline_and_online_without_kvm(struct tale *t)
{
	goes_offline(t, false);
	comes_back(t, 2300000);
}

static void offline_for_good(struct tale *t)
{
	goes_offline(t, true);
	ADD(t, SWITCH(HOST, 9000000, 1, 77, 500, 1));
}

static void offline_for_good_without_kvm(struct tale *t)
{
	goes_offline(t, false);
	ADD(t, SWITCH(HOST, 9000000, 1, 77, 500, 1));
}

/* Without HLT, as under an emulator: an offline CPU spins in MWAIT, and the others go on. */
static void offline_and_its_vcpu_runs(struct tale *t)
{
	goes_offline(t, true);
	t->events[t->n - 2].t.ns = 8900000000;
	t->events[t->n - 1].t.ns = 8900010000;
	for (int64_t at = 301000; at < 8000000; at += 50000) {
		ADD(t, SWITCH(VM, at, 1, 0, 60, 0));
		ADD(t, SWITCH(VM, at + 1000, 1, 60, 0, 1));
	}
	ADD(t, SWITCH(HOST, 9000000, 1, 77, 500, 1));
}

/* The thread ends; the VM's description follows later. */
static void unplugged(struct tale *t)
{
	goes_offline(t, true);
	ADD(t, WAKEUP(HOST, 400000, 1, TID0, 77, 0));
	ADD(t, SWITCH(HOST, 400010, 0, 0, TID0, 0));
	ADD(t, EVENT(HOST, 400100, 0, TASK_EXIT, TID0, QEMU, 0, 0));
	ADD(t, SWITCH(HOST, 400110, 0, TID0, 0, VS_TASK_DEAD));
	ADD(t, SWITCH(HOST, 9000000, 1, 77, 500, 1));
}

/* What is not offline: the stopper waits for another CPU with interrupts off, and computes. */
static void stopper_spins(struct tale *t)
{
	goes_offline(t, true);
	/* Until then it does not leave the guest. */
	t->events[t->n - 2].t.ns = 900000000;
	t->events[t->n - 1].t.ns = 900010000;
	ADD(t, WAKEUP(VM, 310000, 0, 60, STOPPER, 0));
	ADD(t, SWITCH(VM, 800000, 0, STOPPER, 60, 1));
	ADD(t, SWITCH(VM, 810000, 0, 60, 0, 1));
}

/* Nor is its VM's stop a sleep. */
static void stopped_in_the_stopper(struct tale *t)
{
	goes_offline(t, false);
	t->events[t->n - 1].event.arg0 = 0x104;
	ADD(t, WAKEUP(HOST, 800000, 1, TID0, 77, 0));
	ADD(t, SWITCH(HOST, 800010, 0, 0, TID0, 0));
	ADD(t, SWITCH(VM, 800100, 0, STOPPER, 50, 1));
	tale_ticks(t, 804000, 860000, 50);
	ADD(t, SWITCH(VM, 860000, 0, 50, 0, 1));
}

/* After it is offline its vCPU is stopped: that is no stall of anybody's, and yet the host's act.
 */
static void stopped_while_offline(struct tale *t)
{
	goes_offline(t, true);
	ADD(t, WAKEUP(HOST, 1000000, 1, TID0, 77, 0));
	ADD(t, SWITCH(HOST, 1000010, 0, 0, TID0, 0));
	ADD(t, SWITCH(HOST, 1000020, 0, TID0, 0, 0x104));
	ADD(t, WAKEUP(HOST, 1500000, 1, TID0, 77, 0));
	ADD(t, SWITCH(HOST, 1500010, 0, 0, TID0, 0));
	ADD(t, SWITCH(HOST, 1500020, 0, TID0, 0, 1));
	ADD(t, SWITCH(HOST, 9000000, 1, 77, 500, 1));
}

static const struct {
	const char *name;
	void (*emit)(struct tale *t);
	enum verdict verdict; /* UNDETERMINED: no incident */
	int64_t begin_us, end_us;
	bool gone; /* the VM is described without the vCPU at the end */
} stories[] = {
	{"offline for 2 s", offline_and_online, VERDICT_UNDETERMINED, 0, 0, false},
	{"offline for 2 s, without KVM's events", offline_and_online_without_kvm,
	 VERDICT_UNDETERMINED, 0, 0, false},
	{"offline for good", offline_for_good, VERDICT_UNDETERMINED, 0, 0, false},
	{"offline for good, without KVM's events", offline_for_good_without_kvm,
	 VERDICT_UNDETERMINED, 0, 0, false},
	{"offline for good, its vCPU runs", offline_and_its_vcpu_runs, VERDICT_UNDETERMINED, 0, 0,
	 false},
	{"its thread ended", unplugged, VERDICT_UNDETERMINED, 0, 0, false},
	{"unplugged", unplugged, VERDICT_UNDETERMINED, 0, 0, true},
	{"the stopper spins", stopper_spins, VERDICT_GUEST_SPIN, 300000, 800000, false},
	{"its VM is stopped", stopped_in_the_stopper, VERDICT_VM_PAUSED, 300000, 800100, false},
	{"its VM is stopped while it is offline", stopped_while_offline, VERDICT_VM_PAUSED, 1000000,
	 1500010, false},
};

static void offline_is_no_stall(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(stories); k++) {
		struct report_options options = {.than_ns = 100000000};
		struct model *m = model_new();
		struct report_builder *b = report_builder_new(m, &options);
		struct incident ongoing[4];
		struct report *r;

		script_vm(m, 1, "kvm");
		stories[k].emit(&tale);
		tale_play(&tale, m);
		if (stories[k].gone)
			script_vm(m, 0, "kvm");
		model_advance(m, (struct host_ns){9500000000});
		assert_int_equal(report_builder_ongoing(b, ongoing, 4), 0);
		model_finish(m);
		r = report_builder_finish(b);
		print_message("  %s: %zu\n", stories[k].name, r->n_incidents);
		for (size_t i = 0; i < r->n_incidents; i++) {
			print_message("    %s: %s\n", verdict_name(r->incidents[i].verdict),
				      because_text(&r->incidents[i]).text);
			assert_incident_balances(&r->incidents[i]);
			assert_int_equal(r->incidents[i].verdict, stories[k].verdict);
			assert_true(llabs(r->incidents[i].begin.ns - stories[k].begin_us * 1000) <
				    1000000);
			assert_true(llabs(r->incidents[i].end.ns - stories[k].end_us * 1000) <
				    1000000);
		}
		assert_int_equal(r->n_incidents, stories[k].verdict != VERDICT_UNDETERMINED);
		report_free(r);
		report_builder_free(b);
		model_free(m);
	}
}

/* Its state is not known then, and before that it is. */
static void what_an_offline_cpu_does_is_unknown(void **state)
{
	struct model *m = model_new();
	struct spans *s = malloc(sizeof(*s));
	int64_t unknown_ns = 0, stopper_ns = 0;

	(void)state;
	script_vm(m, 1, "kvm");
	spans_observe(m, s);
	offline_and_online(&tale);
	tale_play(&tale, m);
	model_finish(m);
	for (size_t i = 0; i < s->n_guest; i++) {
		const struct guest_span *x = &s->guest[i];

		if (x->state == GUEST_CPU_UNKNOWN)
			unknown_ns += x->end.ns - x->begin.ns;
		else if (x->pid == STOPPER)
			stopper_ns += x->end.ns - x->begin.ns;
	}
	assert_int_equal(unknown_ns, 2000000000);
	assert_int_equal(stopper_ns, 0);
	model_free(m);
	free(s);
}

/* The guest has a new CPU, and the collector does not know its vCPU yet: that it ran is inferred.
 */
static void a_stall_on_a_new_cpu_is_likely_at_most(void **state)
{
	struct report_options options = {.than_ns = 100000000};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct report *r;

	(void)state;
	script_vm(m, 1, "kvm");
	tale_begin(&tale);
	ADD(&tale, SWITCH(VM, 201000, 0, 50, 0, 1));
	ADD(&tale, SWITCH(VM, 300000, 1, 0, 42, 0));
	for (int64_t at = 302000; at < 900000; at += TICK_US) {
		ADD(&tale, IRQ(at, 1, VECTOR_ENTRY, 42, VS_VECTOR_LOCAL_TIMER));
		ADD(&tale, IRQ(at + 5, 1, VECTOR_EXIT, 42, VS_VECTOR_LOCAL_TIMER));
	}
	ADD(&tale, WAKEUP(VM, 310000, 1, 60, 42, 1));
	ADD(&tale, SWITCH(VM, 900000, 1, 42, 60, 0));
	ADD(&tale, SWITCH(VM, 910000, 1, 60, 0, 1));
	ADD(&tale, SWITCH(HOST, 1000000, 1, 77, 500, 1));
	tale_play(&tale, m);
	model_finish(m);
	r = report_builder_finish(b);
	assert_int_equal(r->n_incidents, 1);
	print_message("  %s (%s): %s\n", verdict_name(r->incidents[0].verdict),
		      confidence_name(r->incidents[0].confidence),
		      because_text(&r->incidents[0]).text);
	assert_int_equal(r->incidents[0].guest_cpu, 1);
	assert_true(r->incidents[0].breakdown_ns[VCPU_UNKNOWN] > 590000000);
	assert_int_equal(r->incidents[0].confidence, CONFIDENCE_LIKELY);
	report_free(r);
	report_builder_free(b);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(offline_is_no_stall),
		cmocka_unit_test(a_stall_on_a_new_cpu_is_likely_at_most),
		cmocka_unit_test(what_an_offline_cpu_does_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
