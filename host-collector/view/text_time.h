/* SPDX-License-Identifier: GPL-2.0-only */
/* Times and errors as a report's text shows them. */
#ifndef VIEW_TEXT_TIME_H
#define VIEW_TEXT_TIME_H

#include "host-collector/analyze/stall/report.h"

struct time_text {
	char text[64];
};

/* Host wall time, as the host's clock showed it then, if known; else seconds since the recording
 * began. */
struct time_text time_when(const struct report *r, struct host_ns t, bool with_date);
/* "[  123.456789]", as the guest's dmesg has it. */
struct time_text time_dmesg(uint64_t ns);
/* "+-120 us". */
struct time_text time_error(uint64_t err_ns);

#endif
