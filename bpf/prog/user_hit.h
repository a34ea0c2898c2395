/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns a hit of an event that the user chose into records (user_slot.h). For BPF programs. A
 * source that includes it defines user_hit_here() and then uses VS_USER_PROGRAMS. */
#ifndef PROG_USER_HIT_H
#define PROG_USER_HIT_H

#include "bpf/prog/emit.h"
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

/* A number of the event, which user space writes into the program. */
#define USER_NUMBER(member)                                                                        \
	user_number(__builtin_offsetof(struct vs_user_event, member),                              \
		    sizeof(((struct vs_user_event *)0)->member))
static __always_inline __u64 user_number(__u64 offset, __u64 bytes)
{
	__u64 number;

	asm("%0 = %1 ll" : "=r"(number) : "i"((__u64)VS_USER_GAP << 32 | offset << 8 | bytes));
	return number;
}

/* The load of value i, which user space writes into the program. */
static __always_inline __u64 user_load(const void *ctx, int i)
{
	__u64 value;

	asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(value) : "r"(ctx), "i"(VS_USER_GAP_LOAD + i));
	return value;
}

static __always_inline __u64 user_data_read(const void *ctx, int i, const struct vs_user_value *v)
{
	const __u64 from = (__u64)v->number & 0xff; /* the verifier requires a bound */
	const __u32 place = (__u32)user_load(ctx, i);
	__u64 value = 0, bytes = place >> 16;

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

/* i: its number among all (VS_USER_LOADS). */
static __always_inline __u64 user_value_read(const void *ctx, int i, const struct vs_user_value *v)
{
	__u64 bytes = v->bytes, value = 0, unused;

	if (v->from == VS_FROM_LOAD) {
		value = user_load(ctx, i);
		/* The load has extended it by zeros. */
		unused = 64 - 8 * bytes;
		return v->is_signed ? (__u64)((__s64)(value << unused) >> unused) : value;
	}
	if (v->from >= VS_FROM_NUMBER)
		return task_value_read(v);
	if (v->from == VS_FROM_DATA)
		return user_data_read(ctx, i, v);
	/* Without this, the compiler checks one register and passes another one on. */
	asm volatile("" : "+r"(bytes));
	if (!bytes || bytes > sizeof(value))
		return 0;
	if (v->from == VS_FROM_USER) {
		bpf_probe_read_user(&value, bytes, (const void *)(user_load(ctx, i) + v->number));
	} else {
		bpf_probe_read_kernel(&value, bytes, ctx + v->offset);
	}
	unused = 64 - 8 * bytes;
	if (v->is_signed)
		value = (__u64)((__s64)(value << unused) >> unused);
	return value;
}

#define USER_VALUE(of)                                                                             \
	{                                                                                          \
		.offset = (vs_u16)USER_NUMBER(of.offset), .bytes = (vs_u16)USER_NUMBER(of.bytes),  \
		.from = (vs_u16)USER_NUMBER(of.from),                                              \
		.is_signed = (vs_u16)USER_NUMBER(of.is_signed),                                    \
		.number = (vs_s64)USER_NUMBER(of.number)                                           \
	}

/* Value i of the event. stack: number of the hit's stack. */
static __always_inline __u64 user_value(const void *ctx, int i, __u32 stack)
{
	const struct vs_user_value v = USER_VALUE(values[i]);

	if (i >= USER_NUMBER(n_values))
		return 0;
	return v.from == VS_FROM_STACK ? stack : user_value_read(ctx, VS_USER_TESTS_MAX + i, &v);
}

static __always_inline bool user_test(const void *ctx, int i)
{
	const struct vs_user_test t = {
		.value = USER_VALUE(tests[i].value),
		.mask = USER_NUMBER(tests[i].mask),
		.number = USER_NUMBER(tests[i].number),
		.compare = (vs_u16)USER_NUMBER(tests[i].compare),
	};

	return user_test_holds(&t, user_value_read(ctx, i, &t.value));
}

/* All jumps go forward. */
static __always_inline bool user_is_wanted(const void *ctx)
{
	__u64 at = USER_NUMBER(first_test);

#pragma unroll
	for (int i = 0; i < VS_USER_TESTS_MAX; i++) {
		if (at == i)
			at = user_test(ctx, i) ? USER_NUMBER(tests[i].on_true)
					       : USER_NUMBER(tests[i].on_false);
	}
	return at == VS_USER_KEEP;
}

/* While there is room, reads the time only once per tick: a tick is much shorter than a window, but
 * the count of ticks stands still while the CPU that counts them is stalled. */
static __always_inline bool window_has_room(struct vs_user_state *s, __u64 most)
{
	const __u64 tick = bpf_jiffies64();

	if (s->tick != tick || s->taken >= most) {
		const __u64 window = bpf_ktime_get_ns() >> VS_USER_WINDOW_LOG2_NS;

		s->tick = tick;
		if (s->window != window) {
			s->window = window;
			s->taken = 0;
		}
	}
	return s->taken < most;
}

/* Returns true if the limit for all slots together allows one more hit. */
static __always_inline bool all_have_room(void)
{
	const __u32 most = *(volatile __u32 *)&user_all_per_window, index = VS_USER_SLOTS_MAX;
	struct vs_user_state *s;

	if (!most)
		return true;
	s = bpf_map_lookup_elem(&user_states, &index);
	if (!s || !window_has_room(s, most))
		return false;
	s->taken++;
	return true;
}

static __always_inline struct vs_user_state *user_state(void)
{
	const __u32 index = (__u32)USER_NUMBER(slot);

	return bpf_map_lookup_elem(&user_states, &index);
}

/* Returns false if the hit is above a limit. Otherwise emits the number of hits skipped before
 * it. */
static __always_inline bool user_is_within(const struct vs_user_slot *slot, struct vs_user_state *s,
					   __s32 tid)
{
	if (!window_has_room(s, USER_NUMBER(per_window)) || !all_have_room()) {
		if (!s->skipped++)
			s->skipped_ns = bpf_ktime_get_ns();
		s->limited++;
		return false;
	}
	s->taken++;
	s->kept++;
	if (s->skipped) {
		const __u64 skipped = s->skipped;

		s->skipped = 0;
		emit(VS_EVENT_USER_LIMITED, tid, (__s32)slot->id, skipped,
		     bpf_ktime_get_ns() - s->skipped_ns);
	}
	return true;
}

/* Emits the records of a hit. They are next to each other and have the same time. stack: number of
 * its stack, or 0. */
static __always_inline void user_emit(const void *ctx, const struct vs_user_slot *slot, __s32 tid,
				      __u32 stack)
{
	__u32 cpu = bpf_get_smp_processor_id(), zero = 0;
	const __u64 n = USER_NUMBER(n_values), records = n > 2 ? (n + 1) / 2 : 1;
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
#pragma unroll
	for (int i = 0; i < VS_USER_SLOT_VALUES / 2; i++) {
		struct vs_event *to = &ring->slots[(position + i) & ring_mask];

		if (i >= records)
			break;
		to->time = now;
		to->seq = (__u32)dropped;
		to->cpu = (__u16)cpu;
		to->pid = tid;
		to->pid2 = (__s32)(slot->id | i << 16);
		to->arg0 = user_value(ctx, 2 * i, stack);
		to->arg1 = user_value(ctx, 2 * i + 1, stack);
		stores_before(ring->head);
		*(volatile __u16 *)&to->type = i ? VS_EVENT_USER_MORE : VS_EVENT_USER;
	}
}

/* Returns true if the event's filter keeps the hit. */
static __always_inline bool user_hit_is_wanted(const void *ctx)
{
	return emitting && user_is_wanted(ctx);
}

/* Returns the slot of the program that runs, NULL if it is not in use. */
static __always_inline const struct vs_user_slot *user_slot_here(void)
{
	const struct vs_user_slot *slot = &user_slots[USER_NUMBER(slot) & (VS_USER_SLOTS_MAX - 1)];

	return *(volatile __u32 *)&slot->id ? slot : NULL;
}

/* The program of which each event has a copy, of the type that fits. */
#define VS_USER_PROGRAMS                                                                           \
	SEC("tp")                                                                                  \
	int vs_u_hit(void *ctx)                                                                    \
	{                                                                                          \
		user_hit_here(ctx);                                                                \
		return (int)USER_NUMBER(returned);                                                 \
	}

#endif
