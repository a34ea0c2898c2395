/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that of the texts of all messages, only the listed ones remain in redacted frames. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/cli/redact.h"
#include "proto/codec.h"
#include "proto/event_fields.h"
#include "proto/message.h"
#include "proto/message_fields.h"

#define SECRET "Secret"

struct fixture {
	struct redactor *redactor;
	struct frame_writer *frames;
	struct frame_unpacker *unpacker;
	struct byte_buffer payload, frame;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->redactor = redactor_new();
	f->frames = frame_writer_new(77);
	f->unpacker = frame_unpacker_new();
	*state = f;
	return f->redactor && f->frames && f->unpacker ? 0 : -1;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	redactor_free(f->redactor);
	frame_writer_free(f->frames);
	frame_unpacker_free(f->unpacker);
	byte_buffer_fini(&f->payload);
	byte_buffer_fini(&f->frame);
	free(f);
	return 0;
}

/* Sends the payload through the redactor. Returns 0 and the new payload, or its error. */
static int redact(struct fixture *f, enum frame_kind kind, const uint8_t **payload, size_t *len)
{
	struct frame_view in, out;
	int err;

	f->frame.len = 0;
	assert_int_equal(frame_write(f->frames, kind, f->payload.data, f->payload.len, &f->frame),
			 0);
	assert_int_equal(frame_parse(f->frame.data, f->frame.len, &in), 0);
	err = redactor_frame(f->redactor, &in, &out);
	if (err)
		return err;
	assert_int_equal(out.header.session_id, 77);
	assert_int_equal(out.header.frame_seq, in.header.frame_seq);
	assert_int_equal(out.header.kind, kind);
	return frame_unpack(f->unpacker, &out, payload, len);
}

static size_t *count_of(const struct message_field *field, char *m)
{
	return (size_t *)(m + field->count_at);
}

/* Calls `each` for every text of the message, of all elements of its lists. */
static void texts_walk(const struct message_layout *layout, char *m, bool fill,
		       void (*each)(const char *name, char *text, size_t bytes))
{
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct message_field *field = &layout->fields[i];
		char *at = m + field->at;

		if (field->flags & FIELD_ALLOCATED)
			continue; /* numbers only */
		if (fill && (field->form == FIELD_LIST || field->form == FIELD_TEXTS))
			*count_of(field, m) = 2;
		if (fill && field->form == FIELD_NUMBER && field->least)
			memcpy(at, &field->least, field->bytes);
		switch (field->form) {
		case FIELD_TEXT:
			each(field->name, at, field->bytes);
			break;
		case FIELD_TEXTS:
			for (size_t k = 0; k < *count_of(field, m); k++)
				each(field->name, at + k * field->bytes, field->bytes);
			break;
		case FIELD_PART:
			texts_walk(field->part, at, fill, each);
			break;
		case FIELD_LIST:
			for (size_t k = 0; k < *count_of(field, m); k++)
				texts_walk(field->part, at + k * field->bytes, fill, each);
			break;
		default:
			break;
		}
	}
}

static void text_plant(const char *name, char *text, size_t bytes)
{
	(void)name;
	snprintf(text, bytes, SECRET);
}

static void text_check(const char *name, char *text, size_t bytes)
{
	static const char *const pass[] = {"hello.program_version", "hello.kernel_release",
					   "vm_info.accelerator"};

	(void)bytes;
	for (size_t i = 0; i < sizeof(pass) / sizeof(pass[0]); i++) {
		if (!strcmp(name, pass[i])) {
			assert_string_equal(text, SECRET);
			return;
		}
	}
	if (strstr(text, SECRET))
		fail_msg("%s passes", name);
}

static void test_no_text_passes_that_is_not_listed(void **state)
{
	struct fixture *f = *state;
	size_t n = 0;

	for (unsigned kind = 1; kind < FRAME_KIND_LIMIT; kind++) {
		const struct message_layout *layout = frame_kind_row((uint8_t)kind)->message;
		const uint8_t *payload;
		size_t len;
		char *m;

		if (!layout || !layout->bytes || kind == FRAME_EXIT_SUMMARY ||
		    kind == FRAME_RECORDING_END || kind == FRAME_VM_CLOCK)
			continue; /* they have no text */
		m = calloc(1, layout->bytes);
		assert_non_null(m);
		texts_walk(layout, m, true, text_plant);
		f->payload.len = 0;
		assert_int_equal(message_pack(layout, m, &f->payload), 0);
		assert_int_equal(redact(f, (enum frame_kind)kind, &payload, &len), 0);
		memset(m, 0, layout->bytes);
		assert_int_equal(message_unpack(layout, payload, len, m), 0);
		texts_walk(layout, m, false, text_check);
		free(m);
		n++;
	}
	assert_true(n > 10);
}

static void test_names_are_the_same_everywhere(void **state)
{
	static struct message_vm_info info, out;
	struct fixture *f = *state;
	const uint8_t *payload;
	char name[64], other[64];
	size_t len;

	memset(&info, 0, sizeof(info));
	info.vm = 1;
	snprintf(info.name, sizeof(info.name), "shop");
	info.n_threads = 3;
	snprintf(info.threads[0].comm, sizeof(info.threads[0].comm), "CPU 0/KVM");
	snprintf(info.threads[1].comm, sizeof(info.threads[1].comm), "CPU of shop");
	snprintf(info.threads[2].comm, sizeof(info.threads[2].comm), "CPU of shop");
	for (int i = 0; i < 3; i++)
		info.threads[i].tid = 100 + i;
	assert_string_equal(redactor_vm(f->redactor, "bank", name, sizeof(name)), "vm-a");
	assert_int_equal(message_vm_info_pack(&info, &f->payload), 0);
	assert_int_equal(redact(f, FRAME_VM_INFO, &payload, &len), 0);
	assert_int_equal(message_vm_info_unpack(payload, len, &out), 0);
	assert_string_equal(out.name, "vm-b");
	assert_string_equal(out.threads[0].comm, "CPU 0/KVM");
	assert_string_equal(out.threads[1].comm, "task-a");
	assert_string_equal(out.threads[2].comm, "task-a");
	assert_int_equal(out.threads[2].tid, 102);
	assert_string_equal(redactor_vm(f->redactor, "shop", name, sizeof(name)), "vm-b");
	for (int i = 2; i < 26 + 26; i++) {
		snprintf(other, sizeof(other), "vm %d", i);
		redactor_vm(f->redactor, other, name, sizeof(name));
	}
	assert_string_equal(name, "vm-az");
	assert_string_equal(redactor_vm(f->redactor, "bank", name, sizeof(name)), "vm-a");
}

static void test_what_verdicts_need_stays(void **state)
{
	static struct message_stack stack, out;
	struct message_note note = {.vm = 1, .kind = NOTE_VM_EVENT}, note_out;
	struct fixture *f = *state;
	const uint8_t *payload;
	size_t len;

	memset(&stack, 0, sizeof(stack));
	stack.n_frames = 3;
	snprintf(stack.frames[0].symbol, sizeof(stack.frames[0].symbol), "do_signal_stop");
	stack.frames[0].kernel = true;
	snprintf(stack.frames[1].symbol, sizeof(stack.frames[1].symbol), "kvm_cpu_exec");
	snprintf(stack.frames[1].module, sizeof(stack.frames[1].module), "qemu-system-x86_64");
	snprintf(stack.frames[2].symbol, sizeof(stack.frames[2].symbol), SECRET);
	snprintf(stack.frames[2].module, sizeof(stack.frames[2].module), "qemu-" SECRET);
	assert_int_equal(message_stack_pack(&stack, &f->payload), 0);
	assert_int_equal(redact(f, FRAME_STACK, &payload, &len), 0);
	assert_int_equal(message_stack_unpack(payload, len, &out), 0);
	assert_string_equal(out.frames[0].symbol, "do_signal_stop");
	assert_string_equal(out.frames[1].symbol, "kvm_cpu_exec");
	assert_string_equal(out.frames[2].symbol, "");
	assert_string_equal(out.frames[2].module, "");

	snprintf(note.text, sizeof(note.text), "the guest was reset (QMP RESET, " SECRET ")");
	f->payload.len = 0;
	assert_int_equal(message_note_pack(&note, &f->payload), 0);
	assert_int_equal(redact(f, FRAME_NOTE, &payload, &len), 0);
	assert_int_equal(message_note_unpack(payload, len, &note_out), 0);
	assert_string_equal(note_out.text, "(QMP RESET)");
}

static void test_events_have_no_names_and_no_chosen_values(void **state)
{
	struct vs_event events[] = {
		{.type = VS_EVENT_TASK_NAME, .time = 1, .seq = 1, .pid = 7},
		{.type = VS_EVENT_TASK_NAME, .time = 2, .seq = 2, .pid = 8},
		{.type = VS_EVENT_USER, .time = 3, .seq = 3, .pid = 7, .pid2 = 1, .arg0 = 42},
		{.type = VS_EVENT_USER_MORE, .time = 3, .seq = 4, .pid = 7, .pid2 = 1, .arg1 = 42},
		{.type = 200, .time = 4, .seq = 5, .pid = 42, .pid2 = 42, .arg0 = 42, .arg1 = 42},
	};
	const struct batch batch = {.n_events = 5, .events = events, .watermark = 4};
	struct batch_encoder *encoder = batch_encoder_new();
	struct batch_decoder *decoder = batch_decoder_new();
	struct fixture *f = *state;
	struct batch out;
	const uint8_t *payload;
	char comm[16] = SECRET;
	size_t len;

	assert_non_null(encoder);
	assert_non_null(decoder);
	batch_encoder_relay(encoder);
	ev_set_task_comm(&events[0], comm);
	snprintf(comm, sizeof(comm), "swapper/0");
	ev_set_task_comm(&events[1], comm);
	assert_int_equal(batch_encode(encoder, &batch, &f->payload), 0);
	assert_int_equal(redact(f, FRAME_BATCH, &payload, &len), 0);
	assert_int_equal(batch_decode(decoder, payload, len, &out), 0);
	assert_int_equal(out.n_events, 5);
	assert_int_equal(out.watermark, 4);
	ev_task_comm(&out.events[0], comm);
	assert_string_equal(comm, "task-a");
	assert_int_equal(out.events[0].pid, 7);
	ev_task_comm(&out.events[1], comm);
	assert_string_equal(comm, "swapper/0");
	for (size_t i = 2; i < 5; i++) {
		assert_int_equal(out.events[i].arg0, 0);
		assert_int_equal(out.events[i].arg1, 0);
		assert_int_equal(out.events[i].time, events[i].time);
	}
	assert_int_equal(out.events[2].pid2, 1);
	assert_int_equal(out.events[4].pid, 0);
	batch_encoder_free(encoder);
	batch_decoder_free(decoder);
}

static void test_what_cannot_be_read_is_left_out(void **state)
{
	struct fixture *f = *state;
	const uint8_t *payload;
	size_t len;

	assert_int_equal(byte_buffer_reserve(&f->payload, 64), 0);
	memset(f->payload.data, 0xff, 64);
	f->payload.len = 64;
	for (unsigned kind = 1; kind < 256; kind++)
		assert_int_equal(redact(f, (enum frame_kind)kind, &payload, &len), -ENODATA);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_no_text_passes_that_is_not_listed),
		TEST(test_names_are_the_same_everywhere),
		TEST(test_what_verdicts_need_stays),
		TEST(test_events_have_no_names_and_no_chosen_values),
		TEST(test_what_cannot_be_read_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
