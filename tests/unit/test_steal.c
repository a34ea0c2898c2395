// SPDX-License-Identifier: GPL-2.0-only
/* Compares the steal that a guest reports with the vCPU's run delay between the same readings.
 */
#include <errno.h>

#include "host-collector/tables/steal.h"
#include "tests/unit/model_script.h"

enum { HOG = 500 };

/* The vCPU waits behind the hog 10..30 ms and 40..60 ms. */
static const struct timeline_event story[] = {
	SWITCH(HOST, 0, 0, 0, TID0, 0),        SWITCH(VM, 1, 0, 0, 42, 0),
	SWITCH(HOST, 10000, 0, TID0, HOG, 0),  SWITCH(HOST, 30000, 0, HOG, TID0, 0),
	SWITCH(HOST, 40000, 0, TID0, HOG, 0),  SWITCH(HOST, 60000, 0, HOG, TID0, 0),
	SWITCH(HOST, 100000, 0, TID0, HOG, 0),
};

static void reading(struct model *m, int64_t t_us, uint64_t steal_ms, bool clock)
{
	const struct guest_steal steal = {.vm = VM,
					  .cpu = 0,
					  .t = {t_us * 1000},
					  .steal_ns = steal_ms * 1000000,
					  .unit_ns = 10000000,
					  .clock = clock};

	assert_int_equal(model_guest_steal(m, &steal), 0);
}

static struct model *prepared(struct steal **s)
{
	struct model *m = model_new();

	*s = steal_analysis.new(m, NULL);
	assert_non_null(*s);
	script_vm(m, 1, "kvm");
	script_run(m, story, 2); /* now the guest's CPU is known */
	return m;
}

static void both_accounts_are_of_the_same_span(void **unused)
{
	struct steal *s;
	struct model *m = prepared(&s);
	const struct steal_vcpu *v;

	(void)unused;
	reading(m, 20000, 510, true); /* 10 ms into the first wait */
	reading(m, 45000, 520, true); /* 5 ms into the second */
	reading(m, 80000, 540, true);
	script_run(m, story + 2, COUNT(story) - 2);
	model_finish(m);
	v = steal_vcpu(s, 0);
	assert_non_null(v);
	assert_null(steal_vcpu(s, 1));
	assert_int_equal(v->readings, 3);
	assert_int_equal(v->end.ns - v->begin.ns, 60000000);
	assert_int_equal(v->accounted_ns, 30000000);
	assert_int_equal(v->measured_ns, 30000000);
	assert_int_equal(v->unknown_ns, 0);
	assert_true(v->clock);
	model_free(m);
	steal_analysis.free(s);
}

static void an_interval_begins_at_the_last_reading(void **unused)
{
	/* Waits that are told at once: none could still be explained by a stack, and an entry to
	 * the guest has come. */
	static const struct timeline_event waits[] = {
		KVM(9000, 0, ENTRY, TID0, 0),         SWITCH(HOST, 10000, 0, TID0, HOG, 0),
		SWITCH(HOST, 18000, 0, HOG, TID0, 0), SWITCH(HOST, 40000, 0, TID0, HOG, 0),
		SWITCH(HOST, 49000, 0, HOG, TID0, 0), SWITCH(HOST, 100000, 0, TID0, HOG, 0),
	};
	struct steal *s;
	struct model *m = prepared(&s);
	const struct steal_vcpu *v;

	(void)unused;
	reading(m, 5000, 500, true);
	reading(m, 12000, 510, true);
	script_run(m, waits, 3);
	assert_non_null(steal_vcpu(s, 0));
	steal_analysis.clear(s);
	assert_null(steal_vcpu(s, 0));
	reading(m, 80000, 530, true);
	script_run(m, waits + 3, COUNT(waits) - 3);
	model_finish(m);
	v = steal_vcpu(s, 0);
	assert_non_null(v);
	assert_int_equal(v->accounted_ns, 20000000);
	assert_int_equal(v->measured_ns, 15000000);
	model_free(m);
	steal_analysis.free(s);
}

static void a_reboot_begins_anew(void **unused)
{
	struct steal *s;
	struct model *m = prepared(&s);
	const struct steal_vcpu *v;

	(void)unused;
	reading(m, 5000, 500, true);
	reading(m, 45000, 5, true);
	reading(m, 80000, 20, true);
	script_run(m, story + 2, COUNT(story) - 2);
	model_finish(m);
	v = steal_vcpu(s, 0);
	assert_non_null(v);
	assert_int_equal(v->accounted_ns, 15000000);
	assert_int_equal(v->measured_ns, 15000000);
	model_free(m);
	steal_analysis.free(s);
}

static void lost_events_are_told(void **unused)
{
	static const struct timeline_event lost[] = {
		SWITCH(HOST, 10000, 0, TID0, HOG, 0),
		LOST(HOST, 20000, 0),
		SWITCH(HOST, 30000, 0, HOG, TID0, 0),
		SWITCH(HOST, 90000, 0, TID0, HOG, 0),
	};
	struct steal *s;
	struct model *m = prepared(&s);
	const struct steal_vcpu *v;

	(void)unused;
	reading(m, 5000, 0, false);
	reading(m, 80000, 0, false);
	script_run(m, lost, COUNT(lost));
	model_finish(m);
	v = steal_vcpu(s, 0);
	assert_non_null(v);
	assert_true(v->unknown_ns > 0);
	assert_int_equal(v->measured_ns + v->unknown_ns, 20000000);
	assert_false(v->clock);
	model_free(m);
	steal_analysis.free(s);
}

static void a_reading_of_nobody_is_refused(void **unused)
{
	struct steal *s;
	struct model *m = prepared(&s);

	(void)unused;
	assert_int_equal(model_guest_steal(m, &(struct guest_steal){.vm = 77}), -ENOENT);
	assert_int_equal(model_guest_steal(m, &(struct guest_steal){.vm = VM, .cpu = VS_CPUS_MAX}),
			 -EINVAL);
	assert_int_equal(model_guest_steal(m, &(struct guest_steal){.vm = VM, .cpu = 5}), 0);
	model_free(m);
	steal_analysis.free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_accounts_are_of_the_same_span),
		cmocka_unit_test(an_interval_begins_at_the_last_reading),
		cmocka_unit_test(a_reboot_begins_anew),
		cmocka_unit_test(lost_events_are_told),
		cmocka_unit_test(a_reading_of_nobody_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
