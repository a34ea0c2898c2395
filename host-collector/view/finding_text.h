/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Builds the sentences of a report from the findings of the analysis (analyze/stall/finding.h). One
 * table has the wording of each kind of finding. The sentences are unescaped: they contain names
 * that guests and host tasks choose.
 */
#ifndef VIEW_FINDING_TEXT_H
#define VIEW_FINDING_TEXT_H

#include "host-collector/analyze/stall/report.h"

/* A sentence. Longer ones are cut. */
struct finding_text {
	char text[REPORT_TEXT_MAX];
};
/* Joins the sentences of `n` findings; stops at the first one of kind NONE. Returns the text by
 * value, for use in an argument list. */
struct finding_text finding_text(const struct finding *findings, size_t n);
/* Return the sentences of an incident: the reason for its verdict, and what was denied. */
struct finding_text because_text(const struct incident *i);
struct finding_text denied_text(const struct incident *i);

#endif
