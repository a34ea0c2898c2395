// SPDX-License-Identifier: GPL-2.0-only
/* Tests the statements of a report about its coverage, with stories whose coverage is known. The
 * report says that a vCPU had no stall only if the vCPU was observed. */
#include <stdlib.h>

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/analyze/stall/coverage.h"
#include "host-collector/view/headline.h"
#include "tests/unit/model_script.h"

enum { HOG = 500, TASK = 50, OTHER = 51, TICK_US = 4000 };

enum { REPORTED_MAX = 8 };

/* A second in which vCPU 0 runs and its guest switches tasks every 4 ms, with holes. */
struct story {
	const char *name;
	bool no_vm, no_guest, no_kvm;
	int64_t host_from_us;    /* its thread is first seen then */
	int64_t followed_us;     /* the capture says that it follows the thread since; 0: nothing */
	int64_t host_lost_us[2]; /* the host's events are missing from..to */
	int64_t guest_lost_us[2];           /* the guest's events are missing from..to */
	int64_t no_agent_us[2];             /* no agent from..to (0: to the end) */
	int64_t hog_us[2];                  /* another task holds the pCPU */
	enum report_answer answer;          /* of vCPU 0 */
	const char *reported[REPORTED_MAX]; /* sentences, each the whole of one */
	const char *aggregated;             /* part of no sentence */
};

static bool within(const int64_t *us, int64_t t_us)
{
	return us[1] > us[0] && t_us > us[0] && t_us <= us[1];
}

static void push(struct model *m, struct timeline_event e)
{
	assert_int_equal(model_push(m, &e, 1), 0);
}

/* Where a hole begins: what the pipeline says of it. */
static void holes_push(struct model *m, const struct story *s, int64_t t_us)
{
	const struct timeline_event host = EVENT(HOST, t_us, 0, LOST, 0, 0, 100, 0);
	const struct timeline_event guest = EVENT(VM, t_us, 0, LOST, 0, 0, 100, 0);
	const struct timeline_event silence = EVENT(VM, t_us, 0, LOST, 0, 0, 0, 0);

	if (s->host_lost_us[1] && t_us == s->host_lost_us[0])
		push(m, host);
	if (s->guest_lost_us[1] && t_us == s->guest_lost_us[0])
		push(m, guest);
	if (s->no_agent_us[1] && t_us == s->no_agent_us[0])
		push(m, silence);
}

static void host_push(struct model *m, const struct story *s, int64_t t_us)
{
	const struct timeline_event in = SWITCH(HOST, t_us, 0, 0, TID0, 0);
	const struct timeline_event exit = KVM(t_us, 0, EXIT, TID0, 48 | 1ull << 32);
	const struct timeline_event entry = KVM(t_us, 0, ENTRY, TID0, 0);
	const struct timeline_event out = SWITCH(HOST, t_us, 0, TID0, HOG, 0);
	const struct timeline_event back = SWITCH(HOST, t_us, 0, HOG, TID0, 0);

	if (t_us < s->host_from_us || within(s->host_lost_us, t_us))
		return;
	if (t_us == s->host_from_us)
		push(m, in);
	if (!s->no_kvm && !within(s->hog_us, t_us) && t_us != s->host_from_us)
		push(m, exit);
	if (s->hog_us[1] && t_us == s->hog_us[0])
		push(m, out);
	if (s->hog_us[1] && t_us == s->hog_us[1])
		push(m, back);
	if (!s->no_kvm && (!s->hog_us[1] || t_us < s->hog_us[0] || t_us >= s->hog_us[1]))
		push(m, entry);
}

static struct report *story_report(const struct story *s)
{
	struct report_options options = {.than_ns = 100000000, .needed_percent = 90};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct report *r;

	assert_non_null(b);
	if (!s->no_vm)
		script_vm(m, 1, "kvm");
	if (s->followed_us)
		assert_int_equal(model_vm_followed(m, VM, (struct host_ns){s->followed_us * 1000}),
				 0);
	for (int64_t t = 0, i = 0; !s->no_vm && t <= 1000000; t += TICK_US, i++) {
		const struct timeline_event task =
			SWITCH(VM, t, 0, i & 1 ? TASK : OTHER, i & 1 ? OTHER : TASK, 0);

		if (s->host_from_us >= 0)
			host_push(m, s, t);
		if (!s->no_guest && !within(s->guest_lost_us, t) && !within(s->no_agent_us, t) &&
		    !within(s->hog_us, t))
			push(m, task);
		holes_push(m, s, t);
	}
	model_finish(m);
	r = report_builder_finish(b);
	assert_non_null(r);
	report_builder_free(b);
	model_free(m);
	return r;
}

static bool is_reported(const struct headline *h, const char *sentence)
{
	char first[sizeof(h->count) + sizeof(h->rest)];

	snprintf(first, sizeof(first), "%s%s", h->count, h->rest);
	if (!strcmp(first, sentence))
		return true;
	for (size_t i = 0; i < h->n_lines; i++) {
		if (!strcmp(h->lines[i], sentence))
			return true;
	}
	return false;
}

static const struct story stories[] = {
	{.name = "all was observed",
	 .answer = ANSWER_NO_STALL,
	 .reported = {"No stall of 100 ms or more in 1000 ms.",
		      "Observed of VM web1: 100.0 % of its vCPU's time on the host, 100.0 % in the "
		      "guest."},
	 .aggregated = "Not observed"},
	{.name = "events of the host were lost for half of the time",
	 .host_lost_us = {400000, 900000},
	 .answer = ANSWER_CANNOT_TELL,
	 .reported =
		 {"Cannot tell whether there was a stall of 100 ms or more in 1000 ms: too little "
		  "was observed.",
		  "Cannot tell of vCPU 0 of VM web1: less than 90 % of the time was observed.",
		  "Observed of VM web1: 49.6 % of its vCPU's time on the host, 100.0 % in the "
		  "guest.",
		  "Not observed of VM web1 on the host: 504 ms (events were lost).",
		  "Host events missing for 504 ms from +0.400000 s on, of vCPU 0 of VM web1: "
		  "events were lost."},
	 .aggregated = "No stall"},
	{.name = "events of the guest were lost for a fifth of the time",
	 .guest_lost_us = {400000, 600000},
	 .answer = ANSWER_CANNOT_TELL,
	 .reported = {"Cannot tell of vCPU 0 of VM web1: less than 90 % of the time was observed.",
		      "Not observed of VM web1 in the guest: 204 ms (events were lost).",
		      "Guest events missing for 204 ms from +0.400000 s on, of vCPU 0 of VM web1: "
		      "events were lost."},
	 .aggregated = "No stall"},
	{.name = "events of the guest were lost, but little",
	 .guest_lost_us = {400000, 440000},
	 .answer = ANSWER_NO_STALL,
	 .reported = {"No stall of 100 ms or more in 1000 ms.",
		      "Observed of VM web1: 100.0 % of its vCPU's time on the host, 95.6 % in the "
		      "guest.",
		      "Not observed of VM web1 in the guest: 44.0 ms (events were lost)."},
	 .aggregated = "missing for"},
	{.name = "the agent was gone for a while",
	 .no_agent_us = {400000, 600000},
	 .answer = ANSWER_CANNOT_TELL,
	 .reported =
		 {"Not observed of VM web1 in the guest: 204 ms (no agent was heard).",
		  "Guest events missing for 204 ms from +0.400000 s on, of vCPU 0 of VM web1: no "
		  "agent was heard."},
	 .aggregated = "No stall"},
	{.name = "the thread was captured late",
	 .host_from_us = 300000,
	 .answer = ANSWER_CANNOT_TELL,
	 .reported =
		 {"Not observed of VM web1 on the host: 300 ms (no event had arrived yet).",
		  "Host events missing for 300 ms from +0.000000 s on, of vCPU 0 of VM web1: no "
		  "event had arrived yet."},
	 .aggregated = "No stall"},
	{.name = "what an agent had kept from before the recording is context",
	 .host_from_us = 300000,
	 .followed_us = 296000,
	 .answer = ANSWER_NO_STALL,
	 .reported = {"No stall of 100 ms or more in 1000 ms.",
		      "Observed of VM web1: 99.4 % of its vCPU's time on the host, 100.0 % in the "
		      "guest.",
		      "Not observed of VM web1 on the host: 4.0 ms (no event had arrived yet)."},
	 .aggregated = "missing for"},
	{.name = "no guest was recorded",
	 .no_guest = true,
	 .answer = ANSWER_NO_STALL_BY_HOST,
	 .reported =
		 {"No stall of 100 ms or more in 1000 ms.",
		  "Observed of VM web1: 100.0 % of its vCPU's time on the host, nothing of the "
		  "guest.",
		  "The guest of VM web1 was not recorded: only stalls that the host causes can be "
		  "seen."},
	 .aggregated = "missing for"},
	{.name = "nothing was recorded of the host",
	 .host_from_us = -1,
	 .answer = ANSWER_CANNOT_TELL,
	 .reported =
		 {"Cannot tell whether there was a stall of 100 ms or more in 1000 ms: too little "
		  "was observed.",
		  "Observed of VM web1: 0.0 % of its vCPU's time on the host, 100.0 % in the "
		  "guest."},
	 .aggregated = "No stall"},
	{.name = "a stall was found where little was observed",
	 .hog_us = {100000, 300000},
	 .host_lost_us = {400000, 900000},
	 .answer = ANSWER_STALLS,
	 .reported =
		 {"There may be more stalls on vCPU 0 of VM web1: less than 90 % of the time was "
		  "observed."},
	 .aggregated = "Cannot tell"},
	{.name = "nothing at all",
	 .no_vm = true,
	 .reported =
		 {"Cannot tell whether there was a stall of 100 ms or more in 0 us: too little was "
		  "observed.",
		  "The recording holds no VM."},
	 .aggregated = "No stall"},
};

static void each_sentence_follows_from_what_was_observed(void **unused)
{
	(void)unused;
	for (size_t i = 0; i < COUNT(stories); i++) {
		const struct story *s = &stories[i];
		struct report *r = story_report(s);
		struct headline *h = malloc(sizeof(*h));
		bool wrong = false;

		headline_make(r, h);
		print_message("  %s\n", s->name);
		for (size_t k = 0; k < REPORTED_MAX && s->reported[k]; k++) {
			if (!is_reported(h, s->reported[k])) {
				print_message("    not told: %s\n", s->reported[k]);
				wrong = true;
			}
		}
		wrong |= strstr(h->count, s->aggregated) != NULL;
		for (size_t k = 0; k < h->n_lines; k++)
			wrong |= strstr(h->lines[k], s->aggregated) != NULL;
		for (size_t k = 0; wrong && k < h->n_lines; k++)
			print_message("    %s\n", h->lines[k]);
		assert_false(wrong);
		if (!s->no_vm) {
			assert_int_equal(r->n_vcpus, 1);
			assert_int_equal(r->vcpus[0].coverage.answer, s->answer);
		}
		assert_int_equal(coverage_supports(r),
				 !s->no_vm && s->answer != ANSWER_CANNOT_TELL);
		free(h);
		report_free(r);
	}
}

/* What is not all is never called all, and nothing is not a part of nothing. */
static void a_percentage_is_rounded_down(void **unused)
{
	(void)unused;
	assert_true(coverage_percent(999999999, 1000000000) == 99.9);
	assert_true(coverage_percent(1000000000, 1000000000) == 100);
	assert_true(coverage_percent(0, 0) == 0);
	assert_true(coverage_percent(1, 1000000000) == 0);
}

/* A vCPU that is first seen when it is woken has slept since its capture began, if its guest idled.
 */
static void a_vcpu_that_idles_from_the_begin_is_observed(void **unused)
{
	struct report_options options = {.than_ns = 100000000, .needed_percent = 90};

	(void)unused;
	for (int idle = 0; idle < 2; idle++) {
		const struct timeline_event events[] = {
			SWITCH(VM, 0, 0, TASK, idle ? 0 : OTHER, 0),
			WAKEUP(HOST, 900000, 0, TID0, 0, 0),
			SWITCH(HOST, 900010, 0, 0, TID0, 0),
			KVM(900020, 0, ENTRY, TID0, 0),
			SWITCH(VM, 900100, 0, idle ? 0 : OTHER, TASK, 0),
			KVM(1000000, 0, EXIT, TID0, 48 | 1ull << 32),
		};
		struct model *m = model_new();
		struct report_builder *b = report_builder_new(m, &options);
		struct report *r;

		script_vm(m, 1, "kvm");
		assert_int_equal(model_vm_followed(m, VM, (struct host_ns){10000000}), 0);
		script_run(m, events, COUNT(events));
		model_finish(m);
		r = report_builder_finish(b);
		assert_non_null(r);
		assert_int_equal(r->vcpus[0].states_ns[VCPU_HALTED], idle ? 890000000 : 0);
		assert_int_equal(r->vcpus[0].coverage.span_ns, 990000000);
		assert_int_equal(r->vcpus[0].coverage.unknown_ns[UNKNOWN_NOT_CAPTURED], 10000000);
		assert_int_equal(r->vcpus[0].coverage.unknown_ns[UNKNOWN_NOT_SEEN],
				 idle ? 0 : 890000000);
		report_free(r);
		report_builder_free(b);
		model_free(m);
	}
}

/* More gaps than a report holds: the longest are kept, the others counted. */
static void of_many_gaps_the_longest_are_kept(void **unused)
{
	struct report_options options = {.than_ns = 10000000, .needed_percent = 90};
	struct model *m = model_new();
	struct report_builder *b = report_builder_new(m, &options);
	struct report *r;

	(void)unused;
	script_vm(m, 1, "kvm");
	for (int64_t i = 0; i < 100; i++) {
		const struct timeline_event events[] = {
			SWITCH(VM, 200000 * i, 0, OTHER, TASK, 0),
			EVENT(VM, 200000 * i + 1000, 0, LOST, 0, 0, 100, 0),
			SWITCH(VM, 200000 * i + 20000 + 1000 * i, 0, OTHER, TASK, 0),
		};

		script_run(m, events, COUNT(events));
	}
	model_finish(m);
	r = report_builder_finish(b);
	assert_non_null(r);
	assert_int_equal(r->n_gaps, REPORT_GAPS_MAX);
	for (size_t i = 0; i < r->n_gaps; i++) {
		assert_true(r->gaps[i].end.ns - r->gaps[i].begin.ns >= 50000000);
		assert_true(!i || r->gaps[i].begin.ns >= r->gaps[i - 1].begin.ns);
	}
	assert_true(r->dropped_gaps >= 36);
	report_free(r);
	report_builder_free(b);
	model_free(m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_sentence_follows_from_what_was_observed),
		cmocka_unit_test(a_percentage_is_rounded_down),
		cmocka_unit_test(a_vcpu_that_idles_from_the_begin_is_observed),
		cmocka_unit_test(of_many_gaps_the_longest_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
