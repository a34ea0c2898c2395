/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/report_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host-collector/analyze/describe.h"
#include "host-collector/cli/figures.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { COLUMNS_MAX = 32 };

static const struct figures_kind *const groups[] = {figures_latency, figures_guest, figures_exits,
						    figures_chains};

static const struct {
	const char *word;
	unsigned per;
} pers[] = {
	{"vcpu", FIGURES_PER_VCPU},
	{"pcpu", FIGURES_PER_PCPU},
	{"vector", FIGURES_PER_VECTOR},
	{"task", FIGURES_PER_TASK},
};

struct report_table {
	const struct figures_kind *kind;
	const struct report_table_request *request;
	struct model *model;
	void *analysis;
	unsigned per;
	struct table_column columns[COLUMNS_MAX];
	size_t n_columns, sort_by;
	bool cleared;
	struct host_ns since; /* if cleared */
};

double figures_percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

int64_t figures_clip(uint64_t ns)
{
	return ns > INT64_MAX ? INT64_MAX : (int64_t)ns;
}

void figures_quantiles(struct table *t, const struct histogram *h)
{
	static const double shares[] = {0.5, 0.95, 0.99, 0.999, 1};

	for (size_t i = 0; i < COUNT(shares); i++)
		table_ns(t, figures_clip(histogram_quantile(h, shares[i])));
}

const struct figures_kind *figures_kind_at(size_t index)
{
	for (size_t g = 0; g < COUNT(groups); g++) {
		for (const struct figures_kind *k = groups[g]; k->name; k++) {
			if (!index--)
				return k;
		}
	}
	return NULL;
}

static const struct figures_kind *kind_find(const char *name)
{
	const struct figures_kind *k;

	for (size_t i = 0; (k = figures_kind_at(i)); i++) {
		if (!strcmp(k->name, name))
			return k;
	}
	return NULL;
}

static unsigned per_find(const char *word)
{
	for (size_t i = 0; word && i < COUNT(pers); i++) {
		if (!strcmp(pers[i].word, word))
			return pers[i].per;
	}
	return 0;
}

/* "vcpu, pcpu and task" of what `is` tells to be there. */
struct listing {
	char text[256];
	const char *pending;
};

static void listing_add(struct listing *l, const char *word)
{
	size_t len = strlen(l->text);

	if (l->pending)
		snprintf(l->text + len, sizeof(l->text) - len, "%s%s", len ? ", " : "", l->pending);
	l->pending = word;
}

static void listing_end(struct listing *l)
{
	size_t len = strlen(l->text);

	if (l->pending)
		snprintf(l->text + len, sizeof(l->text) - len, "%s%s", len ? " and " : "",
			 l->pending);
}

static void per_explain(const struct figures_kind *k, char *why, size_t why_bytes)
{
	struct listing possible = {.text = ""};

	for (size_t i = 0; i < COUNT(pers); i++) {
		if (k->per & pers[i].per)
			listing_add(&possible, pers[i].word);
	}
	listing_end(&possible);
	snprintf(why, why_bytes, "its rows cannot be split so; --per takes %s here", possible.text);
}

static void than_explain(char *why, size_t why_bytes)
{
	struct listing possible = {.text = ""};
	const struct figures_kind *k;

	for (size_t i = 0; (k = figures_kind_at(i)); i++) {
		if (k->than)
			listing_add(&possible, k->name);
	}
	listing_end(&possible);
	snprintf(why, why_bytes, "has no lengths that --than could compare; %s have",
		 possible.text);
}

static void tables_explain(char *why, size_t why_bytes)
{
	struct listing possible = {.text = ""};
	const struct figures_kind *k;

	for (size_t i = 0; (k = figures_kind_at(i)); i++)
		listing_add(&possible, k->name);
	listing_end(&possible);
	snprintf(why, why_bytes, "no such table; there are %s", possible.text);
}

int report_table_check(const struct report_table_request *request, char *why, size_t why_bytes)
{
	const struct figures_kind *k = kind_find(request->table);

	if (!k)
		tables_explain(why, why_bytes);
	else if (request->per && !(k->per & per_find(request->per)))
		per_explain(k, why, why_bytes);
	else if (request->than_ns && !k->than)
		than_explain(why, why_bytes);
	else
		return 0;
	return -EINVAL;
}

static void columns_choose(struct report_table *t)
{
	const struct figures_kind *k = t->kind;

	for (size_t i = 0; i < k->n_columns && t->n_columns < COLUMNS_MAX; i++) {
		const struct figures_column *c = &k->columns[i];

		if (c->per && !(c->per & t->per))
			continue;
		if (!strcmp(c->column.name, k->sort_by))
			t->sort_by = t->n_columns;
		t->columns[t->n_columns++] = c->column;
	}
}

struct report_table *report_table_new(struct model *m, const struct report_table_request *request)
{
	struct report_table *t = calloc(1, sizeof(*t));
	struct figures_options options = {.than_ns = figures_clip(request->than_ns)};

	if (!t)
		return NULL;
	t->kind = kind_find(request->table);
	t->request = request;
	t->model = m;
	t->per = request->per ? per_find(request->per) : t->kind->per_is;
	options.per_vcpu = t->per == FIGURES_PER_VCPU;
	options.per_pcpu = t->per == FIGURES_PER_PCPU;
	columns_choose(t);
	t->analysis = t->kind->open(m, &options);
	if (!t->analysis) {
		report_table_free(t);
		return NULL;
	}
	return t;
}

void report_table_free(struct report_table *t)
{
	if (t && t->analysis)
		t->kind->close(t->analysis);
	free(t);
}

void report_table_finish(struct report_table *t)
{
	if (t->kind->finish)
		t->kind->finish(t->analysis);
}

/* The table now, sorted and cut; NULL and *err on failure. */
static struct table *table_fill(struct report_table *r, int *err)
{
	struct host_ns since = r->cleared ? r->since : model_begin(r->model);
	struct host_ns now = model_now(r->model);
	const struct figures_view view = {
		.model = r->model,
		.per = r->per,
		.than_ns = figures_clip(r->request->than_ns),
		.span_ns = now.ns - since.ns,
	};
	struct table *t = table_new(r->kind->name, r->columns, r->n_columns);

	*err = t ? r->kind->fill(r->analysis, &view, t) : -ENOMEM;
	if (*err) {
		table_free(t);
		return NULL;
	}
	table_span(t, since.ns, now.ns);
	table_sort(t, r->sort_by, (size_t)r->request->top);
	return t;
}

int report_table_write(struct report_table *r, FILE *out)
{
	const char *format = r->request->format;
	int err;
	struct table *t = table_fill(r, &err);

	if (t)
		err = !strcmp(format, "json")  ? table_write_json(t, out)
		      : !strcmp(format, "csv") ? table_write_csv(t, out)
					       : table_write_text(t, out);
	table_free(t);
	return err;
}

/* "12:34:56 tasks, over 1000 ms". */
static void heading_write(const struct report_table *r, bool terminal, FILE *out)
{
	struct host_ns since = r->cleared ? r->since : model_begin(r->model);
	time_t now = time(NULL);
	struct tm local;
	char clock[16] = "";

	if (localtime_r(&now, &local))
		strftime(clock, sizeof(clock), "%H:%M:%S ", &local);
	fprintf(out, "%s%s%s, over %s\n", terminal ? "\x1b[H\x1b[2J" : "", clock, r->kind->name,
		duration_text(model_now(r->model).ns - since.ns).text);
}

int report_table_interval(struct report_table *r, bool terminal, FILE *out)
{
	bool json = !strcmp(r->request->format, "json");
	int err;
	struct table *t = table_fill(r, &err);

	if (t && json) {
		err = table_write_json_line(t, out);
	} else if (t) {
		heading_write(r, terminal, out);
		err = table_write_text(t, out);
		if (!err && !terminal)
			fputc('\n', out);
	}
	table_free(t);
	r->kind->clear(r->analysis);
	/* Before the first event there is no time to count from. */
	r->cleared = model_now(r->model).ns != 0;
	r->since = model_now(r->model);
	return !err && (fflush(out) || ferror(out)) ? -EPIPE : err;
}
