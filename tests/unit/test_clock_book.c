/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests how long the clock of a guest's boot is kept: while a frame of that boot may still be
 * converted in a live session, as long as possible otherwise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "host-collector/timeline/clock_book_internal.h"
#include "proto/recording.h"

#define SECOND 1000000000ull

enum { VM = 1 };

static struct clock_book *book_new(bool short_memory)
{
	const struct message_hello host = {.clock_hz = SECOND};
	struct clock_book *b = clock_book_new(short_memory);

	assert_non_null(b);
	assert_int_equal(clock_book_hello(b, VS_SOURCE_HOST, 0, &host), 0);
	return b;
}

/* The guest boots, and a frame of this boot arrives. */
static void boot(struct clock_book *b, uint32_t number, uint64_t second)
{
	const struct message_hello hello = {.clock_hz = SECOND};

	assert_int_equal(clock_book_hello(b, VM, number, &hello), 0);
	clock_book_heard(b, VM, number, second * SECOND);
}

static bool is_kept(const struct clock_book *b, uint32_t number)
{
	return clock_boot_find(clock_guest_find(b, VM), number) != NULL;
}

static void a_live_session_forgets_a_boot_after_a_minute(void **state)
{
	struct clock_book *b = book_new(true);

	(void)state;
	boot(b, 0, 100);
	clock_book_heard(b, VM, 0, 900 * SECOND);
	assert_true(is_kept(b, 0)); /* it is the newest */
	boot(b, 1, 910);
	boot(b, 2, 930);
	clock_book_heard(b, VM, 2, 960 * SECOND);
	assert_true(is_kept(b, 0));
	clock_book_heard(b, VM, 2, 961 * SECOND);
	assert_false(is_kept(b, 0));
	assert_true(is_kept(b, 1));
	clock_book_heard(b, VM, 2, 5000 * SECOND);
	assert_false(is_kept(b, 1));
	assert_true(is_kept(b, 2));
	/* What comes late of a boot that is forgotten changes nothing. */
	boot(b, 0, 5001);
	assert_false(is_kept(b, 0));
	clock_book_free(b);
}

static void without_the_rate_of_the_host_no_boot_is_old(void **state)
{
	struct clock_book *b = clock_book_new(true);

	(void)state;
	assert_non_null(b);
	boot(b, 0, 100);
	boot(b, 1, 110);
	assert_true(is_kept(b, 0));
	clock_book_free(b);
}

static void a_recording_keeps_the_newest_boots(void **state)
{
	struct clock_book *b = book_new(false);
	const uint32_t n = CLOCK_BOOTS_MAX + 10;

	(void)state;
	for (uint32_t i = 0; i < n; i++)
		boot(b, i, 1000 * (i + 1));
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(is_kept(b, i), i >= n - CLOCK_BOOTS_MAX);
	clock_book_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_live_session_forgets_a_boot_after_a_minute),
		cmocka_unit_test(without_the_rate_of_the_host_no_boot_is_old),
		cmocka_unit_test(a_recording_keeps_the_newest_boots),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
