/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the HTML report: its content, its largest size, and that names cannot contain markup. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <json-c/json.h>

#include "host-collector/analyze/stall/builder.h"
#include "host-collector/cli/report_page.h"
#include "host-collector/analyze/scene/scene.h"
#include "tests/unit/model_script.h"

enum { HOG = 900, TASK = 50, PAGE_BYTES_MAX = 3 << 20 };

/* Eight bytes each, as they come in one TASK_NAME event. */
static const char *const hostile[] = {
	"</script",
	"<!--<b>",
	"\"'&<>`\\",
	"a\nb\tc\r",
	"\xff\xfe\xc0\x80x",
	"\xe2\x80\xae"
	"txt",
	"]]>-->",
	"${1+1}",
};

struct fixture {
	struct model *model;
	struct report_page *page;
	struct report_builder *builder;
	struct report *report;
	char *html;
	size_t len;
	struct json_object *data;
};

static const struct narrow everything = {.vcpu = -1};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct report_options options = {.than_ns = 100000000, .noticed = report_page_notice};

	f->model = model_new();
	script_vm(f->model, 1, "kvm");
	f->page = report_page_new(f->model);
	options.noticed_context = f->page;
	f->builder = report_builder_new(f->model, &options);
	assert_non_null(f->page);
	assert_non_null(f->builder);
	assert_int_equal(
		report_page_open(f->page, f->model, report_builder_chains(f->builder), &everything),
		0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	json_object_put(f->data);
	free(f->html);
	report_free(f->report);
	report_page_free(f->page);
	report_builder_free(f->builder);
	model_free(f->model);
	free(f);
	return 0;
}

static void push(struct fixture *f, struct timeline_event e)
{
	assert_int_equal(model_push(f->model, &e, 1), 0);
}

#define PUSH(f, macro) push(f, (struct timeline_event)macro)

/* A hog holds the pCPU of the guest's task for 400 ms; from..from + 600 ms. */
static void stall(struct fixture *f, int64_t from_us)
{
	PUSH(f, SWITCH(HOST, from_us, 1, 0, TID0, 0));
	PUSH(f, SWITCH(VM, from_us + 10, 0, 0, TASK, 0));
	PUSH(f, SWITCH(HOST, from_us + 100000, 1, TID0, HOG, 0));
	PUSH(f, SWITCH(HOST, from_us + 500000, 1, HOG, TID0, 0));
	PUSH(f, SWITCH(VM, from_us + 590000, 0, TASK, 0, 1));
	PUSH(f, SWITCH(HOST, from_us + 600000, 1, TID0, 0, 1));
}

/* The page, and its data parsed. */
static void render(struct fixture *f)
{
	FILE *out = open_memstream(&f->html, &f->len);
	const char *mark = "id=\"data\">", *begin, *end;
	char *text;

	model_finish(f->model);
	f->report = report_builder_finish(f->builder);
	assert_non_null(f->report);
	assert_int_equal(report_page_write(f->page, "/tmp/<run>.vcs", f->report, NULL, out), 0);
	fclose(out);
	begin = strstr(f->html, mark) + strlen(mark);
	end = strstr(begin, "</script>");
	text = strndup(begin, (size_t)(end - begin));
	f->data = json_tokener_parse(text);
	free(text);
	assert_non_null(f->data);
}

static struct json_object *at(struct json_object *o, const char *key)
{
	struct json_object *value = NULL;

	assert_true(json_object_object_get_ex(o, key, &value));
	return value;
}

static struct json_object *nth(struct json_object *o, const char *key, size_t i)
{
	return json_object_array_get_idx(at(o, key), i);
}

static void shows_incident_timeline_and_tables(void **state)
{
	struct fixture *f = *state;
	struct json_object *scene, *row;
	int64_t total = 0;

	PUSH(f, NAME(VM, 999999, TASK, TASK, script_comm("job")));
	stall(f, 1000000);
	render(f);
	assert_int_equal(json_object_array_length(at(at(f->data, "report"), "incidents")), 1);
	assert_int_equal(json_object_get_int(nth(f->data, "incident_scenes", 0)), 0);
	scene = nth(f->data, "scenes", 0);
	assert_string_equal(json_object_get_string(at(at(scene, "guest"), "50")), "job");
	/* vCPU, its guest CPU, its pCPU. */
	assert_int_equal(json_object_array_length(at(scene, "rows")), 3);
	row = nth(scene, "rows", 0);
	assert_string_equal(json_object_get_string(at(row, "kind")), "vcpu");
	for (size_t i = 0; i < json_object_array_length(at(row, "pieces")); i += 6) {
		if (json_object_get_int(nth(row, "pieces", i + 2)) == VCPU_RUNNABLE) {
			total += json_object_get_int64(nth(row, "pieces", i + 1));
			assert_int_equal(json_object_get_int(nth(row, "pieces", i + 3)), HOG);
		}
	}
	assert_int_equal(total, 400000000);
	assert_true(json_object_array_length(at(f->data, "tables")) >= 5);
	assert_true(json_object_array_length(at(at(f->data, "latencies"), "maps")) >= 1);
}

static void names_stay_in_their_place(void **state)
{
	struct fixture *f = *state;
	const char *p;
	int ends = 0;

	for (size_t i = 0; i < COUNT(hostile); i++) {
		int64_t from_us = 1000000 * (int64_t)(i + 1);

		PUSH(f, NAME(HOST, from_us - 2, HOG, HOG, script_comm(hostile[i])));
		PUSH(f, NAME(VM, from_us - 1, TASK, TASK, script_comm(hostile[i])));
		stall(f, from_us);
	}
	render(f);
	assert_int_equal(json_object_array_length(at(at(f->data, "report"), "incidents")),
			 COUNT(hostile));
	for (p = f->html; (p = strstr(p, "</script")); p++)
		ends++;
	assert_int_equal(ends, 2);
	assert_null(strstr(f->html, "<!--"));
	assert_null(strstr(f->html, "<run>"));
	for (size_t i = 0; i < f->len; i++)
		assert_true((unsigned char)f->html[i] >= ' ' || f->html[i] == '\n' ||
			    f->html[i] == '\t');
	/* What is valid comes through as it was. */
	for (size_t i = 0; i < 3; i++) {
		struct json_object *task =
			at(json_object_array_get_idx(at(at(f->data, "report"), "incidents"), i),
			   "task");

		assert_string_equal(json_object_get_string(at(task, "comm")), hostile[i]);
	}
}

static void is_bounded_and_says_what_it_leaves_out(void **state)
{
	struct fixture *f = *state;
	size_t shown, left_out;

	for (int64_t i = 1; i <= 300; i++)
		stall(f, 1000000 * i);
	render(f);
	shown = json_object_array_length(at(at(f->data, "report"), "incidents"));
	left_out = (size_t)json_object_get_int(at(f->data, "incidents_left_out"));
	assert_int_equal(shown, 250);
	assert_int_equal(shown + left_out, 300);
	assert_true(json_object_array_length(at(f->data, "scenes")) <= SCENES_MAX);
	assert_true(f->len < PAGE_BYTES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(shows_incident_timeline_and_tables, setup,
						teardown),
		cmocka_unit_test_setup_teardown(names_stay_in_their_place, setup, teardown),
		cmocka_unit_test_setup_teardown(is_bounded_and_says_what_it_leaves_out, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
