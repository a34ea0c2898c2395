/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that for each stall every detector states whether it found the stall, or why not. */
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_tale.h"

#include "tests/unit/balance.h"

static struct tale tale;

enum { BLIND = SIGHT_BLIND, NO = SIGHT_NO, YES = SIGHT_YES };

static void spins_and_a_task_waits(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 800000, 50);
	ADD(t, WAKEUP(VM, 210000, 0, 60, 50, 0));
	ADD(t, SWITCH(VM, 800000, 0, 50, 60, 0));
}

static void spins_with_interrupts_off(struct tale *t)
{
	tale_begin(t);
	ADD(t, SWITCH(VM, 800000, 0, 50, 42, 0));
}

static void a_task_waits_and_ticks_stop(struct tale *t)
{
	tale_begin(t);
	ADD(t, WAKEUP(VM, 200100, 0, 60, 50, 0));
	ADD(t, SWITCH(VM, 800000, 0, 50, 60, 0));
}

/* The wake-up came when the stall was nearly over. */
static void a_task_waits_a_little(struct tale *t)
{
	tale_begin(t);
	ADD(t, WAKEUP(VM, 790000, 0, 60, 50, 0));
	ADD(t, SWITCH(VM, 800000, 0, 50, 60, 0));
}

static void spins_for_30_s(struct tale *t)
{
	tale_begin(t);
	ADD(t, WAKEUP(VM, 210000, 0, 60, 50, 0));
	ADD(t, SWITCH(VM, 30200000, 0, 50, 60, 0));
}

static void paused_for_30_s(struct tale *t)
{
	tale_begin(t);
	tale_vmm(t, 300000, NOTE_VM_PAUSED);
	tale_away(t, 300100, 30300000, VS_TASK_INTERRUPTIBLE, 0);
	tale_vmm(t, 30299000, NOTE_VM_RESUMED);
	ADD(t, SWITCH(VM, 30310000, 0, 50, 42, 1));
}

#define LINE "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [victim:50]"

static const struct {
	const char *name;
	void (*emit)(struct tale *t);
	uint32_t watchdog_s; /* the guest's own threshold, 0: not told */
	const char *line;    /* of the guest's log, in the middle of the stall */
	int saw[DETECTOR_COUNT];
	const char *why[DETECTOR_COUNT];
} stories[] = {
	{"a task waits, ticks go on",
	 spins_and_a_task_waits,
	 0,
	 NULL,
	 {YES, NO, NO},
	 {"waiter (60) waited 590 ms", "they went on, at most 4.0 ms apart",
	  "shorter than its threshold, 20.0 s by default"}},
	{"no task waits, ticks stop",
	 spins_with_interrupts_off,
	 8,
	 NULL,
	 {NO, YES, NO},
	 {"no other task waited", "none for 600 ms, normally one every 4.0 ms",
	  "shorter than its threshold, 8000 ms"}},
	{"both",
	 a_task_waits_and_ticks_stop,
	 0,
	 NULL,
	 {YES, YES, NO},
	 {"waiter", "none", "shorter"}},
	{"a task waits, but not for long",
	 a_task_waits_a_little,
	 0,
	 NULL,
	 {NO, YES, NO},
	 {"waited only 10.0 ms for this CPU", "none", "shorter"}},
	{"all three",
	 spins_for_30_s,
	 20,
	 LINE,
	 {YES, YES, YES},
	 {"waiter", "none", "the guest's log says that its CPU was stuck for 22 s"}},
	{"long, and no line in the guest's log",
	 spins_for_30_s,
	 20,
	 NULL,
	 {YES, YES, NO},
	 {"waiter", "none", "no such line in the recorded part of the guest's log"}},
	{"a long pause, of which QEMU tells the guest",
	 paused_for_30_s,
	 20,
	 NULL,
	 {NO, YES, NO},
	 {"no other task", "none", "does not count time in which the VM was paused"}},
	{"an idle CPU",
	 tale_idle_and_stopped,
	 0,
	 NULL,
	 {BLIND, BLIND, BLIND},
	 {"the guest's CPU idled", "idled", "idled"}},
	{"no agent",
	 tale_silent_and_stopped,
	 0,
	 NULL,
	 {BLIND, BLIND, BLIND},
	 {"no event of the guest was recorded", "no event", "no event"}},
};

/* The guest's log has the timeline's own time. */
static bool same_time(void *context, uint32_t vm, struct host_ns t, struct dmesg_time *out)
{
	(void)context;
	(void)vm;
	*out = (struct dmesg_time){.ns = (uint64_t)t.ns};
	return true;
}

static void every_detector_says_whether_it_saw_it(void **state)
{
	(void)state;
	for (size_t k = 0; k < COUNT(stories); k++) {
		struct report_options options = {.than_ns = 100000000, .dmesg = same_time};
		struct model *m = model_new();
		struct report_builder *b = report_builder_new(m, &options);
		struct report *r;

		script_vm(m, 1, "tcg");
		assert_int_equal(model_guest_watchdog(m, VM, stories[k].watchdog_s), 0);
		stories[k].emit(&tale);
		tale_play(&tale, m);
		model_finish(m);
		if (stories[k].line)
			assert_int_equal(report_builder_log(b, VM, 0, 22500000, stories[k].line),
					 0);
		r = report_builder_finish(b);
		print_message("  %s\n", stories[k].name);
		assert_int_equal(r->n_incidents, 1);
		assert_balances(r);
		for (int d = 0; d < DETECTOR_COUNT; d++) {
			const struct report_detector *x = &r->incidents[0].detectors[d];

			print_message("    %s %d: %s\n", detector_name((enum detector)d),
				      (int)x->sight, finding_text(&x->why, 1).text);
			assert_int_equal(x->sight, stories[k].saw[d]);
			assert_non_null(strstr(finding_text(&x->why, 1).text, stories[k].why[d]));
		}
		report_free(r);
		report_builder_free(b);
		model_free(m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_detector_says_whether_it_saw_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
