/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that an observer on its own thread gets the same calls as the others, in the same order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/model/model.h"

enum { EVENTS = 60000, VM = 1, VCPU0 = 1001, HOG = 4242, CHANGE_EVERY = 7919, COUNT_EVERY = 997 };

/* A hash of all that was heard, which depends on its order. */
struct heard {
	const struct model *model;
	uint64_t hash, spans, instants, others;
};

static void hear(struct heard *h, uint64_t what)
{
	h->hash = (h->hash ^ what) * 0x9e3779b97f4a7c15 + (h->hash >> 7);
}

static void span_take(void *context, const struct vcpu_span *span)
{
	struct heard *h = context;
	uint16_t cpu = 0;

	h->spans++;
	hear(h, (uint64_t)span->begin.ns);
	hear(h, (uint64_t)span->end.ns);
	hear(h, (uint64_t)span->state << 8 | span->vcpu);
	/* How the VM is made may be asked; it changes while this runs. */
	hear(h, (uint64_t)model_guest_cpu_of_vcpu(h->model, span->vm, span->vcpu, &cpu));
	hear(h, cpu);
}

static void instant_take(void *context, const struct host_instant *i)
{
	struct heard *h = context;

	h->instants++;
	hear(h, (uint64_t)i->t.ns);
	hear(h, i->event.arg0);
}

static void exits_take(void *context, const struct message_exit_summary *m)
{
	struct heard *h = context;

	h->others++;
	hear(h, m->vm);
}

static void advance_take(void *context, struct host_ns now)
{
	struct heard *h = context;

	h->others++;
	hear(h, (uint64_t)now.ns);
}

static void observe(struct model *m, struct heard *h)
{
	const struct model_observer observer = {.vcpu_span = span_take,
						.host_instant = instant_take,
						.exits_counted = exits_take,
						.advance = advance_take,
						.context = h};

	h->model = m;
	assert_int_equal(model_observe(m, &observer), 0);
}

static void vm_announce(struct model *m, uint32_t vcpus)
{
	static struct message_vm_info info;

	memset(&info, 0, sizeof(info));
	info.vm = VM;
	info.qemu_pid = VCPU0 - 1;
	strcpy(info.name, "vm1");
	strcpy(info.accelerator, "kvm");
	info.n_threads = vcpus;
	for (uint32_t i = 0; i < vcpus; i++) {
		info.threads[i].tid = VCPU0 + (int32_t)i;
		info.threads[i].is_vcpu = true;
		info.threads[i].vcpu = i;
	}
	assert_int_equal(model_vm(m, &info), 0);
}

static void play(struct model *m, size_t events)
{
	const struct message_exit_summary counted = {.vm = VM};

	vm_announce(m, 2);
	for (size_t i = 0; i < events; i++) {
		bool comes = i & 1;
		const struct timeline_event e = {
			.t = {1000000 + (int64_t)i * 1000},
			.source = VS_SOURCE_HOST,
			.event = {.type = VS_EVENT_SCHED_SWITCH,
				  .cpu = 0,
				  .pid = comes ? HOG : VCPU0,
				  .pid2 = comes ? VCPU0 : HOG},
		};

		assert_int_equal(model_push(m, &e, 1), 0);
		if (i % CHANGE_EVERY == 0)
			vm_announce(m, 1 + (uint32_t)(i / CHANGE_EVERY) % 3);
		if (i % COUNT_EVERY == 0)
			model_exits_counted(m, &counted);
		if (i % COUNT_EVERY == 1)
			model_advance(m, e.t);
	}
	model_finish(m);
}

static void compare(size_t events)
{
	struct heard here = {.hash = 1}, apart = {.hash = 1}, also = {.hash = 1};
	struct model *m = model_new();

	assert_non_null(m);
	assert_int_equal(model_observe_on_worker(m, true), 0);
	observe(m, &apart);
	assert_int_equal(model_observe_on_worker(m, false), 0);
	observe(m, &here);
	assert_int_equal(model_observe_on_worker(m, true), 0);
	observe(m, &also);
	assert_int_equal(model_observe_on_worker(m, false), 0);
	play(m, events);
	assert_int_equal(here.instants, events);
	assert_true(!events || here.spans > events / 2);
	assert_int_equal(apart.spans, here.spans);
	assert_int_equal(apart.instants, here.instants);
	assert_int_equal(apart.others, here.others);
	assert_true(apart.hash == here.hash);
	assert_true(also.hash == here.hash);
	model_free(m);
}

static void hears_the_same(void **state)
{
	(void)state;
	compare(EVENTS);
}

static void hears_nothing_of_nothing(void **state)
{
	(void)state;
	compare(0);
}

static void a_model_may_go_before_its_end(void **state)
{
	struct heard apart = {.hash = 1};
	struct model *m = model_new();

	(void)state;
	assert_non_null(m);
	assert_int_equal(model_observe_on_worker(m, true), 0);
	observe(m, &apart);
	vm_announce(m, 2);
	model_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hears_the_same),
		cmocka_unit_test(hears_nothing_of_nothing),
		cmocka_unit_test(a_model_may_go_before_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
