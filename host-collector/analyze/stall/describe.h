/* SPDX-License-Identifier: GPL-2.0-only */
/* The sentences of a report: times, tasks, what was denied, what the evidence shows. */
#ifndef STALL_DESCRIBE_H
#define STALL_DESCRIBE_H

#include "host-collector/analyze/stall/facts.h"
#include "host-collector/analyze/stall/report.h"
#include "host-collector/util/duration.h"

/* "stress-ng (1234)", or "task 1234" if its name is unknown. */
struct task_text {
	char text[48];
};
/* "name (pid)", "task pid" if it has no known name, "the idle task". By value, as above. */
struct task_text task_text(const struct model *m, uint32_t source, int32_t pid);

/* Writes at most out_bytes - 1 characters and a NUL; longer texts are cut. */
void describe(char *out, size_t out_bytes, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* incident.denied and incident.evidence from the facts. */
void describe_denied(const struct stall_facts *f, const struct model *m, char *out,
		     size_t out_bytes);
void describe_evidence(const struct stall_facts *f, const struct model *m, struct incident *out);

#endif
