// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/daemon/disk.h"

static void a_folder_is_made_once_and_for_its_owner_only(void **state)
{
	char base[] = "/tmp/test_disk.XXXXXX", path[64], deep[80];
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(base));
	snprintf(path, sizeof(path), "%s/new", base);
	snprintf(deep, sizeof(deep), "%s/none/new", base);
	assert_int_equal(disk_folder_make(path), 0);
	assert_int_equal(disk_folder_make(path), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(disk_folder_make(deep), -ENOENT);
	rmdir(path);
	rmdir(base);
}

static void a_stamp_is_the_time_that_is_returned(void **state)
{
	char stamp[DISK_STAMP_BYTES];
	const time_t before = time(NULL);
	const uint64_t ns = disk_stamp(stamp);
	struct tm utc = {0};

	(void)state;
	assert_in_range(ns / 1000000000, before, before + 60);
	assert_string_equal(strptime(stamp, "%Y%m%dT%H%M%SZ", &utc), "");
	assert_int_equal(timegm(&utc), ns / 1000000000);
}

static void where_nothing_is_there_is_no_lack_of_room(void **state)
{
	(void)state;
	assert_true(disk_free_bytes("/tmp") < UINT64_MAX);
	assert_true(disk_free_bytes("/no/such/folder") == UINT64_MAX);
}

static void the_oldest_is_kept(void **state)
{
	static const struct {
		const char *path;
		struct timespec time;
		const char *oldest;
	} offers[] = {
		{"b", {5, 500}, "b"}, {"c", {6, 0}, "b"},   {"d", {5, 500}, "b"},
		{"e", {5, 499}, "e"}, {"f", {5, 999}, "e"}, {"a", {4, 999}, "a"},
	};
	struct disk_oldest oldest = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++) {
		disk_oldest_offer(&oldest, offers[i].path, &offers[i].time);
		assert_string_equal(oldest.path, offers[i].oldest);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_folder_is_made_once_and_for_its_owner_only),
		cmocka_unit_test(a_stamp_is_the_time_that_is_returned),
		cmocka_unit_test(where_nothing_is_there_is_no_lack_of_room),
		cmocka_unit_test(the_oldest_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
