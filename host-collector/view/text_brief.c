/* SPDX-License-Identifier: GPL-2.0-only */
/* One line for each stall, which begins with its number: for scripts and for long lists. */
#include <stdlib.h>
#include <unistd.h>

#include "host-collector/util/duration.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/wrap.h"
#include "host-collector/view/finding_text.h"
#include "host-collector/view/text_internal.h"
#include "host-collector/view/text_time.h"

/* Cuts a line that is wider than `columns`, and marks that. */
static void line_cut(char *line, unsigned columns)
{
	size_t len = 0;

	if (wrap_width(line) <= columns)
		return;
	for (unsigned n = 0; n + 2 < columns; n++)
		len += character_at(line + len).bytes;
	snprintf(line + len, 3, "..");
}

static void brief_write(const struct page *p, const struct incident *i, bool cut)
{
	char *line;
	int len = asprintf(&line, "%3u. %s  %7s%s  %s (%s)  VM %s, guest CPU %u: %s", i->ordinal,
			   time_when(p->report, i->begin, true).text,
			   duration_text(incident_ns(i)).text, i->ongoing ? " so far" : "",
			   verdict_name(i->verdict), confidence_name(i->confidence),
			   escape(report_vm_name(p->report, i->vm)).text, i->guest_cpu,
			   escape(because_text(i).text).text);

	if (len < 0)
		return;
	if (cut)
		line_cut(line, p->columns);
	fprintf(p->out, "%s\n", line);
	free(line);
}

void text_brief_write(const struct report *r, const struct text_options *o, FILE *out)
{
	const struct page p = {.report = r, .options = o, .out = out, .columns = wrap_columns(out)};
	bool cut = fileno(out) >= 0 && isatty(fileno(out));

	for (size_t i = 0; i < r->n_incidents; i++) {
		if (!r->incidents[i].healthy)
			brief_write(&p, &r->incidents[i], cut);
	}
}
