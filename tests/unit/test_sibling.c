// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/sibling.h"

static void the_program_itself_lies_beside_itself(void **state)
{
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(sibling_path("test_sibling", path, sizeof(path)), 0);
	assert_int_equal(path[0], '/');
	assert_string_equal(strrchr(path, '/'), "/test_sibling");
}

static void one_that_is_not_there_is_named_with_its_folder(void **state)
{
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(sibling_path("no-such-program", path, sizeof(path)), -ENOENT);
	assert_int_equal(path[0], '/');
	assert_string_equal(strrchr(path, '/'), "/no-such-program");
}

static void a_path_that_does_not_fit_is_no_path(void **state)
{
	char whole[PATH_MAX], path[PATH_MAX];
	size_t bytes;

	(void)state;
	assert_int_equal(sibling_path("test_sibling", whole, sizeof(whole)), 0);
	bytes = strlen(whole) + 1;
	assert_int_equal(sibling_path("test_sibling", path, bytes), 0);
	memset(path, 'x', sizeof(path));
	assert_int_equal(sibling_path("test_sibling", path, bytes - 1), -ENAMETOOLONG);
	assert_int_equal(path[bytes - 1], 'x');
	assert_string_equal(path, "test_sibling");
	assert_int_equal(sibling_path("test_sibling", path, 5), -ENAMETOOLONG);
	assert_string_equal(path, "test");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_program_itself_lies_beside_itself),
		cmocka_unit_test(one_that_is_not_there_is_named_with_its_folder),
		cmocka_unit_test(a_path_that_does_not_fit_is_no_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
