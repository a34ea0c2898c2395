/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope report RUN.vcs pairs`: counts pairs, shows single ones and what happened in them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/event/pair_detail.h"
#include "host-collector/analyze/event/pair_line.h"
#include "host-collector/cli/report_events.h"
#include "host-collector/tables/table.h"
#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/wrap.h"
#include "proto/program/columns.h"

enum { STAGE_BYTES = 640, DETAIL_SHOWN = 100, INTERVAL_COLUMNS = 3 };

static const char *const share_heads[] = {
#define X(NAME, name, head) [SHARE_##NAME] = head,
	STATE_SHARES(X)
#undef X
};

/* What is written: the counts, and for --detail the events of the pairs that are shown. */
struct output {
	const struct report_events_request *request;
	struct model *model;
	const struct event_choices *choices;
	struct pairs *pairs;
	struct pair_detail *detail; /* NULL: none */
	const char *key;
	bool narrow; /* a row has two lines */
	FILE *out;   /* of lines */
};

/* ---- for people ---- */

static struct duration_text error_text(uint64_t error_ns)
{
	struct duration_text s = {"+-inf"};

	if (error_ns != UINT64_MAX)
		snprintf(s.text, sizeof(s.text), "+-%.20s", duration_digits(error_ns).text);
	return s;
}

struct key_text {
	char text[192];
};

/* The key, with its VM if there are several. */
static struct key_text key_text(const struct output *o, const struct pair_key *key)
{
	struct key_text k;
	char value[48];

	pair_key_text(key, value, sizeof(value));
	if (key->of_vm && model_vms(o->model, NULL, 0) > 1)
		snprintf(k.text, sizeof(k.text), "%s/%s", model_vm_name(o->model, key->vm), value);
	else
		snprintf(k.text, sizeof(k.text), "%s", value);
	return k;
}

/* On a narrow terminal, the rest of a row stands on a line of its own. */
static void row_break(const struct output *o, FILE *out)
{
	if (o->narrow)
		fprintf(out, "\n%18s", "");
}

static void row_head_text(const struct output *o, FILE *out)
{
	const bool limit = o->request->than_ns || o->request->events->lower_ns;

	fprintf(out, "  %-16s %8s %9s %9s %9s %9s %9s", "key", "calls", "total", "min", "p50",
		"p95", "p99");
	row_break(o, out);
	fprintf(out, " %9s %9s", "p99.9", "max");
	if (limit)
		fprintf(out, " %8s", o->request->events->lower_ns ? "lower" : "than");
	fprintf(out, " %9s %10s %9s\n", "unpaired", "incomplete", "ambiguous");
}

static void past_losses_text(const struct pair_row *row, FILE *out)
{
	fprintf(out, "  %-16s %" PRIu64 " of them have losses between their events; ", "",
		row->calls_past_losses);
	if (row->wrong_expected > 0)
		fprintf(out, "as rare as these were, %.2g of all calls are expected to be wrong\n",
			row->wrong_expected);
	else
		fputs("where nothing was lost, each event had its partner\n", out);
}

static void row_text(const struct output *o, const struct pair_row *row, FILE *out)
{
	const struct histogram *h = &row->calls.times;
	const bool limit = o->request->than_ns || o->request->events->lower_ns;
	static const double shares[] = {0.5, 0.95, 0.99, 0.999};

	fprintf(out, "  %-16s %8" PRIu64, escape(key_text(o, &row->key).text).text, h->count);
	if (!h->count) {
		for (size_t i = 0; i < 7; i++) {
			if (i == 5)
				row_break(o, out);
			fprintf(out, " %9s", "-");
		}
	} else {
		fprintf(out, " %9s %9s", duration_digits(h->sum_ns).text,
			duration_digits(h->min_ns).text);
		for (size_t i = 0; i < 4; i++) {
			if (i == 3)
				row_break(o, out);
			fprintf(out, " %9s",
				duration_digits(histogram_quantile(h, shares[i])).text);
		}
		fprintf(out, " %9s", duration_digits(h->max_ns).text);
	}
	if (limit)
		fprintf(out, " %8" PRIu64, row->calls.beyond);
	fprintf(out, " %4" PRIu64 "+%-4" PRIu64 " %10" PRIu64 " %9" PRIu64 "\n", row->unpaired_from,
		row->unpaired_to, row->incomplete, row->ambiguous);
}

/* "guest ran 1.20 ms (40 %), in exits 1.80 ms (60 %)" */
static void states_text(const struct state_times_ns *states, FILE *out)
{
	const char *before = "";
	int64_t sum = 0;

	for (size_t i = 0; i < SHARE_COUNT; i++)
		sum += states->ns[i];
	for (size_t i = 0; i < SHARE_COUNT; i++) {
		if (states->ns[i] <= 0)
			continue;
		fprintf(out, "%s%s %s (%.0f %%)", before, share_heads[i],
			duration_digits((uint64_t)states->ns[i]).text,
			100 * (double)states->ns[i] / (double)sum);
		before = ", ";
	}
}

static bool row_is_empty(const struct pair_row *row)
{
	return !row->calls.times.count && !row->unpaired_from && !row->unpaired_to &&
	       !row->incomplete && !row->ambiguous;
}

/* "interval 2: from 1.000000 s to 2.500000 s" */
static void interval_text(const struct output *o, unsigned interval, FILE *out)
{
	const size_t n = pairs_intervals(o->pairs);
	const int64_t origin_ns = model_begin(o->model).ns;

	if (interval >= n) {
		fputs("all intervals, the keys without a row\n", out);
		return;
	}
	fprintf(out, "interval %u: from ", interval + 1);
	if (interval)
		fprintf(out, "%.6f s",
			(double)(pairs_interval_begin(o->pairs, interval).ns - origin_ns) / 1e9);
	else
		fputs("the begin", out);
	if (interval + 1 < n)
		fprintf(out, " to %.6f s\n",
			(double)(pairs_interval_begin(o->pairs, interval + 1).ns - origin_ns) /
				1e9);
	else
		fputs(" to the end\n", out);
}

static void rows_text(const struct output *o, FILE *out)
{
	const size_t top = o->request->events->per_key ? o->request->top : 0;
	const struct pair_row *row;
	unsigned stage = UINT32_MAX, interval = UINT32_MAX;
	size_t shown = 0, hidden = 0; /* of the stage, of all */
	char name[STAGE_BYTES];

	for (size_t i = 0; (row = pairs_row(o->pairs, i)); i++) {
		if (pairs_intervals(o->pairs) && row->interval != interval) {
			fputs(i ? "\n" : "", out);
			interval_text(o, row->interval, out);
			interval = row->interval;
			stage = UINT32_MAX;
		}
		if (interval != UINT32_MAX && row_is_empty(row)) {
			fprintf(out, "  %s: none\n",
				escape(pairs_stage_name(o->pairs, row->stage, name, sizeof(name)))
					.text);
			continue;
		}
		shown = row->stage == stage ? shown + 1 : 1;
		if (top && shown > top) {
			hidden++;
			continue;
		}
		if (row->stage != stage) {
			const bool first = !i || (interval != UINT32_MAX && stage == UINT32_MAX);

			stage = row->stage;
			fprintf(out, "%s%s, by %s\n", first ? "" : "\n",
				escape(pairs_stage_name(o->pairs, stage, name, sizeof(name))).text,
				o->key);
			row_head_text(o, out);
		}
		row_text(o, row, out);
		if (row->calls.times.count)
			fprintf(out, "  %-16s each is right within %s\n", "",
				error_text(row->calls.error_ns).text);
		if (row->calls_past_losses)
			past_losses_text(row, out);
		if (row->calls.with_states) {
			fprintf(out, "  %-16s vCPU time of %" PRIu64 " calls: ", "",
				row->calls.with_states);
			states_text(&row->calls.states, out);
			fputc('\n', out);
		}
	}
	if (hidden)
		fprintf(out, "and %zu more keys; --top 0 shows all\n", hidden);
}

static void end_text(const struct output *o, const struct pair_end *end, FILE *out)
{
	const char *name = end->tid > 0 ? model_task_name(o->model, end->source, end->tid) : "";

	if (end->tid < 0)
		fputs("an unknown task", out);
	else
		fprintf(out, "%s%s%" PRId32, escape(name).text, *name ? ":" : "task ", end->tid);
	fprintf(out, " on %s CPU %u", end->source == VS_SOURCE_HOST ? "host" : "guest", end->cpu);
}

/* An event, and the frames of its stack. */
static void detail_line_text(const char *text, FILE *out)
{
	while (*text) {
		const size_t n = strcspn(text, "\n");

		fprintf(out, "     | %.*s\n", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static void detail_text(const struct output *o, size_t pair, FILE *out)
{
	const struct pair_detail_line *line;
	size_t i;

	for (i = 0; (line = pair_detail_get(o->detail, pair, i)); i++) {
		if (i < DETAIL_SHOWN)
			detail_line_text(line->text, out);
	}
	if (i > DETAIL_SHOWN || pair_detail_hidden(o->detail, pair))
		fprintf(out, "     | %" PRIu64 " more events\n",
			(i > DETAIL_SHOWN ? i - DETAIL_SHOWN : 0) +
				pair_detail_hidden(o->detail, pair));
}

static void kept_text(const struct output *o, FILE *out)
{
	const int64_t origin_ns = model_begin(o->model).ns;
	const struct pair *pair;
	char name[STAGE_BYTES];

	for (size_t i = 0; (pair = pairs_kept(o->pairs, i)); i++) {
		if (!i)
			fprintf(out, "\n%s pairs\n",
				o->request->events->lower_ns ? "shortest" : "longest");
		fprintf(out, "  %zu. %s %s at %.6f s, %s, key %s", i + 1,
			duration_digits((uint64_t)pair->duration_ns).text,
			error_text(pair->error_ns).text,
			(double)(pair->from.t.ns - origin_ns) / 1e9,
			escape(pairs_stage_name(o->pairs, pair->stage, name, sizeof(name))).text,
			escape(key_text(o, &pair->key).text).text);
		fputs("\n     from ", out);
		end_text(o, &pair->from, out);
		fputs(" to ", out);
		end_text(o, &pair->to, out);
		if (pair->states_known && pair->duration_ns) {
			fprintf(out, "\n     vCPU %" PRIu32 ": ", pair->from.vcpu);
			states_text(&pair->states, out);
		}
		fputc('\n', out);
		if (o->detail)
			detail_text(o, i, out);
	}
}

/* ---- for programs ---- */

/* The first ones only with triggers. */
static const struct table_column pairs_columns[] = {
	{"interval", "interval", TABLE_COUNT}, /* from 1; none: of all intervals */
	{"interval_begin", "interval begin", TABLE_TIME},
	{"interval_end", "interval end", TABLE_TIME},
	{"stage", "stage", TABLE_TEXT},
	{"key", "key", TABLE_TEXT},
	{"calls", "calls", TABLE_COUNT},
	{"total", "total", TABLE_NS},
	{"min", "min", TABLE_NS},
	{"p50", "p50", TABLE_NS},
	{"p95", "p95", TABLE_NS},
	{"p99", "p99", TABLE_NS},
	{"p99_9", "p99.9", TABLE_NS},
	{"max", "max", TABLE_NS},
	{"error", "error", TABLE_NS},
	{"selected", "selected", TABLE_COUNT}, /* by --than or --lower */
	{"unpaired_from", "unpaired from", TABLE_COUNT},
	{"unpaired_to", "unpaired to", TABLE_COUNT},
	{"incomplete", "incomplete", TABLE_COUNT},
	{"ambiguous", "ambiguous", TABLE_COUNT},
	{"past_losses", "past losses", TABLE_COUNT}, /* calls with losses between their events */
	{"past_both", "past both", TABLE_COUNT},     /* where both an end and a begin may be lost */
	{"with_states", "with states", TABLE_COUNT},
#define X(NAME, name, head) {name, head, TABLE_NS},
	STATE_SHARES(X)
#undef X
};

static const struct table_column kept_columns[] = {{"number", "number", TABLE_COUNT},
						   {"stage", "stage", TABLE_TEXT},
						   {"key", "key", TABLE_TEXT},
						   {"begin", "begin", TABLE_TIME},
						   {"duration", "duration", TABLE_NS},
						   {"error", "error", TABLE_NS},
						   {"vcpu", "vcpu", TABLE_COUNT},
						   {"from_task", "from task", TABLE_TEXT},
						   {"to_task", "to task", TABLE_TEXT},
#define X(NAME, name, head) {name, head, TABLE_NS},
						   STATE_SHARES(X)
#undef X
};

static const struct table_column between_columns[] = {
	{"number", "number", TABLE_COUNT}, /* of the pair */
	{"time", "time", TABLE_TIME},
	{"event", "event", TABLE_TEXT},
	{"text", "text", TABLE_TEXT},
};

#define COLUMNS(array) (array), sizeof(array) / sizeof((array)[0])

static int64_t clip(uint64_t ns)
{
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

static void cell_error(struct table *t, uint64_t error_ns)
{
	if (error_ns == UINT64_MAX)
		table_none(t);
	else
		table_ns(t, clip(error_ns));
}

static void cells_states(struct table *t, const struct state_times_ns *states, bool known)
{
	for (size_t i = 0; i < SHARE_COUNT; i++) {
		if (known)
			table_ns(t, states->ns[i]);
		else
			table_none(t);
	}
}

static void cells_times(struct table *t, const struct histogram *h)
{
	static const double shares[] = {0.5, 0.95, 0.99, 0.999};

	table_ns(t, clip(h->sum_ns));
	if (!h->count) {
		for (size_t i = 0; i < 6; i++)
			table_none(t);
		return;
	}
	table_ns(t, clip(h->min_ns));
	for (size_t i = 0; i < 4; i++)
		table_ns(t, clip(histogram_quantile(h, shares[i])));
	table_ns(t, clip(h->max_ns));
}

static void cell_begin_of(const struct output *o, struct table *t, size_t interval)
{
	if (interval && interval < pairs_intervals(o->pairs))
		table_time(t, pairs_interval_begin(o->pairs, interval).ns);
	else
		table_none(t);
}

static void cells_interval(const struct output *o, struct table *t, const struct pair_row *row)
{
	if (row->interval < PAIR_INTERVALS_MAX)
		table_count(t, row->interval + 1);
	else
		table_none(t);
	cell_begin_of(o, t, row->interval);
	cell_begin_of(o, t, row->interval + 1);
}

static struct table *pairs_table(const struct output *o)
{
	const bool intervals = pairs_intervals(o->pairs);
	const size_t left_out = intervals ? 0 : INTERVAL_COLUMNS;
	struct table *t = table_new("pairs", pairs_columns + left_out,
				    sizeof(pairs_columns) / sizeof(pairs_columns[0]) - left_out);
	const struct pair_row *row;
	char name[STAGE_BYTES];

	for (size_t i = 0; t && (row = pairs_row(o->pairs, i)); i++) {
		table_row(t);
		if (intervals)
			cells_interval(o, t, row);
		table_text(t, pairs_stage_name(o->pairs, row->stage, name, sizeof(name)));
		table_text(t, key_text(o, &row->key).text);
		table_count(t, row->calls.times.count);
		cells_times(t, &row->calls.times);
		cell_error(t, row->calls.error_ns);
		table_count(t, row->calls.beyond);
		table_count(t, row->unpaired_from);
		table_count(t, row->unpaired_to);
		table_count(t, row->incomplete);
		table_count(t, row->ambiguous);
		table_count(t, row->calls_past_losses);
		table_count(t, row->calls_past_both);
		table_count(t, row->calls.with_states);
		cells_states(t, &row->calls.states, row->calls.with_states);
	}
	return t;
}

static void cell_task(const struct output *o, struct table *t, const struct pair_end *end)
{
	char text[64];

	snprintf(text, sizeof(text), "%s:%" PRId32,
		 end->tid > 0 ? model_task_name(o->model, end->source, end->tid) : "", end->tid);
	if (end->tid < 0)
		table_none(t);
	else
		table_text(t, text);
}

static struct table *kept_table(const struct output *o)
{
	struct table *t = table_new("single_pairs", COLUMNS(kept_columns));
	const struct pair *pair;
	char name[STAGE_BYTES];

	for (size_t i = 0; t && (pair = pairs_kept(o->pairs, i)); i++) {
		table_row(t);
		table_count(t, i + 1);
		table_text(t, pairs_stage_name(o->pairs, pair->stage, name, sizeof(name)));
		table_text(t, key_text(o, &pair->key).text);
		table_time(t, pair->from.t.ns);
		table_ns(t, pair->duration_ns);
		cell_error(t, pair->error_ns);
		if (pair->from.vcpu_known)
			table_count(t, pair->from.vcpu);
		else
			table_none(t);
		cell_task(o, t, &pair->from);
		cell_task(o, t, &pair->to);
		cells_states(t, &pair->states, pair->states_known);
	}
	return t;
}

static struct table *between_table(const struct output *o)
{
	struct table *t = table_new("between", COLUMNS(between_columns));
	const struct pair_detail_line *line;

	for (size_t i = 0; t && o->detail && pairs_kept(o->pairs, i); i++) {
		for (size_t k = 0; (line = pair_detail_get(o->detail, i, k)); k++) {
			table_row(t);
			table_count(t, i + 1);
			table_time(t, line->t.ns);
			table_text(t, o->choices->items[line->choice].name);
			line->text[strcspn(line->text, "\n")] = 0;
			table_text(t, line->text);
		}
	}
	return t;
}

static int tables_write(const struct output *o, FILE *out)
{
	struct table *tables[] = {pairs_table(o), kept_table(o), between_table(o)};
	const size_t n = o->detail ? 3 : 2;
	int err = tables[0] && tables[1] && tables[2] ? 0 : -ENOMEM;

	if (!err && !strcmp(o->request->format, "json"))
		err = tables_write_json(tables, n, false, out);
	else if (!err)
		err = tables_write_csv(tables, n, out);
	for (size_t i = 0; i < 3; i++)
		table_free(tables[i]);
	return err;
}

static int text_write(struct output *o, FILE *out)
{
	FILE *to = out;

	/* What goes to a file or a pipe is as wide as it must be. */
	o->narrow = text_columns(out) < TEXT_COLUMNS;
	if (o->narrow)
		to = wrap_open(out);
	if (!to)
		return -ENOMEM;
	rows_text(o, to);
	kept_text(o, to);
	return to != out && fclose(to) ? -EIO : 0;
}

/* ---- a line for each pair ---- */

static void on_settled(void *context, const struct pair *pair)
{
	const struct output *o = context;
	const struct pair_line_options options = {.choices = o->choices, .model = o->model};

	pair_line_write(pair, &options, o->out);
}

/* ---- the readings ---- */

static void limits_say(const struct output *o)
{
	const struct pairs_limits l = pairs_limits_get(o->pairs);

	if (l.without_key)
		fprintf(stderr,
			"vcpuscope report: pairs: %" PRIu64 " events have no key (%s is missing)\n",
			l.without_key, o->key);
	if (l.evicted)
		fprintf(stderr,
			"vcpuscope report: pairs: %" PRIu64
			" events were given up as unpaired, because more than %d keys were open\n",
			l.evicted, PAIR_OPEN_MAX);
	if (l.intervals_joined)
		fprintf(stderr,
			"vcpuscope report: pairs: %" PRIu64
			" hits of the trigger began no interval, because there are %d\n",
			l.intervals_joined, PAIR_INTERVALS_MAX);
	if (l.keys_joined)
		fprintf(stderr,
			"vcpuscope report: pairs: there are more than %d keys; the last row of a "
			"stage has the others\n",
			PAIR_ROWS_MAX);
}

static int detail_read(struct output *o, const struct pair_detail_options *options)
{
	struct model *m = model_new();
	int err = m ? 0 : -ENOMEM;

	if (!err)
		o->detail = pair_detail_new(m, o->choices, o->pairs, options);
	if (!o->detail)
		err = -ENOMEM;
	if (!err)
		err = report_events_read(o->request, m);
	if (!err)
		err = pair_detail_finish(o->detail);
	/* The detail needs the model of its reading no more. */
	model_free(m);
	return err;
}

static int pairs_read_once(struct output *o, const struct pairs_options *options, bool guests)
{
	int err;

	o->model = model_new();
	o->pairs = o->model ? pairs_new(o->model, o->choices, options) : NULL;
	if (o->pairs && !guests)
		model_leave_guests(o->model);
	err = o->pairs ? report_events_read(o->request, o->model) : -ENOMEM;
	return err ? err : pairs_finish(o->pairs);
}

/* Pairs of the host's events mostly do not need the guests' events. A reading that needs them
 * begins again, unless pairs were written meanwhile. */
static int pairs_read(struct output *o, const struct pairs_options *options)
{
	const bool guests = options->settled || !event_choices_of_host(o->choices);
	int err = pairs_read_once(o, options, guests);

	if (err != -ECANCELED)
		return err;
	pairs_free(o->pairs);
	model_free(o->model);
	return pairs_read_once(o, options, true);
}

/* Says what is wrong. */
static int keys_read(struct output *o, struct event_choices *choices)
{
	const struct report_events_arguments *a = o->request->events;
	struct expr_error error;
	size_t own = 0; /* events that have a key of their own */
	int err;

	o->key = a->key ? a->key : event_choices_cross(choices) ? "vcpu" : "cpu";
	for (size_t i = 0; i < choices->n; i++)
		own += choices->items[i].key.n && !choices->items[i].untraced;
	err = event_choices_key(choices, o->key, &error);
	if (err)
		expr_error_print(&error, "vcpuscope report: --key", o->key, stderr);
	if (own)
		o->key = "the keys of the events";
	return err;
}

static int options_check(const struct report_events_request *q, const struct event_choices *choices,
			 struct pair_detail_options *detail)
{
	char why[320];

	if (!pairs_stages(choices, q->events->cycle)) {
		fputs("vcpuscope report: pairs: needs -e A -e B, or one -e with --cycle or with the "
		      "attribute role\n",
		      stderr);
		return -EINVAL;
	}
	if (q->events->detail && pair_detail_parse(q->events->detail, detail, why, sizeof(why))) {
		fprintf(stderr, "vcpuscope report: %s\n", why);
		return -EINVAL;
	}
	return 0;
}

int report_pairs_write(const struct report_events_request *q, struct event_choices *choices,
		       FILE *out)
{
	const struct report_events_arguments *a = q->events;
	struct output o = {.request = q, .choices = choices, .out = out};
	struct pair_detail_options detail;
	const bool lines = !strcmp(q->format, "jsonl");
	const struct pairs_options options = {
		.settled = lines ? on_settled : NULL,
		.with_fields = lines,
		.context = &o,
		.with_intervals = true,
		.cycle = a->cycle,
		.per_key = a->per_key,
		.kept = q->top && q->top < PAIR_KEPT_MAX ? q->top : PAIR_KEPT_MAX,
		.than_ns = (int64_t)q->than_ns,
		.lower_ns = (int64_t)a->lower_ns,
		.narrow = q->narrow,
	};
	int err = options_check(q, choices, &detail);

	if (!err)
		err = keys_read(&o, choices);
	if (!err)
		err = pairs_read(&o, &options);
	if (!err && a->detail && !lines)
		err = detail_read(&o, &detail);
	if (!err && lines) {
		err = ferror(out) ? -EIO : 0;
	} else if (!err && strcmp(q->format, "text") != 0) {
		err = tables_write(&o, out);
	} else if (!err) {
		err = text_write(&o, out);
	}
	if (!err)
		limits_say(&o);
	if (err == -ENOMEM)
		fputs("vcpuscope report: out of memory\n", stderr);
	pair_detail_free(o.detail);
	pairs_free(o.pairs);
	model_free(o.model);
	return err;
}
