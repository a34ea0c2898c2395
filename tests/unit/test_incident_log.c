/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that `vcpuscope incidents` reads segments of hosts with other versions, and arbitrary
 * files. */
#include <errno.h>
#include <json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/fleet/incident_log.h"

#define SEGMENT                                                                                    \
	"incidents-00000000000000000000000000000001-00000000000000000000000000000002-00000000000000"

static char folder[64];

static int setup(void **state)
{
	char command[128];

	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_incident_log.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(command, sizeof(command), "mkdir %s/sent", folder);
	return system(command);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void file_write(const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

#define LINE(id, seq, begin, more)                                                                 \
	"{\"schema\":\"vcpuscope.incident/2\",\"incident_id\":\"" id                               \
	"00000000000000000000000000000\",\"seq\":" #seq ",\"begin_realtime_ns\":" #begin more      \
	"}\n"

static int64_t seq_of(const struct incident_log *l, size_t index)
{
	struct json_object *o = incident_log_get(l, index), *seq;
	int64_t n;

	assert_non_null(o);
	assert_true(json_object_object_get_ex(o, "seq", &seq));
	n = json_object_get_int64(seq);
	json_object_put(o);
	return n;
}

/* Lines of one incident are in several files, in any order, and twice; the newest counts. */
static void test_newest(void **state)
{
	struct incident_log *l = incident_log_new();

	(void)state;
	file_write("sent/" SEGMENT "01.jsonl", LINE("aaa", 0, 50, ) LINE("bbb", 7, 40, ));
	file_write(SEGMENT "02.jsonl", LINE("aaa", 2, 50, ",\"new\":[1]") LINE("bbb", 6, 40, ));
	file_write(SEGMENT "03.jsonl.part",
		   LINE("aaa", 1, 50, ) LINE("ccc", 0, 90, ) "{\"schema\":\"vcpuscope.incid");
	file_write("figures-x.jsonl", "no\n");
	assert_int_equal(incident_log_add(l, folder), 0);
	assert_int_equal(incident_log_add(l, folder), 0);
	incident_log_sort(l);
	assert_int_equal(incident_log_count(l), 3);
	assert_int_equal(seq_of(l, 0), 7);
	assert_int_equal(seq_of(l, 1), 2);
	assert_int_equal(seq_of(l, 2), 0);
	assert_null(incident_log_get(l, 3));
	assert_int_equal(incident_log_skipped(l), 2); /* the line that is being written, twice */
	incident_log_free(l);
}

/* Other schemas, and bytes that mean nothing. */
static void test_hostile(void **state)
{
	struct incident_log *l = incident_log_new();
	char path[256];

	(void)state;
	file_write("x", "{\"schema\":\"vcpuscope.incident/1\"}\n"
			"{\"schema\":7,\"incident_id\":{},\"seq\":[]}\n"
			"{\"schema\":\"vcpuscope.incident/2\",\"incident_id\":\"short\",\"seq\":1,"
			"\"begin_realtime_ns\":1}\n"
			"{\"schema\":null}\n{\"schema\":[\"vcpuscope.incident/2\"]}\n"
			"[]\nnull\n\n{{{{\n\x01\xff\n" LINE("ddd", -1, -5, ));
	snprintf(path, sizeof(path), "%s/x", folder);
	assert_int_equal(incident_log_add(l, path), 0);
	assert_int_equal(incident_log_add(l, "/nonexistent"), -ENOENT);
	incident_log_sort(l);
	assert_int_equal(incident_log_count(l), 1);
	assert_int_equal(incident_log_skipped(l), 10);
	assert_int_equal(incident_log_newer(l), 0);
	incident_log_free(l);
}

/* Hosts with a newer daemon beside this one: their records are skipped and have a count of their
 * own. An empty segment, and one that was cut in a line, are read as far as they go. */
static void test_newer(void **state)
{
	struct incident_log *l = incident_log_new();

	(void)state;
	file_write(SEGMENT "01.jsonl",
		   LINE("aaa", 0, 50, ) "{\"schema\":\"vcpuscope.incident/3\",\"incident_id\":7}\n"
					"{\"schema\":\"vcpuscope.incident/10\"}\n");
	file_write(SEGMENT "02.jsonl", "");
	file_write(SEGMENT "03.jsonl", LINE("bbb", 0, 60, ) "{\"schema\":\"vcpusc");
	assert_int_equal(incident_log_add(l, folder), 0);
	incident_log_sort(l);
	assert_int_equal(incident_log_count(l), 2);
	assert_int_equal(incident_log_files(l), 3);
	assert_int_equal(incident_log_newer(l), 2);
	assert_int_equal(incident_log_skipped(l), 1);
	incident_log_free(l);
}

/* The golden line of the documents stays readable. */
static void test_golden(void **state)
{
	struct incident_log *l = incident_log_new();

	(void)state;
	assert_int_equal(incident_log_add(l, TEST_SOURCE_DIR "/data/fleet/incident-2.jsonl"), 0);
	incident_log_sort(l);
	assert_int_equal(incident_log_count(l), 1);
	assert_int_equal(seq_of(l, 0), 1);
	incident_log_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_newest, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_newer, setup, teardown),
		cmocka_unit_test(test_golden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
