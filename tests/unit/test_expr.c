// SPDX-License-Identifier: GPL-2.0-only
/* Tests the language of filters and keys, and the texts that name events. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "proto/query/event_schema.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- expressions over the fields of one event ---- */

static bool field_find(const void *context, const char *name, uint16_t *index, enum expr_type *type)
{
	static const struct {
		const char *name;
		enum expr_type type;
	} fields[] = {{"small", EXPR_SIGNED},
		      {"big", EXPR_UNSIGNED},
		      {"comm", EXPR_TEXT},
		      {"absent", EXPR_SIGNED}};

	(void)context;
	for (size_t i = 0; i < COUNT(fields); i++) {
		if (strcmp(name, fields[i].name) != 0)
			continue;
		*index = (uint16_t)i;
		*type = fields[i].type;
		return true;
	}
	return false;
}

static const char *field_name(const void *context, size_t i)
{
	static const char *const names[] = {"small", "big", "comm", "absent", NULL};

	(void)context;
	return names[i];
}

static const struct expr_scope scope = {field_find, field_name, NULL};

static struct expr_value field_value(void *context, uint16_t index)
{
	static const struct expr_value values[] = {
		{.type = EXPR_SIGNED, .number = (uint64_t)-5},
		{.type = EXPR_UNSIGNED, .number = UINT64_MAX},
		{.type = EXPR_TEXT, .text = "CPU 0/KVM"},
		{.type = EXPR_NONE},
	};

	(void)context;
	return values[index];
}

static struct expr_value call_value(void *context, enum expr_function f,
				    const struct expr_value *args)
{
	(void)context;
	assert_int_equal(f, EXPR_COMM_GET);
	return (struct expr_value){.type = EXPR_TEXT, .text = args[0].number == 7 ? "seven" : "x"};
}

static const struct expr_source source = {field_value, call_value, NULL};

static struct expr_value value_of(const char *text)
{
	static struct expr e;
	struct expr_error error;

	if (expr_parse(text, strlen(text), &scope, &e, &error))
		fail_msg("%s: at %zu: %s", text, error.at, error.text);
	return expr_eval(&e, &source);
}

static void test_values_are_those_of_c(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{"1 + 2 * 3", 7},
		{"(1 + 2) * 3", 9},
		{"10 - 4 - 3", 3},
		{"100 / 10 / 5", 2},
		{"-7 / 2", -3},
		{"-7 % 3", -1},
		{"1 << 4 | 1", 17},
		{"6 & 3 ^ 1", 3},
		{"0x10 + 010", 24},
		{"~0", -1},
		{"!3 + !0", 1},
		{"- -3", 3},
		{"1 < 2 == 1", 1},
		{"1 ? 2 : 0 ? 3 : 4", 2},
		{"0 ? 2 : 0 ? 3 : 4", 4},
		{"0 && 1 || 1", 1},
		{"small < 0", 1},
		{"small >> 1", -3},
		{"big > 0", 1},
		{"big >> 63", 1},
		{"1 << 64", 0},
		{"small >> 200", -1},
		{"small < big", 1}, /* unsigned: 2^64 - 5 < 2^64 - 1 */
		{"ntohs(0x1234)", 0x3412},
		{"ntohl(0x12345678)", 0x78563412},
		{"comm == \"CPU 0/KVM\"", 1},
		{"comm != \"CPU\"", 1},
		{"comm ~ \"CPU */KVM\"", 1},
		{"comm ~ CPU*", 1},
		{"comm~*KVM&&1", 1},
		{"comm ~ *[0-3]?KVM", 1},
		{"comm ~ KVM*", 0},
		{"comm_get(7) == \"seven\"", 1},
		{"comm_get(3+4) == comm_get(7)", 1},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct expr_value v = value_of(cases[i].text);

		if (v.type == EXPR_NONE || (int64_t)v.number != cases[i].value)
			fail_msg("%s is %lld", cases[i].text, (long long)v.number);
	}
}

static void test_missing_values_stay_missing(void **state)
{
	static const char *const missing[] = {
		"absent",         "absent + 1", "absent == absent", "!absent",
		"1 / 0",          "big % 0",    "absent && 1",      "0 || absent",
		"absent ? 1 : 2", "-absent",    "ntohs(absent)",    "comm_get(absent)",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(missing); i++) {
		if (value_of(missing[i]).type != EXPR_NONE)
			fail_msg("%s has a value", missing[i]);
		assert_false(expr_is_true(value_of(missing[i])));
	}
	assert_int_equal(value_of("absent && 0").type, EXPR_SIGNED);
	assert_true(expr_is_true(value_of("absent || 1")));
	/* The least number divided by -1 does not fit, and does not trap. */
	assert_int_equal(value_of("(1 << 63) / -1").number, 1ull << 63);
	assert_int_equal(value_of("(1 << 63) % -1").number, 0);
}

static void test_errors_say_where_and_what(void **state)
{
	static const struct {
		const char *text;
		size_t at;
		const char *says;
	} cases[] = {
		{"", 0, "expected a field, a number, a text or '(', but the expression ends here"},
		{"1 +", 3,
		 "expected a field, a number, a text or '(', but the expression ends here"},
		{"smal > 1", 0, "there is no field 'smal'; did you mean 'small'?"},
		{"bash == comm", 0, "there is no field 'bash'; write a text in quotes"},
		{"1 + com_get(1)", 4, "there is no function 'com_get'; did you mean 'comm_get'?"},
		{"(1 + 2", 6, "expected ')' or an operator, but the expression ends here"},
		{"1 + 2)", 5, "this ')' has no '('"},
		{"1 2", 2, "expected an operator or the end, found '2'"},
		{"big = 1", 4, "expected an operator or the end, found '='"},
		{"comm == \"a", 8, "this text has no closing quote"},
		{"comm + 1", 0, "'+' needs a number, and this is a text"},
		{"comm == 1", 5, "'==' compares a text with a number"},
		{"big ~ \"a\"", 4,
		 "'~' compares a text with a pattern, and the left side is a "
		 "number"},
		{"12ab", 0, "'12ab' is not a number of 64 bits"},
		{"18446744073709551616", 0, "'18446744073709551616' is not a number of 64 bits"},
		{"ntohs(1, 2)", 7, "expected ')', found ','"},
		{"exit_reason_str(1)", 17, "expected ',', found ')'"},
		{"1 ? 2", 5, "expected ':' of a condition, but the expression ends here"},
		{"1 ? comm : 2", 2, "one of both results of '?' is a text, the other a number"},
	};
	struct expr_error error;
	struct expr e;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(
			expr_parse(cases[i].text, strlen(cases[i].text), &scope, &e, &error),
			-EINVAL);
		assert_string_equal(error.text, cases[i].says);
		assert_int_equal(error.at, cases[i].at);
	}
}

static void test_size_is_bounded(void **state)
{
	char text[EXPR_SOURCE_MAX + 2];
	struct expr_error error;
	struct expr e;

	(void)state;
	memset(text, '(', sizeof(text));
	assert_int_equal(expr_parse(text, EXPR_SOURCE_MAX, &scope, &e, &error), -EINVAL);
	assert_non_null(strstr(error.text, "nested too deeply"));
	assert_int_equal(expr_parse(text, EXPR_SOURCE_MAX + 1, &scope, &e, &error), -EINVAL);
	assert_non_null(strstr(error.text, "longer than"));
	for (size_t i = 0; i < EXPR_SOURCE_MAX; i++)
		text[i] = i % 2 ? '+' : '1';
	assert_int_equal(expr_parse(text, EXPR_SOURCE_MAX - 1, &scope, &e, &error), -EINVAL);
	assert_non_null(strstr(error.text, "too long"));
	/* 32 operands and 31 operators fit. */
	assert_int_equal(expr_parse(text, 63, &scope, &e, &error), 0);
	assert_int_equal(expr_eval(&e, &source).number, 32);
}

/* ---- EVENT ---- */

static struct event_spec spec_of(const char *text)
{
	struct event_spec spec;
	struct expr_error error;
	size_t n = 0;

	if (event_specs_parse(text, &spec, 1, &n, &error))
		fail_msg("%s: at %zu: %s", text, error.at, error.text);
	return spec;
}

static void test_events_have_parts(void **state)
{
	struct event_spec s = spec_of(
		"guest:irq:irq_handler_entry/irq==25 && (cpu/2)/key=vcpu/role=\"(irq==25?1:0)\","
		"untraced/stack/");

	(void)state;
	assert_int_equal(s.side, SIDE_GUEST);
	assert_int_equal(s.kind, EVENT_TRACEPOINT);
	assert_string_equal(s.system, "irq");
	assert_string_equal(s.name, "irq_handler_entry");
	assert_string_equal(s.filter.text, "irq==25 && (cpu/2)");
	assert_string_equal(s.key.text, "vcpu");
	assert_string_equal(s.role.text, "(irq==25?1:0)");
	assert_true(s.untraced && s.stack && !s.trigger);
	s = spec_of("kvm:kvm_exit/comm==\"a/b,c\"/");
	assert_int_equal(s.side, SIDE_ANY);
	assert_string_equal(s.filter.text, "comm==\"a/b,c\"");
	s = spec_of(" kprobe:vfs_read//alias=read/");
	assert_int_equal(s.kind, EVENT_KPROBE);
	assert_string_equal(s.name, "vfs_read");
	assert_string_equal(s.alias.text, "read");
	s = spec_of("vmm:uprobe:main@/usr/bin/qemu");
	assert_int_equal(s.side, SIDE_VMM);
	assert_int_equal(s.kind, EVENT_UPROBE);
	assert_string_equal(s.path, "/usr/bin/qemu");
	s = spec_of("usdt:qemu:start@\"/usr/bin/a,b\"/pid==1/trigger/");
	assert_int_equal(s.kind, EVENT_USDT);
	assert_string_equal(s.system, "qemu");
	assert_string_equal(s.name, "start");
	assert_string_equal(s.path, "/usr/bin/a,b");
	assert_string_equal(s.filter.text, "pid==1");
	assert_true(s.trigger);
}

static void test_events_are_listed_with_commas(void **state)
{
	struct event_spec specs[2];
	struct expr_error error;
	size_t n = 0;

	(void)state;
	assert_int_equal(event_specs_parse("sched:a//key=pid,stack/,sched:b", specs, 2, &n, &error),
			 0);
	assert_int_equal(n, 2);
	assert_true(specs[0].stack);
	assert_string_equal(specs[1].name, "b");
	n = 0;
	assert_int_equal(event_specs_parse("a:a,b:b,c:c", specs, 2, &n, &error), -E2BIG);
}

static void test_wrong_events_are_refused(void **state)
{
	static const struct {
		const char *text;
		size_t at;
		const char *says;
	} cases[] = {
		{"", 0, "expected an event: SYSTEM:NAME"},
		{"kvm", 3, "expected ':' and the name of an event of 'kvm'"},
		{"kvm:", 4, "the name of the event is missing"},
		{"kvm:kvm_exit/a", 12, "the filter that begins here has no '/' at its end"},
		{"kvm:kvm_exit//stack", 14, "the last attribute has no '/' at its end"},
		{"kvm:kvm_exit//kee=1/", 14, "there is no attribute 'kee'; did you mean 'key'?"},
		{"kvm:kvm_exit//key/", 14, "write a value: key=..."},
		{"kvm:kvm_exit//stack=1/", 20, "'stack' takes no value"},
		{"kvm:kvm;exit", 7, "';' cannot be part of the name of the event"},
		{"uprobe:main", 11, "expected '@' and the path of the program or library"},
		{"uprobe:main@bin", 12, "the path of a program begins with '/'"},
		{"uprobe:f@/bin/a//stack/", 9,
		 "write the path in quotes if a filter or attributes follow it"},
		{"kvm:kvm_exit/x==\"/", 16, "this text has no closing quote"},
	};
	struct event_spec spec;
	struct expr_error error;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		size_t n = 0;

		assert_int_equal(event_specs_parse(cases[i].text, &spec, 1, &n, &error), -EINVAL);
		assert_string_equal(error.text, cases[i].says);
		assert_int_equal(error.at, cases[i].at);
	}
}

/* ---- the catalogue's events ---- */

static const struct event_schema *found(const struct event_schemas *schemas, const char *text)
{
	const struct event_spec spec = spec_of(text);
	struct expr_error error;
	size_t at[2];
	int n = event_schemas_find(schemas, &spec, at, 2, &error);

	if (n < 0)
		fail_msg("%s: %s", text, error.text);
	assert_int_equal(n, 1);
	return event_schemas_get(schemas, at[0]);
}

static void not_found(const struct event_schemas *schemas, const char *text, const char *says)
{
	const struct event_spec spec = spec_of(text);
	struct expr_error error;
	size_t at[2];

	assert_true(event_schemas_find(schemas, &spec, at, 2, &error) < 0);
	assert_string_equal(error.text, says);
}

static void test_catalogue_has_the_kernels_names(void **state)
{
	struct event_schemas *schemas = event_schemas_new();
	struct expr_error error;
	const struct event_schema *exits;
	struct event_spec spec;
	struct expr e;

	(void)state;
	assert_non_null(schemas);
	exits = found(schemas, "kvm:kvm_exit");
	assert_int_equal(exits->type, VS_EVENT_KVM_EXIT);
	assert_int_equal(found(schemas, "host:sched:sched_switch")->type, VS_EVENT_SCHED_SWITCH);
	/* Two tracepoints of one type, and one type of two tracepoints. */
	assert_int_equal(found(schemas, "irq_vectors:reschedule_entry")->constant,
			 VS_VECTOR_RESCHEDULE);
	assert_int_equal(found(schemas, "host:sched:sched_waking")->type, VS_EVENT_SCHED_WAKEUP);
	assert_int_equal(found(schemas, "vcpuscope:major_fault")->type, VS_EVENT_MAJOR_FAULT);
	not_found(schemas, "kvm:kvm_exitt",
		  "there is no event kvm:kvm_exitt; did you mean kvm:kvm_exit?");
	not_found(schemas, "kmv:kvm_exit", "there is no system 'kmv'; did you mean 'kvm'?");
	not_found(schemas, "guest:kvm:kvm_exit", "kvm:kvm_exit is an event of the host only");
	not_found(schemas, "sched:sched_switch",
		  "both sides have sched:sched_switch; write host:sched:sched_switch or "
		  "guest:sched:sched_switch");
	not_found(schemas, "kvm:*", "more than 2 events");
	/* The kernel's name of a field, a common field, and the catalogue's name. */
	spec = spec_of("kvm:kvm_exit/guest_rip == 1 && vcpu == 0 && rip == 1/");
	assert_int_equal(event_spec_expr(exits, &spec.filter, &e, &error), 0);
	spec = spec_of("kvm:kvm_exit/vcpu == 1 && exit_raeson/");
	assert_int_equal(event_spec_expr(exits, &spec.filter, &e, &error), -EINVAL);
	assert_int_equal(error.at, 26);
	assert_string_equal(error.text,
			    "there is no field 'exit_raeson'; did you mean 'exit_reason'?");
	event_schemas_free(schemas);
}

/* The event's own field `pid` (the task that is woken) hides the common one. */
static void test_own_fields_come_first(void **state)
{
	struct event_schemas *schemas = event_schemas_new();
	const struct event_schema *schema;
	struct expr_scope in;
	enum expr_type type;
	uint16_t index;

	(void)state;
	assert_non_null(schemas);
	schema = found(schemas, "guest:sched:sched_wakeup");
	in = event_schema_scope(schema);
	assert_true(in.field(in.context, "pid", &index, &type));
	assert_true(index < schema->n_fields);
	assert_true(in.field(in.context, "cpu", &index, &type));
	assert_int_equal(index, EVENT_COMMON_CPU);
	assert_true(in.field(in.context, "target_cpu", &index, &type));
	assert_true(index < schema->n_fields);
	event_schemas_free(schemas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values_are_those_of_c),
		cmocka_unit_test(test_missing_values_stay_missing),
		cmocka_unit_test(test_errors_say_where_and_what),
		cmocka_unit_test(test_size_is_bounded),
		cmocka_unit_test(test_events_have_parts),
		cmocka_unit_test(test_events_are_listed_with_commas),
		cmocka_unit_test(test_wrong_events_are_refused),
		cmocka_unit_test(test_catalogue_has_the_kernels_names),
		cmocka_unit_test(test_own_fields_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
