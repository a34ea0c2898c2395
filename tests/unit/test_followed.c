// SPDX-License-Identifier: GPL-2.0-only
/* Tests which VM a thread belongs to, and the exits that the kernel counted for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "host-collector/record/followed.h"
#include "proto/exit_bucket.h"

static const uint64_t none[VS_EXIT_BUCKETS];

static void follow(struct followed *f, uint32_t vm, const struct message_vm_thread *threads,
		   size_t n)
{
	static struct message_vm_info info;

	info.vm = vm;
	info.n_threads = n;
	for (size_t i = 0; i < n; i++)
		info.threads[i] = threads[i];
	assert_int_equal(followed_set(f, &info, NULL), 0);
}

static size_t threads_of(const struct followed *f, uint32_t vm)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_threads; i++)
		n += f->threads[i].vm == vm;
	return n;
}

/* Returns the counted exits of a VM. Its vCPU, if there is one, must be `vcpu`. */
static uint64_t exits_take(struct followed *f, size_t index, uint32_t vcpu)
{
	const struct message_exit_cell *cells;
	uint64_t count = 0;
	size_t n;

	cells = exit_counts_take(f->vms[index].exits, &n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(cells[i].vcpu, vcpu);
		count += cells[i].count;
	}
	return count;
}

static void test_each_vm_has_its_threads(void **state)
{
	static const struct message_vm_thread one[] = {{.tid = 10}, {.tid = 11, .is_vcpu = true}},
					      two[] = {{.tid = 20, .is_vcpu = true, .vcpu = 3}};
	struct followed f = {0};

	(void)state;
	assert_false(followed_has(&f, 1));
	follow(&f, 1, one, 2);
	follow(&f, 2, two, 1);
	assert_true(followed_has(&f, 1) && followed_has(&f, 2));
	assert_int_equal(threads_of(&f, 1), 2);
	assert_int_equal(threads_of(&f, 2), 1);
	follow(&f, 1, one + 1, 1);
	assert_int_equal(threads_of(&f, 1), 1);
	assert_int_equal(threads_of(&f, 2), 1);
	follow(&f, 1, one, 0);
	assert_true(followed_has(&f, 1));
	assert_int_equal(f.n_threads, 1);
	followed_fini(&f);
}

static void test_exits_count_for_the_vm_of_the_thread(void **state)
{
	static const struct message_vm_thread one[] = {{.tid = 10}, {.tid = 11, .is_vcpu = true}},
					      two[] = {{.tid = 20, .is_vcpu = true, .vcpu = 3}};
	static const struct capture_exit exits[] = {
		{.tid = 10, .reason = 1, .count = 1, .buckets = none},
		{.tid = 11, .reason = 1, .count = 20, .buckets = none},
		{.tid = 20, .reason = 1, .count = 300, .buckets = none},
		{.tid = 21, .reason = 1, .count = 4000, .buckets = none}};
	struct followed f = {0};

	(void)state;
	follow(&f, 1, one, 2);
	follow(&f, 2, two, 1);
	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
		followed_count(&f, &exits[i]);
	assert_int_equal(exits_take(&f, 0, 0), 20);
	assert_int_equal(exits_take(&f, 1, 3), 300);
	followed_fini(&f);
}

/* The VM of thread 11 has ended, and the other VM has a new thread with this number. */
static void test_a_number_is_of_one_thread(void **state)
{
	static const struct message_vm_thread one[] = {{.tid = 11, .is_vcpu = true}},
					      two[] = {{.tid = 20, .is_vcpu = true},
						       {.tid = 11, .is_vcpu = true, .vcpu = 1}};
	static const struct capture_exit exit = {
		.tid = 11, .reason = 1, .count = 7, .buckets = none};
	struct followed f = {0};

	(void)state;
	follow(&f, 1, one, 1);
	follow(&f, 2, two, 1);
	follow(&f, 2, two, 2);
	assert_int_equal(threads_of(&f, 1), 0);
	assert_int_equal(threads_of(&f, 2), 2);
	followed_count(&f, &exit);
	assert_int_equal(exits_take(&f, 0, 0), 0);
	assert_int_equal(exits_take(&f, 1, 1), 7);
	followed_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_vm_has_its_threads),
		cmocka_unit_test(test_exits_count_for_the_vm_of_the_thread),
		cmocka_unit_test(test_a_number_is_of_one_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
