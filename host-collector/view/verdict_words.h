/* SPDX-License-Identifier: GPL-2.0-only */
/* The words for each verdict. Reports, the manual pages and the shell completion use them. */
#ifndef VIEW_VERDICT_WORDS_H
#define VIEW_VERDICT_WORDS_H

#include "host-collector/analyze/stall/report.h"

/* Static strings without line breaks; "": none. */
struct verdict_words {
	const char *holds;       /* the condition of its rule */
	const char *contradicts; /* what makes it at most likely */
	/* The sentence of FINDING_CAUSE, with {ns0} for the time (finding_text.c). */
	const char *reason;
	const char *advice; /* what to do, one or two sentences */
};
struct verdict_words verdict_words(enum verdict v);

#endif
