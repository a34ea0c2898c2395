/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the strip of time that a report draws for an incident. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "host-collector/analyze/scene/strip.h"
#include "tests/unit/model_script.h"

enum { HOG = 900, TASK = 50, OTHER = 51, CELLS = 40 };
#define MS 1000000ll

static const struct incident incident = {
	.vm = VM, .guest_cpu = 0, .vcpu = 0, .begin = {100 * MS}, .end = {500 * MS}};

static void push(struct model *m, struct timeline_event e)
{
	assert_int_equal(model_push(m, &e, 1), 0);
}

#define PUSH(m, macro) push(m, (struct timeline_event)macro)

static unsigned count(const struct strip *s, enum vcpu_state state, unsigned from, unsigned until)
{
	unsigned n = 0;

	for (unsigned i = from; i < until; i++)
		n += s->vcpu_states[i] == state;
	return n;
}

static void states_come_in_order_below_the_guests_tasks(void **unused)
{
	struct model *m = model_new();
	struct strips *s = strips_new(m, CELLS, MS);
	const struct strip *strip;

	(void)unused;
	script_vm(m, 1, "kvm");
	PUSH(m, SWITCH(HOST, 1000, 1, 0, TID0, 0));
	PUSH(m, SWITCH(VM, 1100, 0, 0, TASK, 0));
	PUSH(m, WAKEUP(VM, 90000, 0, OTHER, TASK, 0));
	PUSH(m, SWITCH(VM, 150000, 0, TASK, OTHER, 0));
	PUSH(m, SWITCH(HOST, 200000, 1, TID0, HOG, 0));
	PUSH(m, SWITCH(HOST, 450000, 1, HOG, TID0, 0));
	strips_incident(s, &incident);
	PUSH(m, SWITCH(HOST, 700000, 1, TID0, 0, 1));
	model_finish(m);
	assert_int_equal(strips_finish(s), 0);
	strip = strips_find(s, &incident);
	assert_non_null(strip);
	assert_int_equal(strip->n_cells, CELLS);
	/* 10 ms a cell: 100 ms in the guest, 250 ms without a pCPU, 50 ms in the guest. */
	assert_int_equal(count(strip, VCPU_GUEST, 0, 10), 10);
	assert_int_equal(count(strip, VCPU_RUNNABLE, 10, 35), 25);
	assert_int_equal(count(strip, VCPU_GUEST, 35, 40), 5);
	assert_int_equal(strip->n_runs, 2);
	assert_int_equal(strip->runs[0].pid, TASK);
	assert_int_equal(strip->runs[0].n, 5);
	assert_int_equal(strip->runs[1].pid, OTHER);
	assert_int_equal(strip->runs[1].first, 5);
	assert_int_equal(strip->runs[1].n, 35);
	strips_free(s);
	model_free(m);
}

/* Spans of 30 and 70 us in turns: most of each cell is the longer ones'. */
static void short_spans_count_by_their_sum(void **unused)
{
	struct model *m = model_new();
	struct strips *s = strips_new(m, CELLS, MS);
	const struct strip *strip;

	(void)unused;
	script_vm(m, 1, "kvm");
	PUSH(m, SWITCH(HOST, 0, 1, 0, TID0, 0));
	for (int64_t us = 100; us < 600000; us += 100) {
		PUSH(m, SWITCH(HOST, us, 1, TID0, HOG, 0));
		PUSH(m, SWITCH(HOST, us + (us < 300000 ? 30 : 70), 1, HOG, TID0, 0));
	}
	strips_incident(s, &incident);
	model_finish(m);
	assert_int_equal(strips_finish(s), 0);
	strip = strips_find(s, &incident);
	assert_non_null(strip);
	assert_int_equal(count(strip, VCPU_GUEST, 0, 20), 20);
	assert_int_equal(count(strip, VCPU_RUNNABLE, 20, 40), 20);
	strips_free(s);
	model_free(m);
}

/* In each cell of 10 ms: TASK 3 ms, OTHER 4 ms, TASK 3 ms. TASK has more, though OTHER has the
 * longest span. */
static void a_cell_has_what_took_most_of_it_together(void **unused)
{
	struct model *m = model_new();
	struct strips *s = strips_new(m, CELLS, MS);
	const struct strip *strip;

	(void)unused;
	script_vm(m, 1, "kvm");
	PUSH(m, SWITCH(HOST, 0, 1, 0, TID0, 0));
	PUSH(m, SWITCH(VM, 10, 0, 0, TASK, 0));
	for (int64_t us = 100000; us < 600000; us += 10000) {
		PUSH(m, SWITCH(VM, us + 3000, 0, TASK, OTHER, 0));
		PUSH(m, SWITCH(VM, us + 7000, 0, OTHER, TASK, 0));
	}
	strips_incident(s, &incident);
	model_finish(m);
	assert_int_equal(strips_finish(s), 0);
	strip = strips_find(s, &incident);
	assert_non_null(strip);
	assert_int_equal(strip->n_runs, 1);
	assert_int_equal(strip->runs[0].pid, TASK);
	strips_free(s);
	model_free(m);
}

static void a_strip_belongs_to_its_incident(void **unused)
{
	struct model *m = model_new();
	struct strips *s = strips_new(m, CELLS, MS);
	struct incident other = incident;

	(void)unused;
	script_vm(m, 1, "kvm");
	for (int64_t k = 1; k <= STRIPS_MAX + 10; k++) {
		struct incident i = incident;

		i.begin.ns = k * 1000 * MS;
		i.end.ns = i.begin.ns + (k == 3 ? 100 : 200) * MS;
		PUSH(m, SWITCH(HOST, i.begin.ns / 1000, 1, 0, TID0, 0));
		PUSH(m, SWITCH(HOST, i.end.ns / 1000, 1, TID0, 0, 1));
		strips_incident(s, &i);
		if (k == 3)
			other = i;
	}
	model_finish(m);
	assert_int_equal(strips_finish(s), 0);
	assert_null(strips_find(s, &incident)); /* it was never added */
	assert_null(strips_find(s, &other));    /* the shortest one */
	other.begin.ns = 7000 * MS;
	other.end.ns = 7200 * MS;
	assert_non_null(strips_find(s, &other));
	other.vcpu = 1;
	assert_null(strips_find(s, &other));
	strips_free(s);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_come_in_order_below_the_guests_tasks),
		cmocka_unit_test(short_spans_count_by_their_sum),
		cmocka_unit_test(a_cell_has_what_took_most_of_it_together),
		cmocka_unit_test(a_strip_belongs_to_its_incident),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
