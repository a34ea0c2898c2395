/* SPDX-License-Identifier: GPL-2.0-only */
/* Applies the filter of guest_request.h. For the guest's BPF programs. */
#ifndef PROG_REQUEST_H
#define PROG_REQUEST_H

#include "bpf/prog/emit.h"
#include "bpf/prog/guest_request.h"
#include "proto/message_config_classes.h"

struct vs_guest_request request;

static __always_inline bool class_off(enum event_class class)
{
	return request.classes_off & 1ull << class;
}

static __always_inline bool exits_off(enum event_class class)
{
	return request.exits_off & 1ull << class;
}

/* What follows is out of line: without a filter, which is the normal case, the programs stay small
 * and these instructions do not take room in the instruction cache. */
static __noinline bool name_wanted(const __u64 name[2])
{
	for (int i = 0; i < VS_REQUEST_PATTERNS; i++) {
		const struct vs_request_pattern *p = &request.patterns[i];

		if ((__u32)i >= request.n_patterns)
			break;
		if (!(((name[0] ^ p->word[0]) & p->mask[0]) |
		      ((name[1] ^ p->word[1]) & p->mask[1])))
			return true;
	}
	return false;
}

static __noinline bool task_wanted(struct task_struct *p)
{
	__u64 name[2] = {};

	bpf_probe_read_kernel_str(name, sizeof(name), p->comm);
	return name_wanted(name);
}

static __noinline bool current_wanted(void)
{
	__u64 name[2] = {};

	bpf_get_current_comm(name, sizeof(name));
	return name_wanted(name);
}

/* Returns the id under which a task appears: its own, or VS_TASK_OTHER if it is filtered out. */
static __always_inline __s32 task_shown(struct task_struct *p)
{
	const __s32 tid = VS_READ(p, pid);

	return !request.n_patterns || !tid || task_wanted(p) ? tid : VS_TASK_OTHER;
}

static __always_inline __s32 current_shown(void)
{
	const __s32 tid = current_tid();

	return !request.n_patterns || !tid || current_wanted() ? tid : VS_TASK_OTHER;
}

#endif
