/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the records for a fleet: each line has the fields of its schema, stays within its bound
 * for any names that guests or users choose, and always has the same id. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/fleet/figures_record.h"
#include "host-collector/fleet/incident_record.h"
#include "tests/unit/json_schema.h"

#define FLEET TEST_SOURCE_DIR "/../deploy/fleet/"

static struct host_facts host;
static struct vm_facts vm = {.name = "web1",
			     .uuid = "6f0d1c2b-3a49-4586-97a8-b9cadbecfd0e",
			     .vmm = "QEMU",
			     .clock_error_ns = UINT64_MAX};
static char line[OUTBOX_LINE_MAX];

static int setup(void **state)
{
	char why[256];

	(void)state;
	host_facts_read("", &host);
	assert_int_equal(
		host_labels_parse("zone=fra1, rack=r 12,ring=canary", &host, why, sizeof(why)), 0);
	assert_int_equal(host.n_labels, 3);
	assert_string_equal(host.labels[1].value, "r 12");
	return 0;
}

static void assert_fits(const char *schema_file, const char *text)
{
	struct json_object *schema = json_object_from_file(schema_file);
	struct json_object *value = json_tokener_parse(text);

	assert_non_null(schema);
	assert_non_null(value);
	assert_true(schema_fits(schema, value, "line"));
	json_object_put(schema);
	json_object_put(value);
}

static void incident_fill(struct incident *i)
{
	*i = (struct incident){.vm = 1,
			       .vcpu = 3,
			       .guest_cpu = 3,
			       .pcpu_known = true,
			       .pcpu = 2,
			       .kind = GUEST_CPU_TASK,
			       .begin = {1000000000},
			       .end = {1250000000},
			       .verdict = VERDICT_VCPU_NOT_SCHEDULED,
			       .runner_up = VERDICT_MMU_CONTENTION,
			       .confidence = CONFIDENCE_DECIDED,
			       .missing = 1 << MISSING_STACKS,
			       .n_causes = 1,
			       .n_culprits = 2};
	snprintf(i->task_comm, sizeof(i->task_comm), "secret-task");
	i->because[0].kind = FINDING_SEEN_EVENT;
	snprintf(i->because[0].name, sizeof(i->because[0].name), "secret-task waited");
	i->causes[0] = (struct report_cause){VERDICT_VCPU_NOT_SCHEDULED, 250000000};
	i->breakdown_ns[VCPU_RUNNABLE] = 250000000;
	i->culprits[0] = (struct report_culprit){
		.host = true, .pid = 42, .n_tasks = 1, .share_ns = 200000000};
	snprintf(i->culprits[0].vm.name, sizeof(i->culprits[0].vm.name), "batch9");
	i->culprits[1] = (struct report_culprit){.pid = 7, .n_tasks = 1, .share_ns = 1};
	snprintf(i->culprits[1].comm, sizeof(i->culprits[1].comm), "secret-too");
}

static struct incident_record record_of(const struct incident *i,
					const struct record_culprit *culprits)
{
	return (struct incident_record){.host = &host,
					.vm = &vm,
					.incident = i,
					.trigger = "stall",
					.begin_ns = i->begin.ns,
					.begin_realtime_ns = 1795400000123456789,
					.end_realtime_ns = 1795400000373456789,
					.duration_ns = 250000000,
					.host_clock_error_ns = UINT64_MAX,
					.counts_known = true,
					.host_events = 12,
					.culprits = culprits,
					.numa_node = -1};
}

static size_t line_of(const struct incident_record *r, const char *id)
{
	struct json_object *json = incident_record_json(r, id);
	const size_t len = incident_record_line(json, line, INCIDENT_LINE_MAX);

	json_object_put(json);
	return len;
}

static void test_incident(void **state)
{
	struct record_culprit culprits[REPORT_CULPRITS_MAX] = {
		{"0a1b2c3d-4e5f-4061-8273-8495a6b7c8d9", "x.scope"}};
	char id[HOST_ID_BYTES], again[HOST_ID_BYTES];
	struct incident incident;
	struct incident_record r;

	(void)state;
	incident_fill(&incident);
	r = record_of(&incident, culprits);
	incident_record_id(&r, id);
	assert_true(line_of(&r, id) > 0);
	assert_fits(FLEET "incident-2.schema.json", line);
	assert_non_null(strstr(line, "\"vm_uuid\":\"0a1b2c3d-4e5f-4061-8273-8495a6b7c8d9\""));
	/* Of the guest, nothing leaves the host. */
	assert_null(strstr(line, "secret"));
	r.guest_text = true;
	assert_true(line_of(&r, id) > 0);
	assert_fits(FLEET "incident-2.schema.json", line);
	assert_non_null(strstr(line, "secret-task waited"));
	assert_non_null(strstr(line, "secret-too"));
	/* The same incident: the same id. Another begin, vCPU or VM: another. */
	incident_record_id(&r, again);
	assert_string_equal(id, again);
	r.begin_ns++;
	incident_record_id(&r, again);
	assert_string_not_equal(id, again);
}

static void test_trigger(void **state)
{
	struct incident_record r = {.host = &host,
				    .vm = &vm,
				    .trigger = "guest_watchdog",
				    .text = "soft lockup",
				    .time_error_ns = UINT64_MAX,
				    .host_clock_error_ns = 5,
				    .numa_node = -1};

	(void)state;
	assert_true(line_of(&r, "0123456789abcdef0123456789abcdef") > 0);
	assert_fits(FLEET "incident-2.schema.json", line);
	assert_non_null(strstr(line, "\"verdict\":null"));
	assert_null(strstr(line, "lockup"));
}

/* Names of bytes that JSON spells with six characters each: culprits go, the line keeps its bound.
 */
static void test_hostile(void **state)
{
	struct record_culprit culprits[REPORT_CULPRITS_MAX] = {0};
	struct incident incident;
	struct incident_record r;
	struct json_object *json;

	(void)state;
	incident_fill(&incident);
	incident.n_culprits = REPORT_CULPRITS_MAX;
	for (size_t i = 0; i < REPORT_CULPRITS_MAX; i++) {
		struct report_culprit *c = &incident.culprits[i];

		*c = (struct report_culprit){.host = true, .pid = 1, .n_tasks = 1};
		memset(c->cgroup, '\x01', sizeof(c->cgroup) - 1);
		memset(c->comm, '\xff', sizeof(c->comm) - 1);
		memset(c->vm.name, '\x1b', sizeof(c->vm.name) - 1);
	}
	memset(incident.task_comm, '"', sizeof(incident.task_comm) - 1);
	incident.because[0].kind = FINDING_SEEN_EVENT;
	memset(incident.because[0].name, '\x02', sizeof(incident.because[0].name) - 1);
	r = record_of(&incident, culprits);
	r.guest_text = true;
	assert_true(line_of(&r, "0123456789abcdef0123456789abcdef") > 0);
	assert_true(strlen(line) < INCIDENT_LINE_MAX);
	assert_non_null(strstr(line, "\"truncated\":true"));
	assert_null(strpbrk(line, "\x01\x02\x1b\n\xff"));
	json = json_tokener_parse(line);
	assert_non_null(json);
	json_object_put(json);
}

/* The same of every text that somebody else chooses, without culprits: the line is not lost. */
static void test_hostile_texts(void **state)
{
	static const struct record_evidence evidence = {"web1-x", "h/i.vcs", 17, NULL};
	struct vm_facts facts;
	struct storage storage;
	struct incident incident;
	struct incident_record r;
	struct json_object *json, *vcpu = NULL;
	char label[64];

	(void)state;
	incident_fill(&incident);
	incident.n_culprits = 0;
	incident.because[0].kind = FINDING_SEEN_EVENT;
	memset(incident.because[0].name, '\x7f', sizeof(incident.because[0].name) - 1);
	memset(&facts, '\x01', sizeof(facts));
	facts.uuid[0] = facts.pod_uid[0] = 0;
	memset(&storage, '\x1b', sizeof(storage));
	snprintf(storage.device, sizeof(storage.device), "8:1");
	memset(label, '\x02', sizeof(label) - 1);
	label[sizeof(label) - 1] = 0;
	host.n_labels = HOST_LABELS_MAX;
	for (size_t i = 0; i < HOST_LABELS_MAX; i++) {
		snprintf(host.labels[i].key, sizeof(host.labels[i].key), "%031zu", i);
		memcpy(host.labels[i].value, label, sizeof(label));
	}
	r = record_of(&incident, NULL);
	r.vm = &facts;
	r.storage = &storage;
	r.guest_text = true;
	json = incident_record_json(&r, "0123456789abcdef0123456789abcdef");
	incident_record_evidence(json, &evidence);
	assert_in_range(incident_record_line(json, line, INCIDENT_LINE_MAX), 1000,
			INCIDENT_LINE_MAX - 1);
	json_object_put(json);
	assert_int_equal(setup(NULL), 0);
	assert_fits(FLEET "incident-2.schema.json", line);
	json = json_tokener_parse(line);
	assert_true(json_object_object_get_ex(json, "vcpu", &vcpu));
	assert_int_equal(json_object_get_int(vcpu), 3);
	assert_non_null(strstr(line, "\"truncated\":true"));
	json_object_put(json);
}

static void test_evidence_and_sums(void **state)
{
	const struct record_evidence evidence = {
		"web1-x", "h/i.vcs", 17,
		"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"};
	const struct incident_sum sum = {.count = 900,
					 .vms = 7,
					 .by_verdict[VERDICT_VM_PAUSED] = 899,
					 .triggers = 1,
					 .begin_realtime_ns = 5,
					 .end_realtime_ns = 9};
	const struct outbox_loss loss = {.n = {3, 4, 5}, .full = true, .number = 9};
	struct incident incident;
	struct incident_record r;
	struct json_object *json;

	(void)state;
	incident_fill(&incident);
	r = record_of(&incident, NULL);
	json = incident_record_json(&r, "0123456789abcdef0123456789abcdef");
	incident_record_evidence(json, &evidence);
	incident_record_seq(json, 2, false);
	assert_true(incident_record_line(json, line, sizeof(line)) > 0);
	json_object_put(json);
	assert_fits(FLEET "incident-2.schema.json", line);
	assert_non_null(strstr(line, "\"seq\":2,"));
	assert_non_null(strstr(line, "\"evidence_key\":\"h"));
	json = incident_sum_json(&host, &sum);
	assert_true(incident_record_line(json, line, sizeof(line)) > 0);
	json_object_put(json);
	assert_fits(FLEET "incident-2.schema.json", line);
	assert_non_null(strstr(line, "\"count\":900"));
	assert_non_null(strstr(line, "\"vm_paused\":899"));
	json = incident_loss_json(&host, &loss);
	assert_true(incident_record_line(json, line, sizeof(line)) > 0);
	json_object_put(json);
	assert_fits(FLEET "incident-2.schema.json", line);
	assert_non_null(strstr(line, "\"lost_figures\":4"));
	assert_non_null(strstr(line, "\"loss_reason\":\"disk_full\""));
}

static void figures_line(const struct figures_counters *before, const struct figures_counters *now)
{
	const struct figures_record r = {.host = &host,
					 .vm = &vm,
					 .begin_realtime_ns = 1,
					 .end_realtime_ns = 2,
					 .interval_ns = 300000000000,
					 .before = before,
					 .now = now};
	struct json_object *json = figures_record_json(&r);

	assert_true(incident_record_line(json, line, sizeof(line)) > 0);
	json_object_put(json);
	assert_fits(FLEET "figures-1.schema.json", line);
}

/* A line has what came since the line before. */
static void test_figures(void **state)
{
	struct figures_counters before = {.host_events = 10}, now = {.host_events = 25};

	(void)state;
	before.vm.vcpus = now.vm.vcpus = 2;
	now.vm.state_ns[VCPU_GUEST] = 70;
	now.vm.state_ns[VCPU_UNKNOWN] = 30;
	now.vm.incidents[VERDICT_VM_PAUSED] = 2;
	now.vm.n_reasons = 1;
	now.vm.reasons[0] = (struct metrics_reason){"HLT", 5, 50};
	for (int i = 0; i < 100; i++) {
		histogram_add(&before.vm.delays[RUN_DELAY_WOKEN], 1000);
		histogram_add(&now.vm.delays[RUN_DELAY_WOKEN], 1000);
	}
	figures_line(&before, &now);
	assert_null(strstr(line, "run_delay"));
	histogram_add(&now.vm.delays[RUN_DELAY_WOKEN], 7);
	histogram_add_many(&now.vm.delays[RUN_DELAY_WOKEN], 3000, 4);
	figures_line(&before, &now);
	/* 3000 = 2^11 * (16 + 7) / 16: 16 * (11 - 3) + 23 - 16 */
	assert_non_null(strstr(line, "\"run_delay_wakeup_buckets\":[7,135],"
				     "\"run_delay_wakeup_counts\":[1,4],"
				     "\"run_delay_wakeup_sum_ns\":12007"));
	assert_non_null(strstr(line, "\"host_events\":15,"));
	assert_non_null(strstr(line, "\"observed_ns\":70,"));
	assert_non_null(strstr(line, "\"exits\":{\"HLT\":5},\"exits_ns\":{\"HLT\":50}"));
	figures_line(NULL, &now);
	assert_non_null(strstr(line, "\"run_delay_wakeup_counts\":[1,100,4]"));
	metrics_vm_fini(&before.vm);
	metrics_vm_fini(&now.vm);
}

/* The examples of the documents fit their schemas. */
static void test_examples(void **state)
{
	static const char *const names[] = {"incident-2", "figures-1"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		char path[512], schema[512];
		FILE *f;

		snprintf(path, sizeof(path), TEST_SOURCE_DIR "/data/fleet/%s.jsonl", names[i]);
		snprintf(schema, sizeof(schema), FLEET "%s.schema.json", names[i]);
		f = fopen(path, "re");
		assert_non_null(f);
		assert_non_null(fgets(line, sizeof(line), f));
		fclose(f);
		assert_fits(schema, line);
	}
}

static void test_labels(void **state)
{
	struct host_facts h;
	char why[256];

	(void)state;
	assert_int_equal(host_labels_parse("", &h, why, sizeof(why)), 0);
	assert_int_equal(h.n_labels, 0);
	assert_int_equal(host_labels_parse("zone", &h, why, sizeof(why)), -EINVAL);
	assert_int_equal(host_labels_parse("a b=c", &h, why, sizeof(why)), -EINVAL);
	assert_int_equal(host_labels_parse("=c", &h, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "labels"));
}

static void file_write(const char *root, const char *path, const char *text)
{
	char command[512];

	snprintf(command, sizeof(command), "mkdir -p \"$(dirname %s/%s)\" && printf '%s' > %s/%s",
		 root, path, text, root, path);
	assert_int_equal(system(command), 0);
}

/* A logical volume, and a disk of iSCSI with a file system. */
static void test_storage(void **state)
{
	char root[] = "/tmp/test_fleet.XXXXXX", command[512];
	struct storage s;

	(void)state;
	assert_non_null(mkdtemp(root));
	file_write(root, "sys/devices/virtual/block/dm-3/dm/uuid", "LVM-abc\\n");
	file_write(root, "sys/devices/virtual/block/dm-3/dm/name", "vg--0-web1\\n");
	file_write(root, "proc/self/mountinfo",
		   "36 35 8:17 / /srv/images rw,noatime - ext4 /dev/sdb1 rw\\n");
	snprintf(command, sizeof(command),
		 "mkdir -p %s/sys/dev/block && cd %s/sys/dev/block && "
		 "ln -s ../../devices/virtual/block/dm-3 253:3 && "
		 "ln -s ../../devices/platform/host2/session1/target/block/sdb/sdb1 8:17",
		 root, root);
	assert_int_equal(system(command), 0);
	storage_find(root, 253u << 20 | 3, &s);
	assert_string_equal(s.driver, "lvm");
	assert_string_equal(s.pool, "vg-0");
	assert_string_equal(s.source, "/dev/mapper/vg--0-web1");
	assert_string_equal(s.device, "253:3");
	assert_string_equal(s.mount, "");
	storage_find(root, 8u << 20 | 17, &s);
	assert_string_equal(s.driver, "iscsi");
	assert_string_equal(s.source, "/dev/sdb1");
	assert_string_equal(s.mount, "/srv/images");
	storage_find(root, 1, &s); /* no such device */
	assert_string_equal(s.device, "0:1");
	assert_string_equal(s.driver, "");
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void test_units(void **state)
{
	char unit[64];

	(void)state;
	cgroup_unit("/machine.slice/machine-qemu-1-web1.scope/libvirt/vcpu0", unit, sizeof(unit));
	assert_string_equal(unit, "machine-qemu-1-web1.scope");
	cgroup_unit("/user.slice/user@1000.service/app.slice/x.service", unit, sizeof(unit));
	assert_string_equal(unit, "x.service");
	cgroup_unit("/kubepods/pod1", unit, sizeof(unit));
	assert_string_equal(unit, "");
	assert_int_equal(thread_process("/proc", getpid()), getpid());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_incident),
		cmocka_unit_test(test_trigger),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_hostile_texts),
		cmocka_unit_test(test_evidence_and_sums),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_examples),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_units),
		cmocka_unit_test(test_storage),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
