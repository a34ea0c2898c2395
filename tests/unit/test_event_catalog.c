// SPDX-License-Identifier: GPL-2.0-only
/* Tests the event catalogue: its rows are in order, the fields of an event do not overlap, and
 * accessors, tables and the struct agree. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "proto/event_catalog.h"
#include "proto/event_fields.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void test_numbers_ascend(void **state)
{
	static const uint16_t numbers[] = {
#define EVENT(number, ...) number,
#include "proto/events.def"
	};

	(void)state;
	for (size_t i = 1; i < COUNT(numbers); i++)
		assert_true(numbers[i] > numbers[i - 1]);
	assert_int_equal(VS_EVENT_TYPE_LIMIT, numbers[COUNT(numbers) - 1] + 1);
	assert_false(event_type_known(VS_EVENT_NONE));
	assert_false(event_type_known(31));
	assert_false(event_type_known(VS_EVENT_TYPE_LIMIT));
	assert_false(event_type_known(UINT16_MAX));
	assert_string_equal(event_type_of(VS_EVENT_KVM_EXIT)->name, "kvm_exit");
}

/* The numbers on the wire, as they were before there was a catalogue. */
static void test_numbers_stay(void **state)
{
	(void)state;
	assert_int_equal(VS_EVENT_LOST, 1);
	assert_int_equal(VS_EVENT_STACK, 15);
	assert_int_equal(VS_EVENT_KVM_ENTRY, 32);
	assert_int_equal(VS_EVENT_KVM_ACK_IRQ, 51);
	assert_int_equal(VS_EVENT_TASK_STACK, 56);
}

static void test_fields_of_a_type_do_not_overlap(void **state)
{
	(void)state;
	for (uint16_t type = 0; type < VS_EVENT_TYPE_LIMIT; type++) {
		uint64_t used[4] = {0};
		size_t n;
		const struct event_field *f = event_fields(type, &n);

		assert_int_equal(event_type_known(type), n > 0);
		for (size_t i = 0; i < n; i++) {
			const unsigned size = f[i].place <= EVENT_PLACE_pid2 ? 32 : 64;
			const uint64_t bits = UINT64_MAX >> (64 - f[i].width) << f[i].shift;

			assert_true(f[i].width >= 1 && f[i].shift + f[i].width <= size);
			assert_int_equal(used[f[i].place] & bits, 0);
			used[f[i].place] |= bits;
		}
	}
}

/* Each field of each type: set by its accessor, read by its accessor and through the table. */
static void test_accessors_and_tables_agree(void **state)
{
	size_t index = 0, n;

	(void)state;
#define FIELD(event, field, where, at, bits, type, ...)                                            \
	{                                                                                          \
		struct vs_event e = {0}, same = {0};                                               \
		const struct event_field *f;                                                       \
		uint16_t number = 0;                                                               \
                                                                                                   \
		for (uint16_t t = 0; t < VS_EVENT_TYPE_LIMIT; t++) {                               \
			if (event_type_known(t) && !strcmp(event_type_of(t)->name, #event))        \
				number = t;                                                        \
		}                                                                                  \
		f = event_fields(number, &n);                                                      \
		for (index = 0; index < n && strcmp(f[index].name, #field); index++)               \
			;                                                                          \
		assert_true(index < n);                                                            \
		ev_set_##event##_##field(&e, (ev_c_##type)0x1234567890abcdefull);                  \
		assert_true(event_field_get(&f[index], &e) == (uint64_t)ev_##event##_##field(&e)); \
		assert_true(e.where >> at);                                                        \
		ev_set_##event##_##field(&e, (ev_c_##type) - 1);                                   \
		assert_true(event_field_get(&f[index], &e) == (uint64_t)ev_##event##_##field(&e)); \
		event_field_set(&f[index], &e, 0x1234567890abcdefull);                             \
		ev_set_##event##_##field(&same, (ev_c_##type)0x1234567890abcdefull);               \
		assert_memory_equal(&e, &same, sizeof(e));                                         \
		ev_set_##event##_##field(&e, 0);                                                   \
		assert_memory_equal(&e, &(struct vs_event){0}, sizeof(e));                         \
	}
#include "proto/events.def"
}

static void test_fields_are_where_the_wire_has_them(void **state)
{
	const struct vs_event e = {
		.pid = 7, .pid2 = -3, .arg0 = 2ull << 32 | 0x78, .arg1 = 0xffffffff81000000};
	struct vs_event s = {.pid = 1, .pid2 = 2, .arg1 = 120ull << 32 | 0xffffffff};
	const struct vs_event k = {.arg0 = 9, .arg1 = 5000ull << 8 | VS_STACK_SHORT};
	size_t n;
	const struct event_field *f = event_fields(VS_EVENT_KVM_EXIT, &n);
	char text[32];

	(void)state;
	assert_int_equal(ev_kvm_exit_reason(&e), 0x78);
	assert_int_equal(ev_kvm_exit_isa(&e), 2);
	assert_int_equal(ev_kvm_exit_ago_us(&e), -3);
	assert_true(ev_kvm_exit_rip(&e) == e.arg1);
	assert_int_equal(ev_sched_switch_out_prio(&s), -1);
	assert_int_equal(ev_sched_switch_in_prio(&s), 120);
	assert_int_equal(ev_stack_role(&k), VS_STACK_SHORT);
	assert_int_equal(ev_stack_wait_ns(&k), 5000);
	assert_int_equal(n, 5);
	assert_string_equal(event_field_text(&f[1], &e, text, sizeof(text)), "-3");
	assert_string_equal(event_field_text(&f[2], &e, text, sizeof(text)), "120");
	assert_string_equal(event_field_text(&f[4], &e, text, sizeof(text)), "0xffffffff81000000");
	assert_string_equal(event_text(&s, text, sizeof(text)), "");
	s.type = VS_EVENT_SCHED_SWITCH;
	assert_string_equal(event_text(&s, text, sizeof(text)), "in=2 state=0 out_prio=-1 in_pri");
}

static void test_handlers_have_their_number_in_one_place(void **state)
{
	struct vs_event e = {0};

	(void)state;
#define SAME(name)                                                                                 \
	ev_set_##name##_number(&e, 0x123456789ull);                                                \
	assert_true(ev_handler_number(&e) == 0x123456789ull);                                      \
	e = (struct vs_event){0}
	SAME(irq_entry);
	SAME(irq_exit);
	SAME(softirq_entry);
	SAME(softirq_exit);
	SAME(vector_entry);
	SAME(vector_exit);
}

static void test_user_events_have_their_values_in_one_place(void **state)
{
	struct vs_event e = {0};

	(void)state;
	ev_set_user_values(&e, 0x123456789abcdef0ull, 0xfedcba9876543210ull);
	assert_true(ev_user_first(&e) == 0x123456789abcdef0ull);
	assert_true(ev_user_second(&e) == 0xfedcba9876543210ull);
	assert_true(ev_user_more_first(&e) == 0x123456789abcdef0ull);
	assert_true(ev_user_more_second(&e) == 0xfedcba9876543210ull);
}

static void test_names_of_tasks_come_back(void **state)
{
	struct vs_event e = {0};
	char comm[16];

	(void)state;
	ev_set_task_comm(&e, "0123456789abcde");
	ev_task_comm(&e, comm);
	assert_string_equal(comm, "0123456789abcde");
	memset(&e.arg0, 'x', 16); /* a peer's, without an end */
	ev_task_comm(&e, comm);
	assert_string_equal(comm, "xxxxxxxxxxxxxxx");
}

static void test_kernel_names_have_alternatives(void **state)
{
	const struct event_field two = {.kernel = "vector|irq"}, one = {.kernel = "ns"}, none = {0};
	const struct event_field longer = {.kernel = "a_name_of_thirty_two_characters_"};
	char name[EVENT_FIELD_NAME_BYTES];

	(void)state;
	assert_true(event_field_kernel_name(&two, 0, name));
	assert_string_equal(name, "vector");
	assert_true(event_field_kernel_name(&two, 1, name));
	assert_string_equal(name, "irq");
	assert_false(event_field_kernel_name(&two, 2, name));
	assert_true(event_field_kernel_name(&one, 0, name));
	assert_false(event_field_kernel_name(&one, 1, name));
	assert_false(event_field_kernel_name(&none, 0, name));
	assert_false(event_field_kernel_name(&longer, 0, name));
}

static void test_tracepoints_lead_to_types(void **state)
{
	size_t n;
	const struct event_tracepoint *t = event_tracepoints(&n);

	(void)state;
	assert_true(n > 40);
	for (size_t i = 0; i < n; i++) {
		assert_true(event_type_known(t[i].type));
		assert_true(t[i].users);
		/* What the host's generic capture reads belongs to the host. */
		assert_true(!(t[i].users & BY_ROW) || event_type_of(t[i].type)->sides & EVENT_HOST);
	}
}

static void test_sets_hold_every_type(void **state)
{
	struct event_set set = {0}, all = {0};
	const struct event_set few = EVENT_SET(VS_EVENT_LOST, VS_EVENT_TYPE_LIMIT - 1), empty = {0};

	(void)state;
	event_set_add(&set, &few);
	event_set_add(&all, &empty);
	for (uint16_t type = 1; type < VS_EVENT_TYPE_LIMIT; type++) {
		assert_true(event_set_has(&all, type));
		assert_int_equal(event_set_has(&set, type),
				 type == VS_EVENT_LOST || type == VS_EVENT_TYPE_LIMIT - 1);
	}
	assert_false(event_set_has(&all, VS_EVENT_TYPE_LIMIT));
	assert_false(event_set_has(&all, UINT16_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_ascend),
		cmocka_unit_test(test_numbers_stay),
		cmocka_unit_test(test_fields_of_a_type_do_not_overlap),
		cmocka_unit_test(test_accessors_and_tables_agree),
		cmocka_unit_test(test_fields_are_where_the_wire_has_them),
		cmocka_unit_test(test_handlers_have_their_number_in_one_place),
		cmocka_unit_test(test_user_events_have_their_values_in_one_place),
		cmocka_unit_test(test_names_of_tasks_come_back),
		cmocka_unit_test(test_kernel_names_have_alternatives),
		cmocka_unit_test(test_tracepoints_lead_to_types),
		cmocka_unit_test(test_sets_hold_every_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
