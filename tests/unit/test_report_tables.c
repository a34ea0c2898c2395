// SPDX-License-Identifier: GPL-2.0-only
/* Tests the arguments of `report TABLE`, and that every table can be printed, split and cut. */
#include <stdlib.h>

#include "host-collector/tables/report_tables.h"
#include "tests/unit/model_script.h"

static const char *const tables[] = {"vcpu",   "pcpu",   "culprits", "steal",  "halts",
				     "tasks",  "irq",    "ticks",    "exits",  "faults",
				     "chains", "delays", "slowest",  "overdue"};

static void assert_refused(const struct report_table_request *request, const char *says)
{
	char why[320];

	assert_int_not_equal(report_table_check(request, why, sizeof(why)), 0);
	if (!strstr(why, says))
		fail_msg("'%s' does not say '%s'", why, says);
}

static void what_is_not_possible_is_told_with_what_is(void **unused)
{
	(void)unused;
	assert_refused(&(struct report_table_request){.table = "nope"}, "there are vcpu, pcpu, ");
	assert_refused(&(struct report_table_request){.table = "irq", .per = "pcpu"},
		       "--per takes vcpu and vector");
	assert_refused(&(struct report_table_request){.table = "steal", .per = "task"},
		       "--per takes vcpu here");
	assert_refused(&(struct report_table_request){.table = "pcpu", .than_ns = 1}, "exits");
	assert_refused(&(struct report_table_request){.table = "exits", .per = "task"},
		       "--per takes vcpu here");
}

static char *drawn(const struct report_table_request *request)
{
	static const struct timeline_event events[] = {
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		SWITCH(VM, 1, 0, 0, 42, 0),
		KVM(2, 0, ACCEPT_IRQ, TID0, 0x22),
		KVM(3, 0, INJECT, TID0, 0x22),
		KVM(4, 0, ENTRY, TID0, 0),
		IRQ(10, 0, IRQ_ENTRY, 42, 24),
		IRQ(20, 0, IRQ_EXIT, 42, 24),
		KVM(100, 0, EXIT, TID0, 30 | 1ull << 32),
		KVM(101, 0, PAGE_FAULT, TID0, 0x1000),
		KVM(102, 0, WAKEUP, TID0, 5000),
		IRQ(500, 0, VECTOR_ENTRY, 42, VS_VECTOR_LOCAL_TIMER),
		IRQ(510, 0, VECTOR_EXIT, 42, VS_VECTOR_LOCAL_TIMER),
		SWITCH(HOST, 1000, 0, TID0, 500, 0),
		SWITCH(HOST, 2000, 0, 500, TID0, 0),
		KVM(2100, 0, ENTRY, TID0, 0),
		IRQ(2500, 0, VECTOR_ENTRY, 42, VS_VECTOR_LOCAL_TIMER),
		IRQ(2510, 0, VECTOR_EXIT, 42, VS_VECTOR_LOCAL_TIMER),
		IRQ(3000, 0, SOFTIRQ_ENTRY, 42, 1),
		IRQ(3100, 0, SOFTIRQ_EXIT, 42, 1),
		SWITCH(VM, 4000, 0, 42, 0, 1),
		KVM(5000, 0, EXIT, TID0, 12 | 1ull << 32),
	};
	struct guest_steal steal = {.vm = VM, .clock = true};
	struct model *m = model_new();
	struct report_table *t;
	char why[320], *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (report_table_check(request, why, sizeof(why)))
		fail_msg("%s: %s", request->table, why);
	t = report_table_new(m, request);
	assert_true(m && t && out);
	script_vm(m, 1, "kvm");
	script_run(m, events, 2);
	for (steal.t.ns = 5000; steal.t.ns < 5000000; steal.t.ns += 1000000)
		assert_int_equal(model_guest_steal(m, &steal), 0);
	script_run(m, events + 2, COUNT(events) - 2);
	model_finish(m);
	report_table_finish(t);
	assert_int_equal(report_table_write(t, out), 0);
	model_free(m);
	report_table_free(t);
	fclose(out);
	return text;
}

static size_t lines(const char *text)
{
	size_t n = 0;

	for (; (text = strchr(text, '\n')); text++)
		n++;
	return n;
}

static void every_table_draws_in_every_format_however_split(void **unused)
{
	static const char *const formats[] = {"text", "json", "csv"};
	static const char *const pers[] = {NULL,   "vcpu",    "pcpu",  "vector",
					   "task", "process", "cgroup"};
	char why[320];

	(void)unused;
	for (size_t i = 0; i < COUNT(tables) * COUNT(formats) * COUNT(pers); i++) {
		const struct report_table_request request = {
			.table = tables[i % COUNT(tables)],
			.format = formats[i / COUNT(tables) % COUNT(formats)],
			.per = pers[i / COUNT(tables) / COUNT(formats)]};
		char *text;

		if (report_table_check(&request, why, sizeof(why)))
			continue;
		text = drawn(&request);
		if (strcmp(request.format, "json") && strcmp(request.table, "overdue") &&
		    lines(text) < 1 + !!strcmp(request.table, "slowest"))
			fail_msg("%s as %s has no row: %s", request.table, request.format, text);
		free(text);
	}
}

static void a_split_brings_its_column(void **unused)
{
	struct report_table_request request = {.table = "exits", .format = "csv"};
	char *text = drawn(&request);

	(void)unused;
	assert_memory_equal(text, "table,vm,reason,", 16);
	free(text);
	request.per = "vcpu";
	text = drawn(&request);
	assert_memory_equal(text, "table,vm,vcpu,reason,", 21);
	free(text);
}

static void shorter_ones_are_left_out(void **unused)
{
	struct report_table_request request = {.table = "irq", .format = "csv", .than_ns = 50000};
	char *text = drawn(&request);
	const char *row = strstr(text, "\nirq,");

	(void)unused;
	assert_non_null(row);
	assert_non_null(strstr(row, "softirq"));
	assert_null(strstr(row + 1, "\nirq,"));
	free(text);
}

static void a_page_shows_its_tables_as_far_as_they_fit(void **unused)
{
	struct report_table_request request = {.table = "irq", .format = "text"};
	char *text = drawn(&request);

	(void)unused;
	assert_non_null(strstr(text, "irq: "));
	assert_non_null(strstr(text, "\n\nchains: "));
	assert_non_null(strstr(text, "latency"));
	assert_non_null(strstr(text, "\n\nslowest: "));
	assert_non_null(strstr(text, "\n\noverdue: Interrupts that were lost, or handled late\n"
				     "nothing of that was seen\n"));
	assert_non_null(strstr(text, "\n\nticks: "));
	free(text);
	request.per = "vector";
	text = drawn(&request);
	assert_non_null(strstr(text, "\n\ndelays: "));
	assert_null(strstr(text, "ticks: "));
	free(text);
	request = (struct report_table_request){.table = "vcpu", .per = "pcpu", .format = "csv"};
	text = drawn(&request);
	assert_memory_equal(text, "table,pcpu,", 11);
	assert_non_null(strstr(text, "\nculprits,"));
	free(text);
}

static void origin(struct model *m, int32_t tid, int32_t tgid, const char *cgroup, const char *vm)
{
	struct task_origin o = {.tid = tid, .tgid = tgid, .seen = {1}, .vcpu_known = *vm != 0};

	o.vm = *vm ? vm : NULL;
	assert_int_equal(model_cgroup(m, cgroup, 0, 0, &o.cgroup), 0);
	assert_int_equal(model_task_origin_set(m, &o), 0);
}

/* A vCPU waits for two threads of a process, for another VM's vCPU, for a task of which nothing
 * is known, and for its quota. */
static char *culprits_drawn(const char *per)
{
	const struct timeline_event events[] = {
		NAME(HOST, 0, 700, 700, script_comm("make")),
		NAME(HOST, 0, 701, 700, script_comm("worker")),
		NAME(HOST, 0, 888, 880, script_comm("CPU 0/KV")),
		SWITCH(HOST, 0, 0, 0, TID0, 0),
		SWITCH(HOST, 10000, 0, TID0, 700, 0),
		SWITCH(HOST, 13000, 0, 700, 701, 0),
		SWITCH(HOST, 15000, 0, 701, 888, 0),
		SWITCH(HOST, 20000, 0, 888, 999, 0),
		SWITCH(HOST, 21000, 0, 999, 700, 0),
		SWITCH(HOST, 22000, 0, 700, TID0, 0),
		SWITCH(HOST, 30000, 0, TID0, 0, 0),
		SWITCH(HOST, 90000, 0, 0, TID0, 0),
		SWITCH(HOST, 100000, 0, TID0, 0, 1),
	};
	const struct report_table_request request = {
		.table = "culprits", .per = per, .format = "csv", .alone = true};
	struct quota_reading quota = {.vm = VM,
				      .from = {25000000},
				      .until = {95000000},
				      .throttled_ns = 60000000,
				      .n_vcpus = 1};
	struct model *m = model_new();
	struct report_table *t = report_table_new(m, &request);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_true(m && t && out);
	script_vm(m, 1, "kvm");
	assert_int_equal(model_cgroup(m, "/machine/web1", 10000, 100000, &quota.cgroup), 0);
	script_run(m, events, COUNT(events) - 1);
	origin(m, 700, 700, "/batch", "");
	origin(m, 701, 700, "/batch", "");
	origin(m, 888, 880, "/machine/web2", "web2");
	assert_int_equal(model_quota(m, &quota), 0);
	script_run(m, events + COUNT(events) - 1, 1);
	model_finish(m);
	report_table_finish(t);
	assert_int_equal(report_table_write(t, out), 0);
	model_free(m);
	report_table_free(t);
	fclose(out);
	return text;
}

static void culprits_are_tasks_processes_or_cgroups(void **unused)
{
	static const struct {
		const char *per, *text;
	} cases[] = {
		{"task",
		 "vm,pid,held_ns,waits,comm,owner,cgroup\r\n"
		 "\"web1\",0,60000000,1,\"\",\"CPU quota, 10.0 ms in every 100 ms\",\"/machine/web1\"\r\n"
		 "\"web1\",888,5000000,1,\"CPU 0/KV\",\"VM web2, vCPU 0\",\"/machine/web2\"\r\n"
		 "\"web1\",700,4000000,1,\"make\",\"\",\"/batch\"\r\n"
		 "\"web1\",701,2000000,1,\"worker\",\"of process 700 (make)\",\"/batch\"\r\n"
		 "\"web1\",999,1000000,1,\"\",\"\",\"\"\r\n"},
		{"process",
		 "vm,pid,held_ns,tasks,comm,owner,cgroup\r\n"
		 "\"web1\",0,60000000,0,\"\",\"CPU quota, 10.0 ms in every 100 ms\",\"/machine/web1\"\r\n"
		 "\"web1\",700,6000000,2,\"make\",\"\",\"/batch\"\r\n"
		 "\"web1\",880,5000000,1,\"CPU 0/KV\",\"VM web2, vCPU 0\",\"/machine/web2\"\r\n"
		 "\"web1\",999,1000000,1,\"\",\"\",\"\"\r\n"},
		{"cgroup",
		 "vm,held_ns,tasks,comm,owner,cgroup\r\n"
		 "\"web1\",60000000,0,\"\",\"CPU quota, 10.0 ms in every 100 ms\",\"/machine/web1\"\r\n"
		 "\"web1\",6000000,2,\"make\",\"\",\"/batch\"\r\n"
		 "\"web1\",5000000,1,\"CPU 0/KV\",\"VM web2, vCPU 0\",\"/machine/web2\"\r\n"
		 "\"web1\",1000000,1,\"\",\"\",\"\"\r\n"},
	};

	(void)unused;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *text = culprits_drawn(cases[i].per);

		assert_string_equal(text, cases[i].text);
		free(text);
	}
}

/* Two intervals of one vCPU that waits 1 ms in each, then one in which nothing happens. */
static char *intervals_drawn(const char *format, bool terminal)
{
	const struct report_table_request request = {.table = "culprits", .format = format};
	struct model *m = model_new();
	struct report_table *t = report_table_new(m, &request);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_true(m && t && out);
	script_vm(m, 1, "kvm");
	for (int i = 0; i < 2; i++) {
		const struct timeline_event events[] = {
			SWITCH(HOST, 10000 * i, 0, 0, TID0, 0),
			KVM(10000 * i, 0, ENTRY, TID0, 0),
			SWITCH(HOST, 10000 * i + 1000, 0, TID0, 500 + i, 0),
			SWITCH(HOST, 10000 * i + 2000, 0, 500 + i, TID0, 0),
			SWITCH(HOST, 10000 * i + 5000, 0, TID0, 0, 1),
		};

		script_run(m, events, COUNT(events));
		assert_int_equal(report_table_interval(t, terminal, out), 0);
	}
	assert_int_equal(report_table_interval(t, terminal, out), 0);
	model_free(m);
	report_table_free(t);
	fclose(out);
	return text;
}

static void an_interval_holds_what_happened_in_it(void **unused)
{
	char *text = intervals_drawn("json", false), *second = strchr(text, '\n') + 1;

	(void)unused;
	assert_int_equal(lines(text), 3);
	assert_non_null(strstr(text, "\"begin_ns\":0,\"end_ns\":5000000,"));
	assert_memory_equal(second, "{\"schema\":\"vcpuscope.table/2\"", 29);
	assert_non_null(strstr(second, "\"begin_ns\":5000000,\"end_ns\":15000000,"));
	assert_null(strstr(second, "\"pid\":500"));
	assert_non_null(strstr(second, "\"pid\":501,\"held_ns\":1000000,\"waits\":1"));
	assert_non_null(strstr(second, "\"rows\":[]"));
	free(text);
}

static void only_a_terminal_is_cleared(void **unused)
{
	char *text = intervals_drawn("text", false);

	(void)unused;
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(text, "culprits, over 5.0 ms\n"));
	free(text);
	text = intervals_drawn("text", true);
	assert_memory_equal(text, "\x1b[H\x1b[2J", 7);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(culprits_are_tasks_processes_or_cgroups),
		cmocka_unit_test(what_is_not_possible_is_told_with_what_is),
		cmocka_unit_test(every_table_draws_in_every_format_however_split),
		cmocka_unit_test(a_split_brings_its_column),
		cmocka_unit_test(shorter_ones_are_left_out),
		cmocka_unit_test(a_page_shows_its_tables_as_far_as_they_fit),
		cmocka_unit_test(an_interval_holds_what_happened_in_it),
		cmocka_unit_test(only_a_terminal_is_cleared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
