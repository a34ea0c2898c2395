/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the tests of verdicts: feeds stories of a stall to a model and makes the report. */
#ifndef TESTS_VERDICT_STORY_H
#define TESTS_VERDICT_STORY_H

#include "host-collector/analyze/stall/verdict.h"
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_tale.h"

#include "tests/unit/balance.h"

enum { STACK_LOCK = 1, STACK_DISK, STACK_USERFAULT, STACK_MMAP, STACK_RECLAIM, STACK_SPLIT_LOCK };

static struct tale tale;

static inline void quota(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	tale_away(t, 250000, 750000, VS_TASK_RUNNING, 0);
	ADD(t, SWITCH(VM, 760000, 0, 50, 42, 1));
}

/* Readings every 100 ms; the last one, after the wait, shows what it cost. */
static inline void quota_read(struct tale *t, uint32_t n_vcpus, int64_t throttled_us)
{
	for (int64_t at = 100000; at < 900000; at += 100000)
		tale_quota(t, at - 100000, at, n_vcpus, at == 800000 ? throttled_us : 0);
}

static inline void quota_counted(struct tale *t)
{
	quota(t);
	quota_read(t, 1, 499000);
}

static inline void sleep_with_stack(struct tale *t, uint32_t stack, uint32_t state)
{
	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	tale_away(t, 300000, 600000, state, 0);
	ADD(t, STACK(599999, WAITER, TID0, TID0, stack, 300000));
	ADD(t, SWITCH(VM, 610000, 0, 50, 42, 1));
}

static inline void big_lock(struct tale *t)
{
	sleep_with_stack(t, STACK_LOCK, VS_TASK_INTERRUPTIBLE);
}

static inline void stacks(struct model *m)
{
	static const struct {
		uint32_t id;
		const char *symbols[3];
	} table[] = {
		{STACK_LOCK, {"futex_wait", "__lll_lock_wait", "qemu_mutex_lock_iothread_impl"}},
		{STACK_DISK, {"io_schedule", "folio_wait_bit_common", "vfs_read"}},
		{STACK_USERFAULT, {"schedule", "handle_userfault", "do_user_addr_fault"}},
		{STACK_MMAP, {"schedule", "rwsem_down_read_slowpath", "do_user_addr_fault"}},
		{STACK_RECLAIM, {"io_schedule", "shrink_lruvec", "try_to_free_pages"}},
		{STACK_SPLIT_LOCK, {"schedule_timeout", "msleep_interruptible", "split_lock_warn"}},
	};

	for (size_t i = 0; i < COUNT(table); i++)
		script_stack(m, table[i].id, TID0, table[i].symbols, 3);
}

/* Plays a story. all: the report also lists incidents that are not stalls. Returns the report; the
 * caller frees it. */
static inline struct report *judge(void (*emit)(struct tale *t), bool all)
{
	struct report_options options = {.than_ns = 100000000, .all = all};
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

#endif
