// SPDX-License-Identifier: GPL-2.0-only
/* Tests that every instant of every task and of every vCPU is in exactly one stack, for any
 * events of guest and host in any order, and that losses change nothing of this. */
#include "tests/unit/model_script.h"

#include <stdlib.h>

#include "host-collector/analyze/flame/flame.h"

enum { SEEDS = 150, EVENTS = 4000, VCPUS = 3, PIDS = 12 };

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static uint64_t random_below(uint64_t *state, uint64_t n)
{
	return random_next(state) % n;
}

static const uint16_t guest_types[] = {
	VS_EVENT_SCHED_SWITCH,     VS_EVENT_SCHED_SWITCH,  VS_EVENT_SCHED_WAKEUP,
	VS_EVENT_SCHED_WAKEUP_NEW, VS_EVENT_SCHED_MIGRATE, VS_EVENT_TASK_NAME,
	VS_EVENT_TASK_EXIT,        VS_EVENT_IRQ_ENTRY,     VS_EVENT_IRQ_EXIT,
	VS_EVENT_SOFTIRQ_ENTRY,    VS_EVENT_SOFTIRQ_EXIT,  VS_EVENT_VECTOR_ENTRY,
	VS_EVENT_VECTOR_EXIT,      VS_EVENT_TASK_STACK,
};
static const uint16_t host_types[] = {
	VS_EVENT_SCHED_SWITCH,  VS_EVENT_SCHED_SWITCH, VS_EVENT_SCHED_WAKEUP,
	VS_EVENT_SCHED_MIGRATE, VS_EVENT_KVM_ENTRY,    VS_EVENT_KVM_EXIT,
	VS_EVENT_SIGNAL,        VS_EVENT_STACK,        VS_EVENT_KVM_USERSPACE_EXIT,
};
static const uint64_t task_states[] = {0,    0,    1,    2,     4,      8,
				       0x30, 0x40, 0x80, 0x402, 0x8000, UINT64_MAX};

static struct timeline_event random_event(uint64_t *r, int64_t t_ns, bool lossy)
{
	const bool guest = random_below(r, 3) > 0;
	struct timeline_event e = {.t = {t_ns}, .source = guest ? VM : HOST};
	struct vs_event *v = &e.event;

	v->time = (uint64_t)t_ns;
	v->cpu = (uint16_t)random_below(r, guest ? VCPUS : 2);
	v->type = guest ? guest_types[random_below(r, COUNT(guest_types))]
			: host_types[random_below(r, COUNT(host_types))];
	v->pid = (int32_t)random_below(r, PIDS) + (guest ? 0 : TID0 - 4);
	v->pid2 = (int32_t)random_below(r, PIDS) + (guest ? 0 : TID0 - 4);
	v->arg0 = random_below(r, VCPUS);
	v->arg1 = random_below(r, VCPUS);
	if (v->type == VS_EVENT_SCHED_SWITCH)
		v->arg0 = task_states[random_below(r, COUNT(task_states))];
	if (v->type == VS_EVENT_STACK || v->type == VS_EVENT_TASK_STACK)
		v->arg1 = random_below(r, 5) | random_below(r, 1 << 24) << 8;
	if (v->type == VS_EVENT_STACK)
		v->cpu = VS_CPU_COLLECTOR;
	if (lossy && !random_below(r, 20)) {
		v->type = VS_EVENT_LOST;
		v->arg0 = random_below(r, 4);
	}
	return e;
}

static void stacks_make(struct model *m)
{
	static struct message_stack s = {.n_frames = 2};

	for (uint32_t id = 1; id < 4; id++) {
		s.id = id;
		s.pid = 0;
		snprintf(s.frames[0].symbol, VS_TEXT_MAX, "leaf %u", id);
		snprintf(s.frames[1].module, VS_TEXT_MAX, "</script>;\n%u", id);
		assert_int_equal(model_guest_stack(m, VM, &s), 0);
		assert_int_equal(model_stack(m, &s), 0);
	}
}

static void play(uint64_t seed, const struct flame_options *o, bool lossy)
{
	struct model *m = model_new();
	struct flame *f = flame_new(m, o);
	struct flame_coverage c;
	uint64_t r = seed * 0x9e3779b97f4a7c15 + 1;
	int64_t t_ns = 0;

	script_vm(m, VCPUS, "kvm");
	stacks_make(m);
	for (size_t i = 0; i < EVENTS; i++) {
		struct timeline_event e;

		t_ns += (int64_t)random_below(&r, random_below(&r, 50) ? 100000 : 300000000);
		e = random_event(&r, t_ns, lossy);
		assert_int_equal(model_push(m, &e, 1), 0);
	}
	model_finish(m);
	assert_int_equal(flame_finish(f), 0);
	flame_coverage_get(f, &c);
	if (o->kind == FLAME_WALL) {
		if ((uint64_t)c.counted_ns != folded_total_ns(flame_stacks(f)))
			fail_msg("seed %llu: %lld ns counted, %llu in stacks",
				 (unsigned long long)seed, (long long)c.counted_ns,
				 (unsigned long long)folded_total_ns(flame_stacks(f)));
		if (!lossy && c.counted_ns != c.wall_ns)
			fail_msg("seed %llu: %lld ns of %lld; %s", (unsigned long long)seed,
				 (long long)c.counted_ns, (long long)c.wall_ns, c.worst);
	}
	model_free(m);
	flame_free(f);
}

static void every_instant_is_counted_once(void **unused)
{
	(void)unused;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		play(seed,
		     &(const struct flame_options){.kind = FLAME_WALL,
						   .subject = FLAME_OF_TASKS,
						   .vcpu = -1,
						   .threads = true},
		     false);
		play(seed,
		     &(const struct flame_options){
			     .kind = FLAME_WALL, .subject = FLAME_OF_VCPUS, .vcpu = -1},
		     false);
	}
}

static void losses_break_nothing(void **unused)
{
	(void)unused;
	for (uint64_t seed = 1; seed <= SEEDS / 10; seed++) {
		for (int kind = 0; kind < FLAME_KIND_COUNT; kind++) {
			for (int subject = FLAME_OF_TASKS; subject <= FLAME_OF_VCPUS; subject++)
				play(seed,
				     &(const struct flame_options){
					     .kind = (enum flame_kind)kind,
					     .subject = (enum flame_subject)subject,
					     .vcpu = -1},
				     true);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_instant_is_counted_once),
		cmocka_unit_test(losses_break_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
