/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stories for the model: rows of events in microseconds, and a recorder of the spans that the model
 * produces. Shared by the tests of the model, analyses and views.
 */
#ifndef TESTS_MODEL_SCRIPT_H
#define TESTS_MODEL_SCRIPT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "host-collector/model/model.h"

enum { HOST = VS_SOURCE_HOST, VM = 1, QEMU = 100, TID0 = 110, TID1 = 111 };

#define EVENT(SOURCE, T_US, CPU, TYPE, PID, PID2, ARG0, ARG1)                                      \
	{                                                                                          \
		.t = {(T_US)*1000ll}, .source = (SOURCE), .event = {                               \
			.cpu = (CPU),                                                              \
			.type = VS_EVENT_##TYPE,                                                   \
			.pid = (PID),                                                              \
			.pid2 = (PID2),                                                            \
			.arg0 = (ARG0),                                                            \
			.arg1 = (ARG1)                                                             \
		}                                                                                  \
	}
#define SWITCH(SOURCE, T_US, CPU, PREV, NEXT, STATE)                                               \
	EVENT(SOURCE, T_US, CPU, SCHED_SWITCH, PREV, NEXT, STATE, 0)
#define WAKEUP(SOURCE, T_US, CPU, PID, WAKER, TARGET)                                              \
	EVENT(SOURCE, T_US, CPU, SCHED_WAKEUP, PID, WAKER, TARGET, 120)
#define MIGRATE(SOURCE, T_US, CPU, PID, FROM, TO)                                                  \
	EVENT(SOURCE, T_US, CPU, SCHED_MIGRATE, PID, 0, FROM, TO)
#define LOST(SOURCE, T_US, CPU) EVENT(SOURCE, T_US, CPU, LOST, 0, 0, 100, 0)
#define SIGNAL(T_US, TARGET, SENDER, NUMBER)                                                       \
	EVENT(HOST, T_US, 0, SIGNAL, TARGET, SENDER, NUMBER, QEMU)
#define STACK(T_US, ROLE, PID, EXPLAINS, ID, WAIT_US)                                              \
	EVENT(HOST, T_US, VS_CPU_COLLECTOR, STACK, PID, EXPLAINS, ID,                              \
	      VS_STACK_##ROLE | (uint64_t)(WAIT_US)*1000 << 8)
#define KVM(T_US, CPU, TYPE, TID, ARG0)    EVENT(HOST, T_US, CPU, KVM_##TYPE, TID, 0, ARG0, 0)
#define NAME(SOURCE, T_US, PID, TGID, LOW) EVENT(SOURCE, T_US, 0, TASK_NAME, PID, TGID, LOW, 0)
#define IRQ(T_US, CPU, TYPE, PID, NUMBER)  EVENT(VM, T_US, CPU, TYPE, PID, 0, NUMBER, 0)

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* Returns up to eight characters of a task's name in the form that TASK_NAME has. */
static inline uint64_t script_comm(const char *comm)
{
	uint64_t bytes = 0;

	memcpy(&bytes, comm, strnlen(comm, 8));
	return bytes;
}

/* A VM of `n` vCPUs with threads TID0, TID0+1, ... and APIC ids 0, 1, ... */
static inline void script_vm(struct model *m, size_t n, const char *accelerator)
{
	static struct message_vm_info info;

	info = (struct message_vm_info){.vm = VM, .name = "web1", .qemu_pid = QEMU};
	snprintf(info.accelerator, sizeof(info.accelerator), "%s", accelerator);
	for (size_t i = 0; i < n; i++) {
		struct message_vm_thread *thread = &info.threads[info.n_threads++];

		thread->tid = TID0 + (int)i;
		thread->is_vcpu = true;
		thread->vcpu = (uint32_t)i;
		snprintf(thread->comm, sizeof(thread->comm), "CPU %u/KVM", (unsigned)i % 100);
	}
	assert_int_equal(model_vm(m, &info), 0);
}

/* A stack of kernel frames, leaf first. */
static inline void script_stack(struct model *m, uint32_t id, int32_t pid,
				const char *const *symbols, size_t n)
{
	static struct message_stack stack;

	memset(&stack, 0, sizeof(stack));
	stack.id = id;
	stack.pid = pid;
	stack.n_frames = n;
	for (size_t i = 0; i < n; i++)
		snprintf(stack.frames[i].symbol, sizeof(stack.frames[i].symbol), "%s", symbols[i]);
	assert_int_equal(model_stack(m, &stack), 0);
}

static inline void script_run(struct model *m, const struct timeline_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_int_equal(model_push(m, &events[i], 1), 0);
}

#define SPANS_MAX 4096

struct spans {
	size_t n_vcpu, n_guest, n_interrupts;
	struct vcpu_span vcpu[SPANS_MAX];
	struct guest_span guest[SPANS_MAX];
	struct guest_interrupt interrupts[SPANS_MAX];
};

static inline void spans_vcpu(void *context, const struct vcpu_span *span)
{
	struct spans *s = context;

	assert_true(s->n_vcpu < SPANS_MAX);
	s->vcpu[s->n_vcpu++] = *span;
}

static inline void spans_guest(void *context, const struct guest_span *span)
{
	struct spans *s = context;

	assert_true(s->n_guest < SPANS_MAX);
	s->guest[s->n_guest++] = *span;
}

static inline void spans_interrupt(void *context, const struct guest_interrupt *interrupt)
{
	struct spans *s = context;

	assert_true(s->n_interrupts < SPANS_MAX);
	s->interrupts[s->n_interrupts++] = *interrupt;
}

static inline void spans_observe(struct model *m, struct spans *s)
{
	struct model_observer observer = {.vcpu_span = spans_vcpu,
					  .guest_span = spans_guest,
					  .guest_interrupt = spans_interrupt,
					  .context = s};

	memset(s, 0, sizeof(*s));
	assert_int_equal(model_observe(m, &observer), 0);
}

struct expected_span {
	int64_t begin_us, end_us;
	int state;
};

/* Fails the test if the spans of one vCPU are not exactly these. */
static inline void spans_expect_vcpu(const struct spans *s, uint32_t vcpu,
				     const struct expected_span *expected, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < s->n_vcpu; i++) {
		const struct vcpu_span *span = &s->vcpu[i];

		if (span->vcpu != vcpu)
			continue;
		if (k == n || span->begin.ns != expected[k].begin_us * 1000 ||
		    span->end.ns != expected[k].end_us * 1000 ||
		    (int)span->state != expected[k].state)
			fail_msg("span %zu of vCPU %u is %lld..%lld us %s, expected %lld..%lld %s",
				 k, vcpu, (long long)span->begin.ns / 1000,
				 (long long)span->end.ns / 1000, vcpu_state_name(span->state),
				 k < n ? (long long)expected[k].begin_us : 0,
				 k < n ? (long long)expected[k].end_us : 0,
				 k < n ? vcpu_state_name((enum vcpu_state)expected[k].state)
				       : "none");
		k++;
	}
	assert_int_equal(k, n);
}

static inline void spans_expect_guest(const struct spans *s, uint16_t cpu,
				      const struct expected_span *expected, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < s->n_guest; i++) {
		const struct guest_span *span = &s->guest[i];

		if (span->cpu != cpu)
			continue;
		if (k == n || span->begin.ns != expected[k].begin_us * 1000 ||
		    span->end.ns != expected[k].end_us * 1000 ||
		    (int)span->state != expected[k].state)
			fail_msg("span %zu of CPU %u is %lld..%lld us %s", k, cpu,
				 (long long)span->begin.ns / 1000, (long long)span->end.ns / 1000,
				 guest_cpu_state_name(span->state));
		k++;
	}
	assert_int_equal(k, n);
}

#endif
