// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static void one_that_is_installed_is_found(void **state)
{
	char path[PATH_MAX], program[PATH_MAX + 128], folder[PATH_MAX + 64];
	FILE *f;

	(void)state;
	assert_int_equal(sibling_path("test_sibling", path, sizeof(path)), 0);
	*strrchr(path, '/') = '\0';
	snprintf(folder, sizeof(folder), "%s/../libexec/vcpuscope", path);
	snprintf(program, sizeof(program), "%s/../libexec", path);
	mkdir(program, 0755);
	mkdir(folder, 0755);
	snprintf(program, sizeof(program), "%s/test-sibling-program", folder);
	f = fopen(program, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(sibling_path("test-sibling-program", path, sizeof(path)), -ENOENT);
	chmod(program, 0755);
	assert_int_equal(sibling_path("test-sibling-program", path, sizeof(path)), 0);
	assert_string_equal(path, program);
	assert_int_equal(sibling_path("test-sibling-program", path, strlen(program)), -ENOENT);
	unlink(program);
	rmdir(folder);
	*strrchr(folder, '/') = '\0';
	rmdir(folder);
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
		cmocka_unit_test(one_that_is_installed_is_found),
		cmocka_unit_test(a_path_that_does_not_fit_is_no_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
