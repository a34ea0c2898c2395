/* SPDX-License-Identifier: GPL-2.0-only */
/* Parts of the tests of user_slot.h that do not depend on where a program is attached. For BPF
 * programs. */
#ifndef PROG_USER_TEST_H
#define PROG_USER_TEST_H

#include "bpf/prog/kernel.h"
#include "bpf/prog/user_slot.h"

/* Returns a number, or a value of the current task or its CPU; 0 if it comes from elsewhere. */
static __always_inline __u64 task_value_read(const struct vs_user_value *v)
{
	__u64 bytes = v->bytes, value = 0;

	if (v->from == VS_FROM_NUMBER)
		return v->number;
	if (v->from == VS_FROM_CPU)
		return bpf_get_smp_processor_id();
	if (v->from == VS_FROM_TID)
		return (__u32)bpf_get_current_pid_tgid();
	if (v->from == VS_FROM_PID)
		return bpf_get_current_pid_tgid() >> 32;
	/* Without this, the compiler checks another register than the one that it passes on. */
	asm volatile("" : "+r"(bytes));
	if (v->from != VS_FROM_COMM || !bytes || bytes > sizeof(value))
		return 0;
	bpf_probe_read_kernel(&value, bytes,
			      (const void *)(bpf_get_current_task() +
					     bpf_core_field_offset(struct task_struct, comm) +
					     v->offset));
	return value;
}

static __always_inline bool user_test_holds(const struct vs_user_test *t, __u64 value)
{
	value &= t->mask;
	if (t->compare == VS_COMPARE_LESS)
		return value < t->number;
	if (t->compare == VS_COMPARE_LESS_SIGNED)
		return (__s64)value < (__s64)t->number;
	return value == t->number;
}

#endif
