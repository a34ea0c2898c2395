/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the host stream with a simulated kernel: it begins with HELLO, its frames are numbered
 * in order, no event is older than the watermark, and stacks follow the drain that delivered them.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock/sample.h"
#include "host-collector/record/host_stream.h"
#include "host-collector/record/unwind.h"
#include "bpf/isolation/opener.h"
#include "proto/codec.h"

enum { KINDS_MAX = 64 };

struct rig {
	struct host_stream *stream;
	struct frame_order order;
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;
	uint8_t kinds[KINDS_MAX];
	size_t n_kinds;
	size_t events, stack_events;
	uint64_t newest, oldest, heartbeat_time;
	struct message_hello hello;
	struct message_vm_info vm;
	struct message_heartbeat heartbeat;
	struct message_user_events user_events;
	/* the stand-in's */
	uint32_t seq;
	bool with_stack;
};

static void on_frame(void *context, uint64_t tsc, struct frame_item *item)
{
	struct rig *r = context;
	const uint8_t *payload;
	struct frame_view made, frame;
	struct batch batch;
	size_t size;

	assert_true(tsc > 0);
	assert_int_equal(frame_item_frame(item, &made), 0);
	assert_int_equal(frame_parse(made.bytes, made.len, &frame), 0);
	assert_int_equal(frame.len, made.len);
	assert_int_equal(frame.header.kind, item->kind);
	assert_int_equal(frame.header.frame_seq, item->frame_seq);
	assert_true((item->batch != NULL) == (item->kind == FRAME_BATCH));
	assert_int_equal(frame_order_check(&r->order, &frame.header), 0);
	assert_true(r->n_kinds < KINDS_MAX);
	r->kinds[r->n_kinds++] = frame.header.kind;
	assert_int_equal(frame_unpack(r->unpacker, &frame, &payload, &size), 0);
	switch (frame.header.kind) {
	case FRAME_HELLO:
		assert_int_equal(message_hello_unpack(payload, size, &r->hello), 0);
		break;
	case FRAME_USER_EVENTS:
		assert_int_equal(message_user_events_unpack(payload, size, &r->user_events), 0);
		break;
	case FRAME_VM_INFO:
		assert_int_equal(message_vm_info_unpack(payload, size, &r->vm), 0);
		break;
	case FRAME_HEARTBEAT:
		assert_int_equal(message_heartbeat_unpack(payload, size, &r->heartbeat), 0);
		r->heartbeat_time = r->heartbeat.time;
		break;
	case FRAME_BATCH:
		assert_int_equal(batch_decode(r->decoder, payload, size, &batch), 0);
		assert_int_equal(batch.n_events, item->batch->n_events);
		assert_memory_equal(batch.events, item->batch->events,
				    batch.n_events * sizeof(*batch.events));
		for (size_t i = 0; i < batch.n_events; i++)
			assert_true(batch.events[i].time >= r->heartbeat_time);
		if (batch.cpu == VS_CPU_COLLECTOR)
			r->stack_events += batch.n_events;
		else
			r->events += batch.n_events;
		break;
	default:
		break;
	}
}

/* One switch on CPU 0 per drain, stamped now; a stack of a wait that just ended. */
static long source_drain(void *context, const struct capture_sink *sink)
{
	const uint64_t kernel[] = {0x1234};
	struct clock_sample now = {0};
	struct rig *r = context;
	struct vs_event e = {.cpu = 0, .type = VS_EVENT_SCHED_SWITCH, .pid = 1, .pid2 = 2};
	struct capture_stack stack = {.wait_ns = 50000000,
				      .tid = 7,
				      .tgid = 7,
				      .explains = 7,
				      .role = VS_STACK_WAITER,
				      .n_kernel = 1,
				      .kernel = kernel};

	clock_sample_take(&now);
	e.time = now.monotonic_ns;
	e.seq = r->seq++;
	sink->events(sink->context, 0, &e, 1);
	stack.time = now.monotonic_ns - stack.wait_ns;
	if (r->with_stack && sink->stack)
		sink->stack(sink->context, &stack);
	return 1;
}

static int source_stats(void *context, size_t cpu, struct capture_cpu_stats *out)
{
	struct rig *r = context;

	out->emitted = cpu ? 0 : r->seq;
	out->dropped = 0;
	return 0;
}

static int source_sample(void *context, struct clock_sample *out)
{
	(void)context;
	return clock_sample_take(out);
}

static struct chosen_events chosen = {
	.n = 1,
	.events = {{.description = {.kind = USER_TRACEPOINT,
				    .system = "sched",
				    .name = "sched_process_exec",
				    .n_fields = 1,
				    .fields = {{"pid", USER_SIGNED, 4}}}}},
};

static int rig_open(void **state, const struct chosen_events *events)
{
	struct rig *r = calloc(1, sizeof(*r));
	const struct batcher_source source = {.drain = source_drain,
					      .cpu_stats = source_stats,
					      .sample = source_sample,
					      .n_cpus = 2,
					      .context = r};
	const struct host_stream_options options = {
		.frame = on_frame, .context = r, .source = &source, .events = events};
	char why[256];

	r->unpacker = frame_unpacker_new();
	r->decoder = batch_decoder_new();
	*state = r;
	return host_stream_open(&options, &r->stream, why, sizeof(why));
}

static int rig_setup(void **state)
{
	return rig_open(state, NULL);
}

static int rig_setup_chosen(void **state)
{
	return rig_open(state, &chosen);
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	host_stream_close(r->stream);
	frame_unpacker_free(r->unpacker);
	batch_decoder_free(r->decoder);
	free(r);
	return 0;
}

static void kinds_are(const struct rig *r, const uint8_t *kinds, size_t n)
{
	assert_int_equal(r->n_kinds, n);
	assert_memory_equal(r->kinds, kinds, n);
}

static void test_it_introduces_itself(void **state)
{
	static const uint8_t begin[] = {FRAME_HELLO, FRAME_CLOCK_SAMPLE};
	struct rig *r = *state;

	kinds_are(r, begin, sizeof(begin));
	assert_int_equal(r->hello.role, STREAM_ROLE_HOST);
	assert_int_equal(r->hello.clock, STREAM_CLOCK_HOST_TSC);
	assert_in_range(r->hello.clock_hz, 100000000, 10000000000);
	assert_int_equal(strlen(r->hello.boot_id), 36);
	assert_string_equal(r->hello.program_version, VCPUSCOPE_VERSION);
}

static void test_promises_hold_and_totals_balance(void **state)
{
	struct rig *r = *state;

	for (int i = 0; i < 10; i++) {
		assert_int_equal(host_stream_drain(r->stream, (uint64_t)i * 20) >= 0, true);
		assert_int_equal(host_stream_heartbeat(r->stream), 0);
	}
	assert_int_equal(r->events, 10);
	assert_true(r->heartbeat_time > 0);
	assert_int_equal(r->heartbeat.emitted, 10);
	assert_int_equal(r->heartbeat.delivered + r->heartbeat.dropped_kernel +
				 r->heartbeat.dropped_user,
			 10);
	assert_true(r->heartbeat.sample.tsc > 0);
	assert_true(r->heartbeat.rss_bytes > 0);
}

static void test_stacks_follow_their_drain(void **state)
{
	static const uint8_t want[] = {FRAME_HELLO, FRAME_CLOCK_SAMPLE, FRAME_HEARTBEAT,
				       FRAME_BATCH, FRAME_STACK,        FRAME_BATCH,
				       FRAME_BATCH, FRAME_BATCH};
	struct rig *r = *state;

	r->with_stack = true;
	host_stream_heartbeat(r->stream);
	host_stream_drain(r->stream, 0);
	host_stream_drain(r->stream, 20); /* the same stack: known */
	kinds_are(r, want, sizeof(want));
	assert_int_equal(r->stack_events, 2);
}

static void test_what_is_added_arrives(void **state)
{
	static const uint8_t want[] = {FRAME_HELLO, FRAME_CLOCK_SAMPLE,     FRAME_VM_INFO,
				       FRAME_NOTE,  FRAME_ECHO_OBSERVATION, FRAME_VM_CLOCK};
	static struct message_vm_info info = {.vm = 1,
					      .name = "db",
					      .qemu_pid = 12,
					      .n_threads = 1,
					      .threads = {{.tid = 12, .is_vcpu = true}}};
	const struct message_note note = {.vm = 1, .kind = NOTE_THREADS, .text = "x"};
	const struct message_echo_observation o = {1, 2, 3, 4, 5};
	const struct message_vm_clock clock = {
		.vm = 1, .source = VM_CLOCK_DEBUGFS, .tsc = {.known = true, .offset = 5}};
	struct rig *r = *state;

	assert_int_equal(host_stream_follow(r->stream, &info), 0);
	assert_int_equal(host_stream_note(r->stream, &note), 0);
	assert_int_equal(host_stream_observation(r->stream, &o), 0);
	assert_int_equal(host_stream_vm_clock(r->stream, &clock), 0);
	kinds_are(r, want, sizeof(want));
	assert_string_equal(r->vm.name, "db");
	assert_true(r->vm.threads[0].is_vcpu);
}

/* The threads of one do not replace those of another. */
static void test_several_vms_are_announced(void **state)
{
	static const uint8_t want[] = {FRAME_HELLO, FRAME_CLOCK_SAMPLE, FRAME_VM_INFO,
				       FRAME_VM_INFO, FRAME_VM_INFO};
	static struct message_vm_info one = {.vm = 1, .name = "db", .qemu_pid = 12},
				      two = {.vm = 2, .name = "web", .qemu_pid = 13};
	struct rig *r = *state;

	/* More than the first room for threads. */
	one.n_threads = two.n_threads = 100;
	for (int i = 0; i < 100; i++) {
		one.threads[i] = (struct message_vm_thread){.tid = 100 + i, .is_vcpu = true};
		two.threads[i] = (struct message_vm_thread){.tid = 300 + i, .is_vcpu = true};
	}
	assert_int_equal(host_stream_follow(r->stream, &one), 0);
	assert_int_equal(host_stream_follow(r->stream, &two), 0);
	one.n_threads = 99;
	assert_int_equal(host_stream_follow(r->stream, &one), 0);
	kinds_are(r, want, sizeof(want));
	assert_string_equal(r->vm.name, "db");
	assert_int_equal(host_stream_level(r->stream, CAPTURE_SUMMARY), 0);
}

/* Before the first event, and again for readers that come later. */
static void test_chosen_events_are_described(void **state)
{
	static const uint8_t want[] = {FRAME_HELLO,       FRAME_CLOCK_SAMPLE, FRAME_USER_EVENTS,
				       FRAME_BATCH,       FRAME_HEARTBEAT,    FRAME_BATCH,
				       FRAME_USER_EVENTS, FRAME_HEARTBEAT};
	struct rig *r = *state;

	assert_string_equal(host_stream_events_failed(r->stream), "");
	host_stream_drain(r->stream, 20);
	host_stream_heartbeat(r->stream);
	host_stream_drain(r->stream, 10020);
	host_stream_heartbeat(r->stream);
	kinds_are(r, want, sizeof(want));
	assert_int_equal(r->user_events.n, 1);
	assert_int_equal(r->user_events.events[0].id, 1);
	assert_string_equal(r->user_events.events[0].name, "sched_process_exec");
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		RIG(test_it_introduces_itself),
		RIG(test_promises_hold_and_totals_balance),
		RIG(test_stacks_follow_their_drain),
		RIG(test_what_is_added_arrives),
		RIG(test_several_vms_are_announced),
		cmocka_unit_test_setup_teardown(test_chosen_events_are_described, rig_setup_chosen,
						rig_teardown),
	};

	if (opener_is_meant(argc, argv))
		_exit(opener_main(&unwind_body));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
