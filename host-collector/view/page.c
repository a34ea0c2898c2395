/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/view/json.h"
#include "host-collector/view/page_data.h"
#include "host-collector/view/page_files.h"
#include "host-collector/view/text.h"
#include "host-collector/view/verdict_words.h"

/* What one report with all its incidents may take of the page: stacks can be long. */
enum {
	REPORT_BYTES_MAX = 800000,
	TEXT_BYTES_MAX = 200000,
	VCPUS_SHOWN = 256,
	LOSS_SPANS_SHOWN = 256,
};

struct buffer_text {
	char *text;
	size_t len;
};

/* The report with its longest incidents only. It points to the arrays below, otherwise to what the
 * original points to. */
struct shown {
	struct report report;
	size_t indices[PAGE_INCIDENTS_MAX];
	struct incident *incidents;
	struct report_watchdog *watchdogs;
	struct report_loss *losses;
	size_t vcpus_left_out, spans_left_out;
};

static void shown_free(struct shown *s)
{
	free(s->incidents);
	free(s->watchdogs);
	free(s->losses);
}

/* What grows with the number of VMs. 0 or -ENOMEM. */
static int shown_bound(struct shown *s, const struct report *r)
{
	size_t spans = 0;

	s->losses = calloc(r->n_losses ? r->n_losses : 1, sizeof(*s->losses));
	if (!s->losses)
		return -ENOMEM;
	for (size_t i = 0; i < r->n_losses; i++) {
		struct report_loss *l = &s->losses[i];

		*l = r->losses[i];
		if (l->n_spans > LOSS_SPANS_SHOWN - spans) {
			s->spans_left_out += l->n_spans - (LOSS_SPANS_SHOWN - spans);
			l->n_spans = LOSS_SPANS_SHOWN - spans;
		}
		spans += l->n_spans;
	}
	s->report.losses = s->losses;
	if (r->n_vcpus > VCPUS_SHOWN) {
		s->vcpus_left_out = r->n_vcpus - VCPUS_SHOWN;
		s->report.n_vcpus = VCPUS_SHOWN;
	}
	return 0;
}

static int shown_choose(struct shown *s, const struct report *r, size_t max)
{
	size_t n = report_longest(r, max, s->indices);

	shown_free(s);
	s->losses = NULL;
	s->vcpus_left_out = s->spans_left_out = 0;
	s->report = *r;
	s->incidents = calloc(n ? n : 1, sizeof(*s->incidents));
	s->watchdogs = calloc(r->n_watchdogs ? r->n_watchdogs : 1, sizeof(*s->watchdogs));
	if (!s->incidents || !s->watchdogs)
		return -ENOMEM;
	for (size_t k = 0; k < r->n_watchdogs; k++) {
		s->watchdogs[k] = r->watchdogs[k];
		s->watchdogs[k].incident = -1;
	}
	for (size_t i = 0; i < n; i++) {
		s->incidents[i] = r->incidents[s->indices[i]];
		for (size_t k = 0; k < r->n_watchdogs; k++) {
			if (r->watchdogs[k].incident == (int)s->indices[i])
				s->watchdogs[k].incident = (int)i;
		}
	}
	s->report.n_incidents = n;
	s->report.incidents = s->incidents;
	s->report.watchdogs = s->watchdogs;
	return shown_bound(s, r);
}

/* The caller's to free. 0 or -ENOMEM. */
static int report_json(const struct report *r, struct buffer_text *b)
{
	FILE *out = open_memstream(&b->text, &b->len);
	int err = out ? json_report_write(r, false, out) : -ENOMEM;

	if (out && fclose(out))
		err = -ENOMEM;
	return err;
}

/* As many incidents as fit. */
static int shown_fit(struct shown *s, const struct report *r, struct buffer_text *json)
{
	int err;

	for (size_t max = PAGE_INCIDENTS_MAX;; max /= 2) {
		err = shown_choose(s, r, max);
		if (!err)
			err = report_json(&s->report, json);
		if (err || json->len <= REPORT_BYTES_MAX || max <= 1)
			return err;
		free(json->text);
		json->text = NULL;
	}
}

static int tables_write(const struct page *page, FILE *out)
{
	int err = 0;

	fputc('[', out);
	for (size_t i = 0; i < page->n_tables && !err; i++) {
		fputs(i ? "," : "", out);
		err = table_write_page(page->tables[i], out);
	}
	fputc(']', out);
	return err;
}

static int data_write(const struct page *page, const struct shown *shown,
		      const struct buffer_text *json, FILE *out)
{
	const struct report *r = page->report;
	int err;

	fputs("{\"recording\":", out);
	page_text_write(page->recording, out);
	fprintf(out,
		",\"incidents_left_out\":%zu,\"vcpus_left_out\":%zu,\"loss_spans_left_out\":%zu,"
		"\"names\":",
		r->n_incidents - shown->report.n_incidents, shown->vcpus_left_out,
		shown->spans_left_out);
	page_names_write(out);
	fputs(",\"incident_scenes\":[", out);
	for (size_t i = 0; i < shown->report.n_incidents; i++)
		fprintf(out, "%s%d", i ? "," : "",
			scenes_find(page->scenes, &shown->report.incidents[i]));
	fputs("],\"advice\":[", out);
	for (size_t i = 0; i < shown->report.n_incidents; i++) {
		const struct incident *incident = &shown->report.incidents[i];

		fputs(i ? "," : "", out);
		page_text_write(incident->healthy ? "" : verdict_words(incident->verdict).advice,
				out);
	}
	/* Of the whole report, whatever is shown of it. */
	fputs("],\"headline\":", out);
	err = json_headline_write(r, out);
	fputs(",\"scenes\":", out);
	page_scenes_write(page->scenes, r, out);
	fputs(",\"latencies\":", out);
	page_latencies_write(page->latencies, r, out);
	fputs(",\"pairs\":", out);
	page_pairs_write(page, out);
	fputs(",\"tables\":", out);
	if (!err)
		err = tables_write(page, out);
	fputs(",\"report\":", out);
	fwrite(json->text, 1, json->len, out);
	fputs("}", out);
	return err;
}

/* Into a script element: in JSON "<" stands in strings only, and nothing else could end it. */
static void script_data_write(const struct buffer_text *data, FILE *out)
{
	for (size_t i = 0; i < data->len; i++) {
		if (data->text[i] == '<')
			fputs("\\u003c", out);
		else
			fputc(data->text[i], out);
	}
}

static void element_text_write(const struct buffer_text *text, FILE *out)
{
	for (size_t i = 0; i < text->len; i++) {
		char c = text->text[i];

		if (c == '<' || c == '>' || c == '&')
			fprintf(out, "&#%d;", c);
		else
			fputc(c, out);
	}
}

/* For who has no scripts. */
static int text_write(const struct report *r, FILE *out)
{
	const struct text_options plain = {.colour = false};
	struct buffer_text text = {NULL, 0};
	FILE *to = open_memstream(&text.text, &text.len);
	bool cut;

	if (!to)
		return -ENOMEM;
	text_report_write(r, &plain, to);
	if (fclose(to)) {
		free(text.text);
		return -ENOMEM;
	}
	cut = text.len > TEXT_BYTES_MAX;
	if (cut)
		text.len = TEXT_BYTES_MAX;
	element_text_write(&text, out);
	if (cut)
		fputs("\n... (the rest: vcpuscope report RUN.vcs)\n", out);
	free(text.text);
	return 0;
}

static int document_write(const struct buffer_text *data, const struct report *r, FILE *out)
{
	int err;

	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
	      "<title>vcpuscope report</title>\n<style>\n",
	      out);
	fputs(page_file_report_css, out);
	fputs("</style>\n</head>\n<body>\n<div id=\"page\"></div>\n<noscript><pre>", out);
	err = text_write(r, out);
	fputs("</pre></noscript>\n<script type=\"application/json\" id=\"data\">", out);
	script_data_write(data, out);
	fputs("</script>\n<script>\n", out);
	fputs(page_file_draw_js, out);
	fputs(page_file_lanes_js, out);
	fputs(page_file_timeline_js, out);
	fputs(page_file_figures_js, out);
	fputs(page_file_stacks_js, out);
	fputs(page_file_report_js, out);
	fputs("</script>\n</body>\n</html>\n", out);
	if (!err && (fflush(out) || ferror(out)))
		err = -EIO;
	return err;
}

int page_write(const struct page *page, FILE *out)
{
	struct buffer_text json = {NULL, 0}, data = {NULL, 0};
	struct shown shown = {.incidents = NULL};
	FILE *to = NULL;
	int err = shown_fit(&shown, page->report, &json);

	if (!err) {
		to = open_memstream(&data.text, &data.len);
		err = to ? 0 : -ENOMEM;
	}
	if (!err)
		err = data_write(page, &shown, &json, to);
	if (to && fclose(to))
		err = -ENOMEM;
	if (!err)
		err = document_write(&data, page->report, out);
	shown_free(&shown);
	free(json.text);
	free(data.text);
	return err;
}
