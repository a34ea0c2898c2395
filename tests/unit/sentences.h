/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the tests of a report's sentences: facts of a stall, a model with names of tasks, and a
 * list of the findings whose sentences were checked.
 */
#ifndef TESTS_SENTENCES_H
#define TESTS_SENTENCES_H

#include "host-collector/analyze/stall/describe.h"
#include "host-collector/view/finding_text.h"
#include "tests/unit/model_script.h"

#define MS 1000000ll

enum { HOG = 500, BASH = 900, WAKER = 77, SPINNER = 50, WAITER = 60, OTHER = 61 };

/* Facts that most stalls here have: task 50 had guest CPU 0 from 1000 to 1500 ms. */
#define STALL                                                                                      \
	.vm = VM, .vcpu_known = true, .than_ns = 100 * MS, .begin = {1000 * MS}, .end = {1500 * MS}
#define TASK         STALL, .kind = GUEST_CPU_TASK, .pid = SPINNER
#define VECTOR(NAME) STALL, .kind = GUEST_CPU_HARDIRQ, .vector = true, .number = VS_VECTOR_##NAME
#define SPAN(STATE, ...)                                                                           \
	.n_spans = 1, .spans = {{.vm = VM,                                                         \
				 .state = VCPU_##STATE,                                            \
				 .begin = {1050 * MS},                                             \
				 .end = {1450 * MS},                                               \
				 __VA_ARGS__}}
#define DATA .data = {.host_events = true, .guest_events = true, .kvm_events = true}

/* ---- what was said, for the last test ---- */

static bool said[FINDING_COUNT], cause_said[VERDICT_COUNT];

static inline void says(const struct finding *findings, size_t n, const char *expected)
{
	assert_string_equal(finding_text(findings, n).text, expected);
	for (size_t i = 0; i < n && findings[i].kind; i++) {
		said[findings[i].kind] = true;
		if (findings[i].kind == FINDING_CAUSE)
			cause_said[findings[i].n[0]] = true;
	}
}

/* ---- the model: who is called what ---- */

static struct model *m;

static inline void name_of(uint32_t source, int32_t pid, int32_t process, const char *comm)
{
	struct timeline_event e = NAME(source, 1, pid, process, 0);
	char text[16] = "";

	snprintf(text, sizeof(text), "%s", comm);
	memcpy(&e.event.arg0, text, 8);
	memcpy(&e.event.arg1, text + 8, 8);
	script_run(m, &e, 1);
}

static inline void name(uint32_t source, int32_t pid, const char *comm)
{
	name_of(source, pid, pid, comm);
}

static inline void origin(int32_t pid, const char *cgroup, const char *vm)
{
	struct task_origin o = {
		.tid = pid, .tgid = pid, .seen = {MS}, .vcpu_known = *vm != 0, .uid = 1000};

	o.claimed = pid == 889;
	o.vm = *vm ? vm : NULL;
	assert_int_equal(model_cgroup(m, cgroup, 0, 0, &o.cgroup), 0);
	assert_int_equal(model_task_origin_set(m, &o), 0);
}

static inline int setup(void **state)
{
	uint32_t number;

	(void)state;
	m = model_new();
	assert_non_null(m);
	script_vm(m, 2, "kvm");
	name(HOST, HOG, "hog");
	name(HOST, BASH, "bash");
	name(HOST, WAKER, "waker");
	name(HOST, 888, "CPU 0/KVM");
	name(HOST, 889, "CPU 0/KVM");
	name(HOST, 601, "job-1");
	name(HOST, 602, "job-2");
	name(HOST, 603, "make");
	name(HOST, 604, "cc");
	name(HOST, 700, "nginx");
	name_of(HOST, 701, 700, "worker");
	name(VM, SPINNER, "spinner");
	name(VM, WAITER, "waiter");
	name(VM, OTHER, "other");
	assert_int_equal(model_cgroup(m, "/vm.scope", 20000, 100000, &number), 0);
	assert_int_equal(number, 1);
	assert_int_equal(model_cgroup(m, "/vm.scope", 0, 0, &number), 0);
	assert_int_equal(number, 2);
	origin(888, "/machine.slice/web2.scope", "web2");
	origin(889, "/user.slice", "web3");
	origin(603, "/batch.slice", "");
	origin(604, "/batch.slice", "");
	return 0;
}

static inline int teardown(void **state)
{
	(void)state;
	model_free(m);
	return 0;
}

/* ---- no sentence without a row ---- */

/* Fails the test if a kind of finding from `first` to `last` was in no checked sentence. */
static inline void no_finding_is_without_a_row(enum finding_kind first, enum finding_kind last)
{
	static const char *const names[] = {
#define X(NAME) [FINDING_##NAME] = #NAME,
		FINDINGS(X)
#undef X
	};
	size_t unsaid = 0;

	for (int k = (int)first; k <= (int)last; k++) {
		if (!said[k]) {
			print_error("no row of this test produces FINDING_%s\n", names[k]);
			unsaid++;
		}
	}
	assert_int_equal(unsaid, 0);
}

#endif
