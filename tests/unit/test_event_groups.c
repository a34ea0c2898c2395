// SPDX-License-Identifier: GPL-2.0-only
/* Tests events that are grouped by the value of an expression: counts, sums, distributions,
 * intervals. */
#include "host-collector/analyze/event/event_groups.h"
#include "tests/unit/model_script.h"

static const struct timeline_event story[] = {
	IRQ(1000, 0, IRQ_EXIT, 50, 24),  IRQ(2000, 0, IRQ_EXIT, 50, 25),
	IRQ(2500, 0, IRQ_EXIT, 51, 24),  IRQ(12000, 0, IRQ_EXIT, 51, 24),
	IRQ(12100, 0, IRQ_EXIT, 51, 24), IRQ(31000, 0, IRQ_EXIT, 51, 25),
};

struct run {
	struct event_choices choices;
	struct model *model;
	struct event_groups *groups;
};

static struct run run(const char *event, const char *by, const char *value, int64_t every_ns)
{
	const struct event_groups_options options = {.values = value, .every_ns = every_ns};
	struct run r = {.model = model_new()};
	struct expr_error error;

	assert_int_equal(event_choices_init(&r.choices), 0);
	assert_int_equal(event_choices_add(&r.choices, event, &error), 0);
	assert_int_equal(event_choices_key(&r.choices, by, &error), 0);
	if (value)
		assert_int_equal(event_choices_value(&r.choices, value, &error), 0);
	r.groups = event_groups_new(r.model, &r.choices, &options);
	assert_non_null(r.groups);
	script_vm(r.model, 1, "kvm");
	script_run(r.model, story, COUNT(story));
	model_finish(r.model);
	assert_int_equal(event_groups_finish(r.groups), 0);
	return r;
}

static void run_end(struct run *r)
{
	event_groups_free(r->groups);
	model_free(r->model);
	event_choices_fini(&r->choices);
}

static const struct event_group *group(const struct run *r, uint64_t key)
{
	const struct event_group *g;

	for (size_t i = 0; (g = event_groups_get(r->groups, i)); i++) {
		if (g->key.number == key)
			return g;
	}
	return NULL;
}

static void test_counts_and_sums(void **state)
{
	struct run r = run("irq:irq_handler_exit", "irq", "tid", 0);

	(void)state;
	assert_int_equal(group(&r, 24)->count, 4);
	assert_int_equal(group(&r, 24)->sum, 50 + 3 * 51);
	assert_int_equal(group(&r, 24)->values.min_ns, 50);
	assert_int_equal(group(&r, 24)->values.max_ns, 51);
	assert_int_equal(group(&r, 25)->count, 2);
	assert_null(group(&r, 26));
	run_end(&r);
	r = run("irq:irq_handler_exit/irq==24/", "cpu", NULL, 0);
	assert_int_equal(group(&r, 0)->count, 4);
	run_end(&r);
}

/* From 1 ms to 31 ms there are four intervals of 10 ms; the third is empty. */
static void test_intervals_without_events_count(void **state)
{
	struct run r = run("irq:irq_handler_exit", "0", NULL, 10000000);
	const struct event_group *g = group(&r, 0);

	(void)state;
	assert_int_equal(g->count, 6);
	assert_int_equal(g->values.count, 4);
	assert_int_equal(g->values.min_ns, 0);
	assert_int_equal(g->values.max_ns, 3);
	assert_int_equal(g->values.sum_ns, 6);
	assert_int_equal(g->busiest, 0);
	run_end(&r);
}

static void test_what_has_no_value_is_left_out(void **state)
{
	struct run r = run("irq:irq_handler_exit", "irq", "irq-25", 0);

	(void)state;
	/* Unsigned: no value is negative. */
	assert_int_equal(event_groups_limits_get(r.groups).negative, 0);
	run_end(&r);
	r = run("irq:irq_handler_exit", "irq", "tid-51", 0);
	assert_int_equal(event_groups_limits_get(r.groups).negative, 2);
	assert_int_equal(group(&r, 24)->count, 3);
	run_end(&r);
	r = run("irq:irq_handler_exit", "irq/(irq-24)", "1", 0);
	assert_int_equal(event_groups_limits_get(r.groups).without_key, 4);
	run_end(&r);
	r = run("irq:irq_handler_exit", "irq", "1/(irq-24)", 0);
	assert_int_equal(event_groups_limits_get(r.groups).without_value, 4);
	run_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts_and_sums),
		cmocka_unit_test(test_intervals_without_events_count),
		cmocka_unit_test(test_what_has_no_value_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
