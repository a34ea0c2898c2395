// SPDX-License-Identifier: GPL-2.0-only
/* Tests the lines of events that a user names: the values of their fields on both sides. */
#include <stdlib.h>
#include <unistd.h>

#include "host-collector/analyze/event/event_list.h"
#include "proto/query/described.h"
#include "proto/buffer.h"
#include "tests/unit/model_script.h"
#include "tests/unit/synth.h"

/* The vCPU 0 takes an interrupt: a wake-up in QEMU's main thread, an MSI, the guest's handler. */
static const struct timeline_event story[] = {
	NAME(HOST, 0, TID0, QEMU, 0x3020555043), /* "CPU 0" */
	NAME(HOST, 0, QEMU, QEMU, 0x756d6571),   /* "qemu" */
	NAME(VM, 0, 50, 50, 0x6873),             /* "sh" */
	SWITCH(HOST, 10, 1, 0, TID0, 0),
	KVM(11, 1, ENTRY, TID0, 0),
	SWITCH(VM, 20, 0, 0, 50, 0),
	SWITCH(HOST, 25, 0, 0, QEMU, 0),
	EVENT(HOST, 30, 0, KVM_MSI, QEMU, 0, 0xfee00000, 0x25),
	WAKEUP(HOST, 35, 0, TID0, QEMU, 1),
	IRQ(40, 0, IRQ_ENTRY, 50, 24),
	IRQ(45, 0, IRQ_EXIT, 50, 24),
	EVENT(HOST, 50, 1, KVM_EXIT, TID0, 0, 12 | 1ull << 32, 0xabc),
};

/* What the events of `text` are as lines, at most `top` of them. */
static char *lines(const char *text, enum event_list_format format, uint64_t top)
{
	struct event_list_options options = {.format = format, .top = top};
	struct event_choices choices;
	struct expr_error error;
	struct model *m = model_new();
	struct event_list *l;
	char *out = NULL;
	size_t len;

	assert_non_null(m);
	assert_int_equal(event_choices_init(&choices), 0);
	if (event_choices_add(&choices, text, &error))
		fail_msg("%s", error.text);
	options.out = open_memstream(&out, &len);
	assert_non_null(options.out);
	l = event_list_new(m, &choices, &options);
	assert_non_null(l);
	script_vm(m, 2, "kvm");
	script_run(m, story, COUNT(story));
	model_finish(m);
	assert_false(fclose(options.out));
	event_list_free(l);
	model_free(m);
	event_choices_fini(&choices);
	return out;
}

static void lines_are(const char *text, const char *expected)
{
	char *out = lines(text, EVENT_LIST_TEXT, 0);

	assert_string_equal(out, expected);
	free(out);
}

/* The number of events that fit. */
static size_t count(const char *text)
{
	char *out = lines(text, EVENT_LIST_TEXT, 0);
	size_t n = 0;

	for (const char *c = out; *c; c++)
		n += *c == '\n';
	free(out);
	return n;
}

static void test_both_sides_in_one_order(void **state)
{
	(void)state;
	lines_are(
		"kvm:kvm_msi_set_irq,guest:irq:*//alias=irq/",
		"     0.000030000 +-   0 ns host  [000] web1/0     qemu:100             "
		"host:kvm:kvm_msi_set_irq address=0xfee00000 data=0x25\n"
		"     0.000040000 +-   0 ns guest [000] web1/0     sh:50                irq irq=24\n"
		"     0.000045000 +-   0 ns guest [000] web1/0     sh:50                irq irq=24 "
		"ret=0\n");
	lines_are("kvm:kvm_exit//fields=exit_reason/",
		  "     0.000050000 +-   0 ns host  [001] web1/0     CPU 0:110            "
		  "host:kvm:kvm_exit exit_reason=12(HLT)\n");
}

static void test_filters_see_all_fields(void **state)
{
	(void)state;
	assert_int_equal(count("kvm:kvm_msi_set_irq/vcpu==0 && vm==\"web1\"/"), 1);
	assert_int_equal(count("kvm:kvm_msi_set_irq/vcpu==1/"), 0);
	/* What the guest ran, and the state of the vCPU, seen from the host. */
	assert_int_equal(count("kvm:kvm_msi_set_irq/gtask==50 && state==\"guest\"/"), 1);
	assert_int_equal(count("guest:irq:*/comm==\"sh\" && tid==50 && cpu==0/"), 2);
	/* The task on the CPU of a wake-up of the host is not a field of the event. */
	assert_int_equal(count("host:sched:sched_wakeup/tid==100 && pid==110 && vcpu==0/"), 1);
	assert_int_equal(count("host:sched:sched_wakeup/comm_get(pid)==\"CPU 0\"/"), 1);
	assert_int_equal(count("kvm:kvm_exit/exit_reason_str(isa,exit_reason)==\"HLT\"/"), 1);
	assert_int_equal(count("vmm:kvm:kvm_msi_set_irq"), 1);
	assert_int_equal(count("vmm:sched:sched_switch"), 0); /* tid is the idle task's */
	/* A switch concerns the vCPU that comes as well as the one that goes. */
	assert_int_equal(count("host:sched:sched_switch/vcpu==0/"), 1);
}

static void test_json_and_csv_have_numbers(void **state)
{
	char *json, *csv;

	(void)state;
	json = lines("kvm:kvm_exit", EVENT_LIST_JSON, 0);
	assert_string_equal(json, "{\"t_ns\":50000,\"error_ns\":0,\"side\":\"host\",\"event\":"
				  "\"host:kvm:kvm_exit\",\"cpu\":1,\"vcpu\":0,\"vm\":\"web1\","
				  "\"tid\":110,\"comm\":\"CPU 0\",\"fields\":{\"ago_us\":0,"
				  "\"exit_reason\":12,\"isa\":1,\"guest_rip\":\"0xabc\"}}\n");
	free(json);
	csv = lines("guest:irq:*", EVENT_LIST_CSV, 1);
	assert_string_equal(csv, "t_ns,error_ns,side,event,cpu,vm,vcpu,tid,comm,fields\r\n"
				 "40000,0,guest,\"guest:irq:irq_handler_entry\",0,\"web1\",0,50,"
				 "\"sh\",\"irq=24\"\r\n");
	free(csv);
}

/* An event that a user chose when recording: two numbers and a text, in two records. */
static void test_chosen_events_have_their_own_fields(void **state)
{
	static const struct message_user_events described = {
		.n = 1,
		.events = {{.id = 7,
			    .kind = USER_KPROBE,
			    .system = "kprobe",
			    .name = "vfs_read",
			    .n_fields = 3,
			    .fields = {{.name = "count", .type = USER_SIGNED, .bytes = 4},
				       {.name = "file", .type = USER_HEX, .bytes = 8},
				       {.name = "path", .type = USER_TEXT, .bytes = 8}}}}};
	struct event_choices choices;
	struct expr_error error;
	struct model *m = model_new();
	struct event_list_options options = {.format = EVENT_LIST_TEXT};
	struct event_list *l;
	char *out = NULL;
	size_t len;
	struct timeline_event records[] = {
		NAME(HOST, 0, QEMU, QEMU, 0x756d6571),
		EVENT(HOST, 30, 0, USER, QEMU, 7, (uint64_t)-5, 0xabc),
		EVENT(HOST, 30, 0, USER_MORE, QEMU, 7 | 1 << 16, 0x62612f, 0),
		EVENT(HOST, 40, 0, USER, QEMU, 7, 5, 0xdef),
		EVENT(HOST, 40, 0, USER_MORE, QEMU, 7 | 1 << 16, 0x62612f, 0),
		EVENT(HOST, 50, 0, USER, QEMU, 8, 5, 0), /* of no description */
	};

	(void)state;
	for (uint32_t i = 0; i < COUNT(records); i++)
		records[i].event.seq = i;
	assert_int_equal(event_choices_init(&choices), 0);
	assert_int_equal(event_schemas_describe(choices.schemas, HOST, &described.events[0]), 0);
	assert_int_equal(event_schemas_describe(choices.schemas, HOST, &described.events[0]), 0);
	assert_int_equal(
		event_choices_add(&choices, "kprobe:vfs_read/count<0 && path~\"/a*\"/", &error), 0);
	assert_int_equal(choices.n, 1);
	assert_int_not_equal(event_choices_add(&choices, "kprobe:vfs_reed", &error), 0);
	assert_int_equal(user_events_learn(model_user_events(m), HOST, &described), 0);
	options.out = open_memstream(&out, &len);
	l = event_list_new(m, &choices, &options);
	assert_non_null(l);
	script_vm(m, 1, "kvm");
	script_run(m, records, COUNT(records));
	model_finish(m);
	assert_false(fclose(options.out));
	assert_string_equal(out, "     0.000030000 +-   0 ns host  [000] web1       qemu:100      "
				 "       host:kprobe:vfs_read count=-5 file=0xabc path=/ab\n");
	free(out);
	event_list_free(l);
	model_free(m);
	event_choices_fini(&choices);
}

/* The number of its stack is the last field of a hit, and is not shown. The stack comes before. */
static void test_hits_have_their_stacks(void **state)
{
	static const struct message_user_events described = {
		.n = 1,
		.events = {
			{.id = 7,
			 .kind = USER_KPROBE,
			 .flags = USER_STACKS,
			 .system = "kprobe",
			 .name = "vfs_read",
			 .n_fields = 2,
			 .fields = {{.name = "count", .type = USER_SIGNED, .bytes = 4},
				    {.name = "stack_number", .type = USER_UNSIGNED, .bytes = 8}}}}};
	static const char *const symbols[] = {"vfs_read", "read"};
	static const char *const formats[][2] = {
		{"     0.000030000 +-   0 ns host  [000] web1       qemu:100             "
		 "host:kprobe:vfs_read count=1\n"
		 "        vfs_read+0x0\n"
		 "        read+0x0\n"
		 "     0.000040000 +-   0 ns host  [000] web1       qemu:100             "
		 "host:kprobe:vfs_read count=2\n"
		 "        (its stack was not recorded)\n"
		 "     0.000050000 +-   0 ns host  [000] web1       qemu:100             "
		 "host:kprobe:vfs_read count=3\n"
		 "        (its stack was not recorded)\n",
		 "kprobe:vfs_read//stack/"},
		{"     0.000030000 +-   0 ns host  [000] web1       qemu:100             "
		 "host:kprobe:vfs_read count=1\n",
		 "kprobe:vfs_read/count == 1/"},
	};
	struct timeline_event records[] = {
		NAME(HOST, 0, QEMU, QEMU, 0x756d6571),
		EVENT(HOST, 29, VS_CPU_COLLECTOR, STACK, QEMU, 0, 1, 41 << 8 | VS_STACK_HIT),
		EVENT(HOST, 30, 0, USER, QEMU, 7, 1, 41),
		EVENT(HOST, 40, 0, USER, QEMU, 7, 2, 0),
		/* Of another task that had this number in an earlier capture. */
		EVENT(HOST, 49, VS_CPU_COLLECTOR, STACK, TID0, 0, 1, 42 << 8 | VS_STACK_HIT),
		EVENT(HOST, 50, 0, USER, QEMU, 7, 3, 42),
	};

	(void)state;
	for (uint32_t i = 0; i < COUNT(records); i++)
		records[i].event.seq = i;
	for (size_t i = 0; i < COUNT(formats); i++) {
		struct event_list_options options = {.format = EVENT_LIST_TEXT};
		struct model *m = model_new();
		struct event_choices choices;
		struct expr_error error;
		struct event_list *l;
		char *out = NULL;
		size_t len;

		assert_int_equal(event_choices_init(&choices), 0);
		assert_int_equal(
			event_schemas_describe(choices.schemas, HOST, &described.events[0]), 0);
		assert_int_equal(event_choices_add(&choices, formats[i][1], &error), 0);
		assert_int_equal(user_events_learn(model_user_events(m), HOST, &described), 0);
		options.out = open_memstream(&out, &len);
		l = event_list_new(m, &choices, &options);
		assert_non_null(l);
		script_vm(m, 1, "kvm");
		script_stack(m, 1, QEMU, symbols, COUNT(symbols));
		script_run(m, records, COUNT(records));
		model_finish(m);
		assert_false(fclose(options.out));
		assert_string_equal(out, formats[i][0]);
		free(out);
		event_list_free(l);
		model_free(m);
		event_choices_fini(&choices);
	}
}

/* The descriptions stand in frames of the recording. */
static void test_descriptions_are_found_before_the_reading(void **state)
{
	static struct message_user_events described = {
		.n = 1,
		.events = {{.id = 7,
			    .kind = USER_TRACEPOINT,
			    .system = "block",
			    .name = "block_rq_merge",
			    .n_fields = 1,
			    .fields = {{.name = "nr_sector", .type = USER_UNSIGNED, .bytes = 4}}}}};
	char path[] = "/tmp/test_events.XXXXXX";
	struct synth_options options = {.path = path};
	struct event_schemas *schemas = event_schemas_new();
	struct byte_buffer packed = {0};
	const struct event_schema *schema = NULL;
	struct synth *s;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0 && !close(fd));
	s = synth_new(&options);
	assert_int_equal(message_user_events_pack(&described, &packed), 0);
	synth_at(s, 1000000);
	synth_frame(s, HOST, FRAME_USER_EVENTS, packed.data, packed.len);
	synth_free(s);
	assert_int_equal(described_read(path, schemas), 0);
	for (size_t i = 0; event_schemas_get(schemas, i); i++)
		schema = event_schemas_get(schemas, i);
	assert_string_equal(schema->name, "block_rq_merge");
	assert_int_equal(schema->sides, EVENT_HOST);
	assert_string_equal(schema->fields[0].name, "nr_sector");
	assert_int_equal(described_read("/nonexistent", schemas), 0);
	event_schemas_free(schemas);
	byte_buffer_fini(&packed);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both_sides_in_one_order),
		cmocka_unit_test(test_filters_see_all_fields),
		cmocka_unit_test(test_json_and_csv_have_numbers),
		cmocka_unit_test(test_chosen_events_have_their_own_fields),
		cmocka_unit_test(test_hits_have_their_stacks),
		cmocka_unit_test(test_descriptions_are_found_before_the_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
