/* SPDX-License-Identifier: GPL-2.0-only */
/* States what an incident denied and what the evidence shows, as findings (finding.h). */
#ifndef STALL_DESCRIBE_H
#define STALL_DESCRIBE_H

#include "host-collector/analyze/stall/facts.h"
#include "host-collector/analyze/stall/report.h"

/* Formats a text of at most out_bytes - 1 characters and a NUL. Cuts longer texts. */
void describe(char *out, size_t out_bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Fill a cleared incident.denied (REPORT_DENIED_MAX findings) and incident.evidence. */
void describe_denied(const struct stall_facts *f, const struct model *m, struct finding *out);
void describe_evidence(const struct stall_facts *f, const struct model *m, struct incident *out);

#endif
