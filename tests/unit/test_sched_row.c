/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests a CPU's switches in a trace: readers drop the oldest, so it is written twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host-collector/export/sched_row.h"

static void the_oldest_is_written_twice(void **unused)
{
	static const uint64_t times[] = {1000, 2000, 500, 501, 3000};
	static const struct {
		uint64_t t;
		int32_t next;
	} want[] = {{500, 3}, {500, 3}, {501, 4}, {3000, 5}};
	FILE *out = tmpfile();
	struct sched_row *row = sched_row_new(TRACE_MACHINE_HOST, 0);
	struct trace_file file;

	(void)unused;
	assert_non_null(out);
	assert_non_null(row);
	assert_int_equal(trace_file_init(&file, out), 0);
	for (size_t i = 0; i < 2; i++)
		sched_row_switch(row, &file,
				 &(struct sched_switch){
					 .t = times[i], .next = (int32_t)i + 1, .name = "task"});
	assert_int_equal(row->n_switches, 3);
	assert_int_equal(row->switches[0].t, row->switches[1].t);
	/* What is older begins a bundle of its own. */
	for (size_t i = 2; i < 5; i++)
		sched_row_switch(row, &file,
				 &(struct sched_switch){
					 .t = times[i], .next = (int32_t)i + 1, .name = "task"});
	assert_int_equal(row->n_switches, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(row->switches[i].t, want[i].t);
		assert_int_equal(row->switches[i].next, want[i].next);
	}
	sched_row_free(row);
	assert_int_equal(trace_file_finish(&file), 0);
	trace_file_fini(&file);
	fclose(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_oldest_is_written_twice)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
