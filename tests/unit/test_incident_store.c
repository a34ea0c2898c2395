/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests incidents: the evidence of each is saved at once, its reports come from a queue, and
 * many incidents of one VM delay only this VM. This program is also its own `vcpuscope report`,
 * which copies the recording. */
#include <dirent.h>
#include <errno.h>
#include <json.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/daemon/incident_store.h"

enum { BURST = 40, JOBS = 3, TEXT_MAX = 1 << 16, PAUSE_US = 20000, WAIT_MS = 60000 };

struct stage {
	uv_loop_t loop;
	struct daemon_config config;
	struct incident_store *store;
	char folder[64], root[80];
	char said[TEXT_MAX]; /* a line each */
	size_t most_running;
};

static void on_say(void *context, const char *vm, const char *line)
{
	struct stage *s = context;
	const size_t len = strlen(s->said);

	snprintf(s->said + len, sizeof(s->said) - len, "%s: %s\n", vm, line);
}

static bool is_watched(void *context, const char *vm)
{
	(void)context, (void)vm;
	return true;
}

static void store_open(struct stage *s)
{
	const struct incident_store_options options = {
		.config = &s->config, .say = on_say, .watches = is_watched, .context = s};

	s->store = incident_store_new(&s->loop, &options);
	assert_non_null(s->store);
}

static void store_close(struct stage *s)
{
	incident_store_close(s->store);
	uv_run(&s->loop, UV_RUN_DEFAULT);
}

static int setup(void **state)
{
	struct stage *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	assert_int_equal(uv_loop_init(&s->loop), 0);
	daemon_config_default(&s->config);
	s->config.disk_reserve_bytes = 0;
	s->config.report_jobs = JOBS;
	snprintf(s->folder, sizeof(s->folder), "/tmp/test_incident_store.XXXXXX");
	assert_non_null(mkdtemp(s->folder));
	snprintf(s->config.directory, sizeof(s->config.directory), "%s", s->folder);
	snprintf(s->root, sizeof(s->root), "%s/incidents", s->folder);
	store_open(s);
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct stage *s = *state;
	char command[128];

	store_close(s);
	assert_int_equal(uv_loop_close(&s->loop), 0);
	snprintf(command, sizeof(command), "rm -r %s", s->folder);
	assert_int_equal(system(command), 0);
	free(s);
	return 0;
}

static int recording_write(void *context, const char *path)
{
	const size_t *bytes = context;
	FILE *f = fopen(path, "we");

	if (!f)
		return -errno;
	for (size_t i = 0; i < *bytes; i++)
		fputc('x', f);
	return fclose(f) ? -errno : 0;
}

static int make(struct stage *s, const char *vm, size_t bytes, char *path, size_t path_bytes)
{
	const struct incident_request request = {.vm = vm,
						 .what = "vm_paused",
						 .summary = json_object_new_object(),
						 .write = recording_write,
						 .context = &bytes};

	return incident_store_make(s->store, &request, path, path_bytes);
}

static size_t queued(struct stage *s)
{
	struct incident_store_stats stats;

	incident_store_stats_get(s->store, &stats);
	if (stats.running > s->most_running)
		s->most_running = stats.running;
	return stats.waiting + stats.running;
}

static void finish(struct stage *s)
{
	for (uint64_t end = uv_hrtime() / 1000000 + WAIT_MS; queued(s);) {
		assert_true(uv_hrtime() / 1000000 < end);
		incident_store_tick(s->store);
		uv_run(&s->loop, UV_RUN_ONCE);
	}
}

static bool has(const char *folder, const char *end, const char *file)
{
	char path[1200];

	snprintf(path, sizeof(path), "%s%s/%s", folder, end, file);
	return !access(path, F_OK);
}

/* How many folders there are whose name begins and ends so. */
static size_t folders(const struct stage *s, const char *begin, const char *end)
{
	DIR *dir = opendir(s->root);
	struct dirent *entry;
	size_t n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		const size_t len = strlen(entry->d_name);

		n += entry->d_name[0] != '.' && !strncmp(entry->d_name, begin, strlen(begin)) &&
		     len >= strlen(end) && !strcmp(entry->d_name + len - strlen(end), end);
	}
	closedir(dir);
	return n;
}

static void a_burst_is_saved_at_once_and_reported_later(void **state)
{
	struct stage *s = *state;
	static char paths[BURST][512];

	for (size_t i = 0; i < BURST; i++) {
		char vm[16];

		snprintf(vm, sizeof(vm), "vm%zu", i);
		assert_int_equal(make(s, vm, 1000, paths[i], sizeof(paths[i])), 0);
		assert_true(has(paths[i], ".part", "run.vcs"));
		assert_true(has(paths[i], ".part", "incident.json"));
	}
	assert_int_equal(folders(s, "vm", ".part"), BURST);
	finish(s);
	assert_int_equal(s->most_running, JOBS);
	assert_int_equal(folders(s, "vm", ".part"), 0);
	for (size_t i = 0; i < BURST; i++) {
		assert_true(has(paths[i], "", "incident.json"));
		assert_true(has(paths[i], "", "report.json"));
		assert_true(has(paths[i], "", "report.txt"));
		assert_true(has(paths[i], "", "report.html"));
	}
}

/* The order in which VMs' folders were finished: "a b a". */
static void order_of(const struct stage *s, char *out)
{
	char *at = out;

	for (const char *line = s->said; line && *line; line = strchr(line, '\n') + 1) {
		if (strstr(line, ": incident: ") == strchr(line, ':'))
			at += sprintf(at, "%s%.*s", at == out ? "" : " ",
				      (int)(strchr(line, ':') - line), line);
	}
	*at = 0;
}

static void vms_take_turns(void **state)
{
	struct stage *s = *state;
	char path[512], order[256];

	s->config.report_jobs = 1;
	for (int i = 0; i < 4; i++)
		assert_int_equal(make(s, "a", 10, path, sizeof(path)), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(make(s, "b", 10, path, sizeof(path)), 0);
	assert_int_equal(make(s, "c", 10, path, sizeof(path)), 0);
	finish(s);
	order_of(s, order);
	assert_string_equal(order, "a b c a b a a");
}

static void what_a_daemon_left_the_next_takes_up(void **state)
{
	struct stage *s = *state;
	char path[512], torn[256], foreign[256];

	for (int i = 0; i < 6; i++)
		assert_int_equal(make(s, i & 1 ? "web-1" : "a", 10, path, sizeof(path)), 0);
	/* Its evidence is not whole. */
	snprintf(torn, sizeof(torn), "%s/a-20200101T000000Z-vm_paused.part", s->root);
	assert_int_equal(mkdir(torn, 0700), 0);
	snprintf(foreign, sizeof(foreign), "%s/notes.part", s->root);
	assert_int_equal(mkdir(foreign, 0700), 0);
	store_close(s);
	assert_int_equal(folders(s, "a-", ".part"), 4);
	store_open(s);
	assert_non_null(
		strstr(s->said, "6 incidents that an earlier daemon left get their reports now"));
	assert_int_not_equal(access(torn, F_OK), 0);
	assert_int_equal(access(foreign, F_OK), 0);
	finish(s);
	assert_int_equal(folders(s, "a-", ""), 3);
	assert_int_equal(folders(s, "web-1-", ""), 3);
	assert_int_equal(folders(s, "", ".part"), 1);
	assert_int_equal(rmdir(foreign), 0);
}

static void a_flood_costs_only_its_own_vm(void **state)
{
	struct stage *s = *state;
	char honest[2][512], path[512];

	s->config.incidents_budget_bytes = 1000000;
	for (int i = 0; i < 2; i++)
		assert_int_equal(make(s, "honest", 50000, honest[i], sizeof(honest[i])), 0);
	finish(s);
	for (int i = 0; i < 30; i++) { /* each with its reports: 200 KB */
		usleep(PAUSE_US);      /* files' times go by the kernel's ticks */
		assert_int_equal(make(s, "flood", 50000, path, sizeof(path)), 0);
	}
	assert_true(folders(s, "flood-", "") <= 20);
	finish(s);
	for (int i = 0; i < 2; i++)
		assert_true(has(honest[i], "", "report.html"));
	assert_true(has(path, "", "report.html")); /* the newest stays */
	assert_in_range(folders(s, "flood-", ""), 2, 4);
	assert_non_null(strstr(s->said, "and flood has most of it"));
	assert_null(strstr(s->said, "and honest has most of it"));
}

static int write_fails(void *context, const char *path)
{
	(void)context, (void)path;
	return -EIO;
}

static void what_cannot_be_saved_leaves_nothing(void **state)
{
	struct stage *s = *state;
	struct incident_request request = {.vm = "a",
					   .what = "stall",
					   .summary = json_object_new_object(),
					   .write = write_fails};
	char path[512];

	assert_int_equal(incident_store_make(s->store, &request, path, sizeof(path)), -EIO);
	assert_int_equal(folders(s, "", ""), 0);
	s->config.disk_reserve_bytes = UINT64_MAX;
	assert_int_equal(make(s, "a", 10, path, sizeof(path)), -ENOSPC);
	assert_int_equal(queued(s), 0);
}

/* report RECORDING --format FORMAT --output FILE */
static int report(char **argv)
{
	FILE *from = fopen(argv[2], "re"), *to = fopen(argv[6], "we");
	int c;

	usleep(PAUSE_US);
	if (!from || !to)
		return 1;
	while ((c = fgetc(from)) != EOF)
		fputc(c, to);
	fclose(from);
	return fclose(to) ? 1 : 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_burst_is_saved_at_once_and_reported_later, setup,
						teardown),
		cmocka_unit_test_setup_teardown(vms_take_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_daemon_left_the_next_takes_up, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_flood_costs_only_its_own_vm, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_saved_leaves_nothing, setup,
						teardown),
	};

	if (argc == 7 && !strcmp(argv[1], "report"))
		return report(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
