/* SPDX-License-Identifier: GPL-2.0-only */
/* Formats times and bounds for a report's text. */
#ifndef VIEW_TEXT_TIME_H
#define VIEW_TEXT_TIME_H

#include "host-collector/analyze/stall/report.h"

struct time_text {
	char text[64];
};

/* Writes a time of CLOCK_REALTIME, with the offset of the local time zone. Returns false if it has
 * no date. */
bool time_wall(int64_t wall_ns, bool with_date, struct time_text *out);
/* Returns the wall time that the host's clock showed at `t`, with the offset of the local time
 * zone, if known, else the seconds since the recording's begin. */
struct time_text time_when(const struct report *r, struct host_ns t, bool with_date);
/* Returns the time from `from` to `t`: "+4.7 ms", or "-1.2 ms" if `t` is earlier. */
struct time_text time_since(struct host_ns from, struct host_ns t);
/* Returns a time since boot in the form of dmesg: "[  123.456789]". */
struct time_text time_dmesg(uint64_t ns);
/* Returns a bound, for example "+-120 us", or "error unbounded". */
struct time_text time_error(uint64_t err_ns);

#endif
