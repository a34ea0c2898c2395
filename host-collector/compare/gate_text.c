/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Only a rule's pattern may contain arbitrary text, because it comes from the user; the XML output
 * escapes it. The names of figures consist of letters, digits, '.', '_' and '-': summaries files
 * with others are refused.
 */
#include "host-collector/compare/gate_text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include <json-c/json.h>

#include "host-collector/util/json_add.h"

struct words {
	char text[96];
};

/* Three significant digits with the statistic's unit. */
static struct words value_words(enum run_statistic s, double value)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	struct words w;
	size_t unit = 0;

	if (s == RUN_SHARE) {
		snprintf(w.text, sizeof(w.text), "%.2f %%", value);
	} else if (s == RUN_RATE) {
		snprintf(w.text, sizeof(w.text), "%.4g/s", value);
	} else {
		while (unit < 3 && value < units[unit].ns)
			unit++;
		snprintf(w.text, sizeof(w.text), "%.*f %s",
			 unit == 3 || value >= 100 * units[unit].ns ? 0
			 : value >= 10 * units[unit].ns             ? 1
								    : 2,
			 value / units[unit].ns, units[unit].name);
	}
	return w;
}

static struct words change_words(enum run_statistic s, double change)
{
	struct words w;

	if (s == RUN_SHARE)
		snprintf(w.text, sizeof(w.text), "%+.2f pp", change);
	else
		snprintf(w.text, sizeof(w.text), "%+.1f %%", change);
	return w;
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

static bool was_tested(const struct gate_row *row)
{
	return row->outcome < GATE_RARE;
}

/* The row in one sentence. */
static void row_sentence(const struct gate_row *row, const struct gate_result *r, char *text,
			 size_t bytes)
{
	enum run_statistic s = row->rule->statistic;

	if (row->only_in != GATE_BOTH_SIDES) {
		snprintf(text, bytes,
			 "only the %s runs have this figure (%zu of %zu), no %s run has it",
			 row->only_in == GATE_BASE ? "base" : "new",
			 row->only_in == GATE_BASE ? row->n_base : row->n_new,
			 row->only_in == GATE_BASE ? r->n_base : r->n_new,
			 row->only_in == GATE_BASE ? "new" : "base");
		return;
	}
	if (!was_tested(row) && row->n_base == r->n_base && row->n_new == r->n_new) {
		snprintf(text, bytes, "too few runs: all have it, %zu against %zu", row->n_base,
			 row->n_new);
		return;
	}
	if (!was_tested(row)) {
		snprintf(text, bytes,
			 "%zu of %zu base runs and %zu of %zu new ones have the %llu sample%s that "
			 "it takes",
			 row->n_base, r->n_base, row->n_new, r->n_new,
			 (unsigned long long)run_statistic_needs(s),
			 plural(run_statistic_needs(s)));
		return;
	}
	snprintf(text, bytes, "%s to %s: %s (%s to %s with %g %%), p = %.4f",
		 value_words(s, row->base).text, value_words(s, row->new).text,
		 change_words(s, row->change.estimate).text, change_words(s, row->change.low).text,
		 change_words(s, row->change.high).text, 100 * r->confidence, row->p);
}

struct limit {
	char text[128];
};

/* The limit that a row went beyond, or NULL. */
static const char *limit_words(const struct gate_row *row, struct limit *w)
{
	enum run_statistic s = row->rule->statistic;

	if (row->above_max)
		snprintf(w->text, sizeof(w->text), "max %s", value_words(s, row->rule->max).text);
	else if (row->outcome == GATE_HARD)
		snprintf(w->text, sizeof(w->text), "hard %g %s", row->rule->hard,
			 s == RUN_SHARE ? "pp" : "%");
	else if (row->outcome == GATE_SOFT)
		snprintf(w->text, sizeof(w->text), "soft %g %s", row->rule->soft,
			 s == RUN_SHARE ? "pp" : "%");
	else
		return NULL;
	return w->text;
}

static size_t count_of(const struct gate_result *r, enum gate_outcome outcome)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += r->rows[i].outcome == outcome;
	return n;
}

static int stream_result(FILE *to)
{
	return ferror(to) ? -EIO : 0;
}

/* ---- text ---- */

static void text_row(const struct gate_row *row, const struct gate_result *r, FILE *to)
{
	enum run_statistic s = row->rule->statistic;
	const char *limit;
	char why[640];
	struct limit w;

	fprintf(to, "%-10s  %-24s %-5s ", gate_outcome_name(row->outcome), row->figure,
		run_statistic_name(s));
	if (!was_tested(row)) {
		row_sentence(row, r, why, sizeof(why));
		fprintf(to, "%s\n", why);
		return;
	}
	limit = limit_words(row, &w);
	fprintf(to, "%10s %10s %10s  %9s .. %-9s %7.4f  %s\n", value_words(s, row->base).text,
		value_words(s, row->new).text, change_words(s, row->change.estimate).text,
		change_words(s, row->change.low).text, change_words(s, row->change.high).text,
		row->p, limit ? limit : "");
}

static bool is_shown(const struct gate_row *row, bool all)
{
	return all || row->only_in != GATE_BOTH_SIDES ||
	       (row->outcome != GATE_PASS && row->outcome != GATE_RARE);
}

int gate_write_text(const struct gate_result *r, const struct gate_view *view, FILE *to)
{
	/* The worst first. */
	static const enum gate_outcome order[] = {GATE_HARD,   GATE_NO_DATA, GATE_SOFT, GATE_WORSE,
						  GATE_BETTER, GATE_PASS,    GATE_RARE};
	bool any = false;

	fprintf(to, "%s%s: %zu run%s against %zu, %zu figure%s tested, ",
		gate_outcome_name(r->outcome), r->simulated ? " (simulated)" : "", r->n_base,
		plural(r->n_base), r->n_new, r->tested, plural(r->tested));
	fprintf(to, "%zu regression%s, %zu warning%s, %zu better\n", count_of(r, GATE_HARD),
		plural(count_of(r, GATE_HARD)), count_of(r, GATE_SOFT),
		plural(count_of(r, GATE_SOFT)), count_of(r, GATE_BETTER));
	if (*r->why)
		fprintf(to, "not enough data: %s\n", r->why);
	if (r->first) {
		fprintf(to, "first to move: %s (%s, %s)\n", r->first->figure,
			run_statistic_name(r->first->rule->statistic),
			change_words(r->first->rule->statistic, r->first->change.estimate).text);
		if (view->next)
			fprintf(to, "see where: %s\n", view->next);
	}
	for (size_t o = 0; o < sizeof(order) / sizeof(order[0]); o++) {
		for (size_t i = 0; i < r->n; i++) {
			const struct gate_row *row = &r->rows[i];

			if (row->outcome != order[o] || !is_shown(row, view->all))
				continue;
			if (!any)
				fprintf(to, "\n%-10s  %-24s %-5s %10s %10s %10s  %-22s %7s  %s\n",
					"", "figure", "", "base", "new", "change", "95 % interval",
					"p", "limit");
			any = true;
			text_row(row, r, to);
		}
	}
	if (r->tested)
		fprintf(to,
			"\n%s%llu splits of the runs; p is for all figures together: at most %g %% "
			"false alarms of the whole gate\n",
			r->complete ? "all " : "", (unsigned long long)r->splits,
			100 * r->false_alarms);
	return stream_result(to);
}

/* ---- JSON ---- */

static void add_number(struct json_object *o, const char *key, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", value);
	json_object_object_add(o, key,
			       isfinite(value) ? json_object_new_double_s(value, text) : NULL);
}

static struct json_object *row_json(const struct gate_row *row)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "figure", row->figure);
	json_add_text(o, "statistic", run_statistic_name(row->rule->statistic));
	json_add_text(o, "outcome", gate_outcome_name(row->outcome));
	json_object_object_add(o, "base_runs", json_object_new_uint64(row->n_base));
	json_object_object_add(o, "new_runs", json_object_new_uint64(row->n_new));
	if (row->only_in != GATE_BOTH_SIDES)
		json_add_text(o, "only_in", row->only_in == GATE_BASE ? "base" : "new");
	if (!was_tested(row))
		return o;
	add_number(o, "base", row->base);
	add_number(o, "new", row->new);
	add_number(o, "change", row->change.estimate);
	add_number(o, "change_low", row->change.low);
	add_number(o, "change_high", row->change.high);
	json_add_text(o, "change_unit", row->rule->statistic == RUN_SHARE ? "pp" : "%");
	add_number(o, "superiority", row->change.superiority);
	add_number(o, "p", row->p);
	add_number(o, "soft", row->rule->soft);
	add_number(o, "hard", row->rule->hard);
	add_number(o, "max", row->rule->max);
	return o;
}

int gate_write_json(const struct gate_result *r, const struct gate_view *view, FILE *to)
{
	struct json_object *o = json_object_new_object(), *rows = json_object_new_array();
	const char *text;

	json_add_text(o, "schema", "vcpuscope.gate/1");
	json_add_text(o, "outcome", gate_outcome_name(r->outcome));
	json_object_object_add(o, "simulated", json_object_new_boolean(r->simulated));
	json_object_object_add(o, "base_runs", json_object_new_uint64(r->n_base));
	json_object_object_add(o, "new_runs", json_object_new_uint64(r->n_new));
	json_object_object_add(o, "tested", json_object_new_uint64(r->tested));
	json_object_object_add(o, "splits", json_object_new_uint64(r->splits));
	json_object_object_add(o, "all_splits", json_object_new_boolean(r->complete));
	add_number(o, "false_alarms", r->false_alarms);
	add_number(o, "confidence", r->confidence);
	json_add_text(o, "why", *r->why ? r->why : NULL);
	json_add_text(o, "first_moved", r->first ? r->first->figure : NULL);
	json_add_text(o, "next", r->first ? view->next : NULL);
	for (size_t i = 0; i < r->n; i++)
		json_object_array_add(rows, row_json(&r->rows[i]));
	json_object_object_add(o, "rows", rows);
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY |
							 JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		fprintf(to, "%s\n", text);
	json_object_put(o);
	return text ? stream_result(to) : -ENOMEM;
}

/* ---- JUnit ---- */

static void xml_write(const char *text, FILE *to)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '<' || c == '>' || c == '&' || c == '"')
			fprintf(to, "&#%u;", c);
		else
			fputc(c >= ' ' && c < 0x7f ? c : '?', to);
	}
}

static void junit_row(const struct gate_row *row, const struct gate_result *r, FILE *to)
{
	static const char *const elements[GATE_OUTCOME_COUNT] = {
		[GATE_HARD] = "failure", [GATE_NO_DATA] = "error", [GATE_RARE] = "skipped"};
	const char *element = elements[row->outcome];
	char why[640];

	row_sentence(row, r, why, sizeof(why));
	fprintf(to, "  <testcase classname=\"vcpuscope.");
	xml_write(row->figure, to);
	fprintf(to, "\" name=\"%s\">", run_statistic_name(row->rule->statistic));
	if (element) {
		fprintf(to, "<%s message=\"", element);
		xml_write(why, to);
		fprintf(to, "\"/>");
	} else {
		fprintf(to, "<system-out>%s: ", gate_outcome_name(row->outcome));
		xml_write(why, to);
		fprintf(to, "</system-out>");
	}
	fprintf(to, "</testcase>\n");
}

int gate_write_junit(const struct gate_result *r, const struct gate_view *view, FILE *to)
{
	/* Too few runs are one more error, which no row has. */
	size_t extra = r->outcome == GATE_NO_DATA && !count_of(r, GATE_NO_DATA);

	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"vcpuscope compare\" tests=\"%zu\" failures=\"%zu\" "
		"errors=\"%zu\" skipped=\"%zu\">\n",
		r->n + extra, count_of(r, GATE_HARD), count_of(r, GATE_NO_DATA) + extra,
		count_of(r, GATE_RARE));
	for (size_t i = 0; i < r->n; i++)
		junit_row(&r->rows[i], r, to);
	if (extra) {
		fprintf(to, "  <testcase classname=\"vcpuscope\" name=\"runs\"><error message=\"");
		xml_write(r->why, to);
		fprintf(to, "\"/></testcase>\n");
	}
	fprintf(to, "  <system-out>");
	xml_write(gate_outcome_name(r->outcome), to);
	if (r->first) {
		fprintf(to, "; first to move: ");
		xml_write(r->first->figure, to);
	}
	if (r->first && view->next) {
		fprintf(to, "; see where: ");
		xml_write(view->next, to);
	}
	fprintf(to, "</system-out>\n</testsuite>\n");
	return stream_result(to);
}

/* ---- TAP ---- */

int gate_write_tap(const struct gate_result *r, const struct gate_view *view, FILE *to)
{
	size_t extra = r->outcome == GATE_NO_DATA && !count_of(r, GATE_NO_DATA);
	char why[640];

	fprintf(to, "TAP version 13\n1..%zu\n", r->n + extra);
	for (size_t i = 0; i < r->n; i++) {
		const struct gate_row *row = &r->rows[i];
		bool good = row->outcome != GATE_HARD && row->outcome != GATE_NO_DATA;

		row_sentence(row, r, why, sizeof(why));
		fprintf(to, "%sok %zu - %s %s%s\n# %s: %s\n", good ? "" : "not ", i + 1,
			row->figure, run_statistic_name(row->rule->statistic),
			row->outcome != GATE_RARE         ? ""
			: row->only_in != GATE_BOTH_SIDES ? " # SKIP on one side only"
							  : " # SKIP too few samples",
			gate_outcome_name(row->outcome), why);
	}
	if (extra)
		fprintf(to, "not ok %zu - runs\n# %s\n", r->n + extra, r->why);
	if (r->first)
		fprintf(to, "# first to move: %s\n", r->first->figure);
	if (r->first && view->next)
		fprintf(to, "# see where: %s\n", view->next);
	return stream_result(to);
}
