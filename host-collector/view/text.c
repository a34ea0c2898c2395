/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/view/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/view/finding_text.h"
#include "host-collector/view/runs.h"
#include "host-collector/view/headline.h"
#include "host-collector/view/text_internal.h"
#include "host-collector/view/text_notes.h"
#include "host-collector/view/text_time.h"
#include "host-collector/util/wrap.h"

/* A wider strip shows no more. */
enum { STRIP_CELLS_MOST = 120 };

const char *page_colour(const struct page *p, enum colour c)
{
	static const char *const codes[] = {
		[PLAIN] = "\033[0m",  [BOLD] = "\033[1m",     [DIM] = "\033[2m",
		[RED] = "\033[1;31m", [GREEN] = "\033[1;32m", [YELLOW] = "\033[1;33m"};

	return p->options->colour ? codes[c] : "";
}

struct text_options text_options_for(FILE *out, const char *colour)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
	bool can = isatty(fileno(out)) && !(no && *no) && term && strcmp(term, "dumb") != 0;

	if (colour && strcmp(colour, "auto") != 0)
		can = !strcmp(colour, "always");
	return (struct text_options){.colour = can};
}

unsigned text_strip_cells(FILE *out)
{
	unsigned columns = wrap_columns(out) - TEXT_LABEL_COLUMNS;

	return columns < STRIP_CELLS_MOST ? columns : STRIP_CELLS_MOST;
}

/* ---- groups ---- */

/* Nearly the same piece of time: one's breakdown stands for the other's. */
static bool same_time(const struct incident *a, const struct incident *b)
{
	const int64_t begin = a->begin.ns > b->begin.ns ? a->begin.ns : b->begin.ns;
	const int64_t end = a->end.ns < b->end.ns ? a->end.ns : b->end.ns;
	const int64_t longer = incident_ns(a) > incident_ns(b) ? incident_ns(a) : incident_ns(b);

	return (end - begin) * 5 >= longer * 4;
}

static bool same_cause(const struct incident *a, const struct incident *b)
{
	return a->vm == b->vm && !a->healthy && !b->healthy && a->verdict == b->verdict &&
	       a->verdict != VERDICT_UNDETERMINED && a->confidence == b->confidence &&
	       a->guest_cpu != b->guest_cpu &&
	       (!a->n_culprits || !b->n_culprits || a->culprits[0].pid == b->culprits[0].pid);
}

/* The block of each incident: blocks[i] is the index of the block's first incident. */
static size_t *blocks_of(const struct report *r)
{
	size_t *blocks = calloc(r->n_incidents ? r->n_incidents : 1, sizeof(*blocks));

	for (size_t i = 0; blocks && i < r->n_incidents; i++) {
		blocks[i] = i;
		for (size_t k = i; k-- > 0;) {
			const struct incident *a = &r->incidents[k], *b = &r->incidents[i];

			if (same_cause(a, b) && same_time(a, b)) {
				blocks[i] = blocks[k];
				break;
			}
		}
	}
	return blocks;
}

static void block_write(const struct page *p, const size_t *blocks, size_t first)
{
	const struct report *r = p->report;
	size_t longest = first, others = 0, again = 0;

	for (size_t i = first; i < r->n_incidents; i++) {
		if (blocks[i] == first &&
		    incident_ns(&r->incidents[i]) > incident_ns(&r->incidents[longest]))
			longest = i;
	}
	incident_write(p, &r->incidents[longest]);
	for (size_t i = first; i < r->n_incidents; i++) {
		const struct incident *x = &r->incidents[i];

		if (blocks[i] != first || i == longest)
			continue;
		if (x->vm == r->incidents[longest].vm &&
		    x->guest_cpu == r->incidents[longest].guest_cpu) {
			fprintf(p->out, "   %-8s %s  %9s  %s\n", again++ ? "" : "again",
				time_when(r, x->begin, false).text,
				duration_text(incident_ns(x)).text, incident_what(x).text);
			continue;
		}
		fprintf(p->out, "   %-8s guest CPU %u, %s, %s from %s\n", others++ ? "" : "also",
			x->guest_cpu, incident_what(x).text, duration_text(incident_ns(x)).text,
			time_when(r, x->begin, false).text);
	}
}

static void incidents_write(const struct page *p)
{
	size_t *blocks = blocks_of(p->report);

	if (blocks)
		runs_join(p->report, blocks);

	for (size_t i = 0; i < p->report->n_incidents; i++) {
		if (!blocks)
			incident_write(p, &p->report->incidents[i]); /* no memory to group them */
		else if (blocks[i] == i)
			block_write(p, blocks, i);
		else
			continue;
		fputc('\n', p->out);
	}
	free(blocks);
}

/* What is too wide goes on in the next line; without memory for that it stays wide. */
static struct page page_open(const struct report *r, const struct text_options *o, FILE *to,
			     struct page_advice *given)
{
	FILE *wrapped = wrap_open(to);

	return (struct page){r, o, wrapped ? wrapped : to, wrap_columns(to), given};
}

static void page_close(struct page *p, FILE *to)
{
	if (p->out != to)
		fclose(p->out);
}

void text_incidents_write(const struct report *r, const struct text_options *o, FILE *out)
{
	struct page_advice given = {0};
	struct page p = page_open(r, o, out, &given);

	incidents_write(&p);
	page_close(&p, out);
}

void text_ongoing_write(const struct incident *i, const char *vm_name, const struct text_options *o,
			FILE *out)
{
	struct page_advice given = {0};
	struct page p = page_open(NULL, o, out, &given);

	fprintf(p.out, "%songoing%s  %s so far  VM %s, guest CPU %u, %s: ", page_colour(&p, YELLOW),
		page_colour(&p, PLAIN), duration_text(incident_ns(i)).text, escape(vm_name).text,
		i->guest_cpu, incident_what(i).text);
	if (i->verdict != VERDICT_UNDETERMINED)
		fprintf(p.out, "%s (%s), ", verdict_name(i->verdict),
			confidence_name(i->confidence));
	fprintf(p.out, "%s\n", escape(because_text(i).text).text);
	page_close(&p, out);
}

/* ---- head and foot ---- */

static void head_write(const struct page *p)
{
	const struct report *r = p->report;
	struct headline h;
	size_t healthy = 0;

	headline_make(r, &h);
	for (size_t i = 0; i < r->n_incidents; i++)
		healthy += r->incidents[i].healthy;
	if (r->simulated)
		fprintf(p->out,
			"SIMULATED: this recording was made by the simulator, not by a machine.\n");
	if (r->imported)
		fprintf(p->out, "IMPORTED: from another tracer's recording, which may not hold all "
				"that vcpuscope would have captured.\n");
	fprintf(p->out, "%s%s%s%s\n", page_colour(p, BOLD), h.count, page_colour(p, PLAIN), h.rest);
	for (size_t i = 0; i < h.n_lines; i++)
		fprintf(p->out, "%s\n", h.lines[i]);
	if (healthy)
		fprintf(p->out, "%zu long run interval%s in which no task had to wait.\n", healthy,
			healthy == 1 ? "" : "s");
	if (r->cut)
		fprintf(p->out,
			"The recording was cut: the report covers what is complete of it.\n");
	fputc('\n', p->out);
}

static void clock_write(const struct page *p, const struct report_clock *c)
{
	fprintf(p->out, "VM %-8s ", escape(c->vm_name).text);
	if (strcmp(c->method, "none") == 0 && vm_is_host_only(p->report, c->vm)) {
		fputs("no guest times: the guest was not recorded\n", p->out);
		return;
	}
	fputs("guest times ", p->out);
	if (c->untrusted)
		fputs("not proven", p->out);
	else if (strcmp(c->method, "none") == 0)
		fputs("by arrival, error unbounded", p->out);
	else
		fprintf(p->out, "by %s", escape(c->method).text);
	if (strcmp(c->method, "none") != 0)
		fprintf(p->out, ", %s, %" PRIu64 " causality violation%s, %u epoch%s",
			time_error(c->error_ns).text, c->causality_violations,
			c->causality_violations == 1 ? "" : "s", c->epochs,
			c->epochs == 1 ? "" : "s");
	if (c->beside_pauses && !c->untrusted)
		fprintf(p->out, "; %" PRIu64 " event%s beside a pause of the VM, %s",
			c->beside_pauses, c->beside_pauses == 1 ? "" : "s",
			time_error(c->beside_pauses_error_ns).text);
	if (c->protection != VM_PROTECTION_NONE)
		fprintf(p->out,
			"; the guest is protected (%s), so the hypervisor's parameters are not used",
			vm_protection_title(c->protection));
	if (c->disagreements)
		fprintf(p->out,
			"; the hypervisor's TSC offset is contradicted by %" PRIu64 " round trip%s",
			c->disagreements, c->disagreements == 1 ? "" : "s");
	fputc('\n', p->out);
}

static void loss_write(const struct page *p, const struct report_loss *l)
{
	const struct {
		uint64_t n;
		const char *by;
	} parts[] = {
		{l->dropped_kernel, "because the ring of its kernel was full"},
		{l->dropped_user,
		 l->source == VS_SOURCE_HOST ? "by the collector" : "by its agent"},
		{l->lost_channel, "on the way"},
		{l->missed, "not numbered, because a probe was already running on the CPU"},
	};
	uint64_t dropped = l->dropped_kernel + l->dropped_user + l->lost_channel + l->missed;
	bool first = true;

	fprintf(p->out, "%-11s %" PRIu64 " event%s, %" PRIu64 " dropped",
		l->source == VS_SOURCE_HOST ? "host" : escape(l->name).text, l->delivered,
		l->delivered == 1 ? "" : "s", dropped);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (!parts[i].n)
			continue;
		fprintf(p->out, "%s%" PRIu64 " %s", first ? " (" : ", ", parts[i].n, parts[i].by);
		first = false;
	}
	if (!first)
		fputc(')', p->out);
	if (l->malformed_frames)
		fprintf(p->out, ", %" PRIu64 " malformed frame%s or event%s", l->malformed_frames,
			l->malformed_frames == 1 ? "" : "s", l->malformed_frames == 1 ? "" : "s");
	if (l->unknown_events)
		fprintf(p->out, ", %" PRIu64 " event%s of unknown type", l->unknown_events,
			l->unknown_events == 1 ? "" : "s");
	if (l->unknown_frames)
		fprintf(p->out, ", %" PRIu64 " frame%s of unknown kind", l->unknown_frames,
			l->unknown_frames == 1 ? "" : "s");
	if (l->unplaced)
		fprintf(p->out, ", %" PRIu64 " whose time is not known", l->unplaced);
	if (l->lost_frames)
		fprintf(p->out, ", %" PRIu64 " frame%s lost", l->lost_frames,
			l->lost_frames == 1 ? "" : "s");
	if (l->damaged_bytes)
		fprintf(p->out, ", %" PRIu64 " byte%s damaged", l->damaged_bytes,
			l->damaged_bytes == 1 ? "" : "s");
	if (l->late)
		fprintf(p->out, ", %" PRIu64 " too late", l->late);
	fputc('\n', p->out);
	if (l->config[0])
		fprintf(p->out, "%-11s as requested: %s\n", escape(l->name).text,
			escape(l->config).text);
}

/* Beside what was lost, because it was not. */
static void aggregated_write(const struct page *p, const struct report_loss *l)
{
	bool first = true;

	for (size_t i = 0; i < EVENT_CLASSES; i++) {
		const struct message_aggregated *u = &l->aggregated[i];

		if (!u->count)
			continue;
		if (first)
			fprintf(p->out,
				"%-11s short handlers, only counted: ", escape(l->name).text);
		fprintf(p->out, "%s%" PRIu64 " of %s (", first ? "" : ", ", u->count,
			event_class_name((uint32_t)i));
		fprintf(p->out, "%s, ", duration_text((int64_t)(u->total_ns & INT64_MAX)).text);
		fprintf(p->out, "the longest %s)",
			duration_text((int64_t)(u->max_ns & INT64_MAX)).text);
		first = false;
	}
	if (!first)
		fputc('\n', p->out);
}

void text_report_write(const struct report *r, const struct text_options *o, FILE *out)
{
	struct page_advice given = {0};
	struct page p = page_open(r, o, out, &given);

	text_notes_write(r, p.out);
	head_write(&p);
	incidents_write(&p);
	for (size_t i = 0; i < r->n_watchdogs; i++) {
		if (r->watchdogs[i].incident < 0)
			watchdog_write(&p, &r->watchdogs[i], "");
	}
	for (size_t i = 0; i < r->n_clocks; i++)
		clock_write(&p, &r->clocks[i]);
	for (size_t i = 0; i < r->n_losses; i++) {
		loss_write(&p, &r->losses[i]);
		aggregated_write(&p, &r->losses[i]);
	}
	if (r->dropped_incidents)
		fprintf(p.out, "%" PRIu64 " more stalls than a report holds.\n",
			r->dropped_incidents);
	page_close(&p, out);
}
