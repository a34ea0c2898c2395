// SPDX-License-Identifier: GPL-2.0-only
/* Tests messages: they are received as they were sent, within their bounds; invalid ones are
 * refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/message.h"
#include "proto/text.h"
#include "wire.pb-c.h"

/* Structs, with their padding, are zeroed before they are filled or unpacked, so comparing their
 * bytes is comparing. */
#define ASSERT_ROUND_TRIP(name, in)                                                                \
	do {                                                                                       \
		struct byte_buffer packed_ = {0};                                                  \
		struct message_##name *out_ = calloc(1, sizeof(*out_));                            \
                                                                                                   \
		assert_int_equal(message_##name##_pack(in, &packed_), 0);                          \
		assert_int_equal(message_##name##_unpack(packed_.data, packed_.len, out_), 0);     \
		assert_memory_equal(out_, in, sizeof(*out_));                                      \
		free(out_);                                                                        \
		byte_buffer_fini(&packed_);                                                        \
	} while (0)

static struct message_hello *new_hello(void)
{
	struct message_hello *m = calloc(1, sizeof(*m));

	m->protocol_min = 1;
	m->protocol_max = 3;
	m->role = STREAM_ROLE_GUEST;
	m->clock = STREAM_CLOCK_KVMCLOCK_NS;
	m->clock_hz = 1000000000;
	strcpy(m->program_version, "0.1.0");
	strcpy(m->kernel_release, "6.1.0-37-cloud-amd64");
	strcpy(m->boot_id, "00000000-1111-2222-3333-444444444444");
	m->dmesg.known = true;
	m->dmesg.time = UINT64_MAX;
	m->dmesg.ns = 17;
	m->dmesg.err = 3;
	m->tick_hz = 250;
	m->watchdog_s = 20;
	m->features = UINT64_MAX;
	m->suspended_ns = 3600000000001;
	return m;
}

static void test_hello_round_trip(void **state)
{
	struct message_hello *m = new_hello();

	(void)state;
	ASSERT_ROUND_TRIP(hello, m);
	m->n_cpus = VS_CPUS_MAX;
	for (uint32_t i = 0; i < VS_CPUS_MAX; i++)
		m->cpus[i] = (struct message_cpu){.cpu = i, .apic_id = UINT32_MAX - i};
	memset(m->boot_id, 'x', VS_TEXT_MAX - 1);
	m->look_period_ns = UINT64_MAX;
	memset(m->look_when, 'w', VS_LOOK_WHEN_MAX - 1);
	ASSERT_ROUND_TRIP(hello, m);
	free(m);
}

static void test_small_messages_round_trip(void **state)
{
	struct message_heartbeat heartbeat;
	struct message_echo_request request = {.id = UINT32_MAX};
	struct message_echo_reply reply;
	struct message_clock_sample sample = {1, 2, 3, 4, UINT64_MAX};
	struct message_echo_observation observation;

	(void)state;
	memset(&heartbeat, 0, sizeof(heartbeat));
	ASSERT_ROUND_TRIP(heartbeat, &heartbeat);
	heartbeat.time = 1;
	heartbeat.cpu_time_ns = 2;
	heartbeat.rss_bytes = 3;
	heartbeat.emitted = 4;
	heartbeat.delivered = 5;
	heartbeat.dropped_kernel = 6;
	heartbeat.dropped_user = UINT64_MAX;
	heartbeat.missed = UINT64_MAX - 1;
	heartbeat.sample = sample;
	heartbeat.dmesg.known = true;
	heartbeat.dmesg.time = 8;
	heartbeat.dmesg.ns = 9;
	heartbeat.dmesg.err = 10;
	ASSERT_ROUND_TRIP(heartbeat, &heartbeat);
	heartbeat.pvclock = (struct message_vm_clock_pvclock){
		true, -31, UINT8_MAX, UINT32_MAX, 12, UINT64_MAX, 14};
	ASSERT_ROUND_TRIP(heartbeat, &heartbeat);
	heartbeat.aggregated[EVENT_CLASS_SOFTIRQS] = (struct message_aggregated){UINT64_MAX, 2, 3};
	heartbeat.aggregated[EVENT_CLASS_IRQS] = (struct message_aggregated){1, UINT64_MAX, 0};
	heartbeat.steal.known = true;
	ASSERT_ROUND_TRIP(heartbeat, &heartbeat);
	heartbeat.steal.clock = true;
	heartbeat.steal.time = UINT64_MAX;
	heartbeat.steal.err = 16;
	heartbeat.steal.unit_ns = 10000000;
	heartbeat.steal.n_cpus = VS_CPUS_MAX;
	for (uint32_t i = 0; i < VS_CPUS_MAX; i++) {
		heartbeat.steal.cpus[i].cpu = i;
		heartbeat.steal.cpus[i].steal_ns = UINT64_MAX - i;
	}
	ASSERT_ROUND_TRIP(heartbeat, &heartbeat);
	memset(&reply, 0, sizeof(reply));
	reply.id = 1;
	reply.received = UINT64_MAX;
	reply.sent = (uint64_t)1 << 63;
	memset(&observation, 0, sizeof(observation));
	observation.vm = 7;
	observation.host_sent = 1;
	observation.guest_received = 2;
	observation.guest_sent = 3;
	observation.host_received = UINT64_MAX;
	ASSERT_ROUND_TRIP(echo_request, &request);
	ASSERT_ROUND_TRIP(echo_reply, &reply);
	ASSERT_ROUND_TRIP(clock_sample, &sample);
	ASSERT_ROUND_TRIP(echo_observation, &observation);
}

static void test_kernel_log_round_trip(void **state)
{
	struct message_kernel_log *m = calloc(1, sizeof(*m));

	(void)state;
	ASSERT_ROUND_TRIP(kernel_log, m);
	m->n_lines = VS_LOG_LINES_MAX;
	for (size_t i = 0; i < m->n_lines; i++) {
		m->lines[i].dmesg_us = i * 1000000;
		m->lines[i].level = (uint32_t)i % 8;
		memset(m->lines[i].text, 'a' + (int)i % 26, i * 511 / (m->n_lines - 1));
	}
	ASSERT_ROUND_TRIP(kernel_log, m);
	free(m);
}

static void test_vm_info_round_trip(void **state)
{
	struct message_vm_info *m = calloc(1, sizeof(*m));

	(void)state;
	m->vm = 3;
	m->qemu_pid = INT32_MAX;
	strcpy(m->name, "build-7");
	strcpy(m->accelerator, "kvm");
	ASSERT_ROUND_TRIP(vm_info, m);
	m->protection = UINT32_MAX;
	m->n_threads = VS_THREADS_MAX;
	for (uint32_t i = 0; i < VS_THREADS_MAX; i++) {
		m->threads[i].tid = (int32_t)i + 100;
		strcpy(m->threads[i].comm, "CPU 0/KVM");
		m->threads[i].is_vcpu = i < VS_CPUS_MAX;
		m->threads[i].vcpu = i < VS_CPUS_MAX ? i : 0;
		m->threads[i].apic_id_known = i % 2;
		m->threads[i].apic_id = i * 2;
	}
	ASSERT_ROUND_TRIP(vm_info, m);
	free(m);
}

static void test_stack_round_trip(void **state)
{
	struct message_stack *m = calloc(1, sizeof(*m));

	(void)state;
	m->id = 5;
	m->pid = -1;
	ASSERT_ROUND_TRIP(stack, m);
	m->n_frames = VS_STACK_FRAMES_MAX;
	for (size_t i = 0; i < VS_STACK_FRAMES_MAX; i++) {
		strcpy(m->frames[i].symbol, i % 2 ? "ppoll" : "");
		strcpy(m->frames[i].module, "libc.so.6");
		m->frames[i].offset = UINT64_MAX - i;
		m->frames[i].kernel = i < 5;
	}
	ASSERT_ROUND_TRIP(stack, m);
	free(m);
}

static void test_every_kind_of_note_round_trips(void **state)
{
	(void)state;
	for (int kind = NOTE_CHANNEL_UP; kind <= (int)NOTE_KIND_LAST; kind++) {
		struct message_note m;

		memset(&m, 0, sizeof(m));
		m.vm = 1;
		m.kind = (enum note_kind)kind;
		m.host_tsc = 99;
		strcpy(m.text, "line\nwith \x1b[31mcontrol");
		ASSERT_ROUND_TRIP(note, &m);
	}
}

static void test_config_round_trip(void **state)
{
	struct message_config *m = calloc(1, sizeof(*m));
	struct message_config_reply *reply = calloc(1, sizeof(*reply));
	struct byte_buffer packed = {0};

	(void)state;
	ASSERT_ROUND_TRIP(config, m);
	m->id = UINT32_MAX;
	m->asks = UINT32_MAX;
	m->classes = UINT64_MAX;
	m->level = 99; /* of a newer host: the agent decides */
	m->handler_over_ns = UINT64_MAX;
	m->sample_hz = UINT32_MAX;
	m->look_period_ns = UINT64_MAX;
	memset(m->look_when, '(', sizeof(m->look_when) - 1);
	m->n_tasks = VS_CONFIG_TASKS_MAX;
	for (size_t i = 0; i < m->n_tasks; i++)
		memset(m->tasks[i], 'a' + (int)i, VS_TASK_PATTERN_MAX - 1);
	m->n_events = VS_CONFIG_EVENTS_MAX;
	for (size_t i = 0; i < m->n_events; i++) {
		struct message_config_event *e = &m->events[i];

		e->kind = UINT32_MAX;
		memset(e->system, 's', sizeof(e->system) - 1);
		memset(e->name, 'n', sizeof(e->name) - 1);
		memset(e->filter, '(', sizeof(e->filter) - 1);
		memset(e->fields, 'f', sizeof(e->fields) - 1);
		memset(e->spec, '/', sizeof(e->spec) - 1);
	}
	ASSERT_ROUND_TRIP(config, m);
	reply->in_force = *m;
	reply->time = UINT64_MAX;
	reply->n_limits = VS_CONFIG_LIMITS_MAX;
	for (size_t i = 0; i < reply->n_limits; i++) {
		reply->limits[i].field = (uint32_t)i;
		reply->limits[i].reason = 1000;
		memset(reply->limits[i].text, 'x', VS_TEXT_MAX - 1);
	}
	ASSERT_ROUND_TRIP(config_reply, reply);
	reply->n_limits++;
	assert_int_equal(message_config_reply_pack(reply, &packed), -E2BIG);
	m->n_events++;
	assert_int_equal(message_config_pack(m, &packed), -E2BIG);
	m->n_events = 0;
	m->n_tasks++;
	assert_int_equal(message_config_pack(m, &packed), -E2BIG);
	byte_buffer_fini(&packed);
	free(reply);
	free(m);
}

static void test_config_of_too_many_tasks_or_none_at_all_is_refused(void **state)
{
	Vcpuscope__Wire__Config w = VCPUSCOPE__WIRE__CONFIG__INIT;
	char *tasks[VS_CONFIG_TASKS_MAX + 1];
	struct message_config_reply *reply = calloc(1, sizeof(*reply));
	struct message_config *m = calloc(1, sizeof(*m));
	uint8_t packed[256];
	size_t len;

	(void)state;
	for (size_t i = 0; i < VS_CONFIG_TASKS_MAX + 1; i++)
		tasks[i] = (char *)"a name that is longer than a task's can be";
	w.tasks = tasks;
	w.n_tasks = VS_CONFIG_TASKS_MAX + 1;
	assert_true(vcpuscope__wire__config__get_packed_size(&w) > sizeof(packed));
	w.n_tasks = 1;
	len = vcpuscope__wire__config__pack(&w, packed);
	assert_int_equal(message_config_unpack(packed, len, m), 0);
	assert_string_equal(m->tasks[0], "a name that is l");
	for (size_t i = 0; i < VS_CONFIG_TASKS_MAX + 1; i++)
		tasks[i] = (char *)"x";
	w.n_tasks = VS_CONFIG_TASKS_MAX + 1;
	len = vcpuscope__wire__config__pack(&w, packed);
	assert_int_equal(message_config_unpack(packed, len, m), -E2BIG);
	/* A reply that says nothing of what is in force. */
	assert_int_equal(message_config_reply_unpack(packed, 0, reply), -EBADMSG);
	free(reply);
	free(m);
}

static void test_cpu_quota_round_trip(void **state)
{
	struct message_cpu_quota *m = calloc(1, sizeof(*m));
	struct byte_buffer packed = {0};

	(void)state;
	m->vm = 2;
	m->from = 7;
	m->until = 7;
	ASSERT_ROUND_TRIP(cpu_quota, m);
	m->n_vcpus = VS_CPUS_MAX;
	for (uint32_t i = 0; i < VS_CPUS_MAX; i++)
		m->vcpus[i] = i * 3;
	m->until = UINT64_MAX;
	m->throttled_ns = m->periods = m->quota_us = m->period_us = UINT64_MAX;
	strcpy(m->cgroup, "/machine.slice");
	ASSERT_ROUND_TRIP(cpu_quota, m);
	m->from = m->until;
	m->until--;
	assert_int_equal(message_cpu_quota_pack(m, &packed), 0);
	assert_int_equal(message_cpu_quota_unpack(packed.data, packed.len, m), -EBADMSG);
	m->n_vcpus = VS_CPUS_MAX + 1;
	assert_int_equal(message_cpu_quota_pack(m, &packed), -E2BIG);
	byte_buffer_fini(&packed);
	free(m);
}

static void test_task_origins_round_trip(void **state)
{
	struct message_task_origins *m = calloc(1, sizeof(*m));
	struct byte_buffer packed = {0};

	(void)state;
	ASSERT_ROUND_TRIP(task_origins, m);
	m->n = VS_TASK_ORIGINS_MAX;
	for (size_t i = 0; i < m->n; i++) {
		struct message_task_origin *t = &m->tasks[i];

		*t = (struct message_task_origin){.tid = INT32_MAX,
						  .tgid = (int32_t)i + 1,
						  .seen = UINT64_MAX,
						  .began = i,
						  .vcpu_known = true,
						  .vcpu = VS_CPUS_MAX - 1,
						  .claimed = i & 1,
						  .uid = UINT32_MAX};
		memset(t->cgroup, 'c', sizeof(t->cgroup) - 1);
		memset(t->vm, 'v', sizeof(t->vm) - 1);
	}
	ASSERT_ROUND_TRIP(task_origins, m);
	m->tasks[1].vcpu = VS_CPUS_MAX;
	assert_int_equal(message_task_origins_pack(m, &packed), 0);
	assert_int_equal(message_task_origins_unpack(packed.data, packed.len, m), -E2BIG);
	m->tasks[1].vcpu = 0;
	m->tasks[2].seen = 1; /* and began at 2 */
	packed.len = 0;
	assert_int_equal(message_task_origins_pack(m, &packed), 0);
	assert_int_equal(message_task_origins_unpack(packed.data, packed.len, m), -EBADMSG);
	m->tasks[2].seen = 2;
	m->tasks[3].tgid = 0;
	packed.len = 0;
	assert_int_equal(message_task_origins_pack(m, &packed), 0);
	assert_int_equal(message_task_origins_unpack(packed.data, packed.len, m), -EBADMSG);
	m->n = VS_TASK_ORIGINS_MAX + 1;
	assert_int_equal(message_task_origins_pack(m, &packed), -E2BIG);
	byte_buffer_fini(&packed);
	free(m);
}

static void test_user_events_round_trip(void **state)
{
	struct message_user_events *m = calloc(1, sizeof(*m));
	struct byte_buffer packed = {0};

	(void)state;
	ASSERT_ROUND_TRIP(user_events, m);
	m->n = VS_USER_EVENTS_MAX;
	for (size_t i = 0; i < m->n; i++) {
		struct message_user_event *e = &m->events[i];

		e->id = VS_USER_ID_MAX - (uint32_t)i;
		e->kind = USER_KPROBE;
		e->flags = UINT32_MAX;
		e->limited = UINT64_MAX - i;
		memset(e->system, 's', sizeof(e->system) - 1);
		memset(e->name, 'n', sizeof(e->name) - 1);
		memset(e->path, 'p', sizeof(e->path) - 1);
		memset(e->spec, '/', sizeof(e->spec) - 1);
		memset(e->why, 'w', sizeof(e->why) - 1);
		e->n_fields = VS_USER_FIELDS_MAX;
		for (size_t k = 0; k < e->n_fields; k++) {
			memset(e->fields[k].name, 'f', sizeof(e->fields[k].name) - 1);
			e->fields[k].type = USER_HEX;
			e->fields[k].bytes = 8;
		}
	}
	ASSERT_ROUND_TRIP(user_events, m);
	/* More values than an event's records hold. */
	m->events[1].fields[0].type = USER_TEXT;
	m->events[1].fields[0].bytes = 9;
	assert_int_equal(message_user_events_pack(m, &packed), 0);
	assert_int_equal(message_user_events_unpack(packed.data, packed.len, m), -EBADMSG);
	m->n = VS_USER_EVENTS_MAX + 1;
	assert_int_equal(message_user_events_pack(m, &packed), -E2BIG);
	byte_buffer_fini(&packed);
	free(m);
}

static struct message_vm_clock new_vm_clock(void)
{
	struct message_vm_clock m;

	memset(&m, 0, sizeof(m));
	m.vm = 1;
	m.vcpu = INT32_MAX;
	m.source = VM_CLOCK_PVCLOCK_UPDATE;
	m.from_max = UINT64_MAX;
	m.pvclock.known = true;
	m.pvclock.mul = 1;
	m.pvclock.shift = -31;
	return m;
}

static void test_vm_clock_round_trips_from_every_source_in_every_combination(void **state)
{
	(void)state;
	for (int source = VM_CLOCK_PVCLOCK_UPDATE; source <= (int)VM_CLOCK_SOURCE_LAST; source++)
		for (int parts = 1; parts < 8; parts++) {
			struct message_vm_clock m = new_vm_clock();

			memset(&m.pvclock, 0, sizeof(m.pvclock));
			m.source = (enum vm_clock_source)source;
			m.from_min = m.from_max;
			if (parts & 1)
				m.pvclock = (struct message_vm_clock_pvclock){
					true, 31, UINT8_MAX, UINT32_MAX, 3, UINT64_MAX, 1};
			if (parts & 2)
				m.tsc = (struct message_vm_clock_tsc){true, parts & 4, 63,
								      (uint64_t)-1, UINT64_MAX};
			if (parts & 4) {
				m.master.known = true;
				m.master.used = parts & 1;
				m.master.offsets_matched = parts & 2;
			}
			ASSERT_ROUND_TRIP(vm_clock, &m);
		}
}

static int vm_clock_repacked(const struct message_vm_clock *in)
{
	struct byte_buffer packed = {0};
	struct message_vm_clock out;
	int err;

	assert_int_equal(message_vm_clock_pack(in, &packed), 0);
	err = message_vm_clock_unpack(packed.data, packed.len, &out);
	byte_buffer_fini(&packed);
	return err;
}

static void test_clock_parameters_nobody_can_convert_by_are_refused(void **state)
{
	struct message_vm_clock m = new_vm_clock();

	(void)state;
	assert_int_equal(vm_clock_repacked(&m), 0);
	m.pvclock.mul = 0;
	assert_int_equal(vm_clock_repacked(&m), -EBADMSG);
	m = new_vm_clock();
	m.pvclock.shift = 32;
	assert_int_equal(vm_clock_repacked(&m), -EBADMSG);
	m.pvclock.shift = -32;
	assert_int_equal(vm_clock_repacked(&m), -EBADMSG);
	m = new_vm_clock();
	m.pvclock.known = false;
	assert_int_equal(vm_clock_repacked(&m), -EBADMSG);
	m.tsc.known = true;
	assert_int_equal(vm_clock_repacked(&m), 0);
	m.tsc.frac_bits = 48;
	assert_int_equal(vm_clock_repacked(&m), -EBADMSG);
	m.tsc.ratio = 1;
	assert_int_equal(vm_clock_repacked(&m), 0);
	m.tsc.frac_bits = 64;
	assert_int_equal(vm_clock_repacked(&m), -EBADMSG);
	m = new_vm_clock();
	m.source = 0;
	assert_int_equal(vm_clock_repacked(&m), -EBADMSG);
	m.source = (enum vm_clock_source)(VM_CLOCK_SOURCE_LAST + 1);
	assert_int_equal(vm_clock_repacked(&m), -EBADMSG);
	m = new_vm_clock();
	m.vcpu = UINT32_MAX;
	assert_int_equal(vm_clock_repacked(&m), -EBADMSG);
	m = new_vm_clock();
	m.from_min = 8;
	m.from_max = 7;
	assert_int_equal(vm_clock_repacked(&m), -EBADMSG);
}

static void test_recording_end_round_trip(void **state)
{
	struct message_recording_end in = {.entries = 9, .host_dropped = 8}, out;
	struct byte_buffer packed = {0};

	(void)state;
	assert_int_equal(message_recording_end_pack(&in, &packed), 0);
	assert_int_equal(message_recording_end_unpack(packed.data, packed.len, &out), 0);
	assert_int_equal(out.entries, 9);
	assert_int_equal(out.host_dropped, 8);
	assert_int_equal(out.n_checkpoints, 0);
	assert_null(out.checkpoints);

	in.n_checkpoints = VS_CHECKPOINTS_MAX;
	in.checkpoints = calloc(VS_CHECKPOINTS_MAX + 1, sizeof(*in.checkpoints));
	for (size_t i = 0; i < VS_CHECKPOINTS_MAX; i++)
		in.checkpoints[i] = UINT64_MAX / VS_CHECKPOINTS_MAX * i;
	packed.len = 0;
	assert_int_equal(message_recording_end_pack(&in, &packed), 0);
	assert_int_equal(message_recording_end_unpack(packed.data, packed.len, &out), 0);
	assert_int_equal(out.n_checkpoints, VS_CHECKPOINTS_MAX);
	assert_memory_equal(out.checkpoints, in.checkpoints,
			    VS_CHECKPOINTS_MAX * sizeof(*in.checkpoints));
	free(out.checkpoints);
	in.n_checkpoints++;
	assert_int_equal(message_recording_end_pack(&in, &packed), -E2BIG);
	free(in.checkpoints);
	byte_buffer_fini(&packed);
}

static void test_texts_become_bounded_utf8(void **state)
{
	static const struct {
		size_t size;
		const char *in, *out;
	} cases[] = {
		{16, "", ""},
		{16, "plain", "plain"},
		{6, "plain", "plain"},
		{5, "plain", "plai"},
		{1, "plain", ""},
		{16, "tab\tesc\x1b", "tab\tesc\x1b"}, /* control characters are the view's */
		{16, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		 "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		/* Cut between characters, never inside one. */
		{10, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		 "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
		{9, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac"},
		{5, "\xc3\xa9\xe2\x82\xac", "\xc3\xa9"},
		{2, "\xc3\xa9", ""},
		/* What is no UTF-8 becomes U+FFFD. */
		{16, "\x80", "\xef\xbf\xbd"},
		{16,
		 "a\xff"
		 "b",
		 "a\xef\xbf\xbd"
		 "b"},
		{16, "\xc3", "\xef\xbf\xbd"},
		{16, "\xc3(", "\xef\xbf\xbd("},
		{16, "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
		{16, "\xe0\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* overlong */
		{16, "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* surrogate */
		{16, "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
		{16, "\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"}, /* U+10FFFF, the last one */
		{4, "\xff\xff", "\xef\xbf\xbd"},
		{3, "\xff", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *exact = malloc(cases[i].size);

		text_copy(exact, cases[i].size, cases[i].in);
		assert_string_equal(exact, cases[i].out);
		free(exact);
	}
	text_copy(NULL, 0, "nothing");
}

static int unpack_hello(const uint8_t *payload, size_t len)
{
	struct message_hello *m = malloc(sizeof(*m));
	int err = message_hello_unpack(payload, len, m);

	free(m);
	return err;
}

static int unpack_kernel_log(const uint8_t *payload, size_t len)
{
	struct message_kernel_log *m = malloc(sizeof(*m));
	int err = message_kernel_log_unpack(payload, len, m);

	free(m);
	return err;
}

static int unpack_vm_info(const uint8_t *payload, size_t len)
{
	struct message_vm_info *m = malloc(sizeof(*m));
	int err = message_vm_info_unpack(payload, len, m);

	free(m);
	return err;
}

static int unpack_stack(const uint8_t *payload, size_t len)
{
	struct message_stack *m = malloc(sizeof(*m));
	int err = message_stack_unpack(payload, len, m);

	free(m);
	return err;
}

static int unpack_note(const uint8_t *payload, size_t len)
{
	struct message_note m;

	return message_note_unpack(payload, len, &m);
}

static int unpack_heartbeat(const uint8_t *payload, size_t len)
{
	struct message_heartbeat m;

	return message_heartbeat_unpack(payload, len, &m);
}

static int unpack_recording_end(const uint8_t *payload, size_t len)
{
	struct message_recording_end m;
	int err = message_recording_end_unpack(payload, len, &m);

	if (!err)
		free(m.checkpoints);
	return err;
}

/* Messages of which one repeated field is bounded: its tag and the bound. */
static const struct {
	int (*unpack)(const uint8_t *payload, size_t len);
	uint8_t tag;
	size_t max;
	const char *prefix; /* what else the message needs, in wire form */
	size_t prefix_len;
} repeated_cases[] = {
	{unpack_hello, 9 << 3 | 2, VS_CPUS_MAX, "\x18\x02\x20\x02\x28\x01", 6},
	{unpack_kernel_log, 1 << 3 | 2, VS_LOG_LINES_MAX, "", 0},
	{unpack_vm_info, 5 << 3 | 2, VS_THREADS_MAX, "", 0},
	{unpack_stack, 3 << 3 | 2, VS_STACK_FRAMES_MAX, "", 0},
};

static void test_counts_above_their_bound_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(repeated_cases) / sizeof(*repeated_cases); i++)
		for (size_t extra = 0; extra < 2; extra++) {
			size_t n = repeated_cases[i].max + extra;
			size_t len = repeated_cases[i].prefix_len + 2 * n;
			uint8_t *payload = malloc(len);

			memcpy(payload, repeated_cases[i].prefix, repeated_cases[i].prefix_len);
			for (size_t j = repeated_cases[i].prefix_len; j < len; j += 2) {
				payload[j] = repeated_cases[i].tag;
				payload[j + 1] = 0;
			}
			assert_int_equal(repeated_cases[i].unpack(payload, len),
					 extra ? -E2BIG : 0);
			free(payload);
		}
}

static void test_memory_amplification_is_refused(void **state)
{
	enum { LEN = 1024 * 1024 };
	uint8_t *payload = malloc(LEN);

	(void)state;
	for (size_t i = 0; i < sizeof(repeated_cases) / sizeof(*repeated_cases); i++) {
		for (size_t j = 0; j < LEN; j += 2) {
			payload[j] = repeated_cases[i].tag;
			payload[j + 1] = 0;
		}
		assert_int_equal(repeated_cases[i].unpack(payload, LEN), -E2BIG);
	}
	/* A million packed checkpoints of one byte each. */
	payload[0] = 3 << 3 | 2;
	payload[1] = 0xfc, payload[2] = 0xff, payload[3] = 0x3f;
	memset(payload + 4, 1, LEN - 4);
	assert_int_equal(unpack_recording_end(payload, LEN), -E2BIG);
	free(payload);
}

static void assert_hello_refused(const struct message_hello *m, int expected)
{
	struct byte_buffer packed = {0};

	assert_int_equal(message_hello_pack(m, &packed), 0);
	assert_int_equal(unpack_hello(packed.data, packed.len), expected);
	byte_buffer_fini(&packed);
}

static void test_values_without_meaning_are_refused(void **state)
{
	struct message_hello *good = new_hello(), *m = malloc(sizeof(*m));
	struct byte_buffer packed = {0};
	struct message_note note;
	struct message_vm_info *vm = calloc(1, sizeof(*vm));

	(void)state;
	*m = *good;
	assert_hello_refused(m, 0);
	m->role = 0;
	assert_hello_refused(m, -EBADMSG);
	m->role = (enum stream_role)3;
	assert_hello_refused(m, -EBADMSG);
	*m = *good;
	m->clock = 0;
	assert_hello_refused(m, -EBADMSG);
	m->clock = (enum stream_clock)4;
	assert_hello_refused(m, -EBADMSG);
	*m = *good;
	m->clock_hz = 0;
	assert_hello_refused(m, -EBADMSG);
	*m = *good;
	m->protocol_min = 4;
	assert_hello_refused(m, -EBADMSG);
	*m = *good;
	m->n_cpus = 1;
	m->cpus[0].cpu = VS_CPUS_MAX;
	assert_hello_refused(m, -E2BIG);

	memset(&note, 0, sizeof(note));
	assert_int_equal(message_note_pack(&note, &packed), 0);
	assert_int_equal(unpack_note(packed.data, packed.len), -EBADMSG);
	note.kind = (enum note_kind)(NOTE_KIND_LAST + 1);
	packed.len = 0;
	assert_int_equal(message_note_pack(&note, &packed), 0);
	assert_int_equal(unpack_note(packed.data, packed.len), -EBADMSG);

	vm->n_threads = 1;
	vm->threads[0].is_vcpu = true;
	vm->threads[0].vcpu = VS_CPUS_MAX;
	packed.len = 0;
	assert_int_equal(message_vm_info_pack(vm, &packed), 0);
	assert_int_equal(unpack_vm_info(packed.data, packed.len), -E2BIG);
	vm->n_threads = VS_THREADS_MAX + 1;
	assert_int_equal(message_vm_info_pack(vm, &packed), -E2BIG);
	m->n_cpus = VS_CPUS_MAX + 1;
	assert_int_equal(message_hello_pack(m, &packed), -E2BIG);
	byte_buffer_fini(&packed);
	free(good);
	free(m);
	free(vm);
}

static void test_steal_of_impossible_cpus_is_refused(void **state)
{
	struct message_heartbeat *m = calloc(1, sizeof(*m)), *out = calloc(1, sizeof(*out));
	struct byte_buffer packed = {0};

	(void)state;
	assert_true(m && out);
	m->steal.known = true;
	m->steal.n_cpus = 1;
	m->steal.cpus[0].cpu = VS_CPUS_MAX;
	assert_int_equal(message_heartbeat_pack(m, &packed), 0);
	assert_int_equal(message_heartbeat_unpack(packed.data, packed.len, out), -E2BIG);
	m->steal.n_cpus = VS_CPUS_MAX + 1;
	assert_int_equal(message_heartbeat_pack(m, &packed), -E2BIG);
	byte_buffer_fini(&packed);
	free(m);
	free(out);
}

static void test_texts_of_peers_are_cut_and_repaired(void **state)
{
	Vcpuscope__Wire__Note w = VCPUSCOPE__WIRE__NOTE__INIT;
	char text[VS_TEXT_MAX + 100];
	struct message_note m;
	uint8_t packed[512];
	size_t len;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '\xff';
	text[sizeof(text) - 1] = '\0';
	w.kind = NOTE_PROTOCOL;
	w.text = text;
	len = protobuf_c_message_pack(&w.base, packed);
	memset(&m, 0xee, sizeof(m));
	assert_int_equal(message_note_unpack(packed, len, &m), 0);
	assert_int_equal(strlen(m.text), VS_TEXT_MAX - 1);
	assert_memory_equal(m.text,
			    "\xef\xbf\xbd"
			    "aaa",
			    6);
}

static void test_unknown_fields_are_skipped_and_garbage_refused(void **state)
{
	static const uint8_t unknown[] = {
		0xfa, 0x3f, 0x03, 'n', 'e', 'w', /* field 1023, bytes */
		0xf0, 0x3f, 0x7f,                /* field 1022, varint */
		0xed, 0x3f, 1,    2,   3,   4,   /* field 1021, 32 bits */
	};
	struct message_heartbeat in = {.time = 5}, out;
	struct byte_buffer packed = {0};

	(void)state;
	assert_int_equal(byte_buffer_append(&packed, unknown, sizeof(unknown)), 0);
	assert_int_equal(message_heartbeat_pack(&in, &packed), 0);
	assert_int_equal(byte_buffer_append(&packed, unknown, sizeof(unknown)), 0);
	assert_int_equal(message_heartbeat_unpack(packed.data, packed.len, &out), 0);
	assert_int_equal(out.time, 5);
	assert_int_equal(message_heartbeat_unpack(packed.data, packed.len - 1, &out), -EBADMSG);
	assert_int_equal(unpack_heartbeat((const uint8_t *)"\xff\xff\xff\xff", 4), -EBADMSG);
	/* A heartbeat without a sample is one whose sample is all zeros. */
	assert_int_equal(message_heartbeat_unpack(NULL, 0, &out), 0);
	assert_int_equal(out.time, 0);
	assert_int_equal(out.sample.tsc, 0);
	byte_buffer_fini(&packed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hello_round_trip),
		cmocka_unit_test(test_small_messages_round_trip),
		cmocka_unit_test(test_kernel_log_round_trip),
		cmocka_unit_test(test_vm_info_round_trip),
		cmocka_unit_test(test_stack_round_trip),
		cmocka_unit_test(test_every_kind_of_note_round_trips),
		cmocka_unit_test(test_config_round_trip),
		cmocka_unit_test(test_config_of_too_many_tasks_or_none_at_all_is_refused),
		cmocka_unit_test(test_cpu_quota_round_trip),
		cmocka_unit_test(test_task_origins_round_trip),
		cmocka_unit_test(test_user_events_round_trip),
		cmocka_unit_test(test_vm_clock_round_trips_from_every_source_in_every_combination),
		cmocka_unit_test(test_clock_parameters_nobody_can_convert_by_are_refused),
		cmocka_unit_test(test_recording_end_round_trip),
		cmocka_unit_test(test_texts_become_bounded_utf8),
		cmocka_unit_test(test_counts_above_their_bound_are_refused),
		cmocka_unit_test(test_memory_amplification_is_refused),
		cmocka_unit_test(test_values_without_meaning_are_refused),
		cmocka_unit_test(test_steal_of_impossible_cpus_is_refused),
		cmocka_unit_test(test_texts_of_peers_are_cut_and_repaired),
		cmocka_unit_test(test_unknown_fields_are_skipped_and_garbage_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
