/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the tables of run delay, of the time of guest tasks and of interrupts, with stories
 * whose figures are known. */
#include <stdlib.h>

#include "host-collector/tables/bill.h"
#include "host-collector/tables/exits.h"
#include "host-collector/tables/interrupts.h"
#include "host-collector/tables/run_delay.h"
#include "tests/unit/model_script.h"

enum { HOG = 500, WAKER = 900, FIRST = 42, SECOND = 50 };

/* In microseconds: the vCPU runs, is preempted 10000..30000 by HOG, runs, sleeps 40000..50000,
 * waits 3000 behind HOG, runs on another pCPU. The guest runs FIRST until 35000, then SECOND. */
static const struct timeline_event story[] = {
	SWITCH(HOST, 0, 0, 0, TID0, 0),
	SWITCH(HOST, 1, 1, 0, HOG, 0),
	SWITCH(VM, 2, 0, 0, FIRST, 0),
	IRQ(5000, 0, VECTOR_ENTRY, FIRST, VS_VECTOR_LOCAL_TIMER),
	IRQ(5007, 0, VECTOR_EXIT, FIRST, VS_VECTOR_LOCAL_TIMER),
	IRQ(9000, 0, SOFTIRQ_ENTRY, FIRST, 1),
	SWITCH(HOST, 10000, 0, TID0, HOG, 0),
	SWITCH(HOST, 30000, 0, HOG, TID0, 0),
	IRQ(31000, 0, SOFTIRQ_EXIT, FIRST, 1),
	SWITCH(VM, 35000, 0, FIRST, SECOND, 1),
	SWITCH(HOST, 40000, 0, TID0, 0, 1),
	WAKEUP(HOST, 50000, 0, TID0, WAKER, 1),
	SWITCH(HOST, 53000, 1, HOG, TID0, 0),
	SWITCH(VM, 60000, 0, SECOND, 0, 1),
	SWITCH(HOST, 70000, 1, TID0, 0, 0x2),
};

struct figures {
	struct model *model;
	struct run_delay *delay;
	struct bill *bill;
	struct interrupts *interrupts;
};

static struct figures figures_of(const struct timeline_event *events, size_t n)
{
	struct figures f = {.model = model_new()};

	assert_non_null(f.model);
	f.delay = run_delay_analysis.new(f.model, NULL);
	f.bill = bill_analysis.new(f.model, NULL);
	f.interrupts = interrupts_analysis.new(f.model, NULL);
	assert_true(f.delay && f.bill && f.interrupts);
	script_vm(f.model, 1, "kvm");
	script_run(f.model, events, n);
	model_finish(f.model);
	bill_analysis.finish(f.bill);
	assert_int_equal(bill_analysis.error(f.bill), 0);
	assert_int_equal(run_delay_analysis.error(f.delay), 0);
	interrupts_analysis.finish(f.interrupts);
	assert_int_equal(interrupts_analysis.error(f.interrupts), 0);
	return f;
}

static void figures_free(struct figures *f)
{
	model_free(f->model);
	run_delay_analysis.free(f->delay);
	bill_analysis.free(f->bill);
	interrupts_analysis.free(f->interrupts);
}

static const struct bill_task *task_find(const struct figures *f, int32_t pid)
{
	const struct bill_task *t;

	for (size_t i = 0; (t = bill_task(f->bill, i)); i++) {
		if (t->pid == pid)
			return t;
	}
	return NULL;
}

static void waits_are_told_by_what_made_them(void **unused)
{
	struct figures f = figures_of(story, COUNT(story));
	const struct run_delay_vcpu *v = run_delay_vcpu(f.delay, 0);

	(void)unused;
	assert_non_null(v);
	assert_null(run_delay_vcpu(f.delay, 1));
	assert_int_equal(v->waits[RUN_DELAY_PREEMPTED].count, 1);
	assert_int_equal(v->waits[RUN_DELAY_PREEMPTED].sum_ns, 20000000);
	assert_int_equal(v->waits[RUN_DELAY_WOKEN].count, 1);
	assert_int_equal(v->waits[RUN_DELAY_WOKEN].sum_ns, 3000000);
	assert_int_equal(v->state_ns[VCPU_RUNNABLE], 23000000);
	assert_int_equal(v->state_ns[VCPU_BLOCKED], 10000000);
	assert_int_equal(v->state_ns[VCPU_GUEST], 37000000);
	assert_int_equal(v->migrations, 1);
	figures_free(&f);
}

static void who_ran_instead_and_where(void **unused)
{
	struct figures f = figures_of(story, COUNT(story));
	const struct run_delay_holder *h = run_delay_holder(f.delay, 0);
	const struct run_delay_pcpu *p = run_delay_pcpu(f.delay, 1);

	(void)unused;
	assert_non_null(h);
	assert_int_equal(h->pid, HOG);
	assert_int_equal(h->held_ns, 23000000);
	assert_int_equal(h->waits, 2);
	assert_null(run_delay_holder(f.delay, 1));
	assert_non_null(p);
	assert_int_equal(p->pcpu, 1);
	assert_int_equal(p->wait_ns, 3000000);
	assert_int_equal(p->run_ns, 17000000);
	figures_free(&f);
}

static void tasks_are_billed_what_their_vcpu_did(void **unused)
{
	struct figures f = figures_of(story, COUNT(story));
	const struct bill_task *first = task_find(&f, FIRST), *second = task_find(&f, SECOND);

	(void)unused;
	assert_true(first && second);
	assert_int_equal(bill_believed_ns(first), 34998000);
	assert_int_equal(bill_ran_ns(first), 14998000);
	assert_int_equal(first->state_ns[VCPU_RUNNABLE], 20000000);
	assert_int_equal(first->longest_kept_ns, 20000000);
	assert_int_equal(first->stays, 1);
	assert_int_equal(bill_believed_ns(second), 25000000);
	assert_int_equal(bill_ran_ns(second), 12000000);
	assert_int_equal(second->state_ns[VCPU_BLOCKED], 10000000);
	assert_int_equal(second->state_ns[VCPU_RUNNABLE], 3000000);
	assert_int_equal(second->longest_kept_ns, 13000000);
	figures_free(&f);
}

static void without_the_host_a_task_is_billed_unknown(void **unused)
{
	struct timeline_event guest_only[COUNT(story)];
	struct figures f;
	const struct bill_task *first;
	size_t n = 0;

	(void)unused;
	for (size_t i = 0; i < COUNT(story); i++) {
		if (story[i].source == VM)
			guest_only[n++] = story[i];
	}
	f = figures_of(guest_only, n);
	first = task_find(&f, FIRST);
	assert_non_null(first);
	assert_int_equal(first->state_ns[VCPU_UNKNOWN], 34998000);
	assert_int_equal(bill_ran_ns(first), 0);
	figures_free(&f);
}

static void interrupts_last_from_entry_to_exit(void **unused)
{
	struct figures f = figures_of(story, COUNT(story));
	const struct interrupt_source *s;
	bool vector = false, softirq = false;

	(void)unused;
	for (size_t i = 0; (s = interrupts_source(f.interrupts, i)); i++) {
		assert_int_equal(s->durations.count, 1);
		assert_int_equal(s->torn, 0);
		if (s->vector) {
			vector = true;
			assert_int_equal(s->durations.max_ns, 7000);
		} else {
			softirq = true;
			assert_int_equal(s->kind, GUEST_CPU_SOFTIRQ);
			assert_int_equal(s->durations.max_ns, 22000000);
		}
	}
	assert_true(vector && softirq);
	figures_free(&f);
}

static struct run_delay *delay_in(const struct timeline_event *events, size_t n,
				  const struct figures_options *options)
{
	struct model *m = model_new();
	struct run_delay *r = run_delay_analysis.new(m, options);

	assert_non_null(r);
	script_vm(m, 1, "kvm");
	script_run(m, events, n);
	model_finish(m);
	model_free(m);
	return r;
}

static struct run_delay *delay_of(const struct figures_options *options)
{
	return delay_in(story, COUNT(story), options);
}

static void holders_add_up_to_the_wait(void **unused)
{
	/* Idle a millisecond in between, which nobody held. */
	static const struct timeline_event in_turn[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),       SWITCH(HOST, 10000, 0, TID0, 501, 0),
		SWITCH(HOST, 13000, 0, 501, HOG, 0),  SWITCH(HOST, 18000, 0, HOG, 502, 0),
		SWITCH(HOST, 20000, 0, 502, 0, 1),    SWITCH(HOST, 21000, 0, 0, 503, 0),
		SWITCH(HOST, 25000, 0, 503, TID0, 0), SWITCH(HOST, 30000, 0, TID0, 501, 0),
		SWITCH(HOST, 32000, 0, 501, TID0, 0), SWITCH(HOST, 40000, 0, TID0, 0, 1),
	};
	static const struct {
		int32_t pid;
		int64_t held_ns;
		uint64_t waits;
	} want[] = {{501, 5000000, 2}, {HOG, 5000000, 1}, {502, 2000000, 1}, {503, 4000000, 1}};
	struct run_delay *r =
		delay_in(in_turn, COUNT(in_turn), &(struct figures_options){.than_ns = 0});

	(void)unused;
	for (size_t i = 0; i < COUNT(want); i++) {
		const struct run_delay_holder *h = run_delay_holder(r, i);

		assert_non_null(h);
		assert_int_equal(h->pid, want[i].pid);
		assert_int_equal(h->held_ns, want[i].held_ns);
		assert_int_equal(h->waits, want[i].waits);
	}
	assert_null(run_delay_holder(r, COUNT(want)));
	run_delay_analysis.free(r);
}

/* More tasks than are kept, each for 1 ms of a wait of its own. */
static void no_holders_time_gets_lost(void **unused)
{
	enum { TASKS = 5000 };
	struct model *m = model_new();
	struct run_delay *r = run_delay_analysis.new(m, NULL);
	const struct run_delay_holder *h;
	int64_t held_ns = 0, others_ns = 0;

	(void)unused;
	script_vm(m, 1, "kvm");
	for (int64_t i = 0; i < TASKS; i++) {
		const int32_t pid = 1000 + (int32_t)i;
		const struct timeline_event events[] = {
			SWITCH(HOST, 3000 * i, 0, 0, TID0, 0),
			SWITCH(HOST, 3000 * i + 1000, 0, TID0, pid, 0),
			SWITCH(HOST, 3000 * i + 2000, 0, pid, TID0, 0),
			SWITCH(HOST, 3000 * i + 2500, 0, TID0, 0, 1),
		};

		script_run(m, events, COUNT(events));
	}
	model_finish(m);
	for (size_t i = 0; (h = run_delay_holder(r, i)); i++) {
		held_ns += h->held_ns;
		others_ns += h->pid == RUN_DELAY_OTHERS ? h->held_ns : 0;
	}
	assert_int_equal(held_ns, TASKS * 1000000ll);
	assert_int_equal(others_ns, (TASKS - 4096) * 1000000ll);
	model_free(m);
	run_delay_analysis.free(r);
}

static void shorter_waits_do_not_count(void **unused)
{
	struct run_delay *r = delay_of(&(struct figures_options){.than_ns = 3000001});
	const struct run_delay_vcpu *v = run_delay_vcpu(r, 0);

	(void)unused;
	assert_int_equal(v->waits[RUN_DELAY_PREEMPTED].count, 1);
	assert_int_equal(v->waits[RUN_DELAY_WOKEN].count, 0);
	assert_int_equal(v->state_ns[VCPU_RUNNABLE], 23000000);
	assert_int_equal(run_delay_holder(r, 0)->held_ns, 20000000);
	run_delay_analysis.free(r);
}

static void holders_split_by_pcpu_and_pcpus_by_vcpu(void **unused)
{
	struct run_delay *r =
		delay_of(&(struct figures_options){.per_vcpu = true, .per_pcpu = true});
	int64_t held[2] = {0};
	const struct run_delay_holder *h;
	const struct run_delay_pcpu *p;

	(void)unused;
	for (size_t i = 0; (h = run_delay_holder(r, i)); i++) {
		assert_true(h->pcpu < 2);
		held[h->pcpu] += h->held_ns;
	}
	assert_int_equal(held[0], 20000000);
	assert_int_equal(held[1], 3000000);
	for (size_t i = 0; (p = run_delay_pcpu(r, i)); i++) {
		assert_int_equal(p->vm, VM);
		assert_int_equal(p->vcpu, 0);
	}
	run_delay_analysis.free(r);
}

/* Figures of intervals: what lay before the cut is gone, what goes on over it is not. */
static void clearing_forgets_figures_but_not_what_goes_on(void **unused)
{
	static const struct timeline_event entry = KVM(0, 0, ENTRY, TID0, 0);
	struct model *m = model_new();
	struct run_delay *r = run_delay_analysis.new(m, NULL);
	struct bill *b = bill_analysis.new(m, NULL);
	struct interrupts *x = interrupts_analysis.new(m, NULL);
	const struct run_delay_vcpu *v;
	const struct bill_task *task;

	(void)unused;
	script_vm(m, 1, "kvm");
	/* With an event of KVM, so that spans are told at once. */
	script_run(m, story, 1);
	script_run(m, &entry, 1);
	script_run(m, story + 1, 6); /* up to the preemption */
	run_delay_analysis.clear(r);
	bill_analysis.clear(b);
	interrupts_analysis.clear(x);
	assert_null(run_delay_pcpu(r, 0));
	assert_null(bill_task(b, 0));
	assert_null(interrupts_source(x, 0));
	script_run(m, story + 7, COUNT(story) - 7);
	model_finish(m);
	bill_analysis.finish(b);
	assert_int_equal(bill_analysis.error(b), 0);
	v = run_delay_vcpu(r, 0);
	assert_non_null(v);
	assert_int_equal(v->waits[RUN_DELAY_PREEMPTED].count, 1);
	assert_int_equal(v->state_ns[VCPU_GUEST], 27000000);
	task = bill_task(b, 0);
	assert_non_null(task);
	assert_int_equal(interrupts_source(x, 0)->durations.max_ns, 22000000);
	model_free(m);
	run_delay_analysis.free(r);
	bill_analysis.free(b);
	interrupts_analysis.free(x);
}

/* 100 interrupts of 700 us within 100 ms on CPU 0, one on CPU 1. */
static void storms_are_dense_and_of_one_cpu(void **unused)
{
	struct model *m = model_new();
	struct interrupts *x = interrupts_analysis.new(m, NULL);
	const struct interrupt_source *s;

	(void)unused;
	script_vm(m, 2, "kvm");
	for (int i = 0; i < 250; i++) {
		const struct timeline_event pair[] = {
			IRQ(1000000 + 400 * i, 0, IRQ_ENTRY, FIRST, 24),
			IRQ(1000000 + 400 * i + 300, 0, IRQ_EXIT, FIRST, 24),
		};

		script_run(m, pair, 2);
	}
	for (int i = 0; i < 2; i++) {
		const struct timeline_event pair[] = {
			IRQ(1200000 + 50000 * i, 1, IRQ_ENTRY, SECOND, 24),
			IRQ(1240000 + 50000 * i, 1, IRQ_EXIT, SECOND, 24),
		};

		script_run(m, pair, 2);
	}
	model_finish(m);
	interrupts_analysis.finish(x);
	assert_int_equal(interrupts_analysis.error(x), 0);
	s = interrupts_source(x, 0);
	assert_non_null(s);
	assert_null(interrupts_source(x, 1));
	assert_int_equal(s->durations.count, 252);
	assert_int_equal(s->peak_count, 250);
	assert_int_equal(s->peak_ns, 80000000); /* on CPU 1: dense it is not */
	assert_int_equal(s->storm_ns, INTERRUPTS_WINDOW_NS);
	model_free(m);
	interrupts_analysis.free(x);
}

#define VMX(reason) ((reason) | 1ull << 32)

static const struct exit_reason *reason_find(const struct exits *x, uint32_t reason)
{
	const struct exit_reason *r;

	for (size_t i = 0; (r = exits_reason(x, i)); i++) {
		if (r->reason == reason)
			return r;
	}
	return NULL;
}

/* Totals, as the kernel has them since the capture began; a second capture begins anew. */
static void counted_exits_are_the_difference_of_totals(void **unused)
{
	struct message_exit_cell cells[] = {
		{.vcpu = 0,
		 .isa = 1,
		 .reason = 48,
		 .count = 10,
		 .kernel_ns = 9000,
		 .vmm_ns = 1000,
		 .max_ns = 1500},
		{.vcpu = 1, .isa = 1, .reason = 48, .count = 1, .kernel_ns = 800, .max_ns = 800},
	};
	struct message_exit_summary m1 = {.vm = VM, .n_cells = 2, .cells = cells};
	struct model *m = model_new();
	struct exits *x = exits_analysis.new(m, NULL);
	const struct exit_reason *r;

	(void)unused;
	script_vm(m, 2, "kvm");
	cells[0].buckets[exit_bucket_of(1000)] = 10;
	cells[1].buckets[exit_bucket_of(800)] = 1;
	model_exits_counted(m, &m1);
	model_exits_counted(m, &m1); /* nothing new */
	r = reason_find(x, 48);
	assert_int_equal(r->handling.count, 11);
	assert_int_equal(r->kernel_ns, 9800);
	assert_int_equal(r->vmm_ns, 1000);
	assert_int_equal(r->handling.max_ns, 1500);
	cells[0].count = 12;
	cells[0].kernel_ns = 11000;
	cells[0].buckets[exit_bucket_of(1000)] = 12;
	m1.n_cells = 1;
	model_exits_counted(m, &m1);
	assert_int_equal(r->handling.count, 13);
	assert_int_equal(r->kernel_ns, 11800);
	cells[0].count = 1;
	cells[0].kernel_ns = 1000;
	cells[0].vmm_ns = 0;
	cells[0].buckets[exit_bucket_of(1000)] = 1;
	model_exits_counted(m, &m1);
	assert_int_equal(r->handling.count, 14);
	assert_int_equal(r->kernel_ns, 12800);
	assert_int_equal(exits_handling_ns(x, VM, 0), 13800);
	assert_in_range(histogram_quantile(&r->handling, 0.5), 875, 1125);
	assert_int_equal(exits_analysis.error(x), 0);
	assert_true(model_data_of(m, VM).exits_counted);
	model_free(m);
	exits_analysis.free(x);
}

static void exits_keep_their_costs_apart(void **unused)
{
	static const struct timeline_event events[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),        KVM(500, 0, ENTRY, TID0, 0),
		KVM(1000, 0, EXIT, TID0, VMX(12)), /* HLT: 100 us, asleep, 9 us */
		SWITCH(HOST, 1100, 0, TID0, 0, 1),     WAKEUP(HOST, 5000, 0, TID0, WAKER, 0),
		SWITCH(HOST, 5001, 0, 0, TID0, 0),     KVM(5010, 0, ENTRY, TID0, 0),
		KVM(6000, 0, EXIT, TID0, VMX(30)), /* I/O: preempted in QEMU */
		KVM(6010, 0, USERSPACE_EXIT, TID0, 2), SWITCH(HOST, 6050, 0, TID0, HOG, 0),
		SWITCH(HOST, 8050, 0, HOG, TID0, 0),   KVM(8100, 0, ENTRY, TID0, 0),
		KVM(9000, 0, EXIT, TID0, VMX(30)), /* its end is lost */
		KVM(9050, 0, USERSPACE_EXIT, TID0, 2), LOST(HOST, 9100, 0),
		KVM(9200, 0, ENTRY, TID0, 0),
	};
	const struct exit_reason *hlt, *io;
	struct model *m = model_new();
	struct exits *x = exits_analysis.new(m, NULL);

	(void)unused;
	assert_non_null(x);
	script_vm(m, 1, "kvm");
	script_run(m, events, COUNT(events));
	model_finish(m);
	assert_int_equal(exits_analysis.error(x), 0);
	hlt = reason_find(x, 12);
	io = reason_find(x, 30);
	assert_true(hlt && io);
	assert_int_equal(hlt->handling.count, 1);
	assert_int_equal(hlt->kernel_ns, 109000);
	assert_int_equal(hlt->slept_ns, 3900000);
	assert_int_equal(hlt->scheduled_out_ns, 1000);
	assert_int_equal(hlt->vmm_ns, 0);
	assert_int_equal(hlt->torn, 0);
	assert_int_equal(io->handling.count, 1);
	assert_int_equal(io->kernel_ns, 10000);
	assert_int_equal(io->vmm_ns, 90000);
	assert_int_equal(io->scheduled_out_ns, 2000000);
	assert_int_equal(io->torn, 1);
	assert_int_equal(exits_handling_ns(x, VM, 0), 209000);
	model_free(m);
	exits_analysis.free(x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_are_told_by_what_made_them),
		cmocka_unit_test(who_ran_instead_and_where),
		cmocka_unit_test(tasks_are_billed_what_their_vcpu_did),
		cmocka_unit_test(without_the_host_a_task_is_billed_unknown),
		cmocka_unit_test(interrupts_last_from_entry_to_exit),
		cmocka_unit_test(no_holders_time_gets_lost),
		cmocka_unit_test(shorter_waits_do_not_count),
		cmocka_unit_test(holders_split_by_pcpu_and_pcpus_by_vcpu),
		cmocka_unit_test(holders_add_up_to_the_wait),
		cmocka_unit_test(clearing_forgets_figures_but_not_what_goes_on),
		cmocka_unit_test(storms_are_dense_and_of_one_cpu),
		cmocka_unit_test(exits_keep_their_costs_apart),
		cmocka_unit_test(counted_exits_are_the_difference_of_totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
