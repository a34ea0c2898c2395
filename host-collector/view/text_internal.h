/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the parts of the text report. */
#ifndef VIEW_TEXT_INTERNAL_H
#define VIEW_TEXT_INTERNAL_H

#include "host-collector/view/text.h"

/* The width of a line's label. */
enum { TEXT_LABEL_COLUMNS = 12 };

enum colour { PLAIN, BOLD, DIM, RED, GREEN, YELLOW };

/* Advice that the report has given and does not repeat. Bit n: value n of the enum. */
struct page_advice {
	uint32_t verdicts, missing;
};

struct page {
	const struct report *report;
	const struct text_options *options;
	FILE *out;        /* wraps its lines */
	unsigned columns; /* width of these lines */
	struct page_advice *given;
};

struct what_text {
	char text[128];
};

/* Returns the escape sequence that sets a colour; "" if the report has no colours. */
const char *page_colour(const struct page *p, enum colour c);
/* Returns what the guest CPU was doing: "task victim (50)", "softirq TIMER in victim (50)". */
struct what_text incident_what(const struct incident *i);
/* Writes the block of one incident. */
void incident_write(const struct page *p, const struct incident *i);
/* Writes `head`, then what a soft lockup line of a guest's log says. */
void watchdog_write(const struct page *p, const struct report_watchdog *w, const char *head);
/* Returns true if the guest of this VM was not recorded. */
bool vm_is_host_only(const struct report *r, uint32_t vm);

static inline int64_t incident_ns(const struct incident *i)
{
	return i->end.ns - i->begin.ns;
}

#endif
