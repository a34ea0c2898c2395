/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits the log lines that a peer can cause to LOG_LIMIT_LINES in LOG_LIMIT_MS, and counts the
 * hidden lines.
 *
 * Use one limit per peer, for all kinds of lines and for all its sessions and connections. Then a
 * peer cannot evade the limit with a new connection, and the lines of one VM do not hide those of
 * another.
 */
#ifndef PROTO_LOG_LIMIT_H
#define PROTO_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

enum { LOG_LIMIT_LINES = 20, LOG_LIMIT_MS = 10000 };

/* A limit of all zeros is new. */
struct log_limit {
	uint64_t begin_ms; /* begin of the interval in which `lines` were logged */
	unsigned int lines;
	uint64_t hidden;
};

/* Returns true if one more line may be logged, and counts the line as logged or hidden. now_ms:
 * time of any monotonic clock, ms. Call log_limit_hidden() first, so that the count precedes the
 * line. */
bool log_limit_admit(struct log_limit *l, uint64_t now_ms);
/* Returns true if log_limit_admit() would refuse a line now. Counts nothing. */
bool log_limit_is_reached(const struct log_limit *l, uint64_t now_ms);
/* Returns the number of hidden lines after the end of their interval and resets it; else 0. */
uint64_t log_limit_hidden(struct log_limit *l, uint64_t now_ms);

#endif
