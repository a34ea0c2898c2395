/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests storms, which are many waits of a vCPU, each shorter than the threshold: which of them
 * are incidents, which are a fair share of a pCPU, and what samples of their stacks show. No time
 * is reported both for a storm and for a run interval of a guest's task. */
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_tale.h"

#include "host-collector/analyze/stall/verdict.h"
#include "tests/unit/balance.h"

enum { STACK_SWAP = 1, STACK_USERFAULT, STACK_MMAP, STACK_HALT, STACK_DISK };

static struct tale tale;

static void stacks(struct model *m)
{
	static const struct {
		uint32_t id;
		const char *symbols[3];
	} table[] = {
		{STACK_SWAP, {"folio_wait_bit_common", "__folio_lock_or_retry", "do_swap_page"}},
		{STACK_USERFAULT, {"schedule", "handle_userfault", "do_user_addr_fault"}},
		{STACK_MMAP, {"schedule", "rwsem_down_read_slowpath", "do_user_addr_fault"}},
		{STACK_HALT, {"schedule", "kvm_vcpu_block", "kvm_arch_vcpu_ioctl_run"}},
		{STACK_DISK, {"io_schedule", "bit_wait_io", "blkdev_read"}},
	};

	for (size_t i = 0; i < COUNT(table); i++)
		script_stack(m, table[i].id, TID0, table[i].symbols, 3);
}

static struct report *judge(void (*emit)(struct tale *t))
{
	struct report_options options = {.than_ns = 100000000};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct report *r;

	script_vm(m, 1, "tcg");
	stacks(m);
	emit(&tale);
	tale_play(&tale, m);
	model_finish(m);
	r = report_builder_finish(b);
	assert_non_null(r);
	report_builder_free(b);
	model_free(m);
	return r;
}

/* The host's side alone. */
static void silent_begin(struct tale *t)
{
	t->n = t->n_vmm = 0;
	ADD(t, SWITCH(HOST, 0, 0, 0, TID0, 0));
}

static void silent_end(struct tale *t)
{
	ADD(t, SWITCH(HOST, 9000000, 0, TID0, 0, 1));
}

/* ---- turns on the pCPU ---- */

static void turns(struct tale *t, int64_t from_us, int64_t to_us, int64_t away_us, int64_t every_us)
{
	for (int64_t at = from_us; at < to_us; at += every_us)
		tale_away(t, at, at + away_us, VS_TASK_RUNNING, 500);
}

static void silent_turns(struct tale *t, int64_t away_us, int64_t every_us)
{
	silent_begin(t);
	turns(t, 300000, 3300000, away_us, every_us);
	silent_end(t);
}

static void silent_third(struct tale *t)
{
	silent_turns(t, 3000, 10000);
}

static void silent_half(struct tale *t)
{
	silent_turns(t, 4000, 8000);
}

static void silent_one_of_three(struct tale *t)
{
	silent_turns(t, 8000, 12000);
}

static void silent_tenth_left(struct tale *t)
{
	silent_turns(t, 27000, 30000);
}

/* Task 50 computes all the time, and its ticks come when the vCPU runs. */
static void guest_turns(struct tale *t, int64_t away_us, int64_t every_us)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	for (int64_t at = 300000 + away_us; at < 3400000; at += every_us) {
		ADD(t, IRQ(at + 100, 0, VECTOR_ENTRY, 50, VS_VECTOR_LOCAL_TIMER));
		ADD(t, IRQ(at + 105, 0, VECTOR_EXIT, 50, VS_VECTOR_LOCAL_TIMER));
	}
	turns(t, 300000, 3300000, away_us, every_us);
	ADD(t, SWITCH(VM, 3400000, 0, 50, 42, 1));
}

static void guest_third(struct tale *t)
{
	guest_turns(t, 3000, 10000);
}

static void guest_half(struct tale *t)
{
	guest_turns(t, 4000, 8000);
}

static void guest_tenth_left(struct tale *t)
{
	guest_turns(t, 27000, 30000);
}

/* The pCPU idles meanwhile: nobody has a share of it. */
static void silent_quota(struct tale *t)
{
	silent_begin(t);
	for (int64_t at = 300000; at < 3300000; at += 100000)
		tale_away(t, at, at + 90000, VS_TASK_RUNNING, 0);
	silent_end(t);
}

static void silent_half_quota(struct tale *t)
{
	silent_begin(t);
	for (int64_t at = 300000; at < 3300000; at += 100000)
		tale_away(t, at, at + 60000, VS_TASK_RUNNING, 0);
	silent_end(t);
}

/*
 * Others run on the pCPU whenever the vCPU's quota is used up, and a reading comes in the middle of
 * a wait: its increase is that of the wait before. In each second one wait is not for the quota,
 * and is as long as `other_us`.
 */
static void busy_quota(struct tale *t, int64_t other_us)
{
	int64_t last = 0;

	silent_begin(t);
	for (int64_t at = 300000; at < 3300000; at += 100000) {
		bool other = at % 1000000 == 0;

		tale_away(t, at, at + (other ? other_us : 90000), VS_TASK_RUNNING, 500);
		tale_quota(t, at - 50000, at + 50000, 1, last);
		last = other ? 0 : 86000;
	}
	tale_quota(t, 3250000, 3350000, 1, last);
	silent_end(t);
}

static void silent_busy_quota(struct tale *t)
{
	busy_quota(t, 90000);
}

static void silent_busy_quota_and_another(struct tale *t)
{
	busy_quota(t, 40000);
}

/* ---- sleeps, of which samples bring their stack ---- */

struct sleeps {
	int64_t from_us, to_us, sleep_us, every_us;
	uint32_t state;
	int sample_every;            /* the sleeps: each n-th brings a stack... */
	uint32_t stack, other_stack; /* ... this one, or each time the other; 0 none */
};

static void sleeps(struct tale *t, const struct sleeps *s)
{
	uint32_t stack = s->stack;
	int n = 0;

	for (int64_t at = s->from_us; at < s->to_us; at += s->every_us) {
		tale_away(t, at, at + s->sleep_us, s->state, 0);
		if (++n % s->sample_every)
			continue;
		ADD(t, STACK(at + s->sleep_us - 30, SHORT, TID0, TID0, stack, s->sleep_us));
		if (s->other_stack)
			stack = stack == s->stack ? s->other_stack : s->stack;
	}
}

static void silent_sleeps(struct tale *t, const struct sleeps *s)
{
	silent_begin(t);
	sleeps(t, s);
	silent_end(t);
}

static void silent_swap(struct tale *t)
{
	silent_sleeps(t, &(struct sleeps){300000, 1300000, 2000, 2500, VS_TASK_UNINTERRUPTIBLE, 5,
					  STACK_SWAP, 0});
}

/* A signal could end them, as it could a halt; no event of KVM's tells. */
static void silent_userfaults(struct tale *t)
{
	silent_sleeps(t, &(struct sleeps){300000, 1800000, 5000, 5010, VS_TASK_INTERRUPTIBLE, 2,
					  STACK_USERFAULT, 0});
}

static void silent_mmap_lock(struct tale *t)
{
	silent_sleeps(t, &(struct sleeps){300000, 1300000, 700, 1000, VS_TASK_UNINTERRUPTIBLE, 14,
					  STACK_MMAP, 0});
}

static void silent_few_samples(struct tale *t)
{
	silent_sleeps(t, &(struct sleeps){300000, 1300000, 2000, 2500, VS_TASK_UNINTERRUPTIBLE, 50,
					  STACK_SWAP, 0});
}

static void silent_halts(struct tale *t)
{
	silent_sleeps(t, &(struct sleeps){300000, 3300000, 5000, 5010, VS_TASK_INTERRUPTIBLE, 2,
					  STACK_HALT, 0});
}

/* Each second sample shows a halt: two of one class never come in a row. */
static void silent_halts_and_userfaults(struct tale *t)
{
	silent_sleeps(t, &(struct sleeps){300000, 3300000, 5000, 5010, VS_TASK_INTERRUPTIBLE, 4,
					  STACK_USERFAULT, STACK_HALT});
}

/* Half of the time in either: none is the cause. */
static void silent_two_kinds(struct tale *t)
{
	silent_sleeps(t, &(struct sleeps){300000, 1300000, 2000, 2500, VS_TASK_UNINTERRUPTIBLE, 5,
					  STACK_SWAP, STACK_MMAP});
}

/* ---- beside the guest's tasks ---- */

static void busy_begin(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
}

/* The guest switches between two tasks, each of which sleeps for 6 ms of its 10. */
static void short_tasks(struct tale *t, int64_t from_us, int64_t to_us)
{
	int32_t runs = 50;

	for (int64_t at = from_us; at < to_us; at += 10000) {
		ADD(t, SWITCH(VM, at, 0, runs, runs == 50 ? 42 : 50, 1));
		runs = runs == 50 ? 42 : 50;
	}
	sleeps(t, &(struct sleeps){from_us + 1000, to_us, 6000, 10000, VS_TASK_UNINTERRUPTIBLE, 2,
				   STACK_SWAP, 0});
}

static void across_tasks(struct tale *t)
{
	busy_begin(t);
	short_tasks(t, 300000, 1100000);
	ADD(t, SWITCH(VM, 1100000, 0, 50, 0, 1));
	ADD(t, SWITCH(HOST, 1100500, 0, TID0, 0, 1));
}

/* The same, between them a stretch of 600 ms that is told by itself. */
static void across_a_long_task(struct tale *t)
{
	busy_begin(t);
	short_tasks(t, 300000, 700000);
	for (int64_t at = 708000; at < 1300000; at += 10000)
		tale_ticks(t, at, at + 1, 60);
	sleeps(t, &(struct sleeps){701000, 1300000, 6000, 10000, VS_TASK_UNINTERRUPTIBLE, 2,
				   STACK_SWAP, 0});
	ADD(t, SWITCH(VM, 700000, 0, 50, 60, 1));
	ADD(t, SWITCH(VM, 1300000, 0, 60, 50, 1));
	short_tasks(t, 1310000, 1710000);
	ADD(t, SWITCH(VM, 1710000, 0, 50, 0, 1));
	ADD(t, SWITCH(HOST, 1710500, 0, TID0, 0, 1));
}

/* Short tasks, then task 60 for 110 ms, then short tasks. The host takes 88 ms of the 110. That run
 * interval is reported, because task 50 waited for the guest's CPU for longer than the threshold.
 */
static void before_a_wait_in_the_guest(struct tale *t)
{
	busy_begin(t);
	short_tasks(t, 300000, 700000);
	for (int64_t at = 709500; at < 810000; at += 10000)
		tale_ticks(t, at, at + 1, 60);
	sleeps(t, &(struct sleeps){701000, 810000, 8000, 10000, VS_TASK_UNINTERRUPTIBLE, 1,
				   STACK_SWAP, 0});
	ADD(t, SWITCH(VM, 700000, 0, 50, 60, VS_TASK_RUNNING));
	ADD(t, SWITCH(VM, 810000, 0, 60, 50, 1));
	short_tasks(t, 820000, 1220000);
	ADD(t, SWITCH(VM, 1220000, 0, 50, 0, 1));
	ADD(t, SWITCH(HOST, 1220500, 0, TID0, 0, 1));
}

/* Stretches of 150 ms, in each of which the host takes 90: too little for either alone. */
static void across_stretches_that_are_not_told(struct tale *t)
{
	int32_t runs = 50;

	busy_begin(t);
	for (int64_t at = 300000; at < 1200000; at += 150000) {
		ADD(t, SWITCH(VM, at, 0, runs, runs == 50 ? 42 : 50, 1));
		runs = runs == 50 ? 42 : 50;
		for (int64_t tick = at + 8000; tick < at + 150000; tick += 10000)
			tale_ticks(t, tick, tick + 1, runs);
	}
	sleeps(t, &(struct sleeps){301000, 1200000, 6000, 10000, VS_TASK_UNINTERRUPTIBLE, 2,
				   STACK_SWAP, 0});
	ADD(t, SWITCH(VM, 1200000, 0, 50, 0, 1));
	ADD(t, SWITCH(HOST, 1200500, 0, TID0, 0, 1));
}

static const struct storm {
	const char *name;
	void (*emit)(struct tale *t);
	size_t least, most; /* incidents */
	enum verdict verdict;
	enum confidence confidence;
	enum vcpu_state state; /* of which... */
	int64_t reported_us;   /* ... so much is told, in all of them */
} storms[] = {
	{"a third to others, without an agent", silent_third, 0, 0, 0, 0, 0, 0},
	{"half to another, without an agent", silent_half, 0, 0, 0, 0, 0, 0},
	{"two thirds to two others", silent_one_of_three, 0, 0, 0, 0, 0, 0},
	{"a third to others", guest_third, 0, 0, 0, 0, 0, 0},
	{"half to another", guest_half, 0, 0, 0, 0, 0, 0},
	{"nine tenths to others, without an agent", silent_tenth_left, 3, 4,
	 VERDICT_VCPU_NOT_SCHEDULED, CONFIDENCE_DECIDED, VCPU_RUNNABLE, 2700000},
	{"nine tenths to others", guest_tenth_left, 1, 1, VERDICT_VCPU_NOT_SCHEDULED,
	 CONFIDENCE_DECIDED, VCPU_RUNNABLE, 2700000},
	{"a quota of a tenth", silent_quota, 3, 4, VERDICT_CGROUP_THROTTLED, CONFIDENCE_LIKELY,
	 VCPU_RUNNABLE, 2700000},
	{"a quota of four tenths", silent_half_quota, 3, 4, VERDICT_CGROUP_THROTTLED,
	 CONFIDENCE_LIKELY, VCPU_RUNNABLE, 1800000},
	{"a quota of a tenth, while others run", silent_busy_quota, 3, 4, VERDICT_CGROUP_THROTTLED,
	 CONFIDENCE_DECIDED, VCPU_THROTTLED, 27 * 90000},
	{"a quota of a tenth, while others run, and one more wait", silent_busy_quota_and_another,
	 3, 4, VERDICT_CGROUP_THROTTLED, CONFIDENCE_DECIDED, VCPU_THROTTLED, 27 * 90000},
	{"swap", silent_swap, 1, 2, VERDICT_DEMAND_PAGING, CONFIDENCE_DECIDED, VCPU_BLOCKED,
	 800000},
	{"userfaults that could be halts", silent_userfaults, 2, 2, VERDICT_DEMAND_PAGING,
	 CONFIDENCE_DECIDED, VCPU_BLOCKED, 1500000},
	{"the lock of the memory map", silent_mmap_lock, 1, 2, VERDICT_MMU_CONTENTION,
	 CONFIDENCE_DECIDED, VCPU_BLOCKED, 700000},
	{"swap, of which few samples came", silent_few_samples, 1, 2, VERDICT_DEMAND_PAGING,
	 CONFIDENCE_LIKELY, VCPU_BLOCKED, 800000},
	{"two causes", silent_two_kinds, 1, 2, 0, 0, VCPU_BLOCKED, 800000},
	{"an idle guest", silent_halts, 0, 0, 0, 0, 0, 0},
	{"an idle guest with a few userfaults", silent_halts_and_userfaults, 0, 0, 0, 0, 0, 0},
	{"across tasks", across_tasks, 1, 2, VERDICT_DEMAND_PAGING, CONFIDENCE_DECIDED,
	 VCPU_BLOCKED, 480000},
	{"across a long task", across_a_long_task, 3, 3, VERDICT_DEMAND_PAGING, CONFIDENCE_DECIDED,
	 VCPU_BLOCKED, 840000},
	{"before a wait in the guest", before_a_wait_in_the_guest, 3, 3, VERDICT_DEMAND_PAGING,
	 CONFIDENCE_DECIDED, VCPU_BLOCKED, 568000},
	{"across stretches that are not told", across_stretches_that_are_not_told, 1, 2,
	 VERDICT_DEMAND_PAGING, CONFIDENCE_DECIDED, VCPU_BLOCKED, 540000},
};

static void told_once(const struct report *r, const struct storm *s)
{
	int64_t reported_ns = 0;

	for (size_t i = 0; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		print_message("    %lld..%lld ms: %s %s, %u short waits, %lld ms; %s\n",
			      (long long)x->begin.ns / 1000000, (long long)x->end.ns / 1000000,
			      verdict_name(x->verdict), confidence_name(x->confidence),
			      x->short_waits, (long long)x->breakdown_ns[s->state] / 1000000,
			      because_text(x).text);
		if (s->verdict) {
			assert_int_equal(x->verdict, s->verdict);
			assert_int_equal(x->confidence, s->confidence);
		}
		assert_int_equal(x->kind == GUEST_CPU_UNKNOWN, x->short_waits > 1);
		assert_true(!x->short_waits || x->end.ns - x->begin.ns <= 1000000000);
		assert_true(!i || x->begin.ns >= x[-1].end.ns);
		reported_ns += x->breakdown_ns[s->state];
	}
	/* What came before the first samples may be missing, and some at the edges. */
	assert_in_range(reported_ns, s->reported_us * 1000 - s->reported_us * 100,
			s->reported_us * 1000);
}

static void storms_are_told_once_with_their_cause(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(storms); i++) {
		struct report *r = judge(storms[i].emit);

		print_message("  %s: %zu incidents\n", storms[i].name, r->n_incidents);
		assert_balances(r);
		told_once(r, &storms[i]);
		assert_in_range(r->n_incidents, storms[i].least, storms[i].most);
		report_free(r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storms_are_told_once_with_their_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
