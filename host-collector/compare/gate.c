/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/compare/gate.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/compare/figure_name.h"
#include "host-collector/compare/max_t.h"
#include "host-collector/compare/summarize.h"

static const double interval_confidence = 0.95;
/* The standard deviation that measuring alone causes. For times: half a bucket of clock/histogram.h
 * (0.8 %, uniform). For shares: it depends on where a recording begins and ends. */
static const double floor_log = 0.005, floor_share = 0.02;
/* Added to times before their logarithm: what is a few nanoseconds, or none because the clocks'
 * error is larger, does not double or halve in earnest. */
static const double time_unit_ns = 50;

const char *gate_outcome_name(enum gate_outcome o)
{
	static const char *const names[] = {
#define X(NAME, name) name,
		GATE_OUTCOMES(X)
#undef X
	};

	return names[o];
}

/* The value of a run, NAN if it has too few samples. */
static double value_of(const struct run_summary *run, const struct gate_row *row)
{
	const struct run_figure *f = run_figure_find(run, row->figure);
	enum run_statistic s = row->rule->statistic;

	return f && f->count >= run_statistic_needs(s) ? f->at[s] : (double)NAN;
}

/* ---- rows ---- */

static bool row_known(const struct gate_result *r, const char *figure, enum run_statistic s)
{
	for (size_t i = 0; i < r->n; i++) {
		if (r->rows[i].rule->statistic == s && !strcmp(r->rows[i].figure, figure))
			return true;
	}
	return false;
}

static int row_add(struct gate_result *r, const struct gate_rule *rule, const char *figure)
{
	struct gate_row *grown = realloc(r->rows, (r->n + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	r->rows = grown;
	grown[r->n] = (struct gate_row){.rule = rule};
	snprintf(grown[r->n++].figure, FIGURE_NAME_MAX, "%s", figure);
	return 0;
}

/* The figures of a set of runs that a rule names and no earlier one did. */
static int rows_of_set(struct gate_result *r, const struct gate_rule *rule,
		       const struct run_set *set)
{
	for (size_t i = 0; i < set->n; i++) {
		for (size_t j = 0; j < set->runs[i].n; j++) {
			const struct run_figure *f = &set->runs[i].figures[j];

			if (isnan(f->at[rule->statistic]) ||
			    !figure_name_matches(rule->figure, f->name) ||
			    row_known(r, f->name, rule->statistic))
				continue;
			if (row_add(r, rule, f->name))
				return -ENOMEM;
		}
	}
	return 0;
}

static int rows_make(struct gate_result *r, const struct run_set *base, const struct run_set *new,
		     const struct gate_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++) {
		const struct gate_rule *rule = &rules->rules[i];
		size_t before = r->n;
		int err = rows_of_set(r, rule, base);

		if (!err)
			err = rows_of_set(r, rule, new);
		/* A rule that nothing answers to is a row without data, which cannot pass. */
		if (!err && r->n == before && !rule->optional)
			err = row_add(r, rule, rule->figure);
		if (err)
			return err;
	}
	return 0;
}

/* ---- data ---- */

static size_t values_fill(const struct run_set *set, const struct gate_row *row, double *values)
{
	size_t known = 0;

	for (size_t i = 0; i < set->n; i++) {
		values[i] = value_of(&set->runs[i], row);
		known += !isnan(values[i]);
	}
	return known;
}

static bool set_has(const struct run_set *set, const struct gate_row *row)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct run_figure *f = run_figure_find(&set->runs[i], row->figure);

		if (f && !isnan(f->at[row->rule->statistic]))
			return true;
	}
	return false;
}

static enum gate_side side_alone(const struct gate_row *row, const struct run_set *base,
				 const struct run_set *new)
{
	if (row->n_base && !set_has(new, row))
		return GATE_BASE;
	return row->n_new && !set_has(base, row) ? GATE_NEW : GATE_BOTH_SIDES;
}

static size_t known_copy(const double *values, size_t n, double *to)
{
	size_t known = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isnan(values[i]))
			to[known++] = values[i];
	}
	return known;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Sorts them. */
static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), ascending);
	return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* Times change by a factor, so they are compared by their logarithms; shares by their difference.
 */
static double scaled(enum run_statistic s, double value)
{
	if (s == RUN_SHARE)
		return value;
	return s == RUN_RATE ? log(fmax(value, 1e-3)) : log(value + time_unit_ns);
}

static double change_of(enum run_statistic s, double difference)
{
	return s == RUN_SHARE ? difference : 100 * expm1(difference);
}

/* Medians and change of a row whose values are in `values`, which become scaled. */
static int row_measure(struct gate_row *row, double *values, size_t n_base, size_t n_new,
		       double *scratch)
{
	enum run_statistic s = row->rule->statistic;
	size_t a = known_copy(values, n_base, scratch), b;
	int err;

	row->base = median(scratch, a);
	b = known_copy(values + n_base, n_new, scratch);
	row->new = median(scratch, b);
	for (size_t i = 0; i < n_base + n_new; i++)
		values[i] = isnan(values[i]) ? values[i] : scaled(s, values[i]);
	known_copy(values, n_base, scratch);
	known_copy(values + n_base, n_new, scratch + a);
	err = shift_estimate(scratch, a, scratch + a, b, interval_confidence, &row->change);
	row->change.estimate = change_of(s, row->change.estimate);
	row->change.low = change_of(s, row->change.low);
	row->change.high = change_of(s, row->change.high);
	return err;
}

/* ---- judgement ---- */

static void row_judge(struct gate_row *row, const struct max_t_row *test, double level)
{
	const struct gate_rule *rule = row->rule;
	double change = row->change.estimate;

	row->p = test->t >= 0 ? test->p_up : test->p_down;
	row->above_max = row->new > rule->max;
	if (row->above_max || (test->p_up <= level && change >= rule->hard))
		row->outcome = GATE_HARD;
	else if (test->p_up <= level && change >= rule->soft)
		row->outcome = GATE_SOFT;
	else if (test->p_up <= level)
		row->outcome = GATE_WORSE;
	else if (test->p_down <= level)
		row->outcome = GATE_BETTER;
}

/* Tests the rows with enough data on both sides. */
static int rows_test(struct gate_result *r, const struct run_set *base, const struct run_set *new,
		     const struct gate_rules *rules)
{
	size_t n = base->n + new->n;
	double *values = malloc((r->n + 1) * n * sizeof(*values));
	struct max_t_row *tests = calloc(r->n + 1, sizeof(*tests));
	struct gate_row **tested = calloc(r->n + 1, sizeof(struct gate_row *));
	double *scratch = values ? values + r->n * n : NULL;
	int err = values && tests && tested ? 0 : -ENOMEM;

	for (size_t i = 0; i < r->n && !err; i++) {
		struct gate_row *row = &r->rows[i];
		double *of = values + r->tested * n;
		bool enough_base, enough_new;

		row->n_base = values_fill(base, row, of);
		row->n_new = values_fill(new, row, of + base->n);
		enough_base = row->n_base >= rules->min_runs;
		enough_new = row->n_new >= rules->min_runs;
		row->only_in = side_alone(row, base, new);
		if (!enough_base || !enough_new) {
			row->outcome = enough_base == enough_new ? GATE_RARE : GATE_NO_DATA;
			continue;
		}
		err = row_measure(row, of, base->n, new->n, scratch);
		tests[r->tested] = (struct max_t_row){
			.values = of,
			.floor = row->rule->statistic == RUN_SHARE ? floor_share : floor_log};
		tested[r->tested++] = row;
	}
	if (!err && r->tested)
		err = max_t_test(tests, r->tested, base->n, new->n, &r->splits, &r->complete);
	for (size_t i = 0; i < r->tested && !err; i++)
		row_judge(tested[i], &tests[i], rules->false_alarms);
	free(values);
	free(tests);
	free(tested);
	return err;
}

/* A rule is unmet if it has to have data and none of its rows was tested. */
static void missing_mark(struct gate_result *r)
{
	for (size_t i = 0; i < r->n; i++) {
		struct gate_row *row = &r->rows[i];
		bool met = false;

		if (row->outcome == GATE_NO_DATA && row->rule->optional)
			row->outcome = GATE_RARE;
		if (row->outcome != GATE_RARE || row->rule->optional)
			continue;
		for (size_t j = 0; j < r->n; j++)
			met |= r->rows[j].rule == row->rule && r->rows[j].outcome < GATE_RARE;
		if (!met)
			row->outcome = GATE_NO_DATA;
	}
}

/* A required figure that was not tested has rows without data, at least one. */
static int needed_mark(struct gate_result *r, const struct gate_rules *rules)
{
	for (size_t i = 0; i < rules->n_needed; i++) {
		const char *figure = rules->needed[i];
		bool met = false, known = false;

		for (size_t j = 0; j < r->n; j++) {
			struct gate_row *row = &r->rows[j];

			if (strcmp(row->figure, figure) != 0)
				continue;
			known = true;
			met |= row->outcome < GATE_RARE;
		}
		if (!known && row_add(r, gate_rules_find(rules, figure), figure))
			return -ENOMEM;
		for (size_t j = 0; j < r->n && !met; j++) {
			if (!strcmp(r->rows[j].figure, figure))
				r->rows[j].outcome = GATE_NO_DATA;
		}
	}
	return 0;
}

static const struct gate_row *first_moved(const struct gate_result *r, enum gate_outcome outcome)
{
	const struct gate_row *first = NULL;

	for (size_t i = 0; i < r->n; i++) {
		const struct gate_row *row = &r->rows[i];
		unsigned rank = figure_rank(row->figure);

		if (row->outcome != outcome)
			continue;
		if (!first || rank < figure_rank(first->figure) ||
		    (rank == figure_rank(first->figure) &&
		     row->change.estimate > first->change.estimate))
			first = row;
	}
	return first;
}

static void result_conclude(struct gate_result *r, const struct gate_rules *rules)
{
	size_t count[GATE_OUTCOME_COUNT] = {0};

	for (size_t i = 0; i < r->n; i++)
		count[r->rows[i].outcome]++;
	if (count[GATE_HARD]) {
		r->outcome = GATE_HARD;
	} else if (r->n_base < rules->min_runs || r->n_new < rules->min_runs) {
		r->outcome = GATE_NO_DATA;
		snprintf(r->why, sizeof(r->why),
			 "%zu run%s against %zu; record at least %zu on each side", r->n_base,
			 r->n_base == 1 ? "" : "s", r->n_new, rules->min_runs);
	} else if (count[GATE_NO_DATA] || !r->tested) {
		r->outcome = GATE_NO_DATA;
		snprintf(r->why, sizeof(r->why),
			 "%zu gates have too few samples in one or both sides; record longer, or "
			 "mark them optional",
			 count[GATE_NO_DATA]);
	} else if (1.0 / (double)r->splits > rules->false_alarms) {
		r->outcome = GATE_NO_DATA;
		snprintf(
			r->why, sizeof(r->why),
			"%zu runs against %zu can be split in %llu ways only: nothing can be shown "
			"at %g %% false alarms; record more runs",
			r->n_base, r->n_new, (unsigned long long)r->splits,
			100 * rules->false_alarms);
	} else {
		r->outcome = count[GATE_SOFT] ? GATE_SOFT : GATE_PASS;
	}
	r->first = first_moved(r, GATE_HARD);
	if (!r->first)
		r->first = first_moved(r, GATE_SOFT);
}

static bool all_simulated(const struct run_set *set)
{
	bool all = true;

	for (size_t i = 0; i < set->n; i++)
		all &= set->runs[i].simulated;
	return all;
}

static bool any_simulated(const struct run_set *set)
{
	bool any = false;

	for (size_t i = 0; i < set->n; i++)
		any |= set->runs[i].simulated;
	return any;
}

int gate_judge(const struct run_set *base, const struct run_set *new,
	       const struct gate_rules *rules, struct gate_result *out, char *why, size_t why_bytes)
{
	bool simulated = any_simulated(base) || any_simulated(new);
	int err;

	*out = (struct gate_result){.n_base = base->n,
				    .n_new = new->n,
				    .false_alarms = rules->false_alarms,
				    .confidence = interval_confidence,
				    .simulated = simulated};
	if (simulated && !(all_simulated(base) && all_simulated(new))) {
		snprintf(why, why_bytes,
			 "some runs are simulated and some are not; compare like with like");
		return -EINVAL;
	}
	err = rows_make(out, base, new, rules);
	if (!err)
		err = rows_test(out, base, new, rules);
	if (!err) {
		missing_mark(out);
		err = needed_mark(out, rules);
	}
	if (err) {
		snprintf(why, why_bytes, "%s", strerror(-err));
		return err;
	}
	result_conclude(out, rules);
	return 0;
}

void gate_result_fini(struct gate_result *r)
{
	free(r->rows);
	r->rows = NULL;
	r->n = 0;
}
