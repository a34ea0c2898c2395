/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the table of cgroups that a recording names: a daemon that runs for months names more of
 * them than the table holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "host-collector/model/cgroups.h"

static uint32_t put(struct cgroups_known *c, const char *path)
{
	uint32_t number;

	assert_int_equal(cgroups_known_put(c, path, 0, 0, &number), 0);
	return number;
}

static uint32_t session_put(struct cgroups_known *c, int session)
{
	char path[64];

	snprintf(path, sizeof(path), "/user.slice/session-%d.scope", session);
	return put(c, path);
}

static void assert_path(const struct cgroups_known *c, uint32_t number, const char *path)
{
	const struct cgroup *cgroup = cgroups_known_get(c, number);

	assert_non_null(cgroup);
	assert_string_equal(cgroup->path, path);
}

static void a_full_table_forgets_what_was_named_least_recently(void **state)
{
	struct cgroups_known c = {0};
	const uint32_t steady = put(&c, "/machine.slice/web.scope");
	const uint32_t first = session_put(&c, 0), second = session_put(&c, 1);

	(void)state;
	for (int session = 2; session < CGROUPS_MAX - 1; session++)
		session_put(&c, session);
	assert_int_equal(put(&c, "/machine.slice/web.scope"), steady);
	assert_path(&c, first, "/user.slice/session-0.scope");
	/* Full: the next one takes the place of the first session. */
	assert_path(&c, session_put(&c, 9999), "/user.slice/session-9999.scope");
	assert_null(cgroups_known_get(&c, first));
	assert_path(&c, second, "/user.slice/session-1.scope");
	assert_path(&c, steady, "/machine.slice/web.scope");
	cgroups_known_fini(&c);
}

static void no_number_is_given_twice(void **state)
{
	struct cgroups_known c = {0};
	static bool given[CGROUPS_MAX * 8];

	(void)state;
	for (int session = 0; session < CGROUPS_MAX * 5; session++) {
		const uint32_t number = session_put(&c, session);

		assert_in_range(number, 1, CGROUPS_MAX * 8 - 1);
		assert_false(given[number]);
		given[number] = true;
	}
	assert_null(cgroups_known_get(&c, 0));
	assert_null(cgroups_known_get(&c, CGROUPS_MAX * 7));
	cgroups_known_fini(&c);
}

static void a_cgroup_with_another_quota_is_another_entry(void **state)
{
	struct cgroups_known c = {0};
	uint32_t half, whole, none;

	(void)state;
	assert_int_equal(cgroups_known_put(&c, "/a", 50000, 100000, &half), 0);
	assert_int_equal(cgroups_known_put(&c, "/a", 100000, 100000, &whole), 0);
	assert_int_not_equal(half, whole);
	assert_int_equal(cgroups_known_get(&c, half)->quota_us, 50000);
	assert_int_equal(cgroups_known_put(&c, "", 0, 0, &none), 0);
	assert_int_equal(none, 0);
	cgroups_known_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_table_forgets_what_was_named_least_recently),
		cmocka_unit_test(no_number_is_given_twice),
		cmocka_unit_test(a_cgroup_with_another_quota_is_another_entry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
