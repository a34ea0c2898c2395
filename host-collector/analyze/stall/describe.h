/* SPDX-License-Identifier: GPL-2.0-only */
/* Texts of a report: names of tasks, what an incident denied, what the evidence shows. */
#ifndef STALL_DESCRIBE_H
#define STALL_DESCRIBE_H

#include "host-collector/analyze/stall/facts.h"
#include "host-collector/analyze/stall/report.h"
#include "host-collector/util/duration.h"

struct task_text {
	char text[48];
};
/* Returns "stress-ng (1234)", "task 1234" if the name is unknown, or "the idle task" for pid 0. */
struct task_text task_text(const struct model *m, uint32_t source, int32_t pid);

/* Formats a text of at most out_bytes - 1 characters and a NUL. Cuts longer texts. */
void describe(char *out, size_t out_bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Write incident.denied; fill incident.evidence. */
void describe_denied(const struct stall_facts *f, const struct model *m, char *out,
		     size_t out_bytes);
void describe_evidence(const struct stall_facts *f, const struct model *m, struct incident *out);

#endif
