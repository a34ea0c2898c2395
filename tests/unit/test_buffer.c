// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "proto/buffer.h"

static void test_appended_bytes_stay_in_order(void **state)
{
	struct byte_buffer b = {0};

	(void)state;
	for (int i = 0; i < 10000; i++) {
		uint8_t byte = (uint8_t)(i * 7);

		assert_int_equal(byte_buffer_append(&b, &byte, 1), 0);
	}
	assert_int_equal(b.len, 10000);
	for (int i = 0; i < 10000; i++)
		assert_int_equal(b.data[i], (uint8_t)(i * 7));
	byte_buffer_consume(&b, 9000);
	assert_int_equal(b.len, 1000);
	assert_int_equal(b.data[0], (uint8_t)(9000 * 7));
	byte_buffer_consume(&b, 1000);
	assert_int_equal(b.len, 0);
	byte_buffer_fini(&b);
	assert_null(b.data);
}

static void test_reserve_gives_room_and_keeps_content(void **state)
{
	struct byte_buffer b = {0};

	(void)state;
	assert_int_equal(byte_buffer_append(&b, "abc", 3), 0);
	assert_int_equal(byte_buffer_reserve(&b, 100000), 0);
	assert_true(b.capacity - b.len >= 100000);
	memset(b.data + b.len, 0xff, 100000);
	assert_memory_equal(b.data, "abc", 3);
	assert_int_equal(b.len, 3);
	byte_buffer_fini(&b);
}

static void test_impossible_size_is_refused(void **state)
{
	struct byte_buffer b = {0};

	(void)state;
	assert_int_equal(byte_buffer_append(&b, "abc", 3), 0);
	assert_int_equal(byte_buffer_reserve(&b, SIZE_MAX - 1), -ENOMEM);
	assert_int_equal(byte_buffer_reserve(&b, SIZE_MAX / 2), -ENOMEM);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "abc", 3);
	byte_buffer_fini(&b);
}

static void test_empty_buffer_takes_nothing(void **state)
{
	struct byte_buffer b = {0};

	(void)state;
	assert_int_equal(byte_buffer_append(&b, NULL, 0), 0);
	byte_buffer_consume(&b, 0);
	assert_int_equal(b.len, 0);
	byte_buffer_fini(&b);
	byte_buffer_fini(&b);
	/* Room for nothing is still a place to write nothing to. */
	assert_int_equal(byte_buffer_reserve(&b, 0), 0);
	assert_non_null(b.data);
	byte_buffer_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_appended_bytes_stay_in_order),
		cmocka_unit_test(test_reserve_gives_room_and_keeps_content),
		cmocka_unit_test(test_impossible_size_is_refused),
		cmocka_unit_test(test_empty_buffer_takes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
