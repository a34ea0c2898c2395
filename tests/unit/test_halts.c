// SPDX-License-Identifier: GPL-2.0-only
/* Tests the figures of KVM's halt polling. */
#include "host-collector/tables/halts.h"
#include "tests/unit/model_script.h"

#define WOKEN(T_US, NS, SLEPT) EVENT(HOST, T_US, 0, KVM_WAKEUP, TID0, 0, NS, (SLEPT) | 1ull << 32)
#define LIMIT(T_US, NEW, OLD)  EVENT(HOST, T_US, 0, KVM_HALT_POLL, TID0, 0, NEW, OLD)

static const struct timeline_event story[] = {
	SWITCH(HOST, 0, 0, 0, TID0, 0), KVM(1, 0, ENTRY, TID0, 0), WOKEN(1000, 500000, 1),
	WOKEN(2000, 600000, 1),         LIMIT(2001, 10000, 5000),  WOKEN(3000, 4000, 0),
	WOKEN(4000, 700000, 1),         LIMIT(4001, 0, 10000),     WOKEN(5000, 800000, 1),
};

static struct halts *halts_of(const struct figures_options *options, size_t n)
{
	struct model *m = model_new();
	struct halts *h = halts_analysis.new(m, options);

	assert_non_null(h);
	script_vm(m, 1, "kvm");
	script_run(m, story, n);
	model_finish(m);
	assert_int_equal(halts_analysis.error(h), 0);
	model_free(m);
	return h;
}

static void polling_that_sufficed_and_polling_in_vain(void **unused)
{
	struct halts *h = halts_of(NULL, COUNT(story));
	const struct halts_vcpu *v = halts_vcpu(h, 0);

	(void)unused;
	assert_non_null(v);
	assert_null(halts_vcpu(h, 1));
	assert_int_equal(v->lengths.count, 5);
	assert_int_equal(v->polled, 1);
	assert_int_equal(v->polled_ns, 4000);
	assert_int_equal(v->slept, 4);
	assert_int_equal(v->slept_ns, 2600000);
	assert_true(v->limit_known);
	assert_int_equal(v->limit_ns, 0);
	/* Twice the old limit, once the new one, then none. */
	assert_int_equal(v->in_vain_ns, 2 * 5000 + 10000);
	halts_analysis.free(h);
}

static void without_a_limit_the_waste_is_not_known(void **unused)
{
	struct halts *h = halts_of(NULL, 4);

	(void)unused;
	assert_false(halts_vcpu(h, 0)->limit_known);
	assert_int_equal(halts_vcpu(h, 0)->no_limit, 2);
	halts_analysis.free(h);
}

static void shorter_halts_do_not_count_and_clearing_keeps_the_limit(void **unused)
{
	struct halts *h = halts_of(&(struct figures_options){.than_ns = 650000}, COUNT(story) - 1);

	(void)unused;
	assert_int_equal(halts_vcpu(h, 0)->lengths.count, 1);
	assert_int_equal(halts_vcpu(h, 0)->in_vain_ns, 10000);
	halts_analysis.clear(h);
	assert_null(halts_vcpu(h, 0));
	halts_analysis.free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(polling_that_sufficed_and_polling_in_vain),
		cmocka_unit_test(without_a_limit_the_waste_is_not_known),
		cmocka_unit_test(shorter_halts_do_not_count_and_clearing_keeps_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
