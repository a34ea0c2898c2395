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

struct held {
	const char *vm, *path;
	uint64_t bytes;
	time_t time;
	bool busy;
};

/* VMs whose names begin with "gone" are not watched. */
static bool is_watched(void *context, const char *vm)
{
	(void)context;
	return strncmp(vm, "gone", 4) != 0;
}

enum { DAY = 24 * 3600, NOW = 100 * DAY };

/* What goes until the budget is kept, in order: "a1 b2". */
static void going(const struct held *held, size_t n, uint64_t budget, char *out, size_t out_bytes)
{
	const struct disk_sharing sharing = {
		.budget_bytes = budget, .watches = is_watched, .now = NOW};
	struct disk_items all = {0};
	struct disk_item *next;

	out[0] = 0;
	for (size_t i = 0; i < n; i++) {
		struct disk_item item = {.path = (char *)held[i].path,
					 .bytes = held[i].bytes,
					 .time = {.tv_sec = held[i].time},
					 .busy = held[i].busy};

		snprintf(item.vm, sizeof(item.vm), "%s", held[i].vm);
		assert_int_equal(disk_items_add(&all, &item), 0);
	}
	while ((next = disk_items_next(&all, &sharing))) {
		const size_t len = strlen(out);

		assert_false(next->gone || next->busy);
		snprintf(out + len, out_bytes - len, "%s%s", len ? " " : "", next->path);
		next->gone = true;
	}
	disk_items_free(&all);
}

static void who_holds_most_loses_his_oldest(void **state)
{
	static const struct {
		const char *what;
		uint64_t budget;
		struct held held[8];
		const char *goes;
	} cases[] = {
		{"nothing is held", 10, {{0}}, ""},
		{"it fits", 10, {{"a", "a1", 5, NOW, false}, {"b", "b1", 5, NOW, false}}, ""},
		{"a flood costs only who makes it",
		 100,
		 {{"a", "a1", 50, 1, false},
		  {"b", "b1", 30, 5, false},
		  {"b", "b2", 30, 6, false},
		  {"b", "b3", 30, 7, false}},
		 "b1 b2"},
		{"alone, all of it is one's own",
		 100,
		 {{"a", "a2", 60, 2, false}, {"a", "a1", 60, 1, false}},
		 "a1"},
		{"two that exceed their shares take turns",
		 90,
		 {{"a", "a1", 20, 1, false},
		  {"a", "a2", 20, 2, false},
		  {"a", "a3", 20, 3, false},
		  {"b", "b1", 20, 1, false},
		  {"b", "b2", 25, 2, false},
		  {"b", "b3", 20, 3, false},
		  {"c", "c1", 10, 0, false}},
		 "b1 a1 b2"},
		{"what is being written stays, and costs nobody else",
		 100,
		 {{"a", "a1", 90, 9, true}, {"b", "b1", 40, 1, false}},
		 ""},
		{"what is being written counts",
		 100,
		 {{"a", "a1", 30, 1, false}, {"a", "a2", 90, 9, true}, {"b", "b1", 40, 0, false}},
		 "a1"},
		{"who is long gone has no share",
		 100,
		 {{"gone", "g2", 10, NOW - 8 * DAY, false},
		  {"gone", "g1", 10, NOW - 9 * DAY, false},
		  {"old", "o1", 10, NOW - 90 * DAY, false},
		  {"b", "b1", 60, NOW - DAY, false},
		  {"b", "b2", 30, NOW, false}},
		 "g1 g2"},
		{"who went yesterday has one",
		 100,
		 {{"gone", "g1", 50, NOW - DAY, false},
		  {"b", "b1", 60, NOW - 1, false},
		  {"b", "b2", 30, NOW, false}},
		 "b1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char goes[64];
		size_t n = 0;

		while (n < 8 && cases[i].held[n].vm)
			n++;
		going(cases[i].held, n, cases[i].budget, goes, sizeof(goes));
		if (strcmp(goes, cases[i].goes))
			fail_msg("%s: `%s` goes, not `%s`", cases[i].what, goes, cases[i].goes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_folder_is_made_once_and_for_its_owner_only),
		cmocka_unit_test(a_stamp_is_the_time_that_is_returned),
		cmocka_unit_test(where_nothing_is_there_is_no_lack_of_room),
		cmocka_unit_test(who_holds_most_loses_his_oldest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
