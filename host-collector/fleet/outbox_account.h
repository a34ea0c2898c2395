/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps the counts of an outbox in its file "account": lines that were written, delivered and lost,
 * and losses that are not reported yet. Not thread-safe. */
#ifndef FLEET_OUTBOX_ACCOUNT_H
#define FLEET_OUTBOX_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "host-collector/fleet/segments.h"

/* The file "account". One pwrite() rewrites it, so a killed process leaves either the old or the
 * new content. */
struct outbox_account {
	uint64_t magic, seq;
	uint64_t written[SEGMENT_KINDS], lost[SEGMENT_KINDS], delivered;
	/* unreported: losses that are not reported yet, by `full` (see outbox_account_lose()).
	 * reporting: losses in the report `number`, which is in progress; reporting_full: their
	 * `full`. */
	uint64_t unreported[2][SEGMENT_KINDS], reporting[SEGMENT_KINDS], reporting_full, number;
	uint64_t counted_seq; /* SEQ of the file whose loss was counted last */
};

/* Opens the file in the folder `dir`, and creates it if it is missing or damaged. Its blocks then
 * exist. Returns its descriptor, which the caller closes, or -errno. */
int outbox_account_open(int dir, struct outbox_account *out);
/* Writes the counts. fd -1: does nothing. */
void outbox_account_save(int fd, const struct outbox_account *a);
/* Adds what was counted while the outbox was not open. */
void outbox_account_merge(struct outbox_account *a, const struct outbox_account *before);

/* Counts n lines or recordings as lost. full: the file system refused them; otherwise they were
 * removed for the budget. */
void outbox_account_lose(struct outbox_account *a, enum segment_kind kind, uint64_t n, bool full);
/* Counts the lines of a segment as lost. If a report of losses is among the lines, its losses are
 * reported again. Closes fd; a negative one has no lines. */
void outbox_account_lose_lines(struct outbox_account *a, int fd, enum segment_kind kind, bool full);
/* Takes losses that are not reported as the next report (`reporting`), unless one is in progress.
 * Returns false if there is nothing to report. */
bool outbox_account_report(struct outbox_account *a);

#endif
