/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks the sentences of the evidence in a report, and that each kind of it has a row here. */
#include "tests/unit/sentences.h"

static const struct {
	const char *says;
	struct stall_facts f;
} sights[] = {
	{"the host kernel handled an exit", {STALL, SPAN(KVM)}},
	{"the VMM handled an exit", {STALL, SPAN(VMM)}},
	{"out of its cgroup's CPU quota", {STALL, SPAN(THROTTLED)}},
	{"unknown: events were lost", {STALL, SPAN(UNKNOWN, .why = UNKNOWN_LOST)}},
	{"unknown: its capture had not begun", {STALL, SPAN(UNKNOWN, .why = UNKNOWN_NOT_CAPTURED)}},
	{"unknown", {STALL, SPAN(UNKNOWN)}},
	{"stopped by SIGSTOP from bash (900)",
	 {STALL, SPAN(STOPPED, .signal_pid = BASH, .signal_number = 19)}},
	{"stopped by a signal from bash (900)",
	 {STALL, SPAN(STOPPED, .signal_pid = BASH, .signal_number = 10)}},
	{"frozen with its cgroup", {STALL, SPAN(STOPPED, .task_state = VS_TASK_FROZEN)}},
	{"stopped by its tracer bash (900)",
	 {STALL, SPAN(STOPPED, .task_state = VS_TASK_TRACED, .waker_pid = BASH)}},
	{"stopped by a debugger", {STALL, SPAN(STOPPED, .task_state = VS_TASK_TRACED)}},
	{"stopped by a signal sent before the recording",
	 {STALL, SPAN(STOPPED, .task_state = VS_TASK_STOPPED)}},
	{"paused by its VMM to complete its migration", {STALL, SPAN(STOPPED, .migrates = true)}},
	{"paused by its VMM", {STALL, SPAN(STOPPED)}},
	{"ready to run, but pCPU 3 was held by several tasks in turn for 400 ms, longest by hog (500): "
	 "90.0 ms",
	 {STALL, SPAN(RUNNABLE, .pcpu = 3, .holder_pid = HOG, .holder_ns = 90 * MS,
		      .pcpu_busy_ns = 400 * MS)}},
	{"ready to run, but pCPU 3 was held by hog (500) for 390 ms",
	 {STALL, SPAN(RUNNABLE, .pcpu = 3, .holder_pid = HOG, .holder_ns = 390 * MS,
		      .pcpu_busy_ns = 400 * MS)}},
	{"ready to run, but not run although pCPU 3 was idle",
	 {STALL, SPAN(RUNNABLE, .pcpu = 3, .pcpu_idle_ns = 400 * MS)}},
	{"ready to run on pCPU 3, but not run", {STALL, SPAN(RUNNABLE, .pcpu = 3)}},
	{"slept in the host, waiting for something (no stack)", {STALL, SPAN(BLOCKED)}},
	{"slept in the host, waiting for a block device, until waker (77) woke it",
	 {STALL, SPAN(BLOCKED, .wait_class = WAIT_BLOCK_IO, .waker_pid = WAKER)}},
	{"interrupt 0x24 (msi) was pending; then its handler ran",
	 {STALL, .lost = {.ns = 400 * MS, .vector = 0x24, .source = "msi"}}},
	{"interrupt 0x24 (msi) was pending; its handler has not run since",
	 {STALL, .lost = {.ns = 400 * MS, .vector = 0x24, .source = "msi", .open = true}}},
	{"in the guest, waiter (60) waited for this CPU; 1 task waited that long",
	 {TASK, .waiter_pid = WAITER, .waiter_ns = 400 * MS, .n_waiters = 1}},
	{"in the guest, waiter (60) waited for this CPU; 2 tasks waited that long",
	 {TASK, .waiter_pid = WAITER, .waiter_ns = 400 * MS, .n_waiters = 2}},
	{"in the guest, 1 timer tick (one every 4.0 ms is normal), the longest gap 400 ms",
	 {TASK, .ticks = 1, .tick_interval_ns = 4 * MS, .tick_gap_ns = 400 * MS}},
	{"in the guest, 25 timer ticks (one every 4.0 ms is normal), the longest gap 400 ms",
	 {TASK, .ticks = 25, .tick_interval_ns = 4 * MS, .tick_gap_ns = 400 * MS}},
	{"in the guest, interrupt 25 took 300 ms in 1 part",
	 {TASK, .n_interrupts = 1,
	  .interrupts = {{.kind = GUEST_CPU_HARDIRQ, .number = 25, .ns = 300 * MS, .count = 1}}}},
	{"in the guest, softirq NET_RX took 300 ms in 9000 parts",
	 {TASK, .n_interrupts = 1,
	  .interrupts = {{.kind = GUEST_CPU_SOFTIRQ, .number = 3, .ns = 300 * MS, .count = 9000}}}},
	{"in the guest, spinner (50) spins in _raw_spin_lock: 8 of 9 stack samples show it waiting "
	 "for a lock",
	 {TASK, .sampled = {.n = 9, .spins = 8, .spinning = true, .function = "_raw_spin_lock"}}},
	{"in the guest, spinner (50) spins in smp_call: 8 of 9 stack samples show it waiting for "
	 "other CPUs' answers",
	 {TASK, .sampled = {.n = 9, .calls = 8, .spinning = true, .function = "smp_call"}}},
	{"in the guest, the interrupt computes: 9 of 9 stack samples show no wait for a lock, most of "
	 "them in crc32",
	 {VECTOR(LOCAL_TIMER), .sampled = {.n = 9, .computing = true, .function = "crc32"}}},
	{"in the guest, spinner (50) computes: 9 of 9 stack samples show no wait for a lock, most of "
	 "them in its program's own code",
	 {TASK, .sampled = {.n = 9, .computing = true}}},
	{"kvm_halt_poll: new_ns=0 old_ns=0",
	 {TASK, .n_events = 1,
	  .events = {{.count = 1, .first = {.type = VS_EVENT_KVM_HALT_POLL}}}}},
	{"kvm_halt_poll: new_ns=0 old_ns=0, the first of 3",
	 {TASK, .n_events = 1,
	  .events = {{.count = 3, .first = {.type = VS_EVENT_KVM_HALT_POLL}}}}},
};

static void what_was_seen_has_its_sentence(void **state)
{
	static struct incident out;

	(void)state;
	for (size_t i = 0; i < COUNT(sights); i++) {
		memset(&out, 0, sizeof(out));
		describe_evidence(&sights[i].f, m, &out);
		assert_int_equal(out.n_evidence, 1);
		says(&out.evidence[0].seen, 1, sights[i].says);
	}
}

/* ---- the events that the user chose ---- */

static const struct message_user_event chosen[] = {
	{.system = "kprobe",
	 .name = "vfs_read",
	 .n_fields = 2,
	 .fields = {{"count", USER_SIGNED, 4}, {"path", USER_TEXT, 8}}},
	{.system = "a.system.whose.name.is.as.long.as.it.can.be...",
	 .name = "an.event.whose.name.is.as.long.as.the.name.of.an.event.can.be..",
	 .n_fields = 4,
	 .fields = {{"a.field.with.a.long.name.......", USER_HEX, 8},
		    {"a.field.with.a.long.name......2", USER_HEX, 8},
		    {"a.field.with.a.long.name......3", USER_HEX, 8},
		    {"a.field.with.a.long.name......4", USER_HEX, 8}}},
};
static const struct user_hit chosen_hits[] = {
	{.source = VM, .event = &chosen[0], .t_ns = 1200 * MS, .n_values = 2, .values = {7, '/'}},
	{.source = HOST,
	 .event = &chosen[1],
	 .t_ns = 1200 * MS,
	 .n_values = 4,
	 .values = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}},
};

static const struct {
	const char *says;
	struct stall_facts f;
} hits[] = {
	{"guest:kprobe:vfs_read count=7 path=/",
	 {STALL, .n_hits = 1, .hits = {{1, &chosen_hits[0]}}}},
	{"guest:kprobe:vfs_read count=7 path=/, the first of 3",
	 {STALL, .n_hits = 1, .hits = {{3, &chosen_hits[0]}}}},
	{"guest:kprobe:vfs_read count=7 path=/, the oldest that was kept of 512 or more",
	 {STALL, .n_hits = 1, .hits_cut = true, .hits = {{512, &chosen_hits[0]}}}},
	{"host:a.system.whose.name.is.as.long.as.it.can.be...:an.event.whose.name.is.as.long.as.the."
	 "name.of.an.event.can.be.. a.field.with.a.long.name.......=0xffffffffffffffff "
	 "a.field.with.a.long.name......2=0xffffffffffffffff ..., the first of 3",
	 {STALL, .n_hits = 1, .hits = {{3, &chosen_hits[1]}}}},
	{"1 hit of other events that were chosen", {STALL, .other_hits = 1}},
	{"9 hits of other events that were chosen", {STALL, .other_hits = 9}},
	{"9 or more hits of other events that were chosen",
	 {STALL, .other_hits = 9, .hits_cut = true}},
};

static void hits_have_their_sentence(void **state)
{
	static struct incident out;
	static struct stall_facts full = {
		STALL,           .n_events = FACTS_EVENTS, .n_hits = FACTS_HITS,
		.other_hits = 9, .n_spans = FACTS_SPANS,   .n_interrupts = FACTS_INTERRUPTS};

	(void)state;
	for (size_t i = 0; i < COUNT(hits); i++) {
		memset(&out, 0, sizeof(out));
		describe_evidence(&hits[i].f, m, &out);
		assert_int_equal(out.n_evidence, 1);
		says(&out.evidence[0].seen, 1, hits[i].says);
	}
	/* However much other evidence there is, these have room. */
	for (size_t i = 0; i < FACTS_SPANS; i++)
		full.spans[i] = (struct vcpu_span){
			.vm = VM, .state = VCPU_KVM, .begin = full.begin, .end = full.end};
	for (size_t i = 0; i < FACTS_INTERRUPTS; i++)
		full.interrupts[i] = (struct facts_interrupt){
			.kind = GUEST_CPU_SOFTIRQ, .number = 3, .ns = 300 * MS, .count = 2};
	for (size_t i = 0; i < FACTS_EVENTS; i++)
		full.events[i] = (struct facts_events){
			.count = 1, .t = full.begin, .first = {.type = VS_EVENT_SIGNAL}};
	for (size_t i = 0; i < FACTS_HITS; i++)
		full.hits[i] = (struct facts_hits){1, &chosen_hits[0]};
	memset(&out, 0, sizeof(out));
	describe_evidence(&full, m, &out);
	/* The places of pairs stay free. */
	assert_int_equal(out.n_evidence, REPORT_EVIDENCE_MAX - REPORT_EVIDENCE_PAIRS);
	assert_string_equal(finding_text(&out.evidence[out.n_evidence - 1].seen, 1).text,
			    "9 hits of other events that were chosen");
	assert_string_equal(
		finding_text(&out.evidence[out.n_evidence - 1 - FACTS_HITS].seen, 1).text,
		"guest:kprobe:vfs_read count=7 path=/");
}

static void a_line_of_the_hosts_log_is_evidence(void **state)
{
	static const struct stall_facts f = {STALL};
	static struct incident out;
	struct model *with_log = model_new();

	(void)state;
	model_host_log(with_log, (struct host_ns){1200 * MS},
		       "watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [hog:500]");
	describe_evidence(&f, with_log, &out);
	assert_int_equal(out.n_evidence, 1);
	says(&out.evidence[0].seen, 1,
	     "the host's kernel log: watchdog: BUG: soft lockup - CPU#0 stuck "
	     "for 22s! [hog:500]");
	model_free(with_log);
}

static void sentences_of_pairs(void **state)
{
	static const struct {
		const char *says;
		struct finding f;
	} pairs[] = {
		{"pair msi, A to B, within 0 us",
		 {.kind = FINDING_SEEN_PAIR, .n = {1}, .name = "msi, A to B"}},
		{"pair msi, A to B, within 5 us, unsure: events were lost, the longest of 3",
		 {.kind = FINDING_SEEN_PAIRS, .n = {3, 1}, .ns = {5000}, .name = "msi, A to B"}},
		{"pair msi, A to B, of unknown error, the longest that was kept of 128 or more",
		 {.kind = FINDING_SEEN_KEPT_PAIRS,
		  .n = {128},
		  .ns = {FINDING_NS_UNKNOWN},
		  .name = "msi, A to B"}},
		{"1 pair of other names", {.kind = FINDING_SEEN_OTHER_PAIRS, .n = {1}}},
		{"2 pairs of other names", {.kind = FINDING_SEEN_OTHER_PAIRS, .n = {2}}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(pairs); i++) {
		said[pairs[i].f.kind] = true;
		assert_string_equal(finding_text(&pairs[i].f, 1).text, pairs[i].says);
	}
}

static void every_finding_was_said(void **state)
{
	(void)state;
	no_finding_is_without_a_row(FINDING_SEEN_STOP_SIGNAL, FINDING_NO_WAITER - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_seen_has_its_sentence),
		cmocka_unit_test(hits_have_their_sentence),
		cmocka_unit_test(a_line_of_the_hosts_log_is_evidence),
		cmocka_unit_test(sentences_of_pairs),
		cmocka_unit_test(every_finding_was_said),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
