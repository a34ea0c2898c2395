/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that raw stack records become named stacks, each of which is written once, and events
 * within the waits that they explain; the number of stacks is limited. */
#include <errno.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/symbols/kernel_symbols.h"
#include "host-collector/record/stack_writer.h"
#include "host-collector/record/unwind.h"
#include "bpf/isolation/opener.h"
#include "proto/codec.h"
#include "proto/message.h"

enum { HZ = 2000000000 };
#define MS (HZ / 1000ull)

struct rig {
	struct stack_names *names;
	struct stack_writer *writer;
	struct frame_writer *frames;
	struct frame_reader reader;
	struct frame_unpacker *unpacker;
	struct batch_decoder *decoder;
	struct byte_buffer out;
	uint64_t now_ms;
	/* what came out of the last flush */
	size_t n_stacks, n_events, n_batches;
	struct message_stack stack; /* the last */
	struct vs_event events[256];
	uint64_t watermark;
};

static int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	bool names;

	r->names = stack_names_new();
	r->writer = stack_writer_new(HZ, r->names, &names);
	r->frames = frame_writer_new(1);
	r->unpacker = frame_unpacker_new();
	r->decoder = batch_decoder_new();
	frame_reader_init(&r->reader);
	*state = r;
	return 0;
}

static int rig_teardown(void **state)
{
	struct rig *r = *state;

	stack_writer_free(r->writer);
	stack_names_free(r->names);
	frame_writer_free(r->frames);
	frame_unpacker_free(r->unpacker);
	batch_decoder_free(r->decoder);
	frame_reader_fini(&r->reader);
	byte_buffer_fini(&r->out);
	free(r);
	return 0;
}

static void offer(struct rig *r, int32_t tid, enum vs_stack_role role, uint64_t address,
		  uint64_t time, uint64_t wait_ns, uint64_t now_ms)
{
	const uint64_t kernel[] = {address};
	const struct capture_stack stack = {.time = time,
					    .wait_ns = wait_ns,
					    .tid = tid,
					    .tgid = tid,
					    .explains = 500,
					    .cpu = 3,
					    .role = role,
					    .n_kernel = 1,
					    .kernel = kernel};

	stack_writer_offer(r->writer, &stack, 10, now_ms);
}

static void flush(struct rig *r, uint64_t promised, uint64_t promise)
{
	struct frame_view frame;
	const uint8_t *payload;
	struct batch batch;
	size_t len;

	r->out.len = 0;
	r->n_stacks = r->n_events = r->n_batches = 0;
	assert_int_equal(stack_writer_flush(r->writer, r->frames, promised, promise, r->now_ms,
					    &r->out, &batch),
			 0);
	if (r->out.len)
		frame_reader_push(&r->reader, r->out.data, r->out.len);
	while (frame_reader_next(&r->reader, &frame)) {
		assert_int_equal(frame_unpack(r->unpacker, &frame, &payload, &len), 0);
		assert_int_equal(frame.header.kind, FRAME_STACK);
		assert_int_equal(message_stack_unpack(payload, len, &r->stack), 0);
		r->n_stacks++;
	}
	if (!batch.n_events)
		return;
	assert_int_equal(batch.cpu, VS_CPU_COLLECTOR);
	assert_int_equal(batch_validate(&batch), 0);
	memcpy(r->events, batch.events, batch.n_events * sizeof(batch.events[0]));
	r->n_events = batch.n_events;
	r->watermark = batch.watermark;
	r->n_batches = 1;
}

static void test_events_lie_inside_their_waits(void **state)
{
	struct rig *r = *state;
	const uint64_t begin = 1000000 * MS;

	/* a waiter is stamped with the wait's begin, a waker with its end */
	offer(r, 500, VS_STACK_WAITER, 1000, begin, 300000000, 0);
	offer(r, 600, VS_STACK_WAKER, 2000, begin + 295 * MS, 295000000, 0);
	flush(r, begin + 280 * MS, begin + 301 * MS);
	assert_int_equal(r->n_stacks, 2);
	assert_int_equal(r->n_events, 2);
	assert_int_equal(r->watermark, begin + 301 * MS);
	for (size_t i = 0; i < 2; i++) {
		const struct vs_event *e = &r->events[i];
		uint64_t end = begin + (e->pid == 600 ? 295 : 300) * MS;

		assert_int_equal(e->type, VS_EVENT_STACK);
		assert_int_equal(e->pid2, 500);
		assert_int_equal(e->seq, i);
		assert_in_range(e->time, end - MS, end - 1);
		assert_int_equal(e->arg1 & 0xff, e->pid == 600 ? VS_STACK_WAKER : VS_STACK_WAITER);
		assert_int_equal(e->arg1 >> 8, e->pid == 600 ? 295000000 : 300000000);
	}
	assert_int_equal(r->events[0].pid, 600);
}

/* A reader that takes the events in the order of time has the stack before the hit. The number is
 * no time. */
static void test_the_stack_of_a_hit_comes_right_before_the_hit(void **state)
{
	struct rig *r = *state;
	const uint64_t hit = 1000000 * MS;

	offer(r, 500, VS_STACK_HIT, 1000, hit, 4000000000, 0);
	flush(r, hit - 5 * MS, hit + 5 * MS);
	assert_int_equal(r->n_events, 1);
	assert_int_equal(r->events[0].arg1, 4000000000 << 8 | VS_STACK_HIT);
	assert_in_range(r->events[0].time, hit - MS, hit - 1);
	/* But not before what was promised. */
	offer(r, 500, VS_STACK_HIT, 1000, hit + 10 * MS, 1, 0);
	flush(r, hit + 10 * MS, hit + 11 * MS);
	assert_int_equal(r->events[0].time, hit + 10 * MS);
}

/* Each kind has its own limit. */
static void test_hits_leave_room_for_waits(void **state)
{
	struct rig *r = *state;

	for (uint32_t i = 0; i < 1000; i++)
		offer(r, 500, VS_STACK_HIT, 1000 + i, 1000000 * MS, i, 0);
	offer(r, 500, VS_STACK_WAITER, 1, 1000000 * MS, 300000000, 0);
	flush(r, 1, 2000000 * MS);
	assert_int_equal(r->n_events, 64 + 1);
}

static void test_nothing_is_stamped_before_a_promise(void **state)
{
	struct rig *r = *state;
	const uint64_t begin = 1000000 * MS, promised = begin + 300 * MS;

	offer(r, 500, VS_STACK_WAITER, 1000, begin, 300000000, 0);
	offer(r, 600, VS_STACK_WAKER, 2000, 5, 300000000, 0);
	flush(r, promised, promised + MS);
	assert_int_equal(r->events[0].time, promised);
	assert_int_equal(r->events[1].time, promised);
}

static void test_equal_stacks_are_told_once(void **state)
{
	struct rig *r = *state;
	uint32_t id;

	offer(r, 500, VS_STACK_WAITER, 1000, 5000 * MS, 1000000, 0);
	flush(r, 0, 1);
	assert_int_equal(r->n_stacks, 1);
	id = r->stack.id;
	assert_true(id > 0);
	assert_int_equal(r->events[0].arg0, id);
	for (int i = 0; i < 3; i++)
		offer(r, 500, VS_STACK_WAITER, 1000, 6000 * MS, 1000000, 0);
	offer(r, 501, VS_STACK_WAITER, 1000, 7000 * MS, 1000000, 0); /* another thread's */
	offer(r, 500, VS_STACK_WAITER, 1001, 8000 * MS, 1000000, 0); /* another place */
	flush(r, 0, 1);
	assert_int_equal(r->n_stacks, 2);
	assert_int_equal(r->n_events, 5);
	for (int i = 0; i < 3; i++)
		assert_int_equal(r->events[i].arg0, id);
	assert_int_not_equal(r->events[3].arg0, id);
	assert_int_not_equal(r->events[4].arg0, id);
	assert_int_not_equal(r->events[4].arg0, r->events[3].arg0);
	assert_int_equal(r->events[4].seq, 5);
	flush(r, 0, 1); /* nothing left */
	assert_int_equal(r->out.len, 0);
}

static void test_a_flood_is_bounded(void **state)
{
	struct rig *r = *state;
	struct stack_writer_stats stats;
	size_t named = 0;

	for (uint64_t ms = 0; ms < 2000; ms += 20) {
		for (int i = 0; i < 100; i++)
			offer(r, 500 + i, VS_STACK_WAITER, 1000, (5000 + ms) * MS, 1000000, ms);
		flush(r, 0, 1);
		named += r->n_events;
	}
	assert_in_range(named, 350, 200 * 2 + 64);
	stack_writer_stats_get(r->writer, &stats);
	assert_int_equal(stats.seen, 10000);
	assert_int_equal(stats.named, named);
	assert_int_equal(stats.skipped, 10000 - named);
}

/* However many short waits there are, the stacks of long ones find room. */
static void test_short_waits_leave_room_for_long_ones(void **state)
{
	struct rig *r = *state;
	size_t shorts = 0, longs = 0;

	for (uint64_t ms = 0; ms < 2000; ms += 20) {
		for (int i = 0; i < 100; i++)
			offer(r, 500, VS_STACK_SHORT, 1000, (5000 + ms) * MS, 1000000, ms);
		offer(r, 500, VS_STACK_WAITER, 1000, (5000 + ms) * MS, 30000000, ms);
		flush(r, 0, 1);
		for (size_t i = 0; i < r->n_events; i++) {
			shorts += (r->events[i].arg1 & 0xff) == VS_STACK_SHORT;
			longs += (r->events[i].arg1 & 0xff) == VS_STACK_WAITER;
		}
	}
	assert_in_range(shorts, 190, 100 * 2 + 64);
	assert_int_equal(longs, 100);
}

static struct capture_stack user_record(pid_t tgid, uint64_t time)
{
	return (struct capture_stack){.time = time,
				      .tid = tgid,
				      .tgid = tgid,
				      .explains = 500,
				      .wait_ns = 1000000,
				      .role = VS_STACK_WAKER,
				      .has_user = true,
				      .user = {.regs[16] = 0x1234567}};
}

static void user_offer(struct rig *r, pid_t tgid, uint64_t time)
{
	const struct capture_stack stack = user_record(tgid, time);

	stack_writer_offer(r->writer, &stack, 0, r->now_ms);
}

static void test_stack_of_a_process_that_is_gone_is_no_event(void **state)
{
	struct rig *r = *state;
	struct stack_writer_stats stats = {0};

	user_offer(r, 1 << 29, 5000 * MS);
	for (int i = 0; i < 2000 && !stats.empty; i++) {
		flush(r, 0, 1);
		assert_int_equal(r->out.len, 0);
		stack_writer_stats_get(r->writer, &stats);
		usleep(10000);
	}
	assert_int_equal(stats.empty, 1);
	assert_int_equal(stats.bare, 0);
}

static void test_what_waits_for_names_holds_the_promise_back_but_not_for_ever(void **state)
{
	struct rig *r = *state;
	const uint64_t time = 1000000 * MS;
	struct stack_writer_stats stats;

	assert_int_equal(stack_writer_hold(r->writer), UINT64_MAX);
	stack_writer_expect(r->writer, getpid());
	kill(namer_opener(r->names->namer), SIGSTOP); /* no answer comes */
	user_offer(r, getpid(), time);
	flush(r, time - 10 * MS, time + MS);
	assert_int_equal(r->out.len, 0);
	assert_in_range(stack_writer_hold(r->writer), time - 2 * MS, time);
	r->now_ms += 300;
	flush(r, time - 10 * MS, time + MS);
	assert_int_equal(r->n_events, 1);
	assert_in_range(r->events[0].time, time - 2 * MS, time);
	assert_int_equal(r->watermark, time + MS);
	assert_int_equal(stack_writer_hold(r->writer), UINT64_MAX);
	/* where it was is told all the same */
	assert_int_equal(r->stack.n_frames, 1);
	assert_int_equal(r->stack.frames[0].offset, 0x1234567);
	assert_string_equal(r->stack.frames[0].symbol, "");
	stack_writer_stats_get(r->writer, &stats);
	assert_int_equal(stats.bare, 1);
}

static void test_an_equal_record_needs_no_second_answer(void **state)
{
	struct rig *r = *state;
	struct stack_writer_stats stats = {0};
	uint32_t id;

	user_offer(r, getpid(), 5000 * MS);
	for (int i = 0; i < 2000 && !r->n_events; i++) {
		flush(r, 0, 1);
		usleep(10000);
	}
	assert_int_equal(r->n_stacks, 1);
	id = r->stack.id;
	r->now_ms += 29000;
	user_offer(r, getpid(), 6000 * MS);
	flush(r, 0, 1);
	assert_int_equal(stack_writer_hold(r->writer), UINT64_MAX);
	assert_int_equal(r->n_stacks, 0);
	assert_int_equal(r->n_events, 1);
	assert_int_equal(r->events[0].arg0, id);
	/* Another process's, and the same one's after a while, which may have other files then. */
	user_offer(r, 1 << 29, 7000 * MS);
	for (int i = 0; i < 2000 && !stats.empty; i++) {
		flush(r, 0, 1);
		assert_int_equal(r->n_events, 0);
		stack_writer_stats_get(r->writer, &stats);
		usleep(10000);
	}
	assert_int_equal(stats.empty, 1);
	r->now_ms += 1000;
	user_offer(r, getpid(), 8000 * MS);
	flush(r, 0, 1);
	assert_int_equal(r->n_events, 0);
}

/* Its number stands for it, whatever else it contains. */
static void test_a_known_record_needs_no_content(void **state)
{
	struct rig *r = *state;
	struct capture_stack record = user_record(getpid(), 5000 * MS);
	uint32_t id;

	assert_int_equal(stack_writer_find(r->writer, &record, r->now_ms), 0);
	user_offer(r, getpid(), 5000 * MS);
	for (int i = 0; i < 2000 && !r->n_events; i++) {
		flush(r, 0, 1);
		usleep(10000);
	}
	id = r->stack.id;
	assert_true(id > 0);
	assert_int_equal(stack_writer_find(r->writer, &record, r->now_ms + 29000), id);
	assert_int_equal(stack_writer_find(r->writer, &record, r->now_ms + 30000), 0);
	record.user.regs[0]++;
	assert_int_equal(stack_writer_find(r->writer, &record, r->now_ms), 0);
	record.known = id;
	record.time = 6000 * MS;
	stack_writer_offer(r->writer, &record, 0, r->now_ms);
	flush(r, 0, 1);
	assert_int_equal(stack_writer_hold(r->writer), UINT64_MAX);
	assert_int_equal(r->n_stacks, 0);
	assert_int_equal(r->n_events, 1);
	assert_int_equal(r->events[0].arg0, id);
}

static void test_kernel_addresses_are_named(void **state)
{
	struct rig *r = *state;
	struct kallsyms *k = NULL;
	uint64_t schedule = 0;
	char line[256];
	FILE *f;

	if (kallsyms_load(NULL, &k)) {
		print_message("SKIP: kernel addresses are hidden from us (not root)\n");
		skip();
	}
	kallsyms_free(k);
	f = fopen("/proc/kallsyms", "re");
	while (!schedule && fgets(line, sizeof(line), f)) {
		unsigned long long address;

		if (strstr(line, " T schedule\n") && sscanf(line, "%llx", &address) == 1)
			schedule = address;
	}
	fclose(f);
	assert_true(schedule);
	offer(r, 500, VS_STACK_WAITER, schedule + 5, 5000 * MS, 1000000, 0);
	flush(r, 0, 1);
	assert_int_equal(r->stack.n_frames, 1);
	assert_string_equal(r->stack.frames[0].symbol, "schedule");
	assert_string_equal(r->stack.frames[0].module, "kernel");
	assert_int_equal(r->stack.frames[0].offset, 5);
	assert_true(r->stack.frames[0].kernel);
}

/* Returns the address of the first code symbol of this name, or 0 if the kernel lacks or hides it.
 */
static uint64_t kernel_address(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	char line[256], found[128];
	uint64_t result = 0;

	while (f && !result && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %*c %127s", &address, found) == 2 && !strcmp(found, name))
			result = address;
	}
	if (f)
		fclose(f);
	return result;
}

static void test_what_an_interrupt_met_has_woken_nobody(void **state)
{
	struct rig *r = *state;
	const uint64_t schedule = kernel_address("schedule"),
		       entry = kernel_address("asm_sysvec_apic_timer_interrupt");
	const uint64_t kernel[] = {schedule + 5, entry + 5, schedule + 9};
	struct capture_stack stack = {.time = 5000 * MS,
				      .tid = getpid(),
				      .tgid = getpid(),
				      .explains = 500,
				      .wait_ns = 1000000,
				      .role = VS_STACK_WAKER,
				      .n_kernel = 3,
				      .kernel = kernel,
				      .has_user = true,
				      .user = {.regs[16] = 0x1234567}};

	if (!schedule || !entry) {
		print_message("SKIP: kernel addresses are hidden from us, or it is not x86\n");
		skip();
	}
	stack_writer_offer(r->writer, &stack, 0, 0);
	flush(r, 0, 1); /* at once: no user frames are to be named */
	assert_int_equal(r->n_events, 1);
	assert_int_equal(r->stack.n_frames, 2);
	assert_string_equal(r->stack.frames[1].symbol, "asm_sysvec_apic_timer_interrupt");
	assert_int_equal(r->stack.pid, 0);
	assert_int_equal(r->events[0].pid, getpid());
	/* Directly from user mode, and of another task. */
	stack.n_kernel = 2;
	stack.tid++;
	stack_writer_offer(r->writer, &stack, 0, 0);
	flush(r, 0, 1);
	assert_int_equal(r->n_events, 1);
	assert_int_equal(r->n_stacks, 0);
	assert_int_equal(r->events[0].pid, getpid() + 1);
	/* A task that waits was not interrupted in place of another one. */
	stack.role = VS_STACK_WAITER;
	stack_writer_offer(r->writer, &stack, 0, 0);
	flush(r, 0, 1);
	assert_int_equal(r->n_events, 0);
}

#define RIG(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)

int main(int argc, char **argv)
{
	if (opener_is_meant(argc, argv))
		_exit(opener_main(&unwind_body));

	const struct CMUnitTest tests[] = {
		RIG(test_events_lie_inside_their_waits),
		RIG(test_the_stack_of_a_hit_comes_right_before_the_hit),
		RIG(test_hits_leave_room_for_waits),
		RIG(test_nothing_is_stamped_before_a_promise),
		RIG(test_equal_stacks_are_told_once),
		RIG(test_a_flood_is_bounded),
		RIG(test_short_waits_leave_room_for_long_ones),
		RIG(test_stack_of_a_process_that_is_gone_is_no_event),
		RIG(test_what_waits_for_names_holds_the_promise_back_but_not_for_ever),
		RIG(test_an_equal_record_needs_no_second_answer),
		RIG(test_a_known_record_needs_no_content),
		RIG(test_kernel_addresses_are_named),
		RIG(test_what_an_interrupt_met_has_woken_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
