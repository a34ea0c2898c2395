// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests that the wire format is unchanged: stored files (`test_golden --write DIR`) decode to the
 * same content, and the content encodes to the same bytes. Compressed payloads are compared after
 * decompression, because versions of zstd may compress differently.
 *
 * If this test fails, older recordings and agents can no longer be read. Write the files anew only
 * with a new VS_FRAME_VERSION.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "proto/codec.h"
#include "proto/message.h"
#include "proto/recording.h"

enum { SESSION_ID = 0x5e55104e };

static void sample_hello(struct message_hello *m)
{
	m->protocol_min = 1;
	m->protocol_max = 1;
	m->role = STREAM_ROLE_GUEST;
	m->clock = STREAM_CLOCK_KVMCLOCK_NS;
	m->clock_hz = 1000000000;
	strcpy(m->program_version, "0.1.0");
	strcpy(m->kernel_release, "6.1.0-37-cloud-amd64");
	strcpy(m->boot_id, "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
	m->dmesg.known = true;
	m->dmesg.time = 20000000000;
	m->dmesg.ns = 12345678901;
	m->dmesg.err = 1500;
	m->tick_hz = 250;
	m->n_cpus = 2;
	m->cpus[0] = (struct message_cpu){.cpu = 0, .apic_id = 0};
	m->cpus[1] = (struct message_cpu){.cpu = 1, .apic_id = 64};
}

static void sample_clock_sample(struct message_clock_sample *m)
{
	m->tsc = 0x123456789abcdef;
	m->tsc_width = 180;
	m->monotonic_ns = 3600000000000;
	m->raw_ns = 3600000123456;
	m->realtime_ns = 1700000000000000000;
}

static void sample_heartbeat(struct message_heartbeat *m)
{
	m->time = 20000000500;
	m->cpu_time_ns = 7000000;
	m->rss_bytes = 9 << 20;
	m->emitted = 1000000;
	m->delivered = 999990;
	m->dropped_kernel = 7;
	m->dropped_user = 3;
	sample_clock_sample(&m->sample);
	m->dmesg.known = true;
	m->dmesg.time = 20000000400;
	m->dmesg.ns = 12345679301;
	m->dmesg.err = 1600;
}

static void sample_echo_request(struct message_echo_request *m)
{
	m->id = 4711;
}

static void sample_echo_reply(struct message_echo_reply *m)
{
	m->id = 4711;
	m->received = 20000000600;
	m->sent = 20000000700;
}

static void sample_kernel_log(struct message_kernel_log *m)
{
	m->n_lines = 2;
	m->lines[0].dmesg_us = 12345678;
	m->lines[0].level = 0;
	strcpy(m->lines[0].text, "watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [fio:1234]");
	m->lines[1].dmesg_us = 12345999;
	m->lines[1].level = 6;
	strcpy(m->lines[1].text, "Gr\xc3\xbc\xc3\x9f"
				 "e");
}

static void sample_config(struct message_config *m)
{
	m->id = 7;
	m->asks = 31; /* the fields of the first version */
	m->classes = 1 << EVENT_CLASS_SWITCHES | 1 << EVENT_CLASS_IRQS;
	m->level = GUEST_LEVEL_SUMMARY;
	m->handler_over_ns = 100000;
	m->sample_hz = 99;
	m->n_tasks = 2;
	strcpy(m->tasks[0], "fio");
	strcpy(m->tasks[1], "kworker*");
}

/* An older agent skips the events, and says that it does not know them. */
static void sample_config_events(struct message_config *m)
{
	sample_config(m);
	m->asks = 63;
	m->n_events = 2;
	m->events[0] = (struct message_config_event){
		.kind = USER_TRACEPOINT,
		.system = "block",
		.name = "block_rq_issue",
		.filter = "nr_sector > 8",
		.fields = "dev sector",
		.spec = "guest:block:block_rq_issue/nr_sector > 8/fields=dev sector/",
	};
	m->events[1] = (struct message_config_event){
		.kind = USER_KPROBE, .system = "kprobe", .name = "vfs_fsync"};
}

static void sample_config_reply(struct message_config_reply *m)
{
	m->id = 7;
	m->time = 20000000800;
	sample_config(&m->in_force);
	m->in_force.sample_hz = 0;
	m->n_limits = 1;
	m->limits[0].field = CONFIG_SAMPLE_HZ;
	m->limits[0].reason = CONFIG_REASON_OWNER;
	strcpy(m->limits[0].text, "at most 0 (--max-sample-hz)");
}

static void sample_vm_info(struct message_vm_info *m)
{
	m->vm = 1;
	strcpy(m->name, "build-7");
	m->qemu_pid = 4242;
	strcpy(m->accelerator, "kvm");
	m->n_threads = 2;
	m->threads[0].tid = 4242;
	strcpy(m->threads[0].comm, "qemu-system-x86");
	m->threads[1].tid = 4250;
	strcpy(m->threads[1].comm, "CPU 0/KVM");
	m->threads[1].is_vcpu = true;
	m->threads[1].vcpu = 5;
	m->threads[1].apic_id_known = true;
	m->threads[1].apic_id = 64;
}

static void sample_echo_observation(struct message_echo_observation *m)
{
	m->vm = 1;
	m->host_sent = 9000000000000;
	m->guest_received = 20000000600;
	m->guest_sent = 20000000700;
	m->host_received = 9000000400000;
}

static void sample_stack(struct message_stack *m)
{
	m->id = 3;
	m->pid = 4250;
	m->n_frames = 2;
	strcpy(m->frames[0].symbol, "futex_wait_queue");
	m->frames[0].offset = 0x65;
	m->frames[0].kernel = true;
	strcpy(m->frames[1].module, "qemu-system-x86_64");
	m->frames[1].offset = 0x8f1234;
}

static void sample_note(struct message_note *m)
{
	m->vm = 1;
	m->kind = NOTE_CHANNEL_UP;
	m->host_tsc = 9000000000001;
	strcpy(m->text, "agent 0.1.0");
}

static void sample_vm_clock(struct message_vm_clock *m)
{
	m->vm = 1;
	m->vcpu = 64;
	m->source = VM_CLOCK_VCPU;
	m->from_min = 9000000000000;
	m->from_max = 9000000000700;
	m->tsc.known = true;
	m->tsc.scaling_known = true;
	m->tsc.frac_bits = 48;
	m->tsc.offset = (uint64_t)-8999999990000;
	m->tsc.ratio = 234562480592213;
	m->pvclock.known = true;
	m->pvclock.shift = -1;
	m->pvclock.flags = 1;
	m->pvclock.mul = 3308909142;
	m->pvclock.version = 6;
	m->pvclock.tsc_timestamp = 123456789;
	m->pvclock.system_time = 987654321;
	m->master.known = true;
	m->master.used = true;
	m->master.offsets_matched = true;
}

static void sample_cpu_quota(struct message_cpu_quota *m)
{
	m->vm = 1;
	m->n_vcpus = 2;
	m->vcpus[0] = 0;
	m->vcpus[1] = 73;
	m->from = 9000000000000;
	m->until = 9000250000000;
	m->throttled_ns = 80123456;
	m->periods = 1;
	m->quota_us = 20000;
	m->period_us = 100000;
	strcpy(m->cgroup, "/machine.slice/machine-qemu.scope/libvirt/vcpu0");
}

static void sample_task_origins(struct message_task_origins *m)
{
	m->n = 2;
	m->tasks[0].tid = 4711;
	m->tasks[0].tgid = 4700;
	m->tasks[0].seen = 9000000000000;
	m->tasks[0].began = 8000000000000;
	strcpy(m->tasks[0].cgroup, "/machine.slice/machine-qemu.scope");
	strcpy(m->tasks[0].vm, "web2");
	m->tasks[0].vcpu_known = true;
	m->tasks[0].vcpu = 3;
	m->tasks[0].claimed = true;
	m->tasks[0].uid = 1000;
	m->tasks[1].tid = m->tasks[1].tgid = 17;
	m->tasks[1].seen = 9000000000001;
	strcpy(m->tasks[1].cgroup, "/");
}

static void sample_user_events(struct message_user_events *m)
{
	m->n = 2;
	m->events[0] = (struct message_user_event){
		.id = 1,
		.kind = USER_TRACEPOINT,
		.flags = USER_UNTRACED,
		.system = "sched",
		.name = "sched_process_exec",
		.spec = "sched:sched_process_exec//untraced/",
		.limited = 70000,
		.n_fields = 3,
		.fields = {{"pid", USER_SIGNED, 4},
			   {"old_pid", USER_SIGNED, 4},
			   {"comm", USER_TEXT, 16}},
	};
	m->events[1] = (struct message_user_event){
		.id = 2,
		.kind = USER_USDT,
		.system = "libc",
		.name = "setjmp",
		.path = "/lib/x86_64-linux-gnu/libc.so.6",
		.spec = "usdt:libc:setjmp@/lib/x86_64-linux-gnu/libc.so.6",
		.n_fields = 1,
		.fields = {{"arg1", USER_HEX, 8}},
	};
}

/* What an agent says: one that its owner does not allow, and one that flooded. */
static void sample_guest_events(struct message_user_events *m)
{
	m->n = 2;
	m->events[0] = (struct message_user_event){
		.id = VS_USER_ID_MAX,
		.kind = USER_KPROBE,
		.flags = USER_FAILED,
		.system = "kprobe",
		.name = "vfs_read",
		.spec = "guest:kprobe:vfs_read",
		.why = "the guest's owner allows no kprobes",
	};
	m->events[1] = (struct message_user_event){
		.id = 4,
		.kind = USER_TRACEPOINT,
		.flags = USER_UNTRACED | USER_HASHED | USER_DETACHED,
		.system = "timer",
		.name = "hrtimer_start",
		.spec = "guest:timer:hrtimer_start",
		.limited = 1000000,
		.why = "more than 20000 hits per second and CPU",
		.n_fields = 2,
		.fields = {{"hrtimer", USER_HEX, 8}, {"expires", USER_SIGNED, 8}},
	};
}

static void sample_exit_cell(struct message_exit_cell *cell)
{
	*cell = (struct message_exit_cell){
		.vcpu = 3,
		.isa = 1,
		.reason = 48,
		.count = 1200,
		.kernel_ns = 2400000,
		.vmm_ns = 500,
		.max_ns = 90000,
		.buckets = {[40] = 1100, [44] = 99, [VS_EXIT_BUCKETS - 1] = 1},
	};
}

static uint64_t sample_checkpoints[] = {32, 4194400, 8388800};

static void sample_recording_end(struct message_recording_end *m)
{
	m->entries = 1234;
	m->host_dropped = 5;
	m->n_checkpoints = 3;
	m->checkpoints = sample_checkpoints;
}

/* Every event type, a switch with each predicted field right and wrong, jumps, a big gap. */
static const struct vs_event sample_events[] = {
	{20000000000, 100, 1, VS_EVENT_VECTOR_ENTRY, 0, 0, VS_VECTOR_LOCAL_TIMER, 236},
	{20000000900, 101, 1, VS_EVENT_SCHED_WAKEUP, 1234, 0, 1, 120},
	{20000001000, 102, 1, VS_EVENT_SCHED_WAKEUP_NEW, 1240, 0, 0, 120},
	{20000001500, 103, 1, VS_EVENT_VECTOR_EXIT, 0, 0, VS_VECTOR_LOCAL_TIMER, 236},
	{20000001700, 104, 1, VS_EVENT_SOFTIRQ_ENTRY, 0, 0, 1, 0},
	{20000002000, 105, 1, VS_EVENT_SOFTIRQ_EXIT, 0, 0, 1, 0},
	{20000003000, 106, 1, VS_EVENT_SCHED_SWITCH, 0, 1234, 0, 120 | (uint64_t)120 << 32},
	{20000004000, 108, 1, VS_EVENT_SCHED_MIGRATE, 1240, 1234, 0, 1},
	{20000004000, 107, 1, VS_EVENT_TASK_NAME, 1234, 1230, 0x6f6966, 0},
	{20000005000, 109, 1, VS_EVENT_IRQ_ENTRY, 1234, 0, 24, 0},
	{20000005300, 110, 1, VS_EVENT_IRQ_EXIT, 1234, 0, 24, 1},
	{20000006000, 111, 1, VS_EVENT_SIGNAL, 1230, 1234, 19, 1230},
	{20000007000, 112, 1, VS_EVENT_SCHED_SWITCH, 1234, 1240, VS_TASK_INTERRUPTIBLE,
	 120 | (uint64_t)98 << 32},
	{20000008000, 113, 1, VS_EVENT_TASK_EXIT, 1240, 1230, 0, 0},
	{20000009000, 114, 1, VS_EVENT_SCHED_SWITCH, 1241, -1, VS_TASK_EXIT,
	 98 | (uint64_t)120 << 32},
	{20650009000, 114 + 50, 1, VS_EVENT_LOST, 0, 0, 49, 20650009000},
	{20650009001, 165, 1, VS_EVENT_STACK, 4250, 4250, 3, 1 | (uint64_t)640000000 << 8},
	{20650009002, 166, 1, VS_EVENT_KVM_EXIT, 4250, 0, 12 | (uint64_t)1 << 32,
	 0xffffffff81000010},
	{20650009003, 167, 1, VS_EVENT_KVM_USERSPACE_EXIT, 4250, 0, 5, 4},
	{20650009004, 168, 1, VS_EVENT_KVM_ENTRY, 4250, 0, 0, 0xffffffff81000012},
	{UINT64_MAX, UINT32_MAX, 1, VS_EVENT_SCHED_SWITCH, INT32_MIN, INT32_MAX, UINT64_MAX,
	 UINT64_MAX},
};
enum { N_SAMPLE_EVENTS = sizeof(sample_events) / sizeof(*sample_events) };

static struct batch sample_batch(void)
{
	return (struct batch){
		.cpu = 1,
		.time_err = 40,
		.watermark = UINT64_MAX,
		.emitted = 1000000,
		.dropped_kernel = 7,
		.dropped_user = 3,
		.n_events = N_SAMPLE_EVENTS,
		.events = (struct vs_event *)sample_events,
	};
}

static void pack_batch(struct byte_buffer *out)
{
	struct batch_encoder *e = batch_encoder_new();
	struct batch b = sample_batch();

	assert_non_null(e);
	assert_int_equal(batch_encode(e, &b, out), 0);
	batch_encoder_free(e);
}

static void check_batch(const uint8_t *payload, size_t len)
{
	struct batch_decoder *d = batch_decoder_new();
	struct batch expected = sample_batch(), b;

	assert_non_null(d);
	assert_int_equal(batch_decode(d, payload, len, &b), 0);
	assert_int_equal(b.cpu, expected.cpu);
	assert_int_equal(b.time_err, expected.time_err);
	assert_true(b.watermark == expected.watermark);
	assert_int_equal(b.emitted, expected.emitted);
	assert_int_equal(b.dropped_kernel, expected.dropped_kernel);
	assert_int_equal(b.dropped_user, expected.dropped_user);
	assert_int_equal(b.n_events, N_SAMPLE_EVENTS);
	assert_memory_equal(b.events, sample_events, sizeof(sample_events));
	batch_decoder_free(d);
}

#define MESSAGE(name) SAMPLE(name, name)
#define SAMPLE(sample, name)                                                                       \
	static void pack_##sample(struct byte_buffer *out)                                         \
	{                                                                                          \
		struct message_##name *m = calloc(1, sizeof(*m));                                  \
                                                                                                   \
		sample_##sample(m);                                                                \
		assert_int_equal(message_##name##_pack(m, out), 0);                                \
		free(m);                                                                           \
	}                                                                                          \
                                                                                                   \
	static void check_##sample(const uint8_t *payload, size_t len)                             \
	{                                                                                          \
		struct message_##name *expected = calloc(1, sizeof(*expected));                    \
		struct message_##name *m = calloc(1, sizeof(*m));                                  \
                                                                                                   \
		sample_##sample(expected);                                                         \
		assert_int_equal(message_##name##_unpack(payload, len, m), 0);                     \
		assert_memory_equal(m, expected, sizeof(*m));                                      \
		free(expected);                                                                    \
		free(m);                                                                           \
	}
MESSAGE(hello)
MESSAGE(heartbeat)
MESSAGE(echo_request)
MESSAGE(echo_reply)
MESSAGE(clock_sample)
MESSAGE(kernel_log)
MESSAGE(vm_info)
MESSAGE(echo_observation)
MESSAGE(stack)
MESSAGE(note)
MESSAGE(vm_clock)
MESSAGE(cpu_quota)
MESSAGE(task_origins)
MESSAGE(user_events)
MESSAGE(config)
MESSAGE(config_reply)
SAMPLE(config_events, config)
SAMPLE(guest_events, user_events)
#undef MESSAGE
#undef SAMPLE

static void pack_exit_summary(struct byte_buffer *out)
{
	struct message_exit_cell cell;
	struct message_exit_summary m = {
		.vm = 1, .host_tsc = 9000000000000, .n_cells = 1, .cells = &cell};

	sample_exit_cell(&cell);
	assert_int_equal(message_exit_summary_pack(&m, out), 0);
}

static void check_exit_summary(const uint8_t *payload, size_t len)
{
	struct message_exit_summary m;
	struct message_exit_cell cell;

	sample_exit_cell(&cell);
	assert_int_equal(message_exit_summary_unpack(payload, len, &m), 0);
	assert_int_equal(m.vm, 1);
	assert_int_equal(m.host_tsc, 9000000000000);
	assert_int_equal(m.n_cells, 1);
	assert_memory_equal(m.cells, &cell, sizeof(cell));
	free(m.cells);
}

static void pack_recording_end(struct byte_buffer *out)
{
	struct message_recording_end m = {0};

	sample_recording_end(&m);
	assert_int_equal(message_recording_end_pack(&m, out), 0);
}

static void check_recording_end(const uint8_t *payload, size_t len)
{
	struct message_recording_end expected = {0}, m;

	sample_recording_end(&expected);
	assert_int_equal(message_recording_end_unpack(payload, len, &m), 0);
	assert_int_equal(m.entries, expected.entries);
	assert_int_equal(m.host_dropped, expected.host_dropped);
	assert_int_equal(m.n_checkpoints, expected.n_checkpoints);
	assert_memory_equal(m.checkpoints, sample_checkpoints, sizeof(sample_checkpoints));
	free(m.checkpoints);
}

static const struct {
	enum frame_kind kind;
	const char *name;
	void (*pack)(struct byte_buffer *out);
	void (*check)(const uint8_t *payload, size_t len);
} kinds[] = {
	{FRAME_HELLO, "hello", pack_hello, check_hello},
	{FRAME_BATCH, "batch", pack_batch, check_batch},
	{FRAME_HEARTBEAT, "heartbeat", pack_heartbeat, check_heartbeat},
	{FRAME_ECHO_REQUEST, "echo_request", pack_echo_request, check_echo_request},
	{FRAME_ECHO_REPLY, "echo_reply", pack_echo_reply, check_echo_reply},
	{FRAME_CLOCK_SAMPLE, "clock_sample", pack_clock_sample, check_clock_sample},
	{FRAME_KERNEL_LOG, "kernel_log", pack_kernel_log, check_kernel_log},
	{FRAME_CONFIG, "config", pack_config, check_config},
	{FRAME_CONFIG, "config_events", pack_config_events, check_config_events},
	{FRAME_CONFIG_REPLY, "config_reply", pack_config_reply, check_config_reply},
	{FRAME_USER_EVENTS, "user_events", pack_user_events, check_user_events},
	{FRAME_USER_EVENTS, "guest_events", pack_guest_events, check_guest_events},
	{FRAME_VM_INFO, "vm_info", pack_vm_info, check_vm_info},
	{FRAME_ECHO_OBSERVATION, "echo_observation", pack_echo_observation, check_echo_observation},
	{FRAME_STACK, "stack", pack_stack, check_stack},
	{FRAME_GUEST_STACK, "guest_stack", pack_stack, check_stack},
	{FRAME_NOTE, "note", pack_note, check_note},
	{FRAME_VM_CLOCK, "vm_clock", pack_vm_clock, check_vm_clock},
	{FRAME_CPU_QUOTA, "cpu_quota", pack_cpu_quota, check_cpu_quota},
	{FRAME_TASK_ORIGINS, "task_origins", pack_task_origins, check_task_origins},
	{FRAME_EXIT_SUMMARY, "exit_summary", pack_exit_summary, check_exit_summary},
	{FRAME_RECORDING_END, "recording_end", pack_recording_end, check_recording_end},
};
enum { N_KINDS = sizeof(kinds) / sizeof(*kinds) };

static void make_frame(size_t k, struct byte_buffer *frame)
{
	struct frame_writer *w = frame_writer_new(SESSION_ID);
	struct byte_buffer payload = {0};

	assert_non_null(w);
	kinds[k].pack(&payload);
	assert_int_equal(frame_write(w, kinds[k].kind, payload.data, payload.len, frame), 0);
	byte_buffer_fini(&payload);
	frame_writer_free(w);
}

static void golden_path(char path[512], const char *folder, const char *name, const char *suffix)
{
	snprintf(path, 512, "%s/%s%s", folder, name, suffix);
}

static void read_file(const char *path, struct byte_buffer *out)
{
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &st))
		fail_msg("%s: %s", path, strerror(errno));
	assert_int_equal(byte_buffer_reserve(out, (size_t)st.st_size), 0);
	out->len = (size_t)st.st_size;
	assert_int_equal(read(fd, out->data, out->len), out->len);
	close(fd);
}

static void test_golden_frames_decode_and_are_written_alike(void **state)
{
	struct frame_unpacker *u = frame_unpacker_new();

	(void)state;
	for (size_t k = 0; k < N_KINDS; k++) {
		struct byte_buffer golden = {0}, now = {0}, now_payload = {0};
		struct frame_view frame;
		const uint8_t *payload;
		char path[512];
		size_t len;

		golden_path(path, TEST_GOLDEN_DIR, kinds[k].name, ".frame");
		read_file(path, &golden);
		assert_int_equal(frame_parse(golden.data, golden.len, &frame), 0);
		assert_int_equal(frame.len, golden.len);
		assert_int_equal(frame.header.kind, kinds[k].kind);
		assert_int_equal(frame.header.session_id, SESSION_ID);
		assert_int_equal(frame.header.frame_seq, 0);
		assert_int_equal(frame_unpack(u, &frame, &payload, &len), 0);
		kinds[k].check(payload, len);

		kinds[k].pack(&now_payload);
		assert_int_equal(now_payload.len, len);
		assert_memory_equal(now_payload.data, payload, len);
		make_frame(k, &now);
		if (!(frame.header.flags & VS_FRAME_ZSTD)) {
			assert_int_equal(now.len, golden.len);
			assert_memory_equal(now.data, golden.data, golden.len);
		}
		byte_buffer_fini(&golden);
		byte_buffer_fini(&now);
		byte_buffer_fini(&now_payload);
	}
	frame_unpacker_free(u);
}

/* The kinds in the golden recording: none is compressed, so its bytes are known. */
static const enum frame_kind recorded_kinds[] = {FRAME_NOTE, FRAME_ECHO_OBSERVATION,
						 FRAME_ECHO_REPLY, FRAME_CLOCK_SAMPLE};
enum { N_RECORDED = sizeof(recorded_kinds) / sizeof(*recorded_kinds) };

static size_t kind_index(enum frame_kind kind)
{
	size_t k = 0;

	while (kinds[k].kind != kind)
		k++;
	return k;
}

static void make_recording(const char *path)
{
	struct recording_writer *w;

	assert_int_equal(
		recording_writer_open(path, VS_RECORDING_SIMULATED, 1700000000000000000, &w), 0);
	for (uint32_t i = 0; i < N_RECORDED; i++) {
		struct byte_buffer frame = {0};

		make_frame(kind_index(recorded_kinds[i]), &frame);
		assert_int_equal(
			recording_writer_append(w, i % 2, 9000000000000 + i, frame.data, frame.len),
			0);
		byte_buffer_fini(&frame);
	}
	assert_int_equal(recording_writer_close(w, 5), 0);
}

static void test_golden_recording_reads_and_is_written_alike(void **state)
{
	struct byte_buffer golden = {0}, now = {0};
	struct frame_unpacker *u = frame_unpacker_new();
	const struct recording_info *info;
	struct recording_reader *r;
	struct recording_entry entry;
	char path[512], temporary[] = "/tmp/test_golden.XXXXXX";
	int fd = mkstemp(temporary);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	golden_path(path, TEST_GOLDEN_DIR, "small", ".vcs");
	assert_int_equal(recording_reader_open(path, &r), 0);
	info = recording_reader_info(r);
	assert_int_equal(info->flags, VS_RECORDING_SIMULATED);
	assert_int_equal(info->created_realtime_ns, 1700000000000000000);
	for (uint32_t i = 0; i < N_RECORDED; i++) {
		const uint8_t *payload;
		size_t len;

		assert_int_equal(recording_reader_next(r, &entry), 1);
		assert_int_equal(entry.source, i % 2);
		assert_int_equal(entry.arrival_tsc, 9000000000000 + i);
		assert_int_equal(entry.frame.header.kind, recorded_kinds[i]);
		assert_int_equal(frame_unpack(u, &entry.frame, &payload, &len), 0);
		kinds[kind_index(recorded_kinds[i])].check(payload, len);
	}
	assert_int_equal(recording_reader_next(r, &entry), 1);
	assert_int_equal(entry.frame.header.kind, FRAME_RECORDING_END);
	assert_int_equal(recording_reader_next(r, &entry), 0);
	assert_true(info->closed);
	recording_reader_close(r);

	make_recording(temporary);
	read_file(temporary, &now);
	read_file(path, &golden);
	unlink(temporary);
	assert_int_equal(now.len, golden.len);
	assert_memory_equal(now.data, golden.data, golden.len);
	byte_buffer_fini(&now);
	byte_buffer_fini(&golden);
	frame_unpacker_free(u);
}

static const char *write_folder; /* for the one "test" that writes */

static void write_golden_files(void **state)
{
	char path[512];

	(void)state;
	for (size_t k = 0; k < N_KINDS; k++) {
		struct byte_buffer frame = {0};
		int fd;

		golden_path(path, write_folder, kinds[k].name, ".frame");
		make_frame(k, &frame);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		if (fd < 0)
			fail_msg("%s: %s", path, strerror(errno));
		assert_int_equal(write(fd, frame.data, frame.len), frame.len);
		assert_int_equal(close(fd), 0);
		byte_buffer_fini(&frame);
	}
	golden_path(path, write_folder, "small", ".vcs");
	make_recording(path);
	assert_int_equal(chmod(path, 0644), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_frames_decode_and_are_written_alike),
		cmocka_unit_test(test_golden_recording_reads_and_is_written_alike),
	};
	const struct CMUnitTest writing[] = {cmocka_unit_test(write_golden_files)};

	if (argc == 3 && !strcmp(argv[1], "--write")) {
		write_folder = argv[2];
		return cmocka_run_group_tests(writing, NULL, NULL);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
