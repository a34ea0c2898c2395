/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many lines a peer may cause to be logged: LOG_LIMIT_LINES in LOG_LIMIT_MS. Lines beyond that
 * are counted, and the count is due once the time is over. One limit per peer, for all its lines,
 * over all its sessions and connections: so that no kind of line, and no way to begin anew, escapes
 * it, and one VM's flood does not hide what is said of another.
 */
#ifndef PROTO_LOG_LIMIT_H
#define PROTO_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

enum { LOG_LIMIT_LINES = 20, LOG_LIMIT_MS = 10000 };

/* Zeroed: no line yet. */
struct log_limit {
	uint64_t begin_ms; /* of the time that `lines` is of */
	unsigned int lines;
	uint64_t hidden;
};

/* May one more line be shown now? Counts it either way. now_ms: any steady clock. Call
 * log_limit_hidden() first, so that the count comes before the line. */
bool log_limit_admit(struct log_limit *l, uint64_t now_ms);
/* Would log_limit_admit() refuse a line now? */
bool log_limit_is_reached(const struct log_limit *l, uint64_t now_ms);
/* Once after a time in which lines were hidden: how many; else 0. */
uint64_t log_limit_hidden(struct log_limit *l, uint64_t now_ms);

#endif
