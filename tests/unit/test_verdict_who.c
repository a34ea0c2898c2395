/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the names of culprits: who held the pCPU, and whose quota ran out. Culprits are groups of
 * tasks, VMs and cgroups. */
#include "host-collector/view/culprit_text.h"
#include "tests/unit/verdict_story.h"

/* Twenty tasks with similar names hold the pCPU in turn, 10 ms each. Then the other vCPU of this VM
 * holds it for 100 ms. */
static void crowd(struct tale *t)
{
	int64_t at = 300000;

	tale_begin(t);
	tale_ticks(t, 204000, 300000, 50);
	for (int i = 0; i < 20; i++, at += 10000) {
		char comm[9];

		snprintf(comm, sizeof(comm), "job-%d", i);
		ADD(t, NAME(HOST, 2, 600 + i, 600 + i, script_comm(comm)));
		tale_away(t, at, at + 9990, VS_TASK_RUNNING, 600 + i);
	}
	ADD(t, NAME(HOST, 2, 888, 880, script_comm("CPU 0/KV")));
	ADD(t, NAME(HOST, 2, 880, 880, script_comm("qemu-web")));
	tale_away(t, at, at + 100000, VS_TASK_RUNNING, 888);
	ADD(t, SWITCH(VM, at + 110000, 0, 50, 42, 1));
}

static void a_crowd_is_summed_by_name_and_a_process_named(void **state)
{
	struct report *r = judge(crowd, false);
	const struct report_culprit *c = r->incidents[0].culprits;

	(void)state;
	assert_int_equal(r->n_incidents, 1);
	assert_int_equal(r->incidents[0].verdict, VERDICT_VCPU_NOT_SCHEDULED);
	assert_int_equal(r->incidents[0].n_culprits, 2);
	assert_int_equal(c[0].share_ns, 20 * 9990000ll);
	assert_string_equal(culprit_what_text(&c[0]).text, "20 tasks of such names");
	assert_int_equal(c[0].n_tasks, 20);
	assert_int_equal(c[1].pid, 888);
	assert_string_equal(culprit_what_text(&c[1]).text, "of process 880 (qemu-web)");
	assert_int_equal(c[1].share_ns, 100000000);
	assert_int_equal(r->incidents[0].n_groups, 0); /* nobody knows their cgroups */
	report_free(r);
}

/* One wait: twenty tasks with similar names hold the pCPU in turn, five times 5 ms each. Then a
 * VM's vCPU holds it for 60 ms, and a task of another cgroup for 40 ms. */
static void crowd_in_one_wait(struct tale *t)
{
	int64_t at = 250000;
	int32_t runs = TID0;

	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	for (int i = 0; i < 102; i++) {
		int32_t next = i == 100 ? 888 : i == 101 ? 700 : 600 + i % 20;

		ADD(t, SWITCH(HOST, at, 0, runs, next, VS_TASK_RUNNING));
		at += i == 100 ? 60000 : i == 101 ? 40000 : 5000;
		runs = next;
	}
	for (int i = 0; i < 20; i++) {
		char comm[9];

		snprintf(comm, sizeof(comm), "job-%d", i);
		ADD(t, NAME(HOST, 2, 600 + i, 600 + i, script_comm(comm)));
	}
	ADD(t, NAME(HOST, 2, 888, 880, script_comm("CPU 0/KV")));
	ADD(t, NAME(HOST, 2, 700, 700, script_comm("cron")));
	ADD(t, SWITCH(HOST, at, 0, runs, TID0, VS_TASK_RUNNING));
	ADD(t, SWITCH(VM, at + 10000, 0, 50, 42, 1));
}

static void origin(struct model *m, int32_t tid, int32_t tgid, const char *cgroup, const char *vm,
		   bool claimed)
{
	struct task_origin o = {.tid = tid,
				.tgid = tgid,
				.seen = {300000000},
				.began = {0},
				.vcpu_known = *vm != 0,
				.claimed = claimed,
				.uid = claimed ? 1000 : 0};

	o.vm = *vm ? vm : NULL;
	assert_int_equal(model_cgroup(m, cgroup, 0, 0, &o.cgroup), 0);
	assert_int_equal(model_task_origin_set(m, &o), 0);
}

static bool claims;

static void origins(struct model *m)
{
	for (int32_t i = 0; i < 20; i++)
		origin(m, 600 + i, 600 + i, "/batch.slice", "", false);
	origin(m, 888, 880, "/machine.slice/web2.scope", "web2", claims);
	origin(m, 700, 700, "/system.slice/cron.service", "", false);
}

static void crowd_with_origins(struct tale *t)
{
	crowd_in_one_wait(t);
	t->prepare = origins;
}

static void a_crowd_is_summed_by_cgroup_and_a_vm_named(void **state)
{
	struct report *r = judge(crowd_with_origins, false);
	const struct incident *i = r->incidents;
	const struct report_culprit *c = i->culprits;

	(void)state;
	assert_int_equal(r->n_incidents, 1);
	assert_string_equal(because_text(i).text,
			    "the vCPU was ready to run but waited 600 ms for a pCPU, held by 20 "
			    "tasks such as job-0 (600) in turn: 500 ms");
	assert_int_equal(i->n_culprits, 3);
	assert_int_equal(c[0].share_ns, 500000000);
	assert_int_equal(c[0].n_tasks, 20);
	assert_string_equal(c[0].cgroup, "/batch.slice");
	assert_string_equal(culprit_what_text(&c[1]).text, "VM web2, vCPU 0");
	assert_string_equal(c[1].vm.name, "web2");
	assert_int_equal(c[1].share_ns, 60000000);
	assert_false(c[1].vm.claimed);
	assert_string_equal(c[2].comm, "cron");
	assert_int_equal(i->n_groups, 3);
	assert_string_equal(i->groups[0].cgroup, "/batch.slice");
	assert_int_equal(i->groups[0].n_tasks, 20);
	assert_int_equal(i->groups[0].share_ns, 500000000);
	assert_string_equal(i->groups[2].cgroup, "/system.slice/cron.service");
	report_free(r);
}

/* Tasks with different names in one cgroup. */
static void crowd_of_many_names(struct tale *t)
{
	crowd_with_origins(t);
	for (int i = 0; i < 20; i++) {
		const char comm[] = {(char)('a' + i), 0};

		ADD(t, NAME(HOST, 3, 600 + i, 600 + i, script_comm(comm)));
	}
}

static void vm_holds_the_pcpu(struct tale *t)
{
	tale_begin(t);
	tale_ticks(t, 204000, 250000, 50);
	ADD(t, NAME(HOST, 2, 888, 880, script_comm("CPU 0/KV")));
	tale_away(t, 250000, 750000, VS_TASK_RUNNING, 888);
	ADD(t, SWITCH(VM, 760000, 0, 50, 42, 1));
	t->prepare = origins;
}

/* A thread id is used again: its earlier data belong to another task. */
static void thread_id_used_again(struct tale *t)
{
	vm_holds_the_pcpu(t);
	ADD(t, NAME(HOST, 400000, 888, 888, script_comm("hog")));
}

static void who_held_the_pcpu_is_said_in_words(void **state)
{
	struct report *r = judge(crowd_of_many_names, false);

	(void)state;
	assert_string_equal(because_text(&r->incidents[0]).text,
			    "the vCPU was ready to run but waited 600 ms for a pCPU, held by 20 "
			    "tasks in cgroup /batch.slice in turn: 500 ms");
	report_free(r);
	r = judge(vm_holds_the_pcpu, false);
	assert_string_equal(because_text(&r->incidents[0]).text,
			    "the vCPU was ready to run but waited 500 ms for a pCPU, held by VM "
			    "web2, vCPU 0: CPU 0/KV (888)");
	report_free(r);
	claims = true;
	r = judge(vm_holds_the_pcpu, false);
	claims = false;
	assert_string_equal(
		because_text(&r->incidents[0]).text,
		"the vCPU was ready to run but waited 500 ms for a pCPU, held by VM "
		"web2, vCPU 0 (unverified name, a process of user 1000): CPU 0/KV (888)");
	assert_true(r->incidents[0].culprits[0].vm.claimed);
	assert_int_equal(r->incidents[0].culprits[0].vm.uid, 1000);
	report_free(r);
	r = judge(thread_id_used_again, false);
	assert_string_equal(because_text(&r->incidents[0]).text,
			    "the vCPU was ready to run but waited 500 ms for a pCPU, held by hog "
			    "(888)");
	assert_int_equal(r->incidents[0].n_groups, 0);
	report_free(r);
}

static void quota_of_a_cgroup(struct tale *t)
{
	t->cgroup = "/machine.slice/web.scope";
	t->quota_us = 25000;
	quota_counted(t);
}

static void quota_taken_away(struct tale *t)
{
	t->cgroup = "/kubepods.slice/kubepods-burstable.slice/"
		    "kubepods-burstable-pod5c8e5c2e_0a5b_4d0a_9d2f_3a1f5c2f7e11.slice/"
		    "cri-containerd-3f1c.scope";
	t->quota_us = 0;
	quota_counted(t);
}

static void a_quota_is_named_with_its_cgroup_and_values(void **state)
{
	struct report *r = judge(quota_of_a_cgroup, false);
	const struct incident *i = r->incidents;

	(void)state;
	assert_int_equal(r->n_incidents, 1);
	assert_string_equal(because_text(i).text,
			    "the VM's cgroup /machine.slice/web.scope was out of CPU quota for "
			    "500 ms: it gets 25.0 ms of CPU time in every 100 ms");
	assert_string_equal(i->quota.cgroup, "/machine.slice/web.scope");
	assert_int_equal(i->quota.quota_us, 25000);
	assert_int_equal(i->quota.period_us, 100000);
	report_free(r);
	r = judge(quota_taken_away, false);
	i = r->incidents;
	assert_int_equal(r->n_incidents, 1);
	assert_string_equal(
		because_text(i).text,
		"the VM's cgroup ...ble.slice/kubepods-burstable-pod5c8e5c2e_0a5b_4d0a_9d2f_"
		"3a1f5c2f7e11.slice/cri-containerd-3f1c.scope was out of CPU quota "
		"for 500 ms");
	assert_int_equal(i->quota.quota_us, 0);
	report_free(r);
	r = judge(quota_counted, false); /* a recording that names no cgroup */
	assert_string_equal(because_text(&r->incidents[0]).text,
			    "the VM's cgroup was out of CPU quota for 500 ms");
	assert_string_equal(r->incidents[0].quota.cgroup, "");
	report_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_crowd_is_summed_by_name_and_a_process_named),
		cmocka_unit_test(a_crowd_is_summed_by_cgroup_and_a_vm_named),
		cmocka_unit_test(who_held_the_pcpu_is_said_in_words),
		cmocka_unit_test(a_quota_is_named_with_its_cgroup_and_values),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
