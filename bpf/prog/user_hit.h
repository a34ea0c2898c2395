/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns a hit of an event that the user chose into records (user_slot.h). For BPF programs. A
 * source that includes it defines user_hit_here() and then uses VS_USER_PROGRAMS. */
#ifndef PROG_USER_HIT_H
#define PROG_USER_HIT_H

#include "bpf/prog/emit.h"
#include "bpf/prog/hit_stack.h"
#include "bpf/prog/user_slot.h"
#include "bpf/prog/user_test.h"

struct vs_user_slot user_slots[VS_USER_SLOTS_MAX];

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VS_USER_SLOTS_MAX + 1); /* the last one counts all slots together */
	__type(key, __u32);
	__type(value, struct vs_user_state);
} user_states SEC(".maps");

/* Largest number of hits of all slots together that become events, per window and CPU; 0: no
 * limit. */
__u32 user_all_per_window;

static __always_inline __u64 user_data_read(const void *ctx, const struct vs_user_value *v)
{
	const __u64 from = (__u64)v->number & 0xff; /* the verifier requires a bound */
	__u64 value = 0, bytes;
	__u32 place = 0;

	bpf_probe_read_kernel(&place, sizeof(place), ctx + v->offset);
	bytes = place >> 16;
	if (bytes <= from)
		return 0;
	bytes -= from;
	if (bytes > sizeof(value))
		bytes = sizeof(value);
	asm volatile("" : "+r"(bytes));
	if (!bytes || bytes > sizeof(value))
		return 0;
	bpf_probe_read_kernel(&value, bytes, ctx + (place & 0xffff) + from);
	return value;
}

static __always_inline __u64 user_value_read(const void *ctx, const struct vs_user_value *v)
{
	__u64 bytes = v->bytes, value = 0, unused, base = 0;

	if (v->from >= VS_FROM_NUMBER)
		return task_value_read(v);
	if (v->from == VS_FROM_DATA)
		return user_data_read(ctx, v);
	/* Without this, the compiler checks one register and passes another one on. */
	asm volatile("" : "+r"(bytes));
	if (!bytes || bytes > sizeof(value))
		return 0;
	if (v->from == VS_FROM_USER) {
		bpf_probe_read_kernel(&base, sizeof(base), ctx + v->offset);
		bpf_probe_read_user(&value, bytes, (const void *)(base + v->number));
	} else {
		bpf_probe_read_kernel(&value, bytes, ctx + v->offset);
	}
	unused = 64 - 8 * bytes;
	if (v->is_signed)
		value = (__u64)((__s64)(value << unused) >> unused);
	return value;
}

/* A test cannot ask for a stack. */
static __always_inline __u64 user_field_read(const void *ctx, const struct vs_user_value *v)
{
	return v->from == VS_FROM_STACK ? hit_stack_number() : user_value_read(ctx, v);
}

static __always_inline bool user_test(const void *ctx, const struct vs_user_test *t)
{
	return user_test_holds(t, user_value_read(ctx, &t->value));
}

static __always_inline bool user_is_wanted(const void *ctx, const struct vs_user_slot *slot)
{
	__u32 at = slot->first_test;

	for (int i = 0; i < VS_USER_TESTS_MAX; i++) {
		const struct vs_user_test *t;

		if (at >= VS_USER_TESTS_MAX)
			break;
		t = &slot->tests[at];
		at = user_test(ctx, t) ? t->on_true : t->on_false;
	}
	return at == VS_USER_KEEP;
}

static __always_inline bool window_has_room(struct vs_user_state *s, __u64 window, __u32 most)
{
	if (s->window != window) {
		s->window = window;
		s->taken = 0;
	}
	return s->taken < most;
}

/* Returns true if the limit for all slots together allows one more hit. */
static __always_inline bool all_have_room(__u64 window)
{
	const __u32 most = *(volatile __u32 *)&user_all_per_window, index = VS_USER_SLOTS_MAX;
	struct vs_user_state *s;

	if (!most)
		return true;
	s = bpf_map_lookup_elem(&user_states, &index);
	if (!s || !window_has_room(s, window, most))
		return false;
	s->taken++;
	return true;
}

/* Returns false if the hit is above a limit. Otherwise emits the number of hits skipped before
 * it. */
static __always_inline bool user_is_within(const struct vs_user_slot *slot, __u32 index, __s32 tid)
{
	struct vs_user_state *s = bpf_map_lookup_elem(&user_states, &index);
	const __u64 now = bpf_ktime_get_ns();
	const __u64 window = now >> VS_USER_WINDOW_LOG2_NS;

	if (!s)
		return false;
	if (!window_has_room(s, window, slot->per_window) || !all_have_room(window)) {
		if (!s->skipped++)
			s->skipped_ns = now;
		s->limited++;
		return false;
	}
	s->taken++;
	s->kept++;
	if (s->skipped) {
		const __u64 skipped = s->skipped;

		s->skipped = 0;
		emit(VS_EVENT_USER_LIMITED, tid, (__s32)slot->id, skipped, now - s->skipped_ns);
	}
	return true;
}

/* Emits the records of a hit. They are next to each other and have the same time. */
static __always_inline void user_emit(const void *ctx, const struct vs_user_slot *slot, __s32 tid)
{
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	__u32 n = slot->n_values, records = n > 2 ? (n + 1) / 2 : 1;
	struct vs_ring *ring;
	__u64 dropped, position, now;
	void *array;

	array = bpf_map_lookup_elem(&rings, &cpu);
	if (!array) {
		__sync_fetch_and_add(&ringless[cpu & (VS_CPUS_MAX - 1)], records);
		return;
	}
	ring = bpf_map_lookup_elem(array, &zero);
	if (!ring)
		return;
	dropped = ring->dropped;
	if (ring->head - *(volatile __u64 *)&ring->tail + records > ring_limit) {
		__sync_fetch_and_add(&ring->dropped, records);
		return;
	}
	position = __sync_fetch_and_add(&ring->head, records);
	now = bpf_ktime_get_ns();
	for (__u32 i = 0; i < VS_USER_SLOT_VALUES / 2; i++) {
		struct vs_event *to = &ring->slots[(position + i) & ring_mask];

		if (i >= records)
			break;
		to->time = now;
		to->seq = (__u32)dropped;
		to->cpu = (__u16)cpu;
		to->pid = tid;
		to->pid2 = (__s32)(slot->id | i << 16);
		to->arg0 = 2 * i < n ? user_field_read(ctx, &slot->values[2 * i]) : 0;
		to->arg1 = 2 * i + 1 < n ? user_field_read(ctx, &slot->values[2 * i + 1]) : 0;
		asm volatile("" ::: "memory");
		*(volatile __u16 *)&to->type = i ? VS_EVENT_USER_MORE : VS_EVENT_USER;
	}
}

/* Returns true if the slot's filter keeps the hit. */
static __always_inline bool user_hit_is_wanted(const void *ctx, const struct vs_user_slot *slot)
{
	return emitting && (slot->first_test == VS_USER_KEEP || user_is_wanted(ctx, slot));
}

/* Sets *index to the slot of the program that runs. Returns the slot, NULL if it is not in use. */
static __always_inline const struct vs_user_slot *user_slot_here(void *ctx, __u32 *index)
{
	const struct vs_user_slot *slot;

	if (!bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie))
		return NULL;
	*index = bpf_get_attach_cookie(ctx) & (VS_USER_SLOTS_MAX - 1);
	slot = &user_slots[*index];
	return *(volatile __u32 *)&slot->id ? slot : NULL;
}

/* The programs for the tracepoints that the user chose. The kernel attaches a program to a
 * tracepoint only once, so there are VS_USER_SAME_MAX programs. */
#define VS_USER_TRACEPOINT(n)                                                                      \
	SEC("tp")                                                                                  \
	int vs_u_tracepoint##n(void *ctx)                                                          \
	{                                                                                          \
		user_hit_here(ctx);                                                                \
		return 1; /* 0 would hide the hit from users of perf */                            \
	}
/* All programs: those for tracepoints, and one for the entries and returns of functions, of the
 * kernel and of processes. */
#define VS_USER_PROGRAMS                                                                           \
	VS_USER_TRACEPOINT(0)                                                                      \
	VS_USER_TRACEPOINT(1)                                                                      \
	VS_USER_TRACEPOINT(2)                                                                      \
	VS_USER_TRACEPOINT(3)                                                                      \
	SEC("kprobe")                                                                              \
	int vs_u_probe(void *ctx)                                                                  \
	{                                                                                          \
		user_hit_here(ctx);                                                                \
		return 0;                                                                          \
	}

#endif
