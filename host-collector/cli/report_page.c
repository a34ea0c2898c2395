/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/report_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/cli/shown_pairs.h"
#include "host-collector/tables/report_tables.h"
#include "host-collector/view/page.h"

enum { TABLE_ROWS = 40 };

/* How the page's tables are asked for. Those of interrupts have chains of their own, whose limit is
 * that of `report TABLE`, so that both say the same; the report's depends on its --than. */
static const struct report_table_request requests[] = {
	{.table = "tasks", .top = TABLE_ROWS, .format = "json", .alone = true},
	{.table = "vcpu", .top = TABLE_ROWS, .format = "json"},
	{.table = "exits", .top = TABLE_ROWS, .format = "json", .alone = true},
	{.table = "irq", .top = TABLE_ROWS, .format = "json", .alone = true},
	{.table = "delays", .per = "vcpu", .top = TABLE_ROWS, .format = "json"},
	{.table = "chains", .per = "vcpu", .top = TABLE_ROWS, .format = "json"},
	{.table = "slowest", .per = "vcpu", .top = TABLE_ROWS, .format = "json"},
	{.table = "overdue", .per = "vcpu", .top = TABLE_ROWS, .format = "json"},
	{.table = "steal", .top = TABLE_ROWS, .format = "json"},
};

enum { TABLES = sizeof(requests) / sizeof(requests[0]) };

struct report_page {
	struct scenes *scenes;
	struct latency_maps *latencies;
	struct chains *chains;
	struct report_table_request requests[TABLES];
	struct report_table *tables[TABLES];
};

static void chain_closed(void *context, const struct chain *c)
{
	struct report_page *p = context;

	scenes_chain(p->scenes, c);
	latency_maps_chain(p->latencies, c);
}

struct report_page *report_page_new(struct model *m)
{
	struct report_page *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->scenes = scenes_new(m);
	p->latencies = p->scenes ? latency_maps_new(m) : NULL;
	if (!p->latencies) {
		report_page_free(p);
		return NULL;
	}
	return p;
}

static void window_opened(void *opener)
{
	struct report_page *p = opener;

	chains_clear(p->chains);
}

int report_page_open(struct report_page *p, struct model *m, struct chains *chains,
		     const struct narrow *narrow)
{
	const struct chain_options limit = {0};
	int err = 0;

	if (narrow->cut) {
		err = model_observe_within(m, narrow->from, narrow->until, window_opened, p);
		if (!err)
			p->chains = chains_new(m, &limit);
		model_observe_always(m);
	} else {
		p->chains = chains_share(chains, &limit);
	}
	if (!p->chains)
		return -ENOMEM;
	err = model_observe_on_worker(m, true);
	chains_watch(chains, chain_closed, p);
	for (size_t i = 0; i < TABLES && !err; i++) {
		p->requests[i] = requests[i];
		p->requests[i].chains = p->chains;
		p->requests[i].narrow = narrow;
		p->tables[i] = report_table_new(m, &p->requests[i]);
		if (!p->tables[i])
			err = -ENOMEM;
	}
	model_observe_on_worker(m, false);
	return err;
}

struct scenes *report_page_scenes(const struct report_page *p)
{
	return p->scenes;
}

void report_page_free(struct report_page *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < TABLES; i++)
		report_table_free(p->tables[i]);
	chains_free(p->chains);
	latency_maps_free(p->latencies);
	scenes_free(p->scenes);
	free(p);
}

void report_page_notice(void *context, const struct incident *incident)
{
	struct report_page *p = context;

	scenes_incident(p->scenes, incident);
}

/* A path's last part. */
static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int analyses_finish(struct report_page *p, struct shown_pairs *pairs, struct page *page)
{
	int err;

	chains_finish(p->chains);
	for (size_t i = 0; i < TABLES; i++)
		report_table_finish(p->tables[i]);
	err = latency_maps_error(p->latencies);
	if (!err && pairs)
		err = shown_pairs_page(pairs, page);
	return err ? err : scenes_finish(p->scenes, PAGE_PIECES_MAX);
}

static bool page_has(const struct page *page, const char *table)
{
	for (size_t i = 0; i < page->n_tables; i++) {
		if (!strcmp(table_name(page->tables[i]), table))
			return true;
	}
	return false;
}

/* Those of `p` that the page does not have yet. The caller frees them. 0 or -errno. */
static int tables_fill(struct report_page *p, struct page *page)
{
	struct table *t;
	int err = 0;

	for (size_t i = 0; !err && i < TABLES; i++) {
		for (size_t k = 0; (t = report_table_part(p->tables[i], k, &err)); k++) {
			if (page->n_tables == PAGE_TABLES_MAX || page_has(page, table_name(t)))
				table_free(t);
			else
				page->tables[page->n_tables++] = t;
		}
	}
	return err;
}

int report_page_write(struct report_page *p, const char *recording, const struct report *r,
		      struct shown_pairs *pairs, FILE *out)
{
	struct page page = {.recording = file_name(recording),
			    .report = r,
			    .scenes = p->scenes,
			    .latencies = p->latencies};
	int err = analyses_finish(p, pairs, &page);

	if (!err)
		err = tables_fill(p, &page);
	if (!err)
		err = page_write(&page, out);
	for (size_t i = 0; i < page.n_tables; i++)
		table_free(page.tables[i]);
	return err;
}
