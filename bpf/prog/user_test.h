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
	__u64 value = 0;
	__u32 unused;

	if (v->from == VS_FROM_NUMBER)
		return v->number;
	if (v->from == VS_FROM_CPU)
		return bpf_get_smp_processor_id();
	if (v->from == VS_FROM_TID)
		return (__u32)bpf_get_current_pid_tgid();
	if (v->from == VS_FROM_PID)
		return bpf_get_current_pid_tgid() >> 32;
	if (v->from != VS_FROM_COMM || !v->bytes || v->bytes > sizeof(value))
		return 0;
	/* Always read 8 bytes: the verifier of Linux 6.1 does not always see the bound of a size.
	 */
	bpf_probe_read_kernel(&value, sizeof(value),
			      (const void *)(bpf_get_current_task() +
					     bpf_core_field_offset(struct task_struct, comm) +
					     v->offset));
	unused = 64 - 8 * v->bytes;
	return value << unused >> unused;
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
