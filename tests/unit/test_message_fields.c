// SPDX-License-Identifier: GPL-2.0-only
/* Tests every row of the catalogue of messages: each field of the wire has a row, and each bound
 * (listed here again) is applied to messages of a peer and of a decoder process. The test fails if
 * a row loses its bound, or if a bound is not listed here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/frame_kinds.h"
#include "proto/message.h"

/* Numbers that a message must not exceed. All other numbers may have any value. */
static struct bound {
	const char *name;
	int64_t least;
	uint64_t most;
	int error;
	const char *only_if; /* the bool that must be true; NULL: none */
	bool seen;
} bounds[] = {
	{"cpu.cpu", 0, 1023, -E2BIG, NULL, false},
	{"hello.role", 1, 2, -EBADMSG, NULL, false},
	{"hello.clock", 1, 3, -EBADMSG, NULL, false},
	{"hello.clock_hz", 1, UINT64_MAX, -EBADMSG, NULL, false},
	{"vm_clock_pvclock.shift", -31, 31, -EBADMSG, NULL, false},
	{"vm_clock_pvclock.flags", 0, 255, -EBADMSG, NULL, false},
	{"vm_clock_pvclock.mul", 1, UINT32_MAX, -EBADMSG, NULL, false},
	{"cpu_steal.cpu", 0, 1023, -E2BIG, NULL, false},
	{"vm_thread.vcpu", 0, 1023, -E2BIG, "vm_thread.is_vcpu", false},
	{"note.kind", 1, 14, -EBADMSG, NULL, false},
	{"vm_clock_tsc.frac_bits", 0, 63, -EBADMSG, NULL, false},
	{"vm_clock.vcpu", 0, INT32_MAX, -EBADMSG, NULL, false},
	{"vm_clock.source", 1, 6, -EBADMSG, NULL, false},
	{"exit_cell.vcpu", 0, 2047, -EBADMSG, NULL, false},
	{"exit_cell.isa", 1, 2, -EBADMSG, NULL, false},
	{"user_event.id", 1, 65535, -EBADMSG, NULL, false},
	{"user_field.type", 1, 4, -EBADMSG, NULL, false},
	{"user_field.bytes", 1, 64, -EBADMSG, NULL, false},
	{"task_origin.tid", 1, INT32_MAX, -EBADMSG, NULL, false},
	{"task_origin.tgid", 1, INT32_MAX, -EBADMSG, NULL, false},
	{"task_origin.vcpu", 0, 1023, -E2BIG, "task_origin.vcpu_known", false},
};

/* The first must not be above the second. */
static struct order {
	const char *name, *above;
	bool seen;
} orders[] = {
	{"hello.protocol_min", "hello.protocol_max", false},
	{"vm_clock.from_min", "vm_clock.from_max", false},
	{"cpu_quota.from", "cpu_quota.until", false},
	{"task_origin.began", "task_origin.seen", false},
};

/* Elements of an array at most. */
static struct limit {
	const char *name;
	uint32_t elements;
	bool seen;
} limits[] = {
	{"hello.cpus", 1024, false},
	{"steal.cpus", 1024, false},
	{"heartbeat.aggregated", EVENT_CLASSES, false},
	{"kernel_log.lines", 64, false},
	{"stack.frames", 128, false},
	{"config.tasks", 8, false},
	{"config.events", 16, false},
	{"config_reply.limits", 16, false},
	{"vm_info.threads", 2048, false},
	{"recording_end.checkpoints", 65536, false},
	{"cpu_quota.vcpus", 1024, false},
	{"exit_summary.cells", 4096, false},
	{"exit_cell.buckets", VS_EXIT_BUCKETS, false},
	{"task_origins.tasks", 64, false},
	{"user_events.events", 32, false},
	{"user_event.fields", 16, false},
};

#define N(array) (sizeof(array) / sizeof((array)[0]))
#define FIND(array, wanted, out)                                                                   \
	do {                                                                                       \
		(out) = NULL;                                                                      \
		for (size_t i_ = 0; i_ < N(array); i_++)                                           \
			if (!strcmp((array)[i_].name, wanted))                                     \
				(out) = &(array)[i_];                                              \
		if (out)                                                                           \
			(out)->seen = true;                                                        \
	} while (0)

static const struct {
	const char *name;
	const struct message_layout *layout;
} messages[] = {
#define X(message) {#message, &message_##message##_layout},
	VS_MESSAGES(X)
#undef X
};

enum { PATH_MAX_FIELDS = 4 };

/* A message as protobuf-c's structs, and the way to the field that is looked at. */
struct visit {
	const struct message_layout *top;
	char *wire;
	const struct message_field *path[PATH_MAX_FIELDS];
	size_t depth;
};

static void *load(const void *at)
{
	void *p;

	memcpy(&p, at, sizeof(p));
	return p;
}

static void store(void *at, const void *p)
{
	memcpy(at, &p, sizeof(p));
}

static void count_store(void *at, size_t n)
{
	memcpy(at, &n, sizeof(n));
}

static void number_store(void *at, uint32_t bytes, uint64_t value)
{
	memcpy(at, &value, bytes); /* little endian */
}

/* ---- a message that is valid, with one element in each array ---- */

static char *wire_new(const struct message_layout *layout)
{
	char *w = calloc(1, layout->wire->sizeof_message);
	struct bound *bound;

	protobuf_c_message_init(layout->wire, (ProtobufCMessage *)w);
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct message_field *f = &layout->fields[i];
		void **list = calloc(2, sizeof(*list));
		char *part = f->part ? wire_new(f->part) : NULL;

		if (f->wire_count_at)
			count_store(w + f->wire_count_at, f->form == FIELD_PAIRS ? 2 : 1);
		if (f->form == FIELD_NUMBER) {
			FIND(bounds, f->name, bound);
			number_store(w + f->wire_at, f->wire_bytes,
				     bound ? (uint64_t)bound->least : 1);
		} else if (f->form == FIELD_TEXT) {
			store(w + f->wire_at, "x");
		} else if (f->form == FIELD_PART) {
			store(w + f->wire_at, part);
		} else {
			list[0] = f->form == FIELD_TEXTS ? (void *)"x" : part;
			store(w + f->wire_at, list);
		}
		if (f->form == FIELD_TEXT || f->form == FIELD_NUMBER || f->form == FIELD_PART)
			free(list);
	}
	return w;
}

/* The part, or the one element. */
static char *part_of(const struct message_field *f, const char *w)
{
	char *at = load(w + f->wire_at);

	return f->form == FIELD_PART ? at : load(at);
}

static void wire_free(const struct message_layout *layout, char *w)
{
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct message_field *f = &layout->fields[i];
		if (f->form == FIELD_NUMBER || f->form == FIELD_TEXT)
			continue;
		if (f->part)
			wire_free(f->part, part_of(f, w));
		if (f->form != FIELD_PART)
			free(load(w + f->wire_at));
	}
	free(w);
}

/* The struct that the path leads to, in an unpacked message. */
static char *resolve(const struct visit *v, char *m)
{
	for (size_t i = 0; i + 1 < v->depth; i++) {
		m += v->path[i]->at;
		if (v->path[i]->flags & FIELD_ALLOCATED)
			m = load(m);
	}
	return m;
}

static void unpacked_free(const struct message_layout *layout, char *m)
{
	for (size_t i = 0; i < layout->n_fields; i++)
		if (layout->fields[i].flags & FIELD_ALLOCATED)
			free(load(m + layout->fields[i].at));
	free(m);
}

/* Packs the wire's structs and unpacks them; *out, if wanted, is the caller's. */
static int unpack(const struct visit *v, char **out)
{
	const ProtobufCMessage *w = (ProtobufCMessage *)v->wire;
	const size_t len = protobuf_c_message_get_packed_size(w);
	uint8_t *payload = malloc(len + 1);
	char *m = calloc(1, v->top->bytes);
	int err;

	protobuf_c_message_pack(w, payload);
	err = message_unpack(v->top, payload, len, m);
	free(payload);
	if (out)
		*out = m;
	else
		unpacked_free(v->top, m);
	return err;
}

static void expect(const struct visit *v, int wanted)
{
	const int err = unpack(v, NULL);

	if (err != wanted)
		fail_msg("%s: %d, not %d", v->path[v->depth - 1]->name, err, wanted);
}

/* ---- each form of field ---- */

static void number_expect(const struct visit *v, char *w, uint64_t value, int wanted)
{
	const struct message_field *f = v->path[v->depth - 1];
	uint8_t before[8];

	memcpy(before, w + f->wire_at, f->wire_bytes);
	number_store(w + f->wire_at, f->wire_bytes, value);
	expect(v, wanted);
	memcpy(w + f->wire_at, before, f->wire_bytes);
}

static void condition_check(const struct visit *v, const struct message_layout *layout, char *w,
			    const struct bound *b)
{
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct message_field *f = &layout->fields[i];

		if (strcmp(f->name, b->only_if))
			continue;
		number_store(w + f->wire_at, f->wire_bytes, 0);
		number_expect(v, w, b->most + 1, 0);
		number_store(w + f->wire_at, f->wire_bytes, 1);
		return;
	}
	fail_msg("no field %s", b->only_if);
}

static bool is_above_another(const char *name)
{
	for (size_t i = 0; i < N(orders); i++)
		if (!strcmp(orders[i].above, name))
			return true;
	return false;
}

static void number_check(const struct visit *v, const struct message_layout *layout, char *w)
{
	const struct message_field *f = v->path[v->depth - 1];
	const bool is_signed = f->flags & FIELD_SIGNED;
	const uint64_t highest = f->flags & FIELD_BOOL ? 1
				 : f->wire_bytes == 8  ? UINT64_MAX
				 : is_signed           ? INT32_MAX
						       : UINT32_MAX;
	struct bound *b;
	struct order *o;

	FIND(bounds, f->name, b);
	FIND(orders, f->name, o);
	assert_true(f->wire_bytes == 4 || f->wire_bytes == 8);
	assert_true(f->bytes == f->wire_bytes || b || f->flags & FIELD_BOOL);
	number_expect(v, w, b ? (uint64_t)b->least : is_above_another(f->name), 0);
	number_expect(v, w, b ? b->most : o ? 1 : highest, 0);
	if (is_signed && !b)
		number_expect(v, w, (uint64_t)INT32_MIN, 0);
	if (b && (b->least || is_signed))
		number_expect(v, w, (uint64_t)(b->least - 1), b->error);
	if (b && b->most < highest)
		number_expect(v, w, b->most + 1, b->error);
	if (b && b->most < highest && !is_signed)
		number_expect(v, w, highest, b->error);
	if (b && b->only_if)
		condition_check(v, layout, w, b);
	if (o)
		number_expect(v, w, 2, -EBADMSG);
}

static void text_check(const struct visit *v, char *w)
{
	const struct message_field *f = v->path[v->depth - 1];
	char *text = malloc(f->bytes + 16), *m;

	memset(text, 'a', f->bytes + 16);
	text[0] = '\xff';
	text[f->bytes + 15] = 0;
	store(w + f->wire_at, text);
	assert_int_equal(unpack(v, &m), 0);
	assert_int_equal(strnlen(resolve(v, m) + f->at, f->bytes), f->bytes - 1);
	assert_memory_equal(resolve(v, m) + f->at, "\xef\xbf\xbd", 3);
	store(w + f->wire_at, "x");
	unpacked_free(v->top, m);
	free(text);
}

/* `n` times the one element. */
static void count_expect(const struct visit *v, char *w, size_t n, int wanted)
{
	const struct message_field *f = v->path[v->depth - 1];
	void **const one = load(w + f->wire_at), **many = calloc(n, sizeof(*many));

	for (size_t i = 0; i < n; i++)
		many[i] = f->form == FIELD_NUMBERS ? NULL : one[0];
	store(w + f->wire_at, many);
	count_store(w + f->wire_count_at, n);
	expect(v, wanted);
	store(w + f->wire_at, one);
	count_store(w + f->wire_count_at, 1);
	free(many);
}

static void array_check(const struct visit *v, char *w)
{
	const struct message_field *f = v->path[v->depth - 1];
	uint64_t *pairs = load(w + f->wire_at);
	struct limit *limit;

	FIND(limits, f->name, limit);
	if (!limit)
		fail_msg("%s has no limit here", f->name);
	if (f->form == FIELD_PAIRS) {
		pairs[0] = limit->elements - 1;
		expect(v, 0);
		pairs[0] = limit->elements;
		expect(v, -EBADMSG);
		pairs[0] = 0;
		count_store(w + f->wire_count_at, 1);
		expect(v, -EBADMSG);
		count_store(w + f->wire_count_at, 2);
	} else if (f->form == FIELD_NUMBERED) {
		char *one = load(load(w + f->wire_at)), *m, *without;

		/* Of a class that we do not know nothing is kept, nowhere. */
		count_store(w + f->wire_count_at, 0);
		assert_int_equal(unpack(v, &without), 0);
		count_store(w + f->wire_count_at, 1);
		for (uint32_t far = 0; far < 300; far++) {
			number_store(one + f->number_at, 4, limit->elements + far);
			assert_int_equal(unpack(v, &m), 0);
			assert_memory_equal(m, without, v->top->bytes);
			unpacked_free(v->top, m);
		}
		unpacked_free(v->top, without);
		number_store(one + f->number_at, 4, limit->elements - 1);
		assert_int_equal(unpack(v, &m), 0);
		assert_int_equal(resolve(v, m)[f->at + (size_t)(limit->elements - 1) * f->bytes],
				 1);
		unpacked_free(v->top, m);
	} else {
		count_expect(v, w, limit->elements, 0);
		count_expect(v, w, (size_t)limit->elements + 1, -E2BIG);
	}
}

static void part_check(const struct visit *v, char *w)
{
	const struct message_field *f = v->path[v->depth - 1];
	void *part = load(w + f->wire_at);
	char *m;
	int err;

	store(w + f->wire_at, NULL);
	err = unpack(v, &m);
	assert_int_equal(err, strcmp(f->name, "config_reply.in_force") ? 0 : -EBADMSG);
	for (size_t i = 0; i < f->bytes && !err; i++)
		assert_int_equal(resolve(v, m)[f->at + i], 0);
	unpacked_free(v->top, m);
	store(w + f->wire_at, part);
}

static void fields_visit(struct visit *v, const struct message_layout *layout, char *w)
{
	assert_true(v->depth < PATH_MAX_FIELDS);
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct message_field *f = &layout->fields[i];
		v->path[v->depth++] = f;
		if (f->form == FIELD_NUMBER)
			number_check(v, layout, w);
		else if (f->form == FIELD_TEXT)
			text_check(v, w);
		else if (f->form == FIELD_PART)
			part_check(v, w);
		else
			array_check(v, w);
		if (f->part)
			fields_visit(v, f->part, part_of(f, w));
		v->depth--;
	}
}

static void test_each_bound_of_each_field_is_applied(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(messages); i++) {
		struct visit v = {.top = messages[i].layout};

		v.wire = wire_new(v.top);
		assert_int_equal(unpack(&v, NULL), 0);
		fields_visit(&v, v.top, v.wire);
		wire_free(v.top, v.wire);
	}
	for (size_t i = 0; i < N(bounds); i++)
		assert_true(bounds[i].seen);
	for (size_t i = 0; i < N(orders); i++)
		assert_true(orders[i].seen);
	for (size_t i = 0; i < N(limits); i++)
		assert_true(limits[i].seen);
}

/* ---- rows and wire ---- */

static const struct message_field *row_of(const struct message_layout *layout, uint32_t wire_at)
{
	for (size_t i = 0; i < layout->n_fields; i++)
		if (layout->fields[i].wire_at == wire_at)
			return &layout->fields[i];
	return NULL;
}

/* number_at: of the field that has no row, as it is an element's number; 0: there is none. */
static void rows_check(const struct message_layout *layout, uint32_t number_at)
{
	size_t numbers = 0;

	for (unsigned int i = 0; i < layout->wire->n_fields; i++) {
		const ProtobufCFieldDescriptor *d = &layout->wire->fields[i];
		const struct message_field *f = row_of(layout, d->offset);

		if (number_at && d->offset == number_at) {
			numbers++;
			continue;
		}
		if (!f)
			fail_msg("%s.%s has no row", layout->wire->name, d->name);
		assert_true((d->label == PROTOBUF_C_LABEL_REPEATED) == (f->wire_count_at != 0));
		if (f->wire_count_at)
			assert_int_equal(f->wire_count_at, d->quantifier_offset);
		assert_true((d->type == PROTOBUF_C_TYPE_MESSAGE) == (f->part != NULL));
		assert_true((d->type == PROTOBUF_C_TYPE_STRING) ==
			    (f->form == FIELD_TEXT || f->form == FIELD_TEXTS));
		if (f->form == FIELD_NUMBERS)
			assert_int_equal(f->bytes, d->type == PROTOBUF_C_TYPE_UINT64 ? 8 : 4);
		if (f->part)
			rows_check(f->part, f->number_at);
	}
	assert_int_equal(layout->n_fields + numbers, layout->wire->n_fields);
}

static void test_each_field_of_the_wire_has_one_row(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(messages); i++)
		rows_check(messages[i].layout, 0);
}

/* ---- what another process wrote ---- */

static bool is_counted(const struct message_field *f)
{
	return f->form == FIELD_LIST || f->form == FIELD_NUMBERS || f->form == FIELD_TEXTS;
}

/* Sets the counts of all arrays. Returns whether there is one with a pointer. */
static bool counts_set(const struct message_layout *layout, char *m)
{
	bool allocated = false;

	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct message_field *f = &layout->fields[i];

		allocated |= f->flags & FIELD_ALLOCATED;
		if (is_counted(f))
			count_store(m + f->count_at, f->limit);
		if (f->form == FIELD_PART)
			counts_set(f->part, m + f->at);
		for (uint32_t k = 0; f->form == FIELD_LIST && !allocated && k < f->limit; k++)
			counts_set(f->part, m + f->at + k * f->bytes);
	}
	return allocated;
}

static void bool_check(const char *at)
{
	assert_in_range((uint8_t)*at, 0, 1);
}

static void cleaned_check(const struct message_layout *layout, char *m)
{
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct message_field *f = &layout->fields[i];
		const size_t n = f->form == FIELD_PART || f->form == FIELD_TEXT ? 1 : f->limit;

		if (f->flags & FIELD_BOOL)
			bool_check(m + f->at);
		if (f->form == FIELD_PART && f->if_at)
			bool_check(m + f->if_at);
		for (size_t j = 0; j < n; j++) {
			char *element = m + f->at + j * f->bytes;

			if (f->form == FIELD_TEXT || f->form == FIELD_TEXTS)
				assert_int_equal(element[f->bytes - 1], 0);
			if (f->part)
				cleaned_check(f->part, element);
		}
	}
}

static void excess_check(const struct message_layout *top, char *all,
			 const struct message_layout *layout, char *m)
{
	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct message_field *f = &layout->fields[i];
		struct byte_buffer packed = {0};

		if (f->form == FIELD_PART || f->form == FIELD_LIST)
			excess_check(top, all, f->part, m + f->at);
		if (!is_counted(f))
			continue;
		count_store(m + f->count_at, (size_t)f->limit + 1);
		assert_int_equal(message_clean(top, all), -EPROTO);
		assert_int_equal(message_pack(top, all, &packed), -E2BIG);
		count_store(m + f->count_at, SIZE_MAX);
		assert_int_equal(message_clean(top, all), -EPROTO);
		count_store(m + f->count_at, f->limit);
		assert_int_equal(packed.len, 0);
		byte_buffer_fini(&packed);
	}
}

static void test_a_struct_of_another_process_becomes_safe(void **state)
{
	(void)state;
	for (size_t i = 0; i < N(messages); i++) {
		const struct message_layout *layout = messages[i].layout;
		char *m = malloc(layout->bytes);

		memset(m, 0xff, layout->bytes);
		if (counts_set(layout, m)) {
			assert_int_equal(message_clean(layout, m), -EPROTO);
		} else {
			assert_int_equal(message_clean(layout, m), 0);
			cleaned_check(layout, m);
			excess_check(layout, m, layout, m);
		}
		free(m);
	}
}

/* A record (decode/record.h) ends after the used members. */
static void test_nothing_lies_behind_the_array_that_is_cut(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < FRAME_KIND_LIMIT; kind++) {
		const struct frame_kind_row *row = frame_kind_row((uint8_t)kind);
		struct message_tail tail;

		if (!(row->senders & FRAME_BY_AGENT) || !row->message->bytes)
			continue;
		tail = message_tail(row->message);
		assert_int_equal(tail.at + tail.bytes * tail.limit, row->message->bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_bound_of_each_field_is_applied),
		cmocka_unit_test(test_each_field_of_the_wire_has_one_row),
		cmocka_unit_test(test_a_struct_of_another_process_becomes_safe),
		cmocka_unit_test(test_nothing_lies_behind_the_array_that_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
