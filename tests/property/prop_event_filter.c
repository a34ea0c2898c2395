// SPDX-License-Identifier: GPL-2.0-only
/* Tests that a filter in the kernel keeps exactly the hits for which the expression is true.
 * Random expressions are compiled to tests, which this program runs on random records as
 * bpf/prog/user_hit.h does. The filter in the kernel's own syntax must keep these hits, too, and no
 * others if it is called exact. This program runs it by the kernel's rules
 * (kernel/trace/trace_events_filter.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/query/event_schema.h"
#include "bpf/chosen/event_filter.h"

enum { ROUNDS = 20000, RECORDS = 20 };

static uint64_t random_state = 88172645463325252;

static uint32_t random_below(uint32_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (uint32_t)(random_state >> 20) % n;
}

/* ---- a record ---- */

static const struct source_field fields[] = {
	{"s4", USER_SIGNED, 4, {.offset = 8, .bytes = 4, .is_signed = 1}},
	{"u2", USER_UNSIGNED, 2, {.offset = 12, .bytes = 2}},
	{"u8", USER_HEX, 8, {.offset = 16, .bytes = 8}},
	{"s8", USER_SIGNED, 8, {.offset = 24, .bytes = 8, .is_signed = 1}},
	{"text", USER_TEXT, 16, {.offset = 32, .bytes = 8}},
};
enum { N_FIELDS = sizeof(fields) / sizeof(fields[0]), RECORD_BYTES = 48 };

static const char *const texts[] = {"", "a", "fio", "fio-worker", "qemu-system-x8", "12345678"};

static void record_make(unsigned char record[RECORD_BYTES])
{
	static const uint64_t values[] = {0,
					  1,
					  2,
					  3,
					  7,
					  8,
					  0xff,
					  0x80000000,
					  0x7fffffffffffffff,
					  0x8000000000000000,
					  UINT64_MAX,
					  UINT64_MAX - 1};
	const char *text = texts[random_below(6)];

	for (size_t i = 0; i < RECORD_BYTES; i += 8)
		memcpy(record + i, &values[random_below(12)], 8);
	/* What lies behind the end of a text is not part of it. */
	memcpy(record + 32, text, strlen(text) + 1);
}

static uint64_t value_read(const unsigned char *record, const struct vs_user_value *v)
{
	uint64_t value = 0;
	unsigned int unused;

	if (v->from == VS_FROM_NUMBER)
		return (uint64_t)v->number;
	if (v->from == VS_FROM_CPU)
		return 3;
	if (!v->bytes || v->bytes > 8)
		return 0;
	assert_int_equal(v->from, VS_FROM_CONTEXT);
	assert_true(v->offset + v->bytes <= RECORD_BYTES);
	memcpy(&value, record + v->offset, v->bytes);
	unused = 64 - 8u * v->bytes;
	return v->is_signed ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

static bool tests_run(const struct capture_event *e, const unsigned char *record)
{
	uint32_t at = e->n_tests ? e->first_test : VS_USER_KEEP;

	for (size_t i = 0; i < VS_USER_TESTS_MAX && at < VS_USER_TESTS_MAX; i++) {
		const struct vs_user_test *t = &e->tests[at];
		const uint64_t value = value_read(record, &t->value) & t->mask;
		bool is = value == t->number;

		if (t->compare == VS_COMPARE_LESS)
			is = value < t->number;
		if (t->compare == VS_COMPARE_LESS_SIGNED)
			is = (int64_t)value < (int64_t)t->number;
		assert_true(at < e->n_tests);
		assert_true((is ? t->on_true : t->on_false) > at);
		at = is ? t->on_true : t->on_false;
	}
	assert_true(at == VS_USER_KEEP || at == VS_USER_SKIP);
	return at == VS_USER_KEEP;
}

/* ---- the same by the expression ---- */

static struct expr_value field_of(void *context, uint16_t index)
{
	const unsigned char *record = context;

	if (index == EVENT_COMMON_CPU)
		return (struct expr_value){.type = EXPR_UNSIGNED, .number = 3};
	if (fields[index].type == USER_TEXT)
		return (struct expr_value){.type = EXPR_TEXT,
					   .text = (const char *)record +
						   fields[index].first.offset};
	return (struct expr_value){.type = fields[index].type == USER_SIGNED ? EXPR_SIGNED
									     : EXPR_UNSIGNED,
				   .number = value_read(record, &fields[index].first)};
}

/* ---- the same as the kernel evaluates a filter of tracefs ---- */

struct kernel_filter {
	const char *at; /* what is left of it */
	const unsigned char *record;
};

static bool next_is(struct kernel_filter *f, const char *token)
{
	const size_t len = strlen(token);

	if (strncmp(f->at, token, len))
		return false;
	f->at += len;
	return true;
}

/* Cuts a number to the width and sign of a field, as the kernel casts it. */
static __int128 as_field(uint64_t number, const struct source_field *f)
{
	const unsigned int unused = 64 - 8 * f->bytes;

	if (f->type == USER_SIGNED)
		return (int64_t)(number << unused) >> unused;
	return number << unused >> unused;
}

static bool text_compare(struct kernel_filter *f, const struct source_field *field)
{
	const bool glob = next_is(f, "~");
	const char *text = (const char *)f->record + field->first.offset;
	char pattern[64];
	size_t len;

	assert_true(glob || next_is(f, "=="));
	assert_true(next_is(f, "\""));
	len = strcspn(f->at, "\"");
	assert_true(len < sizeof(pattern));
	snprintf(pattern, sizeof(pattern), "%.*s", (int)len, f->at);
	f->at += len + 1;
	if (glob && pattern[len - 1] == '*')
		return !strncmp(text, pattern, len - 1);
	return !strcmp(text, pattern);
}

static bool leaf_run(struct kernel_filter *f)
{
	static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">", "&"};
	static const struct source_field cpu = {"CPU", USER_SIGNED, 4, {.from = VS_FROM_CPU}};
	const size_t len = strcspn(f->at, "=!<>&~");
	const struct source_field *field = strncmp(f->at, "CPU", len) ? NULL : &cpu;
	__int128 value, number;
	size_t sign = 0;
	char *end;

	for (size_t i = 0; i < N_FIELDS && !field; i++) {
		if (strlen(fields[i].name) == len && !strncmp(f->at, fields[i].name, len))
			field = &fields[i];
	}
	assert_non_null(field);
	f->at += len;
	if (field->type == USER_TEXT)
		return text_compare(f, field);
	while (!next_is(f, signs[sign]))
		sign++;
	value = as_field(value_read(f->record, &field->first), field);
	number = as_field(*f->at == '-' ? (uint64_t)strtoll(f->at, &end, 10)
					: strtoull(f->at, &end, 10),
			  field);
	assert_true(end != f->at);
	f->at = end;
	return sign == 0   ? value == number
	       : sign == 1 ? value != number
	       : sign == 2 ? value <= number
	       : sign == 3 ? value >= number
	       : sign == 4 ? value < number
	       : sign == 5 ? value > number
			   : (value & number) != 0;
}

static bool kernel_run(struct kernel_filter *f)
{
	bool not = next_is(f, "!"), result;

	if (!next_is(f, "("))
		return leaf_run(f);
	result = kernel_run(f) != not ;
	assert_true(next_is(f, ")"));
	if (next_is(f, "&&("))
		result &= kernel_run(f);
	else if (next_is(f, "||("))
		result |= kernel_run(f);
	else
		return result;
	assert_true(next_is(f, ")"));
	return result;
}

static bool kernel_keeps(const struct capture_event *event, const unsigned char *record)
{
	struct kernel_filter f = {event->kernel_filter, record};
	const bool kept = !*f.at || kernel_run(&f);

	assert_int_equal(*f.at, 0);
	return kept;
}

/* ---- random expressions ---- */

static size_t comparison_write(char *out)
{
	static const char *const ops[] = {"==", "!=", "<", "<=", ">", ">="};
	static const char *const numbers[] = {"0",
					      "1",
					      "-1",
					      "3",
					      "0x7f + 1",
					      "1 << 63",
					      "~0",
					      "8",
					      "0x7fffffffffffffff",
					      "0xffffffffffffffff",
					      "-2"};
	static const char *const masks[] = {"", " & 1", " & 0xfe", " & ~7"};
	static const char *const names[] = {"s4", "u2", "u8", "s8", "cpu"};
	static const char *const patterns[] = {"fio*", "*", "qemu*", "12345678*", "a"};
	const char *name = names[random_below(5)], *number = numbers[random_below(11)];

	switch (random_below(6)) {
	case 0:
		return (size_t)sprintf(out, "text %s \"%s\"",
				       random_below(2) ? "==" : "!=", texts[random_below(6)]);
	case 1:
		return (size_t)sprintf(out, "text ~ \"%s\"", patterns[random_below(5)]);
	case 2:
		return (size_t)sprintf(out, "(%s)%s (%s%s)", number, ops[random_below(6)], name,
				       masks[random_below(4)]);
	case 3:
		return (size_t)sprintf(out, "(%s%s)", name, masks[random_below(4)]);
	default:
		return (size_t)sprintf(out, "(%s%s) %s %s", name, masks[random_below(4)],
				       ops[random_below(6)], number);
	}
}

static size_t expression_write(char *out, unsigned int depth)
{
	size_t n = 0;

	if (!depth || random_below(3) == 0)
		return comparison_write(out);
	n += (size_t)sprintf(out, "%s(", random_below(3) ? "" : "!");
	n += expression_write(out + n, depth - 1);
	n += (size_t)sprintf(out + n, ") %s (", random_below(2) ? "&&" : "||");
	n += expression_write(out + n, depth - 1);
	return n + (size_t)sprintf(out + n, ")");
}

static struct event_schema schema_make(void)
{
	struct event_schema s = {.n_fields = N_FIELDS};

	for (size_t i = 0; i < N_FIELDS; i++) {
		snprintf(s.fields[i].name, sizeof(s.fields[i].name), "%.31s", fields[i].name);
		s.fields[i].type = fields[i].type == USER_TEXT     ? EXPR_TEXT
				   : fields[i].type == USER_SIGNED ? EXPR_SIGNED
								   : EXPR_UNSIGNED;
	}
	return s;
}

static void the_kernel_keeps_what_the_expression_is_true_for(void **state)
{
	const struct event_schema schema = schema_make();
	const struct expr_scope scope = event_schema_scope(&schema);
	unsigned int compiled = 0, kept = 0, written = 0, exact = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		unsigned char record[RECORD_BYTES];
		struct capture_event event = {0};
		struct expr_error error;
		struct expr expr;
		char text[4096];
		const size_t len = expression_write(text, 3);
		int err;

		if (len > EXPR_SOURCE_MAX || expr_parse(text, len, &scope, &expr, &error))
			continue;
		err = event_filter_compile(&expr, fields, &event, &error);
		if (err) {
			assert_int_equal(err, -7 /* E2BIG: too many comparisons */);
			continue;
		}
		compiled++;
		written += event.kernel_filter[0] != '\0';
		exact += event.kernel_filter_exact;
		for (int i = 0; i < RECORDS; i++) {
			const struct expr_source source = {.field = field_of, .context = record};
			bool wanted;

			record_make(record);
			wanted = expr_is_true(expr_eval(&expr, &source));
			if (tests_run(&event, record) != wanted)
				fail_msg("%s: %d", text, wanted);
			if (wanted ? !kernel_keeps(&event, record)
				   : event.kernel_filter_exact && kernel_keeps(&event, record))
				fail_msg("%s: %s: %d", text, event.kernel_filter, wanted);
			kept += wanted;
		}
	}
	assert_true(compiled > ROUNDS / 2);
	assert_true(written > compiled / 3 && exact > compiled / 10);
	assert_in_range(kept, compiled, compiled * (RECORDS - 1));
}

static void what_the_kernel_cannot_compute_is_refused(void **state)
{
	static const struct {
		const char *text;
		size_t at;
	} refused[] = {{"s4 * 2 == 4", 3}, {"u2 == u8", 3},  {"text ~ \"*x\"", 8},
		       {"vm == \"a\"", 0}, {"vcpu == 1", 0}, {"s4 & u2", 3}};
	const struct event_schema schema = schema_make();
	const struct expr_scope scope = event_schema_scope(&schema);

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct capture_event event = {0};
		struct expr_error error;
		struct expr expr;

		assert_int_equal(
			expr_parse(refused[i].text, strlen(refused[i].text), &scope, &expr, &error),
			0);
		assert_int_equal(event_filter_compile(&expr, fields, &event, &error), -22);
		if (error.at != refused[i].at)
			fail_msg("%s: at %zu: %s", refused[i].text, error.at, error.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernel_keeps_what_the_expression_is_true_for),
		cmocka_unit_test(what_the_kernel_cannot_compute_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
