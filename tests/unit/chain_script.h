/* SPDX-License-Identifier: GPL-2.0-only */
/* Stories with interrupt chains, all stages of which are known. */
#ifndef TESTS_CHAIN_SCRIPT_H
#define TESTS_CHAIN_SCRIPT_H

#include <stdlib.h>

#include "host-collector/analyze/chain/chain.h"
#include "tests/unit/model_script.h"

enum { VHOST = 700, STRANGER = 800, DEVICE = 0x22, TICK = 0xec, RESCHEDULE = 0xfd, IRQ = 25 };

#define MSI(T, CPU, PID, VECTOR)     EVENT(HOST, T, CPU, KVM_MSI, PID, 0, 0, VECTOR)
#define IPI(T, CPU, PID, VECTOR, TO) EVENT(HOST, T, CPU, KVM_IPI, PID, 0, VECTOR, TO)
#define GSI(T, CPU, PID, PIN)        EVENT(HOST, T, CPU, KVM_SET_IRQ, PID, 0, (PIN) | 1ull << 32, 0)
#define ACCEPT(T, CPU, PID, VECTOR, APIC)                                                          \
	EVENT(HOST, T, CPU, KVM_ACCEPT_IRQ, PID, 0, (VECTOR) | (uint64_t)(APIC) << 32, 0)
#define POSTED(T, CPU, PID, VECTOR, APIC)                                                          \
	EVENT(HOST, T, CPU, KVM_APICV_ACCEPT_IRQ, PID, 0, (VECTOR) | (uint64_t)(APIC) << 32, 0)
#define INJECT(T, CPU, TID, VECTOR) EVENT(HOST, T, CPU, KVM_INJECT, TID, 0, VECTOR, 0)
#define EOI(T, CPU, TID, VECTOR)    EVENT(HOST, T, CPU, KVM_EOI, TID, 0, 0, VECTOR)
#define ENTRY(T, CPU, TID)          KVM(T, CPU, ENTRY, TID, 0)
#define EXIT(T, CPU, TID)           KVM(T, CPU, EXIT, TID, 0x200000078)
#define HANDLER(T, CPU, NUMBER)     EVENT(VM, T, CPU, IRQ_ENTRY, 0, 0, NUMBER, 0)
#define HANDLED(T, CPU, NUMBER)     EVENT(VM, T, CPU, IRQ_EXIT, 0, 0, NUMBER, 0)
#define VECTOR(T, CPU, NUMBER)      EVENT(VM, T, CPU, VECTOR_ENTRY, 0, 0, 1, NUMBER)
#define VECTOR_DONE(T, CPU, NUMBER) EVENT(VM, T, CPU, VECTOR_EXIT, 0, 0, 1, NUMBER)
#define LEVEL_ACCEPT(T, CPU, PID, VECTOR, APIC)                                                    \
	EVENT(HOST, T, CPU, KVM_ACCEPT_IRQ, PID, 0, (VECTOR) | (uint64_t)(APIC) << 32, 1ull << 32)
#define ACK(T, CPU, TID, PIN)  EVENT(HOST, T, CPU, KVM_ACK_IRQ, TID, 0, 2, PIN)
#define GAP(SOURCE, T, CPU, N) EVENT(SOURCE, T, CPU, LOST, 0, 0, N, 0)

struct reported {
	struct model *model;
	struct chains *chains;
	size_t n;
	struct chain closed[64];
};

static inline void closed_take(void *context, const struct chain *c)
{
	struct reported *t = context;

	assert_true(t->n < COUNT(t->closed));
	t->closed[t->n++] = *c;
}

/* summary: the guest counts short handlers instead of sending their events. */
static inline void reported_with(struct reported *t, const struct timeline_event *events, size_t n,
				 bool summary, int64_t limit_ns)
{
	struct chain_options options = {.limit_ns = limit_ns, .closed = closed_take, .context = t};
	struct timeline_event name = NAME(HOST, 0, VHOST, 2, 0);

	memset(t, 0, sizeof(*t));
	t->model = model_new();
	assert_non_null(t->model);
	t->chains = chains_new(t->model, &options);
	assert_non_null(t->chains);
	script_vm(t->model, 2, "kvm");
	if (summary)
		assert_int_equal(model_handlers_counted(t->model, VM), 0);
	memcpy(&name.event.arg0, "vhost-10", 8);
	memcpy(&name.event.arg1, "0", 1);
	script_run(t->model, &name, 1);
	script_run(t->model, events, n);
	model_finish(t->model);
	chains_finish(t->chains);
	assert_int_equal(chains_error(t->chains), 0);
}

static inline void reported_at(struct reported *t, const struct timeline_event *events, size_t n,
			       bool summary)
{
	reported_with(t, events, n, summary, 0);
}

static inline void reported_of(struct reported *t, const struct timeline_event *events, size_t n)
{
	reported_at(t, events, n, false);
}

static inline void reported_free(struct reported *t)
{
	chains_free(t->chains);
	model_free(t->model);
}

static inline const struct chain_group *group_find(const struct reported *t, uint8_t vector)
{
	const struct chain_group *g;

	for (size_t i = 0; (g = chains_group(t->chains, i)); i++) {
		if (g->vector == vector)
			return g;
	}
	fail_msg("no chain of vector %#x", vector);
	return NULL;
}

static inline void expect_stage(const struct chain *c, enum chain_stage stage, int64_t us)
{
	int64_t ns;

	if (!chain_stage_ns(c, stage, &ns))
		fail_msg("%s is not observed", chain_stage_name(stage));
	if (ns != us * 1000)
		fail_msg("%s is %lld ns, not %lld us", chain_stage_name(stage), (long long)ns,
			 (long long)us);
}

static inline void expect_unobserved(const struct chain *c, enum chain_stage stage)
{
	int64_t ns;

	assert_false(chain_stage_ns(c, stage, &ns));
}

static inline void expect_place(const struct chain *c, enum chain_place place, int64_t us)
{
	if (c->place_ns[place] != us * 1000)
		fail_msg("place %d is %lld ns, not %lld us", place, (long long)c->place_ns[place],
			 (long long)us);
}

/* Does the same; each stamp has the error of its side. */
static inline void reported_unsure(struct reported *t, struct timeline_event *events, size_t n,
				   uint32_t host_err_ns, uint32_t guest_err_ns)
{
	for (size_t i = 0; i < n; i++)
		events[i].err_ns = events[i].source == VM ? guest_err_ns : host_err_ns;
	reported_of(t, events, n);
}

#endif
