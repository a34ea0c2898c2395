/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests gates: a figure moves only if chance is unlikely, and a gate without data does not pass.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/compare/figure_name.h"
#include "host-collector/compare/gate.h"
#include "host-collector/compare/max_t.h"
#include "host-collector/compare/summarize.h"
#include "host-collector/compare/gate_text.h"

/* ---- the test ---- */

static void test_a_split_that_parts_all_values_has_the_least_chance(void **state)
{
	const double values[] = {1, 2, 3, 11, 12, 13};
	struct max_t_row row = {.values = values, .floor = 0.01};
	uint64_t splits;
	bool complete;

	(void)state;
	assert_int_equal(max_t_test(&row, 1, 3, 3, &splits, &complete), 0);
	assert_true(complete);
	assert_int_equal(splits, 20);
	assert_float_equal(row.p_up, 1.0 / 20, 1e-12);
	assert_float_equal(row.p_down, 1, 1e-12);
}

static void test_equal_values_are_no_evidence(void **state)
{
	const double values[] = {7, 7, 7, 7, 7, 7, 7, 7};
	struct max_t_row row = {.values = values, .floor = 0.01};
	uint64_t splits;
	bool complete;

	(void)state;
	assert_int_equal(max_t_test(&row, 1, 4, 4, &splits, &complete), 0);
	assert_float_equal(row.p_up, 1, 1e-12);
	assert_float_equal(row.p_down, 1, 1e-12);
}

static void test_more_figures_make_the_same_difference_less_telling(void **state)
{
	const double values[] = {1, 2, 3, 4, 3, 4, 5, 6, 2, 9, 4, 1, 3, 8, 2, 5,
				 4, 1, 8, 3, 5, 2, 6, 7, 6, 5, 1, 2, 3, 9, 4, 4};
	struct max_t_row alone = {.values = values, .floor = 0.01}, rows[4];
	uint64_t splits;
	bool complete;

	(void)state;
	for (int i = 0; i < 4; i++)
		rows[i] = (struct max_t_row){.values = values + 8 * i, .floor = 0.01};
	assert_int_equal(max_t_test(&alone, 1, 4, 4, &splits, &complete), 0);
	assert_int_equal(max_t_test(rows, 4, 4, 4, &splits, &complete), 0);
	assert_float_equal(rows[0].t, alone.t, 1e-12);
	assert_true(rows[0].p_up > alone.p_up);
}

static void test_one_wild_run_hides_no_shift(void **state)
{
	double values[16];
	struct max_t_row row = {.values = values, .floor = 0.005};
	uint64_t splits;
	bool complete;

	(void)state;
	for (int i = 0; i < 16; i++)
		values[i] = (i < 8 ? 0 : 0.1) + 0.005 * (i % 4);
	values[3] = 8;
	assert_int_equal(max_t_test(&row, 1, 8, 8, &splits, &complete), 0);
	assert_true(row.p_up < 0.02);
}

static void test_runs_without_the_figure_are_left_out(void **state)
{
	const double values[] = {1, 2, (double)NAN, 3, 11, (double)NAN, 12, 13};
	struct max_t_row row = {.values = values, .floor = 0.01};
	uint64_t splits;
	bool complete;

	(void)state;
	assert_int_equal(max_t_test(&row, 1, 4, 4, &splits, &complete), 0);
	assert_true(row.t > 5);
	assert_true(row.p_up <= 0.2);
	assert_int_equal(max_t_test(&row, 1, 1, 7, &splits, &complete), -EINVAL);
}

static void test_many_runs_are_sampled_the_same_each_time(void **state)
{
	double values[40];
	struct max_t_row row = {.values = values, .floor = 0.01}, again = row;
	uint64_t splits;
	bool complete;

	(void)state;
	for (int i = 0; i < 40; i++)
		values[i] = (i * 7 % 11) + (i >= 20);
	assert_int_equal(max_t_test(&row, 1, 20, 20, &splits, &complete), 0);
	assert_false(complete);
	assert_int_equal(splits, MAX_T_SPLITS);
	assert_int_equal(max_t_test(&again, 1, 20, 20, &splits, &complete), 0);
	assert_float_equal(row.p_up, again.p_up, 0);
	assert_true(row.p_up > 0.05 && row.p_up < 0.5);
}

static void test_shift_is_the_median_difference_with_its_exact_interval(void **state)
{
	const double base[] = {1, 2, 3, 4, 5}, new[] = {11, 12, 13, 14, 15};
	struct shift s;

	(void)state;
	assert_int_equal(shift_estimate(base, 5, new, 5, 0.95, &s), 0);
	assert_float_equal(s.estimate, 10, 1e-12);
	assert_float_equal(s.superiority, 1, 1e-12);
	/* Of 5 and 5: P(U <= 2) = 4/252 = 0.016 and P(U <= 3) = 7/252 = 0.028: the third
	 * difference from either end. */
	assert_float_equal(s.low, 7, 1e-12);
	assert_float_equal(s.high, 13, 1e-12);
	assert_int_equal(shift_estimate(base, 5, new, 0, 0.95, &s), -EINVAL);
}

/* ---- rules ---- */

static void test_mistakes_in_rules_are_named(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "g: line 0: no gate in it: nothing would be tested"},
		{"# nothing\n", "g: line 1: no gate in it: nothing would be tested"},
		{"gates x p99 hard 5%", "g: line 1: gates: want gate, false_alarms or min_runs"},
		{"gate x p99",
		 "g: line 1: want gate FIGURE STATISTIC and a limit: soft, hard or max"},
		{"gate x p98 hard 5%",
		 "g: line 1: p98: no such statistic: mean, p50, p90, p95, p99, "
		 "p99.9, rate, share"},
		{"gate x p99 optional", "g: line 1: no limit: want soft, hard or max"},
		{"gate x p99 hard", "g: line 1: hard: its number is missing"},
		{"gate x p99 hard 5", "g: line 1: hard 5: want a percentage, such as 5%"},
		{"gate x p99 hard nan%", "g: line 1: hard nan%: want a percentage, such as 5%"},
		{"\ngate x share hard 5%",
		 "g: line 2: hard 5%: want percentage points, such as 0.5pp"},
		{"gate x p99 max 5%", "g: line 1: max 5%: want a time, such as 200us"},
		{"gate x p99 soft 6% hard 5%", "g: line 1: the soft limit is above the hard one"},
		{"false_alarms 80%", "g: line 1: want false_alarms and a percentage up to 50%"},
		{"min_runs 1", "g: line 1: want min_runs and a whole number from 2 on"},
	};
	struct gate_rules rules;
	char why[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(gate_rules_parse(cases[i].text, "g", &rules, why, sizeof(why)),
				 -EINVAL);
		assert_string_equal(why, cases[i].why);
	}
}

static void test_default_rules_are_the_file_that_is_shipped(void **state)
{
	struct gate_rules builtin, file;
	char why[512];

	(void)state;
	assert_int_equal(gate_rules_read(NULL, &builtin, why, sizeof(why)), 0);
	assert_int_equal(gate_rules_read(TEST_SOURCE_DIR "/../deploy/ci/gates.conf", &file, why,
					 sizeof(why)),
			 0);
	assert_memory_equal(&builtin, &file, sizeof(file));
	assert_true(builtin.n > 10 && builtin.false_alarms <= 0.05);
}

/* ---- judgement ---- */

/* n runs in which figure "exits" has p99 around `ns`, the same few values around it each time. */
static void runs_make(struct run_set *set, size_t n, double ns, uint64_t count)
{
	for (size_t i = 0; i < n; i++) {
		struct run_summary *run = run_set_add(set, "run.vcs");
		struct run_figure *f = run_figure_add(run, "exits");

		run->simulated = true;
		run->span_ns = 1000000000;
		f->count = count;
		f->at[RUN_P99] = ns * (1 + 0.005 * ((double)(i * 3 % 5) - 2));
		f->at[RUN_RATE] = (double)count;
	}
}

struct bench {
	struct run_set base, new;
	struct gate_rules rules;
	struct gate_result result;
	char why[512];
};

static int judge(struct bench *b, const char *rules)
{
	assert_int_equal(gate_rules_parse(rules, "g", &b->rules, b->why, sizeof(b->why)), 0);
	return gate_judge(&b->base, &b->new, &b->rules, &b->result, b->why, sizeof(b->why));
}

static void bench_fini(struct bench *b)
{
	run_set_fini(&b->base);
	run_set_fini(&b->new);
	gate_result_fini(&b->result);
}

static void test_outcomes(void **state)
{
	static const struct {
		const char *rules;
		size_t n_base, n_new;
		double new_ns;
		uint64_t new_count;
		enum gate_outcome outcome;
	} cases[] = {
		{"gate exits p99 soft 3% hard 5%", 8, 8, 1100, 1000, GATE_HARD},
		{"gate exits p99 soft 3% hard 20%", 8, 8, 1100, 1000, GATE_SOFT},
		{"gate exits p99 hard 20%", 8, 8, 1100, 1000, GATE_PASS},
		{"gate exits p99 hard 5%", 8, 8, 1000, 1000, GATE_PASS},
		{"gate exits p99 hard 5%", 8, 8, 900, 1000, GATE_PASS},
		/* A budget needs no change to be exceeded. */
		{"gate exits p99 max 900ns", 8, 8, 1000, 1000, GATE_HARD},
		{"gate exits p99 max 2us", 8, 8, 1000, 1000, GATE_PASS},
		/* No samples, too few, too few runs, nothing of that name: never a pass. */
		{"gate exits p99 hard 5%", 8, 8, 1000, 0, GATE_NO_DATA},
		{"gate exits p99 hard 5%", 8, 8, 1000, 499, GATE_NO_DATA},
		{"gate exits p99 hard 5%", 8, 4, 1000, 1000, GATE_NO_DATA},
		{"gate exits p99 hard 5%", 8, 0, 1000, 1000, GATE_NO_DATA},
		{"gate irq.* p99 hard 5%", 8, 8, 1000, 1000, GATE_NO_DATA},
		{"gate irq.* p99 hard 5% optional", 8, 8, 1000, 1000, GATE_NO_DATA},
		{"gate exits p99 hard 5%\ngate irq.* p99 hard 5% optional", 8, 8, 1000, 1000,
		 GATE_PASS},
		{"gate exits p99 hard 5%\ngate exits rate hard 5% optional", 8, 8, 1000, 0,
		 GATE_NO_DATA},
		/* Three against three can be split in 20 ways: 2.5 % cannot be shown. */
		{"min_runs 3\ngate exits p99 hard 5%", 3, 3, 2000, 1000, GATE_NO_DATA},
		{"min_runs 3\nfalse_alarms 5%\ngate exits p99 hard 5%", 3, 3, 2000, 1000,
		 GATE_HARD},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench b = {0};

		runs_make(&b.base, cases[i].n_base, 1000, 1000);
		runs_make(&b.new, cases[i].n_new, cases[i].new_ns, cases[i].new_count);
		assert_int_equal(judge(&b, cases[i].rules), 0);
		if (b.result.outcome != cases[i].outcome)
			fail_msg("case %zu: %s", i, gate_outcome_name(b.result.outcome));
		assert_int_equal(b.result.outcome == GATE_NO_DATA, *b.result.why != '\0');
		bench_fini(&b);
	}
}

static void test_simulated_runs_are_not_held_against_real_ones(void **state)
{
	struct bench b = {0};

	(void)state;
	runs_make(&b.base, 8, 1000, 1000);
	runs_make(&b.new, 8, 1000, 1000);
	b.new.runs[5].simulated = false;
	assert_int_equal(judge(&b, "gate exits p99 hard 5%"), -EINVAL);
	bench_fini(&b);
}

static void test_the_first_stage_in_the_order_of_cause_is_named(void **state)
{
	static const char *const figures[] = {"share.kvm", "irq.msi.latency", "exit.HLT", "exits"};
	struct bench b = {0};

	(void)state;
	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < 8; i++) {
			struct run_summary *run = run_set_add(side ? &b.new : &b.base, "run.vcs");

			for (size_t j = 0; j < 4; j++) {
				struct run_figure *f = run_figure_add(run, figures[j]);
				/* What follows moves more than its cause. */
				double ns = 1000 + i + side * 100.0 * (double)(4 - j);

				f->count = 10000;
				f->at[j ? RUN_P99 : RUN_SHARE] = j ? ns : ns / 100;
			}
		}
	}
	assert_int_equal(judge(&b, "gate share.* share hard 1pp\ngate * p99 hard 5%"), 0);
	assert_int_equal(b.result.outcome, GATE_HARD);
	assert_int_equal(b.result.n, 4);
	assert_string_equal(b.result.first->figure, "exit.HLT");
	bench_fini(&b);
}

/* ---- files and formats ---- */

static void test_summaries_survive_a_file(void **state)
{
	char path[] = "/tmp/vcpuscope-summary.XXXXXX", why[512];
	struct run_set set = {0}, back = {0};
	int fd = mkstemp(path);
	FILE *to = fdopen(fd, "w");

	(void)state;
	runs_make(&set, 3, 1234.5, 77);
	set.runs[1].lost = 5;
	assert_int_equal(run_set_write(&set, to), 0);
	fclose(to);
	assert_true(run_set_is_file(path));
	assert_int_equal(run_set_read(&back, path, why, sizeof(why)), 0);
	unlink(path);
	assert_int_equal(back.n, 3);
	assert_int_equal(back.runs[1].lost, 5);
	assert_true(back.runs[2].simulated);
	assert_int_equal(back.runs[2].span_ns, 1000000000);
	assert_string_equal(back.runs[0].figures[0].name, "exits");
	assert_int_equal(back.runs[0].figures[0].count, 77);
	assert_float_equal(back.runs[0].figures[0].at[RUN_P99], set.runs[0].figures[0].at[RUN_P99],
			   0.01);
	assert_true(isnan(back.runs[0].figures[0].at[RUN_P50]));
	run_set_fini(&set);
	run_set_fini(&back);
}

/* A baseline of an earlier version, a gate of another tool, and runs with the current name. */
static void test_other_names_of_exits_mean_the_same_figure(void **state)
{
	char path[] = "/tmp/vcpuscope-summary.XXXXXX";
	struct bench b = {0};
	struct run_set old = {0};
	int fd = mkstemp(path);
	FILE *to = fdopen(fd, "w");

	(void)state;
	runs_make(&old, 8, 1000, 1000);
	runs_make(&b.new, 8, 1100, 1000);
	for (size_t i = 0; i < 8; i++) {
		strcpy(old.runs[i].figures[0].name, i % 2 ? "exit.vmmcall" : "exit.hypercall");
		strcpy(b.new.runs[i].figures[0].name, "exit.hypercall");
	}
	assert_int_equal(run_set_write(&old, to), 0);
	fclose(to);
	assert_int_equal(run_set_read(&b.base, path, b.why, sizeof(b.why)), 0);
	unlink(path);
	assert_int_equal(judge(&b, "gate exit.vmmc* p99 hard 5%"), 0);
	assert_int_equal(b.result.outcome, GATE_HARD);
	assert_string_equal(b.result.first->figure, "exit.hypercall");
	assert_int_equal(b.result.n, 1);
	assert_string_equal(figure_name_of_exit(2, 0x4e).text, "exit.PF_excp");
	assert_string_equal(figure_name_current("exit.CPUID").text, "exit.CPUID");
	assert_string_equal(figure_name_current("exit.cpuid").text, "exit.cpuid");
	assert_string_equal(figure_name_current("exit.0x7b").text, "exit.0x7b");
	assert_string_equal(figure_name_current("exits").text, "exits");
	run_set_fini(&old);
	bench_fini(&b);
}

static void figures_rename(struct run_set *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++)
		snprintf(set->runs[i].figures[0].name, FIGURE_NAME_MAX, "%s", name);
}

/* An optional gate lets it pass, but every format says that there was nothing to compare with. */
static void test_a_figure_of_one_side_only_is_reported(void **state)
{
	static const struct {
		int (*write)(const struct gate_result *, const struct gate_view *, FILE *);
		const char *says[2];
	} formats[] = {
		{gate_write_text,
		 {"exit.HLT                 p99   only the base runs have this figure (8 of 8)",
		  "exit.CPUID               p99   only the new runs have this figure (8 of 8)"}},
		{gate_write_json, {"\"only_in\":\"base\"", "\"only_in\":\"new\""}},
		{gate_write_junit, {"no new run has it", "no base run has it"}},
		{gate_write_tap,
		 {"# SKIP on one side only\n# rare: only the base runs", "no base run"}},
	};
	const struct gate_view view = {0};
	struct bench b = {0};

	(void)state;
	runs_make(&b.base, 8, 1000, 1000);
	runs_make(&b.new, 8, 1000, 1000);
	figures_rename(&b.base, "exit.HLT");
	figures_rename(&b.new, "exit.CPUID");
	assert_int_equal(judge(&b, "gate exit.* p99 hard 5% optional"), 0);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		char *text = NULL;
		size_t len;
		FILE *to = open_memstream(&text, &len);

		assert_int_equal(formats[i].write(&b.result, &view, to), 0);
		fclose(to);
		if (!strstr(text, formats[i].says[0]) || !strstr(text, formats[i].says[1]))
			fail_msg("format %zu: %s", i, text);
		free(text);
	}
	bench_fini(&b);
}

/* A figure that the user named must be tested, whatever `optional` says. */
static void test_a_required_figure_without_data_does_not_pass(void **state)
{
	static const char rules[] = "gate exits p99 hard 5%\ngate pair.* p99 hard 5% optional\n"
				    "gate pair.* p50 hard 5% optional";
	static const struct {
		bool in_base, in_new;
		uint64_t count;
		enum gate_outcome outcome;
		enum gate_side only_in;
	} cases[] = {
		{true, true, 1000, GATE_PASS, GATE_BOTH_SIDES},
		{false, true, 1000, GATE_NO_DATA, GATE_NEW},
		{true, false, 1000, GATE_NO_DATA, GATE_BASE},
		{false, false, 0, GATE_NO_DATA, GATE_BOTH_SIDES},
		{true, true, 10, GATE_NO_DATA, GATE_BOTH_SIDES},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench b = {0};
		const struct gate_row *row = NULL;

		runs_make(&b.base, 8, 1000, 1000);
		runs_make(&b.new, 8, 1000, 1000);
		for (size_t j = 0; j < 16; j++) {
			struct run_set *set = j < 8 ? &b.base : &b.new;

			if (j < 8 ? cases[i].in_base : cases[i].in_new) {
				struct run_figure *f = run_figure_add(&set->runs[j % 8], "pair.a");

				f->count = cases[i].count;
				f->at[RUN_P99] = 500 + (double)(j % 8);
			}
		}
		assert_int_equal(judge(&b, rules), 0);
		/* Without the request it is optional. */
		assert_int_equal(b.result.outcome, GATE_PASS);
		gate_result_fini(&b.result);
		assert_int_equal(gate_rules_need(&b.rules, "pair.a", b.why, sizeof(b.why)), 0);
		assert_int_equal(
			gate_judge(&b.base, &b.new, &b.rules, &b.result, b.why, sizeof(b.why)), 0);
		assert_int_equal(b.result.outcome, cases[i].outcome);
		for (size_t j = 0; j < b.result.n; j++) {
			if (!strcmp(b.result.rows[j].figure, "pair.a"))
				row = &b.result.rows[j];
		}
		assert_non_null(row);
		assert_int_equal(row->outcome, cases[i].outcome);
		assert_int_equal(row->only_in, cases[i].only_in);
		assert_int_equal(gate_rules_need(&b.rules, "irq.x", b.why, sizeof(b.why)), -EINVAL);
		assert_string_equal(b.why,
				    "no gate is for the figure irq.x; add a line to gates.conf");
		bench_fini(&b);
	}
}

static void test_files_that_are_no_summaries_are_refused(void **state)
{
#define RUN(FIGURES)                                                                               \
	"{\"schema\": \"vcpuscope.summary/1\", \"runs\": [{\"recording\": \"x\", "                 \
	"\"simulated\": true, \"span_ns\": 1, \"lost_events\": 0, \"figures\": [" FIGURES "]}]}"
	static const char *const texts[] = {
		"",
		"{",
		"{}",
		"{\"schema\": \"vcpuscope.summary/2\", \"runs\": []}",
		"{\"schema\": \"vcpuscope.summary/1\"}",
		"{\"schema\": \"vcpuscope.summary/1\", \"runs\": [7]}",
		RUN("{\"name\": \"exits\"}"),
		RUN("{\"name\": \"\", \"count\": 1}"),
		RUN("{\"name\": \"<b>\", \"count\": 1}"),
		RUN("{\"name\": \"exits\", \"count\": -1}"),
		RUN("{\"name\": \"exits\", \"count\": 1, \"p99\": \"x\"}"),
		RUN("{\"name\": \"exits\", \"count\": 1, \"p99\": -1}"),
		RUN("{\"name\": \"exits\", \"count\": 1, \"p99\": NaN}"),
		RUN("{\"name\": \"exits\", \"count\": 1}, {\"name\": \"exits\", \"count\": 1}"),
		"{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}}}}}}",
	};
#undef RUN
	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char path[] = "/tmp/vcpuscope-summary.XXXXXX", why[512] = "";
		struct run_set set = {0};
		int fd = mkstemp(path);

		assert_int_equal(write(fd, texts[i], strlen(texts[i])), strlen(texts[i]));
		close(fd);
		if (run_set_read(&set, path, why, sizeof(why)) != -EBADMSG)
			fail_msg("case %zu was taken", i);
		assert_non_null(strstr(why, path));
		unlink(path);
		run_set_fini(&set);
	}
}

static void test_every_format_tells_the_regression(void **state)
{
	static const struct {
		int (*write)(const struct gate_result *, const struct gate_view *, FILE *);
		const char *says;
	} formats[] = {
		{gate_write_text, "first to move: exits (p99, +9.5 %)\nsee where: show <it>\n"},
		{gate_write_json, "\"first_moved\":\"exits\""},
		{gate_write_junit, "see where: show &#60;it&#62;"},
		{gate_write_junit, "<failure message=\"998 ns to 1.10 us: +9.5 %"},
		{gate_write_tap, "not ok 1 - exits p99\n# regression: 998 ns to 1.10 us"},
	};
	const struct gate_view view = {.next = "show <it>"};
	struct bench b = {0};

	(void)state;
	runs_make(&b.base, 8, 1000, 1000);
	runs_make(&b.new, 8, 1100, 1000);
	assert_int_equal(judge(&b, "gate exits p99 hard 5%\ngate x p99 hard 5% optional"), 0);
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		char *text = NULL;
		size_t len;
		FILE *to = open_memstream(&text, &len);

		assert_int_equal(formats[i].write(&b.result, &view, to), 0);
		fclose(to);
		if (!strstr(text, formats[i].says))
			fail_msg("format %zu: %s", i, text);
		free(text);
	}
	bench_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_split_that_parts_all_values_has_the_least_chance),
		cmocka_unit_test(test_equal_values_are_no_evidence),
		cmocka_unit_test(test_more_figures_make_the_same_difference_less_telling),
		cmocka_unit_test(test_one_wild_run_hides_no_shift),
		cmocka_unit_test(test_runs_without_the_figure_are_left_out),
		cmocka_unit_test(test_many_runs_are_sampled_the_same_each_time),
		cmocka_unit_test(test_shift_is_the_median_difference_with_its_exact_interval),
		cmocka_unit_test(test_mistakes_in_rules_are_named),
		cmocka_unit_test(test_default_rules_are_the_file_that_is_shipped),
		cmocka_unit_test(test_outcomes),
		cmocka_unit_test(test_simulated_runs_are_not_held_against_real_ones),
		cmocka_unit_test(test_the_first_stage_in_the_order_of_cause_is_named),
		cmocka_unit_test(test_summaries_survive_a_file),
		cmocka_unit_test(test_other_names_of_exits_mean_the_same_figure),
		cmocka_unit_test(test_a_figure_of_one_side_only_is_reported),
		cmocka_unit_test(test_a_required_figure_without_data_does_not_pass),
		cmocka_unit_test(test_files_that_are_no_summaries_are_refused),
		cmocka_unit_test(test_every_format_tells_the_regression),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
