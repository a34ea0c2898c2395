/* SPDX-License-Identifier: GPL-2.0-only */
/* Formats times and bounds for a report's text. */
#ifndef VIEW_TEXT_TIME_H
#define VIEW_TEXT_TIME_H

#include "host-collector/analyze/stall/report.h"

struct time_text {
	char text[64];
};

/* Returns the wall time that the host's clock showed at `t`, if known, else the seconds since
 * the recording's begin. */
struct time_text time_when(const struct report *r, struct host_ns t, bool with_date);
/* Returns a time since boot in the form of dmesg: "[  123.456789]". */
struct time_text time_dmesg(uint64_t ns);
/* Returns a bound, for example "+-120 us", or "error unbounded". */
struct time_text time_error(uint64_t err_ns);

#endif
