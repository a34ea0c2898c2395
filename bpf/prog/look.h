/* SPDX-License-Identifier: GPL-2.0-only */
/* Counts tracepoints and evaluates the condition of the looks (look_shared.h). For BPF programs.
 * These programs are loaded and attached only if the user asked for looks. */
#ifndef PROG_LOOK_H
#define PROG_LOOK_H

#include "bpf/prog/kernel.h"
#include "bpf/prog/look_shared.h"
#include "bpf/prog/user_test.h"

struct vs_look look;
/* Number of hits that all CPUs counted, each up to its last tick. */
__u64 look_hits;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct vs_look_cpu);
} look_cpus SEC(".maps");

/* Attached to each tracepoint that the condition counts; the cookie is the number of the count. */
SEC("tp")
int vs_l_count(void *ctx)
{
	struct vs_look_cpu *cpu;
	__u32 zero = 0;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie))
		return 1;
	cpu = bpf_map_lookup_elem(&look_cpus, &zero);
	/* Atomic, because an interrupt may count, too. */
	if (cpu)
		__sync_fetch_and_add(&cpu->total[bpf_get_attach_cookie(ctx) & (VS_LOOK_COUNTS - 1)],
				     1);
	return 1; /* 0 would hide the hit from users of perf */
}

static __always_inline __u64 look_value(const struct vs_look_cpu *cpu,
					const struct vs_user_value *v)
{
	if (v->from == VS_FROM_COUNT)
		return cpu->since[(__u64)v->number & (VS_LOOK_COUNTS - 1)];
	return task_value_read(v);
}

static __always_inline bool look_holds(const struct vs_look_cpu *cpu)
{
	__u32 at = look.first_test;

	for (int i = 0; i < VS_USER_TESTS_MAX; i++) {
		const struct vs_user_test *t;

		if (at >= VS_USER_TESTS_MAX)
			break;
		t = &look.tests[at];
		at = user_test_holds(t, look_value(cpu, &t->value)) ? t->on_true : t->on_false;
	}
	return at == VS_USER_KEEP;
}

/* Handles a tick of this CPU's timer. Returns the time since the previous tick, in ns, if the
 * condition holds, else 0. Returns 0 at the first tick, because nothing was counted before it. */
static __always_inline __u64 look_tick(void)
{
	const __u64 now = bpf_ktime_get_ns();
	struct vs_look_cpu *cpu;
	__u64 last, hits = 0;
	__u32 zero = 0;

	cpu = bpf_map_lookup_elem(&look_cpus, &zero);
	if (!cpu)
		return 0;
	last = cpu->tick_ns;
	if (last && now - last < look.least_ns)
		return 0;
	cpu->tick_ns = now;
	for (int i = 0; i < VS_LOOK_COUNTS; i++) {
		const __u64 total = cpu->total[i];

		cpu->since[i] = total - cpu->before[i];
		cpu->before[i] = total;
		hits += cpu->since[i];
	}
	__sync_fetch_and_add(&look_hits, hits);
	if (!last || !look_holds(cpu))
		return 0;
	return now - last;
}

#endif
