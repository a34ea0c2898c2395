/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks the words for culprits: what they are, and what they did. Each role has a row here. */
#include "host-collector/analyze/stall/verdict.h"
#include "host-collector/analyze/stall/verdict_parts.h"
#include "host-collector/view/culprit_text.h"
#include "tests/unit/sentences.h"

#define LOCK_OWNER(KEEPER)                                                                         \
	.waits = {.lock_owner = {.known = true, .pid = BASH, .keeper = KEEPER_##KEEPER}}

/* Who held the pCPU, beside the name. */
static void who_it_was_has_its_words(void **state)
{
	static const struct stall_facts f = {TASK,
					     DATA,
					     .denied = true,
					     .longest_chain_ns = 500 * MS,
					     .state_ns = {[VCPU_RUNNABLE] = 500 * MS},
					     .pcpu_busy_ns = 500 * MS,
					     .n_holders = 5,
					     .holders = {{601, 75 * MS},
							 {602, 75 * MS},
							 {888, 120 * MS},
							 {889, 80 * MS},
							 {701, 70 * MS}}};
	static struct incident out;

	(void)state;
	verdict_judge(&f, m, &out);
	assert_int_equal(out.n_culprits, 5);
	assert_string_equal(culprit_what_text(&out.culprits[0]).text, "2 tasks of such names");
	assert_string_equal(culprit_what_text(&out.culprits[1]).text, "VM web2, vCPU 0");
	assert_string_equal(culprit_what_text(&out.culprits[2]).text,
			    "VM web3, vCPU 0 (unverified name, a process of user 1000)");
	assert_string_equal(culprit_what_text(&out.culprits[3]).text, "of process 700 (nginx)");
	assert_string_equal(culprit_what_text(&out.culprits[4]).text, "all other tasks");
	assert_int_equal(out.culprits[4].share_ns, 80 * MS);
	for (size_t i = 0; i < out.n_culprits; i++)
		assert_int_equal(out.culprits[i].role, CULPRIT_HELD_PCPU);
}

static const struct {
	void (*culprits)(const struct stall_facts *f, const struct model *m, struct incident *out);
	const char *did, *is;
	struct stall_facts f;
} blamed[] = {
	{culprits_senders, "sent the stop signal", "", {TASK, SPAN(STOPPED, .signal_pid = BASH)}},
	{culprits_senders, "wrote to QEMU's monitor", "", {TASK, SPAN(STOPPED, .asker_pid = BASH)}},
	{culprits_senders,
	 "traced the vCPU thread",
	 "",
	 {TASK, SPAN(STOPPED, .task_state = VS_TASK_TRACED, .waker_pid = BASH)}},
	{culprits_holders,
	 "held the pCPU",
	 "",
	 {TASK, .pcpu_busy_ns = 400 * MS, .n_holders = 1, .holders = {{HOG, 400 * MS}}}},
	{culprits_lock_holders,
	 "held QEMU's big lock",
	 "",
	 {TASK, SPAN(BLOCKED, .wait_class = WAIT_VMM_LOCK, .waker_pid = WAKER)}},
	{culprits_page_providers,
	 "provided the page",
	 "",
	 {TASK, SPAN(BLOCKED, .wait_class = WAIT_USERFAULT, .waker_pid = WAKER)}},
	{culprits_of_lock_owner, "held the other vCPU's pCPU", "", {TASK, LOCK_OWNER(HELD_PCPU)}},
	{culprits_of_lock_owner, "stopped the other vCPU", "", {TASK, LOCK_OWNER(STOPPED)}},
	{culprits_of_lock_owner, "traced the other vCPU", "", {TASK, LOCK_OWNER(TRACED)}},
	{culprits_of_lock_owner, "wrote to QEMU's monitor", "", {TASK, LOCK_OWNER(ASKED)}},
	{culprits_of_lock_owner, "held QEMU's big lock", "", {TASK, LOCK_OWNER(BIG_LOCK)}},
	{culprits_of_lock_owner, "provided the page", "", {TASK, LOCK_OWNER(PAGE)}},
	{culprits_guest_task, "kept the CPU", "", {TASK}},
	{culprits_guest_task, "was interrupted", "", {VECTOR(LOCAL_TIMER), .pid = SPINNER}},
	{culprits_guest_task,
	 "kept the other CPU",
	 "on CPU 1",
	 {TASK, .guest_peer = {.known = true, .cpu = 1, .kind = GUEST_CPU_TASK, .pid = OTHER}}},
	{culprits_guest_task,
	 "was interrupted on the other CPU",
	 "on CPU 1",
	 {TASK, .guest_peer = {.known = true, .cpu = 1, .kind = GUEST_CPU_SOFTIRQ, .pid = OTHER}}},
};

static void what_it_did_has_its_words(void **state)
{
	static struct incident out;
	bool did[CULPRIT_ROLE_COUNT] = {false};

	(void)state;
	for (size_t i = 0; i < COUNT(blamed); i++) {
		memset(&out, 0, sizeof(out));
		blamed[i].culprits(&blamed[i].f, m, &out);
		assert_int_equal(out.n_culprits, 1);
		assert_string_equal(culprit_role_text(&out.culprits[0]), blamed[i].did);
		assert_string_equal(culprit_what_text(&out.culprits[0]).text, blamed[i].is);
		did[out.culprits[0].role] = true;
	}
	for (int r = 0; r < CULPRIT_ROLE_COUNT; r++) {
		if (!did[r])
			fail_msg("no row has the role %d", r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_it_was_has_its_words),
		cmocka_unit_test(what_it_did_has_its_words),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
