/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/top_screen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/wrap.h"

enum {
	LINE_BYTES = 1024,
	NAME_LEAST = 8,
	NAME_MOST = 40,
	FIGURES_WIDTH = 58,
	SPARK_WIDTH = TOP_HISTORY + 1,
	LAST_LEAST = 24,
};

static const char *const sort_names[] = {
#define X(NAME, name) [TOP_SORT_##NAME] = name,
	TOP_SORTS(X)
#undef X
};

int top_sort_parse(const char *word, enum top_sort *out)
{
	for (int i = 0; i < TOP_SORT_COUNT; i++) {
		if (!strcmp(sort_names[i], word)) {
			*out = (enum top_sort)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* ---- which rows ---- */

static double sort_value(const struct top_row *r, enum top_sort sort)
{
	switch (sort) {
	case TOP_SORT_DELAY:
		return r->delay;
	case TOP_SORT_BLOCKED:
		return r->blocked + r->stopped;
	case TOP_SORT_STEAL:
		return r->steal;
	case TOP_SORT_EXITS:
		return r->exits_per_s;
	case TOP_SORT_IRQ:
		return (double)r->latency_ns;
	case TOP_SORT_OPEN:
		return (double)r->open;
	case TOP_SORT_RAN:
		return r->ran;
	default:
		return 0;
	}
}

static int row_compare(const void *a, const void *b, void *context)
{
	const struct top_row *x = a, *y = b;
	enum top_sort sort = *(const enum top_sort *)context;
	double p = sort_value(x, sort), q = sort_value(y, sort);
	int by_name = strcmp(x->name, y->name);

	if (p != q)
		return p < q ? 1 : -1;
	if (by_name)
		return by_name;
	return x->vcpu < y->vcpu ? -1 : x->vcpu > y->vcpu;
}

size_t top_rows_prepare(struct top_row *rows, size_t n, const struct top_screen *s)
{
	enum top_sort sort = s->sort;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (strcasestr(rows[i].name, s->filter))
			rows[kept++] = rows[i];
	}
	qsort_r(rows, kept, sizeof(*rows), row_compare, &sort);
	return kept;
}

/* ---- one line ---- */

struct pen {
	struct top_screen *s;
	void (*line)(void *context, enum top_look look, const char *text);
	void *context;
	unsigned drawn;
};

/* The first `width` characters of a text, filled up with blanks. */
static void fit(char *out, size_t out_bytes, const char *text, unsigned width)
{
	unsigned n = 0;
	size_t len = 0;

	while (*text && n < width) {
		struct character c = character_at(text);

		if (len + c.bytes + 1 > out_bytes)
			break;
		memcpy(out + len, text, c.bytes);
		len += c.bytes;
		text += c.bytes;
		n++;
	}
	while (n++ < width && len + 1 < out_bytes)
		out[len++] = ' ';
	out[len] = '\0';
}

static void put(struct pen *p, enum top_look look, const char *text)
{
	char line[LINE_BYTES];
	size_t len;

	if (p->s->lines && p->drawn == p->s->lines)
		return;
	fit(line, sizeof(line), text, p->s->columns);
	/* A line that is drawn in another way reaches to the edge of the screen. */
	for (len = strlen(line); len && line[len - 1] == ' ' && (look == TOP_PLAIN || p->s->plain);
	     len--)
		line[len - 1] = '\0';
	p->line(p->context, look, line);
	p->drawn++;
}

static void percent(char *out, size_t bytes, bool known, double value)
{
	if (known)
		snprintf(out, bytes, "%.1f%%", value);
	else
		snprintf(out, bytes, "-");
}

/* How a row shares the width of the screen: the name, the figures, then what fits. */
struct layout {
	unsigned name, last;
	bool delays, steals;
};

static struct layout layout_of(const struct top_screen *s, const struct top_row *rows, size_t n)
{
	struct layout l = {.name = NAME_LEAST};
	unsigned room;

	for (size_t i = 0; i < n; i++) {
		unsigned width = wrap_width(escape(rows[i].name).text);

		if (width > l.name)
			l.name = width;
	}
	if (s->inside)
		l.name = NAME_MOST;
	if (l.name > NAME_MOST)
		l.name = NAME_MOST;
	if (l.name + FIGURES_WIDTH > s->columns)
		l.name = s->columns > FIGURES_WIDTH + NAME_LEAST ? s->columns - FIGURES_WIDTH
								 : NAME_LEAST;
	room = s->columns > l.name + FIGURES_WIDTH ? s->columns - l.name - FIGURES_WIDTH : 0;
	l.delays = room >= SPARK_WIDTH;
	room -= l.delays ? SPARK_WIDTH : 0;
	l.steals = room >= SPARK_WIDTH;
	room -= l.steals ? SPARK_WIDTH : 0;
	if (!s->inside && room > LAST_LEAST)
		l.last = room - 2;
	return l;
}

static void spark(const struct pen *p, const signed char *shares, char *out, size_t out_bytes)
{
	static const char *const blocks[] = {"\u2581", "\u2582", "\u2583", "\u2584",
					     "\u2585", "\u2586", "\u2587", "\u2588"};
	static const char *const letters[] = {"_", ".", ":", "-", "=", "+", "*", "#"};
	size_t len = 0;

	for (size_t i = 0; i < TOP_HISTORY; i++) {
		int level = shares[i] * 8 / 101;
		const char *c = shares[i] < 0 ? " " : (p->s->blocks ? blocks : letters)[level];

		len += (size_t)snprintf(out + len, out_bytes - len, "%s", c);
	}
}

/* "12:00:01 vmm_lock 512 ms qemu-system-x86 (4100)". */
static void stall_text(const struct top_stall *s, char *out, size_t out_bytes)
{
	time_t seconds = (time_t)(s->wall_ns / 1000000000);
	char when[16] = "";
	struct tm tm;

	*out = '\0';
	if (!s->known)
		return;
	if (s->wall_known && localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%T ", &tm);
	snprintf(out, out_bytes, "%s%s %s %s", when, s->verdict, duration_text(s->duration_ns).text,
		 escape(s->culprit).text);
}

static void figures_text(const struct pen *p, const struct top_row *r, char *out, size_t out_bytes)
{
	char ran[16], delay[16], blocked[16], steal[16];

	if (*r->absent) {
		snprintf(out, out_bytes, "%5s  %.80s", "-", escape(r->absent).text);
		return;
	}
	percent(ran, sizeof(ran), r->known, r->ran);
	percent(delay, sizeof(delay), r->known, r->delay);
	percent(blocked, sizeof(blocked), r->known, r->blocked + r->stopped);
	percent(steal, sizeof(steal), r->steal_known, r->steal);
	snprintf(out, out_bytes, "%5u %6s %6s %7s %6s %8.0f %8s %4llu",
		 p->s->inside ? 1 : r->n_vcpus, ran, delay, blocked, steal, r->exits_per_s,
		 r->latency_known ? duration_text(r->latency_ns).text : "-",
		 (unsigned long long)r->open);
}

static void row_draw(struct pen *p, const struct layout *l, const struct top_row *r, bool selected)
{
	char name[512], text[2 * LINE_BYTES], figures[512], which[256], delays[64] = "",
									steals[64] = "";
	char last[ESCAPED_MAX + 128] = "";

	if (p->s->inside)
		snprintf(which, sizeof(which), "vCPU %u %s (%d)", r->vcpu, r->state, r->tid);
	else
		snprintf(which, sizeof(which), "%.120s", escape(r->name).text);
	fit(name, sizeof(name), which, l->name);
	figures_text(p, r, figures, sizeof(figures));
	if (!*r->absent) {
		if (l->delays)
			spark(p, r->delays, delays, sizeof(delays));
		if (l->steals)
			spark(p, r->steals, steals, sizeof(steals));
		if (l->last)
			stall_text(&r->last, last, sizeof(last));
	}
	snprintf(text, sizeof(text), "%s %s%s%s%s%s%s%s", name, figures, l->delays ? " " : "",
		 delays, l->steals ? " " : "", steals, l->last ? "  " : "", last);
	put(p, selected ? TOP_SELECTED : r->open ? TOP_ALARM : TOP_PLAIN, text);
}

static void columns_draw(struct pen *p, const struct layout *l)
{
	char name[64], text[LINE_BYTES];

	fit(name, sizeof(name), p->s->inside ? "vCPU" : "VM", l->name);
	snprintf(text, sizeof(text), "%s %5s %6s %6s %7s %6s %8s %8s %4s%s%s%s", name, "vCPUs",
		 "ran", "delay", "blocked", "steal", "exits/s", "irq max", "open",
		 l->delays ? " delay     " : "", l->steals ? " steal     " : "",
		 l->last ? "  last stall" : "");
	put(p, TOP_COLUMNS, text);
}

static void help_draw(struct pen *p)
{
	static const char *const lines[] = {
		"",
		"  Enter, Right  look into the VM        Esc, Left  back to all VMs",
		"  Up, Down      another row             s, S       next column, previous",
		"  /             show only some names    p, Space   pause, and go on",
		"  h, ?          this page               q, Ctrl-C  leave",
		"",
		"  ran      on a pCPU                    delay    ready to run, but without a pCPU",
		"  blocked  asleep in the host although the guest wants to run, or stopped",
		"  steal    what the guest's kernel accounts as stolen",
		"  irq max  the longest way of an interrupt from its source to the handler",
		"  open     stalls that go on now; the charts show the last refreshes",
		"",
		"  Shares are of the vCPUs' time since the last look.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		put(p, TOP_PLAIN, lines[i]);
}

static void head_draw(struct pen *p, size_t n)
{
	const struct top_screen *s = p->s;
	char text[LINE_BYTES];

	if (s->inside)
		snprintf(text, sizeof(text), "vcpuscope top  %s  VM %.40s: %zu vCPUs, by %s%s",
			 s->when, escape(s->inside).text, n, sort_names[s->sort],
			 s->paused ? "  PAUSED" : "");
	else
		snprintf(text, sizeof(text), "vcpuscope top  %s  %zu VM%s%s%.30s, by %s%s", s->when,
			 n, n == 1 ? "" : "s", *s->filter ? " with " : "", escape(s->filter).text,
			 sort_names[s->sort], s->paused ? "  PAUSED" : "");
	put(p, TOP_HEAD, text);
}

/* The last stall of the selected VM, if its row has no room for it. */
static void last_draw(struct pen *p, const struct top_row *r)
{
	char text[2 * LINE_BYTES], last[ESCAPED_MAX + 128];

	stall_text(&r->last, last, sizeof(last));
	snprintf(text, sizeof(text), "last stall: VM %.40s, guest CPU %u: %s", escape(r->name).text,
		 r->last.guest_cpu, last);
	put(p, TOP_PLAIN, text);
}

static void foot_draw(struct pen *p, const struct top_row *selected)
{
	const struct top_screen *s = p->s;
	char text[LINE_BYTES];

	while (p->drawn + 1 + (selected != NULL) < s->lines)
		put(p, TOP_PLAIN, "");
	if (selected)
		last_draw(p, selected);
	if (s->typing)
		snprintf(text, sizeof(text), "show names with: %.60s_", escape(s->filter).text);
	else if (*s->notice)
		snprintf(text, sizeof(text), "%.900s", escape(s->notice).text);
	else
		snprintf(text, sizeof(text),
			 "h help  q quit  Enter look into  s sort  / filter  "
			 "p pause");
	put(p, TOP_HEAD, text);
}

void top_screen_draw(struct top_screen *s, const struct top_row *rows, size_t n,
		     void (*line)(void *context, enum top_look look, const char *text),
		     void *context)
{
	struct pen p = {.s = s, .line = line, .context = context};
	struct layout layout = layout_of(s, rows, n);
	const struct top_row *detail = NULL;
	size_t room, from = 0;

	if (s->selected >= n)
		s->selected = n ? n - 1 : 0;
	if (n && !s->help && !layout.last && rows[s->selected].last.known)
		detail = &rows[s->selected];
	room = 3 + (detail != NULL);
	room = s->lines > room ? s->lines - room : 0;
	head_draw(&p, n);
	if (s->help) {
		help_draw(&p);
	} else {
		columns_draw(&p, &layout);
		if (s->lines && s->selected >= room)
			from = s->selected - room + 1;
		for (size_t i = from; i < n && (!s->lines || i < from + room); i++)
			row_draw(&p, &layout, &rows[i], !s->plain && i == s->selected);
	}
	if (!s->plain)
		foot_draw(&p, detail);
}
