/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/tables/report_tables.h"
#include "host-collector/util/duration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host-collector/tables/bill.h"
#include "host-collector/tables/chains.h"
#include "host-collector/tables/exits.h"
#include "host-collector/tables/figures.h"
#include "host-collector/tables/halts.h"
#include "host-collector/tables/interrupts.h"
#include "host-collector/tables/page_faults.h"
#include "host-collector/tables/run_delay.h"
#include "host-collector/tables/steal.h"
#include "host-collector/tables/task_waits.h"
#include "host-collector/tables/ticks.h"
#include "proto/program/suggest.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { COLUMNS_MAX = 32 };

const struct analysis *const analyses_all[] = {
	&run_delay_analysis,
	&steal_analysis,
	&halts_analysis,
	&bill_analysis,
	&interrupts_analysis,
	&ticks_analysis,
	&exits_analysis,
	&page_faults_analysis,
	&chains_analysis,
	&task_waits_analysis,
	NULL,
};

static const struct {
	const char *word;
	unsigned per;
} pers[] = {
	{"vcpu", FIGURES_PER_VCPU},       {"pcpu", FIGURES_PER_PCPU},
	{"vector", FIGURES_PER_VECTOR},   {"task", FIGURES_PER_TASK},
	{"process", FIGURES_PER_PROCESS}, {"cgroup", FIGURES_PER_CGROUP},
};

/* The first has the page's name and its rows on top; then as a reader would ask on. */
const struct figures_page figures_pages[] = {
	{{"vcpu", "pcpu", "culprits", "halts"}},
	{{"tasks", "culprits"}},
	{{"irq", "delays", "chains", "slowest", "overdue", "ticks"}},
	{{"exits", "faults"}},
	{{"waits", "threads"}},
	{{NULL}},
};

/* One table of what is shown. */
struct part {
	const struct figures_kind *kind;
	const struct analysis *what;
	struct figures_options options;
	unsigned per;
	void *analysis; /* belongs to `analyses`, or to the caller */
	struct table_column columns[COLUMNS_MAX];
	size_t n_columns, sort_by;
};

struct report_table {
	const struct report_table_request *request;
	struct model *model;
	struct analyses analyses;
	struct part parts[FIGURES_PAGE_TABLES];
	size_t n_parts;
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

/* Returns table number `index`, NULL past the last; *what: its analysis, may be NULL. */
static const struct figures_kind *figures_kind_at(size_t index, const struct analysis **what)
{
	for (const struct analysis *const *a = analyses_all; *a; a++) {
		for (const struct figures_kind *k = (*a)->tables; k->name; k++) {
			if (index--)
				continue;
			if (what)
				*what = *a;
			return k;
		}
	}
	return NULL;
}

static const struct figures_kind *kind_find(const char *name, const struct analysis **what)
{
	const struct figures_kind *k;

	for (size_t i = 0; (k = figures_kind_at(i, what)); i++) {
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

/* A list of names for a message: "vcpu, pcpu and task". */
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

/* What a name stands for: the kinds of a page, or one. Their number, 0: no such name. */
static size_t kinds_find(const struct report_table_request *request,
			 const struct figures_kind *kinds[FIGURES_PAGE_TABLES])
{
	const char *name = request->table;
	size_t n = 0;

	for (const struct figures_page *p = figures_pages; p->tables[0]; p++) {
		if (request->alone || strcmp(p->tables[0], name) != 0)
			continue;
		while (n < FIGURES_PAGE_TABLES && p->tables[n]) {
			kinds[n] = kind_find(p->tables[n], NULL);
			n++;
		}
		return n;
	}
	kinds[0] = kind_find(name, NULL);
	return kinds[0] ? 1 : 0;
}

/* How the rows are split: as is asked for, or by vCPU if one is selected. */
static unsigned per_of(const struct figures_kind *k, const struct report_table_request *request)
{
	const struct narrow *narrow = request->narrow;

	if (request->per)
		return per_find(request->per);
	return narrow && narrow->vcpu >= 0 && k->per & FIGURES_PER_VCPU ? FIGURES_PER_VCPU
									: k->per_is;
}

/* Returns the position of a column among those that are shown, -1: it is not shown. */
static int column_find(const struct figures_kind *k, unsigned per, const char *name)
{
	int position = 0;

	for (size_t i = 0; i < k->n_columns; i++) {
		const struct figures_column *c = &k->columns[i];

		if (c->per && !(c->per & per))
			continue;
		if (!strcmp(c->column.name, name))
			return position;
		position++;
	}
	return -1;
}

/* Do the rows have what they are selected by? */
static bool kind_has_rows(const struct figures_kind *k, const struct report_table_request *request)
{
	const struct narrow *narrow = request->narrow;
	unsigned per = per_of(k, request);

	if (!narrow)
		return true;
	if ((narrow->vm || narrow->vcpu >= 0) && column_find(k, per, "vm") < 0)
		return false;
	if (narrow->vcpu >= 0 && column_find(k, per, "vcpu") < 0 &&
	    column_find(k, per, "guest_cpu") < 0)
		return false;
	if (narrow->task && column_find(k, per, "comm") < 0)
		return false;
	return !narrow->pid || column_find(k, per, "pid") >= 0;
}

/* Can this table be split and cut as is asked for? */
static bool kind_can(const struct figures_kind *k, const struct report_table_request *request)
{
	return (!request->per || k->per & per_find(request->per)) &&
	       (!request->than_ns || k->than) && kind_has_rows(k, request);
}

static void per_explain(unsigned per, char *why, size_t why_bytes)
{
	struct listing possible = {.text = ""};

	for (size_t i = 0; i < COUNT(pers); i++) {
		if (per & pers[i].per)
			listing_add(&possible, pers[i].word);
	}
	listing_end(&possible);
	snprintf(why, why_bytes, "its rows cannot be split so; --per takes %s here", possible.text);
}

static void than_explain(char *why, size_t why_bytes)
{
	struct listing possible = {.text = ""};
	const struct figures_kind *k;

	for (size_t i = 0; (k = figures_kind_at(i, NULL)); i++) {
		if (k->than)
			listing_add(&possible, k->name);
	}
	listing_end(&possible);
	snprintf(why, why_bytes, "has no lengths that --than could compare; %s have",
		 possible.text);
}

const struct figures_kind *report_table_kind(size_t index)
{
	return figures_kind_at(index, NULL);
}

void report_table_splits(const struct figures_kind *kind, char *out, size_t out_bytes)
{
	size_t len = 0;

	*out = '\0';
	for (size_t i = 0; i < COUNT(pers); i++) {
		if (kind->per & pers[i].per && len < out_bytes)
			len += (size_t)snprintf(out + len, out_bytes - len, "%s%s", len ? ", " : "",
						pers[i].word);
	}
}

/* The tables that can be narrowed so, whatever else is asked for. */
static void rows_explain(const struct report_table_request *request, char *why, size_t why_bytes)
{
	const struct report_table_request only = {.narrow = request->narrow};
	struct listing possible = {.text = ""};
	const struct figures_kind *k;
	char what[128];

	for (size_t i = 0; (k = figures_kind_at(i, NULL)); i++) {
		if (kind_has_rows(k, &only))
			listing_add(&possible, k->name);
	}
	listing_end(&possible);
	narrow_describe(request->narrow, what, sizeof(what));
	snprintf(why, why_bytes, "its rows%s have no column to select %s by; %s have",
		 request->per ? ", split so," : "", what, *possible.text ? possible.text : "none");
}

static void tables_explain(const struct report_table_request *request, char *why, size_t why_bytes)
{
	struct listing possible = {.text = ""}, others = {.text = ""};
	const char *typed = request->table;
	const struct figures_kind *k;
	struct suggest s;

	suggest_begin(&s, typed, strlen(typed));
	for (size_t i = 0; (k = figures_kind_at(i, NULL)); i++) {
		listing_add(&possible, k->name);
		suggest_try(&s, k->name);
	}
	listing_end(&possible);
	for (const char *const *other = request->others; other && *other; other++) {
		listing_add(&others, *other);
		suggest_try(&s, *other);
	}
	listing_end(&others);
	snprintf(why, why_bytes, "no such table; there are %s%s%s%s%s%s", possible.text,
		 *others.text ? "; of events: " : "", others.text, s.best ? "; did you mean '" : "",
		 s.best ? s.best : "", s.best ? "'?" : "");
}

int report_table_check(const struct report_table_request *request, char *why, size_t why_bytes)
{
	const struct figures_kind *kinds[FIGURES_PAGE_TABLES];
	size_t n = kinds_find(request, kinds);
	bool rows = false;
	unsigned per = 0;

	for (size_t i = 0; i < n; i++) {
		if (kind_can(kinds[i], request))
			return 0;
		rows |= kind_has_rows(kinds[i], request);
		per |= kinds[i]->per;
	}
	if (!n)
		tables_explain(request, why, why_bytes);
	else if (request->per && !(per & per_find(request->per)))
		per_explain(per, why, why_bytes);
	else if (!rows)
		rows_explain(request, why, why_bytes);
	else
		than_explain(why, why_bytes);
	return -EINVAL;
}

static void columns_choose(struct part *part)
{
	const struct figures_kind *k = part->kind;

	for (size_t i = 0; i < k->n_columns && part->n_columns < COLUMNS_MAX; i++) {
		const struct figures_column *c = &k->columns[i];

		if (c->per && !(c->per & part->per))
			continue;
		if (k->sort_by && !strcmp(c->column.name, k->sort_by))
			part->sort_by = part->n_columns;
		part->columns[part->n_columns++] = c->column;
	}
}

/* Tables that ask the same of the same analysis share it. Returns NULL on ENOMEM. */
static void *analysis_start(struct report_table *t, const struct part *part)
{
	if (t->request->chains && part->what == &chains_analysis)
		return t->request->chains;
	return analyses_start(&t->analyses, part->what, t->model, &part->options);
}

static bool part_add(struct report_table *t, const struct figures_kind *kind)
{
	struct part *part = &t->parts[t->n_parts];

	part->kind = kind_find(kind->name, &part->what);
	part->per = per_of(kind, t->request);
	/* What a kind is split by anyway need not be asked for: so more of them share an analysis.
	 */
	part->options = (struct figures_options){
		.per_vcpu = part->per == FIGURES_PER_VCPU && kind->per_is != FIGURES_PER_VCPU,
		.per_pcpu = part->per == FIGURES_PER_PCPU && kind->per_is != FIGURES_PER_PCPU,
		.than_ns = kind->than ? figures_clip(t->request->than_ns) : 0,
	};
	columns_choose(part);
	part->analysis = analysis_start(t, part);
	t->n_parts += part->analysis != NULL;
	return part->analysis != NULL;
}

/* What was counted before the window. */
static void window_opened(void *opener)
{
	struct report_table *t = opener;

	analyses_clear(&t->analyses);
}

struct report_table *report_table_new(struct model *m, const struct report_table_request *request)
{
	const struct narrow *narrow = request->narrow;
	const struct figures_kind *kinds[FIGURES_PAGE_TABLES];
	size_t n = kinds_find(request, kinds);
	struct report_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->request = request;
	t->model = m;
	if (narrow && narrow->cut &&
	    model_observe_within(m, narrow->from, narrow->until, window_opened, t)) {
		report_table_free(t);
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		if (kind_can(kinds[i], request) && !part_add(t, kinds[i])) {
			report_table_free(t);
			t = NULL;
			break;
		}
	}
	model_observe_always(m);
	return t;
}

void report_table_free(struct report_table *t)
{
	if (t)
		analyses_fini(&t->analyses);
	free(t);
}

void report_table_finish(struct report_table *t)
{
	analyses_finish(&t->analyses);
}

static struct host_ns since(const struct report_table *r)
{
	return r->cleared ? r->since : narrow_begin(r->request->narrow, r->model);
}

struct selection {
	const struct report_table *report;
	int vm, vcpu, guest_cpu, task, pid; /* columns; -1: none */
};

static uint32_t vm_of(const struct model *m, const char *name)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t n = model_vms(m, vms, MODEL_VMS_MAX);

	for (size_t i = 0; i < n && i < MODEL_VMS_MAX; i++) {
		if (!strcmp(model_vm_name(m, vms[i]), name))
			return vms[i];
	}
	return 0;
}

static bool row_selected(void *context, const struct table *t, size_t row)
{
	const struct selection *s = context;
	const struct narrow *n = s->report->request->narrow;
	const struct model *m = s->report->model;
	uint32_t vm = s->vm >= 0 ? vm_of(m, table_cell_text(t, row, (size_t)s->vm)) : 0;
	int64_t pid = s->pid >= 0 ? table_cell_number(t, row, (size_t)s->pid) : -1;
	int64_t cpu = -1;

	if (!narrow_has_vm(n, m, vm))
		return false;
	if (s->vcpu >= 0)
		cpu = table_cell_number(t, row, (size_t)s->vcpu);
	else if (s->guest_cpu >= 0)
		cpu = table_cell_number(t, row, (size_t)s->guest_cpu);
	if (n->vcpu >= 0 && s->vcpu >= 0 && cpu != n->vcpu)
		return false;
	if (n->vcpu >= 0 && s->vcpu < 0 &&
	    (cpu < 0 || !narrow_has_guest_cpu(n, m, vm, (uint16_t)cpu)))
		return false;
	return narrow_has_task(n, s->task >= 0 ? table_cell_text(t, row, (size_t)s->task) : "",
			       pid > INT32_MAX ? 0 : (int32_t)pid);
}

static void rows_select(const struct report_table *r, const struct part *part, struct table *t)
{
	struct selection s = {
		.report = r,
		.vm = column_find(part->kind, part->per, "vm"),
		.vcpu = column_find(part->kind, part->per, "vcpu"),
		.guest_cpu = column_find(part->kind, part->per, "guest_cpu"),
		.task = column_find(part->kind, part->per, "comm"),
		.pid = column_find(part->kind, part->per, "pid"),
	};

	table_keep(t, row_selected, &s);
}

/* The table now, sorted and cut; NULL and *err on failure. */
static struct table *table_fill(const struct report_table *r, const struct part *part, int *err)
{
	struct host_ns now = narrow_end(r->request->narrow, r->model);
	const bool select = narrow_rows(r->request->narrow);
	const struct figures_view view = {
		.model = r->model,
		.per = part->per,
		.than_ns = part->options.than_ns,
		.span_ns = now.ns - since(r).ns,
		.until = now,
		.top = select ? 0 : (size_t)r->request->top,
	};
	struct table *t = table_new(part->kind->name, part->columns, part->n_columns);

	*err = t ? part->kind->fill(part->analysis, &view, t) : -ENOMEM;
	if (!*err && part->what->error)
		*err = part->what->error(part->analysis);
	if (*err) {
		table_free(t);
		return NULL;
	}
	table_span(t, since(r).ns, now.ns);
	table_origin(t, model_begin(r->model).ns);
	if (select)
		rows_select(r, part, t);
	if (part->kind->sort_by)
		table_sort(t, part->sort_by, (size_t)r->request->top);
	if (part->kind->records)
		table_records(t);
	return t;
}

/* Under its title, if it is one of several. */
static int text_write(const struct report_table *r, struct table *const *tables, FILE *out)
{
	const struct narrow *n = r->request->narrow;
	int err = 0;

	if (n && n->cut)
		fprintf(out, "%s of the recording, from +%.6f s to +%.6f s\n",
			duration_text(n->until.ns - n->from.ns).text,
			(double)(n->from.ns - model_begin(r->model).ns) / 1e9,
			(double)(n->until.ns - model_begin(r->model).ns) / 1e9);
	for (size_t i = 0; i < r->n_parts && !err; i++) {
		if (r->n_parts > 1)
			fprintf(out, "%s%s: %s\n", i ? "\n" : "", r->parts[i].kind->name,
				r->parts[i].kind->title);
		if (!table_rows(tables[i]))
			fputs("nothing of that was seen\n", out);
		else
			err = table_write_text(tables[i], out);
	}
	return err;
}

/* All its tables in the format that was asked for; JSON on one `line`. 0 or -errno. */
static int tables_write(const struct report_table *r, bool line, FILE *out)
{
	const char *format = r->request->format;
	struct table *tables[FIGURES_PAGE_TABLES] = {NULL};
	int err = 0;

	for (size_t i = 0; i < r->n_parts && !err; i++)
		tables[i] = table_fill(r, &r->parts[i], &err);
	if (!err)
		err = !strcmp(format, "json")  ? tables_write_json(tables, r->n_parts, line, out)
		      : !strcmp(format, "csv") ? tables_write_csv(tables, r->n_parts, out)
					       : text_write(r, tables, out);
	for (size_t i = 0; i < r->n_parts; i++)
		table_free(tables[i]);
	return err;
}

struct table *report_table_part(const struct report_table *r, size_t index, int *err)
{
	*err = 0;
	return index < r->n_parts ? table_fill(r, &r->parts[index], err) : NULL;
}

int report_table_write(struct report_table *r, FILE *out)
{
	return tables_write(r, false, out);
}

/* "12:34:56+0100 tasks, over 1000 ms". */
static void heading_write(const struct report_table *r, bool terminal, FILE *out)
{
	time_t now = time(NULL);
	struct tm local;
	char clock[24] = "";

	if (localtime_r(&now, &local))
		strftime(clock, sizeof(clock), "%H:%M:%S%z ", &local);
	fprintf(out, "%s%s%s, over %s\n", terminal ? "\x1b[H\x1b[2J" : "", clock, r->request->table,
		duration_text(model_now(r->model).ns - since(r).ns).text);
}

int report_table_interval(struct report_table *r, bool terminal, FILE *out)
{
	bool json = !strcmp(r->request->format, "json");
	int err;

	if (!json)
		heading_write(r, terminal, out);
	err = tables_write(r, true, out);
	if (!json && !err && !terminal)
		fputc('\n', out);
	analyses_clear(&r->analyses);
	/* Before the first event there is no time to count from. */
	r->cleared = model_now(r->model).ns != 0;
	r->since = model_now(r->model);
	return !err && (fflush(out) || ferror(out)) ? -EPIPE : err;
}
